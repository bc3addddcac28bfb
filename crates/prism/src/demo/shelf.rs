//! What can be read: resources, the prompt, and the completion of their arguments.

use std::sync::{Arc, atomic::Ordering};

use serde_json::{Map, Value, json};

use super::DemoState;
use prism_mcp::kit::{CallFailure, CompletionRequest, Completions, Prompts, Resources, ServerCall};

pub(super) const COUNTER: &str = "demo://counter";
const HELLO: &str = "demo://hello";
const ITEM: &str = "demo://item/";
const ITEM_TEMPLATE: &str = "demo://item/{id}";

/// The completions we know: names to greet, and items to read.
const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Edsger", "Grace"];
const ITEMS: [&str; 3] = ["1", "2", "10"];

pub(super) struct DemoResources(pub(super) Arc<DemoState>);

impl Resources for DemoResources {
    const LIST_CHANGES: bool = true;
    const KEEP_MS: u32 = 60_000;

    async fn list(&self, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        let text = "text/plain";
        Ok(vec![
            json!({"uri": HELLO, "name": "hello", "description": "A greeting.", "mimeType": text}),
            json!({"uri": COUNTER, "name": "counter", "description": "How often it was touched.", "mimeType": text}),
        ])
    }

    fn templates(&self) -> Vec<Value> {
        vec![json!({
            "uriTemplate": ITEM_TEMPLATE, "name": "item", "description": "One of many.", "mimeType": "text/plain",
        })]
    }

    async fn read(&self, uri: &str, _: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        let text = match uri {
            HELLO => "Hello from prism-demo.".to_owned(),
            COUNTER => self.0.counter.load(Ordering::Relaxed).to_string(),
            item if is_item(item) => format!("This is item {}.", item.trim_start_matches(ITEM)),
            _ => return Err(CallFailure::no_resource(uri)),
        };
        Ok(vec![json!({"uri": uri, "mimeType": "text/plain", "text": text})])
    }

    fn can_watch(&self, uri: &str) -> bool {
        is_item(uri) || uri == HELLO || uri == COUNTER
    }
}

fn is_item(uri: &str) -> bool {
    uri.strip_prefix(ITEM).is_some_and(|id| !id.is_empty())
}

pub(super) struct DemoPrompts;

impl Prompts for DemoPrompts {
    const LIST_CHANGES: bool = true;

    fn list(&self) -> Vec<Value> {
        vec![json!({
            "name": "greet",
            "description": "Greets someone.",
            "arguments": [{"name": "name", "description": "Whom to greet.", "required": true}],
        })]
    }

    async fn get(&self, name: &str, arguments: Map<String, Value>, _: &ServerCall) -> Result<Value, CallFailure> {
        if name != "greet" {
            return Err(CallFailure::invalid("unknown prompt"));
        }
        let Some(name) = arguments.get("name").and_then(Value::as_str) else {
            return Err(CallFailure::invalid("argument name is missing"));
        };
        Ok(json!({
            "description": "Greets someone.",
            "messages": [{"role": "user", "content": {"type": "text", "text": format!("Please greet {name}.")}}],
        }))
    }
}

pub(super) struct DemoCompletions;

impl Completions for DemoCompletions {
    async fn complete(&self, asked: &CompletionRequest) -> Result<Vec<String>, CallFailure> {
        let known: &[&str] = match (asked.is_prompt, asked.of.as_str(), asked.argument.as_str()) {
            (true, "greet", "name") => &NAMES,
            (false, ITEM_TEMPLATE, "id") => &ITEMS,
            _ => return Err(CallFailure::invalid("nothing to complete there")),
        };
        let alike = known.iter().filter(|value| value.starts_with(&asked.begun));
        Ok(alike.map(|value| (*value).to_owned()).collect())
    }
}
