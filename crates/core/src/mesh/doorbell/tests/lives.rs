//! Everything that can happen to a doorbell, in every order, and news of it in the worst.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    /// A signal that is committed now, and heard of with the next `Hear`.
    Commit(usize),
    Hear,
    Drain(usize),
    /// A drain that looks now, and is heard of with the next `Hear`.
    Look(usize),
    Open,
    Reconcile,
    Close,
    Path(usize, bool),
    Answer(BellOutcome),
    Wait,
    Piggyback,
    Recall,
    Restart,
    Pass(u64),
}

/// What comes and goes beside the stream.
const PATHS: [WakePath; 5] = [WakePath::Hook, WakePath::Opencode, WakePath::Tmux, WakePath::Channel, WakePath::Desktop];
/// What becomes of bells: half of them ring.
const ANSWERS: [BellOutcome; 6] = [
    BellOutcome::Rang,
    BellOutcome::Rang,
    BellOutcome::Rang,
    BellOutcome::SendFailed,
    BellOutcome::Uncaptured,
    BellOutcome::Unanswered,
];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..SignalType::ALL.len()).prop_map(Step::Send),
        2 => (0..SignalType::ALL.len()).prop_map(Step::Commit),
        2 => Just(Step::Hear),
        3 => (1..5usize).prop_map(Step::Drain),
        2 => (1..5usize).prop_map(Step::Look),
        2 => Just(Step::Open),
        3 => Just(Step::Reconcile),
        1 => Just(Step::Close),
        3 => (0..PATHS.len(), any::<bool>()).prop_map(|(path, up)| Step::Path(path, up)),
        4 => prop::sample::select(ANSWERS.to_vec()).prop_map(Step::Answer),
        1 => Just(Step::Wait),
        1 => Just(Step::Piggyback),
        1 => Just(Step::Recall),
        1 => Just(Step::Restart),
        2 => (1..90u64).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..120)
}

