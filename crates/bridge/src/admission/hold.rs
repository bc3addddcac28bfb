//! A call that something has to be found out about: whether it is denied, whether its tool is still what it was, whether
//! a person lets it pass; and that it is on record before it is made.

use std::{sync::Arc, time::Duration};

use prism_api::shown::{ShownDefinition, ShownToolCall};
use prism_core::{
    mcp::Method,
    policy::{
        person::{AskedUnder, CallPatience, PersonQuestion, PersonVerdict},
        rules,
    },
    wire::{Message, MessageKind},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{CallAdmission, CallIdentity, CallVerdict, PendingCall, pins, words};
use crate::drive::destination::{PinCheck as HeldAgainst, ToolDefinition};
use crate::{admitted::Admitted, digest::sha256};
use prism_config::PinPolicy;

/// What came of it.
pub enum AdmissionOutcome {
    Admitted(Box<Admitted>),
    /// A tool's result that says why not.
    Answer(String),
    /// It is not even a call.
    Invalid(String),
    /// Its client has taken it back.
    Cancelled,
}

/// What is known of a call that is to be made.
struct ReviewedCall<'a> {
    destination: &'a str,
    tool: &'a str,
    /// In the one way to write them, and for people.
    arguments: (String, String),
    definition: Option<Arc<ToolDefinition>>,
    /// The request's, as its client would name it to take it back.
    id: &'a str,
    asked: &'a AskedUnder,
}

impl PendingCall {
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// It goes on where it waited for its client, whom a person has let begin it.
    pub fn resumes(&mut self) {
        if let CallVerdict::Confirm(rule) = &self.verdict {
            self.verdict = CallVerdict::Allowed(rule.clone());
        }
    }

    /// Whether a person may have to be asked.
    pub fn may_ask(&self) -> bool {
        matches!(self.verdict, CallVerdict::Confirm(_)) || self.pin == PinPolicy::Ask
    }

    /// Where it is said under which id a person is asked.
    pub fn asked(&self) -> AskedUnder {
        self.asked.clone()
    }

    /// Finds out. Dropped before that, whatever was asked is taken back.
    pub async fn settle(
        self: Box<Self>,
        calls: Arc<CallAdmission>,
        who: CallIdentity,
        patience: CallPatience,
    ) -> AdmissionOutcome {
        let name = self.destination.config().name.clone();
        if self.message.kind() != MessageKind::Request(Method::ToolsCall) {
            let CallVerdict::Unclear(unclear) = &self.verdict else {
                return AdmissionOutcome::Admitted(Box::new(Admitted::checked(self.message)));
            };
            calls.note(&who, &name, "", json!({"why": unclear.to_string()}), "unclear");
            return AdmissionOutcome::Invalid(words::unclear(&name, unclear));
        }
        let tool = self.message.string(self.message.params().name).map(|name| name.into_owned()).unwrap_or_default();
        match &self.verdict {
            CallVerdict::Denied(rule) => {
                calls.note(&who, &name, &tool, json!({"rule": rule}), "denied");
                return answer(words::denied(self.destination.config().key(), &tool, rule));
            }
            CallVerdict::Unclear(unclear) => {
                calls.note(&who, &name, &tool, json!({"why": unclear.to_string()}), "unclear");
                return answer(words::unclear(&name, unclear));
            }
            CallVerdict::Free | CallVerdict::Allowed(_) | CallVerdict::Confirm(_) => {}
        }
        match self.let_pass(&calls, &who, &name, &tool, patience).await {
            Ok(()) => AdmissionOutcome::Admitted(Box::new(Admitted::checked(self.message))),
            Err(outcome) => outcome,
        }
    }

    async fn let_pass(
        &self,
        calls: &Arc<CallAdmission>,
        who: &CallIdentity,
        name: &str,
        tool: &str,
        patience: CallPatience,
    ) -> Result<(), AdmissionOutcome> {
        let confirms = matches!(self.verdict, CallVerdict::Confirm(_));
        // What a person is to decide on must mean one thing only.
        let arguments = match rules::arguments(&self.message) {
            Ok(arguments) => (arguments.canonical(), arguments.pretty()),
            Err(unclear) if confirms => {
                calls.note(who, name, tool, json!({"why": unclear.to_string()}), "unclear");
                return Err(answer(words::unclear(name, &unclear)));
            }
            Err(_) => (String::new(), String::new()),
        };
        let looks = self.pin == PinPolicy::Ask && !self.destination.is_built_in();
        let definition = if looks || confirms { self.destination.definition(tool).await } else { None };
        let id = self.message.id().unwrap_or_default();
        let call = ReviewedCall { destination: name, tool, arguments, definition, id, asked: &self.asked };
        if looks {
            self.must_be_what_it_was(calls, who, &call, patience).await?;
        }
        let rule = match &self.verdict {
            CallVerdict::Confirm(rule) => {
                calls.must_be_confirmed(who, &call, rule, patience).await?;
                Some(rule)
            }
            CallVerdict::Allowed(rule) => Some(rule),
            _ => None,
        };
        if rule.is_some() || calls.audits_all() {
            calls.record(who, &call, rule).await?;
        }
        Ok(())
    }

