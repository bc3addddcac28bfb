//! The mesh as a whole: agents, what they owe, who is there. Doorbells have tests of their own.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

struct Room {
    mesh: MeshMachine,
    now: Time,
    seq: i64,
}

impl Room {
    /// One with agents of these names.
    fn of(names: &[&str]) -> Self {
        let mut room = Self { mesh: MeshMachine::new(DoorbellTiming::default()), now: Time(1_000_000), seq: 0 };
        for (session, name) in (1..).zip(names) {
            room.start(name, session);
        }
        room.actions();
        room
    }

    fn start(&mut self, agent: &str, session: u128) -> Option<Window> {
        let window = Window {
            session,
            surface: "cursor".into(),
            workspace: None,
            transport: "http".into(),
            heeds_stream: true,
            surface_session: None,
            started: self.now,
            seen: self.now,
            wrapped: None,
            left: false,
        };
        self.mesh.start(
            &agent.into(),
            window,
            BacklogView { newest: self.seq, ..BacklogView::default() },
            None,
            self.now,
        )
    }

    fn connect(&mut self, agent: &str) {
        let ringing = self.mesh.bell(agent).map_or(0, Doorbell::ringing);
        let (agent, look) = (agent.into(), BacklogView { newest: self.seq, ringing, quiet: 0 });
        self.mesh.stream_opened(&agent, self.now);
        self.mesh.reconciled(&agent, Some(look), None, self.now);
    }

    fn send(&mut self, kind: SignalType, from: &str, to: &str) -> u128 {
        self.seq += 1;
        let signal = self.seq.unsigned_abs().into();
        let support = self.mesh.support(to);
        let owed = Obligation::of(kind, (signal, 0), [from, to], support, self.now, &ObligationTerms::default());
        let lead = SignalHeader { seq: self.seq, signal, trace: 0, kind, sender: from.into() };
        self.mesh.arrived(&to.into(), lead, owed, self.now);
        signal
    }

    fn drain(&mut self, agent: &str, heard: &[u128], closed: &[u128]) {
        let left = BacklogView { newest: self.seq, ..BacklogView::default() };
        self.mesh.drained(&agent.into(), (heard.len() + closed.len()) as u64, left, heard, closed, self.now);
    }

    fn actions(&mut self) -> Vec<MeshAction> {
        std::iter::from_fn(|| self.mesh.poll_action()).collect()
    }

    fn pass(&mut self, time: Duration) -> Vec<MeshAction> {
        self.now = self.now + time;
        self.mesh.handle_deadline(self.now);
        self.actions()
    }
}

// M-03
#[test]
fn a_bell_names_sender_type_and_the_two_verbs_and_nothing_else() {
    let bell = Bell { sender: "donna".into(), kind: SignalType::Question, more: 0 };
    let words =
        "Signal from donna: Question. Use prism_signals_pending to read; prism_signal_reply to reply if needed.";
    assert_eq!(bell.to_string(), words);
    let several = Bell { more: 4, ..bell };
    assert!(several.to_string().starts_with("Signal from donna: Question and 4 more. Use prism_signals_pending"));
}

// M-08
#[test]
fn attempts_count_every_bell_and_rings_only_those_that_rang() {
    let mut room = Room::of(&["sable"]);
    let first = room.send(SignalType::Question, "donna", "sable");
    room.connect("sable");
    let ring = room.actions().into_iter().find_map(|action| match action {
        MeshAction::Ring { attempt, .. } => Some(attempt),
        _ => None,
    });
    room.mesh.rung(&"sable".into(), ring.unwrap(), BellOutcome::Rang, room.now);
    let second = room.send(SignalType::TaskAssigned, "donna", "sable");
    let wakes = |room: &Room, signal| room.mesh.obligation(signal).unwrap().wakes.clone();
    assert_eq!((wakes(&room, first).attempts, wakes(&room, first).rings), (2, 1), "uncaptured, then rang");
    assert_eq!((wakes(&room, second).attempts, wakes(&room, second).rings), (1, 0), "coalesced");
    assert_eq!(wakes(&room, second).last, Some((room.now, WakePath::Sse, BellOutcome::Coalesced)));
    let pushed = room.now;
    room.now = room.now + SECOND;
    room.drain("sable", &[first, second], &[]);
    assert_eq!((wakes(&room, first).attempts, wakes(&room, first).rings), (2, 1));
    // the last wake is the push, whatever came of it afterwards.
    assert_eq!(wakes(&room, first).last, Some((pushed, WakePath::Sse, BellOutcome::Rang)));
}

