//! What can be read: resources, the prompt, and the completion of their arguments. Pure functions from params
//! to result; the connection and what changes over time stay in `demo.rs`.

use serde_json::{Value, json};

use super::Failure;

pub(super) const COUNTER: &str = "demo://counter";
const HELLO: &str = "demo://hello";
const ITEM: &str = "demo://item/";
const ITEM_TEMPLATE: &str = "demo://item/{id}";

/// The completions we know: names to greet, and items to read.
const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Edsger", "Grace"];
const ITEMS: [&str; 3] = ["1", "2", "10"];

pub(super) fn resources() -> Value {
    json!({"resources": [
        {"uri": HELLO, "name": "hello", "description": "A greeting.", "mimeType": "text/plain"},
        {"uri": COUNTER, "name": "counter", "description": "How often it was touched.", "mimeType": "text/plain"},
    ]})
}

pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [
        {"uriTemplate": ITEM_TEMPLATE, "name": "item", "description": "One of many.", "mimeType": "text/plain"},
    ]})
}

pub(super) fn read(params: &Value, counter: u64) -> Result<Value, Failure> {
    let uri = uri(params)?;
    let text = match uri {
        HELLO => "Hello from prism-demo.".to_owned(),
        COUNTER => counter.to_string(),
        // `uri` lets nothing else pass.
        item => format!("This is item {}.", item.trim_start_matches(ITEM)),
    };
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

/// Returns the URI in `params`, if it is one of ours.
pub(super) fn uri(params: &Value) -> Result<&str, Failure> {
    let uri = params["uri"].as_str().ok_or_else(|| Failure::invalid("uri is missing"))?;
    let item = uri.strip_prefix(ITEM).is_some_and(|id| !id.is_empty());
    if item || uri == HELLO || uri == COUNTER {
        return Ok(uri);
    }
    // Legacy code for it; from 2026-07-28 on it would be -32602.
    Err(Failure { data: json!({"uri": uri}), ..Failure::new(-32002, "resource not found") })
}

pub(super) fn prompts() -> Value {
    json!({"prompts": [{
        "name": "greet",
        "description": "Greets someone.",
        "arguments": [{"name": "name", "description": "Whom to greet.", "required": true}],
    }]})
}

pub(super) fn prompt(params: &Value) -> Result<Value, Failure> {
    if params["name"] != "greet" {
        return Err(Failure::invalid("unknown prompt"));
    }
    let Some(name) = params["arguments"]["name"].as_str() else {
        return Err(Failure::invalid("argument name is missing"));
    };
    Ok(json!({
        "description": "Greets someone.",
        "messages": [{"role": "user", "content": {"type": "text", "text": format!("Please greet {name}.")}}],
    }))
}

pub(super) fn complete(params: &Value) -> Result<Value, Failure> {
    let (reference, argument) = (&params["ref"], &params["argument"]);
    let known: &[&str] = match (reference["type"].as_str(), argument["name"].as_str()) {
        (Some("ref/prompt"), Some("name")) if reference["name"] == "greet" => &NAMES,
        (Some("ref/resource"), Some("id")) if reference["uri"] == ITEM_TEMPLATE => &ITEMS,
        _ => return Err(Failure::invalid("nothing to complete there")),
    };
    let begun = argument["value"].as_str().unwrap_or_default();
    let values: Vec<_> = known.iter().filter(|value| value.starts_with(begun)).collect();
    Ok(json!({"completion": {"total": values.len(), "values": values, "hasMore": false}}))
}
