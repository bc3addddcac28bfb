//! What a ring that did not ring leaves behind, and how paths and agents are said to be.

use super::*;

/// One that can be reached by these.
fn with(paths: &[WakePath]) -> Desk {
    let mut desk = Desk::new();
    for path in paths {
        desk.bell.open(*path, desk.now);
    }
    desk.hear();
    desk
}

//
#[test]
fn a_ring_that_did_not_ring_spends_nothing_and_the_next_signal_tries_it_again() {
    for path in [WakePath::Opencode, WakePath::CodexAppServer, WakePath::Tmux] {
        for outcome in [BellOutcome::SendFailed, BellOutcome::Uncaptured] {
            let mut desk = with(&[path]);
            assert_eq!(rings(&desk.send(SignalType::Question)), [path]);
            assert_eq!(outcomes(&desk.answer(outcome)), [(path, outcome)], "and nothing else is said of it");
            let said = desk.send(SignalType::Question);
            assert_eq!((rings(&said), outcomes(&said)), (vec![path], vec![]), "{path:?} {outcome:?}");
            assert_eq!(outcomes(&desk.answer(BellOutcome::Rang)), [(path, BellOutcome::Rang)]);
            let said = desk.send(SignalType::Question);
            assert_eq!((rings(&said), outcomes(&said)), (vec![], vec![(path, BellOutcome::Coalesced)]), "M-04");
            assert_eq!(outcomes(&desk.drain(20)), [(path, BellOutcome::Confirmed)]);
        }
    }
}

// the program shows it, and no model was told.
#[test]
fn a_path_that_wakes_is_tried_again_though_a_stream_took_the_bell() {
    let mut desk = Desk::connected();
    desk.bell.open(WakePath::Opencode, desk.now);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode]);
    assert_eq!(rings(&desk.answer(BellOutcome::SendFailed)), [WakePath::Sse]);
    desk.answer(BellOutcome::Rang);
    let said = desk.send(SignalType::Question);
    assert_eq!(
        (rings(&said), outcomes(&said)),
        (vec![WakePath::Opencode], vec![(WakePath::Sse, BellOutcome::Coalesced)])
    );
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.send(SignalType::Question)), [], "now it was told");
}

//
#[test]
fn time_tries_again_what_did_not_ring_and_ever_more_seldom() {
    let mut desk = with(&[WakePath::Opencode]);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::SendFailed);
    let mut waits = Vec::new();
    while let Some(due) = desk.bell.deadline() {
        waits.push(due.since(desk.now).as_secs());
        assert_eq!(rings(&desk.pass(due.since(desk.now))), [WakePath::Opencode]);
        desk.answer(BellOutcome::SendFailed);
    }
    assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640]);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode], "and again with the next signal");
    desk.answer(BellOutcome::SendFailed);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Opencode]);
    desk.answer(BellOutcome::Rang);
    desk.drain(20);
    assert_eq!(desk.bell.deadline(), None);
}

// M-16: that the old stream took it does not tell that anybody has it.
#[test]
fn word_of_a_bell_on_the_old_stream_keeps_none_back_from_the_new() {
    let mut desk = Desk::connected();
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Sse]);
    desk.bell.stream_opened();
    let said = desk.answer(BellOutcome::Rang);
    assert_eq!((rings(&said), outcomes(&said)), (vec![], vec![(WakePath::Sse, BellOutcome::Rang)]));
    assert_eq!(desk.bell.connection(), StreamConnection::Reconciling, "it does not stand in for reading the queue");
    desk.reconcile();
    assert_eq!(rings(&desk.hear()), [WakePath::Sse], "what went down the old one may be lost with it");
    assert_eq!(outcomes(&desk.answer(BellOutcome::Rang)), [(WakePath::Sse, BellOutcome::Rang)]);
    desk.reconcile();
    assert_eq!(rings(&desk.send(SignalType::Question)), [], "M-04: once down each");
    assert_eq!(rings(&desk.pass(3600 * SECOND)), []);
}

// with nobody there, there is no bell that a second signal could be coalesced with.
#[test]
fn nobody_was_told_of_the_second_signal_either() {
    let mut desk = Desk::new();
    for _ in 0..3 {
        assert_eq!(outcomes(&desk.send(SignalType::Question)), [(WakePath::Sse, BellOutcome::Uncaptured)]);
    }
}

