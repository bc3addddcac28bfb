//! The doorbell's invariants, each by itself. Over random interleavings of everything they are in `lives.rs`.

mod lives;
mod states;

use super::*;
use crate::mesh::SignalType;

const SECOND: Duration = Duration::from_secs(1);

fn lead(seq: i64, kind: SignalType) -> SignalHeader {
    SignalHeader { seq, signal: seq.unsigned_abs().into(), trace: 0, kind, sender: "donna".into() }
}

/// A doorbell with its store: what is undrained, and what has been said.
struct Desk {
    bell: Doorbell,
    now: Time,
    seq: i64,
    undrained: Vec<(i64, SignalType)>,
    said: Vec<DoorbellAction>,
}

impl Desk {
    fn new() -> Self {
        let bell = Doorbell::new(DoorbellTiming::default());
        Self { bell, now: Time(0), seq: 0, undrained: Vec::new(), said: Vec::new() }
    }

    /// One whose stream is open, and quiet.
    fn connected() -> Self {
        let mut desk = Self::new();
        desk.bell.stream_opened();
        desk.reconcile();
        desk.hear();
        desk
    }

    /// One behind `prism stdio`, whose program does not act on what comes down its stream.
    fn on_stdio(paths: &[WakePath]) -> Self {
        let mut desk = Self::new();
        desk.bell.take_up(BacklogView::default(), None, false, desk.now);
        desk.bell.stream_opened();
        desk.reconcile();
        for path in paths {
            desk.bell.open(*path, desk.now);
        }
        desk.hear();
        desk
    }

    fn look(&self) -> BacklogView {
        let ringing = self.undrained.iter().filter(|(_, kind)| kind.rings()).count() as u64;
        BacklogView { ringing, quiet: self.undrained.len() as u64 - ringing, newest: self.seq }
    }

    fn commit(&mut self, kind: SignalType) -> SignalHeader {
        self.seq += 1;
        self.undrained.push((self.seq, kind));
        lead(self.seq, kind)
    }

    fn send(&mut self, kind: SignalType) -> Vec<DoorbellAction> {
        let lead = self.commit(kind);
        self.bell.arrived(lead, self.now);
        self.hear()
    }

    fn drain(&mut self, limit: usize) -> Vec<DoorbellAction> {
        let count = limit.min(self.undrained.len());
        self.undrained.drain(..count);
        self.bell.drained(count as u64, self.look(), self.now);
        self.hear()
    }

    fn reconcile(&mut self) {
        let first = self.undrained.iter().find(|(_, kind)| kind.rings()).map(|(seq, kind)| lead(*seq, *kind));
        self.bell.reconciled(Some(self.look()), first, self.now);
    }

    fn pass(&mut self, time: Duration) -> Vec<DoorbellAction> {
        let until = self.now + time;
        for handled in 0.. {
            let Some(due) = self.bell.deadline().filter(|due| *due <= until) else { break };
            assert!(handled < 1000, "a deadline stays due");
            self.now = self.now.max(due);
            self.bell.handle_deadline(self.now);
        }
        self.now = until;
        self.hear()
    }

    fn hear(&mut self) -> Vec<DoorbellAction> {
        let mut heard = Vec::new();
        while let Some(chime) = self.bell.poll() {
            heard.push(chime);
        }
        self.said.extend(heard.clone());
        heard
    }

    /// The same, with every bell answered at once by what its path makes of it.
    fn pass_answering(&mut self, time: Duration, answer: impl Fn(WakePath) -> BellOutcome) -> Vec<WakePath> {
        let (until, from) = (self.now + time, self.said.len());
        loop {
            while let Some(RingAttempt { path, .. }) = self.ringing() {
                self.answer(answer(path));
            }
            let Some(due) = self.bell.deadline().filter(|due| *due <= until) else { break };
            self.pass(due.since(self.now));
        }
        self.now = until;
        rings(&self.said[from..])
    }

    /// Answers the bell that is being rung, if one is.
    fn answer(&mut self, outcome: BellOutcome) -> Vec<DoorbellAction> {
        if let Some(number) = self.ringing_now() {
            self.bell.rung(number, outcome, self.now);
        }
        self.hear()
    }

    fn ringing_now(&self) -> Option<u64> {
        self.ringing().map(|attempt| attempt.number)
    }

    fn ringing(&self) -> Option<RingAttempt> {
        self.bell.cycle.as_ref()?.attempt.filter(|attempt| !attempt.rang)
    }
}

