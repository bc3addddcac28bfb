//! Arguments of a tool as its row in the table states them: the schema the client is shown, and the check by the
//! same rule, so that the tools themselves need none. What the arguments do is not known here.

use serde_json::{Map, Value, json};

pub(super) struct Argument {
    name: &'static str,
    kind: Kind,
    required: bool,
    /// The header that HTTP clients of the modern era repeat it in.
    header: Option<&'static str>,
}

pub(super) enum Kind {
    Text,
    Count,
    Integer,
    OneOf(&'static [&'static str]),
}

pub(super) const fn must(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: true, header: None }
}

pub(super) const fn may(name: &'static str, kind: Kind) -> Argument {
    Argument { name, kind, required: false, header: None }
}

pub(super) const fn shown(header: &'static str, argument: Argument) -> Argument {
    Argument { header: Some(header), ..argument }
}

pub(super) fn schema(arguments: &[Argument]) -> Value {
    let properties: Map<_, _> = arguments.iter().map(|it| (it.name.to_owned(), it.schema())).collect();
    let required: Vec<_> = arguments.iter().filter(|it| it.required).map(|it| it.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

/// Says what is wrong with the arguments given. One that nobody knows is let pass, as the schema lets it.
pub(super) fn check(arguments: &[Argument], given: &Value) -> Result<(), String> {
    for Argument { name, kind, required, .. } in arguments {
        match given.get(name) {
            None if *required => return Err(format!("argument {name} is missing")),
            Some(value) if !kind.admits(value) => {
                return Err(format!("argument {name} does not fit {}", kind.schema()));
            }
            _ => {}
        }
    }
    Ok(())
}

// === impl Argument ===

impl Argument {
    fn schema(&self) -> Value {
        let mut schema = self.kind.schema();
        if let Some(header) = self.header {
            schema["x-mcp-header"] = header.into();
        }
        schema
    }
}

// === impl Kind ===

impl Kind {
    fn schema(&self) -> Value {
        match self {
            Self::Text => json!({"type": "string"}),
            Self::Count => json!({"type": "integer", "minimum": 0}),
            Self::Integer => json!({"type": "integer"}),
            Self::OneOf(words) => json!({"type": "string", "enum": words}),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Count => value.is_u64(),
            Self::Integer => value.is_i64(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        }
    }
}
