//! Too much at a window: decisions by the thousand, pictures by the mebibyte, and nobody who reads them. The daemon stays small
//! and answers everybody else.

use std::{collections::HashSet, time::Duration};

use prism_store::{Store, gate::ConfirmationRow};
use serde_json::json;

use super::{accepted, confirming, decided, deciding, refused, shown, with_window};
use crate::support::{
    gate::{Gate, SETTINGS, text},
    plugin::{owning, state},
    process::{peak_kib, resident_kib},
    until,
};

//
#[tokio::test]
async fn ten_thousand_decisions_are_answered_and_few_are_looked_at() {
    const WORDS: u64 = 10_000;
    let (gate, mut line) = with_window().await;
    let before = gate.audit().len();
    let mut answered = HashSet::new();
    let (mut unknown, mut too_fast) = (0, 0);
    // In pieces: who writes and never reads is another test.
    for piece in 0..WORDS / 100 {
        for id in piece * 100..(piece + 1) * 100 {
            let nobody = "00000000-0000-4000-8000-000000000000";
            line.says(json!({"type": "decide", "id": id, "request_id": nobody, "approve": true})).await;
        }
        for _ in 0..100 {
            let decided = line.hears("decided").await;
            answered.insert(decided["id"].as_u64().unwrap());
            match decided["error"]["code"].as_str() {
                Some("unknown_request") => unknown += 1,
                Some("rate_limited") => {
                    assert!(decided["error"]["details"]["retry_after_ms"].as_u64().is_some_and(|ms| ms >= 1));
                    too_fast += 1;
                }
                _ => panic!("{decided}"),
            }
        }
    }
    assert_eq!(answered.len() as u64, WORDS);
    assert!(unknown >= 100 && too_fast > WORDS / 2, "{unknown} looked at, {too_fast} too fast");
    assert!(gate.audit().len() - before < 2_000, "the log is not flooded");
    // The person is let through again as soon as the bucket has something.
    let asked = gate.ask("fixer", &["read:files"]).await;
    until("a decision counts", async || {
        let word = json!({"type": "decide", "id": WORDS, "request_id": asked.id, "approve": true});
        decided(&mut line, word).await["status"] == "ok"
    })
    .await;
}

/// A daemon in whose store so many confirmations wait, with so many bytes of text each.
async fn with_waiting(count: u128, bytes: usize) -> Gate {
    let mut gate = Gate::start().await;
    gate.daemon.kill().await;
    let store = Store::open(&gate.daemon.home().path().join("prism.db")).unwrap();
    for n in 0..count {
        let shown = json!({"action": "write_file", "shown": {"kind": "diff", "path": "/w/a", "unified": "+x\n".repeat(bytes / 3)}});
        let row = ConfirmationRow {
            id: n + 1,
            kind: "action".to_owned(),
            grant_id: None,
            agent: "fixer".to_owned(),
            digest: [u8::try_from(n % 251).unwrap(); 32],
            shown: shown.to_string(),
            state: "waiting".to_owned(),
            created_at_us: i64::try_from(n).unwrap(),
            expires_at_us: i64::MAX,
            decided_at_us: None,
            decided_by: None,
            reason: None,
            uses_left: 0,
            until_us: None,
        };
        store.add_confirmation(row).await.unwrap();
    }
    drop(store);
    gate.started_again(SETTINGS).await
}

// however much waits, what is sent of it is bounded, and what is not seen whole is not allowed.
#[tokio::test]
async fn two_hundred_confirmations_of_a_mebibyte_each_are_shown_in_part() {
    let gate = with_waiting(200, 1 << 20).await;
    let pid = gate.daemon.pid();
    let before = resident_kib(pid);
    let mut line = owning(&gate, "edit", deciding(&gate)).await;
    let desk = line.hears("desk").await;
    let all = desk["confirmations"].as_array().unwrap();
    assert_eq!(all.len(), 200);
    assert!(all.iter().all(|one| one["is_cut"] == true && one["digest"].is_string()));
    assert!(desk.to_string().len() < 16 << 20, "{}", desk.to_string().len());
    let unified = text(&all[199]["shown"]["shown"]["unified"]);
    assert!(unified.len() > 150_000 && unified.contains("cut here; `prism console` shows all of it"));
    assert_eq!(all[0]["shown"]["shown"]["path"], "/w/a", "of each it is shown what it is about");
    let (code, message) = refused(&mut line, confirming(1, &all[0], true)).await;
    assert_eq!(code, "too_large", "{message}");
    accepted(&mut line, confirming(2, &all[0], false)).await;
    shown(&mut line, "one less", |desk| desk["confirmations"].as_array().is_some_and(|all| all.len() == 199)).await;
    let grown = peak_kib(pid).saturating_sub(before);
    assert!(grown < 160 << 10, "{grown} KiB more for a picture of some 8 MiB");
}

// small ones are whole, and the person can allow them.
#[tokio::test]
async fn what_is_shown_whole_stays_whole_when_more_comes() {
    let gate = with_waiting(100, 150 << 10).await;
    let mut line = owning(&gate, "edit", deciding(&gate)).await;
    let desk = line.hears("desk").await;
    let all = desk["confirmations"].as_array().unwrap();
    let whole = all.iter().filter(|one| one["is_cut"].is_null()).count();
    assert!((30..60).contains(&whole), "{whole} of 100 have room in 8 MiB");
    // The oldest are last in the list, and were there first.
    assert!(all[100 - whole..].iter().all(|one| one["is_cut"].is_null()));
    accepted(&mut line, confirming(1, &all[99], true)).await;
}

// an editor that never reads holds one picture, and nobody else up.
#[tokio::test]
async fn an_editor_that_never_reads_is_in_nobodys_way_and_is_closed() {
    let gate = with_waiting(64, 200 << 10).await;
    let mut deaf = owning(&gate, "deaf", deciding(&gate)).await;
    deaf.says(json!({"type": "revoke", "id": 1, "session_id": "x"})).await;
    let mut line = owning(&gate, "edit", deciding(&gate)).await;
    let pid = gate.daemon.pid();
    line.hears("desk").await;
    let before = resident_kib(pid);
    // Each of these is a change, and a picture of 8 MiB for whoever reads.
    for n in 0..40 {
        let asked = gate.ask("fixer", &["read:files"]).await;
        let word = json!({"type": "decide", "id": n, "request_id": asked.id, "approve": false});
        accepted(&mut line, word).await;
    }
    let grown = peak_kib(pid).saturating_sub(before);
    assert!(grown < 128 << 10, "{grown} KiB more");
    let left = until("the deaf one is closed", async || {
        // The other one goes on meanwhile.
        line.says(json!({"type": "revoke", "id": 100, "session_id": "x"})).await;
        line.hears("decided").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        state(&gate, "deaf").await.is_none()
    });
    left.await;
    drop(deaf);
}
