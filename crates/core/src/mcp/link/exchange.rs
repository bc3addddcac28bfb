//! One request on its way: who waits for it, how, and until when.

use std::time::Instant;

use bytes::Bytes;

use super::{AcceptedFormats, CallFault, SessionKey, StreamKey, patience::CallProgress, rounds::Rounds};
use crate::{
    mcp::{MemberNames, Method, modern::ClientMeta, session::Session},
    numbers::NumberMap,
    wire::{Message, frame},
};

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) owner: ExchangeOwner,
    pub(super) reply: ReplyRoute,
    pub(super) deadline: Option<Instant>,
    /// When it ends at the latest, whatever its server and its client say.
    pub(super) latest: Instant,
    /// When a client that takes a stream hears from us, if it has heard nothing until then.
    pub(super) tell_at: Option<Instant>,
    /// How far its client was told that it is.
    pub(super) progress: Option<Box<CallProgress>>,
    /// The number the server knows it by; 0 while the server does not know it.
    pub(super) wire: u64,
    pub(super) standing: RequestStanding,
    /// The client's own words, where they may be needed again.
    pub(super) origin: Option<Message>,
    /// What a modern server has asked a legacy client on its behalf.
    pub(super) rounds: Option<Box<Rounds>>,
    /// It is the hub's own question for a list, in a client's words: nobody's call.
    pub(super) is_fetch: bool,
}

/// Whether the server is to work on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStanding {
    Running,
    /// It was told to stop, a moment ago.
    Stopped,
    /// It was told to, and has not answered: it may never do so, and may still ask.
    Ghost,
}

#[derive(Debug)]
pub(super) enum ExchangeOwner {
    Client {
        session: Option<SessionKey>,
        id: Box<str>,
        token: Option<Box<str>>,
        accepts: AcceptedFormats,
        name: Option<Box<str>>,
        /// How its client calls what the server has, where that is not as the server does.
        names: Option<MemberNames>,
        /// What a call of the modern era brings with it.
        modern: Option<Box<Modern>>,
    },
    /// Ours. The answer goes to nobody, unless the shell asked for it.
    Link,
}

/// A call of the modern era: it stands for itself, and a question to its client is part of its answer.
#[derive(Debug)]
pub(super) struct Modern {
    pub(super) envelope: ClientMeta,
    /// The secret under which the call can go on, once its client was asked.
    pub(super) ticket: u128,
    /// Its `Mcp-Param-*` headers, without that prefix.
    pub(super) headers: Vec<(String, String)>,
    pub(super) asked: Vec<LegacyQuestion>,
    pub(super) last_key: u32,
    /// When the questions that have come so far are put to the client.
    pub(super) ask_at: Option<Instant>,
    /// Until when its client may come back.
    pub(super) expires: Option<Instant>,
    /// What came of it while its client was away.
    pub(super) outcome: Option<ExchangeOutcome>,
    /// It came here before it was known which era the server speaks.
    pub(super) movable: bool,
    /// Until when it waits for the floor, once it does.
    pub(super) floor_by: Option<Instant>,
}

/// A legacy server's question that its client has not answered.
#[derive(Debug)]
pub(super) struct LegacyQuestion {
    pub(super) key: String,
    pub(super) server_id: Box<str>,
    pub(super) method: Method,
    pub(super) params: String,
}

#[derive(Debug)]
pub(super) enum ExchangeOutcome {
    Message(Message),
    Fault(CallFault),
}

/// Who makes a request.
#[derive(Clone, Debug)]
pub(super) struct RequestClient {
    pub(super) session: Option<SessionKey>,
    pub(super) accepts: AcceptedFormats,
    pub(super) names: Option<MemberNames>,
}

/// Where an exchange's messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyRoute {
    /// The POST waits, its head not sent.
    Held,
    /// The POST became a stream: this track of its session.
    Track(u64),
    /// The POST became a stream, of a client without a session.
    Bare(StreamKey),
    /// The client was asked something in the place of the answer, and may come back with it.
    Parked,
    /// The client left without a word. The server does not know.
    Left,
    /// The client cancelled, or was told that it took too long, and the server was told to stop. It may still answer,
    /// log or ask.
    Nobody,
}

