//! The mesh on real files.

mod model;

use tempfile::TempDir;

use super::*;
use crate::Store;

fn open(home: &TempDir) -> Store {
    Store::open(&home.path().join("prism.db")).unwrap()
}

fn new(id: u128, recipient: &str) -> NewSignal {
    NewSignal {
        id,
        trace: id + 1000,
        kind: "Question".to_owned(),
        sender: "x".to_owned(),
        recipient: recipient.to_owned(),
        body: format!("body {id}"),
        reply_to: None,
        sent_at_us: 1,
        expires_at_us: None,
        rings: true,
        obligation: None,
        closes: None,
        max_pending: 1000,
    }
}

fn owed(signal: NewSignal, ends_on_drain: bool) -> NewSignal {
    let obligation = ObligationRow {
        signal: signal.id,
        trace: signal.trace,
        kind: signal.kind.clone(),
        debtor: signal.recipient.clone(),
        creditor: signal.sender.clone(),
        state: "open".to_owned(),
        action_required: !ends_on_drain,
        reply_required: !ends_on_drain,
        ends_on_drain,
        opened_at_us: signal.sent_at_us,
        due_at_us: Some(signal.sent_at_us + 100),
        heard_at_us: None,
        closed_at_us: None,
        closed_by: None,
        bucket: "full".to_owned(),
        overdue_at_us: None,
        escalated_at_us: None,
        wake_attempt_count: 0,
        wake_ring_count: 0,
        last_wake_at_us: None,
        last_wake_path: None,
        last_wake_result: None,
        closed_why: None,
    };
    NewSignal { obligation: Some(obligation), ..signal }
}

fn drain(agent: &str, after: Option<i64>, limit: u32) -> DrainRequest {
    DrainRequest { agent: agent.to_owned(), after, limit, max_bytes: 1 << 20, at_us: 10 }
}

async fn send(store: &Store, signal: NewSignal) -> SendResult {
    store.send_signals(vec![signal]).await.unwrap()[0]
}

async fn page(store: &Store, what: DrainRequest) -> DrainPage {
    match store.drain(what).await.unwrap() {
        DrainResult::Page(page) => page,
        wrong => panic!("{wrong:?}"),
    }
}

async fn settle(store: &Store, agent: &str, up_to: i64) {
    let settled = vec![(agent.to_owned(), up_to)];
    store.note(MeshNotes { settled, ..MeshNotes::default() }).await.unwrap();
}

fn seqs(page: &DrainPage) -> Vec<i64> {
    page.signals.iter().map(|signal| signal.seq).collect()
}

fn state(store: &Store, signal: u128) -> String {
    let all = store.obligations(&ObligationFilter { limit: 1000, ..ObligationFilter::default() }).unwrap();
    all.into_iter().find(|obligation| obligation.signal == signal).unwrap().state
}

// M-12
#[tokio::test]
async fn a_repeat_gets_what_the_first_got_and_changes_nothing() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let first = owed(new(1, "a"), false);
    assert_eq!(send(&store, first.clone()).await, SendResult::Accepted { seq: 1 });
    // Without an answer its sender does not know the trace, and it is later.
    let repeat = NewSignal { trace: 7, sent_at_us: 9, expires_at_us: Some(50), max_pending: 1, ..first.clone() };
    let again = SendResult::Again { seq: 1, trace: 1001 };
    assert_eq!(store.send_signals(vec![repeat.clone(), repeat.clone()]).await.unwrap(), [again, again]);
    assert_eq!(seqs(&page(&store, drain("a", None, 9)).await), [1]);
    assert_eq!(send(&store, repeat).await, again, "it is drained, and not sent once more");
    for other in [
        NewSignal { body: String::new(), ..first.clone() },
        NewSignal { sender: "y".to_owned(), ..first.clone() },
        NewSignal { recipient: "b".to_owned(), ..first.clone() },
        NewSignal { kind: "Answer".to_owned(), ..first.clone() },
        NewSignal { reply_to: Some(3), ..first },
    ] {
        assert_eq!(send(&store, other).await, SendResult::Conflict);
    }
    assert_eq!(store.history(&HistoryQuery { limit: 9, ..HistoryQuery::default() }).unwrap().len(), 1);
}

