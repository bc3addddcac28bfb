//! Reads the server lists that editors keep: `{"mcpServers": {…}}` (Cursor, Claude) and `{"servers": {…}}`
//! (VS Code). Such a file is somebody else's, so an entry that cannot be used is left out with a warning, and
//! never stops the rest.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use prism_os::sandbox::NetworkAccess;
use serde_json::{Map, Value};

use super::{
    ConfigError, DestinationConfig, Env, HttpConfig, Origin, SandboxConfig, SourceLocation, Transport,
    http::{self, HeaderError},
    inherit::OWN_SECRETS,
    raw, secret,
};

/// What a file gave.
#[derive(Debug, Default)]
pub struct McpJsonImport {
    pub destinations: BTreeMap<String, DestinationConfig>,
    pub warnings: Vec<ConfigWarning>,
}

/// An entry that was left out, or not taken whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWarning {
    pub file: PathBuf,
    pub name: String,
    /// Completes the sentence that begins with the name.
    pub reason: String,
}

/// What `${…}` may refer to.
struct VariableScope<'a> {
    env: &'a Env,
    workspace: PathBuf,
}

/// What becomes of a plain `${NAME}` that is not set.
#[derive(Clone, Copy)]
enum UnsetVariable {
    /// It may be meant for a shell.
    Stays,
    /// Nobody but us would fill it in.
    IsRefused,
}

/// What an entry says it is.
enum EntryTransport {
    Stdio,
    Http(Option<Transport>),
}

/// An entry that can be used, and what was not taken of it.
struct McpJsonEntry {
    destination: DestinationConfig,
    left_out: Vec<String>,
}

/// Parses the text of such a file; `path` is for messages, and for folders relative to it. The servers' `max_sessions` is at
/// its default; the caller knows the real one.
pub fn parse(path: &Path, text: &str, env: &Env) -> Result<McpJsonImport, ConfigError> {
    let document: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| refuse(path, text, &error))?;
    let servers = ["mcpServers", "servers"].iter().find_map(|key| document.get(key)?.as_object());
    let Some(servers) = servers else {
        return Err(ConfigError::Syntax {
            at: Origin::File(Box::new(SourceLocation::at_offset(path, text, 0))),
            problem: "there is neither \"mcpServers\" nor \"servers\" in it".to_owned(),
            fix: Some(r#"{"mcpServers": {"files": {"command": "npx", "args": ["some-mcp-server"]}}}"#.to_owned()),
        });
    };
    let scope = VariableScope { env, workspace: workspace(path) };
    let mut import = McpJsonImport::default();
    for (name, entry) in servers {
        match destination(name, entry, &scope) {
            Ok(McpJsonEntry { destination, left_out }) => {
                for what in left_out {
                    import.warn(path, name, &format!("is taken without {what}"));
                }
                import.destinations.insert(name.clone(), destination);
            }
            Err(reason) => import.warn(path, name, &format!("is skipped: {reason}")),
        }
    }
    Ok(import)
}

fn refuse(path: &Path, text: &str, error: &serde_json::Error) -> ConfigError {
    let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let place = SourceLocation {
        file: path.to_owned(),
        line: error.line(),
        column: error.column(),
        text: line.trim().chars().take(SourceLocation::SHOWN).collect(),
    };
    // serde_json repeats the position in its text.
    let message = error.to_string();
    let problem = message.split(" at line ").next().unwrap_or(&message);
    let commented = line.contains("//") || line.contains("/*");
    ConfigError::Syntax {
        at: Origin::File(Box::new(place)),
        problem: format!("not JSON: {problem}"),
        fix: commented.then(|| "take the comment out: plain JSON has none".to_owned()),
    }
}

/// Returns the folder that an editor would have open: the one that holds `.cursor` or `.vscode`.
fn workspace(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let is_settings = folder.file_name().is_some_and(|name| name == ".cursor" || name == ".vscode");
    match folder.parent() {
        Some(parent) if is_settings => parent.to_owned(),
        _ => folder.to_owned(),
    }
}

/// Understands one entry, or says why it cannot be used.
fn destination(name: &str, entry: &Value, scope: &VariableScope<'_>) -> Result<McpJsonEntry, String> {
    raw::check_name(name).map_err(|error| format!("{error} ({})", error.fix()))?;
    let entry = entry.as_object().ok_or("it is not an object")?;
    if entry.get("disabled").and_then(Value::as_bool) == Some(true) {
        return Err("it is disabled".to_owned());
    }
    let kind = kind(entry)?;
    let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| present(entry, key));
    match (present(entry, "command"), url, kind) {
        (Some(_), Some(_), _) => Err("it has both a command and a url".to_owned()),
        (_, Some(_), Some(EntryTransport::Stdio)) => Err("its type is stdio, and it has a url".to_owned()),
        (_, None, Some(EntryTransport::Http(_))) => Err("it has no url".to_owned()),
        (None, None, _) => Err("it has neither a command nor a url".to_owned()),
        (Some(program), None, _) => stdio(name, program, entry, scope),
        (None, Some(url), Some(EntryTransport::Http(transport))) => remote(name, url, transport, entry, scope),
        (None, Some(url), None) => remote(name, url, None, entry, scope),
    }
}

