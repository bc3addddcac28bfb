//! What a server may offer besides tools: resources, prompts, and completions of their arguments.

use std::{future::Future, pin::Pin};

use serde_json::{Map, Value, json};

use super::{CallFailure, ServerCall};

/// Things that can be read. Entries and contents are objects as the protocol has them.
pub trait Resources: Send + Sync + 'static {
    /// Whether the list changes over time; its owner tells so through a [`super::ChangeNotifier`].
    const LIST_CHANGES: bool = false;
    /// How long a client may keep what it has read.
    const KEEP_MS: u32 = 0;

    fn list(&self, call: &ServerCall) -> impl Future<Output = Result<Vec<Value>, CallFailure>> + Send;

    fn templates(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Reads a resource: its `contents`. [`CallFailure::no_resource`] if there is none of that name.
    fn read(&self, uri: &str, call: &ServerCall) -> impl Future<Output = Result<Vec<Value>, CallFailure>> + Send;

    /// Whether updates of this resource are told. It need not exist yet.
    fn can_watch(&self, _uri: &str) -> bool {
        false
    }
}

/// Texts that a client offers to its user.
pub trait Prompts: Send + Sync + 'static {
    const LIST_CHANGES: bool = false;

    fn list(&self) -> Vec<Value>;

    /// Fills in a prompt: an object with `messages`. [`CallFailure::invalid`] if there is none of that name.
    fn get(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        call: &ServerCall,
    ) -> impl Future<Output = Result<Value, CallFailure>> + Send;
}

/// Suggestions for an argument of a prompt or of a resource's template.
pub trait Completions: Send + Sync + 'static {
    /// Returns what the argument may become, the best first.
    fn complete(&self, asked: &CompletionRequest) -> impl Future<Output = Result<Vec<String>, CallFailure>> + Send;
}

/// What is to be completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletionRequest {
    /// The prompt's name, or the template's URI.
    pub of: String,
    pub is_prompt: bool,
    pub argument: String,
    /// What was typed so far.
    pub begun: String,
    /// The arguments that are known already.
    pub known: Map<String, Value>,
}

/// The most suggestions that the protocol lets through at once. The rest is counted, not sent.
const MAX_SUGGESTIONS: usize = 100;

type Soon<'a, T> = Pin<Box<dyn Future<Output = Result<T, CallFailure>> + Send + 'a>>;

pub(super) trait AnyResources: Send + Sync {
    fn list_changes(&self) -> bool;
    fn keep_ms(&self) -> u32;
    fn list<'a>(&'a self, call: &'a ServerCall) -> Soon<'a, Vec<Value>>;
    fn templates(&self) -> Vec<Value>;
    fn read<'a>(&'a self, uri: &'a str, call: &'a ServerCall) -> Soon<'a, Vec<Value>>;
    fn can_watch(&self, uri: &str) -> bool;
}

pub(super) trait AnyPrompts: Send + Sync {
    fn list_changes(&self) -> bool;
    fn list(&self) -> Vec<Value>;
    fn get<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, call: &'a ServerCall) -> Soon<'a, Value>;
}

pub(super) trait AnyCompletions: Send + Sync {
    fn complete<'a>(&'a self, asked: &'a CompletionRequest) -> Soon<'a, Vec<String>>;
}

impl<T: Resources> AnyResources for T {
    fn list_changes(&self) -> bool {
        T::LIST_CHANGES
    }

    fn keep_ms(&self) -> u32 {
        T::KEEP_MS
    }

    fn list<'a>(&'a self, call: &'a ServerCall) -> Soon<'a, Vec<Value>> {
        Box::pin(Resources::list(self, call))
    }

    fn templates(&self) -> Vec<Value> {
        Resources::templates(self)
    }

    fn read<'a>(&'a self, uri: &'a str, call: &'a ServerCall) -> Soon<'a, Vec<Value>> {
        Box::pin(Resources::read(self, uri, call))
    }

    fn can_watch(&self, uri: &str) -> bool {
        Resources::can_watch(self, uri)
    }
}

impl<T: Prompts> AnyPrompts for T {
    fn list_changes(&self) -> bool {
        T::LIST_CHANGES
    }

    fn list(&self) -> Vec<Value> {
        Prompts::list(self)
    }

    fn get<'a>(&'a self, name: &'a str, arguments: Map<String, Value>, call: &'a ServerCall) -> Soon<'a, Value> {
        Box::pin(Prompts::get(self, name, arguments, call))
    }
}

impl<T: Completions> AnyCompletions for T {
    fn complete<'a>(&'a self, asked: &'a CompletionRequest) -> Soon<'a, Vec<String>> {
        Box::pin(Completions::complete(self, asked))
    }
}

impl CompletionRequest {
    pub(super) fn read(params: &super::params::RequestParams) -> Result<Self, CallFailure> {
        let none = Value::Null;
        let (reference, argument) =
            (params.reference.as_ref().unwrap_or(&none), params.argument.as_ref().unwrap_or(&none));
        let (is_prompt, of) = match reference["type"].as_str() {
            Some("ref/prompt") => (true, &reference["name"]),
            Some("ref/resource") => (false, &reference["uri"]),
            _ => return Err(CallFailure::invalid("ref.type must be \"ref/prompt\" or \"ref/resource\"")),
        };
        let text = |value: &Value, name: &str| {
            let text = value.as_str().map(str::to_owned);
            text.ok_or_else(|| CallFailure::invalid(format!("{name} is missing, or no string")))
        };
        let known = params.context.as_ref().and_then(|context| context["arguments"].as_object());
        Ok(Self {
            of: text(of, if is_prompt { "ref.name" } else { "ref.uri" })?,
            is_prompt,
            argument: text(&argument["name"], "argument.name")?,
            begun: argument["value"].as_str().unwrap_or_default().to_owned(),
            known: known.cloned().unwrap_or_default(),
        })
    }

    pub(super) fn result(mut values: Vec<String>) -> Value {
        let total = values.len();
        values.truncate(MAX_SUGGESTIONS);
        json!({"completion": {"values": values, "total": total, "hasMore": total > MAX_SUGGESTIONS}})
    }
}
