//! The modern era (2026-07-28) of the demo server: what each request must say of its client, what is added to each
//! result, and who listens for changes. The tools and what can be read are the same in both eras.
//!
//! A question is a result here, and the client comes back with the answer. What it has answered so far is in the state
//! that it brings along: nothing of a call is kept once it has its result.

use std::collections::{BTreeSet, hash_map::RandomState};
use std::hash::BuildHasher;
use std::io;

use serde_json::{Map, Value, json};

use super::{Failure, Server, level};

pub(super) const VERSION: &str = "2026-07-28";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// What a request says of its client.
pub(super) struct Caller {
    capabilities: Value,
    info: Value,
    /// Index into `LEVELS`; without one it wants no notes.
    pub(super) level: Option<usize>,
}

/// A client that wants to hear of changes, by its `subscriptions/listen`.
pub(super) struct Listen {
    /// The id of its request, as everything that it hears is tagged.
    id: Value,
    /// Of `tools`, `prompts` and `resources`.
    lists: BTreeSet<&'static str>,
    uris: BTreeSet<String>,
}

/// One question to the client, under the key that its answer comes back with.
pub(super) struct Question {
    pub(super) key: &'static str,
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// What is in the state that a client brings back: answers, by their keys.
type Answers = Map<String, Value>;

/// How long a client may keep what it was told. Every list stays the same, and changes are told.
const TTL_MS: u32 = 60_000;

const LISTS: [(&str, &str); 3] =
    [("tools", "toolsListChanged"), ("prompts", "promptsListChanged"), ("resources", "resourcesListChanged")];

/// Whether a request says that it is of this era.
pub(super) fn is_claimed(params: &Value) -> bool {
    params["_meta"].get(PROTOCOL_VERSION).is_some()
}

/// Whether the era has no such method any more.
pub(super) fn is_gone(method: &str) -> bool {
    let gone = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    gone.contains(&method)
}

/// Refuses what is of the other era, and says which is spoken here.
pub(super) fn wrong_version(requested: &Value) -> Failure {
    let data = json!({"supported": [VERSION], "requested": requested});
    Failure { data, ..Failure::new(-32022, "unsupported protocol version") }
}

pub(super) fn discovery(mut introduction: Value) -> Value {
    json!({
        "supportedVersions": [VERSION],
        "capabilities": introduction["capabilities"].take(),
        "instructions": introduction["instructions"].take(),
    })
}

/// A result with what the era adds to it.
pub(super) fn dressed(method: &str, mut result: Value) -> Value {
    if result.get("resultType").is_none() {
        result["resultType"] = "complete".into();
        if method.ends_with("/list") || matches!(method, "server/discover" | "resources/read") {
            result["ttlMs"] = TTL_MS.into();
            result["cacheScope"] = "public".into();
        }
    }
    result["_meta"][SERVER_INFO] = super::info();
    result
}

/// A failure as the era knows it: there is no code of its own for a resource that is missing.
pub(super) fn refitted(failure: Failure) -> Failure {
    match failure.code {
        -32002 => Failure { code: -32602, ..failure },
        _ => failure,
    }
}

// === impl Caller ===

impl Caller {
    /// Reads what a request must say, and says what is missing.
    pub(super) fn read(params: &Value) -> Result<Self, Failure> {
        let meta = &params["_meta"];
        let missing = |name: &str| Failure::invalid(format!("params._meta must have {name:?}"));
        let version = meta[PROTOCOL_VERSION].as_str().ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let capabilities = &meta[CAPABILITIES];
        if !capabilities.is_object() {
            return Err(missing(CAPABILITIES));
        }
        let level = match meta.get(LOG_LEVEL) {
            None => None,
            Some(name) => {
                let known = name.as_str().and_then(level);
                Some(known.ok_or_else(|| Failure::invalid("unknown level"))?)
            }
        };
        if version != VERSION {
            return Err(wrong_version(&version.into()));
        }
        Ok(Self { capabilities: capabilities.clone(), info: meta[CLIENT_INFO].clone(), level })
    }

    /// The client in the words of an `initialize`.
    pub(super) fn introduction(&self) -> Value {
        json!({"protocolVersion": VERSION, "capabilities": self.capabilities, "clientInfo": self.info})
    }

    /// Asks what is not answered yet. Returns the answers once they are all there.
    pub(super) fn ask(&self, server: &Server, params: &Value, questions: Vec<Question>) -> Result<Vec<Value>, Failed> {
        for question in &questions {
            self.check(question)?;
        }
        let mut answers = match &params["requestState"] {
            Value::Null => Answers::new(),
            state => server.open(params, state).ok_or_else(|| Failure::invalid("this requestState is not ours"))?,
        };
        for Question { key, .. } in &questions {
            // An answer is an object. What nobody asked for is passed over.
            if let Some(answer) = params["inputResponses"].get(key).filter(|answer| answer.is_object()) {
                answers.insert((*key).to_owned(), answer.clone());
            }
        }
        let open: Map<_, _> = questions
            .iter()
            .filter(|question| !answers.contains_key(question.key))
            .map(|question| (question.key.to_owned(), question.as_input_request()))
            .collect();
        if open.is_empty() {
            return Ok(questions.iter().filter_map(|question| answers.remove(question.key)).collect());
        }
        let state = server.seal(params, &answers);
        Err(Failed::Asks(json!({"resultType": "input_required", "inputRequests": open, "requestState": state})))
    }

