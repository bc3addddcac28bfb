//! What the daemon knows of the unsaved text in an editor, so that it is not lost with the editor. Kept from the
//! editor's `state` and its events, which are numbered: when one is missing, the state is asked for again.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use prism_editor::{
    edited,
    protocol::{EventMessage, StateMessage, as_path},
};
use serde_json::Value;

/// The unsaved texts of one connection.
#[derive(Debug, Default)]
pub(super) struct BufferMirror {
    seq: u64,
    unsaved: HashMap<PathBuf, UnsavedText>,
    bytes: usize,
    /// Whether what is here may be behind what there is.
    is_stale: bool,
    is_asked: bool,
}

/// A text as it is in the editor and not on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnsavedText {
    pub(super) version: u64,
    pub(super) text: Arc<str>,
}

/// What to make of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorUpdate {
    /// It is new.
    New,
    /// Its number was there already: it is none.
    Again,
    /// It is new, and a text that came with it is more than is kept.
    NotKept,
}

/// Unsaved texts that are kept of one editor, and all their bytes. What is beyond is not kept, and its editor is told.
pub(super) const MAX_UNSAVED: usize = 256;
pub(super) const MAX_BYTES: usize = 64 << 20;

impl BufferMirror {
    /// Takes in all that is open. What is not beneath the editor's folders is not its business here.
    pub(super) fn take(&mut self, state: StateMessage, is_ours: impl Fn(&Path) -> bool) -> MirrorUpdate {
        *self = Self { seq: state.seq, ..Self::default() };
        let mut heard = MirrorUpdate::New;
        for buffer in state.buffers.into_iter().filter(|buffer| buffer.is_dirty) {
            let Some(path) = as_path(&buffer.path).filter(|path| is_ours(path)) else { continue };
            // A dirty text without the text cannot be kept.
            let Some(text) = buffer.text else { continue };
            if !self.keep(path, buffer.version, text) {
                heard = MirrorUpdate::NotKept;
            }
        }
        heard
    }

    /// Takes in an event about this path.
    pub(super) fn hear(&mut self, told: &EventMessage, path: Option<&Path>) -> MirrorUpdate {
        if told.seq <= self.seq {
            return MirrorUpdate::Again;
        }
        self.is_stale |= told.seq != self.seq + 1;
        self.seq = told.seq;
        let Some(path) = path else { return MirrorUpdate::New };
        match told.name() {
            "buffer_changed" => self.changed(path, told),
            "file_saved" | "file_closed" => {
                self.forget(path);
                MirrorUpdate::New
            }
            "file_renamed" => {
                let new_path = told.data.get("new_path").and_then(Value::as_str).and_then(as_path);
                if let (Some(unsaved), Some(new_path)) = (self.forget(path), new_path) {
                    self.keep(new_path, unsaved.version, unsaved.text.as_ref().to_owned());
                }
                MirrorUpdate::New
            }
            _ => MirrorUpdate::New,
        }
    }

    /// Notes that events were not listened to.
    pub(super) fn missed(&mut self) {
        self.is_stale = true;
    }

    /// Whether the state is to be asked for. After that it is not, until it has come.
    pub(super) fn asks(&mut self) -> bool {
        let asks = self.is_stale && !self.is_asked;
        self.is_asked |= asks;
        asks
    }