#[tokio::test]
async fn a_full_mailbox_refuses_what_rings_and_drops_the_oldest_of_what_does_not() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let ringing = |id| NewSignal { max_pending: 2, ..new(id, "a") };
    let silent = |id| NewSignal { max_pending: 2, rings: false, ..new(id, "a") };
    let sent = store.send_signals(vec![silent(1), ringing(2), silent(3), ringing(4), ringing(5), silent(6)]).await;
    let accepted = |seq| SendResult::Accepted { seq };
    let all = [accepted(1), accepted(2), accepted(3), accepted(4), SendResult::Full { pending: 2 }, accepted(5)];
    assert_eq!(sent.unwrap(), all);
    assert_eq!(store.signal(1).unwrap().unwrap().expired_at_us, Some(1));
    let given = page(&store, drain("a", None, 9)).await;
    assert_eq!(seqs(&given), [2, 3, 4, 5]);
    assert_eq!((given.left, given.left_ringing), (0, 0));
    assert_eq!(send(&store, ringing(5)).await, accepted(6));
}

#[tokio::test]
async fn a_page_ends_at_its_limit_or_before_its_bytes_but_has_one() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let sized = |id, size| NewSignal { body: "x".repeat(size), ..new(id, "a") };
    store.send_signals(vec![sized(1, 50), sized(2, 5), sized(3, 5), sized(4, 1), sized(5, 0)]).await.unwrap();
    let small = DrainRequest { max_bytes: 10, ..drain("a", None, 3) };
    let first = page(&store, small.clone()).await;
    assert_eq!((seqs(&first), first.left, first.left_ringing, first.more), (vec![1], 4, 4, true));
    let second = page(&store, small.clone()).await;
    assert_eq!((seqs(&second), second.left, second.more), (vec![2, 3], 2, true));
    let third = page(&store, small).await;
    assert_eq!((seqs(&third), third.left, third.more, third.newest), (vec![4, 5], 0, false, 5));
}

#[tokio::test]
async fn a_cursor_is_held_against_what_there_is() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    assert_eq!(store.drain(drain("a", Some(1), 9)).await.unwrap(), DrainResult::CursorAhead { newest: 0 });
    store.send_signals((1..=5).map(|id| new(id, "a")).collect()).await.unwrap();
    assert_eq!(store.drain(drain("a", Some(6), 9)).await.unwrap(), DrainResult::CursorAhead { newest: 5 });
    assert_eq!(store.peek(&drain("a", Some(6), 9)).unwrap(), DrainResult::CursorAhead { newest: 5 });
    page(&store, drain("a", Some(0), 4)).await;
    settle(&store, "a", 4).await;
    let trim = HistoryTrim { keep_per_agent: Some(1), limit: 9, ..HistoryTrim::default() };
    assert_eq!(store.trim_history(trim).await.unwrap(), 3);
    assert_eq!(store.drain(drain("a", Some(2), 9)).await.unwrap(), DrainResult::CursorExpired { oldest: 3 });
    assert_eq!(store.peek(&drain("a", Some(2), 9)).unwrap(), DrainResult::CursorExpired { oldest: 3 });
    let rest = page(&store, drain("a", Some(3), 9)).await;
    assert_eq!(seqs(&rest), [4, 5]);
    assert_eq!(rest.signals.iter().map(|signal| signal.redelivered).collect::<Vec<_>>(), [true, false]);
    // The newest goes, and its number does not come again.
    settle(&store, "a", 5).await;
    let trim = HistoryTrim { before_us: Some(2), limit: 9, ..HistoryTrim::default() };
    assert_eq!(store.trim_history(trim).await.unwrap(), 2);
    drop(store);
    assert_eq!(send(&open(&home), new(9, "a")).await, SendResult::Accepted { seq: 6 });
}

#[tokio::test]
async fn a_cursor_of_somebody_else_swallows_nothing() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.send_signals(vec![new(1, "a"), new(2, "b"), new(3, "a"), new(4, "b")]).await.unwrap();
    let DrainResult::Page(peeked) = store.peek(&drain("a", Some(4), 9)).unwrap() else { panic!("it is right") };
    assert_eq!(seqs(&peeked), [1, 3]);
    assert_eq!(seqs(&page(&store, drain("a", Some(4), 9)).await), [1, 3]);
    assert_eq!(seqs(&page(&store, drain("a", Some(4), 9)).await), [0; 0]);
}

#[tokio::test]
async fn what_was_given_in_time_is_given_again_later_to_who_has_not_received_it() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let dying = |id| NewSignal { expires_at_us: Some(15), ..new(id, "a") };
    store.send_signals(vec![dying(1), dying(2)]).await.unwrap();
    assert_eq!(seqs(&page(&store, drain("a", Some(0), 1)).await), [1]);
    let late = DrainRequest { at_us: 15, ..drain("a", Some(0), 9) };
    let again = page(&store, late.clone()).await;
    assert_eq!((seqs(&again), again.signals[0].redelivered, again.left), (vec![1], true, 0));
    assert_eq!(store.expire(15, 9).await.unwrap().iter().map(|signal| signal.id).collect::<Vec<_>>(), [2]);
    assert_eq!(seqs(&page(&store, late).await), [1]);
}

