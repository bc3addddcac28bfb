//! Another user of the machine at the Unix socket (D-01). Only root can become somebody else, so these
//! tests need it; they say so where they have it not.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::{fs::PermissionsExt, net::UnixStream},
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    process::{Uid, geteuid},
    thread::set_thread_res_uid,
};

use crate::support::{DEADLINE, Daemon, Launch, destination, until};

/// Nobody, everywhere.
const STRANGER: u32 = 65534;

fn is_root() -> bool {
    let root = geteuid().is_root();
    if !root {
        let _ = io::stderr().write_all(b"not root: nobody else can be tried\n");
    }
    root
}

/// Asks over the socket, as another user. Only this thread becomes that one, and it ends with its work.
async fn ask_as_stranger(socket: PathBuf, request: String) -> io::Result<String> {
    let asking = thread::spawn(move || {
        let stranger = Uid::from_raw(STRANGER);
        set_thread_res_uid(stranger, stranger, stranger)?;
        ask(&socket, &request)
    });
    tokio::task::spawn_blocking(move || asking.join().expect("no panic")).await.expect("no panic")
}

fn ask(socket: &Path, request: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn ping(daemon: &Daemon) -> String {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    format!(
        "POST /a/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        daemon.token(),
        body.len()
    )
}

// D-01
#[tokio::test]
async fn the_folder_keeps_other_users_from_the_socket() {
    if !is_root() {
        return;
    }
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let socket = daemon.home().path().join("prism.sock");
    let refused = ask_as_stranger(socket, ping(&daemon)).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
}

// D-01: the token helps them as little as modes that somebody has widened.
#[tokio::test]
async fn another_user_is_turned_away_even_where_the_modes_let_it_in() {
    if !is_root() {
        return;
    }
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let socket = daemon.home().path().join("prism.sock");
    let widen = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    widen(daemon.home().path(), 0o755);
    widen(&socket, 0o666);
    for request in [ping(&daemon), "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()] {
        let answer = ask_as_stranger(socket.clone(), request).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("connection: close") && answer.contains("another user"), "{answer}");
    }
    let told = || daemon.stderr().matches("turned away").count();
    until("the log tells of it", async || told() > 0).await;
    assert_eq!(told(), 1, "and once only");
    assert_eq!(daemon.metric(r#"prism_refused_total{reason="user"}"#).await, Some(2));
    // Its own user gets in as before, with the token.
    let request = ping(&daemon);
    let answer = tokio::task::spawn_blocking(move || ask(&socket, &request)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}