// what needs a reply is not forgotten over what does not.
#[test]
fn a_word_does_not_take_the_place_of_a_question_that_nobody_was_told_of() {
    let mut desk = with(&[WakePath::Desktop]);
    desk.send(SignalType::Question);
    let said = desk.send(SignalType::StatusUpdate);
    assert_eq!(outcomes(&said), [(WakePath::Sse, BellOutcome::Uncaptured); 2], "one for each");
    let bell = desk.bell.piggyback(desk.now).unwrap();
    assert_eq!((bell.0.kind, bell.1), (SignalType::Question, 1));
    let mut desk = with(&[WakePath::Desktop]);
    desk.send(SignalType::Question);
    desk.send(SignalType::StatusUpdate);
    assert_eq!(rings(&desk.pass(61 * SECOND)), [WakePath::Desktop], "somebody is told that a reply is wanted");
}

// a screen that a person may look at is no way to the agent.
#[test]
fn what_no_stream_took_is_not_booked_on_the_desktop() {
    let mut desk = with(&[WakePath::Desktop]);
    assert_eq!(outcomes(&desk.send(SignalType::Question)), [(WakePath::Sse, BellOutcome::Uncaptured)]);
    assert_eq!(outcomes(&desk.send(SignalType::PeerJoined)), [(WakePath::Sse, BellOutcome::Filtered)]);
}

//
#[test]
fn a_path_that_fails_is_not_healthy_until_it_rings() {
    let mut desk = with(&[WakePath::Opencode]);
    assert!(desk.bell.is_healthy(WakePath::Opencode) && desk.bell.is_reached());
    desk.send(SignalType::Question);
    assert!(desk.answer(BellOutcome::SendFailed).contains(&DoorbellAction::Support(WakeSupport::Degraded)));
    assert!(!desk.bell.is_healthy(WakePath::Opencode) && !desk.bell.is_reached());
    desk.pass(6 * SECOND);
    assert!(desk.answer(BellOutcome::Rang).contains(&DoorbellAction::Support(WakeSupport::Full)));
}

//
#[test]
fn a_path_whose_bells_go_unheard_is_not_healthy_until_one_is_heard() {
    let mut desk = with(&[WakePath::Opencode, WakePath::Hook]);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.pass(6 * SECOND);
    desk.answer(BellOutcome::Rang);
    desk.pass(53 * SECOND);
    assert!(desk.bell.is_healthy(WakePath::Opencode), "within its window");
    desk.pass(2 * SECOND);
    assert!(!desk.bell.is_healthy(WakePath::Opencode) && desk.bell.is_healthy(WakePath::Hook), "each has its own");
    desk.pass(6 * SECOND);
    assert!(!desk.bell.is_healthy(WakePath::Hook));
    desk.drain(20);
    assert!(!desk.bell.is_healthy(WakePath::Opencode), "that was too late to be its doing");
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.drain(20);
    assert!(desk.bell.is_healthy(WakePath::Opencode) && !desk.bell.is_healthy(WakePath::Hook));
    assert_eq!(desk.bell.support(), WakeSupport::Full);
}

//
#[test]
fn a_path_is_healthy_when_somebody_was_seen_there_and_rung_when_they_are_back() {
    let mut desk = Desk::new();
    desk.bell.attach(WakePath::Opencode);
    assert!(!desk.bell.is_healthy(WakePath::Opencode), "nobody has looked yet");
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode], "but who knows");
    desk.answer(BellOutcome::SendFailed);
    desk.bell.looked(WakePath::Opencode, false, desk.now);
    assert_eq!((rings(&desk.hear()), desk.bell.support()), (vec![], WakeSupport::Degraded));
    desk.bell.looked(WakePath::Opencode, true, desk.now);
    assert_eq!((rings(&desk.hear()), desk.bell.support()), (vec![WakePath::Opencode], WakeSupport::Full));
    desk.answer(BellOutcome::Uncaptured);
    desk.bell.looked(WakePath::Opencode, true, desk.now);
    assert_eq!(rings(&desk.hear()), [], "it was there all along: that is not what is wrong with it");
    assert!(!desk.bell.is_healthy(WakePath::Opencode));
}

#[test]
fn a_screen_that_is_found_disturbs_nobody_before_it_is_time() {
    let mut desk = Desk::new();
    desk.bell.attach(WakePath::Desktop);
    desk.send(SignalType::Question);
    desk.bell.looked(WakePath::Desktop, true, desk.now);
    assert_eq!(rings(&desk.pass(59 * SECOND)), []);
    assert_eq!(rings(&desk.pass(2 * SECOND)), [WakePath::Desktop]);
}