/// Reads the type of an entry, which half of the editors call its transport.
fn kind(entry: &Map<String, Value>) -> Result<Option<EntryTransport>, String> {
    let Some(value) = present(entry, "type").or_else(|| present(entry, "transport")) else {
        return Ok(None);
    };
    match value.as_str().unwrap_or_default() {
        "stdio" => Ok(Some(EntryTransport::Stdio)),
        // VS Code means "either of the two" by it, and whoever means Streamable HTTP loses nothing.
        "http" => Ok(Some(EntryTransport::Http(None))),
        "sse" => Ok(Some(EntryTransport::Http(Some(Transport::Sse)))),
        "streamable-http" | "streamableHttp" | "streamable_http" => {
            Ok(Some(EntryTransport::Http(Some(Transport::StreamableHttp))))
        }
        _ => Err(format!("its type is {value}, which is none of stdio, http, streamable-http and sse")),
    }
}

/// Understands an entry that is a command.
fn stdio(
    name: &str,
    program: &Value,
    entry: &Map<String, Value>,
    scope: &VariableScope<'_>,
) -> Result<McpJsonEntry, String> {
    let program = program.as_str().filter(|program| !program.trim().is_empty());
    let program = program.ok_or("its command is not a text")?;

    let mut command = vec![scope.expand(program, UnsetVariable::Stays)?];
    for argument in list(entry, "args")? {
        command.push(scope.expand(argument, UnsetVariable::Stays)?);
    }
    let mut destination = DestinationConfig::stdio(name, command);
    for (variable, value) in object(entry, "env")? {
        let Some(value) = scope.scalar(value, UnsetVariable::Stays, || format!("env.{variable}"))? else {
            continue;
        };
        if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("{variable:?} cannot be set in an environment"));
        }
        destination.env.insert(variable.clone(), secret::literal(&value));
    }
    if let Some(cwd) = present(entry, "cwd") {
        let cwd = cwd.as_str().ok_or("its cwd is not a text")?;
        destination.cwd = Some(scope.workspace.join(scope.expand(cwd, UnsetVariable::Stays)?));
    }
    if destination.command.iter().any(|word| word.contains('\0')) {
        return Err("its command has a NUL character".to_owned());
    }
    destination.sandbox = sandbox(entry, scope)?;
    let mut left_out = Vec::new();
    left_out.extend(entry.get("envFile").map(|_| "its envFile, which is not read".to_owned()));
    // VS Code's, whose rules are its own. Nobody must think that it holds here.
    let is_asked = entry.get("sandboxEnabled").and_then(Value::as_bool) == Some(true);
    if is_asked && destination.sandbox.is_none() {
        left_out.push("its sandboxEnabled, which is not read; write \"sandbox\": true".to_owned());
    }
    Ok(McpJsonEntry { destination, left_out })
}

/// Understands what our own file has as `sandbox`. One that makes no sense is no reason to start the server without.
fn sandbox(entry: &Map<String, Value>, scope: &VariableScope<'_>) -> Result<Option<SandboxConfig>, String> {
    let room = match present(entry, "sandbox") {
        None | Some(Value::Bool(false)) => return Ok(None),
        Some(Value::Bool(true)) => return Ok(Some(SandboxConfig::default())),
        Some(Value::Object(room)) => room,
        Some(_) => return Err("its sandbox is neither true, false nor an object".to_owned()),
    };
    if let Some(key) = room.keys().find(|key| !raw::keys::SANDBOX_KEYS.contains(&key.as_str())) {
        return Err(format!("its sandbox has {key:?}, and may have {}", raw::keys::SANDBOX_KEYS.join(", ")));
    }
    let paths = |key| {
        let names = list(room, key).map_err(|error| format!("{error}, in its sandbox"))?;
        let path = |name| Ok::<_, String>(scope.workspace.join(scope.expand(name, UnsetVariable::IsRefused)?));
        names.into_iter().map(path).collect::<Result<Vec<_>, _>>()
    };
    let (folders, readable) = (paths("folders")?, paths("readable")?);
    let network = match present(room, "network").map(|network| network.as_str().unwrap_or_default()) {
        None => SandboxConfig::default().network,
        Some("all") => NetworkAccess::All,
        Some("none") => NetworkAccess::Own,
        Some(_) => return Err("the network of its sandbox is neither \"all\" nor \"none\"".to_owned()),
    };
    Ok(Some(SandboxConfig { folders, readable, network }))
}