// M-10
#[tokio::test]
async fn obligations_follow_their_signals() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let dead = NewSignal { expires_at_us: Some(5), ..owed(new(4, "a"), false) };
    let all = vec![owed(new(1, "a"), false), owed(new(2, "a"), true), owed(new(3, "a"), false), dead];
    store.send_signals(all).await.unwrap();
    assert_eq!(store.recall(3, "a", 4).await.unwrap(), RecallResult::NotYours);
    let done = RecallResult::Done { seq: 3, recipient: "a".to_owned(), rings: true };
    assert_eq!(store.recall(3, "x", 4).await.unwrap(), done);
    assert_eq!(store.recall(3, "x", 4).await.unwrap(), RecallResult::AlreadyGone);
    assert_eq!(store.recall(4, "x", 5).await.unwrap(), RecallResult::AlreadyGone, "nobody will be given it");
    assert_eq!(store.recall(5, "x", 5).await.unwrap(), RecallResult::Unknown);
    let heard = page(&store, drain("a", None, 9)).await;
    assert_eq!((seqs(&heard), heard.left, heard.closed, heard.heard), (vec![1, 2], 0, vec![2], vec![1]));
    assert_eq!(store.recall(1, "x", 11).await.unwrap(), RecallResult::AlreadyDrained);
    assert_eq!(store.expire(4, 9).await.unwrap(), []);
    assert_eq!(
        store.expire(5, 9).await.unwrap(),
        [ExpiredSignal { seq: 4, id: 4, recipient: "a".to_owned(), rings: true }]
    );
    assert_eq!([1, 2, 3, 4].map(|id| state(&store, id)), ["heard", "done", "recalled", "expired"]);
    assert_eq!(store.open_obligations().unwrap().len(), 1);
    let reply = NewSignal { sender: "a".to_owned(), closes: Some(1), sent_at_us: 20, ..new(6, "x") };
    send(&store, reply).await;
    let mine = ObligationFilter { debtor: Some("a".to_owned()), limit: 9, ..ObligationFilter::default() };
    let closed = store.obligations(&mine).unwrap();
    let first = closed.last().unwrap();
    assert_eq!((first.heard_at_us, first.closed_at_us, first.closed_by), (Some(10), Some(20), Some(6)));
    assert_eq!(store.open_obligations().unwrap(), []);
}

// M-12
#[tokio::test]
async fn what_may_not_have_arrived_is_owed_again_unless_it_was_replied_to() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.send_signals((1..=4).map(|id| owed(new(id, "a"), id == 2)).collect()).await.unwrap();
    page(&store, drain("a", None, 3)).await;
    send(&store, NewSignal { sender: "a".to_owned(), closes: Some(1), ..new(6, "x") }).await;
    drop(store);
    let store = open(&home);
    assert_eq!(store.unsettle_all().await.unwrap(), 2);
    assert_eq!(store.unsettle_all().await.unwrap(), 0);
    assert_eq!([1, 2, 3, 4].map(|id| state(&store, id)), ["done", "open", "open", "open"]);
    assert_eq!(store.recall(2, "x", 11).await.unwrap(), RecallResult::AlreadyDrained, "it may have been read");
    // Its client says that the second had arrived.
    let rest = page(&store, drain("a", Some(2), 9)).await;
    let redelivered: Vec<_> = rest.signals.iter().map(|signal| (signal.seq, signal.redelivered)).collect();
    assert_eq!((redelivered, rest.closed, rest.heard), (vec![(3, true), (4, false)], vec![2], vec![3, 4]));
    assert_eq!(store.pending_counts().unwrap().len(), 1, "only the reply waits");
}

