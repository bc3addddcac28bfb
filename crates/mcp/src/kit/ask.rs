//! Questions to the client.
//!
//! In the legacy era a question is a request of ours, and its answer is waited for. In the modern one it is the result of
//! the call, and the client calls again with the answer. What it has answered so far is in the state that it brings
//! along, sealed: nothing of a call is kept once it has its result.

use std::sync::{Arc, PoisonError};

use prism_core::mcp::modern;
use serde_json::{Map, Value, json};

use super::{
    CallFailure, ServerCall,
    params::{CallingClient, RequestParams},
    reply::FailureKind,
    room::Peer,
};

/// One question, under the key that its answer comes back with.
#[derive(Clone, Debug)]
pub struct ClientQuestion {
    pub key: &'static str,
    pub method: &'static str,
    /// `Null` for none.
    pub params: Value,
}

/// Answers, by their keys.
pub(super) type Answers = Map<String, Value>;

impl ServerCall {
    /// Asks the client. Legacy: a request, whose answer is awaited. Modern: if the client brought the answer under `key`
    /// it is returned at once, else the call ends with the question (pass the `Err` on with `?`) and runs again from its
    /// beginning when the client comes back.
    pub async fn ask(&self, key: &'static str, method: &'static str, params: Value) -> Result<Value, CallFailure> {
        let mut answers = self.ask_all(vec![ClientQuestion { key, method, params }]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Asks several things at once. The answers are in the order of the questions.
    pub async fn ask_all(&self, questions: Vec<ClientQuestion>) -> Result<Vec<Value>, CallFailure> {
        if self.caller.is_none() {
            let client = self.client();
            if let Some(required) = questions.iter().find_map(|question| question.lacks(&client["capabilities"])) {
                let why = format!("the client cannot be asked this: it does not declare {required}");
                return Err(CallFailure::trouble(why));
            }
        }
        self.insist(questions).await
    }

    /// Asks without a look at what the client can do, in the legacy era: to see how it refuses.
    pub async fn insist(&self, questions: Vec<ClientQuestion>) -> Result<Vec<Value>, CallFailure> {
        match &self.caller {
            Some(caller) => self.answered(caller, questions),
            None => self.request(questions).await,
        }
    }

    async fn request(&self, questions: Vec<ClientQuestion>) -> Result<Vec<Value>, CallFailure> {
        // All are put before the first is waited for. What is still open when this ends is taken back, by their drop.
        let mut open = Vec::new();
        for question in &questions {
            open.push(self.room.ask(question)?);
        }
        let mut answers = Vec::new();
        for asked in &mut open {
            let reply = tokio::select! {
                biased;
                () = self.cancelled() => return Err(CallFailure::cancelled()),
                reply = &mut asked.reply => reply.map_err(|_| CallFailure::cancelled())?,
            };
            answers.push(reply.map_err(CallFailure::trouble)?);
        }
        Ok(answers)
    }

    fn answered(&self, caller: &CallingClient, questions: Vec<ClientQuestion>) -> Result<Vec<Value>, CallFailure> {
        if let Some(required) = questions.iter().find_map(|question| question.lacks(&caller.capabilities)) {
            let data = json!({"requiredCapabilities": required});
            return Err(
                CallFailure::error(modern::MISSING_CAPABILITY, "the client cannot be asked this").with_data(data)
            );
        }
        let brought = match &self.params.request_state {
            None => Answers::new(),
            Some(state) => self.opened(state).ok_or_else(|| CallFailure::invalid("this requestState is not ours"))?,
        };
        // With those to earlier questions of this run: what the client has answered once it is not asked again.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, answer) in brought {
            answers.entry(key).or_insert(answer);
        }
        for ClientQuestion { key, .. } in &questions {
            // An answer is an object. What nobody asked for is passed over.
            if let Some(answer) = self.params.input_responses.get(*key).filter(|answer| answer.is_object()) {
                answers.insert((*key).to_owned(), answer.clone());
            }
        }
        let open: Map<_, _> = questions
            .iter()
            .filter(|question| !answers.contains_key(question.key))
            .map(|question| (question.key.to_owned(), question.as_input_request()))
            .collect();
        if open.is_empty() {
            return Ok(questions.iter().filter_map(|question| answers.get(question.key).cloned()).collect());
        }
        let state = self.sealed(&answers);
        Err(CallFailure(FailureKind::Asks(
            json!({"resultType": "input_required", "inputRequests": open, "requestState": state}),
        )))
    }

    /// Makes the state that a client brings back: good for the same request, at this server.
    fn sealed(&self, answers: &Answers) -> String {
        let text = Value::Object(answers.clone()).to_string();
        format!("kit.{:016x}.{text}", self.seal_of(&text))
    }

    fn opened(&self, state: &Value) -> Option<Answers> {
        let (seal, text) = state.as_str()?.strip_prefix("kit.")?.split_once('.')?;
        let good = format!("{:016x}", self.seal_of(text)) == seal;
        serde_json::from_str(text).ok().filter(|_| good)
    }

    fn seal_of(&self, text: &str) -> u64 {
        let RequestParams { name, uri, .. } = &self.params;
        // Parsed, so that it does not matter how a client writes the same arguments.
        let arguments: Option<Value> = serde_json::from_str(self.params.arguments()).ok();
        self.room.server.seal((format!("{name:?} {uri:?} {arguments:?}"), text))
    }
}

impl ClientQuestion {
    /// What the client lacks to answer it.
    fn lacks(&self, capabilities: &Value) -> Option<Value> {
        let elicitation = capabilities.get("elicitation").and_then(Value::as_object);
        let (able, required) = match self.method {
            "ping" => (true, Value::Null),
            "sampling/createMessage" => (capabilities.get("sampling").is_some(), json!({"sampling": {}})),
            "roots/list" => (capabilities.get("roots").is_some(), json!({"roots": {}})),
            _ if self.params["mode"] == "url" => {
                let url = elicitation.is_some_and(|modes| modes.contains_key("url"));
                (url, json!({"elicitation": {"url": {}}}))
            }
            _ => {
                // An empty object means forms.
                let form = elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
                (form, json!({"elicitation": {}}))
            }
        };
        (!able).then_some(required)
    }

    fn as_input_request(&self) -> Value {
        match &self.params {
            Value::Null => json!({"method": self.method}),
            params => json!({"method": self.method, "params": params}),
        }
    }
}

/// A question of the legacy era whose answer is waited for. Dropped, it is taken back.
pub(super) struct PendingQuestion {
    pub(super) room: Arc<Peer>,
    pub(super) id: u64,
    /// The result, or the client's error in words.
    pub(super) reply: tokio::sync::oneshot::Receiver<Result<Value, String>>,
}

impl Drop for PendingQuestion {
    fn drop(&mut self) {
        self.room.withdraw(self.id);
    }
}
