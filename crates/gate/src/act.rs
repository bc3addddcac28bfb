//! One action of a holder's: decided, written down, prepared, shown if it has to be, done, and written down again.

use std::{
    future::pending,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use prism_api::shown::{ShownAction, ShownPlain, ShownStep};
use prism_core::policy::{
    self, Code, Decision, Effect, GrantScope, Refusal, Risk, VerbSpec, decide,
    person::{AskedUnder, CallPatience, PersonQuestion, PersonVerdict},
};
use prism_editor::{EditorEvent, GrantHolder, ProgressSink, VerbOrder, edit_bytes};
use prism_os::sandbox::NetworkAccess;
use serde_json::{Map, Value, json};
use tokio::{sync::broadcast, time::timeout};
use uuid::Uuid;

use super::{
    Gate, GateError,
    live::{ActionRecord, GrantEnd, GrantLease},
    paper::{AuditSubject, in_short, with},
    router::RoutedVerb,
    secret::hash,
};

/// How long it may take to open what an action is about. Where a language server has to work out what will be done, it is part
/// of it.
const PREPARED_WITHIN: Duration = Duration::from_secs(60);

/// Who waits for an action.
pub struct ActionWaiter<'a> {
    progress: ProgressSink,
    patience: CallPatience,
    gone: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
}

/// What came of an action.
pub struct ActionOutcome {
    pub result: Result<Value, GateError>,
    /// The holder has tried too often what it may not: its socket is closed.
    pub trespassed: bool,
}

impl Gate {
    /// Does what a holder asks for, or says why not. Long work says how far it is.
    pub async fn act(
        &self,
        held: &GrantLease,
        name: &str,
        mut args: Map<String, Value>,
        waiter: ActionWaiter<'_>,
    ) -> ActionOutcome {
        let op = args.get("op").and_then(Value::as_str).map(str::to_owned);
        let asked = VerbSpec::asked(name, op.as_deref());
        if asked.as_ref().is_ok_and(|action| action.verb != name) {
            args.remove("op");
        }
        let verb = asked.as_ref().map_or(name, |action| action.verb).to_owned();
        let args = Value::Object(args);
        let live = &held.live;
        let result = match asked {
            Ok(action) => self.act_as(held, action, &args, waiter).await,
            Err(why) => Err(self.refused(held, &verb, &args, Refusal::new(Code::UnknownAction, why))),
        };
        let now = self.clock.now();
        let trespassed = match &result {
            Err(trouble) if trouble.code == Code::Forbidden.name() => live.trespassed(now),
            _ => false,
        };
        let told = result.as_ref().map_or_else(|trouble| trouble.code, |_| "ok");
        live.did(ActionRecord { at: now, verb: verb.clone(), about: in_short(&args), result: told.to_owned() });
        self.metrics.acted(&verb, told);
        self.acted();
        self.events
            .tell("action", || json!({"session_id": uuid::Uuid::from_u128(live.id), "action": verb, "result": told}));
        ActionOutcome { result, trespassed }
    }

    /// What happens in the editors, for whoever asks of each whether they may hear of it (`GrantLease::hears_of`).
    pub fn happenings(&self) -> broadcast::Receiver<Arc<EditorEvent>> {
        self.runtime.listen()
    }

    async fn act_as(
        &self,
        held: &GrantLease,
        action: &'static VerbSpec,
        args: &Value,
        mut waiter: ActionWaiter<'_>,
    ) -> Result<Value, GateError> {
        let prepared = tokio::select! {
            // First: what is over does nothing more.
            biased;
            ended = held.ended() => return Err(over(ended)),
            prepared = self.allowed(held, action, args, &mut waiter) => prepared?,
        };
        // Waited for even if the grant ends meanwhile: the line may be on disk already, and what came of it has to follow.
        let begun = self.record(AuditSubject::holder(&held.live), action.verb, args, "allowed").await?;
        // No action waits without a deadline. Dropped, it ends what it has started.
        let deadline = prepared.deadline();
        let result = tokio::select! {
            biased;
            ended = held.ended() => Err(over(ended)),
            result = timeout(deadline, prepared.run(waiter.progress)) => {
                result.unwrap_or_else(|_| Err(late(action, deadline))).map_err(GateError::from)
            }
        };
        let told = result.as_ref().map_or_else(|trouble| format!("error: {}", trouble.code), |_| "ok".to_owned());
        self.record_behind(
            AuditSubject { of: Some(begun), ..AuditSubject::holder(&held.live) },
            action.verb,
            &json!({}),
            &told,
        );
        result
    }