fn rings(said: &[DoorbellAction]) -> Vec<WakePath> {
    said.iter()
        .filter_map(|chime| if let DoorbellAction::Ring { path, .. } = chime { Some(*path) } else { None })
        .collect()
}

fn outcomes(said: &[DoorbellAction]) -> Vec<(WakePath, BellOutcome)> {
    let outcome = |chime: &DoorbellAction| match chime {
        DoorbellAction::Note { path, outcome, .. } => Some((*path, *outcome)),
        _ => None,
    };
    said.iter().filter_map(outcome).collect()
}

// M-04, M-05, M-07
#[test]
fn one_bell_until_the_drain_and_then_another() {
    let mut desk = Desk::connected();
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Sse]);
    assert_eq!(outcomes(&desk.answer(BellOutcome::Rang)), [(WakePath::Sse, BellOutcome::Rang)]);
    for _ in 0..3 {
        let said = desk.send(SignalType::StatusUpdate);
        assert_eq!((rings(&said), outcomes(&said)), (vec![], vec![(WakePath::Sse, BellOutcome::Coalesced)]));
    }
    assert_eq!(outcomes(&desk.drain(20)), [(WakePath::Sse, BellOutcome::Confirmed)]);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Sse]);
}

// M-05
#[test]
fn a_drain_in_pages_rings_no_more_for_what_is_left() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    for _ in 0..999 {
        desk.send(SignalType::StatusUpdate);
    }
    let mut drained = Vec::new();
    while !desk.undrained.is_empty() {
        drained.extend(desk.drain(20));
    }
    assert_eq!(rings(&desk.said), [WakePath::Sse], "one bell for a thousand");
    assert_eq!(outcomes(&drained), [(WakePath::Sse, BellOutcome::Confirmed)]);
}

// M-06
#[test]
fn system_signals_never_ring() {
    let mut desk = Desk::connected();
    for kind in SignalType::ALL.into_iter().filter(|kind| kind.is_system()) {
        let said = desk.send(kind);
        assert_eq!((rings(&said), outcomes(&said)), (vec![], vec![(WakePath::Sse, BellOutcome::Filtered)]), "{kind:?}");
    }
    assert_eq!(rings(&desk.send(SignalType::Answer)), [WakePath::Sse], "and hide nobody else's bell");
}

// M-07
#[test]
fn with_nobody_there_it_is_uncaptured_and_the_next_result_carries_it() {
    let mut desk = Desk::new();
    let said = desk.send(SignalType::Question);
    assert_eq!(outcomes(&said), [(WakePath::Sse, BellOutcome::Uncaptured)]);
    assert!(said.contains(&DoorbellAction::Piggyback(true)));
    assert!(desk.bell.piggyback(desk.now).is_some());
    assert!(desk.bell.piggyback(desk.now).is_none(), "once");
    let said = desk.hear();
    assert_eq!(outcomes(&said), [(WakePath::Piggyback, BellOutcome::Rang)]);
    assert_eq!(outcomes(&desk.drain(20)), [(WakePath::Piggyback, BellOutcome::Confirmed)]);
}

// M-16
#[test]
fn no_bell_before_the_queue_was_read_and_one_for_the_backlog() {
    let mut desk = Desk::new();
    for _ in 0..5 {
        desk.send(SignalType::Question);
    }
    desk.bell.stream_opened();
    assert_eq!(desk.bell.connection(), StreamConnection::Reconciling);
    assert_eq!(rings(&desk.send(SignalType::Question)), [], "not yet");
    desk.reconcile();
    assert_eq!((rings(&desk.hear()), desk.bell.connection()), (vec![WakePath::Sse], StreamConnection::Connected));
    desk.answer(BellOutcome::Rang);
    assert_eq!(desk.bell.connection(), StreamConnection::Emitting);
    assert_eq!(rings(&desk.send(SignalType::Question)), []);
    assert_eq!(rings(&desk.said), [WakePath::Sse]);
}

#[test]
fn a_queue_that_cannot_be_read_keeps_no_bell_back() {
    let mut desk = Desk::new();
    desk.send(SignalType::Question);
    desk.bell.stream_opened();
    desk.bell.reconciled(None, None, desk.now);
    assert_eq!(rings(&desk.hear()), [WakePath::Sse]);
}

