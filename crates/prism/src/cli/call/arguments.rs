//! `key=value` words as the arguments of a tool: typed by its schema, and checked as far as that helps a person. The
//! server checks them all again.

use std::fmt::Write;

use prism_config::raw;
use prism_mcp::client::{Foreign, ListedTool, SchemaKind, SchemaPart};
use serde_json::{Map, Value};

use crate::cli::tools::signature;

/// How deep references within a schema are followed.
const MAX_REFERENCES: usize = 16;

/// Reads the arguments of a tool with this schema. `stdin` is what `-` stands for.
pub(in crate::cli) fn read(schema: &Value, words: &[String], stdin: Option<&str>) -> Result<Value, String> {
    let root = schema;
    let shape = SchemaPart::of(schema);
    let properties = shape.properties.as_ref();
    let closed = properties.is_some_and(|all| !all.is_empty())
        && !matches!(shape.additional, Value::Bool(true) | Value::Object(_));
    let mut arguments = Map::new();
    let mut given: Vec<&str> = Vec::new();
    for word in words {
        if word == "-" {
            let text = stdin.unwrap_or_default();
            let Ok(Value::Object(object)) = serde_json::from_str(text) else {
                return Err("stdin holds no JSON object, as in {\"path\": \"a.txt\"}".to_owned());
            };
            arguments.extend(object);
            continue;
        }
        let Some((key, text)) = word.split_once('=').filter(|(key, _)| !key.trim_end_matches(':').is_empty()) else {
            return Err(format!("{word:?} is no argument: write it as key=value"));
        };
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => (key, raw_json(key, text)?),
            None => {
                let field = properties.and_then(|all| all.get(key)).map(SchemaPart::of).unwrap_or_default();
                (key, typed(root, field, &content(key, text)?).map_err(|why| format!("{key} {why}"))?)
            }
        };
        if given.contains(&key) {
            // A list may be given piece by piece.
            match (arguments.get_mut(key), value) {
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                _ => return Err(format!("{key} is given twice")),
            }
            continue;
        }
        given.push(key);
        arguments.insert(key.to_owned(), value);
    }
    let names = || properties.into_iter().flatten().map(|(name, _)| name.as_str());
    let unknown: Vec<&String> = arguments.keys().filter(|key| closed && !names().any(|name| name == *key)).collect();
    if let Some(first) = unknown.first() {
        let near = raw::nearest(first, names()).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        let all: Vec<String> = unknown.iter().map(|key| format!("{key:?}")).collect();
        return Err(format!("the tool has no argument {}{near}", all.join(", ")));
    }
    let missing: Vec<&str> = shape.required().filter(|name| !arguments.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(format!("missing: {}", missing.join(", ")));
    }
    Ok(Value::Object(arguments))
}

/// How a tool is called, with what its schema says of each argument.
pub(in crate::cli) fn usage(dest: &str, tool: &ListedTool) -> String {
    let root = &tool.input_schema;
    let schema = SchemaPart::of(root);
    let required: Vec<&str> = schema.required().collect();
    let mut text = format!("  usage: prism call {dest} {}", tool.name);
    let fields = schema.properties.as_ref();
    if fields.is_none_or(Map::is_empty) {
        let _ = write!(text, "   ({}, no arguments)", signature(tool));
        return text;
    }
    for name in &required {
        let _ = write!(text, " {name}=…");
    }
    let rows: Vec<(String, String, String)> = fields
        .into_iter()
        .flatten()
        .map(|(name, field)| {
            let star = if required.contains(&name.as_str()) { "*" } else { "" };
            let field = SchemaPart::of(field);
            let about = field.description.as_deref().unwrap_or_default().lines().next().unwrap_or_default().to_owned();
            (format!("{name}{star}"), kind(root, field), about)
        })
        .collect();
    let width = |of: fn(&(String, String, String)) -> &String| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
    };
    let (names, kinds) = (width(|row| &row.0), width(|row| &row.1));
    for (name, kind, about) in &rows {
        let _ = write!(text, "\n    {}", format!("{name:names$}  {kind:kinds$}  {about}").trim_end());
    }
    text
}

/// The words for what an argument may be.
fn kind(root: &Value, field: SchemaPart) -> String {
    let field = resolved(root, field);
    if let Some(choices) = &field.choices {
        let choices: Vec<String> =
            choices.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
        return choices.join("|");
    }
    let kinds = kinds(root, &field);
    match kinds.as_slice() {
        [] => "any".to_owned(),
        [one] if one == "array" => match self::kinds(root, &resolved(root, SchemaPart::of(&field.items))).as_slice() {
            [] => "list".to_owned(),
            items => format!("list of {}", items.join("|")),
        },
        kinds => kinds.join("|"),
    }
}