/// Understands an entry that is a URL.
fn remote(
    name: &str,
    url: &Value,
    transport: Option<Transport>,
    entry: &Map<String, Value>,
    scope: &VariableScope<'_>,
) -> Result<McpJsonEntry, String> {
    let url = scope.expand(url.as_str().ok_or("its url is not a text")?, UnsetVariable::IsRefused)?;
    http::check_url(&url).map_err(|problem| format!("its url {problem}"))?;
    let mut http = HttpConfig { transport, ..HttpConfig::new(&url) };
    let mut left_out = Vec::new();
    left_out.extend(present(entry, "sandbox").map(|_| "its sandbox: nothing is started for a url".to_owned()));
    for (header, value) in object(entry, "headers")? {
        let Some(value) = scope.scalar(value, UnsetVariable::IsRefused, || format!("headers.{header}"))? else {
            continue;
        };
        // `env:NAME` is the way of our own file. Here it is a value like any other.
        let value = secret::literal(&value);
        match http::check_header(header, &value) {
            Ok(()) => {}
            // Often copied from a page that tells how to call the server by hand.
            Err(HeaderError::Protocol) => {
                left_out.push(format!("its header {header}, which belongs to the protocol"));
                continue;
            }
            Err(error) => return Err(format!("headers.{header} {error}")),
        }
        if http.headers.keys().any(|other| other.eq_ignore_ascii_case(header)) {
            return Err(format!("headers.{header} {}", HeaderError::Twice));
        }
        http.headers.insert(header.clone(), value);
    }
    Ok(McpJsonEntry { destination: DestinationConfig::http(name, http), left_out })
}

fn present<'a>(entry: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    entry.get(key).filter(|value| !value.is_null())
}

fn list<'a>(entry: &'a Map<String, Value>, key: &str) -> Result<Vec<&'a str>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => value
            .as_array()
            .and_then(|values| values.iter().map(Value::as_str).collect())
            .ok_or_else(|| format!("its {key} are not a list of texts")),
    }
}

fn object<'a>(
    entry: &'a Map<String, Value>,
    key: &str,
) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None.into_iter().flatten()),
        Some(Value::Object(map)) => Ok(Some(map).into_iter().flatten()),
        Some(_) => Err(format!("its {key} is not an object")),
    }
}

// === impl McpJsonImport ===

impl McpJsonImport {
    fn warn(&mut self, file: &Path, name: &str, reason: &str) {
        self.warnings.push(ConfigWarning { file: file.to_owned(), name: name.to_owned(), reason: reason.to_owned() });
    }
}

// === impl ConfigWarning ===

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} {}", self.file.display(), self.name, self.reason)
    }
}

// === impl VariableScope ===

impl VariableScope<'_> {
    /// Returns the text of a value, or nothing for `null`, which is VS Code's way to say "unset".
    fn scalar(&self, value: &Value, unset: UnsetVariable, key: impl Fn() -> String) -> Result<Option<String>, String> {
        match value {
            Value::String(text) => self.expand(text, unset).map(Some),
            Value::Number(number) => Ok(Some(number.to_string())),
            Value::Bool(value) => Ok(Some(value.to_string())),
            Value::Null => Ok(None),
            Value::Array(_) | Value::Object(_) => Err(format!("{} is not a text", key())),
        }
    }

    /// Replaces each `${…}`.
    fn expand(&self, text: &str, unset: UnsetVariable) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inner, tail)) = after.split_once('}') else {
                break;
            };
            expanded.push_str(before);
            match (self.value(inner)?, unset) {
                (Some(value), _) => expanded.push_str(&value),
                (None, UnsetVariable::Stays) => expanded.push_str(&format!("${{{inner}}}")),
                (None, UnsetVariable::IsRefused) => return Err(missing(inner)),
            }
            rest = tail;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, inner: &str) -> Result<Option<String>, String> {
        // Prism's own secrets are given to no server, by this way neither. (M1)
        let variable = |name: &str| {
            let value = self.env.var(name).filter(|_| !OWN_SECRETS.contains(&name));
            value.and_then(|value| value.to_str()).map(str::to_owned)
        };
        if let Some(name) = inner.strip_prefix("env:") {
            return variable(name).map(Some).ok_or_else(|| missing(name));
        }
        if let Some((name, default)) = inner.split_once(":-") {
            return Ok(Some(variable(name).unwrap_or_else(|| default.to_owned())));
        }
        match inner {
            "workspaceFolder" => Ok(Some(self.workspace.to_string_lossy().into_owned())),
            "userHome" => Ok(variable("HOME")),
            _ if inner.contains(':') => Err(format!("only an editor can fill in ${{{inner}}}")),
            _ => Ok(variable(inner)),
        }
    }
}

fn missing(variable: &str) -> String {
    format!("it wants the environment variable {variable}, which is not set")
}
