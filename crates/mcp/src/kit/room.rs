//! One client of a built-in server: its state, what it asked for, and what it is told. How bytes come and go is the
//! affair of `connection.rs` and `stdio.rs`.
//!
//! The entry in `PeerState::calls` is the right to answer: whoever removes it, the finished call or its cancellation, has
//! decided which of the two came first.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use prism_core::{
    mcp::{Method, Revision, level::LogLevel, modern},
    wire::{Message, MessageKind, envelope::own_number},
};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::{
    BuiltinServer, CallFailure, ClientQuestion, ServerCall,
    ask::PendingQuestion,
    listen::{ChangeSubscription, MAX_WATCHED},
    outbox::Outbox,
    params::{self, CallingClient, RequestParams},
    reply::{self, INTERNAL, INVALID_REQUEST, NO_RESOURCE},
};

/// Which eras of the protocol are spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eras {
    #[default]
    Legacy,
    Modern,
    /// Whichever the client speaks. From `initialize` on it is the legacy one.
    Both,
}

impl Eras {
    /// Every value, in the order in which they are named to people.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Modern, Self::Both];

    /// Returns the word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
            Self::Both => "both",
        }
    }
}

pub(super) struct Peer {
    pub(super) server: Arc<BuiltinServer>,
    pub(super) out: Outbox,
    /// Whether a request that need not wait is answered before the next is looked at. A pipe's client may count on the
    /// order; in process a tool that computes for long must not hold up the link.
    in_order: bool,
    state: Mutex<PeerState>,
}

pub(super) struct PeerState {
    /// The eras that are spoken from here on.
    pub(super) eras: Eras,
    /// The parameters of `initialize`, whole.
    pub(super) client: Value,
    pub(super) revision: Option<Revision>,
    /// The level that the session set (legacy).
    pub(super) level: LogLevel,
    pub(super) subscribed: BTreeSet<String>,
    /// Who listens in the modern era, by the JSON text of the request's id.
    pub(super) listens: BTreeMap<String, ChangeSubscription>,
    /// Calls not yet answered, by the JSON text of their id: `1` and `"1"` are two ids.
    pub(super) calls: HashMap<String, watch::Sender<bool>>,
    /// Our own requests not yet answered. Their ids count from 0, as those of the SDKs do: a gateway that takes 0 for
    /// "no id", or shares ids between children, is found out here.
    questions: HashMap<u64, oneshot::Sender<Result<Value, String>>>,
    next_question: u64,
}

/// Calls of one connection at the same time. Beyond it a call is refused, not queued: whoever called can see it.
const MAX_CALLS: usize = 1024;
/// Questions of one connection that wait for an answer. Beyond it the call that asks fails.
const MAX_QUESTIONS: usize = 1024;
/// How long a cancelled call may tidy up before it is dropped.
const TIDY_UP: Duration = Duration::from_secs(1);

impl Peer {
    pub(super) fn open(server: Arc<BuiltinServer>, eras: Eras) -> Arc<Self> {
        Self::new(server, eras, false)
    }

    /// A room whose requests are answered in their order, as far as they need not wait.
    pub(super) fn open_in_order(server: Arc<BuiltinServer>, eras: Eras) -> Arc<Self> {
        Self::new(server, eras, true)
    }

    fn new(server: Arc<BuiltinServer>, eras: Eras, in_order: bool) -> Arc<Self> {
        let state = PeerState {
            eras,
            client: Value::Null,
            revision: None,
            // The legacy texts leave the choice to the server until the client sets one.
            level: LogLevel::Info,
            subscribed: BTreeSet::new(),
            listens: BTreeMap::new(),
            calls: HashMap::new(),
            questions: HashMap::new(),
            next_question: 0,
        };
        let room = Arc::new(Self { server, out: Outbox::default(), in_order, state: Mutex::new(state) });
        room.server.notifier.join(&room);
        room
    }