/// A value as it is written, or what is in the file that it names; `@@` begins a text with one.
fn content(key: &str, text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
        Some(file) => {
            let why =
                |error: std::io::Error| format!("{key}: cannot read {file}: {error} (@@ begins a text with one @)");
            let bytes = std::fs::read(file).map_err(why)?;
            String::from_utf8(bytes).map_err(|_| format!("{key}: {file} is not UTF-8 text"))
        }
        None => Ok(text.to_owned()),
    }
}

fn raw_json(key: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{key}:= wants JSON: {error}"))
}

/// A text as the value that a schema wants. The error goes on from the key's name.
fn typed(root: &Value, field: SchemaPart, text: &str) -> Result<Value, String> {
    let field = resolved(root, field);
    let kinds = kinds(root, &field);
    let value = match kinds.as_slice() {
        [] => guessed(text),
        [kind] => one(root, &field, kind, text)?,
        // A text is what everything could be, so it comes last.
        many => {
            let others = many.iter().filter(|kind| *kind != "string");
            let found = others.filter_map(|kind| one(root, &field, kind, text).ok()).next();
            match found {
                Some(value) => value,
                None if many.iter().any(|kind| kind == "string") => text.into(),
                None => return Err(format!("is none of {}: {text:?}", many.join(", "))),
            }
        }
    };
    match &field.choices {
        Some(choices) if !choices.contains(&value) => {
            let known: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
            let near = raw::nearest(text, known.iter().copied()).map(|near| format!("; did you mean {near:?}?"));
            Err(format!("must be one of {}, not {text:?}{}", known.join(", "), near.unwrap_or_default()))
        }
        _ => Ok(value),
    }
}

fn one(root: &Value, field: &SchemaPart, kind: &str, text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    let json =
        |wanted: &str| serde_json::from_str::<Value>(trimmed).map_err(|error| format!("must be {wanted}: {error}"));
    match kind {
        "integer" => {
            let whole = trimmed.parse::<i64>().map(Value::from).or_else(|_| trimmed.parse::<u64>().map(Value::from));
            whole.map_err(|_| format!("must be a whole number, not {text:?}"))
        }
        "number" => match json("a number") {
            Ok(value) if value.is_number() => Ok(value),
            _ => Err(format!("must be a number, not {text:?}")),
        },
        "boolean" => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true.into()),
            "false" | "no" | "off" | "0" => Ok(false.into()),
            _ => Err(format!("must be true or false, not {text:?}")),
        },
        "null" if trimmed == "null" => Ok(Value::Null),
        "null" => Err(format!("must be null, not {text:?}")),
        "array" if trimmed.starts_with('[') => json("a JSON list"),
        "array" if trimmed.is_empty() => Ok(Value::Array(Vec::new())),
        "array" => {
            let each = trimmed.split(',').map(|part| typed(root, SchemaPart::of(&field.items), part.trim()));
            Ok(Value::Array(each.collect::<Result<_, _>>()?))
        }
        "object" => match json("a JSON object")? {
            value @ Value::Object(_) => Ok(value),
            _ => Err(format!("must be a JSON object, as in '{{\"a\": 1}}', not {text:?}")),
        },
        _ => Ok(text.into()),
    }
}

/// A value that no schema says anything about: JSON if it is, but for texts, which need no quotes.
fn guessed(text: &str) -> Value {
    serde_json::from_str(text.trim()).unwrap_or_else(|_| text.into())
}

/// The types that a field may have; none: any.
fn kinds(root: &Value, field: &SchemaPart) -> Vec<String> {
    if let Some(kinds) = field.kind.names() {
        return kinds;
    }
    let mut all: Vec<String> = Vec::new();
    for alternative in field.any_of.iter().chain(field.one_of.iter().flatten()) {
        match resolved(root, SchemaPart::of(alternative)).kind {
            SchemaKind::One(kind) if !all.contains(&kind) => all.push(kind),
            _ => {}
        }
    }
    let texts = field.choices.as_ref().is_some_and(|all| all.iter().all(Value::is_string));
    if all.is_empty() && texts { vec!["string".to_owned()] } else { all }
}