// M-10
#[test]
fn what_needs_a_reply_is_owed_until_it_comes_and_the_rest_until_it_is_heard() {
    let mut room = Room::of(&["sable"]);
    let question = room.send(SignalType::Question, "donna", "sable");
    let update = room.send(SignalType::StatusUpdate, "donna", "sable");
    let joined = room.send(SignalType::PeerJoined, "prism", "sable");
    assert!(room.mesh.obligation(joined).is_none());
    room.drain("sable", &[question], &[update]);
    assert!(room.mesh.obligation(update).is_none());
    assert_eq!(room.mesh.obligation(question).unwrap().heard, Some(room.now));
    assert!(room.mesh.done(question).is_some());
    assert!(room.mesh.obligation(question).is_none() && room.mesh.done(question).is_none());
}

#[test]
fn what_is_not_done_in_time_is_told_once() {
    let mut room = Room::of(&["sable"]);
    room.send(SignalType::StatusUpdate, "donna", "sable");
    let question = room.send(SignalType::Question, "donna", "sable");
    let overdue = |actions: Vec<MeshAction>| {
        let signal = |action| if let MeshAction::Overdue(owed) = action { Some(owed.signal) } else { None };
        actions.into_iter().filter_map(signal).collect::<Vec<_>>()
    };
    assert_eq!(overdue(room.pass(599 * SECOND)), []);
    assert_eq!(overdue(room.pass(SECOND)), [question]);
    assert_eq!(overdue(room.pass(3600 * SECOND)), []);
    let task = room.send(SignalType::TaskAssigned, "donna", "sable");
    room.mesh.done(task);
    assert_eq!(overdue(room.pass(7200 * SECOND)), [], "what is done is never overdue");
}

// M-09
#[test]
fn no_promise_about_time_holds_for_an_agent_that_cannot_be_woken() {
    let mut room = Room::of(&["sable"]);
    let asleep = room.send(SignalType::Question, "donna", "sable");
    assert!(room.mesh.obligation(asleep).unwrap().is_exempt());
    room.connect("sable");
    assert!(!room.mesh.obligation(asleep).unwrap().is_exempt(), "it can be, now");
    room.mesh.stream_closed(&"sable".into(), room.now);
    assert!(room.mesh.obligation(asleep).unwrap().is_exempt());
}

// M-01
#[test]
fn another_window_takes_over_and_the_old_one_is_nobody() {
    let mut room = Room::of(&["sable"]);
    room.connect("sable");
    assert_eq!(room.start("sable", 9).unwrap().session, 1);
    assert_eq!(room.mesh.agent_of(1), None);
    assert_eq!(room.mesh.agent_of(9).map(|name| &**name), Some("sable"));
    assert_eq!(room.mesh.support("sable"), WakeSupport::Degraded, "the old one's stream is not the new one's");
    room.mesh.wrap(&"sable".into(), room.now);
    assert_eq!(room.start("sable", 10), None, "nothing to take over");
}

#[test]
fn presence_is_what_is_known() {
    let mut room = Room::of(&["sable"]);
    let sable: Name = "sable".into();
    let presence = |room: &Room| room.mesh.presence("sable", room.now);
    assert_eq!(presence(&room), Presence::Active);
    room.pass(61 * SECOND);
    assert_eq!(presence(&room), Presence::Silent);
    room.connect("sable");
    assert_eq!(presence(&room), Presence::Connected);
    room.mesh.left(&sable, room.now);
    assert_eq!(presence(&room), Presence::Gone);
    room.mesh.seen(&sable, room.now);
    assert_eq!(presence(&room), Presence::Active);
    room.mesh.wrap(&sable, room.now);
    assert_eq!(presence(&room), Presence::Wrapped);
    assert_eq!(room.mesh.presence("nobody", room.now), Presence::Gone);
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    let mut room = Room::of(&["sable"]);
    room.connect("sable");
    room.send(SignalType::StatusUpdate, "donna", "sable");
    assert!(room.mesh.deadline().is_some());
    room.mesh.forget(&"sable".into());
    assert_eq!((room.mesh.deadline(), room.mesh.agent_of(1), room.mesh.is_empty()), (None, None, true));
    assert!(!room.mesh.is_known("sable"));
}

#[test]
fn a_name_is_folded_and_bounded() {
    assert_eq!(name(" Sable.2 ").as_deref(), Ok("sable.2"));
    for bad in ["", "-a", "a b", "a/b", "é", &"x".repeat(65)] {
        assert_eq!(name(bad), Err(AgentNameError), "{bad:?}");
    }
}
