//! Tool arguments that are repeated in `Mcp-Param-*` headers (2026-07-28, mcp-eras 1.8), as tools' schemas ask for it.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use super::modern::decoded;
use crate::wire::{Members, Message};

/// Tools that are remembered for their headers. One with more such tools loses the rest: their calls carry no headers.
const MAX_TOOLS: usize = 1024;

/// For each tool that wants headers: which argument goes into which.
#[derive(Clone, Debug, Default)]
pub struct ToolHeaders {
    tools: BTreeMap<String, Vec<Annotation>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Annotation {
    path: Vec<String>,
    header: String,
}

impl ToolHeaders {
    /// Learns from the result of a `tools/list`. Returns whether there may be something new.
    pub fn learn(&mut self, result: &str) -> bool {
        // Few tools have any: a look at the text is cheaper than a parse.
        let named = result.contains("x-mcp-header");
        if !named && self.tools.is_empty() {
            return false;
        }
        let Ok(result) = serde_json::from_str::<Value>(result) else { return false };
        for tool in result["tools"].as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            match annotations(&tool["inputSchema"]) {
                Some(found) if !found.is_empty() && self.tools.len() < MAX_TOOLS => {
                    self.tools.insert(name.to_owned(), found);
                }
                _ => drop(self.tools.remove(name)),
            }
        }
        true
    }

    /// The result of a `tools/list` without the tools whose annotations are broken, which must not be offered (mcp-eras
    /// 1.8); `None`: as it is.
    pub fn sound_only(result: &str) -> Option<String> {
        if !result.contains("x-mcp-header") {
            return None;
        }
        let mut members = Members::read(result)?;
        let tools: Vec<&RawValue> = serde_json::from_str(members.get("tools")?).ok()?;
        let is_sound = |tool: &&RawValue| {
            let tool: Option<Value> = serde_json::from_str(tool.get()).ok();
            tool.is_none_or(|tool| annotations(&tool["inputSchema"]).is_some())
        };
        let sound: Vec<&str> = tools.iter().copied().filter(is_sound).map(RawValue::get).collect();
        if sound.len() == tools.len() {
            return None;
        }
        let sound = format!("[{}]", sound.join(","));
        members.set("tools", sound);
        Some(members.to_string())
    }

    /// The headers that a `tools/call` must carry, without the prefix.
    pub fn headers(&self, message: &Message) -> Vec<(String, String)> {
        let Some((wanted, arguments)) = self.wanted(message) else { return Vec::new() };
        let value = |annotation: &Annotation| shown(at(&arguments, &annotation.path)?);
        wanted.iter().filter_map(|one| Some((one.header.clone(), value(one)?))).collect()
    }

    /// Checks the headers that came with a `tools/call` against its arguments.
    pub fn check(&self, message: &Message, headers: &[(String, String)]) -> Result<(), String> {
        let Some((wanted, arguments)) = self.wanted(message) else { return Ok(()) };
        for Annotation { path, header } in wanted {
            let mut given = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(header));
            let (first, second) = (given.next(), given.next());
            let argument = at(&arguments, path).filter(|value| !value.is_null());
            let fits = match (argument, first, second) {
                (None, None, _) => true,
                (Some(value), Some((_, text)), None) => decoded(text).is_some_and(|text| is_shown_as(value, &text)),
                _ => false,
            };
            if !fits {
                return Err(format!("Mcp-Param-{header} must say what the argument {:?} says", path.join(".")));
            }
        }
        Ok(())
    }

    fn wanted(&self, message: &Message) -> Option<(&Vec<Annotation>, Value)> {
        if self.tools.is_empty() {
            return None;
        }
        let wanted = self.tools.get(&*message.string(message.params().name)?)?;
        let params: Value = serde_json::from_str(message.params_text()?).ok()?;
        Some((wanted, params["arguments"].clone()))
    }
}

fn at<'v>(arguments: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(arguments, |value, name| value.get(name)).filter(|value| !value.is_null())
}

/// A value as a header shows it; nothing for what has no such form.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn is_shown_as(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own == text,
        Value::Bool(own) => own.to_string() == text,
        // `42.0` is `42`.
        Value::Number(own) => {
            own.to_string() == text || text.parse::<f64>().ok().is_some_and(|n| own.as_f64() == Some(n))
        }
        _ => false,
    }
}

