//! What of other programs' JSON is looked at, as types: messages, tools, schemas and results of MCP servers. They are foreign:
//! what is missing, or is not what it should be, is at its default, as nobody here can do anything about it, and what is not
//! looked at is passed on as it came, in the `Value` that these are read from.

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Map, Value};

/// Reads what fits, and takes what does not for missing.
pub fn lenient<'de, D: Deserializer<'de>, T: Default + DeserializeOwned>(from: D) -> Result<T, D::Error> {
    Value::deserialize(from).map(|value| T::deserialize(value).unwrap_or_default())
}

/// Tells a member that is `null` from one that is missing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Something of another program's that is read leniently.
pub trait Foreign: Default + DeserializeOwned {
    /// Reads what is looked at; what is no object has nothing of it.
    fn of(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_default()
    }
}

/// A JSON-RPC message.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeenMessage {
    #[serde(deserialize_with = "present")]
    pub id: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub method: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub params: SeenParams,
    #[serde(deserialize_with = "lenient")]
    pub error: Option<SeenError>,
}

/// The parameters of the notifications that are looked at: progress, log notes, and what comes on a listen.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeenParams {
    #[serde(deserialize_with = "present")]
    pub progress: Option<Value>,
    #[serde(rename = "progressToken")]
    pub progress_token: Value,
    #[serde(deserialize_with = "present")]
    pub total: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub message: Option<String>,
    #[serde(deserialize_with = "present")]
    pub level: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub logger: Option<String>,
    /// What a log note says, which may be anything.
    pub data: Value,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub meta: SeenMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeenMeta {
    /// Prism's own (N-05).
    #[serde(deserialize_with = "lenient")]
    pub correlation_id: Option<String>,
    /// The listen that a notification belongs to (2026-07-28).
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    pub subscription: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeenError {
    #[serde(deserialize_with = "present")]
    pub code: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub message: String,
}

/// A tool, as a server lists it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListedTool {
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    #[serde(deserialize_with = "lenient")]
    pub title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub description: Option<String>,
    /// To the letter: references lead to all places of it.
    #[serde(rename = "inputSchema")]
    pub input_schema: Value,
}

/// A JSON Schema, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SchemaPart {
    #[serde(rename = "$ref", deserialize_with = "lenient")]
    pub reference: Option<String>,
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub kind: SchemaKind,
    #[serde(deserialize_with = "lenient")]
    pub title: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub description: Option<String>,
    #[serde(deserialize_with = "present")]
    pub default: Option<Value>,
    /// Parts of it stay as they are: each is read by itself, so that a bad one spoils no other.
    #[serde(deserialize_with = "lenient")]
    pub properties: Option<Map<String, Value>>,
    #[serde(deserialize_with = "lenient")]
    required: Vec<Value>,
    #[serde(rename = "additionalProperties")]
    pub additional: Value,
    #[serde(rename = "enum", deserialize_with = "lenient")]
    pub choices: Option<Vec<Value>>,
    pub items: Value,
    #[serde(rename = "anyOf", deserialize_with = "lenient")]
    pub any_of: Vec<Value>,
    #[serde(rename = "oneOf", deserialize_with = "lenient")]
    pub one_of: Option<Vec<Value>>,
    /// The one value that it may have.
    #[serde(rename = "const")]
    pub constant: Value,
}

/// What a schema says of the type.
#[derive(Debug, Default, Deserialize)]
#[serde(untagged)]
pub enum SchemaKind {
    One(String),
    Several(Vec<Value>),
    #[default]
    Unsaid,
}

/// The result of a tool.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolResult {
    #[serde(rename = "isError", deserialize_with = "lenient")]
    pub is_error: bool,
    #[serde(deserialize_with = "lenient")]
    pub content: Vec<Value>,
    #[serde(rename = "structuredContent", deserialize_with = "present")]
    pub structured: Option<Value>,
}

/// One block of a result's content.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ContentBlock {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub kind: String,
    #[serde(deserialize_with = "lenient")]
    pub text: String,
    #[serde(rename = "mimeType", deserialize_with = "lenient")]
    pub mime: String,
    #[serde(deserialize_with = "lenient")]
    pub data: String,
    #[serde(deserialize_with = "lenient")]
    pub name: String,
    #[serde(deserialize_with = "lenient")]
    pub uri: String,
    #[serde(deserialize_with = "lenient")]
    pub resource: EmbeddedResource,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EmbeddedResource {
    #[serde(deserialize_with = "lenient")]
    pub uri: String,
    #[serde(rename = "mimeType", deserialize_with = "lenient")]
    pub mime: String,
    #[serde(deserialize_with = "lenient")]
    pub text: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub blob: Option<String>,
}

/// A form that a server wants filled in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AskedForm {
    #[serde(deserialize_with = "lenient")]
    pub message: String,
    #[serde(rename = "requestedSchema", deserialize_with = "lenient")]
    pub schema: SchemaPart,
}

/// What a server says that it can do.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SeenCapabilities {
    #[serde(deserialize_with = "lenient")]
    pub tools: ListCapability,
    #[serde(deserialize_with = "lenient")]
    pub prompts: ListCapability,
    #[serde(deserialize_with = "lenient")]
    pub resources: ListCapability,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListCapability {
    /// Whether it says when the list has changed.
    #[serde(rename = "listChanged", deserialize_with = "lenient")]
    pub tells_changes: bool,
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
    pub fn required(&self) -> impl Iterator<Item = &str> {
        self.required.iter().filter_map(Value::as_str)
    }
}

impl SchemaKind {
    /// The types by their names; nothing said is none.
    pub fn names(&self) -> Option<Vec<String>> {
        match self {
            Self::One(kind) => Some(vec![kind.clone()]),
            Self::Several(kinds) => Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            Self::Unsaid => None,
        }
    }
}

impl ToolResult {
    /// The text of the first block.
    pub fn first_text(&self) -> String {
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
