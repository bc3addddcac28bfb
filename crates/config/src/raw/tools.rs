//! `[server.NAME.tools]`, as written, and its way into [`ToolsConfig`].

use prism_core::policy::{DefaultRule, NameGlob, ToolRule, ToolRules};
use serde::Deserialize;
use toml::{Value, value::Table};

use super::{RawConfig, Setting};
use crate::{
    ConfigError, PinPolicy, ServerKey, ToolsConfig,
    value::{ConfigValue, otherwise, pin},
};

/// `[server.NAME.tools]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [server.files.tools] and below it deny = [\"delete_*\"]")]
pub(super) struct RawTools {
    allow: Setting,
    confirm: Setting,
    deny: Setting,
    otherwise: Setting,
    pin: Setting,
}

/// What is wrong with a rule, and the way out.
type Wrong = (String, String);

impl RawConfig {
    pub(super) fn tools(&self, server: ServerKey<'_>, written: Option<&RawTools>) -> Result<ToolsConfig, ConfigError> {
        let Some(written) = written else { return Ok(ToolsConfig::default()) };
        let list = |key, setting| self.rules(&format!("{server}.tools.{key}"), key, setting);
        let (allow, confirm, deny) =
            (list("allow", &written.allow)?, list("confirm", &written.confirm)?, list("deny", &written.deny)?);
        let unsaid = if allow.is_some() { DefaultRule::Deny } else { DefaultRule::Allow };
        let otherwise = self.local(server, "tools.otherwise", &written.otherwise, otherwise)?.unwrap_or(unsaid);
        let [allow, confirm, deny] = [allow, confirm, deny].map(Option::unwrap_or_default);
        let pin = self.local(server, "tools.pin", &written.pin, pin)?.unwrap_or(PinPolicy::Ask);
        Ok(ToolsConfig { rules: Some(ToolRules { allow, confirm, deny, otherwise }), pin })
    }

    fn rules(&self, key: &str, short: &str, setting: &Setting) -> Result<Option<Vec<ToolRule>>, ConfigError> {
        let Some(value) = setting else { return Ok(None) };
        let example = || format!("{short} = [\"delete_*\"]");
        let wrong = |at, (problem, fix): Wrong| ConfigError::Value { at, key: key.to_owned(), problem, fix };
        let Value::Array(items) = value.get_ref() else {
            let problem = format!("is {}, not a list of rules", shown(value.get_ref()));
            return Err(wrong(self.source.origin(value.span()), (problem, example())));
        };
        let read = |(index, item): (usize, &Value)| {
            let rule = match item {
                Value::String(tool) => pattern(tool).map(|tool| ToolRule::new(tool, Vec::new())),
                Value::Table(table) => with_arguments(table),
                other => Err((format!("has {}, which is neither a pattern nor a table", shown(other)), example())),
            };
            rule.map_err(|problem| wrong(self.source.item(value.span(), index), problem))
        };
        items.iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
    }
}

fn pattern(text: &str) -> Result<NameGlob, Wrong> {
    NameGlob::new(text).map_err(|error| {
        let fix = "write a name, with `*` for any text and `?` for one character";
        (format!("has {text:?}: {error}"), format!("{fix}, as in deny = [\"delete_*\"]"))
    })
}

/// `{ tool = "query", arguments = { table = "public.*" } }`.
fn with_arguments(table: &Table) -> Result<ToolRule, Wrong> {
    const EXAMPLE: &str = "{ tool = \"query\", arguments = { table = \"public.*\" } }";
    if let Some(key) = table.keys().find(|key| !["tool", "arguments"].contains(&key.as_str())) {
        return Err((format!("has {key:?}, and a rule has tool and arguments"), EXAMPLE.to_owned()));
    }
    let tool = match table.get("tool") {
        Some(Value::String(tool)) => pattern(tool)?,
        Some(other) => return Err((format!("has tool = {}, which is no text", shown(other)), EXAMPLE.to_owned())),
        None => return Err(("does not say of which tool".to_owned(), "tool = \"*\" for any".to_owned())),
    };
    let arguments = match table.get("arguments") {
        None => return Ok(ToolRule::new(tool, Vec::new())),
        Some(Value::Table(arguments)) => arguments,
        Some(other) => {
            return Err((format!("has arguments = {}, which is no table", shown(other)), EXAMPLE.to_owned()));
        }
    };
    let arguments = arguments.iter().map(|(path, wanted)| match wanted {
        Value::String(wanted) => Ok((path.as_str().into(), pattern(wanted)?)),
        other => {
            let fix = format!("write it in quotes: {path} = \"{}\"", shown(other));
            Err((format!("says that arguments.{path} is {}, which is no text", shown(other)), fix))
        }
    });
    Ok(ToolRule::new(tool, arguments.collect::<Result<_, _>>()?))
}

fn shown(value: &Value) -> String {
    ConfigValue::from(value).shown()
}
