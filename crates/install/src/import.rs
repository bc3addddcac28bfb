//! The servers that a surface's config holds, as `prism.toml` has them. Every surface has its own words for the same
//! few things; they are turned into Cursor's, which `config::mcp_json` reads.
//!
//! What an editor would fill in (`${env:NAME}`) becomes `env:NAME`, so that no secret enters our file that was not
//! written in theirs. Where our file has no word for it, the entry stays where it is.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::{Map, Value, json};
use toml_edit::{Array, InlineTable};

use super::{
    ConfigFile, InstallError,
    change::without,
    document::{ConfigText, Container},
    entry::EntryMarks,
    record::RecordedEdit,
    surface::{Surface, SurfaceScope},
};
use prism_config::{DestinationConfig, Env, SandboxConfig, Transport, mcp_json, raw::check_name, secret};

/// The servers of one file.
pub struct SurfaceServers {
    pub found: Vec<ImportCandidate>,
    container: Container,
}

/// A server.
pub struct ImportCandidate {
    /// What it is called there.
    pub name: String,
    /// The same as a destination, or why it stays where it is.
    pub destination: Result<DestinationConfig, String>,
    /// What was not taken of it.
    pub left_out: Vec<String>,
}

/// Returns the servers of a file but for Prism itself.
pub fn servers(
    surface: Surface,
    scope: SurfaceScope<'_>,
    file: &ConfigFile,
    marks: &EntryMarks,
    env: &Env,
) -> Result<SurfaceServers, InstallError> {
    let in_file = |source| InstallError::Edit { path: file.path.clone(), source };
    let text = ConfigText::new(surface.language(), file.text());
    let value = text.value().map_err(in_file)?;
    let container = surface.container(&value);
    let entries = text.entries(&container).map_err(in_file)?;
    let others = entries.into_iter().filter(|entry| !marks.are_on(&entry.value));
    let found = others
        .map(|entry| {
            let mut left_out = Vec::new();
            let destination =
                plain(surface, &entry.value).and_then(|plain| destination(plain, scope, file, env, &mut left_out));
            ImportCandidate { name: entry.name, destination, left_out }
        })
        .collect();
    Ok(SurfaceServers { found, container })
}

/// Returns a name that a destination may have, as near to another as can be.
pub fn valid_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
    let mut valid: String = name.chars().map(fits).collect();
    valid = valid.trim_matches(['-', '_']).chars().take(MOST_LETTERS).collect();
    if valid.is_empty() {
        valid = "server".to_owned();
    }
    if check_name(&valid).is_err() {
        valid.push_str("-server");
    }
    let mut numbered = valid.clone();
    for number in 2.. {
        if !is_taken(&numbered) {
            break;
        }
        numbered = format!("{valid}-{number}");
    }
    numbered
}

/// Letters that are kept of a name, so that a number fits behind them.
const MOST_LETTERS: usize = 24;

/// Whether two destinations are the same server, whatever they are called.
pub fn is_same(a: &DestinationConfig, b: &DestinationConfig) -> bool {
    let http = |one: &DestinationConfig| one.http.as_ref().map(|http| (http.url.clone(), http.headers.clone()));
    a.command == b.command && a.env == b.env && a.cwd == b.cwd && a.sandbox == b.sandbox && http(a) == http(b)
}

/// Returns whether a destination has values that may be secrets, in plain words.
pub fn has_literals(destination: &DestinationConfig) -> bool {
    let variables = destination.env.values().any(|value| secret::of_variable(value).is_none());
    let headers = destination.http.iter().flat_map(|http| http.headers.values());
    variables || headers.into_iter().any(|value| secret::of_header(value).is_none())
}

