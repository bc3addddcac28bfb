//! What an agent says of one path in `prism_start`'s argument `wake`: an object of texts, of which none is long.

use std::path::PathBuf;

use serde_json::{Map, Value};

/// The longest text. What names a socket, a session or a pane is far shorter.
const MAX_BYTES: usize = 1024;

pub(super) struct WakeFields<'a> {
    path: &'static str,
    fields: &'a Map<String, Value>,
}

// === impl WakeFields ===

impl<'a> WakeFields<'a> {
    /// The object, if it has no other members than these.
    pub(super) fn read(path: &'static str, told: &'a Value, known: &[&str]) -> Result<Self, String> {
        let fields =
            told.as_object().ok_or_else(|| format!("wake.{path} must be an object with {}", known.join(", ")))?;
        match fields.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(format!("wake.{path}.{name} is not known; it has {}", known.join(", "))),
            None => Ok(Self { path, fields }),
        }
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Err(self.wrong(name, "must not be empty")),
            Some(Value::String(text)) if text.len() > MAX_BYTES || text.contains(char::is_control) => {
                Err(self.wrong(name, "must be one short line"))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "must be a text")),
        }
    }

    pub(super) fn wanted(&self, name: &str) -> Result<&'a str, String> {
        self.text(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// A file by its whole path: the daemon is in another folder than the agent.
    pub(super) fn file(&self, name: &str) -> Result<Option<PathBuf>, String> {
        match self.text(name)?.map(PathBuf::from) {
            Some(path) if !path.is_absolute() => Err(self.wrong(name, "must be a whole path, from / on")),
            path => Ok(path),
        }
    }

    pub(super) fn wrong(&self, name: &str, why: &str) -> String {
        format!("wake.{}.{name} {why}", self.path)
    }
}
