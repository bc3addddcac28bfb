//! The opening of a link: which era the server speaks, and its greeting (mcp-eras 4.1).
//!
//! A pipe is asked in both ways at once, so that a server of the old kind, which most are, is not kept waiting for. One
//! that speaks both is spoken to in the era of the clients that the link is for, so that nothing is translated that need
//! not be. A process speaks one era for life: in TypeScript's SDK 2.4 `initialize` binds it to the old one, in Python's 2.3
//! the first question that it reads does, and it refuses the other. So for the era that it was not bound to it is started
//! again, once, and that is remembered; and what a bound process refuses says nothing of what the next one would.
//! Over HTTP one question costs little and comes first.

use std::time::{Duration, Instant};

use super::{
    CallFault, EraDiscovery, Exchange, ExchangeOwner, Link, LinkAction, Method, UpstreamKind, lifecycle::LinkPhase,
};
use crate::{
    mcp::{
        era::Era,
        hello::{self, ServerGreeting},
        modern,
    },
    wire::{Members, Message},
};

/// How long a server that has answered one of two questions may take for the other.
const BOTH_WITHIN: Duration = Duration::from_secs(5);

/// How far an opening has come.
#[derive(Debug, Default)]
pub(super) struct EraProbe {
    /// `server/discover` was answered: it speaks the modern era. How it takes `initialize` is not known yet.
    discovered: Option<Box<ServerGreeting>>,
    /// `initialize` was refused, in these words, while the other question is open.
    refused: Option<Box<Message>>,
    /// `server/discover` was sent a second time.
    again: bool,
}

impl Link {
    pub(super) fn start(&mut self, now: Instant) {
        // What the last child did not read is not for this one.
        self.output.clear();
        self.knock = EraProbe::default();
        self.fate.begin();
        let (discover, initialize) = match self.opening {
            EraDiscovery::Probe => (true, self.settings.wire == UpstreamKind::Pipe),
            EraDiscovery::Learned(era) | EraDiscovery::Pinned(era) => (era == Era::Modern, era == Era::Legacy),
        };
        if discover {
            self.send_discover(now);
        }
        if initialize {
            self.send_initialize(now);
        }
        self.phase = LinkPhase::Starting { until: self.settings.start_timeout.map(|timeout| now + timeout) };
        // Only who is up can stay up: a start that takes long and fails earns nothing.
        self.up_since = None;
        self.actions.push_back(LinkAction::Start);
    }

    fn send_discover(&mut self, now: Instant) {
        let id = self.next_id();
        self.output.write_text(&modern::own_request(id.0, Method::Discover, "", modern::OwnClientMeta::OWN));
        self.exchanges.insert(id.0, Exchange::own(Method::Discover, id.0, None, now));
    }

    fn send_initialize(&mut self, now: Instant) {
        let id = self.next_id();
        let request = match &self.hello {
            Some(hello) => hello.as_request(id.0),
            None => hello::shared_request(id.0, self.settings.class),
        };
        self.output.write_text(&request);
        self.exchanges.insert(id.0, Exchange::own(Method::Initialize, id.0, None, now));
    }

