//! The two tools that stand for all others where there are too many to show (`hub.mode = "search"`).

use std::{
    borrow::Cow,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use prism_core::{
    mcp::Method,
    wire::{Members, Message, members::JsonString},
};
use prism_store::{ToolIndex, ToolText};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Deserialize;
use tracing::warn;

use super::{Hub, HubViewer};
use crate::drive::destination::lock;

pub(super) const FIND: &str = "prism_find_tools";
pub(super) const CALL: &str = "prism_call_tool";

/// Tools that one search shows unless it says otherwise, and at most.
const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 50;

/// What `prism_find_tools` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindToolsInput {
    /// What the tool should do, in a few words, or a part of its name.
    query: String,
    /// How many tools to show at most. Leave it out for 8.
    #[serde(default)]
    limit: Option<usize>,
}

/// What `prism_call_tool` is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(dead_code, reason = "the type is the schema; the text itself is passed on")]
struct CallToolInput {
    /// The name of the tool, as prism_find_tools shows it.
    name: String,
    /// The arguments of the tool, as its inputSchema wants them. Leave it out for a tool that has none.
    #[serde(default)]
    arguments: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The index of a view's tools, as of some count of changes.
#[derive(Default)]
pub(super) struct ViewToolIndex(Mutex<Option<(u64, ToolIndex)>>);

impl FindToolsInput {
    pub(super) fn read(message: &Message) -> Result<Self, String> {
        let arguments = arguments(message).unwrap_or(Cow::Borrowed("{}"));
        serde_json::from_str(&arguments).map_err(|error| format!("{FIND}: {error}"))
    }
}

impl Hub {
    /// The result of a search, as a tool gives it.
    pub async fn find(self: &Arc<Self>, seen: HubViewer<'_>, find: &FindToolsInput) -> String {
        let merged = self.merged(seen, Method::ToolsList).await;
        let limit = find.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let found = merged.search.find(&merged.items, merged.changes, &find.query, limit);
        let tools: Vec<&str> = found.iter().filter_map(|at| merged.items.get(*at)).map(|(_, text)| &**text).collect();
        let tools = format!(r#"{{"tools":[{}]}}"#, tools.join(","));
        let said = match found.is_empty() {
            true => format!("None of {} tools fits. Try other words; single ones find more.", merged.items.len()),
            false => tools.clone(),
        };
        let said = JsonString(&said);
        format!(r#"{{"content":[{{"type":"text","text":{said}}}],"structuredContent":{tools}}}"#)
    }
}

impl ViewToolIndex {
    fn find(&self, items: &[(String, String)], changes: u64, query: &str, limit: usize) -> Vec<usize> {
        let mut made = lock(&self.0);
        if made.as_ref().is_none_or(|(of, _)| *of != changes) {
            let texts: Vec<(String, String)> = items.iter().map(|(_, text)| described(text)).collect();
            let tools = items.iter().zip(&texts).map(|((name, _), (description, arguments))| ToolText {
                name,
                description,
                arguments,
            });
            match ToolIndex::build(tools) {
                Ok(index) => *made = Some((changes, index)),
                Err(error) => warn!(%error, "Cannot make the hub's tools searchable"),
            }
        }
        let found = made.as_ref().map(|(_, index)| index.find(query, limit)).transpose();
        found.unwrap_or_default().unwrap_or_default()
    }
}

/// A tool's description, and the names and descriptions of its arguments.
fn described(tool: &str) -> (String, String) {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct SearchedTool {
        title: Option<String>,
        description: Option<String>,
        input_schema: SearchedSchema,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct SearchedSchema {
        properties: std::collections::BTreeMap<String, serde_json::Value>,
    }
    let tool: SearchedTool = serde_json::from_str(tool).unwrap_or_default();
    let about =
        |(name, said): (&String, &serde_json::Value)| format!("{name} {}", said["description"].as_str().unwrap_or(""));
    let arguments: Vec<String> = tool.input_schema.properties.iter().map(about).collect();
    (format!("{} {}", tool.title.unwrap_or_default(), tool.description.unwrap_or_default()), arguments.join(" "))
}

/// The call that a `prism_call_tool` stands for.
pub(super) fn called(message: &Message) -> Result<Message, String> {
    let wrong = |why: &str| format!("{CALL}: {why}");
    let arguments = arguments(message).ok_or_else(|| wrong("`arguments` must have the `name` of a tool"))?;
    let inner = Members::read(&arguments).ok_or_else(|| wrong("`arguments` must be an object"))?;
    let name = inner.string("name").ok_or_else(|| wrong("`name` must be the name of a tool"))?;
    if [FIND, CALL].contains(&&*name) {
        return Err(wrong("it cannot call itself"));
    }
    let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
    let mut top = Members::read(whole).ok_or_else(|| wrong("no message"))?;
    let mut params = top.object("params").unwrap_or_default();
    params.set("name", JsonString(&name).to_string());
    params.set("arguments", inner.get("arguments").filter(|raw| *raw != "null").unwrap_or("{}").to_owned());
    let params = params.to_string();
    top.set("params", params);
    Message::parse(Bytes::from(top.to_string())).map_err(|error| wrong(&error.to_string()))
}

fn arguments(message: &Message) -> Option<Cow<'_, str>> {
    let params = Members::read(message.params_text()?)?;
    params.get("arguments").map(|raw| Cow::Owned(raw.to_owned()))
}

/// The two tools, as a list shows them.
pub(super) fn definitions() -> Vec<(String, String)> {
    let find = definition::<FindToolsInput>(
        FIND,
        "Find tools",
        "Searches the tools of all connected MCP servers by what they do, by name and by argument. Returns their names, \
         descriptions and input schemas; call one with prism_call_tool.",
        true,
    );
    let call = definition::<CallToolInput>(
        CALL,
        "Call a tool",
        "Calls a tool that prism_find_tools has shown, with the arguments that its inputSchema wants, and returns what \
         the tool returns.",
        false,
    );
    vec![find, call]
}

fn definition<T: JsonSchema>(name: &str, title: &str, description: &str, reads: bool) -> (String, String) {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    let tool = serde_json::json!({
        "name": name, "title": title, "description": description, "inputSchema": schema,
        "annotations": {"readOnlyHint": reads},
    });
    (name.to_owned(), tool.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"prism_call_tool","arguments":{arguments},"_meta":{{"progressToken":1.0}}}}}}"#
        );
        Message::parse(Bytes::from(text)).unwrap()
    }

    // B-27
    #[test]
    fn a_call_by_name_is_the_call_itself() {
        let told = called(&call(r#"{"name":"a__b","arguments":{"x":1.0}}"#)).unwrap();
        let wanted = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a__b","arguments":{"x":1.0},"_meta":{"progressToken":1.0}}}"#;
        assert_eq!(told.bytes(), wanted);
        assert!(called(&call(r#"{"name":"a__b"}"#)).unwrap().params_text().unwrap().contains(r#""arguments":{}"#));
        for wrong in ["{}", "[]", r#"{"name":1}"#, r#"{"name":"prism_call_tool"}"#] {
            assert!(called(&call(wrong)).unwrap_err().starts_with("prism_call_tool: "), "{wrong}");
        }
    }

    // B-27
    #[test]
    fn the_two_tools_explain_themselves() {
        for (_, text) in definitions() {
            let tool: serde_json::Value = serde_json::from_str(&text).unwrap();
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{text}");
            for (name, argument) in schema["properties"].as_object().unwrap() {
                assert!(argument["description"].is_string(), "{name} in {text}");
            }
            assert_eq!(schema["required"].as_array().unwrap().len(), 1);
        }
    }
}