// R-28, M-09
#[test]
fn a_stream_counts_where_the_program_heeds_it_and_other_paths_where_they_are_healthy() {
    let mut desk = Desk::new();
    desk.bell.take_up(BacklogView::default(), None, false, desk.now);
    desk.bell.stream_opened();
    desk.reconcile();
    assert_eq!((desk.bell.support(), desk.bell.is_reached()), (WakeSupport::Degraded, true), "Cursor on stdio");
    desk.bell.open(WakePath::Desktop, desk.now);
    assert_eq!(desk.bell.support(), WakeSupport::Degraded, "a notice wakes a person");
    desk.bell.open(WakePath::Tmux, desk.now);
    assert_eq!(desk.bell.support(), WakeSupport::Full);
}

#[test]
fn a_channel_counts_once_it_was_heard() {
    let mut desk = with(&[WakePath::Channel]);
    assert_eq!(desk.bell.support(), WakeSupport::Degraded);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.drain(20);
    assert_eq!(desk.bell.support(), WakeSupport::Full);
    desk.send(SignalType::Question);
    desk.answer(BellOutcome::Rang);
    desk.pass(61 * SECOND);
    assert_eq!(desk.bell.support(), WakeSupport::Degraded);
}

const HALF_A_DRAFT: fn(WakePath) -> BellOutcome = |path| match path {
    WakePath::Tmux => BellOutcome::Uncaptured,
    _ => BellOutcome::Rang,
};

// Claude Code behind `prism stdio`, and somebody writes in its pane.
#[test]
fn bells_that_could_wake_nobody_keep_none_back_that_can() {
    let mut desk = Desk::on_stdio(&[WakePath::Channel, WakePath::Tmux, WakePath::Desktop]);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Sse]);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(5 * SECOND)), [WakePath::Channel]);
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.pass(5 * SECOND)), [WakePath::Tmux]);
    assert_eq!(outcomes(&desk.answer(BellOutcome::Uncaptured)), [(WakePath::Tmux, BellOutcome::Uncaptured)]);
    assert_eq!(rings(&desk.pass(5 * SECOND)), [WakePath::Tmux], "time tries it again");
    desk.answer(BellOutcome::Uncaptured);
    let said = desk.send(SignalType::Question);
    assert_eq!(
        (rings(&said), outcomes(&said)),
        (vec![WakePath::Tmux], vec![(WakePath::Channel, BellOutcome::Coalesced)])
    );
    let rung = desk.pass_answering(50 * SECOND, HALF_A_DRAFT);
    assert_eq!(rung.last(), Some(&WakePath::Desktop), "{rung:?}");
    assert!(rung[..rung.len() - 1].iter().all(|path| *path == WakePath::Tmux), "{rung:?}");
    assert_eq!(rings(&desk.pass(30 * SECOND)), [WakePath::Tmux], "and it is tried on");
    desk.answer(BellOutcome::Rang);
    assert_eq!(rings(&desk.send(SignalType::Question)), [], "M-04: now it was told");
}

//
#[test]
fn a_person_is_told_where_no_bell_could_wake_the_agent() {
    let mut desk = Desk::on_stdio(&[WakePath::Channel, WakePath::Desktop]);
    desk.send(SignalType::Question);
    assert_eq!(desk.pass_answering(59 * SECOND, |_| BellOutcome::Rang), [WakePath::Channel]);
    assert_eq!(desk.pass_answering(SECOND, |_| BellOutcome::Rang), [WakePath::Desktop]);
    assert_eq!(desk.pass_answering(3600 * SECOND, |_| BellOutcome::Rang), []);
}

// not once, but in each cycle.
#[test]
fn an_agent_that_heard_no_bell_is_still_rung_by_the_path_that_could_wake_it() {
    let mut desk = Desk::on_stdio(&[WakePath::Channel, WakePath::Tmux]);
    for cycle in 0..3 {
        let from = desk.said.len();
        desk.send(SignalType::Question);
        desk.pass_answering(120 * SECOND, |_| BellOutcome::Rang);
        assert_eq!(rings(&desk.said[from..]), [WakePath::Sse, WakePath::Channel, WakePath::Tmux], "cycle {cycle}");
        assert_eq!(desk.bell.support(), WakeSupport::Degraded);
        desk.drain(20);
    }
}

