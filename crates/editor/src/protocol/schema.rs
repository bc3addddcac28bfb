//! The protocol as a JSON schema, for those who write plugins in other languages.

use prism_core::policy::Code;
use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::Value;

use super::{FromPlugin, ToPlugin};

/// Any message, either way.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it is only there to be described")]
enum PluginMessage {
    FromPlugin(FromPlugin),
    ToPlugin(ToPlugin),
}

/// Returns the schema of all messages, as `docs/plugin.schema.json` has it.
pub fn schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<PluginMessage>().to_value();
    if let Value::Object(root) = &mut schema {
        root.insert("title".to_owned(), "Prism's plugin protocol, version 1".into());
        root.insert("description".to_owned(), "One message at /plugin/{plugin_id}, either way. See plugin.md.".into());
    }
    without_widths(&mut schema);
    schema
}

/// The one list of codes.
pub(super) fn codes(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Code::ALL.into_iter().map(Code::name).collect();
    json_schema!({ "type": "string", "enum": names })
}

/// Takes out the widths of integers, which are no formats that JSON Schema knows.
fn without_widths(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(without_widths),
        Value::Object(members) => {
            let is_width = |format: &str| format.trim_start_matches('u').starts_with("int");
            if members.get("format").and_then(Value::as_str).is_some_and(is_width) {
                members.remove("format");
            }
            members.values_mut().for_each(without_widths);
        }
        _ => {}
    }
}