// M-08
#[tokio::test]
async fn wakes_are_counted_and_times_noted_once() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.send_signals(vec![owed(new(1, "a"), false), owed(new(2, "b"), false)]).await.unwrap();
    let note = |rings_added, at_us, result: &str| WakeNote {
        signal: 1,
        attempts_added: 1,
        rings_added,
        at_us,
        path: "sse".to_owned(),
        result: result.to_owned(),
    };
    let notes = MeshNotes {
        wakes: vec![note(1, 5, "rang"), note(0, 6, "send-failed")],
        overdue: vec![(1, 7), (1, 8)],
        escalated: vec![(1, 9)],
        buckets: vec![("a".to_owned(), "degraded".to_owned())],
        ..MeshNotes::default()
    };
    store.note(notes).await.unwrap();
    let [first, second] = store.open_obligations().unwrap().try_into().unwrap();
    let expected = ObligationRow {
        wake_attempt_count: 2,
        wake_ring_count: 1,
        last_wake_at_us: Some(6),
        last_wake_path: Some("sse".to_owned()),
        last_wake_result: Some("send-failed".to_owned()),
        overdue_at_us: Some(7),
        escalated_at_us: Some(9),
        bucket: "degraded".to_owned(),
        ..owed(new(1, "a"), false).obligation.unwrap()
    };
    assert_eq!(first, expected);
    assert_eq!(second, owed(new(2, "b"), false).obligation.unwrap());
    let of = |debtor: Option<&str>, creditor: Option<&str>, state: Option<&str>| {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let filter = ObligationFilter {
            debtor: own(debtor),
            creditor: own(creditor),
            state: own(state),
            limit: 9,
            is_open: false,
        };
        store.obligations(&filter).unwrap().iter().map(|obligation| obligation.signal).collect::<Vec<_>>()
    };
    assert_eq!(of(None, None, None), [2, 1]);
    assert_eq!(of(Some("a"), Some("x"), Some("open")), [1]);
    assert_eq!(of(None, Some("x"), None), [2, 1]);
    assert_eq!(of(Some("a"), None, Some("done")), [0; 0]);
}

#[tokio::test]
async fn the_history_is_of_who_sent_and_who_received() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let from = |sender: &str, id, recipient| NewSignal { sender: sender.to_owned(), ..new(id, recipient) };
    store.send_signals(vec![from("a", 1, "b"), from("b", 2, "a"), from("b", 3, "c"), from("a", 4, "a")]).await.unwrap();
    let part = |agent: Option<&str>, before, limit| {
        let history = HistoryQuery { agent: agent.map(str::to_owned), before, limit };
        store.history(&history).unwrap().iter().map(|signal| signal.seq).collect::<Vec<_>>()
    };
    assert_eq!(part(Some("a"), None, 9), [4, 2, 1]);
    assert_eq!(part(Some("a"), Some(4), 1), [2]);
    assert_eq!(part(None, None, 3), [4, 3, 2]);
    assert_eq!(part(Some("nobody"), None, 9), [0; 0]);
}

fn agent(name: &str) -> AgentRow {
    AgentRow {
        name: name.to_owned(),
        session: 1,
        surface: "cursor".to_owned(),
        workspace: "/w".to_owned(),
        transport: "http".to_owned(),
        surface_session: Some("s".to_owned()),
        facts: "{}".to_owned(),
        mcp_session: Some(u128::MAX),
        instance: None,
        started_at_us: 1,
        seen_at_us: 1,
        wrapped_at_us: None,
    }
}

// M-01
#[tokio::test]
async fn an_agent_is_found_again_with_its_newest_session() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.save_agent(agent("a")).await.unwrap();
    let newer = AgentRow { session: 2, seen_at_us: 5, wrapped_at_us: Some(5), ..agent("a") };
    store.save_agent(newer.clone()).await.unwrap();
    store.touch_agents(vec![("a".to_owned(), 9), ("a".to_owned(), 7), ("nobody".to_owned(), 9)]).await.unwrap();
    drop(store);
    assert_eq!(open(&home).agents().unwrap(), [AgentRow { seen_at_us: 9, ..newer }]);
}

#[tokio::test]
async fn an_agent_is_forgotten_when_it_was_not_seen_for_long_and_nothing_is_open_with_it() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for name in ["gone", "owes", "owed-to", "pending"] {
        store.save_agent(agent(name)).await.unwrap();
    }
    store.save_agent(AgentRow { seen_at_us: 9, ..agent("there") }).await.unwrap();
    store.send_signals(vec![owed(new(1, "owes"), false), new(2, "pending")]).await.unwrap();
    page(&store, drain("owes", None, 9)).await;
    assert_eq!(store.forget_agents(1).await.unwrap(), [""; 0], "it was seen then");
    let mut gone = store.forget_agents(5).await.unwrap();
    gone.sort();
    assert_eq!(gone, ["gone", "owed-to"]);
    let left: Vec<String> = store.agents().unwrap().into_iter().map(|agent| agent.name).collect();
    assert_eq!(left, ["owes", "pending", "there"]);
}