/// The annotations of a schema, found by way of `properties` only; `None` if one is not allowed.
fn annotations(schema: &Value) -> Option<Vec<Annotation>> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found)?;
    let mut names: Vec<String> = found.iter().map(|one: &Annotation| one.header.to_ascii_lowercase()).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    (names.len() == count).then_some(found)
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Annotation>) -> Option<()> {
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        path.push(name.clone());
        if let Some(header) = property.get("x-mcp-header") {
            let header = header.as_str()?;
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            let typed = matches!(property["type"].as_str(), Some("string" | "integer" | "boolean" | "number"));
            if header.is_empty() || !header.bytes().all(token) || !typed {
                return None;
            }
            found.push(Annotation { path: path.clone(), header: header.to_owned() });
        }
        collect(property, path, found)?;
        path.pop();
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const LIST: &str = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}]}"#;

    fn call(arguments: &str) -> Message {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
        );
        Message::parse(Bytes::from(text)).unwrap()
    }

    fn check(arguments: &str, headers: &[(&str, &str)]) -> bool {
        let mut tools = ToolHeaders::default();
        tools.learn(LIST);
        let headers: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        tools.check(&call(arguments), &headers).is_ok()
    }

    // checks 65
    #[test]
    fn headers_must_repeat_the_arguments_that_are_there_and_no_others() {
        assert!(check(r#"{"region":"eu"}"#, &[("region", "eu")]));
        assert!(check(r#"{"region":"eu"}"#, &[("REGION", "=?base64?ZXU=?=")]));
        assert!(check(r#"{"region":"eu"}"#, &[("region", "eu"), ("other", "x")]));
        assert!(check(r#"{"deep":{"n":42}}"#, &[("n", "42.0")]));
        assert!(check(r#"{"region":null}"#, &[]) && check("{}", &[]));
        assert!(!check(r#"{"region":"eu"}"#, &[("region", "us")]));
        assert!(!check(r#"{"region":"eu"}"#, &[]));
        assert!(!check(r#"{"region":"eu"}"#, &[("region", "eu"), ("region", "eu")]));
        assert!(!check(r#"{"region":"eu"}"#, &[("region", "=?base64?*?=")]));
        assert!(!check("{}", &[("region", "eu")]));
    }

    #[test]
    fn our_own_requests_carry_what_the_schema_asks_for() {
        let mut tools = ToolHeaders::default();
        tools.learn(LIST);
        let headers = tools.headers(&call(r#"{"region":"eu","deep":{"n":7}}"#));
        assert!(headers.contains(&("Region".to_owned(), "eu".to_owned())), "{headers:?}");
        assert!(headers.contains(&("N".to_owned(), "7".to_owned())), "{headers:?}");
        tools.learn(r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#);
        assert!(tools.headers(&call(r#"{"region":"eu"}"#)).is_empty(), "the tool has changed");
    }

    #[test]
    fn tools_with_broken_annotations_are_left_out() {
        let sound = r#"{"name":"s", "n":1.0,"inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}"#;
        let broken = |property: &str| {
            let schema = format!(r#"{{"properties":{{"a":{property},"b":{{"type":"string","x-mcp-header":"B"}}}}}}"#);
            let left = ToolHeaders::sound_only(&format!(
                r#"{{"tools":[{{"name":"t","inputSchema":{schema}}},{sound}],"nextCursor":"1.0"}}"#
            ));
            assert!(left.is_none() || left == Some(format!(r#"{{"tools":[{sound}],"nextCursor":"1.0"}}"#)), "{left:?}");
            left.is_some()
        };
        assert!(broken(r#"{"type":"string","x-mcp-header":""}"#));
        assert!(broken(r#"{"type":"string","x-mcp-header":"a b"}"#));
        assert!(broken(r#"{"type":"string","x-mcp-header":"b"}"#), "two of one name");
        assert!(broken(r#"{"type":"object","x-mcp-header":"A"}"#));
        assert!(!broken(r#"{"type":"string","x-mcp-header":"A"}"#));
    }
}