/// Returns the keys and values of a destination, as `prism.toml` has them.
pub fn toml(destination: &DestinationConfig) -> Vec<(&'static str, toml_edit::Value)> {
    let texts = |map: &BTreeMap<String, String>| -> toml_edit::Value {
        map.iter().map(|(name, value)| (name, toml_edit::Value::from(value))).collect::<InlineTable>().into()
    };
    let mut entry = Vec::new();
    match &destination.http {
        Some(http) => {
            entry.push(("url", http.url.as_str().into()));
            if let Some(transport) = http.transport {
                entry.push(("type", transport.as_str().into()));
            }
            if !http.headers.is_empty() {
                entry.push(("headers", texts(&http.headers)));
            }
        }
        None => entry.push(("command", destination.command.iter().collect::<Array>().into())),
    }
    if let Some(cwd) = &destination.cwd {
        entry.push(("cwd", cwd.to_string_lossy().as_ref().into()));
    }
    if let Some(sandbox) = &destination.sandbox {
        let paths = |all: &[PathBuf]| all.iter().map(|path| path.to_string_lossy().into_owned()).collect::<Array>();
        let mut room = InlineTable::new();
        room.insert("folders", paths(&sandbox.folders).into());
        room.insert("readable", paths(&sandbox.readable).into());
        room.insert("network", sandbox.network.name().into());
        entry.push(("sandbox", if *sandbox == SandboxConfig::default() { true.into() } else { room.into() }));
    }
    if !destination.env.is_empty() {
        entry.push(("env", texts(&destination.env)));
    }
    entry
}

// === impl SurfaceServers ===

impl SurfaceServers {
    /// Returns the file's text without some of its servers, and what is to be remembered of it.
    pub fn removed(
        &self,
        surface: Surface,
        file: &ConfigFile,
        names: &[String],
    ) -> Result<(String, Vec<RecordedEdit>), InstallError> {
        without(surface.language(), file.text(), &self.container, names)
            .map_err(|source| InstallError::Edit { path: file.path.clone(), source })
    }
}

/// Turns a surface's entry into Cursor's words.
fn plain(surface: Surface, entry: &Value) -> Result<Map<String, Value>, String> {
    let mut entry = entry.as_object().ok_or("it is not an object")?.clone();
    if entry.remove("enabled").as_ref().and_then(Value::as_bool) == Some(false) {
        return Err("it is disabled".to_owned());
    }
    match surface {
        Surface::Zed => {
            if let Some(Value::Object(command)) = object(&entry, "command") {
                entry.insert("command".to_owned(), command.get("path").cloned().unwrap_or_default());
                for key in ["args", "env"] {
                    entry.extend(command.get(key).map(|value| (key.to_owned(), value.clone())));
                }
            }
            if !entry.contains_key("command") && !entry.contains_key("url") {
                return Err("it belongs to an extension of Zed".to_owned());
            }
        }
        Surface::OpenCode => {
            if let Some(Value::Array(words)) = entry.get("command").cloned() {
                let mut words = words.into_iter();
                entry.insert("command".to_owned(), words.next().unwrap_or_default());
                entry.insert("args".to_owned(), words.collect());
            }
            move_member(&mut entry, "environment", "env");
            match entry.remove("type").as_ref().and_then(Value::as_str) {
                Some("local") | None => {}
                Some(_) => drop(entry.insert("type".to_owned(), "http".into())),
            }
        }
        Surface::Codex => {
            move_member(&mut entry, "http_headers", "headers");
            let mut headers =
                object(&entry, "headers").and_then(|headers| headers.as_object().cloned()).unwrap_or_default();
            for (header, variable) in object(&entry, "env_http_headers").iter().filter_map(Value::as_object).flatten() {
                headers.insert(header.clone(), format!("${{env:{}}}", variable.as_str().unwrap_or_default()).into());
            }
            if let Some(variable) = entry.get("bearer_token_env_var").and_then(Value::as_str) {
                headers.insert("Authorization".to_owned(), format!("Bearer ${{env:{variable}}}").into());
            }
            if !headers.is_empty() {
                entry.insert("headers".to_owned(), headers.into());
            }
        }
        Surface::GeminiCli => {
            if entry.contains_key("httpUrl") {
                entry.remove("url");
            } else if entry.contains_key("url") && !entry.contains_key("type") {
                entry.insert("type".to_owned(), "sse".into());
            }
        }
        _ => {}
    }
    Ok(entry)
}

