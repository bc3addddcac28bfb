//! Sending, replying, taking back (M-02, M-10, M-12, M-16). How signals are read is in `drain.rs`.

use std::time::Duration;

use prism_api::{
    events::{ObligationEvent, SignalSentEvent},
    mesh::{
        RecallArguments, RecipientState, ReplyArguments, ReplyDue, SendArguments, SignalAccepted, SignalDelivery,
        SignalRecalled,
    },
};
use prism_bridge::admission::AgentBells;
use prism_core::{
    mesh::{Name, Obligation, PERSON, SYSTEM, SignalDuty, SignalHeader, SignalType, WakeSupport, name},
    policy::person::Eventually,
    time::rfc3339,
};
use prism_store::mesh::{NewSignal, RecallResult, SendResult, SignalRow};
use serde_json::json;
use tracing::warn;
use uuid::Uuid;

use super::{Mesh, MeshCaller, MeshError, MeshErrorCode, hyphenated, owed::obligation_row, who::CallerClaim};

/// The longest body of a signal, in bytes. A longer one is refused: signals point to work, they do not carry it.
const MAX_BODY: usize = 64 << 10;
/// Undrained signals of one agent. Beyond it a sender is refused.
const MAX_PENDING: u32 = 20_000;
/// Undrained signals of Prism's own for one agent. Beyond it the oldest gives way.
const MAX_NEWS: u32 = 50;

/// A signal that is about to be sent.
struct OutgoingSignal {
    sender: Name,
    recipient: Name,
    kind: SignalType,
    body: String,
    id: u128,
    trace: u128,
    reply_to: Option<u128>,
    /// The signal whose obligation ends with it.
    closes: Option<u128>,
    ttl_s: Option<u64>,
}

impl AgentBells for Mesh {
    fn agent_with(&self, session: Option<Uuid>, instance: Option<Uuid>) -> Option<Name> {
        self.state().of_ids(session, instance)
    }

    fn tell_agent(&self, agent: Name, body: String) -> Eventually<'_, Result<(), String>> {
        let (sender, kind) = (SYSTEM.into(), SignalType::StatusUpdate);
        let (id, trace) = (new_id(), new_id());
        let (reply_to, closes, ttl_s) = (None, None, None);
        let signal = OutgoingSignal { sender, recipient: agent, kind, body, id, trace, reply_to, closes, ttl_s };
        Box::pin(async move { self.dispatch(signal, false).await.map(drop).map_err(|trouble| trouble.message) })
    }
}

impl Mesh {
    pub async fn send(&self, caller: &MeshCaller, arguments: SendArguments) -> Result<SignalAccepted, MeshError> {
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let sender = self.who(caller, claim)?;
        let recipient = name(&arguments.to)?;
        let kind = kind(&arguments.kind)?;
        let reply_to = arguments.reply_to.as_deref().map(|id| uuid("reply_to", id)).transpose()?;
        let asked = reply_to.map(|id| self.asked(id)).transpose()?;
        let given = |name: &str, text: &Option<String>| text.as_deref().map(|text| uuid(name, text)).transpose();
        let trace = given("trace_id", &arguments.trace_id)?.or(asked.as_ref().map(|asked| asked.trace));
        let closes = asked.filter(|asked| ends(kind, asked, &sender, &recipient)).map(|asked| asked.id);
        let outgoing = OutgoingSignal {
            sender,
            recipient,
            kind,
            body: arguments.body,
            id: given("signal_id", &arguments.signal_id)?.unwrap_or_else(new_id),
            trace: trace.unwrap_or_else(new_id),
            reply_to,
            closes,
            ttl_s: arguments.ttl_s,
        };
        let sender = outgoing.sender.clone();
        let sent = self.dispatch(outgoing, arguments.delivery == Some(SignalDelivery::Sync)).await?;
        Ok(SignalAccepted { bell: self.bell_for(caller, &sender), ..sent })
    }

    pub async fn reply(&self, caller: &MeshCaller, arguments: ReplyArguments) -> Result<SignalAccepted, MeshError> {
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let sender = self.who(caller, claim)?;
        let asked = self.asked(uuid("to_signal", &arguments.to_signal)?)?;
        if asked.recipient != *sender {
            let why =
                format!("that signal was sent to {}, not to {sender}: only its recipient can reply", asked.recipient);
            return Err(MeshError::new(MeshErrorCode::NotYours, why));
        }
        let of = SignalType::named(&asked.kind).unwrap_or(SignalType::StatusUpdate);
        let kind = match &arguments.kind {
            Some(named) => kind(named)?,
            None => of.reply().unwrap_or(SignalType::Answer),
        };
        let outgoing = OutgoingSignal {
            sender,
            recipient: name(&asked.sender)?,
            kind,
            body: arguments.body,
            id: arguments.signal_id.as_deref().map(|id| uuid("signal_id", id)).transpose()?.unwrap_or_else(new_id),
            trace: asked.trace,
            reply_to: Some(asked.id),
            closes: kind.ends(of).then_some(asked.id),
            ttl_s: None,
        };
        let sender = outgoing.sender.clone();
        let sent = self.dispatch(outgoing, false).await?;
        Ok(SignalAccepted { bell: self.bell_for(caller, &sender), ..sent })
    }

