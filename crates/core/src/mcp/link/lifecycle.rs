//! The child's life as the link sees it: start, handshake, loss, restart, end (B-08, B-09, B-13).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    CallFault, EraDiscovery, Exchange, ExchangeOwner, Ghosts, Link, LinkAction, LinkRefusal, Method, ReplyRoute,
    SessionKey, StreamKey, Union, UpstreamKind, WireId, park::OWN_WARM,
};
use crate::{
    mcp::{
        era::Era,
        hello::{ClientHello, ServerGreeting},
        replay::ReplayKind,
        session::{HubPart, QuestionOrigin, Session, SessionQuestion, SessionSnapshot},
    },
    wire::{Message, splice::around, text},
};

/// Waits before each restart. When they are used up, so is the child (B-08).
const RESTARTS: [Duration; 3] = [Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(2)];
/// How long a server stays that became ready when everybody who had waited for it was gone: they try again soon.
const READY_FOR: Duration = Duration::from_secs(60);
/// Up for this long, a child has earned its restarts back.
const PROVEN: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkPhase {
    /// No child, and none wanted.
    Down,
    /// No child, as nobody has used it for long. The sessions go on with the next call.
    Asleep,
    /// It was asked for its greeting.
    Starting {
        until: Option<Instant>,
    },
    Up,
    /// The child ended; the next one starts then.
    Restarting {
        at: Instant,
    },
}

impl LinkPhase {
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Starting { until } => until,
            Self::Restarting { at } => Some(at),
            Self::Down | Self::Asleep | Self::Up => None,
        }
    }

    /// Whether there is a child, or will be.
    pub(super) fn has_child(self) -> bool {
        !matches!(self, Self::Down | Self::Asleep)
    }
}

impl Link {
    /// Opens a session: its client's `initialize`.
    pub fn open(
        &mut self,
        key: SessionKey,
        hello: ClientHello,
        message: Message,
        accepts: super::AcceptedFormats,
        part: Option<HubPart>,
        now: Instant,
    ) -> Result<WireId, LinkRefusal> {
        self.enter_session(key, Session::new(&hello, part), hello, message, accepts, now)
    }

    /// Opens a session whose messages all come on one stream, which is its life (2024-11-05).
    pub fn open_plain(
        &mut self,
        key: SessionKey,
        hello: ClientHello,
        message: Message,
        by_method: bool,
        now: Instant,
    ) -> Result<StreamKey, LinkRefusal> {
        let mut session = Session::new(&hello, None);
        let stream = self.next_stream(now);
        session.make_plain(stream, by_method);
        let accepts = super::AcceptedFormats { json: false, events: true, by_method };
        let taken = self.enter_session(key, session, hello, message, accepts, now);
        if taken.is_err() {
            self.streams -= 1;
        }
        taken.map(|_| stream)
    }

    fn enter_session(
        &mut self,
        key: SessionKey,
        session: Session,
        hello: ClientHello,
        message: Message,
        accepts: super::AcceptedFormats,
        now: Instant,
    ) -> Result<WireId, LinkRefusal> {
        // A part is kept with its whole, and one that is a stream ends with it.
        let outlives = session.part.is_none() && !session.is_plain();
        let session = self.sessions.entry(key).insert_entry(session).into_mut();
        if outlives {
            session.keep();
        }
        if self.settings.alone {
            self.hello.get_or_insert(hello);
        }
        let taken = self.call(Some(key), message, accepts, None, now);
        match taken {
            Ok(_) => {
                self.owners += 1;
                self.stop_at = None;
                self.adjust_union(now);
            }
            Err(_) => drop(self.sessions.remove(&key)),
        }
        taken
    }

    /// Starts the child, if there is none.
    pub(super) fn want(&mut self, now: Instant) {
        self.stop_at = None;
        if !self.phase.has_child() {
            self.start(now);
        }
    }

    /// Tells a new child what the old one knew, and the clients that they may have missed something (B-09).
    pub(super) fn restore(&mut self, now: Instant) {
        self.replay_level();
        match self.era() {
            Era::Legacy => {
                self.replay_watches();
                self.tell_of_lists();
            }
            // The clients are told when the new child will tell of changes, so that none is lost in between.
            Era::Modern => self.replay_union(now),
        }
    }