// M-16
#[test]
fn each_forbidden_transition() {
    let mut desk = Desk::new();
    desk.reconcile();
    assert_eq!(desk.bell.connection(), StreamConnection::Disconnected, "nothing to reconcile for");
    desk.bell.rung(1, BellOutcome::Rang, desk.now);
    assert_eq!(desk.bell.connection(), StreamConnection::Disconnected, "a late bell connects nobody");
    desk.bell.stream_opened();
    desk.bell.rung(1, BellOutcome::Rang, desk.now);
    assert_eq!(desk.bell.connection(), StreamConnection::Reconciling, "nor does it reconcile");
    desk.bell.stream_closed(desk.now);
    desk.reconcile();
    assert_eq!(desk.bell.connection(), StreamConnection::Disconnected, "the stream went while the queue was read");
}

// M-09
#[test]
fn support_falls_with_the_stream_and_rises_with_the_next() {
    let mut desk = Desk::connected();
    assert_eq!(desk.bell.support(), WakeSupport::Full);
    desk.bell.stream_closed(desk.now);
    assert!(desk.hear().contains(&DoorbellAction::Support(WakeSupport::Degraded)));
    desk.bell.stream_opened();
    assert_eq!(desk.bell.support(), WakeSupport::Degraded, "not before the queue was read");
    desk.reconcile();
    assert!(desk.hear().contains(&DoorbellAction::Support(WakeSupport::Full)));
}

// M-09
#[test]
fn support_falls_when_no_bell_is_heard_and_rises_with_one_that_is() {
    let mut desk = Desk::connected();
    desk.send(SignalType::StatusUpdate);
    desk.answer(BellOutcome::Rang);
    assert!(!desk.pass(59 * SECOND).contains(&DoorbellAction::Support(WakeSupport::Degraded)));
    assert!(desk.pass(2 * SECOND).contains(&DoorbellAction::Support(WakeSupport::Degraded)));
    desk.drain(20);
    assert_eq!(desk.bell.support(), WakeSupport::Degraded, "it came too late to be the bell's doing");
    desk.send(SignalType::StatusUpdate);
    desk.answer(BellOutcome::Rang);
    assert!(desk.drain(20).contains(&DoorbellAction::Support(WakeSupport::Full)));
}

// M-13
#[test]
fn the_ladder_climbs_until_the_drain() {
    let mut desk = Desk::connected();
    for path in [WakePath::Hook, WakePath::Tmux, WakePath::Channel, WakePath::Desktop, WakePath::Opencode] {
        desk.bell.open(path, desk.now);
    }
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode]);
    assert_eq!(rings(&desk.answer(BellOutcome::SendFailed)), [WakePath::Hook], "at once, where a path failed");
    desk.bell.close(WakePath::Opencode, desk.now);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Sse], "after a while, where it rang and nobody came");
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Channel]);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Tmux]);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(20 * SECOND)), [], "a person is left in peace for the first minute");
    assert_eq!(rings(&desk.pass(23 * SECOND)), [WakePath::Desktop]);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(3600 * SECOND)), [], "each path once");
    desk.drain(20);
    desk.bell.open(WakePath::Opencode, desk.now);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode], "and from the start with the next cycle");
}

#[test]
fn a_person_is_not_disturbed_for_what_needs_no_reply() {
    let mut desk = Desk::new();
    desk.bell.open(WakePath::Desktop, desk.now);
    desk.send(SignalType::StatusUpdate);
    assert_eq!(rings(&desk.pass(3600 * SECOND)), []);
}

#[test]
fn a_path_that_never_says_what_became_of_a_bell_has_failed() {
    let mut desk = Desk::connected();
    desk.bell.open(WakePath::Hook, desk.now);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Hook]);
    let said = desk.pass(11 * SECOND);
    assert_eq!((rings(&said), outcomes(&said)), (vec![WakePath::Sse], vec![(WakePath::Hook, BellOutcome::SendFailed)]));
}

#[test]
fn a_wait_is_answered_by_what_waits_already_and_else_rings() {
    let mut desk = Desk::connected();
    assert_eq!(desk.bell.wait(desk.now), None);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Wait]);
    desk.answer(BellOutcome::Rang);
    desk.bell.close(WakePath::Wait, desk.now);
    assert_eq!(rings(&desk.hear()), [], "the end of the call is the bell");
    assert!(desk.bell.wait(desk.now).is_some(), "asked again, it is told again");
    assert_eq!(outcomes(&desk.drain(20)).last(), Some(&(WakePath::Wait, BellOutcome::Confirmed)));
    assert_eq!(desk.bell.wait(desk.now), None);
}

#[test]
fn a_hook_that_comes_back_without_a_drain_is_not_rung_again() {
    let mut desk = Desk::new();
    desk.bell.open(WakePath::Hook, desk.now);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Hook]);
    desk.answer(BellOutcome::Rang);
    for _ in 0..5 {
        desk.bell.close(WakePath::Hook, desk.now);
        desk.bell.open(WakePath::Hook, desk.now);
    }
    assert_eq!(rings(&desk.hear()), [], "an agent that does not drain must not be woken for ever");
}

