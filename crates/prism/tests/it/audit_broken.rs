//! An audit log that is not what was written: whoever looks is told (M8, R-10).

use std::{fs, path::PathBuf};

use hyper::Method;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Ended,
    gate::{Gate, SETTINGS},
    seen::{NOTHING, line, logged, seen},
    until,
};

/// A daemon that has written some lines and was stopped.
async fn stopped() -> (Gate, PathBuf) {
    let mut gate = Gate::start().await;
    gate.granted(&["read:files"]).await;
    let folder = gate.daemon.home().path().join("audit");
    gate.daemon.signal(Signal::TERM);
    assert_eq!(gate.daemon.ended().await.code(), Some(0));
    (gate, folder)
}

async fn verify(gate: &Gate) -> Ended {
    gate.prism(&["audit", "verify"]).end().await
}

/// What the console shows on a page.
async fn console(gate: &Gate, page: &str) -> String {
    let (_, link) = gate.as_person("/prism/console/link", json!({})).await;
    let code = link["url"].as_str().unwrap().split_once('#').unwrap().1.to_owned();
    let own = format!("http://127.0.0.1:{}", gate.daemon.port());
    let login = gate.request(Method::POST, "/console/login", None).header("origin", &own);
    let entered = login.body(json!({ "code": code }).to_string()).send().await.json().await;
    let part = gate.request(Method::GET, &format!("/console/{page}?part"), None);
    part.header("x-prism-console", entered["secret"].as_str().unwrap()).send().await.text().await
}

/// Everybody who is asked says that the log is broken.
async fn is_told(gate: &Gate) {
    let said = "the audit log is not what was written";
    until("the log says so", async || gate.daemon.stderr().contains("The audit log is not what was written")).await;
    let status = gate.prism(&["status"]).output().await;
    let person = logged(&status, said);
    let doctor = gate.prism(&["doctor", "--no-calls"]).end().await;
    assert!(doctor.stdout.contains(said), "{}", doctor.stdout);
    for page in ["requests", "audit"] {
        let page = console(gate, page).await;
        assert!(page.contains(said), "{page}");
    }
    let broken =
        gate.audit().into_iter().find(|line| line["action"] == "audit.broken").expect("it is in the log itself");
    seen(NOTHING, person, line(&broken));
}

// M8: "tampered, restarted, acted; no line in the log"
#[tokio::test]
async fn a_line_that_was_changed_is_told_by_the_next_daemon() {
    let (gate, folder) = stopped().await;
    let file = folder.join("audit.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\"fixer\"", "\"mixer\"", 1)).unwrap();
    let gate = gate.started_again(SETTINGS).await;
    is_told(&gate).await;
    assert_eq!(verify(&gate).await.code, Some(1));
}

// M8: with its head, too, so that the files by themselves look whole.
#[tokio::test]
async fn a_log_that_was_cut_short_is_told_by_the_next_daemon() {
    let (gate, folder) = stopped().await;
    let before = gate.audit().len();
    fs::remove_file(folder.join("audit.jsonl")).unwrap();
    fs::remove_file(folder.join("audit.head")).unwrap();
    let gate = gate.started_again(SETTINGS).await;
    is_told(&gate).await;
    let first = gate.audit()[0]["seq"].as_u64().unwrap();
    assert_eq!(first, before as u64 + 1, "no number is given twice");
}

// "`prism audit verify` says \"whole: 0 lines\", exit 0, after the audit folder was emptied"
#[tokio::test]
async fn an_emptied_log_is_no_whole_one() {
    let (gate, folder) = stopped().await;
    let whole = verify(&gate).await;
    assert_eq!(whole.code, Some(0), "{}", whole.stdout);
    for file in fs::read_dir(&folder).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    let told = |ended: Ended| {
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stdout.starts_with("broken") && ended.stdout.contains("database knows of"), "{ended:?}");
    };
    told(verify(&gate).await);
    fs::remove_dir(&folder).unwrap();
    told(verify(&gate).await);
    let json = gate.prism(&["audit", "verify", "--json"]).end().await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["ok"], &json["what"]), (&json!(false), &json!("missing")), "{json}");
    // And what is written afterwards hides nothing.
    let gate = gate.started_again(SETTINGS).await;
    gate.granted(&["read:files"]).await;
    let broken = verify(&gate).await;
    assert_eq!(broken.code, Some(1));
    seen(NOTHING, broken.stdout, gate.daemon.logged("The audit log is not what was written").await);
}

// A daemon that was killed has nothing to be told of.
#[tokio::test]
async fn a_kill_breaks_no_log() {
    let gate = Gate::start().await;
    gate.granted(&["read:files"]).await;
    let gate = gate.killed_and_started(SETTINGS).await;
    gate.granted(&["read:files"]).await;
    assert!(!gate.daemon.stderr().contains("not what was written"));
    let status = gate.prism(&["status", "--json"]).output().await;
    assert_eq!(serde_json::from_str::<Value>(&status).unwrap()["daemon"]["record"], json!([]));
    assert_eq!(verify(&gate).await.code, Some(0));
}