    pub(super) fn unsaved(&self) -> Vec<(PathBuf, UnsavedText)> {
        let mut all: Vec<_> = self.unsaved.iter().map(|(path, unsaved)| (path.clone(), unsaved.clone())).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    pub(super) fn is_dirty(&self, path: &Path) -> bool {
        self.unsaved.contains_key(path)
    }

    fn changed(&mut self, path: &Path, told: &EventMessage) -> MirrorUpdate {
        let flag = |name: &str| told.data.get(name).and_then(Value::as_bool);
        let number = |name: &str| told.data.get(name).and_then(Value::as_u64);
        if flag("is_dirty") == Some(false) {
            self.forget(path);
            return MirrorUpdate::New;
        }
        let version = number("version").unwrap_or_default();
        let text = match (told.data.get("text"), told.data.get("edits"), number("base_version")) {
            (Some(Value::String(text)), ..) => Some(text.clone()),
            (None, Some(edits), Some(base)) => {
                let before = self.unsaved.get(path).filter(|unsaved| unsaved.version == base);
                before.and_then(|unsaved| edited(&unsaved.text, edits).ok())
            }
            _ => None,
        };
        match text {
            Some(text) => match self.keep(path.to_owned(), version, text) {
                true => MirrorUpdate::New,
                false => MirrorUpdate::NotKept,
            },
            // It is unsaved now, and what it says is not known.
            None => {
                self.is_stale = true;
                MirrorUpdate::New
            }
        }
    }

    fn keep(&mut self, path: PathBuf, version: u64, text: String) -> bool {
        self.forget(&path);
        if self.unsaved.len() >= MAX_UNSAVED || self.bytes + text.len() > MAX_BYTES {
            return false;
        }
        self.bytes += text.len();
        self.unsaved.insert(path, UnsavedText { version, text: text.into() });
        true
    }

    fn forget(&mut self, path: &Path) -> Option<UnsavedText> {
        let unsaved = self.unsaved.remove(path)?;
        self.bytes -= unsaved.text.len();
        Some(unsaved)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(seq: u64, event: &str, data: Value) -> EventMessage {
        serde_json::from_value(json!({"event": event, "seq": seq, "data": data})).unwrap()
    }

    fn changed(seq: u64, data: Value) -> EventMessage {
        told(seq, "buffer_changed", data)
    }

    fn texts(mirror: &BufferMirror) -> Vec<(String, u64, String)> {
        let shown =
            |(path, one): (PathBuf, UnsavedText)| (path.display().to_string(), one.version, one.text.to_string());
        mirror.unsaved().into_iter().map(shown).collect()
    }

    fn text(path: &str, version: u64, text: &str) -> (String, u64, String) {
        (path.to_owned(), version, text.to_owned())
    }

    //
    #[test]
    fn unsaved_text_is_known_from_the_state_and_from_each_change() {
        let mut mirror = BufferMirror::default();
        let state = json!({"seq": 4, "buffers": [
            {"path": "/w/a", "version": 2, "is_dirty": true, "text": "ä\nb"},
            {"path": "/w/clean", "version": 1, "is_dirty": false, "text": "x"},
            {"path": "/elsewhere", "version": 1, "is_dirty": true, "text": "x"},
            {"path": "untitled:1", "version": 1, "is_dirty": true, "text": "x"},
        ]});
        mirror.take(serde_json::from_value(state).unwrap(), |path| path.starts_with("/w"));
        assert_eq!(texts(&mirror), [text("/w/a", 2, "ä\nb")]);
        let at = |line: u64, character: u64| json!({"line": line, "character": character});
        let edits = json!([{"range": {"start": at(0, 1), "end": at(1, 0)}, "new_text": "-"}]);
        let path = Path::new("/w/a");
        let edit = changed(5, json!({"version": 3, "is_dirty": true, "base_version": 2, "edits": edits}));
        assert_eq!(mirror.hear(&edit, Some(path)), MirrorUpdate::New);
        assert_eq!(texts(&mirror), [text("/w/a", 3, "ä-b")]);
        mirror.hear(&changed(6, json!({"version": 4, "is_dirty": true, "text": "new"})), Some(path));
        mirror.hear(&told(7, "file_renamed", json!({"new_path": "/w/c"})), Some(path));
        assert_eq!(texts(&mirror), [text("/w/c", 4, "new")]);
        assert!(!mirror.asks());
        mirror.hear(&told(8, "file_saved", json!({})), Some(Path::new("/w/c")));
        assert!(texts(&mirror).is_empty());
        assert_eq!(mirror.bytes, 0);
    }

    //
    #[test]
    fn a_gap_asks_for_the_state_once_and_what_came_already_is_none() {
        let mut mirror = BufferMirror::default();
        let path = Some(Path::new("/w/a"));
        assert_eq!(
            mirror.hear(&changed(1, json!({"version": 1, "is_dirty": true, "text": "a"})), path),
            MirrorUpdate::New
        );
        assert_eq!(
            mirror.hear(&changed(1, json!({"version": 9, "is_dirty": true, "text": "z"})), path),
            MirrorUpdate::Again
        );
        assert_eq!(texts(&mirror), [text("/w/a", 1, "a")]);
        mirror.hear(&changed(3, json!({"version": 3, "is_dirty": true, "text": "c"})), path);
        assert!(mirror.asks() && !mirror.asks(), "once");
        mirror.take(StateMessage { seq: 3, buffers: Vec::new() }, |_| true);
        assert!(texts(&mirror).is_empty() && !mirror.asks());
    }

    #[test]
    fn edits_on_a_text_that_is_not_known_ask_for_it() {
        let mut mirror = BufferMirror::default();
        let edits = json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "new_text": "x"}]);
        let data = json!({"version": 2, "is_dirty": true, "base_version": 1, "edits": edits});
        mirror.hear(&changed(1, data), Some(Path::new("/w/a")));
        assert!(mirror.asks());
    }

    #[test]
    fn more_than_is_kept_is_said_not_to_be() {
        let mut mirror = BufferMirror::default();
        let large = "x".repeat(MAX_BYTES + 1);
        let data = json!({"version": 1, "is_dirty": true, "text": large});
        assert_eq!(mirror.hear(&changed(1, data), Some(Path::new("/w/a"))), MirrorUpdate::NotKept);
        for n in 0..=MAX_UNSAVED as u64 {
            let data = json!({"version": 1, "is_dirty": true, "text": "t"});
            let heard = mirror.hear(&changed(n + 2, data), Some(Path::new(&format!("/w/{n}"))));
            assert_eq!(heard == MirrorUpdate::NotKept, n >= MAX_UNSAVED as u64, "{n}");
        }
    }
}