    /// Locks the state, for a few lines of memory work. A call that panicked ended itself, not the server, so poison is
    /// passed over.
    pub(super) fn state(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn handle(self: &Arc<Self>, message: &Message) {
        match message.kind() {
            MessageKind::Request(method) => self.handle_request(method, message),
            MessageKind::Notification(Method::Cancelled) => {
                if let Some(span) = message.params().request_id {
                    self.cancel(message.text(span));
                }
            }
            MessageKind::Notification(_) => {}
            MessageKind::Response => self.handle_reply(message),
        }
    }

    /// Cancels all that is going on: the client is gone.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.listens.clear();
        state.subscribed.clear();
        state.questions.clear();
        for (_, cancel) in state.calls.drain() {
            cancel.send_replace(true);
        }
    }

    fn handle_request(self: &Arc<Self>, method: Method, message: &Message) {
        let id = message.id().unwrap_or("null");
        if let Err(failure) = self.take_request(method, id, message) {
            self.answer(id, response(id, Err(failure)));
        }
    }

    /// Serves a request, or begins to. An error is its answer.
    fn take_request(self: &Arc<Self>, method: Method, id: &str, message: &Message) -> Result<(), CallFailure> {
        let params = RequestParams::read(message.params_text())?;
        let name = message.method().unwrap_or_default();
        let eras = self.state().eras;
        let caller = match eras {
            Eras::Modern if method == Method::Initialize && !params.claims_modern() => {
                return Err(params::wrong_version(params.protocol_version.unwrap_or_default()));
            }
            Eras::Modern => Some(CallingClient::read(&params.meta)?),
            Eras::Both if params.claims_modern() => Some(CallingClient::read(&params.meta)?),
            Eras::Both | Eras::Legacy => None,
        };
        match (method, &caller) {
            (Method::Listen, Some(_)) => self.attend(id, params.notifications.as_ref()),
            (method, Some(_)) if method.is_legacy_only() => Err(CallFailure::unknown_method(&name)),
            (Method::Initialize, None) => {
                let whole = message.params_text().and_then(|text| serde_json::from_str(text).ok());
                self.answer_with(id, self.introduce(whole.unwrap_or_default()));
                Ok(())
            }
            (Method::Ping, None) => {
                self.answer_with(id, json!({}));
                Ok(())
            }
            (Method::SetLevel, None) => {
                self.state().level = params::level(params.level.as_ref().unwrap_or(&Value::Null))?;
                self.answer_with(id, json!({}));
                Ok(())
            }
            (Method::ResourcesSubscribe | Method::ResourcesUnsubscribe, None) if self.server.has_resources() => {
                self.subscribe(method, &params)?;
                self.answer_with(id, json!({}));
                Ok(())
            }
            _ => self.begin(method, &name, id, params, caller),
        }
    }

    fn introduce(&self, params: Value) -> Value {
        let asked = params["protocolVersion"].as_str().and_then(Revision::named);
        let revision = asked.unwrap_or(Revision::NEWEST);
        let mut state = self.state();
        state.client = params;
        state.revision = Some(revision);
        state.eras = Eras::Legacy;
        self.server.introduction(revision.name())
    }

    fn subscribe(&self, method: Method, params: &RequestParams) -> Result<(), CallFailure> {
        let uri = RequestParams::string(&params.uri, "uri")?;
        let mut state = self.state();
        if method == Method::ResourcesUnsubscribe {
            state.subscribed.remove(uri);
            return Ok(());
        }
        if !self.server.can_watch(uri) {
            return Err(CallFailure::no_resource(uri));
        }
        if state.subscribed.len() >= MAX_WATCHED {
            return Err(CallFailure::invalid(format!("at most {MAX_WATCHED} resources can be watched")));
        }
        state.subscribed.insert(uri.to_owned());
        Ok(())
    }

