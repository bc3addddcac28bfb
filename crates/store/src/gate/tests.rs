//! The gate on real files.

mod model;

use tempfile::TempDir;

use super::*;
use crate::Store;

const OPEN: [&str; 2] = ["REQUESTED", "PENDING"];

fn open(home: &TempDir) -> Store {
    Store::open(&home.path().join("prism.db")).unwrap()
}

fn asked(id: u128, agent: &str) -> RequestRow {
    RequestRow {
        id,
        agent: agent.to_owned(),
        scopes: "read:files edit:files".to_owned(),
        roots: r#"["/p"]"#.to_owned(),
        reason: "to mend it".to_owned(),
        ttl_s: 900,
        state: "PENDING".to_owned(),
        created_at_us: 10,
        expires_at_us: 100,
        decided_at_us: None,
        decided_by: None,
        denied_because: None,
        grant_id: None,
        claim_hash: hash(id),
        claimed: false,
        asker: r#"{"session":"x"}"#.to_owned(),
    }
}

fn granted(id: u128, parent: Option<u128>) -> GrantRow {
    GrantRow {
        id,
        request_id: None,
        parent,
        agent: "a".to_owned(),
        scopes: "read:files".to_owned(),
        roots: r#"[["/p",""]]"#.to_owned(),
        state: "APPROVED".to_owned(),
        created_at_us: 20,
        expires_at_us: 1000,
        ended_at_us: None,
        per_second: 10,
        burst: 20,
        max_edit_bytes: 102_400,
        confirms_changes: true,
    }
}

fn question(id: u128, digest: u128) -> ConfirmationRow {
    ConfirmationRow {
        id,
        kind: "action".to_owned(),
        grant_id: Some(7),
        agent: "a".to_owned(),
        digest: hash(digest),
        shown: r#"{"kind":"command"}"#.to_owned(),
        state: "waiting".to_owned(),
        created_at_us: 10,
        expires_at_us: 100,
        decided_at_us: None,
        decided_by: None,
        reason: None,
        uses_left: 0,
        until_us: None,
    }
}

fn answer(confirmation: u128, digest: u128, allow: bool) -> ConfirmationAnswer {
    ConfirmationAnswer {
        confirmation,
        digest: hash(digest),
        allow,
        at_us: 50,
        by: "me".to_owned(),
        reason: Some("because".to_owned()),
        uses: 1,
        until_us: None,
    }
}

fn hash(of: u128) -> [u8; 32] {
    let mut hash = [0xab; 32];
    hash[..16].copy_from_slice(&of.to_be_bytes());
    hash
}

async fn add(store: &Store, request: RequestRow) {
    assert_eq!(store.add_request(request, 100, 100).await.unwrap(), AddRequestResult::Added);
}

async fn approve(store: &Store, request: u128, grant: u128) -> bool {
    store.approve(request, 50, "me".to_owned(), granted(grant, None), Some(hash(grant))).await.unwrap()
}

fn state_of(store: &Store, request: u128) -> String {
    store.request(request).unwrap().unwrap().state
}

// A-04
#[tokio::test]
async fn a_request_is_decided_once() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, RequestRow { state: "REQUESTED".to_owned(), ..asked(1, "a") }).await;
    assert!(store.step_request(1, &["REQUESTED"], "PENDING", RequestPatch::default()).await.unwrap());
    assert!(!store.step_request(1, &["REQUESTED"], "PENDING", RequestPatch::default()).await.unwrap());
    assert!(approve(&store, 1, 11).await);
    assert!(!approve(&store, 1, 12).await);
    assert_eq!(store.grant(12).unwrap(), None, "the second grant was not made");
    assert_eq!(store.grant_of_token(hash(12)).unwrap(), None);
    let denial = RequestPatch { denied_because: Some("no".to_owned()), ..RequestPatch::default() };
    assert!(!store.step_request(1, &OPEN, "DENIED", denial).await.unwrap());
    let request = store.request(1).unwrap().unwrap();
    assert_eq!((request.state.as_str(), request.grant_id, request.denied_because), ("APPROVED", Some(11), None));
    assert_eq!((request.decided_at_us, request.decided_by.as_deref()), (Some(50), Some("me")));
    assert_eq!(store.grant(11).unwrap().unwrap().request_id, Some(1));
}

#[tokio::test]
async fn what_is_denied_says_why_and_cannot_be_approved() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, asked(1, "a")).await;
    let patch =
        RequestPatch { decided_at_us: Some(5), decided_by: Some("me".into()), denied_because: Some("no".into()) };
    assert!(store.step_request(1, &OPEN, "DENIED", patch).await.unwrap());
    assert!(!approve(&store, 1, 11).await);
    let request = store.request(1).unwrap().unwrap();
    assert_eq!((request.decided_at_us, request.denied_because.as_deref()), (Some(5), Some("no")));
}

