//! The arguments of an action, each of the type that it has to be, and none that nobody knows: an agent that has mistaken a
//! name should learn of it, not wonder why nothing came of it.

use prism_core::policy::{Code, Refusal, VerbSpec};
use serde_json::{Map, Value};

use crate::encoding;

/// What of the arguments has not been read yet.
#[derive(Debug)]
pub(crate) struct Args {
    left: Map<String, Value>,
    /// All that were asked for, to tell whoever gave another.
    known: Vec<&'static str>,
}

/// Returns how many bytes an action would write, as far as its arguments say; `None` if it writes none.
pub fn edit_bytes(verb: &VerbSpec, args: &Map<String, Value>) -> Option<u64> {
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, |text| text.len() as u64);
    match verb.verb {
        "create_file" | "write_file" | "save_buffer" => {
            let bytes = length(args.get("content"));
            let is_base64 = args.get("encoding").and_then(Value::as_str) == Some("base64");
            Some(if is_base64 { bytes / 4 * 3 } else { bytes })
        }
        "edit_buffer" => {
            let edits = args.get("edits").and_then(Value::as_array);
            let listed: u64 = edits.into_iter().flatten().map(|edit| length(edit.get("new_text"))).sum();
            let files = args.get("files").and_then(Value::as_array).into_iter().flatten();
            let beneath = files.filter_map(Value::as_object).filter_map(|file| edit_bytes(verb, file));
            Some(listed + length(args.get("new_text")) + beneath.sum::<u64>())
        }
        "replace_text" => Some(length(args.get("new_text"))),
        _ => None,
    }
}

impl Args {
    pub(crate) fn new(given: Map<String, Value>) -> Self {
        Self { left: given, known: Vec::new() }
    }

    /// Takes an argument out; `null` is as good as none.
    pub(crate) fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.left.remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Result<String, Refusal> {
        self.maybe_text(name)?.ok_or_else(|| wrong(format!("`{name}` is missing: a string")))
    }

    pub(crate) fn maybe_text(&mut self, name: &'static str) -> Result<Option<String>, Refusal> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(format!("`{name}` must be a string, not {}", kind_of(&other)))),
        }
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Result<bool, Refusal> {
        match self.take(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(format!("`{name}` must be true or false, not {}", kind_of(&other)))),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number(&mut self, name: &'static str, least: u64, most: u64) -> Result<Option<u64>, Refusal> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_u64().filter(|number| (least..=most).contains(number));
        let told = || match &value {
            Value::Number(number) => number.to_string(),
            other => kind_of(other).to_owned(),
        };
        number
            .map(Some)
            .ok_or_else(|| wrong(format!("`{name}` must be a whole number from {least} to {most}, not {}", told())))
    }

    /// What a file is to hold.
    pub(crate) fn content(&mut self, name: &'static str) -> Result<Option<Vec<u8>>, Refusal> {
        let content = self.maybe_text(name)?;
        let encoding = self.maybe_text("encoding")?;
        let Some(content) = content else { return Ok(None) };
        match encoding.as_deref() {
            None | Some("utf-8") => Ok(Some(content.into_bytes())),
            Some("base64") => match encoding::from_base64(&content) {
                Some(bytes) => Ok(Some(bytes)),
                None => Err(wrong(format!("`{name}` is not base64 (the standard alphabet, padded, no line breaks)"))),
            },
            Some(other) => Err(wrong(format!("`encoding` is \"utf-8\" or \"base64\", not {other:?}"))),
        }
    }

    /// Refuses what is left. To be called before anything is done.
    pub(crate) fn done(self) -> Result<(), Refusal> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        let known = self.known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "it takes none".to_owned() } else { format!("it takes {known}") };
        Err(wrong(format!("there is no argument {name:?}; {known}")))
    }
}

/// The members of an argument that is an object.
pub(crate) fn members(name: &str, value: Value) -> Result<Args, Refusal> {
    match value {
        Value::Object(members) => Ok(Args::new(members)),
        other => Err(wrong(format!("`{name}` must be an object, not {}", kind_of(&other)))),
    }
}

pub(crate) fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::BadArguments, message)
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
