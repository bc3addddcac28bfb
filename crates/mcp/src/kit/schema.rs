//! Arguments as their type states them: the schema that the client is shown, and the reading by the same type.

use prism_core::wire::Members;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The JSON Schema of a tool's arguments: an object, everything in place, without what only other Rust programs want to
/// know.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        // Clients look at the properties; not all of them follow a reference, and `x-mcp-header` must not be behind one.
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        // The tool has a description of its own.
        root.remove("description");
        root.entry("type").or_insert_with(|| "object".into());
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    tidy(&mut schema);
    debug_assert_eq!(
        undescribed(&schema),
        Vec::<&str>::new(),
        "arguments without a doc comment, which a model goes by"
    );
    schema
}

/// Returns the arguments that say nothing of themselves.
fn undescribed(schema: &Value) -> Vec<&str> {
    let arguments = schema["properties"].as_object().into_iter().flatten();
    arguments.filter(|(_, schema)| !schema["description"].is_string()).map(|(name, _)| name.as_str()).collect()
}

/// Takes out the widths of integers, which are no formats that JSON Schema knows, and the `null` that stands for an
/// argument left out: some clients refuse a type that is a list.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(tidy),
        Value::Object(members) => {
            let is_width = |format: &str| {
                format.trim_start_matches('u').starts_with("int") || matches!(format, "float" | "double")
            };
            if members.get("format").and_then(Value::as_str).is_some_and(is_width) {
                members.remove("format");
            }
            if members.get("default") == Some(&Value::Null) {
                members.remove("default");
            }
            without_null(members);
            members.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

fn without_null(members: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            members.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(words)) = members.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|schema| !is_null(schema));
        if let [Value::Object(one)] = &mut choices[..] {
            let one = std::mem::take(one);
            members.remove("anyOf");
            for (name, value) in one {
                members.entry(name).or_insert(value);
            }
        }
    }
}

/// Reads arguments, or says which of them is wrong and what it should be.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    // A derived struct would take an array, member by member.
    let Some(members) = Members::read(text) else { return Err("arguments must be an object".to_owned()) };
    serde_json::from_str(text).map_err(|error| {
        let whole = error.to_string();
        let why = whole.split(" at line ").next().unwrap_or_default();
        // What is missing, unknown or there twice is named by the words themselves.
        let is_named = ["missing field", "unknown field", "duplicate field"].iter().any(|begin| why.starts_with(begin));
        match member_at(text, &members, &error) {
            Some(name) if !is_named => format!("argument `{name}`: {why}"),
            _ => why.replacen("field", "argument", 1),
        }
    })
}

/// The member whose value the parser had come to.
fn member_at<'m>(text: &str, members: &'m Members, error: &serde_json::Error) -> Option<&'m str> {
    let line_start: usize = text.split_inclusive('\n').take(error.line().checked_sub(1)?).map(str::len).sum();
    let at = line_start + error.column();
    let begins = |raw: &str| raw.as_ptr().addr().checked_sub(text.as_ptr().addr());
    let passed = members.iter().take_while(|(_, raw)| begins(raw).is_some_and(|begin| begin <= at));
    passed.last().map(|(name, _)| name)
}