    /// Has the person look at what has changed in a tool, once.
    async fn must_be_what_it_was(
        &self,
        calls: &Arc<CallAdmission>,
        who: &CallIdentity,
        call: &ReviewedCall<'_>,
        patience: CallPatience,
    ) -> Result<(), AdmissionOutcome> {
        // One that its server does not list will not be there either.
        let Some(now) = &call.definition else { return Ok(()) };
        if now.held() == HeldAgainst::Same {
            return Ok(());
        }
        // Of several calls one asks. The others wait for what comes of that, as long as they can.
        let Ok(_turn) = timeout(calls.wait(patience), now.asking.lock()).await else {
            return Err(answer(words::asked_already(call.tool)));
        };
        if now.held() == HeldAgainst::Same {
            return Ok(());
        }
        let was = calls.was(call.destination, call.tool, now).await.map_err(broken)?;
        if let Some(before) = was {
            self.destination.definitions().note_changed(call.tool);
            let of = [b"definition", call.destination.as_bytes(), call.tool.as_bytes(), &before.digest, &now.digest];
            let shown = json!(ShownDefinition {
                destination: call.destination.to_owned(),
                tool: call.tool.to_owned(),
                client: who.client.clone(),
                unified: pins::diff(&before.definition, &now.text),
                ..ShownDefinition::default()
            });
            calls.ask(who, call, ("definition", sha256(&of), shown), patience).await?;
            calls.pin(call.destination, call.tool, now).await.map_err(broken)?;
        }
        now.hold(HeldAgainst::Same);
        Ok(())
    }
}

impl CallAdmission {
    async fn must_be_confirmed(
        self: &Arc<Self>,
        who: &CallIdentity,
        call: &ReviewedCall<'_>,
        rule: &str,
        patience: CallPatience,
    ) -> Result<(), AdmissionOutcome> {
        let definition = call.definition.as_ref().map_or("", |definition| &definition.text);
        let of = [
            b"call",
            call.destination.as_bytes(),
            call.tool.as_bytes(),
            definition.as_bytes(),
            call.arguments.0.as_bytes(),
            who.caller.as_bytes(),
        ];
        // Texts: a tree would not keep numbers as they are written.
        let shown = json!(ShownToolCall {
            destination: call.destination.to_owned(),
            tool: call.tool.to_owned(),
            client: who.client.clone(),
            rule: rule.to_owned(),
            arguments: call.arguments.1.clone(),
            definition: pins::lines(definition).trim_end().to_owned(),
        });
        self.ask(who, call, ("tool", sha256(&of), shown), patience).await
    }

    async fn ask(
        self: &Arc<Self>,
        who: &CallIdentity,
        call: &ReviewedCall<'_>,
        (kind, digest, shown): (&'static str, [u8; 32], Value),
        patience: CallPatience,
    ) -> Result<(), AdmissionOutcome> {
        let Some(person) = &self.person else { return Err(answer(words::nobody(call.destination, call.tool))) };
        let Some(place) = self.waiting.enter(who.session, call.id) else {
            return Err(answer(words::too_many()));
        };
        let wait = self.wait(patience);
        let question = PersonQuestion {
            kind,
            grant: None,
            agent: self.agent(who),
            digest,
            shown,
            wait,
            asked: call.asked.clone(),
        };
        let said = tokio::select! {
            said = person.ask(question) => said.map_err(broken)?,
            () = place.cancelled() => return Err(AdmissionOutcome::Cancelled),
        };
        let text = match said {
            PersonVerdict::Allowed => return Ok(()),
            PersonVerdict::Denied(reason) => words::refused(call.destination, call.tool, reason.as_deref()),
            PersonVerdict::Unanswered(id) => {
                let what = format!("The call of {:?} of {:?} (confirmation {id})", call.tool, call.destination);
                let rings = self.ring_when_decided(id, who, what);
                words::unanswered(call.tool, id, rings)
            }
            PersonVerdict::TooMany => words::too_many(),
        };
        Err(answer(text))
    }

    fn wait(&self, patience: CallPatience) -> Duration {
        let (long, short) = self.person.as_ref().map(|person| person.patience()).unwrap_or_default();
        if patience == CallPatience::Long { long } else { short }
    }

    /// Who asks, as a person knows them: by the agent's name, or by the program's.
    fn agent(&self, who: &CallIdentity) -> String {
        let agent = self.agents.as_ref().and_then(|agents| agents.agent_with(who.session, who.instance));
        agent.map_or_else(|| who.client.clone(), |agent| agent.to_string())
    }

    /// Has a call written down before it is made.
    async fn record(
        &self,
        who: &CallIdentity,
        call: &ReviewedCall<'_>,
        rule: Option<&String>,
    ) -> Result<(), AdmissionOutcome> {
        let Some(person) = &self.person else { return Ok(()) };
        let arguments: Value = serde_json::from_str(&call.arguments.0).unwrap_or_default();
        let mut args = json!({
            "destination": call.destination, "tool": call.tool, "arguments": arguments, "caller": who.caller,
        });
        if let Some(rule) = rule {
            args["rule"] = json!(rule);
        }
        let written = person.record((&self.agent(who), who.session), &args, "allowed").await;
        written.map_err(|why| broken(format!("the audit log cannot be written: {why}")))
    }

    /// Writes down that a call was refused.
    fn note(&self, who: &CallIdentity, destination: &str, tool: &str, mut args: Value, why: &str) {
        if let Some(person) = &self.person {
            args["destination"] = json!(destination);
            args["tool"] = json!(tool);
            args["caller"] = json!(who.caller);
            person.refused(&self.agent(who), &args, why);
        }
    }
}

fn answer(text: String) -> AdmissionOutcome {
    AdmissionOutcome::Answer(words::result(&text))
}

fn broken(why: String) -> AdmissionOutcome {
    answer(words::broken(&why))
}
