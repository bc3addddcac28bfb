//! What of other programs' JSON is looked at, as types: messages, tools, schemas and results of MCP servers. They are foreign:
//! what is missing, or is not what it should be, is at its default, as nobody here can do anything about it, and what is not
//! looked at is passed on as it came, in the `Value` that these are read from.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Reads what fits, and takes what does not for missing.
pub(crate) fn lenient<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(from: D) -> Result<T, D::Error> {
    Value::deserialize(from).map(|value| T::deserialize(value).unwrap_or_default())
}

/// Tells a member that is `null` from one that is missing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Something of another program's that is read leniently.
pub(crate) trait Foreign: Default + DeserializeOwned {
    /// Reads what is looked at; what is no object has nothing of it.
    fn of(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_default()
    }
}

/// A JSON-RPC message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenMessage {
    #[serde(deserialize_with = "present")]
    pub(crate) id: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) method: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) params: SeenParams,
    #[serde(deserialize_with = "lenient")]
    pub(crate) error: Option<SeenError>,
}

/// The parameters of the notifications that are looked at: progress, log notes, and what comes on a listen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenParams {
    #[serde(deserialize_with = "present")]
    pub(crate) progress: Option<Value>,
    #[serde(rename = "progressToken")]
    pub(crate) progress_token: Value,
    #[serde(deserialize_with = "present")]
    pub(crate) total: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(crate) level: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) logger: Option<String>,
    /// What a log note says, which may be anything.
    pub(crate) data: Value,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(crate) meta: SeenMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenMeta {
    /// Prism's own (N-05).
    #[serde(deserialize_with = "lenient")]
    pub(crate) correlation_id: Option<String>,
    /// The listen that a notification belongs to (2026-07-28).
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub(crate) subscription: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenError {
    #[serde(deserialize_with = "present")]
    pub(crate) code: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: String,
}

/// A tool, as a server lists it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListedTool {
    #[serde(deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) description: Option<String>,
    /// To the letter: references lead to all places of it.
    #[serde(rename = "inputSchema")]
    pub(crate) input_schema: Value,
}

/// A JSON Schema, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SchemaPart {
    #[serde(rename = "$ref", deserialize_with = "lenient")]
    pub(crate) reference: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: SchemaKind,
    #[serde(deserialize_with = "lenient")]
    pub(crate) title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) description: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(crate) default: Option<Value>,
    /// Parts of it stay as they are: each is read by itself, so that a bad one spoils no other.
    #[serde(deserialize_with = "lenient")]
    pub(crate) properties: Option<Map<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    required: Vec<Value>,
    #[serde(rename = "additionalProperties")]
    pub(crate) additional: Value,
    #[serde(rename = "enum", deserialize_with = "lenient")]
    pub(crate) choices: Option<Vec<Value>>,
    pub(crate) items: Value,
    #[serde(rename = "anyOf", deserialize_with = "lenient")]
    pub(crate) any_of: Vec<Value>,
    #[serde(rename = "oneOf", deserialize_with = "lenient")]
    pub(crate) one_of: Option<Vec<Value>>,
    /// The one value that it may have.
    #[serde(rename = "const")]
    pub(crate) constant: Value,
}

/// What a schema says of the type.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum SchemaKind {
    One(String),
    Several(Vec<Value>),
    #[default]
    Unsaid,
}

/// The result of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolResult {
    #[serde(rename = "isError", deserialize_with = "lenient")]
    pub(crate) is_error: bool,
    #[serde(deserialize_with = "lenient")]
    pub(crate) content: Vec<Value>,
    #[serde(rename = "structuredContent", deserialize_with = "present")]
    pub(crate) structured: Option<Value>,
}

/// One block of a result's content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ContentBlock {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) text: String,
    #[serde(rename = "mimeType", deserialize_with = "lenient")]
    pub(crate) mime: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) data: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) name: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) uri: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) resource: EmbeddedResource,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EmbeddedResource {
    #[serde(deserialize_with = "lenient")]
    pub(crate) uri: String,
    #[serde(rename = "mimeType", deserialize_with = "lenient")]
    pub(crate) mime: String,
    #[serde(deserialize_with = "lenient")]
    pub(crate) text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(crate) blob: Option<String>,
}

/// A form that a server wants filled in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AskedForm {
    #[serde(deserialize_with = "lenient")]
    pub(crate) message: String,
    #[serde(rename = "requestedSchema", deserialize_with = "lenient")]
    pub(crate) schema: SchemaPart,
}

/// What a server says that it can do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeenCapabilities {
    #[serde(deserialize_with = "lenient")]
    pub(crate) tools: ListCapability,
    #[serde(deserialize_with = "lenient")]
    pub(crate) prompts: ListCapability,
    #[serde(deserialize_with = "lenient")]
    pub(crate) resources: ListCapability,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListCapability {
    /// Whether it says when the list has changed.
    #[serde(rename = "listChanged", deserialize_with = "lenient")]
    pub(crate) tells_changes: bool,
}

impl Foreign for SeenMessage {}
impl Foreign for ListedTool {}
impl Foreign for SchemaPart {}
impl Foreign for ToolResult {}
impl Foreign for ContentBlock {}
impl Foreign for AskedForm {}
impl Foreign for SeenCapabilities {}

impl SchemaPart {
    /// The names of what must be there.
    pub(crate) fn required(&self) -> impl Iterator<Item = &str> {
        self.required.iter().filter_map(Value::as_str)
    }
}

impl SchemaKind {
    /// The types by their names; nothing said is none.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::One(kind) => Some(vec![kind.clone()]),
            Self::Several(kinds) => Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            Self::Unsaid => None,
        }
    }
}

impl ToolResult {
    /// The text of the first block.
    pub(crate) fn first_text(&self) -> String {
        self.content.first().map(ContentBlock::of).unwrap_or_default().text
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_as_it_should_be_is_missing_and_spoils_nothing_else() {
        let tool =
            ListedTool::of(&json!({"name": "read", "title": 5, "description": null, "inputSchema": {"type": 3}}));
        assert_eq!((tool.name.as_str(), tool.title, tool.description), ("read", None, None));
        let schema = SchemaPart::of(&json!({"properties": {"a": true}, "required": ["a", 1], "enum": "no"}));
        assert_eq!(schema.required().collect::<Vec<_>>(), ["a"]);
        assert!(schema.properties.is_some_and(|all| all.len() == 1) && schema.choices.is_none());
        assert!(matches!(SchemaPart::of(&json!(true)).kind, SchemaKind::Unsaid));
    }

    #[test]
    fn what_is_null_is_not_what_is_missing() {
        let message = |value| SeenMessage::of(&value);
        assert_eq!(message(json!({"id": null})).id, Some(Value::Null));
        assert_eq!(message(json!({"method": "x"})).id, None);
        let meta = json!({"params": {"_meta": {"correlation_id": "c", "io.modelcontextprotocol/subscriptionId": 7}}});
        let meta = message(meta).params.meta;
        assert_eq!((meta.correlation_id.as_deref(), meta.subscription), (Some("c"), json!(7)));
    }
}