    /// The signal that another one is about.
    fn asked(&self, id: u128) -> Result<SignalRow, MeshError> {
        let found = self.store.signal(id)?;
        found.ok_or_else(|| {
            MeshError::new(MeshErrorCode::UnknownSignal, format!("there is no signal {}", hyphenated(id)))
        })
    }

    /// Has a signal written down, and then told.
    async fn dispatch(&self, out: OutgoingSignal, sync: bool) -> Result<SignalAccepted, MeshError> {
        if out.body.len() > MAX_BODY {
            let why =
                format!("the body is {} bytes long and may have {MAX_BODY}: send a path or a link", out.body.len());
            return Err(MeshError::bad(why));
        }
        let now = self.now();
        let support = {
            let state = self.state();
            if !state.core.is_known(&out.recipient) {
                return Err(state.unknown(&out.recipient));
            }
            let (presence, support) = (state.core.presence(&out.recipient, now), state.core.support(&out.recipient));
            if sync && *out.recipient != *PERSON && support == WakeSupport::Degraded {
                let why = format!(
                    "{} cannot be woken now (it is {}); send it async, and it waits",
                    out.recipient,
                    presence.name()
                );
                return Err(MeshError::new(MeshErrorCode::Unreachable, why));
            }
            support
        };
        let ids = (out.id, out.trace);
        let obligation =
            Obligation::of(out.kind, ids, [&out.sender, &out.recipient], support, now, &self.settings.terms);
        let ttl = match out.ttl_s {
            Some(0) => return Err(MeshError::bad("`ttl_s` is 0: nobody could read it; leave it out, or say how long")),
            Some(seconds) => Duration::from_secs(seconds),
            None => self.ttl(out.kind),
        };
        let new = NewSignal {
            id: out.id,
            trace: out.trace,
            kind: out.kind.name().to_owned(),
            sender: out.sender.to_string(),
            recipient: out.recipient.to_string(),
            body: out.body,
            reply_to: out.reply_to,
            sent_at_us: now.0,
            expires_at_us: Some((now + ttl).0),
            rings: out.kind.rings(),
            obligation: obligation.as_ref().map(obligation_row),
            closes: out.closes,
            max_pending: MAX_PENDING,
        };
        let sent = self.store.send_signals(vec![new]).await?.into_iter().next();
        let (seq, trace, due) = match sent {
            Some(SendResult::Accepted { seq }) => {
                let lead = SignalHeader {
                    seq,
                    signal: out.id,
                    trace: out.trace,
                    kind: out.kind,
                    sender: (*out.sender).into(),
                };
                self.metrics.sent(out.kind);
                let told = || {
                    json!(SignalSentEvent {
                        at: rfc3339(now),
                        signal_id: hyphenated(out.id),
                        seq,
                        kind: out.kind.name().to_owned(),
                        from: out.sender.to_string(),
                        to: out.recipient.to_string(),
                    })
                };
                self.events.tell("signal_sent", told);
                let done = self.act(|state, now| {
                    state.core.arrived(&out.recipient, lead, obligation.clone(), now);
                    out.closes.and_then(|closes| state.core.done(closes))
                });
                self.tell_ended(done.into_iter(), "done");
                if *out.recipient == *PERSON {
                    self.notify(&format!("Signal from {}: {}. See: prism signal pending", out.sender, out.kind.name()));
                }
                (seq, out.trace, obligation.and_then(|obligation| obligation.due))
            }
            Some(SendResult::Again { seq, trace }) => (seq, trace, None),
            Some(SendResult::Full { pending }) => {
                let why = format!("{} has {pending} signals that it has not read; wait until it has", out.recipient);
                return Err(MeshError::new(MeshErrorCode::MailboxFull, why));
            }
            Some(SendResult::Conflict) | None => {
                let why = "that signal_id belongs to another signal; leave it out, or take a new one";
                return Err(MeshError::new(MeshErrorCode::Conflict, why));
            }
        };
        Ok(SignalAccepted {
            signal_id: hyphenated(out.id),
            trace_id: hyphenated(trace),
            seq,
            recipient_state: self.state_of(&out.recipient),
            obligation: due.map(|due| ReplyDue { due_at: rfc3339(due) }),
            bell: None,
        })
    }

    fn ttl(&self, kind: SignalType) -> Duration {
        match kind.duty() {
            Some(SignalDuty::Reply) => self.settings.keep_asked,
            Some(SignalDuty::Hear) => self.settings.keep_told,
            None => self.settings.keep_system,
        }
    }

    /// What a sender should know of its recipient.
    fn state_of(&self, agent: &Name) -> RecipientState {
        if **agent == *PERSON {
            return RecipientState { presence: PERSON.to_owned(), ..RecipientState::default() };
        }
        let (state, now) = (self.state(), self.now());
        RecipientState {
            presence: state.core.presence(agent, now).name().to_owned(),
            surface_support: Some(state.core.support(agent).name().to_owned()),
            pending: Some(state.core.bell(agent).map_or(0, |bell| bell.pending())),
        }
    }

