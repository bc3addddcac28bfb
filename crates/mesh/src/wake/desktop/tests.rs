//! With a `notify-send` of our own, which writes down what it is told.

use std::{fs, os::unix::fs::PermissionsExt, path::Path as FilePath};

use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{
        ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeSettings,
        tests::{agent, bell},
    },
    DesktopAdapter,
};
use prism_config::Env;

/// A screen: a folder with a `notify-send` that does as its last line says.
fn screen(last_line: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("notify-send");
    let told = folder.path().join("told");
    fs::write(&program, format!("#!/bin/sh\nprintf '%s|' \"$@\" > '{}'\n{last_line}\n", told.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn desktop(path: &FilePath, bus: &str) -> DesktopAdapter {
    let env = Env::from([("PATH", path.to_str().unwrap()), ("DBUS_SESSION_BUS_ADDRESS", bus)]);
    DesktopAdapter::new(&WakeSettings { desktop: true, env, ..WakeSettings::default() })
}

async fn ring(desktop: &DesktopAdapter, bell: &WakeBell) -> RingOutcome {
    desktop.ring(&desktop.attach(&agent("cursor", json!({}))).unwrap(), bell).await
}

#[tokio::test]
async fn the_person_is_told_who_and_what_kind_and_no_more() {
    let screen = screen("exit 0");
    let desktop = desktop(screen.path(), "unix:path=/bus");
    let contact = desktop.attach(&agent("cursor", json!({}))).unwrap();
    assert_eq!(desktop.probe(&contact).await, ProbeOutcome::There);
    assert!(!screen.path().join("told").exists(), "a probe shows nothing");
    assert_eq!(ring(&desktop, &WakeBell { sender: "a<b>&".into(), ..bell() }).await, RingOutcome::Rang);
    let told = fs::read_to_string(screen.path().join("told")).unwrap();
    assert_eq!(
        told,
        "--app-name=Prism|--icon=dialog-information|--|Prism: bob has a signal|\
         Question from a&lt;b>&amp;. prism mesh shows who waits for whom.|"
    );
}

#[tokio::test]
async fn a_daemon_without_a_screen_says_what_is_missing() {
    let screen = screen("exit 0");
    let rung = ring(&desktop(screen.path(), ""), &bell()).await;
    assert!(matches!(&rung, RingOutcome::Uncaptured(why) if why.contains("session bus")), "{rung:?}");
    let empty = tempfile::tempdir().unwrap();
    let rung = ring(&desktop(empty.path(), "unix:path=/bus"), &bell()).await;
    assert!(matches!(&rung, RingOutcome::Uncaptured(why) if why.contains("no notify-send")), "{rung:?}");
}

#[tokio::test]
async fn a_notice_that_fails_is_a_failure() {
    let screen = screen("exit 1");
    let rung = ring(&desktop(screen.path(), "unix:path=/bus"), &bell()).await;
    assert!(matches!(&rung, RingOutcome::SendFailed(why) if why.contains("try notify-send")), "{rung:?}");
}

#[test]
fn nobody_is_told_who_has_not_asked_for_it() {
    assert!(DesktopAdapter::new(&WakeSettings::default()).attach(&agent("cursor", json!({}))).is_none());
}