    /// Begins a call: from here on it may be cancelled, and has to be answered.
    fn begin(
        self: &Arc<Self>,
        method: Method,
        name: &str,
        id: &str,
        mut params: RequestParams,
        caller: Option<CallingClient>,
    ) -> Result<(), CallFailure> {
        if !method.may_ask() {
            // The door has put none on it: it is the client's own word.
            params.meta.caller = None;
        }
        let (cancel, cancelled) = watch::channel(false);
        {
            let mut state = self.state();
            if state.calls.contains_key(id) || state.listens.contains_key(id) {
                return Err(CallFailure::error(INVALID_REQUEST, format!("request {id} is still in flight")));
            }
            if state.calls.len() >= MAX_CALLS {
                return Err(CallFailure::error(INTERNAL, "too many calls in flight; try again when some are answered"));
            }
            state.calls.insert(id.to_owned(), cancel);
        }
        let call = ServerCall::new(Arc::clone(self), own_number(id), params, caller, cancelled);
        let mut task = Box::pin(run(call, method, name.to_owned(), id.to_owned()));
        if self.in_order && task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return Ok(());
        }
        tokio::spawn(task);
        Ok(())
    }

    /// Ends a call or a listen for its client. One that is over, or never was, is none of our business.
    fn cancel(&self, id: &str) {
        let mut state = self.state();
        state.listens.remove(id);
        if let Some(cancel) = state.calls.remove(id) {
            cancel.send_replace(true);
        }
    }

    /// Answers a call, unless it was cancelled before.
    fn finish(&self, method: Method, call: &ServerCall, id: &str, outcome: Result<Value, CallFailure>) {
        if self.state().calls.remove(id).is_none() {
            return;
        }
        let answer = match &call.caller {
            None => response(id, outcome.map(|result| aged(self.marked(method, call, result)))),
            Some(_) => {
                let outcome = asked_or(outcome).map(|result| self.dressed(method, self.marked(method, call, result)));
                response(id, outcome.map_err(refitted))
            }
        };
        self.answer(id, answer);
    }

    /// A result with the id of its call. A list has none: it is kept, and shown to others.
    fn marked(&self, method: Method, call: &ServerCall, mut result: Value) -> Value {
        let is_own =
            matches!(method, Method::ToolsCall | Method::ResourcesRead | Method::PromptsGet | Method::Complete);
        if is_own && result.is_object() {
            result["_meta"]["correlation_id"] = call.correlation_id().to_string().into();
        }
        result
    }

    /// A result with what the modern era adds to it.
    fn dressed(&self, method: Method, mut result: Value) -> Value {
        if result.get("resultType").is_none() {
            result["resultType"] = "complete".into();
            if let Some(ttl) = self.server.keep_ms(method) {
                result["ttlMs"] = ttl.into();
                // What can be read may be somebody's own; the rest is the same for all.
                let private = matches!(method, Method::ResourcesRead | Method::ResourcesList);
                result["cacheScope"] = if private { "private" } else { "public" }.into();
            }
        }
        result["_meta"][modern::SERVER_INFO] = self.server.info();
        result
    }

    fn answer_with(&self, id: &str, result: Value) {
        self.answer(id, response(id, Ok(result)));
    }

    fn answer(&self, id: &str, answer: String) {
        self.out.answer(own_number(id), Bytes::from(answer));
    }

    // === Questions of the legacy era ===

    pub(super) fn ask(self: &Arc<Self>, question: &ClientQuestion) -> Result<PendingQuestion, CallFailure> {
        let (tx, reply) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if state.questions.len() >= MAX_QUESTIONS {
                return Err(CallFailure::trouble("too many questions wait for the client's answer"));
            }
            let id = state.next_question;
            state.next_question += 1;
            state.questions.insert(id, tx);
            id
        };
        let mut request = message(question.method, question.params.clone());
        request["id"] = id.into();
        self.out.change(None, Bytes::from(request.to_string()));
        Ok(PendingQuestion { room: Arc::clone(self), id, reply })
    }

    /// Takes back a question that nobody waits for any more, if it is still open.
    pub(super) fn withdraw(&self, id: u64) {
        let open = self.state().questions.remove(&id).is_some();
        if open {
            let note = message("notifications/cancelled", json!({"requestId": id}));
            self.out.change(None, Bytes::from(note.to_string()));
        }
    }

    /// Wakes the call that asked. Nobody else knows what the reply is to.
    fn handle_reply(&self, message: &Message) {
        let Some(id) = message.id().and_then(own_number) else { return };
        let Some(asker) = self.state().questions.remove(&id) else { return };
        let part = |span| serde_json::from_str::<Value>(message.text(span)).unwrap_or_default();
        let reply = match message.error_span() {
            Some(span) => {
                let error = part(span);
                Err(format!("{}: {}", error["code"], error["message"].as_str().unwrap_or_default()))
            }
            None => Ok(message.result_span().map(part).unwrap_or_default()),
        };
        let _ = asker.send(reply);
    }
}