fn object(entry: &Map<String, Value>, key: &str) -> Option<Value> {
    entry.get(key).filter(|value| value.is_object()).cloned()
}

fn move_member(entry: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = entry.remove(from) {
        entry.insert(to.to_owned(), value);
    }
}

/// Understands an entry in Cursor's words.
fn destination(
    mut entry: Map<String, Value>,
    scope: SurfaceScope<'_>,
    file: &ConfigFile,
    env: &Env,
    left_out: &mut Vec<String>,
) -> Result<DestinationConfig, String> {
    // Taken out here and put back below, in our own words; `mcp_json` would fill in what they stand for.
    let variables = take_references(&mut entry, "env");
    let headers = take_references(&mut entry, "headers");
    let is_project = matches!(scope, SurfaceScope::Project(_));
    for key in ["command", "args", "url", "serverUrl", "httpUrl", "cwd", "sandbox", "env", "headers"] {
        if let Some(found) = entry.get(key).and_then(|value| placeholder(value, is_project)) {
            return Err(format!("its {key} has {found} in it, which only an editor fills in"));
        }
    }

    let home = env.var("HOME").and_then(|home| home.to_str()).unwrap_or_default();
    let text = json!({"mcpServers": {"server": entry}}).to_string();
    let import = mcp_json::parse(&file.path, &text, &Env::from([("HOME", home)])).map_err(|error| error.to_string())?;
    for warning in import.warnings {
        match warning.reason.strip_prefix("is skipped: ") {
            Some(reason) => return Err(reason.to_owned()),
            None => left_out.push(warning.reason),
        }
    }
    let mut destination = import.destinations.into_values().next().ok_or("it cannot be read")?;
    destination.env.extend(variables);
    if let Some(http) = &mut destination.http {
        for (header, value) in headers {
            if let Some(placeholder) = http.headers.get_mut(&header) {
                *placeholder = value;
            }
        }
        // The daemon finds out by itself, and goes on to do so when the server is a newer one.
        http.transport = http.transport.filter(|transport| *transport == Transport::Sse);
    }
    Ok(destination)
}

/// Takes the values of an object that are somebody else's to fill in, and returns them as our file writes them.
fn take_references(entry: &mut Map<String, Value>, key: &str) -> BTreeMap<String, String> {
    let mut taken = BTreeMap::new();
    let Some(Value::Object(members)) = entry.get_mut(key) else {
        return taken;
    };
    for (name, value) in members.iter_mut() {
        let Some(text) = value.as_str() else {
            continue;
        };
        let last_word = text.rfind(' ').map_or(0, |blank| blank + 1);
        let (before, word) = text.split_at(if key == "headers" { last_word } else { 0 });
        if let Some(variable) = variable(word) {
            taken.insert(name.clone(), format!("{before}env:{variable}"));
            // Something that passes for a header until it is put back.
            *value = "x".into();
        }
    }
    if key == "env" {
        members.retain(|name, _| !taken.contains_key(name));
    }
    taken
}

/// Returns the variable that a word stands for, in any of the editors' ways.
fn variable(word: &str) -> Option<&str> {
    let inner = word.strip_prefix("${").or_else(|| word.strip_prefix('{').filter(|rest| rest.starts_with("env:")));
    let name = match inner {
        Some(inner) => inner.strip_suffix('}')?,
        None => word.strip_prefix('$')?,
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// Returns something in a value that only an editor can fill in.
fn placeholder(value: &Value, is_project: bool) -> Option<String> {
    match value {
        Value::String(text) => {
            let start = ["${", "{env:", "{file:"].iter().filter_map(|mark| text.find(mark)).min()?;
            let found = text[start..].split_inclusive('}').next().unwrap_or_default();
            let known = found == "${userHome}" || (is_project && found == "${workspaceFolder}");
            match known {
                true => placeholder(&text[start + found.len()..].into(), is_project),
                false => Some(found.to_owned()),
            }
        }
        Value::Array(values) => values.iter().find_map(|value| placeholder(value, is_project)),
        Value::Object(members) => members.values().find_map(|value| placeholder(value, is_project)),
        _ => None,
    }
}
