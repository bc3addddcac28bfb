//! Who has no key holds nothing up: connections that say nothing, and editors that do not say who they are (M7).

use std::{
    path::Path,
    time::{Duration, Instant},
};

use hyper::Method;
use serde_json::Value;
use tokio::{
    io::AsyncReadExt,
    net::{TcpStream, UnixStream},
};

use crate::support::{
    Launch, Place, Request, demo,
    gate::Gate,
    seen::{NOTHING, line, seen},
    soon, until,
};

/// Connections that say nothing.
const IDLE: usize = 100;

async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    soon("it is closed", stream.read(&mut byte)).await.is_ok_and(|read| read == 0)
}

// M7: "with 64 files 100 idle connections shut out everybody, the Unix socket included"
#[tokio::test]
async fn a_hundred_idle_strangers_shut_nobody_out_of_sixty_four_files() {
    let daemon = Launch::run(&[], &demo(&[])).shell("ulimit -n 64").start().await;
    let known = daemon.client().initialize().await;
    let socket = daemon.home().path().join("prism.sock");
    let (mut idle, begun) = (Vec::new(), Instant::now());
    let mut at_socket = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(("127.0.0.1", daemon.port())).await.unwrap());
        if Path::new(&socket).exists() {
            at_socket.extend(UnixStream::connect(&socket).await);
        }
    }
    // The first has to go for the next, long before its ten seconds are over.
    let closed = is_closed(&mut idle[0]).await;
    assert!(closed);
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    let status = daemon.client_at("/status").request(Method::GET).send().await;
    assert_eq!(status.status, 200, "an honest client gets in");
    let open = status.json().await["daemon"]["open_files"].as_u64().unwrap();
    assert!(open < 60, "{open}");
    assert_eq!(known.ask("ping", serde_json::json!({})).await.status, 200, "and one that was in goes on");
    if socket.exists() {
        let asked = Request::new(Place::Unix(socket), Method::GET, "/status").header("host", "localhost");
        let asked = asked.header("authorization", &format!("Bearer {}", daemon.token()));
        assert_eq!(asked.send().await.status, 200, "over the Unix socket, too");
    }
    seen(format!("the first is closed: {closed}"), format!("the status: {open} files open of 64"), NOTHING);
    drop((idle, at_socket));
}

// M7: "`prism status` over the Unix socket still gets in"
#[tokio::test]
async fn the_command_line_gets_in_beside_idle_strangers() {
    let gate = Gate::start().await;
    let mut idle = Vec::new();
    for _ in 0..600 {
        idle.push(TcpStream::connect(("127.0.0.1", gate.daemon.port())).await.unwrap());
    }
    let status = gate.prism(&["status", "--json"]).output().await;
    let open = serde_json::from_str::<Value>(&status).unwrap()["daemon"]["open_files"].as_u64().unwrap();
    assert!(open < 500, "{open} of 600 strangers are still there");
    seen(format!("fewer than {open} of 600 stay"), format!("prism status: {open} files open"), NOTHING);
    drop(idle);
}

// M7: "`/plugin` takes 300 WebSockets without a token for 10 s each"
#[tokio::test]
async fn few_editors_may_wait_before_they_say_who_they_are() {
    let gate = Gate::start().await;
    let mut sockets = Vec::new();
    let mut refused = 0;
    for at in 0..30 {
        match gate.connect(&format!("/plugin/stranger-{at}"), &[]).await {
            Ok(socket) => sockets.push(socket),
            Err(status) => {
                assert_eq!(status, 429);
                refused += 1;
            }
        }
    }
    assert_eq!((sockets.len(), refused), (8, 22));
    let bearer = format!("Bearer {}", gate.plugin_secret());
    let known = gate.connect("/plugin/known", &[("authorization", &bearer)]).await;
    assert!(known.is_ok(), "who shows the secret has a place");
    let line = line(&gate.audited("plugin_connect", "refused: too_many").await);
    seen(format!("429, {refused} of 30 times"), format!("their editor gets in: {}", known.is_ok()), line);
    sockets.clear();
    until("their places are free", async || gate.connect("/plugin/next", &[]).await.is_ok()).await;
}