    /// Opens what an action is about, and returns once it may be done: decided, weighed, and shown to the person if it must be.
    async fn allowed(
        &self,
        held: &GrantLease,
        action: &'static VerbSpec,
        args: &Value,
        waiter: &mut ActionWaiter<'_>,
    ) -> Result<RoutedVerb, GateError> {
        let live = &held.live;
        let Value::Object(members) = args else { return Err(GateError::bad("args is an object")) };
        let now = self.clock.now();
        let bytes = edit_bytes(action, members);
        let decision = live.with_bucket(|bucket| decide(&live.grant, bucket, action, bytes, now));
        let lacks = self.lacks_sandbox(action).await;
        let confirms = match decision {
            Decision::Refuse(refusal) => return Err(self.refused(held, action.verb, args, refusal)),
            Decision::Confirm => true,
            // What the folders hold is run as if the holder had asked for it by name.
            Decision::Allow => lacks.is_some() && action.risk == Risk::Runs,
        };
        if let Some(lacks) = &lacks {
            self.ask_for_servers(held, action, args, lacks, waiter).await?;
        }
        let network =
            if live.grant.scopes.has(GrantScope::AllNetwork) { NetworkAccess::All } else { NetworkAccess::Own };
        let holder = GrantHolder { id: live.id, name: live.agent.clone(), network };
        let order = VerbOrder { verb: action, args: members.clone(), roots: live.grant.roots.clone(), holder };
        let prepared = timeout(PREPARED_WITHIN, self.runtime.prepare(order)).await;
        let prepared = prepared.unwrap_or_else(|_| Err(late(action, PREPARED_WITHIN)));
        let mut prepared = prepared.map_err(|refusal| self.refused(held, action.verb, args, refusal))?;
        // What a rename or a formatter writes is known only now.
        if let Err(refusal) = live.grant.limits.allow_edit(prepared.writes()) {
            return Err(self.refused(held, action.verb, args, refusal));
        }
        let effects = prepared.effects().await.map_err(|refusal| self.refused(held, action.verb, args, refusal))?;
        let because = self.because(held, action, effects.as_deref());
        let mut because = because.map_err(|refusal| self.refused(held, action.verb, args, refusal))?;
        if (confirms && !prepared.only_looks()) || !because.is_empty() {
            let shown = prepared.shown().await.map_err(|refusal| self.refused(held, action.verb, args, refusal))?;
            let shown = serde_json::to_value(shown).unwrap_or_default();
            because.extend(lacks.iter().flat_map(|lacks| open_without(lacks)));
            let shown = json!(ShownAction { action: action.verb.to_owned(), shown, because });
            self.shown_to_person(held, action, args, shown, waiter).await?;
            live.has_seen(policy::seen_of(effects.as_deref().unwrap_or_default()));
        }
        Ok(prepared)
    }

    /// Has a person allow it, as it is shown.
    async fn shown_to_person(
        &self,
        held: &GrantLease,
        action: &VerbSpec,
        args: &Value,
        shown: Value,
        waiter: &mut ActionWaiter<'_>,
    ) -> Result<(), GateError> {
        let live = &held.live;
        let digest = hash(json!([live.id.to_string(), args, shown]).to_string().as_bytes());
        let settings = self.settings();
        let wait = match waiter.patience {
            CallPatience::Long => settings.gate.confirm_within,
            CallPatience::Short => settings.gate.call_wait.min(settings.gate.confirm_within),
        };
        let agent = live.agent.clone();
        let question = PersonQuestion {
            kind: "action",
            grant: Some(live.id),
            agent,
            digest,
            shown,
            wait,
            asked: AskedUnder::default(),
        };
        // First: what nobody waits for any more is not done, however soon the Allow comes. Dropped, the question is
        // taken back.
        let said = tokio::select! {
            biased;
            () = &mut waiter.gone => {
                let why = "the call was taken back while the person was asked";
                return Err(self.refused(held, action.verb, args, Refusal::new(Code::Denied, why)));
            }
            said = self.ask_person(question) => said?,
        };
        let why = match said {
            PersonVerdict::Allowed => return Ok(()),
            PersonVerdict::Unanswered(id) if waiter.patience == CallPatience::Short => {
                self.refused_as(held, action.verb, args, "waiting");
                return Err(waits(action, id));
            }
            PersonVerdict::Denied(reason) => reason.unwrap_or_else(|| "the person said no".to_owned()),
            PersonVerdict::Unanswered(_) => "nobody answered in time".to_owned(),
            PersonVerdict::TooMany => "too much waits for the person already; try again later".to_owned(),
        };
        Err(self.refused(held, action.verb, args, Refusal::new(Code::Denied, why)))
    }