#[tokio::test]
async fn a_request_whose_time_is_over_cannot_be_approved_even_before_anybody_noticed() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, RequestRow { expires_at_us: 50, ..asked(1, "a") }).await;
    add(&store, RequestRow { expires_at_us: 51, ..asked(2, "a") }).await;
    assert!(!approve(&store, 1, 11).await);
    assert!(approve(&store, 2, 12).await);
    assert_eq!(store.expire_requests(1000).await.unwrap(), [1], "what is approved is not open");
    assert_eq!(state_of(&store, 1), "EXPIRED");
    assert_eq!(state_of(&store, 2), "APPROVED");
}

#[tokio::test]
async fn open_requests_are_bounded_by_agent_and_in_all() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let add = async |id, agent| store.add_request(asked(id, agent), 2, 3).await.unwrap();
    assert_eq!(add(1, "a").await, AddRequestResult::Added);
    assert_eq!(add(2, "a").await, AddRequestResult::Added);
    assert_eq!(add(3, "a").await, AddRequestResult::TooManyOfAgent);
    assert_eq!(add(4, "b").await, AddRequestResult::Added);
    assert_eq!(add(5, "b").await, AddRequestResult::TooMany);
    assert!(store.request(5).unwrap().is_none());
    assert!(approve(&store, 1, 11).await);
    assert_eq!(add(6, "a").await, AddRequestResult::Added, "what is decided does not count");
}

#[tokio::test]
async fn the_agent_gets_its_token_once_and_only_with_its_claim() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, asked(1, "a")).await;
    assert!(!store.claim(1, hash(1), hash(91)).await.unwrap(), "there is no grant yet");
    assert!(approve(&store, 1, 11).await);
    assert!(!store.claim(1, hash(2), hash(92)).await.unwrap(), "a wrong claim");
    assert!(store.claim(1, hash(1), hash(93)).await.unwrap());
    assert!(!store.claim(1, hash(1), hash(94)).await.unwrap(), "once");
    for token in [11, 93] {
        assert_eq!(store.grant_of_token(hash(token)).unwrap().unwrap().id, 11);
    }
    for token in [91, 92, 94] {
        assert_eq!(store.grant_of_token(hash(token)).unwrap(), None);
    }
    add(&store, asked(2, "a")).await;
    assert!(approve(&store, 2, 12).await);
    store.end_grants(vec![12], "REVOKED", 60).await.unwrap();
    assert!(!store.claim(2, hash(2), hash(95)).await.unwrap(), "a grant that has ended needs no token");
}

#[tokio::test]
async fn a_request_goes_the_way_of_its_grant() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, asked(1, "a")).await;
    assert!(approve(&store, 1, 11).await);
    store.activate_grant(11).await.unwrap();
    assert_eq!(state_of(&store, 1), "ACTIVE");
    assert!(store.add_grant(granted(12, Some(11)), hash(12)).await.unwrap());
    store.end_grants(vec![12], "REVOKED", 60).await.unwrap();
    assert_eq!(state_of(&store, 1), "ACTIVE", "a child is not its parent");
    assert_eq!(store.expire_grants(1000).await.unwrap(), [11]);
    assert_eq!(state_of(&store, 1), "EXPIRED");
    store.activate_grant(11).await.unwrap();
    assert_eq!(store.grant(11).unwrap().unwrap().state, "EXPIRED", "an end is the end");
}

#[tokio::test]
async fn ending_a_grant_ends_its_branch_and_no_other() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for (grant, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, Some(1)), (5, None), (6, Some(5))] {
        assert!(store.add_grant(granted(grant, parent), hash(grant)).await.unwrap());
    }
    assert_eq!(store.descendants(2).unwrap(), [2, 3]);
    let mut all = store.descendants(1).unwrap();
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3, 4]);
    assert_eq!(store.live_grants().unwrap(), 6);
    assert_eq!(store.end_grants(vec![3], "EXPIRED", 55).await.unwrap(), [3]);
    let mut ended = store.end_grants(vec![1, 2], "REVOKED", 60).await.unwrap();
    ended.sort_unstable();
    assert_eq!(ended, [1, 2, 4], "not those that had ended");
    assert_eq!(store.grant_of_token(hash(3)).unwrap().unwrap().state, "EXPIRED");
    let revoked = store.grant_of_token(hash(4)).unwrap().unwrap();
    assert_eq!((revoked.state.as_str(), revoked.ended_at_us), ("REVOKED", Some(60)));
    assert!(!store.add_grant(granted(7, Some(4)), hash(7)).await.unwrap(), "nothing grows on what has ended");
    assert_eq!(store.grant_of_token(hash(7)).unwrap(), None);
    let alive = GrantFilter { alive_only: true, limit: 9, ..GrantFilter::default() };
    assert_eq!(store.grants(&alive).unwrap().iter().map(|grant| grant.id).collect::<Vec<_>>(), [6, 5]);
    assert_eq!(store.live_grants().unwrap(), 2);
}