// R-27, M-09: it has let nothing go by that could have woken it.
#[test]
fn an_agent_that_waits_can_be_woken_whatever_went_down_its_stream() {
    let mut desk = Desk::on_stdio(&[]);
    desk.send(SignalType::Question);
    desk.pass_answering(120 * SECOND, |_| BellOutcome::Rang);
    desk.drain(20);
    assert_eq!(desk.bell.wait(desk.now), None);
    assert_eq!(desk.bell.support(), WakeSupport::Full);
}

// as many have rung as may, and it could not be told by the one that is left.
#[test]
fn what_did_not_ring_is_tried_again_however_many_have_rung() {
    let mut desk = with(&[WakePath::CodexAppServer, WakePath::Opencode, WakePath::Tmux, WakePath::Desktop]);
    desk.send(SignalType::Question);
    let rung = desk.pass_answering(120 * SECOND, HALF_A_DRAFT);
    assert!(rung.contains(&WakePath::Desktop), "{rung:?}");
    assert_eq!(desk.bell.support(), WakeSupport::Degraded);
    assert_eq!(desk.pass_answering(600 * SECOND, |_| BellOutcome::Rang), [WakePath::Tmux]);
}

// M-09: an agent that hears nothing is left in peace by what it was not rung by yet.
#[test]
fn of_an_agent_that_hears_nothing_only_so_many_bells_ring_that_could_wake_it() {
    let mut desk = with(&[WakePath::CodexAppServer]);
    desk.send(SignalType::Question);
    desk.pass_answering(120 * SECOND, |_| BellOutcome::Rang);
    desk.drain(20);
    for path in [WakePath::Opencode, WakePath::Tmux, WakePath::Desktop] {
        desk.bell.open(path, desk.now);
    }
    let from = desk.said.len();
    desk.send(SignalType::Question);
    desk.pass_answering(120 * SECOND, |_| BellOutcome::Rang);
    assert_eq!(rings(&desk.said[from..]), [WakePath::CodexAppServer, WakePath::Opencode, WakePath::Desktop]);
}

// a prompt that was sent and not answered in time may have been taken.
#[test]
fn a_bell_that_was_not_answered_is_not_rung_again_by_time() {
    let mut desk = with(&[WakePath::Opencode, WakePath::Hook]);
    assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode]);
    let said = desk.answer(BellOutcome::Unanswered);
    assert_eq!(outcomes(&said), [(WakePath::Opencode, BellOutcome::Unanswered)]);
    assert_eq!(rings(&said), [WakePath::Hook], "who knows: the next is tried at once");
    assert!(!desk.bell.is_healthy(WakePath::Opencode));
    desk.answer(BellOutcome::SendFailed);
    assert_eq!(rings(&desk.pass(6 * SECOND)), [WakePath::Hook]);
    desk.answer(BellOutcome::Uncaptured);
    desk.bell.looked(WakePath::Opencode, false, desk.now);
    desk.bell.looked(WakePath::Opencode, true, desk.now);
    assert_eq!(rings(&desk.hear()), [], "it was slow, and is there again");
    desk.bell.close(WakePath::Hook, desk.now);
    let said = desk.pass(3600 * SECOND);
    assert_eq!((rings(&said), outcomes(&said)), (vec![], vec![]));
}

// nor has it told anybody for sure.
#[test]
fn the_next_signal_rings_where_a_bell_was_not_answered() {
    for paths in [&[WakePath::Opencode][..], &[WakePath::Opencode, WakePath::Sse]] {
        let mut desk = if paths.contains(&WakePath::Sse) { Desk::connected() } else { Desk::new() };
        desk.bell.open(WakePath::Opencode, desk.now);
        assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode]);
        let said = desk.answer(BellOutcome::Unanswered);
        assert_eq!(outcomes(&said), [(WakePath::Opencode, BellOutcome::Unanswered)], "and nothing else is said of it");
        desk.answer(BellOutcome::Rang);
        assert_eq!(rings(&desk.send(SignalType::Question)), [WakePath::Opencode], "{paths:?}");
        desk.answer(BellOutcome::Rang);
        assert_eq!(rings(&desk.send(SignalType::Question)), [], "{paths:?}");
        assert_eq!(outcomes(&desk.drain(20)), [(WakePath::Opencode, BellOutcome::Confirmed)]);
        assert_eq!(desk.bell.support(), WakeSupport::Full);
    }
}
