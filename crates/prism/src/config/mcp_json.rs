//! Reads the server lists that editors keep: `{"mcpServers": {…}}` (Cursor, Claude) and `{"servers": {…}}`
//! (VS Code). Such a file is somebody else's, so an entry that cannot be used is left out with a warning, and
//! never stops the rest.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::{ConfigError, Destination, Env, Origin, Place, file, raw};

/// What a file gave.
#[derive(Debug, Default)]
pub struct Import {
    pub destinations: BTreeMap<String, Destination>,
    pub warnings: Vec<Warning>,
}

/// An entry that was left out, or not taken whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub file: PathBuf,
    pub name: String,
    /// Completes the sentence that begins with the name.
    pub reason: String,
}

/// What `${…}` may refer to.
struct Scope<'a> {
    env: &'a Env,
    workspace: PathBuf,
}

/// Loads the stdio servers of a file. Their `max_sessions` is at its default; the caller knows the real one.
pub fn load(path: &Path, env: &Env) -> Result<Import, ConfigError> {
    parse(path, &file::read(path)?, env)
}

/// Parses the text of such a file; `path` is for messages, and for folders relative to it.
pub fn parse(path: &Path, text: &str, env: &Env) -> Result<Import, ConfigError> {
    let document: Value =
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| refuse(path, text, &error))?;
    let servers = ["mcpServers", "servers"].iter().find_map(|key| document.get(key)?.as_object());
    let Some(servers) = servers else {
        return Err(ConfigError::Syntax {
            at: Origin::File(Box::new(Place::at_offset(path, text, 0))),
            problem: "there is neither \"mcpServers\" nor \"servers\" in it".to_owned(),
            fix: Some(r#"{"mcpServers": {"files": {"command": "npx", "args": ["some-mcp-server"]}}}"#.to_owned()),
        });
    };
    let scope = Scope { env, workspace: workspace(path) };
    let mut import = Import::default();
    for (name, entry) in servers {
        match destination(name, entry, &scope) {
            Ok(destination) => {
                if entry.get("envFile").is_some() {
                    import.warn(path, name, "is taken without its envFile, which is not read");
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
    let place = Place {
        file: path.to_owned(),
        line: error.line(),
        column: error.column(),
        text: line.trim().chars().take(Place::SHOWN).collect(),
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
fn destination(name: &str, entry: &Value, scope: &Scope<'_>) -> Result<Destination, String> {
    raw::check_name(name).map_err(|error| format!("{error} ({})", error.fix()))?;
    let entry = entry.as_object().ok_or("it is not an object")?;
    let transport = entry.get("type").and_then(Value::as_str).unwrap_or("stdio");
    let has_url = ["url", "serverUrl", "httpUrl"].iter().any(|key| entry.contains_key(*key));
    if has_url || transport != "stdio" {
        return Err("it has a url, and HTTP destinations come with a later version".to_owned());
    }
    if entry.get("disabled").and_then(Value::as_bool) == Some(true) {
        return Err("it is disabled".to_owned());
    }
    let program = entry.get("command").ok_or("it has no command")?;
    let program = program.as_str().filter(|program| !program.trim().is_empty());
    let program = program.ok_or("its command is not a text")?;

    let mut command = vec![scope.expand(program)?];
    for argument in list(entry, "args")? {
        command.push(scope.expand(argument)?);
    }
    let mut destination = Destination::stdio(name, command);
    for (variable, value) in object(entry, "env")? {
        let value = match value {
            Value::String(text) => scope.expand(text)?,
            Value::Number(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
            // VS Code's way to say "unset".
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("env.{variable} is not a text"));
            }
        };
        if variable.is_empty() || variable.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("{variable:?} cannot be set in an environment"));
        }
        destination.env.insert(variable.clone(), value);
    }
    if let Some(cwd) = entry.get("cwd").filter(|cwd| !cwd.is_null()) {
        let cwd = cwd.as_str().ok_or("its cwd is not a text")?;
        destination.cwd = Some(scope.workspace.join(scope.expand(cwd)?));
    }
    if destination.command.iter().any(|word| word.contains('\0')) {
        return Err("its command has a NUL character".to_owned());
    }
    Ok(destination)
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

// === impl Import ===

impl Import {
    fn warn(&mut self, file: &Path, name: &str, reason: &str) {
        self.warnings.push(Warning { file: file.to_owned(), name: name.to_owned(), reason: reason.to_owned() });
    }
}

// === impl Warning ===

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} {}", self.file.display(), self.name, self.reason)
    }
}

// === impl Scope ===

impl Scope<'_> {
    /// Replaces each `${…}`. A plain `${NAME}` that is not set stays, since it may be meant for a shell.
    fn expand(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inner, tail)) = after.split_once('}') else {
                break;
            };
            expanded.push_str(before);
            match self.value(inner)? {
                Some(value) => expanded.push_str(&value),
                None => expanded.push_str(&format!("${{{inner}}}")),
            }
            rest = tail;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, inner: &str) -> Result<Option<String>, String> {
        let variable = |name: &str| self.env.var(name).and_then(|value| value.to_str()).map(str::to_owned);
        if let Some(name) = inner.strip_prefix("env:") {
            let missing = || format!("it wants the environment variable {name}, which is not set");
            return variable(name).map(Some).ok_or_else(missing);
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