    /// Why what an action starts is kept by less than a sandbox, if it is.
    async fn lacks_sandbox(&self, action: &VerbSpec) -> Option<String> {
        if !action.starts_programs() {
            return None;
        }
        self.runtime.lacks_sandbox().await
    }

    /// A language server reads what the folders hold, and some can be had to run it. Where there is no sandbox around them a person
    /// is asked once for each grant, not for each look at a file. (S-24)
    async fn ask_for_servers(
        &self,
        held: &GrantLease,
        action: &VerbSpec,
        args: &Value,
        lacks: &str,
        waiter: &mut ActionWaiter<'_>,
    ) -> Result<(), GateError> {
        let live = &held.live;
        if !action.asks_language_server() || live.lets_servers_run.load(Ordering::Relaxed) {
            return Ok(());
        }
        let title = "Start language servers for this grant, as it needs them";
        let lines = vec!["they are asked about once, and end with the grant".to_owned()];
        let shown = json!(ShownAction {
            action: "start_language_servers".to_owned(),
            shown: json!(ShownStep::Plain(ShownPlain { title: title.to_owned(), lines })),
            because: open_without(lacks).to_vec(),
        });
        self.shown_to_person(held, action, args, shown, waiter).await?;
        live.lets_servers_run.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Why the person is to see an action first, whatever its verb: for what it does to files (R-05 … R-07). Nothing, if they are
    /// not.
    fn because(
        &self,
        held: &GrantLease,
        action: &VerbSpec,
        effects: Option<&[Effect]>,
    ) -> Result<Vec<String>, Refusal> {
        let live = &held.live;
        policy::weigh(action, effects, live.grant.confirms_changes, |seen| live.take_seen(seen))
    }

    fn refused(&self, held: &GrantLease, verb: &str, args: &Value, refusal: Refusal) -> GateError {
        self.refused_as(held, verb, args, refusal.code.name());
        refusal.into()
    }

    /// Writes down that an action was not done.
    fn refused_as(&self, held: &GrantLease, verb: &str, args: &Value, code: &str) {
        let live = &held.live;
        if let Some(before) = live.may_write_refusal(self.clock.now()) {
            let args = if before > 0 { with(args, "refused_before", before) } else { args.clone() };
            self.record_behind(AuditSubject::holder(live), verb, &args, &format!("refused: {code}"));
        }
    }
}

// === impl ActionWaiter ===

impl<'a> ActionWaiter<'a> {
    /// One that hears of everything as it comes, and waits for a person as long as it takes.
    pub fn patient(progress: ProgressSink) -> Self {
        Self { progress, patience: CallPatience::Long, gone: Box::pin(pending()) }
    }

    /// A client that is told to come back if the person takes longer than clients wait.
    pub fn client(progress: ProgressSink, patience: CallPatience, gone: impl Future<Output = ()> + Send + 'a) -> Self {
        Self { progress, patience, gone: Box::pin(gone) }
    }
}

/// Not done yet, and how to go on.
fn waits(action: &VerbSpec, id: Uuid) -> GateError {
    let why = format!(
        "not done yet: confirmation {id} waits for a person. Call {} with the same arguments again once it was allowed (in \
         the console, or with `prism confirm {id}`)",
        action.verb
    );
    GateError::new("waiting", 202, why)
}

fn late(action: &VerbSpec, deadline: Duration) -> Refusal {
    Refusal::new(Code::TimedOut, format!("{} took longer than {} s", action.verb, deadline.as_secs()))
}

/// What a person should know of a program that runs without a sandbox.
fn open_without(lacks: &str) -> [String; 2] {
    [
        format!("it runs without a sandbox: {lacks}"),
        "it keeps to the granted folders, but can reach the network and programs that listen there, write the caches of your tools \
         and, in those folders, hooks and settings that your tools run, reach your other terminals and memory that programs \
         share, change the modes of your files, end your other programs (before Linux 6.12), and leave something running that \
         outlives the grant"
            .to_owned(),
    ]
}

fn over(ended: GrantEnd) -> GateError {
    let code = match ended {
        GrantEnd::Expired => Code::Expired,
        GrantEnd::Revoked => Code::Revoked,
    };
    Refusal::new(code, "the grant is over").into()
}