// M-10
#[tokio::test]
async fn what_is_open_is_found_however_much_is_over() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    store.send_signals((1..=9).map(|id| owed(new(id, "a"), id > 1)).collect()).await.unwrap();
    page(&store, drain("a", None, 9)).await;
    let few = ObligationFilter { debtor: Some("a".to_owned()), limit: 3, ..ObligationFilter::default() };
    let signals = |filter: &ObligationFilter| {
        store.obligations(filter).unwrap().iter().map(|obligation| obligation.signal).collect::<Vec<_>>()
    };
    assert_eq!(signals(&few), [9, 8, 7]);
    assert_eq!(signals(&ObligationFilter { is_open: true, ..few }), [1]);
}

// M-07
#[tokio::test]
async fn of_the_bells_the_newest_are_kept() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let bell = |at_us: i64| BellRow {
        at_us,
        agent: if at_us % 2 == 0 { "even".to_owned() } else { "odd".to_owned() },
        session: 3,
        path: "sse".to_owned(),
        result: "rang".to_owned(),
        signal: Some(4),
        kind: "Question".to_owned(),
        trace: None,
        millis: Some(5),
    };
    for start in (0..12_000).step_by(1000) {
        let bells = (start..start + 1000).map(bell).collect();
        store.note(MeshNotes { bells, ..MeshNotes::default() }).await.unwrap();
    }
    assert_eq!(store.bells(Some("odd"), 2).unwrap(), [bell(11_999), bell(11_997)]);
    assert_eq!(store.bells(None, 1).unwrap(), [bell(11_999)]);
    let kept = store.bells(None, 20_000).unwrap();
    assert_eq!((kept.len(), kept.last().unwrap().at_us), (10_000, 2000));
}

#[tokio::test]
async fn reading_leaves_no_file_behind_and_goes_on_after_the_end() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    send(&store, new(1, "a")).await;
    assert!(store.signal(1).unwrap().is_some());
    store.close();
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
    assert!(store.signal(1).unwrap().is_some());
}

// M-12
#[tokio::test]
async fn what_did_not_leave_waits_again_with_what_was_owed_for_it() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    let all = vec![owed(new(1, "a"), true), owed(new(2, "a"), false), owed(new(3, "a"), true), owed(new(4, "b"), true)];
    store.send_signals(all).await.unwrap();
    page(&store, drain("b", None, 9)).await;
    page(&store, drain("a", None, 2)).await;
    page(&store, drain("a", None, 2)).await;
    assert_eq!(store.put_back("a", 1, 2).await.unwrap(), 2);
    let pending = store.pending_of("a").unwrap();
    assert_eq!((pending.pending, pending.ringing, pending.newest), (2, 2, 4));
    assert_eq!(pending.first_ringing.map(|first| first.seq), Some(1));
    assert_eq!([1, 2, 3].map(|id| state(&store, id)), ["open", "open", "done"]);
    let again = page(&store, drain("a", None, 9)).await;
    assert_eq!(seqs(&again), [1, 2]);
    assert!(again.signals.iter().all(|signal| signal.redelivered));
    assert_eq!(store.put_back("b", 1, 3).await.unwrap(), 0, "those of others are none of its business");
}

//
#[tokio::test]
async fn what_is_owed_is_waived_once_and_by_nobody_else() {
    let home = TempDir::new().unwrap();
    let store = open(&home);
    for id in 1..=3 {
        send(&store, owed(new(id, "a"), false)).await;
    }
    assert_eq!(store.waive(1, Some("other"), "why", 5).await.unwrap(), WaiveResult::NotYours);
    assert_eq!(store.waive(9, None, "why", 5).await.unwrap(), WaiveResult::Unknown);
    for (id, by) in [(1, Some("a")), (2, Some("x")), (3, None)] {
        let done = WaiveResult::Done { debtor: "a".to_owned(), creditor: "x".to_owned() };
        assert_eq!(store.waive(id, by, "why", 5).await.unwrap(), done);
        assert_eq!(store.waive(id, by, "why", 6).await.unwrap(), WaiveResult::AlreadyClosed);
    }
    assert_eq!(store.open_obligations().unwrap(), []);
    let filter = ObligationFilter { state: Some("waived".to_owned()), limit: 9, ..ObligationFilter::default() };
    let waived = store.obligations(&filter).unwrap();
    assert_eq!(waived.len(), 3);
    assert!(waived.iter().all(|one| one.closed_at_us == Some(5) && one.closed_why.as_deref() == Some("why")));
}