impl Exchange {
    /// A request of the link's own.
    pub(super) fn own(method: Method, wire: u64, deadline: Option<Instant>, now: Instant) -> Self {
        Self {
            method,
            owner: ExchangeOwner::Link,
            reply: ReplyRoute::Nobody,
            deadline,
            latest: now,
            tell_at: None,
            progress: None,
            wire,
            standing: RequestStanding::Running,
            origin: None,
            rounds: None,
            is_fetch: false,
        }
    }

    pub(super) fn session(&self) -> Option<SessionKey> {
        match self.owner {
            ExchangeOwner::Client { session, .. } => session,
            ExchangeOwner::Link => None,
        }
    }

    pub(super) fn modern(&self) -> Option<&Modern> {
        match &self.owner {
            ExchangeOwner::Client { modern, .. } => modern.as_deref(),
            ExchangeOwner::Link => None,
        }
    }

    pub(super) fn modern_mut(&mut self) -> Option<&mut Modern> {
        match &mut self.owner {
            ExchangeOwner::Client { modern, .. } => modern.as_deref_mut(),
            ExchangeOwner::Link => None,
        }
    }

    /// Whether its events are named after their methods, where they are its own and not its session's.
    pub(super) fn by_method(&self) -> bool {
        matches!(&self.owner, ExchangeOwner::Client { accepts, .. } if accepts.by_method)
    }

    /// An event as its client wants it.
    pub(super) fn named(&self, event: Bytes) -> Bytes {
        named(event, self.by_method())
    }

    pub(super) fn accepts_json(&self) -> bool {
        matches!(&self.owner, ExchangeOwner::Client { accepts, .. } if accepts.json)
    }

    /// Whether its client takes a stream, or has one.
    pub(super) fn takes_events(&self) -> bool {
        matches!(&self.owner, ExchangeOwner::Client { accepts, .. } if accepts.events)
    }

    /// Whether a client waits for the answer, here and now.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(self.reply, ReplyRoute::Left | ReplyRoute::Nobody | ReplyRoute::Parked)
    }

    /// Whether the server has a client's call that it may ask something about.
    pub(super) fn may_be_asked(&self) -> bool {
        self.wire != 0 && self.method.may_ask() && matches!(self.owner, ExchangeOwner::Client { .. })
    }

    /// Whether two calls are certainly one client's: of the same session, or, without one, by what each calls itself.
    pub(super) fn is_of_the_same_client_as(&self, other: &Self) -> bool {
        match (self.modern(), other.modern()) {
            // Of one that does not say who it is nothing is certain.
            (Some(own), Some(other)) => !own.envelope.info.is_empty() && own.envelope.info == other.envelope.info,
            (None, None) => self.session().is_some() && self.session() == other.session(),
            _ => false,
        }
    }

    /// Whether it became a stream that nobody reads.
    pub(super) fn reply_is_deserted(&self, sessions: &NumberMap<SessionKey, Session>) -> bool {
        let session = || self.session().and_then(|key| sessions.get(&key));
        matches!(self.reply, ReplyRoute::Track(track) if session().is_some_and(|session| session.is_deserted(track)))
    }

    /// When this must be looked at again.
    pub(super) fn due(&self) -> Option<Instant> {
        let tell = self.tell_at.filter(|_| self.is_awaited());
        let (ask, expires) = self.modern().map_or((None, None), |modern| (modern.ask_at, modern.expires));
        let again = self.rounds.as_ref().and_then(|rounds| rounds.again_at);
        [self.deadline, tell, ask, expires, again].into_iter().flatten().min()
    }
}

pub(super) fn named(event: Bytes, by_method: bool) -> Bytes {
    if by_method { frame::by_method(&event) } else { event }
}