    /// Sends what Prism itself has to say. It waits for nobody: who does not read it has missed nothing.
    pub(super) async fn tell_news(&self, news: Vec<(SignalType, Name, String)>) {
        if news.is_empty() {
            return;
        }
        let now = self.now();
        let expires_at_us = Some((now + self.settings.keep_system).0);
        let new = |(kind, recipient, body): &(SignalType, Name, String)| NewSignal {
            id: new_id(),
            trace: new_id(),
            kind: kind.name().to_owned(),
            sender: SYSTEM.to_owned(),
            recipient: recipient.to_string(),
            body: body.clone(),
            reply_to: None,
            sent_at_us: now.0,
            expires_at_us,
            rings: false,
            obligation: None,
            closes: None,
            max_pending: MAX_NEWS,
        };
        let signals: Vec<NewSignal> = news.iter().map(new).collect();
        let ids: Vec<(u128, u128)> = signals.iter().map(|signal| (signal.id, signal.trace)).collect();
        let sent = match self.store.send_signals(signals).await {
            Ok(sent) => sent,
            Err(error) => return warn!(%error, "Cannot write down who has come or gone"),
        };
        self.act(|state, now| {
            for ((sent, (signal, trace)), (kind, recipient, _)) in sent.into_iter().zip(ids).zip(news) {
                if let SendResult::Accepted { seq } = sent {
                    let lead = SignalHeader { seq, signal, trace, kind, sender: SYSTEM.into() };
                    state.core.arrived(&recipient, lead, None, now);
                }
            }
        });
    }

    pub(super) fn tell_ended(&self, ended: impl Iterator<Item = Obligation>, state: &str) {
        let at = self.now();
        for obligation in ended {
            if state == "done" {
                self.metrics.ended(&obligation, at);
            }
            let told = || {
                json!(ObligationEvent {
                    at: rfc3339(at),
                    state: state.to_owned(),
                    signal_id: hyphenated(obligation.signal),
                    kind: obligation.kind.name().to_owned(),
                    debtor: obligation.debtor.to_string(),
                    creditor: obligation.creditor.to_string(),
                    sla_exempt: None,
                })
            };
            self.events.tell("obligation", told);
        }
    }

    pub async fn recall(&self, caller: &MeshCaller, arguments: RecallArguments) -> Result<SignalRecalled, MeshError> {
        let claim = CallerClaim { session: arguments.session.as_deref(), agent: arguments.agent.as_deref() };
        let agent = self.who(caller, claim)?;
        let id = uuid("signal_id", &arguments.signal_id)?;
        let (code, why) = match self.store.recall(id, &agent, self.now().0).await? {
            RecallResult::Done { recipient, rings, seq } => {
                let recipient = name(&recipient)?;
                self.act(|state, now| state.core.gone(&recipient, seq, rings, id, now));
                let bell = self.bell_for(caller, &agent);
                return Ok(SignalRecalled { recalled: true, signal_id: hyphenated(id), bell });
            }
            RecallResult::AlreadyDrained => {
                (MeshErrorCode::AlreadyDrained, "its recipient has read it already".to_owned())
            }
            RecallResult::AlreadyGone => {
                (MeshErrorCode::AlreadyGone, "it was recalled before, or its time is over".to_owned())
            }
            RecallResult::NotYours => {
                (MeshErrorCode::NotYours, "another agent has sent it: only its sender can recall it".to_owned())
            }
            RecallResult::Unknown => (MeshErrorCode::UnknownSignal, format!("there is no signal {}", hyphenated(id))),
        };
        Err(MeshError::new(code, why))
    }
}

/// Whether a signal ends what another one asked for: from who owes it, to whom it is owed.
fn ends(kind: SignalType, asked: &SignalRow, sender: &str, recipient: &str) -> bool {
    let of = SignalType::named(&asked.kind);
    asked.recipient == sender && asked.sender == recipient && of.is_some_and(|of| kind.ends(of))
}

fn kind(named: &str) -> Result<SignalType, MeshError> {
    let known = || {
        let names = SignalType::ALL.into_iter().filter(|kind| !kind.is_system()).map(SignalType::name);
        names.collect::<Vec<_>>().join(", ")
    };
    match SignalType::named(named) {
        Some(kind) if !kind.is_system() => Ok(kind),
        Some(_) => Err(MeshError::bad(format!("only Prism itself sends {named}; you can send {}", known()))),
        None => Err(MeshError::bad(format!("there is no type {named:?}; there are {}", known()))),
    }
}

pub(super) fn uuid(name: &str, text: &str) -> Result<u128, MeshError> {
    match Uuid::try_parse(text.trim()) {
        Ok(id) => Ok(id.as_u128()),
        Err(_) => Err(MeshError::bad(format!("`{name}` is no UUID: {:?}", text.chars().take(64).collect::<String>()))),
    }
}

fn new_id() -> u128 {
    Uuid::now_v7().as_u128()
}
