//! Texts that two sides had changed when a buffer changed hands. One of them is the buffer now; the other is kept here until
//! somebody has read it and dropped it. Nothing that was written and not saved is lost because an editor came or went.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prism_core::policy::GrantRoot;
use prism_editor::digest_of;
use serde_json::{Value, json};
use tracing::warn;

use super::sieve::is_granted;

#[derive(Debug, Default)]
pub(super) struct LooseTexts(Mutex<BTreeMap<PathBuf, Vec<LooseText>>>);

/// A text that is not in any buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LooseText {
    pub(super) text: Arc<str>,
    /// Whose it was: an editor's connection, or the built-in editor.
    pub(super) from: String,
}

/// Bytes of texts that are kept. What is beyond is lost, and said in the log: nobody has looked at so much of it.
const MAX_BYTES: usize = 128 << 20;

impl LooseTexts {
    /// Keeps a text, unless the very same is kept already. Returns whether it is kept.
    pub(super) fn keep(&self, path: &Path, kept: LooseText) -> bool {
        let mut table = self.table();
        let of_path = table.get(path);
        if of_path.is_some_and(|all| all.iter().any(|one| one.text == kept.text)) {
            return true;
        }
        let bytes: usize = table.values().flatten().map(|one| one.text.len()).sum();
        if bytes + kept.text.len() > MAX_BYTES {
            warn!(path = %path.display(), bytes = kept.text.len(), "Unsaved text was lost: too much is kept already");
            return false;
        }
        table.entry(path.to_owned()).or_default().push(kept);
        true
    }

    pub(super) fn at(&self, path: &Path) -> Vec<LooseText> {
        self.table().get(path).cloned().unwrap_or_default()
    }

    /// Drops what is kept of a path. Returns whether there was anything.
    pub(super) fn drop_at(&self, path: &Path) -> bool {
        self.table().remove(path).is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// Says in a list of buffers which of them are kept in another text, too.
    pub(super) fn mark(&self, buffers: &mut Vec<Value>, roots: &[GrantRoot]) {
        let told = |all: &[LooseText]| -> Value {
            let one = |kept: &LooseText| json!({"from": kept.from, "bytes": kept.text.len(), "digest": digest_of(kept.text.as_bytes())});
            all.iter().map(one).collect()
        };
        for (path, all) in self.table().iter().filter(|(path, _)| is_granted(roots, path)) {
            let name = path.display().to_string();
            let index = buffers.iter().position(|buffer| buffer["path"] == name.as_str()).unwrap_or_else(|| {
                buffers.push(json!({"path": name, "is_dirty": false, "is_open": false}));
                buffers.len() - 1
            });
            buffers[index]["is_conflicted"] = true.into();
            buffers[index]["kept"] = told(all);
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Vec<LooseText>>> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_text_is_told_of_to_those_who_may_reach_it_and_the_same_one_is_kept_once() {
        let texts = LooseTexts::default();
        let kept = |text: &str| LooseText { text: text.into(), from: "vscode#1".to_owned() };
        for text in ["one", "one", "two"] {
            assert!(texts.keep(Path::new("/w/a"), kept(text)));
        }
        texts.keep(Path::new("/v/b"), kept("three"));
        assert_eq!(texts.at(Path::new("/w/a")), [kept("one"), kept("two")]);
        let mut buffers = vec![json!({"path": "/w/a", "version": 3})];
        texts.mark(&mut buffers, &[GrantRoot::new("/w").unwrap()]);
        assert_eq!((buffers.len(), &buffers[0]["is_conflicted"], &buffers[0]["version"]), (1, &json!(true), &json!(3)));
        assert_eq!(buffers[0]["kept"][1]["bytes"], 3);
        texts.mark(&mut buffers, &[GrantRoot::new("/v").unwrap()]);
        assert_eq!((&buffers[1]["path"], &buffers[1]["is_open"]), (&json!("/v/b"), &json!(false)));
        assert!(texts.drop_at(Path::new("/w/a")) && !texts.drop_at(Path::new("/w/a")));
        assert!(!texts.keep(Path::new("/w/a"), kept(&"x".repeat(MAX_BYTES))), "there is an end to it");
    }
}
