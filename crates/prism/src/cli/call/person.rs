//! The person at the terminal: a form that a server wants filled in, line by line. What is answered where nobody is, is
//! the client's affair.

use std::{
    io::{self, BufRead, IsTerminal, Write},
    sync::Arc,
};

use prism_mcp::client::{AskedForm, Foreign, QuestionHandler, SchemaKind, SchemaPart};
use serde_json::{Map, Value, json};

use crate::cli::say;

/// The most that is asked for one value, before the question counts as declined.
const TRIES: usize = 5;

/// A person answers, if both ends of a talk are a terminal.
pub(super) fn manners() -> QuestionHandler {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return QuestionHandler::Decline;
    }
    QuestionHandler::Person(Arc::new(|params| {
        say::status(None);
        ask(params, &mut io::stdin().lock(), &mut say::terminal()).unwrap_or_else(|_| json!({"action": "cancel"}))
    }))
}

/// Puts a form to a person, line by line. An empty line takes the default, or leaves out what is not required; the end
/// of the input cancels.
fn ask(params: &Value, from: &mut impl BufRead, to: &mut impl Write) -> io::Result<Value> {
    let AskedForm { message, schema } = AskedForm::of(params);
    writeln!(to, "The server asks: {}", plain(&message))?;
    writeln!(to, "(an empty line takes the default; Ctrl-D cancels; ! declines)")?;
    let required: Vec<&str> = schema.required().collect();
    let mut content = Map::new();
    for (name, field) in schema.properties.iter().flatten() {
        match value(name, &SchemaPart::of(field), required.contains(&name.as_str()), from, to)? {
            FieldAnswer::Value(value) => drop(content.insert(name.clone(), value)),
            FieldAnswer::Nothing => {}
            FieldAnswer::Action(action) => return Ok(json!({"action": action})),
        }
    }
    Ok(json!({"action": "accept", "content": content}))
}

enum FieldAnswer {
    Value(Value),
    Nothing,
    Action(&'static str),
}

fn value(
    name: &str,
    field: &SchemaPart,
    required: bool,
    from: &mut impl BufRead,
    to: &mut impl Write,
) -> io::Result<FieldAnswer> {
    for _ in 0..TRIES {
        let title = plain(field.title.as_deref().unwrap_or(name));
        let about = field.description.as_ref().map(|about| format!(" ({})", plain(about))).unwrap_or_default();
        let choices = choices(field).map(|all| format!(" [{}]", plain(&all.join(" | ")))).unwrap_or_default();
        let default =
            field.default.as_ref().map(|value| format!(" [default {}]", plain(&value.to_string()))).unwrap_or_default();
        let star = if required { "*" } else { "" };
        write!(to, "{title}{star}{about}{choices}{default}: ")?;
        to.flush()?;
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            writeln!(to)?;
            return Ok(FieldAnswer::Action("cancel"));
        }
        match (line.trim(), &field.default) {
            ("!", _) => return Ok(FieldAnswer::Action("decline")),
            ("", Some(default)) => return Ok(FieldAnswer::Value(default.clone())),
            ("", None) if !required => return Ok(FieldAnswer::Nothing),
            (text, _) => match typed(text, field) {
                Some(value) => return Ok(FieldAnswer::Value(value)),
                None => writeln!(to, "  that is not {}", kind(field).unwrap_or("one of the choices"))?,
            },
        }
    }
    Ok(FieldAnswer::Action("decline"))
}

/// The values to choose from, in either way that the revisions write them.
fn choices(field: &SchemaPart) -> Option<Vec<String>> {
    let named = || field.one_of.as_ref().map(|all| all.iter().map(|one| SchemaPart::of(one).constant).collect());
    let all: Vec<Value> = named().or_else(|| field.choices.clone())?;
    Some(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn kind(field: &SchemaPart) -> Option<&str> {
    match &field.kind {
        SchemaKind::One(kind) => Some(kind),
        SchemaKind::Several(_) | SchemaKind::Unsaid => None,
    }
}

fn typed(text: &str, field: &SchemaPart) -> Option<Value> {
    if let Some(choices) = choices(field) {
        return choices.iter().any(|choice| choice == text).then(|| text.into());
    }
    match kind(field) {
        Some("boolean") => match text.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => text.parse::<i64>().ok().map(Into::into),
        Some("number") => text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Into::into),
        Some("array") => Some(text.split(',').map(str::trim).collect::<Vec<_>>().into()),
        _ => Some(text.into()),
    }
}

/// A server's words, without what would move the cursor.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(answers: &str) -> (Value, String) {
        let properties = json!({
            "age": {"type": "integer", "description": "years"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "sure": {"type": "boolean"},
        });
        let params =
            json!({"message": "Who\u{1b}[2J?", "requestedSchema": {"properties": properties, "required": ["age"]}});
        let mut said = Vec::new();
        let answer = ask(&params, &mut answers.as_bytes(), &mut said).unwrap();
        (answer, String::from_utf8(said).unwrap())
    }

    #[test]
    fn a_form_is_asked_line_by_line_until_it_fits() {
        let (answer, said) = form("old\n42\n\nyes\n");
        assert_eq!(answer, json!({"action": "accept", "content": {"age": 42, "colour": "red", "sure": true}}));
        assert!(said.contains("age* (years): ") && said.contains("that is not integer"), "{said}");
        assert!(said.contains("[red | blue] [default \"red\"]") && !said.contains('\u{1b}'), "{said}");
    }

    #[test]
    fn a_person_may_leave_out_decline_and_cancel() {
        assert_eq!(form("1\nblue\n\n").0, json!({"action": "accept", "content": {"age": 1, "colour": "blue"}}));
        assert_eq!(form("!\n").0, json!({"action": "decline"}));
        assert_eq!(form("1\n").0, json!({"action": "cancel"}));
        assert_eq!(form("\n\n\n\n\n\n").0, json!({"action": "decline"}), "asked often enough");
    }
}