    /// Whether we have asked this on our own and the answer is not here.
    fn awaits(&self, method: Method) -> bool {
        self.exchanges.values().any(|e| e.method == method && matches!(e.owner, ExchangeOwner::Link))
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.phase, LinkPhase::Starting { .. })
    }

    /// Whether the server is spoken to as one of the modern era, now or for the time being.
    pub(super) fn is_spoken_to_modern(&self) -> bool {
        match (self.phase, self.opening) {
            (LinkPhase::Up, _) => self.era() == Era::Modern,
            (_, EraDiscovery::Learned(Era::Modern) | EraDiscovery::Pinned(Era::Modern)) => {
                !self.awaits(Method::Initialize)
            }
            _ => false,
        }
    }

    /// The server answered `server/discover`.
    pub(super) fn discovered(&mut self, message: &Message, now: Instant) {
        let greeting = ServerGreeting::discovered(message);
        if greeting.is_some() {
            self.speaks.modern = Some(true);
        }
        if !self.is_opening() {
            // Too late for this child. The next one is spoken to in the modern era, if that is what its clients speak.
            if greeting.is_some() && self.opening == EraDiscovery::Learned(Era::Legacy) {
                self.opening = EraDiscovery::Learned(self.settings.prefers);
            }
            return;
        }
        match greeting {
            Some(greeting) if self.awaits(Method::Initialize) => {
                self.knock.discovered = Some(Box::new(greeting));
                // One that only speaks the modern era need not have an answer to the other question.
                self.phase = LinkPhase::Starting { until: Some(now + BOTH_WITHIN) };
            }
            Some(greeting) if self.opening == EraDiscovery::Probe && self.settings.prefers == Era::Legacy => {
                // Its clients are of the other era: it may speak that, too.
                self.knock.discovered = Some(Box::new(greeting));
                self.phase = LinkPhase::Starting { until: Some(now + BOTH_WITHIN) };
                self.send_initialize(now);
            }
            Some(greeting) if self.knock.refused.is_some() => self.is_only_modern(greeting, now),
            Some(greeting) => self.establish(greeting, now),
            None if names_our_revision(message) && !std::mem::replace(&mut self.knock.again, true) => {
                self.send_discover(now);
            }
            None => self.is_not_modern("it does not speak the revision 2026-07-28", now),
        }
    }

    /// `server/discover` led nowhere.
    fn is_not_modern(&mut self, why: &str, now: Instant) {
        self.speaks.modern = Some(false);
        if self.awaits(Method::Initialize) {
            return;
        }
        match (self.knock.refused.take(), self.opening) {
            (Some(refused), _) => self.give_up_with(&refused, now),
            (None, EraDiscovery::Pinned(_)) => self.reject(&format!("{why} (era = \"modern\" is set)"), now),
            (None, _) => self.send_initialize(now),
        }
    }

    /// The server answered `initialize`.
    pub(super) fn greeted(&mut self, message: &Message, now: Instant) {
        if !self.is_opening() {
            return;
        }
        let discovered = self.knock.discovered.take();
        if message.failed() {
            match discovered {
                Some(_) if self.may_be_bound() && self.settings.prefers == Era::Legacy => {
                    self.start_as(Era::Legacy, now);
                }
                Some(greeting) => self.is_only_modern(*greeting, now),
                None if self.awaits(Method::Discover) => self.knock.refused = Some(Box::new(message.clone())),
                None if self.opening == EraDiscovery::Learned(Era::Legacy)
                    && (refuses_the_era(message) || self.speaks.modern == Some(true)) =>
                {
                    self.knock.refused = Some(Box::new(message.clone()));
                    self.send_discover(now);
                }
                None => self.give_up_with(message, now),
            }
            return;
        }
        self.speaks.legacy = Some(true);
        if discovered.is_some() && self.settings.prefers == Era::Modern {
            // It has just been bound to the old era.
            return self.start_as(Era::Modern, now);
        }
        match ServerGreeting::read(message) {
            Ok(greeting) => self.establish(greeting, now),
            Err(error) => self.reject(&error.to_string(), now),
        }
    }

    /// It speaks the modern era, and refused the other.
    fn is_only_modern(&mut self, greeting: ServerGreeting, now: Instant) {
        if !self.may_be_bound() {
            self.speaks.legacy = Some(false);
        }
        self.establish(greeting, now);
    }

    /// Whether one question may have been refused only because the same process had read the other first.
    fn may_be_bound(&self) -> bool {
        self.opening == EraDiscovery::Probe && self.settings.wire == UpstreamKind::Pipe
    }

    /// Starts a server again that speaks the modern era, to ask in one way only.
    fn start_as(&mut self, era: Era, now: Instant) {
        self.opening = EraDiscovery::Learned(era);
        self.forget_child(CallFault::Exited, now);
        self.actions.push_back(LinkAction::Stop);
        self.start(now);
    }

    /// The server has taken too long to greet us.
    pub(super) fn opening_expired(&mut self, now: Instant) {
        match self.knock.discovered.take() {
            Some(_) => self.start_as(Era::Modern, now),
            None => {
                let asked = if self.awaits(Method::Initialize) { Method::Initialize } else { Method::Discover };
                let timeout = self.settings.start_timeout.unwrap_or_default();
                let why = format!(
                    "it did not answer `{}` within `start_timeout` ({timeout:?}). If it is only slow, set a longer \
                     `start_timeout` for it in prism.toml; else run its command by hand",
                    asked.name()
                );
                self.reject(&why, now);
            }
        }
    }

    /// What an end during the opening says about the server: some end on any request before `initialize`, and one that
    /// has said that it is modern may end on that (mcp-eras 4.1).
    pub(super) fn learned_from_exit(&self) -> Era {
        if self.knock.discovered.is_some() { Era::Modern } else { Era::Legacy }
    }

    /// A request of the opening got no answer at all. `evidence`: the server has said, in HTTP's way, that it does not
    /// know such a request.
    pub(super) fn opening_failed(&mut self, method: Method, fault: CallFault, evidence: bool, now: Instant) {
        match (method, fault) {
            (Method::Discover, _) if evidence => self.is_not_modern("it knows no `server/discover`", now),
            (Method::Initialize, _) if evidence && self.knock.discovered.is_some() => {
                if let Some(greeting) = self.knock.discovered.take() {
                    self.is_only_modern(*greeting, now);
                }
            }
            // It was of the legacy era once. What it is now is found out as if nothing were known.
            (Method::Initialize, _) if evidence && self.opening == EraDiscovery::Learned(Era::Legacy) => {
                self.opening = EraDiscovery::Probe;
                self.send_discover(now);
            }
            // An outage says nothing about eras. It may be over soon.
            (_, CallFault::Unavailable { why }) => {
                self.why = Some(why);
                self.handle_exit(now);
            }
            (_, CallFault::Cut) => {
                self.why = Some("it breaks the connection".to_owned());
                self.handle_exit(now);
            }
            (_, CallFault::Refused { why }) => self.reject(&why, now),
            (_, fault) => self.reject(&fault.to_string(), now),
        }
    }

    /// The server is there, and this is what it said.
    fn establish(&mut self, greeting: ServerGreeting, now: Instant) {
        let era = greeting.era;
        // What was asked in the other era is of no interest any more.
        self.exchanges.retain(|_, e| !(e.method == Method::Initialize && matches!(e.owner, ExchangeOwner::Link)));
        if era == Era::Legacy {
            self.output.write_text(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        if !matches!(self.opening, EraDiscovery::Pinned(_)) {
            self.opening = EraDiscovery::Learned(era);
        }
        self.phase = LinkPhase::Up;
        self.became_ready(now);
        self.fate.failed = None;
        self.why = None;
        let (name, version) = (greeting.name.clone(), greeting.version.clone());
        let speaks = self.speaks;
        self.actions.push_back(LinkAction::Ready { name, version, era, speaks });
        match self.greeting.replace(greeting) {
            Some(before) if self.greeting.as_ref().is_some_and(|now| !now.promises_the_same_as(&before)) => {
                // What the clients were told is no longer true; a new handshake tells them anew.
                self.end_established_sessions(now);
            }
            Some(_) => self.restore(now),
            None if self.resumed => self.restore(now),
            None => {}
        }
        self.resumed = false;
        self.used_at = Some(now);
        self.look_whether_idle(now);
        // Who left while the child was starting has had no call on it.
        self.owners = self.sessions.len();
        self.pump(now);
        self.begin_listens(now);
        self.adjust_union(now);
        self.settle(now);
    }
}

/// Whether a refusal lists the very revision we asked in: then asking again is worth it (mcp-eras, check 117).
fn names_our_revision(message: &Message) -> bool {
    let Some(error) = message.error_span().and_then(|span| Members::read(message.text(span))) else { return false };
    let versions = error.object("data").and_then(|data| serde_json::from_str(data.get("supported")?).ok());
    let named = |versions: Vec<String>| versions.iter().any(|version| version == modern::VERSION);
    error.get("code") == Some("-32022") && versions.is_some_and(named)
}

fn refuses_the_era(message: &Message) -> bool {
    let error = message.error_span().and_then(|span| Members::read(message.text(span)));
    error.is_some_and(|error| matches!(error.get("code"), Some("-32601" | "-32022")))
}