    /// Tells every client that any list may have changed.
    pub(super) fn tell_of_lists(&mut self) {
        let Some(greeting) = &self.greeting else { return };
        let lists = [
            (greeting.tools_changed, Method::ToolsChanged),
            (greeting.prompts_changed, Method::PromptsChanged),
            (greeting.resources_changed, Method::ResourcesChanged),
        ];
        let waiting: Vec<SessionKey> = self.waiting_for_initialize();
        for (_, method) in lists.into_iter().filter(|(told, _)| *told) {
            let text = format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, method.name());
            for (key, session) in &mut self.sessions {
                if !waiting.contains(key) && session.hears_of_lists() {
                    let what = ReplayKind::Change(method.name().into());
                    session.send_standalone(&[text.as_bytes()], what, self.settings.strict_streams, &mut self.actions);
                }
            }
            self.tell_listens(method, &text);
        }
    }

    /// The connection to the server is lost, or there is none.
    pub fn handle_lost(&mut self, why: String, now: Instant) {
        self.why = Some(why);
        self.handle_exit(now);
    }

    /// The child's process was ended for a reason that its clients should hear, and all it wrote was handled.
    pub fn handle_ended(&mut self, why: String, now: Instant) {
        self.ended = Some(why);
        self.handle_exit(now);
        self.ended = None;
    }

    /// What looked like a request each turned out to be one stream for everything.
    pub fn over_one_stream(&mut self) {
        self.settings.wire = UpstreamKind::Pipe;
    }

    /// The child could not be started at all; trying again would not help.
    pub fn handle_start_failed(&mut self, why: &str, now: Instant) {
        self.give_up(why, now);
    }

    /// The child's process has ended, and all it wrote was handled.
    pub fn handle_exit(&mut self, now: Instant) {
        if !self.phase.has_child() {
            return;
        }
        let probed =
            self.is_opening() && self.opening == EraDiscovery::Probe && self.settings.wire == UpstreamKind::Pipe;
        if probed && self.ended.is_none() {
            // This was none of its restarts.
            let era = self.learned_from_exit();
            self.opening = EraDiscovery::Learned(era);
            match era {
                Era::Legacy => self.speaks.modern = Some(false),
                Era::Modern => self.speaks.legacy = Some(false),
            }
            self.forget_child(CallFault::Exited, now);
            return self.start(now);
        }
        let greeted = self.phase == LinkPhase::Up;
        let lived = self.up_since.take().map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        if lived >= PROVEN {
            self.tries = 0;
        }
        let fault = match &self.ended {
            Some(why) => CallFault::Ended { why: why.clone() },
            // A connection is no process.
            None if self.why.is_some() => CallFault::Cut,
            None => CallFault::Exited,
        };
        self.forget_child(fault, now);
        if !greeted {
            self.fail_fetches(now);
        }
        if self.sessions.is_empty() && self.held.is_empty() && self.listens.is_empty() {
            self.phase = LinkPhase::Down;
        } else if let Some(wait) = RESTARTS.get(self.tries) {
            self.tries += 1;
            self.phase = LinkPhase::Restarting { at: now + *wait };
        } else {
            let why = self.ended.take().or(self.why.take());
            let why = why.as_deref();
            let ended = "its process ended again and again right after the start";
            self.give_up(why.unwrap_or(ended), now);
        }
    }

    /// Tells those who will not wait for another start that this one failed.
    fn fail_fetches(&mut self, now: Instant) {
        let is_fetch = |id: &WireId| self.exchanges.get(&id.0).is_some_and(|e| e.is_fetch);
        let ids: Vec<WireId> = self.held.iter().map(|(id, _)| *id).filter(is_fetch).collect();
        let why = self.ended.clone().or(self.why.clone());
        let why = why.unwrap_or_else(|| "its process ended right after the start".to_owned());
        let fault = self.fate.told(&why);
        for id in ids {
            self.held.retain(|(held, _)| *held != id);
            self.fail(id, fault.clone(), now);
        }
    }

    pub(super) fn handle_phase_timeout(&mut self, now: Instant) {
        match self.phase {
            LinkPhase::Restarting { at } if at <= now => self.start(now),
            LinkPhase::Starting { until: Some(until) } if until <= now => self.opening_expired(now),
            _ => {}
        }
    }

    /// Whether anybody has a session here, or waits for anything.
    fn is_wanted(&self) -> bool {
        let waits = |e: &Exchange| e.is_awaited() || (e.reply == ReplyRoute::Parked && e.wire != 0);
        let waited_for =
            || self.exchanges.values().any(|e| waits(e) && matches!(e.owner, ExchangeOwner::Client { .. }));
        !self.sessions.is_empty() || !self.held.is_empty() || !self.listens.is_empty() || waited_for()
    }

    /// The child has become ready: from now on it counts who needs it, however long that took.
    pub(super) fn became_ready(&mut self, now: Instant) {
        self.up_since = Some(now);
        // A client without a session that has waited may come back as well, for which a question of our own is no reason.
        let is_client = |e: &Exchange| matches!(e.owner, ExchangeOwner::Client { session: None, .. });
        let waits = |e: &Exchange| is_client(e) && !e.is_fetch;
        let keep = if self.exchanges.values().any(waits) { self.settings.keep_stateless } else { OWN_WARM };
        let least = now + keep.min(self.settings.keep_stateless);
        self.stateless_until = self.stateless_until.map(|until| until.max(least));
        if !self.is_wanted() && !self.settings.alone {
            self.stop_at = Some(now + self.settings.keep_warm.max(READY_FOR));
        }
    }

    /// Ends the child when nobody needs it (B-13).
    pub(super) fn settle(&mut self, now: Instant) {
        if self.is_wanted() {
            self.stop_at = None;
            return;
        }
        match self.phase {
            // Nobody is left to restart it for.
            LinkPhase::Restarting { .. } => (self.phase, self.stop_at) = (LinkPhase::Down, None),
            // The one client it is for is gone.
            LinkPhase::Starting { .. } if self.settings.alone => self.shut(CallFault::SessionEnded, now),
            // A client that gave up waiting comes back soon: let it find the child ready.
            LinkPhase::Starting { .. } | LinkPhase::Down => self.stop_at = None,
            LinkPhase::Asleep => (self.phase, self.stop_at) = (LinkPhase::Down, None),
            LinkPhase::Up => {
                let keep = if self.settings.alone { Duration::ZERO } else { self.settings.keep_warm };
                let until = self.stop_at.unwrap_or(now + keep).max(self.stateless_until.unwrap_or(now));
                if until > now {
                    self.stop_at = Some(until);
                } else {
                    self.shut(CallFault::SessionEnded, now);
                }
            }
        }
    }

    /// Ends the child if no client has used it for long, and none waits to hear from it.
    pub(super) fn look_whether_idle(&mut self, now: Instant) {
        self.idle_at = None;
        let Some(patience) = self.settings.idle_stop.filter(|_| self.phase == LinkPhase::Up) else { return };
        // Whoever only wants to hear of lists is told that they may have changed when it is started again.
        let busy = self.calls > 0 || !self.held.is_empty() || !self.watches.is_empty();
        let until = if busy { now } else { self.used_at.unwrap_or(now) } + patience;
        if until > now {
            self.idle_at = Some(until);
        } else {
            self.shut(CallFault::Exited, now);
            self.phase = LinkPhase::Asleep;
        }
    }

    /// Ends everything, as the daemon is stopping or the destination has changed. Returns what outlives that.
    pub fn shut_down(&mut self, why: CallFault, now: Instant) -> Vec<(SessionKey, SessionSnapshot)> {
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for (id, _) in std::mem::take(&mut self.held) {
            self.fail(id, why.clone(), now);
        }
        // In this order: the calls are answered on the streams that end with their sessions.
        self.shut(why, now);
        let kept = self.last_unsaved();
        for key in keys {
            self.end_session(key);
        }
        self.end_listens(None);
        self.watches.clear();
        kept
    }

    fn shut(&mut self, why: CallFault, now: Instant) {
        if self.phase.has_child() {
            self.actions.push_back(LinkAction::Stop);
        }
        self.phase = LinkPhase::Down;
        self.stop_at = None;
        self.idle_at = None;
        self.stateless_until = None;
        self.tries = 0;
        self.forget_child(why, now);
    }

    /// Fails what was sent to the child and drops what was true of it.
    pub(super) fn forget_child(&mut self, fault: CallFault, now: Instant) {
        // Before the calls are answered, which ends the streams that they were asked on.
        for session in self.sessions.values_mut() {
            self_cancel_questions(session, self.settings.strict_streams, &mut self.actions);
        }
        let held: Vec<WireId> = self.held.iter().map(|(id, _)| *id).collect();
        let mut sent: Vec<u64> = self.exchanges.keys().copied().filter(|id| !held.contains(&WireId(*id))).collect();
        // In the order they were made: who came first hears first.
        sent.sort_unstable();
        for id in sent {
            self.fail(WireId(id), fault.clone(), now);
        }
        self.level = None;
        self.call_level = None;
        self.union = Union::default();
        self.ghosts = Ghosts::default();
        self.refreshing.clear();
        self.output.clear();
        self.hold_listens();
    }

    /// Ends a child that cannot be worked with.
    pub(super) fn reject(&mut self, why: &str, now: Instant) {
        self.actions.push_back(LinkAction::Stop);
        self.give_up(why, now);
    }

    pub(super) fn give_up(&mut self, why: &str, now: Instant) {
        let fault = self.fate.told(why);
        for (id, _) in std::mem::take(&mut self.held) {
            self.fail(id, fault.clone(), now);
        }
        self.end_all(fault, now);
    }

    /// The server refused `initialize`: its own words go to the clients that asked.
    pub(super) fn give_up_with(&mut self, error: &Message, now: Instant) {
        let why = "it refused `initialize`".to_owned();
        for (id, message) in std::mem::take(&mut self.held) {
            let initialize = self.exchanges.get(&id.0).is_some_and(|e| e.method == Method::Initialize);
            // A client of the modern era has asked for no handshake, and would not understand how one failed.
            match (initialize, error.id_span(), message.id()) {
                (true, Some(span), Some(own)) => self.finish(id, &around(error, span, own), now),
                _ => self.fail(id, CallFault::Unavailable { why: why.clone() }, now),
            }
        }
        self.actions.push_back(LinkAction::Stop);
        self.end_all(CallFault::Unavailable { why }, now);
    }

    fn end_all(&mut self, fault: CallFault, now: Instant) {
        let keys: Vec<SessionKey> = self.sessions.keys().copied().collect();
        for key in keys {
            self.end_session(key);
        }
        self.end_listens(Some(&fault));
        self.forget_child(fault.clone(), now);
        self.phase = LinkPhase::Down;
        self.fate.failed = Some(fault);
        self.tries = 0;
        self.greeting = None;
        self.watches.clear();
        self.stop_at = None;
        self.stateless_until = None;
    }

    pub(super) fn end_session(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.remove(&key) {
            for stream in session.open_streams() {
                self.actions.push_back(LinkAction::End(stream));
            }
            self.actions.push_back(LinkAction::Ended(key));
        }
    }

    /// Ends the sessions that have had their handshake; the ones that wait for it get the new one.
    pub(super) fn end_established_sessions(&mut self, now: Instant) {
        let waiting = self.waiting_for_initialize();
        let old: Vec<SessionKey> = self.sessions.keys().copied().filter(|key| !waiting.contains(key)).collect();
        for key in old {
            let own = self.exchanges.iter().filter(|(_, e)| e.session() == Some(key));
            let mut own: Vec<u64> = own.map(|(id, _)| *id).collect();
            own.sort_unstable();
            self.held.retain(|(id, _)| !own.contains(&id.0));
            for id in own {
                self.fail(WireId(id), CallFault::SessionEnded, now);
            }
            self.end_session(key);
        }
        self.end_acknowledged_listens();
        self.watches.clear();
    }

    pub(super) fn waiting_for_initialize(&self) -> Vec<SessionKey> {
        let exchange = |id: &WireId| self.exchanges.get(&id.0);
        let initialize = self.held.iter().filter_map(|(id, _)| exchange(id)).filter(|e| e.method == Method::Initialize);
        initialize.filter_map(Exchange::session).collect()
    }

    /// Answers a client's `initialize` from the server's greeting.
    pub(super) fn welcome(&mut self, id: WireId, message: &Message) -> Option<Bytes> {
        let revision = match self.exchanges.get(&id.0)?.session() {
            Some(key) => self.sessions.get(&key)?.revision,
            // Without sessions a handshake leaves nothing behind (B-24).
            None => ClientHello::read(message).ok()?.revision,
        };
        Some(self.greeting.as_ref()?.answer(message.id()?, revision))
    }

    /// The server, over HTTP, has forgotten our session. What was not answered yet is for the shell to send again when
    /// there is a new one.
    pub fn handle_session_lost(&mut self, now: Instant) {
        if self.phase == LinkPhase::Up {
            self.start(now);
        }
    }

    /// Ends a child that may still ask about a call that is long over, and starts another if anybody needs one.
    pub(super) fn recycle(&mut self, now: Instant) {
        if self.phase != LinkPhase::Up {
            return;
        }
        self.actions.push_back(LinkAction::Stop);
        self.forget_child(CallFault::Exited, now);
        if self.sessions.is_empty() && self.held.is_empty() && self.listens.is_empty() {
            self.phase = LinkPhase::Down;
        } else {
            self.start(now);
        }
    }

    pub fn greeting(&self) -> Option<&ServerGreeting> {
        self.greeting.as_ref()
    }
}

/// Takes back what a dead child had asked: an answer could reach nobody.
fn self_cancel_questions(session: &mut Session, strict: bool, actions: &mut std::collections::VecDeque<LinkAction>) {
    let is_of_the_child = |question: &SessionQuestion| !matches!(question.asked_by, QuestionOrigin::Part);
    while let Some(question) = session.take_question(is_of_the_child) {
        // What a modern server asked died with the call.
        let why = format_args!(r#"{{"requestId":{},"reason":"the server ended"}}"#, question.number);
        let note = text::note(Method::Cancelled, why);
        session.send_on_track(question.track, &[note.as_bytes()], ReplayKind::Message, strict, actions);
    }
}