/// What a reference within the schema leads to.
fn resolved(root: &Value, field: SchemaPart) -> SchemaPart {
    let mut field = field;
    for _ in 0..MAX_REFERENCES {
        let target = field.reference.as_deref().and_then(|name| root.pointer(name.strip_prefix('#')?));
        match target {
            Some(target) => field = SchemaPart::of(target),
            None => break,
        }
    }
    field
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where it is.\nReally."},
                "count": {"type": "integer"},
                "ratio": {"type": "number"},
                "deep": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "sizes": {"type": "array", "items": {"$ref": "#/$defs/size"}},
                "where": {"type": "object"},
                "mode": {"enum": ["fast", "slow"]},
                "limit": {"type": ["integer", "null"]},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                "any": {},
            },
            "required": ["path"],
            "$defs": {"size": {"type": "integer"}},
        })
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn given(more: &[&str]) -> Result<Value, String> {
        let mut all = words(&["path=p"]);
        all.extend(words(more));
        let mut value = read(&schema(), &all, None)?;
        assert_eq!(value.as_object_mut().unwrap().remove("path"), Some(json!("p")));
        Ok(value)
    }

    #[test]
    fn each_value_gets_the_type_that_the_schema_wants() {
        for (word, expected) in [
            ("count=3", json!({"count": 3})),
            ("count=18446744073709551615", json!({"count": u64::MAX})),
            ("ratio=1e3", json!({"ratio": 1000.0})),
            ("ratio=2", json!({"ratio": 2})),
            ("deep=yes", json!({"deep": true})),
            ("tags=a, b", json!({"tags": ["a", "b"]})),
            ("tags=1,true", json!({"tags": ["1", "true"]})),
            ("tags=[\"a,b\"]", json!({"tags": ["a,b"]})),
            ("tags=", json!({"tags": []})),
            ("sizes=1,2", json!({"sizes": [1, 2]})),
            ("where={\"a\":{\"b\":1}}", json!({"where": {"a": {"b": 1}}})),
            ("mode=fast", json!({"mode": "fast"})),
            ("limit=null", json!({"limit": null})),
            ("limit=7", json!({"limit": 7})),
            ("either=7", json!({"either": 7})),
            ("either=seven", json!({"either": "seven"})),
            ("any=[1]", json!({"any": [1]})),
            ("any=a=b", json!({"any": "a=b"})),
            ("count:=\"3\"", json!({"count": "3"})),
            ("any=@@x", json!({"any": "@x"})),
        ] {
            assert_eq!(given(&[word]), Ok(expected), "{word}");
        }
        // A text stays one, whatever it looks like.
        assert_eq!(read(&schema(), &words(&["path=12"]), None), Ok(json!({"path": "12"})));
        assert_eq!(given(&["tags=a", "tags=b,c"]), Ok(json!({"tags": ["a", "b", "c"]})));
    }

    #[test]
    fn what_does_not_fit_is_named_before_anything_is_sent() {
        for (word, why) in [
            ("count=many", "count must be a whole number, not \"many\""),
            ("count=1.5", "count must be a whole number"),
            ("ratio=x", "ratio must be a number"),
            ("deep=perhaps", "deep must be true or false"),
            ("sizes=1,x", "sizes must be a whole number, not \"x\""),
            ("tags=[1", "tags must be a JSON list"),
            ("where=[1]", "where must be a JSON object"),
            ("mode=fsat", "mode must be one of fast, slow, not \"fsat\"; did you mean \"fast\"?"),
            ("limit=x", "limit is none of integer, null"),
            ("cuont=3", "the tool has no argument \"cuont\"; did you mean \"count\"?"),
            ("count:=x", "count:= wants JSON"),
            ("any=@no-such-file", "any: cannot read no-such-file"),
            ("alone", "\"alone\" is no argument: write it as key=value"),
            ("=x", "is no argument"),
            ("path=q", "path is given twice"),
        ] {
            let wrong = given(&[word]).unwrap_err();
            assert!(wrong.contains(why), "{word}: {wrong}");
        }
        assert_eq!(read(&schema(), &[], None), Err("missing: path".to_owned()));
    }

    #[test]
    fn a_json_object_from_stdin_can_be_added_to() {
        let all = words(&["-", "count=2"]);
        let read = |stdin: &str| read(&schema(), &all, Some(stdin));
        assert_eq!(read(r#"{"path": "p", "count": 1}"#), Ok(json!({"path": "p", "count": 2})));
        assert!(read("[1]").unwrap_err().contains("no JSON object"));
        assert!(read(r#"{"path": "p", "nope": 1}"#).unwrap_err().contains("nope"));
    }

    #[test]
    fn a_tool_without_a_schema_takes_anything_and_one_without_arguments_nothing_wrong() {
        assert_eq!(super::read(&json!({"type": "object"}), &words(&["a=1"]), None), Ok(json!({"a": 1})));
        assert_eq!(super::read(&Value::Null, &[], None), Ok(json!({})));
    }

    #[test]
    fn usage_names_every_argument_with_its_type() {
        let usage = usage("files", &ListedTool::of(&json!({"name": "read", "inputSchema": schema()})));
        assert!(usage.starts_with("  usage: prism call files read path=…\n"), "{usage}");
        assert!(
            usage.contains("path*   string") && usage.contains("Where it is.") && !usage.contains("Really"),
            "{usage}"
        );
        assert!(
            usage.contains("list of integer") && usage.contains("fast|slow") && usage.contains("integer|null"),
            "{usage}"
        );
    }
}