// A-10
#[tokio::test]
async fn an_answer_counts_for_what_was_shown() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.add_confirmation(question(1, 70)).await.unwrap();
    assert!(!store.decide_confirmation(answer(1, 71, true)).await.unwrap(), "something else was shown");
    assert!(store.decide_confirmation(answer(1, 70, true)).await.unwrap());
    assert!(!store.decide_confirmation(answer(1, 70, false)).await.unwrap(), "it is decided");
    assert_eq!(store.use_approval(hash(71), 60).await.unwrap(), None);
    assert_eq!(store.use_approval(hash(70), 60).await.unwrap(), Some(1));
    assert_eq!(store.use_approval(hash(70), 60).await.unwrap(), None, "once");
    let decided = store.confirmation(1).unwrap().unwrap();
    assert_eq!((decided.state.as_str(), decided.decided_by.as_deref()), ("allowed", Some("me")));
    assert_eq!((decided.decided_at_us, decided.reason.as_deref()), (Some(50), Some("because")));
}

#[tokio::test]
async fn a_late_allow_counts_and_a_late_denial_does_not() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.add_confirmation(question(1, 70)).await.unwrap();
    store.add_confirmation(question(2, 70)).await.unwrap();
    assert_eq!(store.expire_confirmations(99).await.unwrap(), [0; 0]);
    assert_eq!(store.end_confirmations(vec![2, 9], "withdrawn", 99).await.unwrap(), [2]);
    assert_eq!(store.expire_confirmations(100).await.unwrap(), [1]);
    assert!(!store.decide_confirmation(answer(1, 70, false)).await.unwrap());
    assert!(!store.decide_confirmation(answer(2, 70, true)).await.unwrap(), "it was withdrawn");
    assert!(store.decide_confirmation(answer(1, 70, true)).await.unwrap());
    assert_eq!(store.use_approval(hash(70), 200).await.unwrap(), Some(1));
    assert_eq!(store.use_approval(hash(70), 200).await.unwrap(), None);
}

#[tokio::test]
async fn an_allow_counts_as_often_and_as_long_as_was_said() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for (id, uses, until_us) in [(1, 2, None), (2, 100, Some(80))] {
        store.add_confirmation(question(id, 70)).await.unwrap();
        assert!(
            store.decide_confirmation(ConfirmationAnswer { uses, until_us, ..answer(id, 70, true) }).await.unwrap()
        );
    }
    assert_eq!(store.use_approval(hash(70), 79).await.unwrap(), Some(2), "what ends first");
    for expected in [Some(1), Some(1), None] {
        assert_eq!(store.use_approval(hash(70), 80).await.unwrap(), expected);
    }
    assert_eq!(store.confirmation(2).unwrap().unwrap().uses_left, 99);
}

#[tokio::test]
async fn a_pin_is_what_was_pinned_last() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let pin = |tool: &str, of| PinRow {
        destination: "fs".to_owned(),
        tool: tool.to_owned(),
        digest: hash(of),
        definition: "{}".to_owned(),
        pinned_at_us: 5,
    };
    for pin in [pin("read", 1), pin("write", 2), pin("read", 3)] {
        store.set_pin(pin).await.unwrap();
    }
    assert_eq!(store.pin("fs", "read").unwrap(), Some(pin("read", 3)));
    assert_eq!(store.pin("fs", "none").unwrap(), None);
    assert_eq!(store.pins().unwrap(), [pin("read", 3), pin("write", 2)]);
}