#[test]
fn who_looks_in_is_told_once_in_a_cycle() {
    let mut desk = Desk::connected();
    assert_eq!(desk.bell.look_in(WakePath::Hook, desk.now), None);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    assert!(desk.bell.look_in(WakePath::Hook, desk.now).is_some());
    assert_eq!(
        desk.bell.look_in(WakePath::Hook, desk.now),
        None,
        "an agent that does not drain must not be sent on for ever"
    );
    desk.hear();
    assert_eq!(outcomes(&desk.drain(20)), [(WakePath::Hook, BellOutcome::Confirmed)]);
}

#[test]
fn a_hook_ends_with_its_bell_and_that_is_no_reason_to_climb() {
    let mut desk = Desk::connected();
    desk.bell.open(WakePath::Hook, desk.now);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Hook]);
    desk.answer(BellOutcome::Rang);
    desk.bell.close(WakePath::Hook, desk.now);
    assert_eq!(rings(&desk.hear()), []);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Sse]);
}

#[test]
fn a_hook_that_comes_when_a_drain_has_left_something_is_rung() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.send(SignalType::Question);
    desk.drain(1);
    assert_eq!(rings(&desk.hear()), []);
    desk.bell.open(WakePath::Hook, desk.now);
    assert_eq!(rings(&desk.hear()), [WakePath::Hook]);
}

#[test]
fn what_the_model_has_just_been_told_it_is_not_told_with_the_next_result() {
    let mut desk = Desk::new();
    desk.bell.open(WakePath::Hook, desk.now);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    assert_eq!(desk.bell.piggyback(desk.now), None);
    desk.pass(6 * SECOND);
    assert!(desk.bell.piggyback(desk.now).is_some());
}

#[test]
fn nothing_left_to_ring_for_ends_the_cycle() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.undrained.clear();
    desk.bell.gone(1, true, desk.now);
    assert_eq!(desk.bell.outstanding(), None);
    assert_eq!(
        rings(&desk.send(SignalType::Question)),
        [WakePath::Sse],
        "the next one must not be coalesced with nothing"
    );
}

#[test]
fn a_signal_that_comes_behind_a_drains_back_rings() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    // The drain looks, a signal is committed and heard of, and only then is the drain heard of.
    desk.undrained.clear();
    let look = desk.look();
    let late = desk.commit(SignalType::Question);
    desk.bell.arrived(late, desk.now);
    assert_eq!(rings(&desk.hear()), []);
    desk.bell.drained(1, look, desk.now);
    assert_eq!(rings(&desk.hear()), [WakePath::Sse]);
}

#[test]
fn a_drain_that_looked_before_a_cycle_began_does_not_end_it() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.undrained.clear();
    let early = desk.look();
    desk.drain(20);
    desk.answer(BellOutcome::Rang);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.bell.drained(1, early, desk.now);
    assert_eq!(rings(&desk.hear()), [], "it is not rung for twice");
    assert!(desk.bell.outstanding().is_some());
}

#[test]
fn a_drain_may_come_before_the_word_that_its_bell_rang() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    let number = desk.ringing_now().unwrap();
    desk.drain(20);
    desk.bell.rung(number, BellOutcome::Rang, desk.now);
    assert_eq!(outcomes(&desk.hear()), [(WakePath::Sse, BellOutcome::Rang), (WakePath::Sse, BellOutcome::Confirmed)]);
}

#[test]
fn the_next_daemon_rings_once_for_what_the_last_one_left() {
    let mut desk = Desk::new();
    for _ in 0..3 {
        desk.commit(SignalType::Question);
    }
    let first = Some(lead(1, SignalType::Question));
    desk.bell.take_up(desk.look(), first, true, desk.now);
    assert_eq!(rings(&desk.hear()), []);
    desk.bell.stream_opened();
    desk.reconcile();
    assert_eq!(rings(&desk.hear()), [WakePath::Sse]);
}

#[test]
fn what_did_not_leave_rings_again() {
    let mut desk = Desk::connected();
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.drain(20);
    desk.undrained.push((1, SignalType::Question));
    let first = Some(lead(1, SignalType::Question));
    desk.bell.put_back(desk.look(), first, desk.now);
    assert_eq!(rings(&desk.hear()), [WakePath::Sse]);
    assert_eq!(desk.bell.ringing(), 1);
}