    /// Refuses to ask what the client cannot answer.
    fn check(&self, question: &Question) -> Result<(), Failure> {
        let elicitation = self.capabilities.get("elicitation").and_then(Value::as_object);
        // An empty object means forms.
        let form = elicitation.is_some_and(|modes| modes.is_empty() || modes.contains_key("form"));
        let (able, required) = match question.method {
            "sampling/createMessage" => (self.capabilities.get("sampling").is_some(), json!({"sampling": {}})),
            "roots/list" => (self.capabilities.get("roots").is_some(), json!({"roots": {}})),
            _ if question.params["mode"] == "url" => {
                let url = elicitation.is_some_and(|modes| modes.contains_key("url"));
                (url, json!({"elicitation": {"url": {}}}))
            }
            _ => (form, json!({"elicitation": {}})),
        };
        if able {
            return Ok(());
        }
        let data = json!({"requiredCapabilities": required});
        Err(Failure { data, ..Failure::new(-32021, "the client cannot be asked this") })
    }
}

/// Why a question has no answer yet.
pub(super) enum Failed {
    /// It is put to the client, by this result.
    Asks(Value),
    Refused(Failure),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
    }
}

// === impl Question ===

impl Question {
    fn as_input_request(&self) -> Value {
        match &self.params {
            Value::Null => json!({"method": self.method}),
            params => json!({"method": self.method, "params": params}),
        }
    }
}

// === impl Server ===

impl Server {
    /// Opens a listen: what it will hear of is said first.
    pub(super) fn attend(&self, id: Value, params: &Value) -> io::Result<()> {
        let Some(wanted) = params["notifications"].as_object() else {
            return self.respond(&id, Err(Failure::invalid("notifications is missing")));
        };
        let lists = LISTS.into_iter().filter(|(_, flag)| wanted.get(*flag) == Some(&Value::Bool(true)));
        let lists: BTreeSet<_> = lists.map(|(name, _)| name).collect();
        let uris = wanted.get("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        let known = |uri: &str| super::shelf::uri(&json!({"uri": uri})).is_ok();
        let uris: BTreeSet<_> = uris.filter_map(Value::as_str).filter(|uri| known(uri)).map(str::to_owned).collect();
        let mut honoured = Map::new();
        for (_, flag) in LISTS.into_iter().filter(|(name, _)| lists.contains(name)) {
            honoured.insert(flag.to_owned(), true.into());
        }
        if !uris.is_empty() {
            honoured.insert("resourceSubscriptions".to_owned(), json!(uris));
        }
        let listen = Listen { id: id.clone(), lists, uris };
        let note = listen.tagged(json!({"notifications": honoured}));
        // Under the lock, so that no change comes before it.
        let mut state = self.state();
        self.notify("notifications/subscriptions/acknowledged", note)?;
        state.listens.insert(id.to_string(), listen);
        Ok(())
    }

    /// Tells those who listen that a list has changed. Returns how many they are.
    pub(super) fn tell_changed(&self, what: &str) -> io::Result<usize> {
        let state = self.state();
        let listens = state.listens.values().filter(|listen| listen.lists.contains(what));
        let method = format!("notifications/{what}/list_changed");
        listens
            .map(|listen| self.notify(&method, listen.tagged(json!({}))))
            .try_fold(0, |sum, told| told.map(|()| sum + 1))
    }

    /// Tells those who watch a resource that it was updated. Returns how many they are.
    pub(super) fn tell_updated(&self, uri: &str) -> io::Result<usize> {
        let state = self.state();
        let listens = state.listens.values().filter(|listen| listen.uris.contains(uri));
        let note = |listen: &Listen| listen.tagged(json!({"uri": uri}));
        let told = listens.map(|listen| self.notify("notifications/resources/updated", note(listen)));
        told.into_iter().try_fold(0, |sum, told| told.map(|()| sum + 1))
    }

    /// The resources that somebody watches.
    pub(super) fn watched(&self) -> BTreeSet<String> {
        self.state().listens.values().flat_map(|listen| listen.uris.iter().cloned()).collect()
    }

    /// Makes the state that a client brings back: good for the same request, at this process.
    fn seal(&self, params: &Value, answers: &Answers) -> String {
        let text = Value::Object(answers.clone()).to_string();
        format!("demo.{:016x}.{text}", self.seal_of(params, &text))
    }

    fn open(&self, params: &Value, state: &Value) -> Option<Answers> {
        let (seal, text) = state.as_str()?.strip_prefix("demo.")?.split_once('.')?;
        let good = format!("{:016x}", self.seal_of(params, text)) == seal;
        serde_json::from_str(text).ok().filter(|_| good)
    }

    fn seal_of(&self, params: &Value, text: &str) -> u64 {
        self.seal.hash_one((params["name"].to_string(), params["arguments"].to_string(), text))
    }
}

/// The secret of a process.
pub(super) fn new_seal() -> RandomState {
    RandomState::new()
}

// === impl Listen ===

impl Listen {
    fn tagged(&self, mut params: Value) -> Value {
        params["_meta"][SUBSCRIPTION_ID] = self.id.clone();
        params
    }
}