// A-04
#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    add(&store, asked(1, "a")).await;
    add(&store, asked(2, "b")).await;
    assert!(approve(&store, 1, 11).await);
    assert!(store.add_grant(granted(12, Some(11)), hash(12)).await.unwrap());
    store.end_grants(vec![12], "REVOKED", 60).await.unwrap();
    store.add_confirmation(question(1, 70)).await.unwrap();
    assert!(
        store
            .decide_confirmation(ConfirmationAnswer { uses: 2, until_us: Some(99), ..answer(1, 70, true) })
            .await
            .unwrap()
    );
    let all = |store: &Store| {
        let requests = store.requests(&RequestFilter { limit: 9, ..RequestFilter::default() }).unwrap();
        let grants = store.grants(&GrantFilter { limit: 9, ..GrantFilter::default() }).unwrap();
        let confirmations = store.confirmations(&ConfirmationFilter { limit: 9, ..ConfirmationFilter::default() });
        (requests, grants, confirmations.unwrap(), store.grant_of_token(hash(12)).unwrap())
    };
    let before = all(&store);
    store.close();
    let store = open(&home);
    assert_eq!(all(&store), before);
    assert_eq!((before.0.len(), before.1.len(), before.2.len()), (2, 2, 1));
    assert!(before.3.is_some_and(|grant| grant.state == "REVOKED"));
    assert_eq!(before.0[0], asked(2, "b"), "no field was mixed up");
    let child = GrantRow { state: "REVOKED".to_owned(), ended_at_us: Some(60), ..granted(12, Some(11)) };
    assert_eq!(before.1[0], child);
}

#[tokio::test]
async fn requests_and_grants_are_found_by_what_is_asked() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for (id, agent, at) in [(1, "a", 10), (2, "b", 20), (3, "a", 30)] {
        add(&store, RequestRow { created_at_us: at, ..asked(id, agent) }).await;
    }
    assert!(approve(&store, 1, 11).await);
    let found = |filter: RequestFilter| -> Vec<u128> {
        store.requests(&RequestFilter { limit: 2, ..filter }).unwrap().iter().map(|request| request.id).collect()
    };
    let any = RequestFilter::default;
    assert_eq!(found(any()), [3, 2]);
    assert_eq!(found(RequestFilter { before_us: Some(30), ..any() }), [2, 1]);
    assert_eq!(found(RequestFilter { agent: Some("a".to_owned()), ..any() }), [3, 1]);
    assert_eq!(found(RequestFilter { agent: Some("a".to_owned()), open_only: true, ..any() }), [3]);
    assert_eq!(found(RequestFilter { open_only: true, before_us: Some(30), ..any() }), [2]);
    let of_request = GrantFilter { request: Some(1), limit: 9, ..GrantFilter::default() };
    assert_eq!(store.grants(&of_request).unwrap().len(), 1);
    assert!(store.add_grant(granted(12, Some(11)), hash(12)).await.unwrap());
    let before: Vec<u128> = store.granted_before("a").unwrap().iter().map(|grant| grant.id).collect();
    assert_eq!(before, [11], "what a person granted, not what agents hand on");
}

#[tokio::test]
async fn what_is_over_is_forgotten_in_portions_and_what_lives_is_not() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for id in 1..=4 {
        add(&store, asked(id, "a")).await;
    }
    assert!(approve(&store, 1, 11).await);
    assert!(approve(&store, 2, 12).await);
    assert!(store.add_grant(granted(13, Some(11)), hash(13)).await.unwrap());
    store.end_grants(vec![11], "REVOKED", 60).await.unwrap();
    assert!(store.step_request(3, &OPEN, "DENIED", RequestPatch::default()).await.unwrap());
    for (id, until_us) in [(1, None), (2, Some(5000)), (3, None)] {
        store.add_confirmation(question(id, 70)).await.unwrap();
        if id < 3 {
            assert!(store.decide_confirmation(ConfirmationAnswer { until_us, ..answer(id, 70, true) }).await.unwrap());
        }
    }
    assert_eq!(store.trim_gate(60, 1).await.unwrap(), 0, "nothing ended before");
    let mut rounds = 0;
    while store.trim_gate(500, 1).await.unwrap() > 0 {
        rounds += 1;
    }
    assert!(rounds > 1, "one of each kind at a time");
    assert_eq!(store.grant_of_token(hash(13)).unwrap(), None);
    assert_eq!(store.grant(11).unwrap(), None);
    assert!(store.grant_of_token(hash(12)).unwrap().is_some());
    let kept = store.requests(&RequestFilter { limit: 9, ..RequestFilter::default() }).unwrap();
    assert_eq!(kept.iter().map(|request| request.id).collect::<Vec<_>>(), [4, 2]);
    let kept = store.confirmations(&ConfirmationFilter { limit: 9, ..ConfirmationFilter::default() }).unwrap();
    assert_eq!(kept.iter().map(|confirmation| confirmation.id).collect::<Vec<_>>(), [3, 2]);
}
