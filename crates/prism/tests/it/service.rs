//! `prism service`: what is written for the system, and what the system is told (D-10). The system's own program is a
//! script here that writes down what it is told.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::support::{Ended, Home, Launch, lines, process, until};

fn unit(home: &Home) -> PathBuf {
    home.path().join(".config/systemd/user/prism.service")
}

async fn service(home: &Home, words: &[&str], path: &Path) -> Ended {
    let arguments = ["service"].iter().chain(words).map(|word| (*word).to_owned()).collect();
    Launch::prism(arguments).home(home).env("PATH", path.to_str().unwrap()).end().await
}

/// A folder with a `systemctl` that writes down what it is told, and says yes to everything.
fn with_systemctl(home: &Home) -> PathBuf {
    let folder = home.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("systemctl");
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> {}\n", home.file("told"))).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

// D-10
#[tokio::test]
async fn install_writes_a_unit_and_starts_it_and_uninstall_undoes_that() {
    let home = Home::new();
    let path = with_systemctl(&home);
    let ended = service(&home, &["install", "--", "--port", "7421"], &path).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = fs::read_to_string(unit(&home)).unwrap();
    let command = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    assert!(command.ends_with("prism serve --supervised systemd --port 7421"), "{command}");
    assert!(text.contains(&format!("PRISM_HOME={}", home.path().display())), "{text}");
    let told = lines(&home.file("told"));
    let expected =
        ["daemon-reload", "enable prism.service", "restart prism.service"].map(|one| format!("--user {one}"));
    assert_eq!(told[1..], expected, "after a question whether anybody is there");

    let ended = service(&home, &["status", "--json"], &path).await;
    let status: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&status["installed"], &status["running"]), (&true.into(), &false.into()), "{status}");

    assert_eq!(service(&home, &["uninstall"], &path).await.code, Some(0));
    assert!(!unit(&home).exists());
    let told = lines(&home.file("told"));
    assert!(told.contains(&"--user disable --now prism.service".to_owned()), "{told:?}");
    assert_eq!(told.last().unwrap(), "--user daemon-reload");
    let again = service(&home, &["uninstall"], &path).await;
    assert!(again.code == Some(0) && again.stdout.contains("not installed"), "{again:?}");
}

// D-10
#[tokio::test]
async fn without_a_service_manager_the_file_is_written_and_what_to_type_is_said() {
    let home = Home::new();
    let ended = service(&home, &["install"], home.path()).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(unit(&home).exists());
    for typed in ["systemctl --user daemon-reload", "systemctl --user enable prism.service"] {
        assert!(ended.stdout.contains(typed), "{}", ended.stdout);
    }
    assert_eq!(service(&home, &["uninstall"], home.path()).await.code, Some(0));
    assert!(!unit(&home).exists());
}

// D-10
#[tokio::test]
async fn a_dry_run_shows_the_file_and_writes_nothing() {
    let home = Home::new();
    let path = with_systemctl(&home);
    let ended = service(&home, &["install", "--dry-run"], &path).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("Restart=always") && ended.stdout.contains(unit(&home).to_str().unwrap()));
    assert!(!unit(&home).exists());
    assert!(lines(&home.file("told")).is_empty());
}

// D-10: one of our own in the place of the system's would not be started again.
#[tokio::test]
async fn where_the_system_is_to_run_it_the_system_is_asked_to() {
    let home = Home::new();
    let path = with_systemctl(&home);
    assert_eq!(service(&home, &["install"], &path).await.code, Some(0));
    // From now on this one starts what it is told to start.
    let (daemon, told) = (env!("CARGO_BIN_EXE_prism"), home.file("told"));
    let script = format!(
        "#!/bin/sh\necho \"$@\" >> {told}\ncase \"$*\" in *start*) {daemon} serve --port 0 --supervised systemd \
         >/dev/null 2>&1 </dev/null & esac\n"
    );
    fs::write(path.join("systemctl"), script).unwrap();
    let search = format!("{}:/usr/bin:/bin", path.display());
    let ended = Launch::prism(vec!["restart".to_owned()]).home(&home).env("PATH", &search).end().await;
    let text = fs::read(home.path().join("http-mcp.json")).expect("it runs");
    let registered: Value = serde_json::from_slice(&text).unwrap();
    process::signal_if_there(registered["pid"].as_u64().unwrap().try_into().unwrap(), Signal::KILL);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(registered["supervisor"], "systemd");
    assert_eq!(lines(&told).last().unwrap(), "--user --no-block start prism.service");
}

// D-10: the system starts it again, so a restart only has to wait for that.
#[tokio::test]
async fn a_restart_of_a_service_is_left_to_the_system() {
    let home = Home::new();
    // What systemd does with `Restart=always`.
    let script = format!("while :; do {} serve --port 0 --supervised systemd; done", env!("CARGO_BIN_EXE_prism"));
    let mut system = Command::new("sh")
        .args(["-c", &script])
        .env("PRISM_HOME", home.path())
        .current_dir(home.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let registered =
        || -> Option<Value> { serde_json::from_slice(&fs::read(home.path().join("http-mcp.json")).ok()?).ok() };
    until("it runs", async || registered().is_some()).await;
    let first = registered().unwrap();
    assert_eq!(first["supervisor"], "systemd");
    let ended = Launch::prism(vec!["restart".to_owned()]).home(&home).end().await;
    let second = registered();
    let logs = Launch::prism(vec!["logs".to_owned()]).home(&home).end().await;
    kill_process_group(Pid::from_child(&system), Signal::KILL).unwrap();
    system.wait().unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let second = second.unwrap();
    assert_ne!(first["pid"], second["pid"]);
    assert_eq!(second["supervisor"], "systemd");
    assert!(logs.stderr.contains("journalctl --user -u prism.service"), "{}", logs.stderr);
}

// D-10
#[tokio::test]
async fn a_unit_that_somebody_wrote_by_hand_is_left_alone() {
    let home = Home::new();
    fs::create_dir_all(unit(&home).parent().unwrap()).unwrap();
    fs::write(unit(&home), "[Service]\nExecStart=/my/own\n").unwrap();
    for word in ["install", "uninstall"] {
        let ended = service(&home, &[word], home.path()).await;
        assert_eq!(ended.code, Some(1), "{word}");
        assert!(ended.stderr.contains("not written by Prism") && ended.stderr.contains("fix: mv "), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(unit(&home)).unwrap(), "[Service]\nExecStart=/my/own\n");
}