/// Runs a call to its end, and puts it on record.
async fn run(call: ServerCall, method: Method, name: String, id: String) {
    let room = Arc::clone(&call.room);
    let began = Instant::now();
    let overdue = async {
        call.cancelled().await;
        tokio::time::sleep(TIDY_UP).await;
    };
    let work = PanicGuard(Box::pin(room.server.serve(method, &name, &call)));
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome.unwrap_or_else(|| Err(CallFailure::error(INTERNAL, "the server has a bug there; its log has more"))),
        () = overdue => Err(CallFailure::cancelled()),
    };
    let latency_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let said = match &outcome {
        _ if call.is_cancelled() => "cancelled",
        Ok(result) if result["isError"] == true => "tool_error",
        Ok(_) => "ok",
        Err(failure) => failure.outcome(),
    };
    let (server, correlation_id) = (room.server.name(), call.correlation_id());
    match room.server.known_tool(&call.params).filter(|_| method == Method::ToolsCall) {
        Some(tool) => tracing::info!(server, tool, %correlation_id, latency_ms, outcome = said, "Tool called"),
        None => {
            tracing::debug!(server, method = method.name(), %correlation_id, latency_ms, outcome = said, "Request served");
        }
    }
    room.finish(method, &call, &id, outcome);
}

/// A future whose panic is `None`: a bug in one call ends that call, not the connection.
struct PanicGuard<F>(Pin<Box<F>>);

impl<F: Future> Future for PanicGuard<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Self::Output> {
        // After a panic it is not polled again, so nobody sees what it left half done.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
            Err(_) => Poll::Ready(None),
        }
    }
}

/// A result as the legacy era knows it: its `structuredContent` is an object, and anything else goes into a text.
fn aged(mut result: Value) -> Value {
    let odd = result.get("structuredContent").is_some_and(|value| !value.is_object());
    if let Some(value) = odd.then(|| result["structuredContent"].take()) {
        result.as_object_mut().map(|members| members.remove("structuredContent"));
        if result["content"].as_array().is_some_and(Vec::is_empty) {
            result["content"] = json!([{"type": "text", "text": value.to_string()}]);
        }
    }
    result
}

/// Questions are a result.
fn asked_or(outcome: Result<Value, CallFailure>) -> Result<Value, CallFailure> {
    match outcome {
        Err(CallFailure(reply::FailureKind::Asks(result))) => Ok(result),
        outcome => outcome,
    }
}

/// A failure as the modern era knows it: there is no code of its own for a resource that is missing.
fn refitted(failure: CallFailure) -> CallFailure {
    match failure.0 {
        reply::FailureKind::Error { code: NO_RESOURCE, message, data } => CallFailure::invalid(message).with_data(data),
        kind => CallFailure(kind),
    }
}

/// Builds a request or a notification; `Null` stands for no params.
pub(super) fn message(method: &str, params: Value) -> Value {
    match params {
        Value::Null => json!({"jsonrpc": "2.0", "method": method}),
        params => json!({"jsonrpc": "2.0", "method": method, "params": params}),
    }
}

/// Writes a response. The id goes back as it was written.
fn response(id: &str, outcome: Result<Value, CallFailure>) -> String {
    let (name, value) = match outcome {
        Ok(result) => ("result", result),
        Err(CallFailure(kind)) => match kind {
            reply::FailureKind::Error { code, message, data } => {
                let mut error = json!({"code": code, "message": message});
                if !data.is_null() {
                    error["data"] = data;
                }
                ("error", error)
            }
            // Only tools have trouble that a model reads, and only they and their like may ask.
            reply::FailureKind::Trouble(why) => ("error", json!({"code": INTERNAL, "message": why})),
            reply::FailureKind::Asks(_) | reply::FailureKind::Cancelled => {
                ("error", json!({"code": INTERNAL, "message": "cancelled"}))
            }
        },
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{name}":{value}}}"#)
}
