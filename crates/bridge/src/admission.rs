//! Policy for ordinary MCP calls: the rules of a destination's `[tools]`, tools that are no longer what they were, and
//! the person who is asked. What the rules mean is in `core::policy::rules`; how a request waits is in `daemon::serve::hold`.
//!
//! There is one way to a server: a link's commands take [`Admitted`] messages only, and only the check here makes them. It
//! looks at the very bytes that are forwarded, under the tool's own name, whichever way they came.
//!
//! ```text
//!  message ── check ──┬─ Through ──────────────────────────────────────────────► link
//!                     └─ Held ── denied? ── changed? ── confirmed? ── audit ──► link, or an answer that says why not
//! ```

mod doorbell;
mod hold;
mod pins;
mod waiting;
mod words;

use std::sync::Arc;

use prism_core::{
    mcp::Method,
    mesh::Name,
    policy::{
        self,
        canonical::JsonAmbiguity,
        person::{AskedUnder, Eventually, Person},
    },
    wire::{Message, MessageKind},
};
use prism_store::Store;
use uuid::Uuid;

pub use hold::AdmissionOutcome;

use self::{doorbell::AnsweredBells, waiting::WaitingCalls};
use crate::admitted::Admitted;
use crate::drive::{
    Destination,
    destination::{DefinitionLookup, PinCheck as HeldAgainst},
};
use prism_config::PinPolicy;

/// What decides on calls. There is one for the daemon's life.
#[derive(Default)]
pub struct CallAdmission {
    /// Who can be asked, and who writes down what was decided. Without one, what needs a person is refused.
    person: Option<Arc<dyn Person>>,
    store: Option<Store>,
    agents: Option<Arc<dyn AgentBells>>,
    waiting: WaitingCalls,
    /// Held while a definition is looked up and, if it is the first, written down.
    pinning: tokio::sync::Mutex<()>,
    doorbells: AnsweredBells,
}

/// Agents that can be told something later, as the mesh has them.
pub trait AgentBells: Send + Sync {
    /// Returns the agent that a client is, by its session or its run of `prism stdio`.
    fn agent_with(&self, session: Option<Uuid>, instance: Option<Uuid>) -> Option<Name>;

    /// Sends an agent a signal in Prism's own name.
    fn tell_agent(&self, agent: Name, body: String) -> Eventually<'_, Result<(), String>>;
}

/// What the check says at once.
#[expect(clippy::large_enum_variant, reason = "the large one is what nearly every call is, and it stays on the stack")]
pub enum AdmissionCheck {
    Through(Admitted),
    Held(Box<PendingCall>),
}

/// A message that something has to be found out about first.
pub struct PendingCall {
    destination: Arc<Destination>,
    message: Message,
    verdict: CallVerdict,
    pin: PinPolicy,
    asked: AskedUnder,
}

/// What the rules say, for as long as it takes.
#[derive(Clone, Debug)]
enum CallVerdict {
    Free,
    Allowed(String),
    Confirm(String),
    Denied(String),
    Unclear(JsonAmbiguity),
}

/// Who calls, as far as the door knows.
#[derive(Clone, Debug)]
pub struct CallIdentity {
    pub session: Option<Uuid>,
    /// The run of `prism stdio` behind it.
    pub instance: Option<Uuid>,
    /// What an approval is bound to: the session, or what else tells it from others.
    pub caller: String,
    /// What a person is shown.
    pub client: String,
}

// === impl CallAdmission ===

impl CallAdmission {
    pub fn new(
        person: Option<Arc<dyn Person>>,
        store: Option<Store>,
        agents: Option<Arc<dyn AgentBells>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            person,
            store,
            agents,
            waiting: WaitingCalls::default(),
            pinning: tokio::sync::Mutex::default(),
            doorbells: AnsweredBells::default(),
        })
    }

    /// Looks at a request of a client's, under the names that its destination knows.
    pub fn check(self: &Arc<Self>, destination: &Arc<Destination>, message: Message) -> AdmissionCheck {
        let tools = destination.tools();
        let verdict = match &tools.rules {
            None => CallVerdict::Free,
            Some(rules) => CallVerdict::from(rules.judge(&message)),
        };
        let is_call = message.kind() == MessageKind::Request(Method::ToolsCall);
        let clear = match verdict {
            CallVerdict::Free if !is_call => true,
            CallVerdict::Free => !self.must_look(destination, tools.pin, &message) && !self.audits_all(),
            _ => false,
        };
        if clear {
            return AdmissionCheck::Through(Admitted::checked(message));
        }
        let (destination, asked) = (destination.clone(), AskedUnder::default());
        AdmissionCheck::Held(Box::new(PendingCall { destination, message, verdict, pin: tools.pin, asked }))
    }

    /// Looks at what a client says that wants no answer. What is not clear goes nowhere.
    pub fn tell(&self, destination: &Destination, message: Message) -> Option<Admitted> {
        let tools = destination.tools();
        let is_call = matches!(message.kind(), MessageKind::Notification(Method::ToolsCall));
        let clear = tools.rules.as_ref().is_none_or(|rules| rules.judge(&message) == policy::RuleVerdict::Free);
        (clear && !is_call).then(|| Admitted::checked(message))
    }

    /// Whether a call has to wait until it is known that its tool is what it was.
    fn must_look(self: &Arc<Self>, destination: &Arc<Destination>, pin: PinPolicy, message: &Message) -> bool {
        if pin == PinPolicy::Off || destination.is_built_in() {
            return false;
        }
        let Some(tool) = message.string(message.params().name) else { return false };
        match (pin, destination.definitions().look(&tool)) {
            (_, DefinitionLookup::Same) => false,
            (PinPolicy::Ask, _) => true,
            // Nobody waits, and nobody asks for a list that no client wants: what passes by is enough to warn of.
            (_, DefinitionLookup::Known(now)) if now.held() == HeldAgainst::NotYet => {
                now.hold(HeldAgainst::Soon);
                let (calls, destination, tool) = (self.clone(), destination.clone(), tool.into_owned());
                tokio::spawn(async move { calls.warn_if_changed(&destination, &tool, &now).await });
                false
            }
            _ => false,
        }
    }

    fn audits_all(&self) -> bool {
        self.person.as_ref().is_some_and(|person| person.audits_all())
    }

    /// A client takes back a call that may wait for a person.
    pub fn cancel(&self, session: Uuid, message: &Message) {
        if let (MessageKind::Notification(Method::Cancelled), Some(named)) =
            (message.kind(), message.params().request_id)
        {
            self.waiting.cancel(session, message.text(named));
        }
    }

    /// A client is gone, and with it whatever it waits for.
    pub fn leave(&self, session: Uuid) {
        self.waiting.leave(session);
    }
}

impl From<policy::RuleVerdict<'_>> for CallVerdict {
    fn from(verdict: policy::RuleVerdict<'_>) -> Self {
        match verdict {
            policy::RuleVerdict::Free => Self::Free,
            policy::RuleVerdict::Allowed(rule) => Self::Allowed(rule.to_owned()),
            policy::RuleVerdict::Confirm(rule) => Self::Confirm(rule.to_owned()),
            policy::RuleVerdict::Denied(rule) => Self::Denied(rule.to_owned()),
            policy::RuleVerdict::Unclear(unclear) => Self::Unclear(unclear),
        }
    }
}