/// What has been committed and is not heard of yet.
enum News {
    Arrived(SignalHeader),
    Drained(u64, BacklogView),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // M-04 … M-07, M-16; R-27: of agents on stdio, too, whose programs do not act on what comes down their streams.
    #[test]
    fn whatever_happens_the_invariants_hold(steps in steps(), heeds_stream in any::<bool>()) {
        let mut desk = Desk::new();
        desk.bell.take_up(BacklogView::default(), None, heeds_stream, desk.now);
        let mut news: Vec<News> = Vec::new();
        // Bells by path since the cycle could last have begun.
        let mut since_drain: std::collections::HashMap<WakePath, u32> = std::collections::HashMap::new();
        // The last bell that was sent before the stream that is open now.
        let mut before_stream = 0;
        let mut arrivals = 0;
        for step in steps {
            let connection = desk.bell.connection();
            match step {
                Step::Send(kind) => {
                    let kind = SignalType::ALL[kind];
                    let wakes = |cycle: &Cycle| cycle.wakes(|path| desk.bell.can_wake(path));
                    let was_out = desk.bell.cycle.as_ref().is_some_and(|cycle| cycle.is_told() && wakes(cycle));
                    let said = desk.send(kind);
                    arrivals += 1;
                    // Each arrival has exactly one outcome, or a bell of which there will be one.
                    let told = outcomes(&said).len() + rings(&said).len();
                    prop_assert!(told >= 1, "{kind:?}: {said:?}");
                    if kind.is_system() {
                        prop_assert_eq!(rings(&said), vec![]);
                    } else if was_out {
                        prop_assert_eq!(rings(&said), vec![], "coalesced");
                    }
                }
                Step::Commit(kind) => {
                    let lead = desk.commit(SignalType::ALL[kind]);
                    arrivals += 1;
                    news.push(News::Arrived(lead));
                }
                Step::Look(limit) => {
                    let count = limit.min(desk.undrained.len());
                    desk.undrained.drain(..count);
                    news.push(News::Drained(count as u64, desk.look()));
                }
                // In the order that is the hardest: the last first.
                Step::Hear => {
                    while let Some(one) = news.pop() {
                        match one {
                            News::Arrived(lead) => desk.bell.arrived(lead, desk.now),
                            News::Drained(count, look) => {
                                desk.bell.drained(count, look, desk.now);
                                if count > 0 {
                                    since_drain.clear();
                                }
                            }
                        }
                    }
                    since_drain.clear();
                }
                Step::Drain(limit) => {
                    let some = !desk.undrained.is_empty();
                    let said = desk.drain(limit);
                    if some {
                        since_drain.clear();
                    }
                    prop_assert!(rings(&said).len() <= 1);
                }
                Step::Open => {
                    desk.bell.stream_opened();
                    since_drain.remove(&WakePath::Sse);
                    before_stream = desk.bell.attempts;
                }
                Step::Reconcile => desk.reconcile(),
                Step::Close => desk.bell.stream_closed(desk.now),
                Step::Path(path, up) => {
                    let path = PATHS[path];
                    if up { desk.bell.open(path, desk.now) } else { desk.bell.close(path, desk.now) }
                    prop_assert_eq!(desk.bell.is_healthy(path), up);
                }
                Step::Answer(outcome) => {
                    // Word of a bell that went down an old stream says nothing of the new one.
                    let rang = outcome == BellOutcome::Rang;
                    let counts = |bell: &RingAttempt| rang && (bell.path != WakePath::Sse || bell.number > before_stream);
                    if let Some(RingAttempt { path, .. }) = desk.ringing().filter(counts) {
                        let count = since_drain.entry(path).or_default();
                        *count += 1;
                        prop_assert!(*count <= 1, "{path:?} rang twice in a cycle");
                    }
                    desk.answer(outcome);
                }
                Step::Wait => {
                    let told = desk.bell.wait(desk.now);
                    let known = desk.bell.newest.is_some() || desk.bell.cycle.is_some();
                    prop_assert_eq!(told.is_some(), desk.bell.ringing() > 0 && known);
                }
                Step::Piggyback => drop(desk.bell.piggyback(desk.now)),
                Step::Recall => {
                    if let Some((seq, kind)) = desk.undrained.pop() {
                        desk.bell.gone(seq, kind.rings(), desk.now);
                        // What is recalled before it is heard of never comes.
                        news.retain(|one| !matches!(one, News::Arrived(lead) if lead.seq == seq));
                    }
                }
                Step::Restart => {
                    let first = desk.undrained.iter().find(|(_, kind)| kind.rings());
                    let first = first.map(|(seq, kind)| lead(*seq, *kind));
                    let mut next = Doorbell::new(DoorbellTiming::default());
                    next.take_up(desk.look(), first, heeds_stream, desk.now);
                    desk.bell = next;
                    news.clear();
                    since_drain.clear();
                    before_stream = 0;
                }
                Step::Pass(seconds) => drop(desk.pass(Duration::from_secs(seconds))),
            }
            let from = desk.said.len();
            desk.hear();
            for chime in &desk.said[from..] {
                if let DoorbellAction::Ring { path, lead, .. } = chime {
                    prop_assert!(lead.kind.rings(), "system signals never ring");
                    prop_assert!(
                        *path != WakePath::Sse || connection != StreamConnection::Disconnected || desk.bell.connection() != StreamConnection::Reconciling,
                        "no bell before the queue was read"
                    );
                }
            }
            if desk.bell.cycle.is_none() {
                since_drain.clear();
            }
        }
        // When all is heard of, and what waits can be reached, somebody has been told.
        while let Some(one) = news.pop() {
            match one {
                News::Arrived(lead) => desk.bell.arrived(lead, desk.now),
                News::Drained(count, look) => desk.bell.drained(count, look, desk.now),
            }
        }
        desk.bell.stream_opened();
        desk.reconcile();
        desk.hear();
        prop_assert_eq!(desk.bell.pending(), desk.undrained.len() as u64);
        if desk.look().ringing > 0 {
            prop_assert!(desk.bell.cycle.is_some());
            prop_assert!(desk.ringing_now().is_some() || desk.bell.outstanding().is_some(), "nobody was told");
        } else {
            prop_assert!(desk.bell.cycle.is_none());
        }
        prop_assert!(arrivals >= desk.undrained.len());
        // when every bell is taken from now on, one has rung in the end that can wake the agent, if there is a way to;
        // and the person was told, if they are to be.
        for _ in 0..2 {
            desk.send(SignalType::Question);
            desk.pass_answering(120 * SECOND, |_| BellOutcome::Rang);
        }
        let cycle = desk.bell.cycle.as_ref().unwrap();
        let can_wake = |path: &WakePath| desk.bell.is_open(*path) && desk.bell.can_wake(*path);
        let rang = |path: &WakePath| cycle.rung.has(*path) && !cycle.unanswered.has(*path) && desk.bell.can_wake(*path);
        let reached = !WakePath::ALL.iter().any(can_wake) || WakePath::ALL.iter().any(rang);
        prop_assert!(reached, "no bell that could wake it: {:?}", cycle);
        let is_asked = cycle.lead.kind.duty() == Some(SignalDuty::Reply) && desk.bell.is_open(WakePath::Desktop);
        let told = cycle.rung.has(WakePath::Desktop) || cycle.missed.has(WakePath::Desktop);
        prop_assert!(!is_asked || told, "nobody was told: {:?}", cycle);
    }
}
