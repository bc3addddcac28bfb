//! Texts change hands: to an editor that has come, and back when it leaves. One side has a buffer at a time, and a text that
//! both have changed is not lost (`kept`).

use std::{
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use prism_editor::{EditorEvent, GrantHolder, ProgressSink, ReleasedText, digest_of};
use serde_json::{Map, Value, json};
use tracing::{info, warn};

use super::{
    EditorRouter,
    kept::LooseText,
    owners::{OwnershipStage, PathOwner},
    plugin::{Plugin, PluginLiveness},
};

/// How long an editor may take over one text that it is given.
const TEXT_WITHIN: Duration = Duration::from_secs(10);

/// Texts of which it is known how they came from an editor. Beyond it that is forgotten, and one that comes back to a changed
/// text is kept aside rather than merged: nothing is lost.
const MAX_ADOPTED: usize = 1024;

/// A text for an editor.
struct TextOffer<'a> {
    path: &'a Path,
    text: &'a str,
    /// Of the file that it was made from.
    base: Option<String>,
    /// How it was when an editor left it here.
    came_as: Option<AdoptedText>,
}

/// How a text was when an editor left it here, and which window that was.
#[derive(Clone, Debug)]
pub(super) struct AdoptedText {
    digest: String,
    instance: String,
}

/// What became of a text that was offered to an editor.
enum OfferOutcome {
    /// It is the editor's now.
    Taken,
    /// The editor has another.
    Differs,
}

impl EditorRouter {
    /// Looks after one connection: while somebody is there it owns its folders, after that it does not.
    pub(super) async fn keep(self: Arc<Self>, plugin: Arc<Plugin>) {
        let mut life = plugin.life.subscribe();
        let mut is_owner = false;
        loop {
            let now = *life.borrow_and_update();
            match now {
                PluginLiveness::Alive if !is_owner => {
                    self.owners.set(&plugin, OwnershipStage::Taking);
                    self.hand_over(&plugin).await;
                    self.owners.set(&plugin, OwnershipStage::Owner);
                    is_owner = true;
                    info!(plugin = plugin.about.connection, "An editor owns its folders");
                    self.tell(&plugin, "plugin_loaded", json!({"plugin": plugin.about.plugin}));
                }
                PluginLiveness::Unsure | PluginLiveness::Gone if is_owner => {
                    self.owners.set(&plugin, OwnershipStage::Leaving);
                    plugin.abandon();
                    // An editor outlives the daemon, with its texts.
                    if !self.is_closing.load(Ordering::Relaxed) {
                        self.take_back(&plugin).await;
                    }
                    self.owners.set(&plugin, OwnershipStage::Unsure);
                    is_owner = false;
                    info!(plugin = plugin.about.connection, "An editor no longer owns its folders");
                }
                _ => {}
            }
            if now == PluginLiveness::Gone {
                self.owners.remove(&plugin);
                return self.metrics.plugins(self.owners.all().len());
            }
            if life.changed().await.is_err() {
                return;
            }
        }
    }

    /// Gives an editor what the built-in one has unsaved beneath its folders.
    async fn hand_over(&self, plugin: &Arc<Plugin>) {
        self.rests().await;
        for root in plugin.roots() {
            for text in self.builtin.surrender(root).await {
                let came_as = self.adopted().remove(&text.path);
                let offer = TextOffer { path: &text.path, text: &text.text, base: text.digest.clone(), came_as };
                match self.offer(plugin, &offer).await {
                    Ok(OfferOutcome::Taken) => continue,
                    Ok(OfferOutcome::Differs) => {}
                    Err(refusal) => {
                        let code = refusal.code.name();
                        warn!(plugin = plugin.about.connection, code, "An editor did not take a text");
                        // One that does not answer is none.
                        if refusal.code == Code::TimedOut {
                            plugin.end();
                        }
                        // It went away: the text is ours, as before.
                        if *plugin.life.borrow() == PluginLiveness::Gone && self.reopen(root, &text).await {
                            if let Some(adopted) = offer.came_as {
                                self.note_adopted(&text.path, adopted);
                            }
                            continue;
                        }
                    }
                }
                self.conflict(&text.path, &text.text, "built-in");
            }
        }
    }

    /// Gives a text to an editor, onto the version that it has. It is taken only if what is there is the same, or what the
    /// text was made from; or if it was made in that very window, which has gone on with it since.
    async fn offer(&self, plugin: &Plugin, offer: &TextOffer<'_>) -> Result<OfferOutcome, Refusal> {
        let there = self.ask(plugin, "open_file", json!({"path": offer.path})).await?;
        let content = there["content"].as_str().filter(|_| there["encoding"] != "base64");
        let Some(content) = content else { return Ok(OfferOutcome::Differs) };
        if content == offer.text {
            return Ok(OfferOutcome::Taken);
        }
        let digest = digest_of(content.as_bytes());
        let came_as = offer.came_as.as_ref();
        if offer.base.as_ref() != Some(&digest) && came_as.is_none_or(|came| came.digest != digest) {
            // The same window has gone on with it. Another one may have found an older text in its backups.
            let is_older = there["is_dirty"] == true
                && came_as.is_some_and(|came| {
                    came.digest == digest_of(offer.text.as_bytes()) && came.instance == plugin.about.instance
                });
            return Ok(if is_older { OfferOutcome::Taken } else { OfferOutcome::Differs });
        }
        let Some(version) = there["version"].as_u64() else {
            return Err(Refusal::new(Code::Failed, "the editor does not say which version it has"));
        };
        let whole = json!({"start": {"line": 0, "character": 0}, "end": end_of(content)});
        let edits = json!([{"range": whole, "new_text": offer.text}]);
        match self.ask(plugin, "edit_buffer", json!({"path": offer.path, "version": version, "edits": edits})).await {
            Ok(_) => Ok(OfferOutcome::Taken),
            Err(refusal) if refusal.code == Code::Changed => Ok(OfferOutcome::Differs),
            Err(refusal) => Err(refusal),
        }
    }

    /// Takes back what an editor had unsaved when it left.
    async fn take_back(&self, plugin: &Arc<Plugin>) {
        for (path, unsaved) in plugin.unsaved() {
            let Some(root) = plugin.roots().iter().find(|root| path.starts_with(root)) else { continue };
            // Another window may have the folder now; while this one leaves it is nobody's.
            if let Some(other) = self.owner_but(&path, plugin).await {
                let offer = TextOffer { path: &path, text: &unsaved.text, base: None, came_as: None };
                if !matches!(self.offer(&other, &offer).await, Ok(OfferOutcome::Taken)) {
                    self.conflict(&path, &unsaved.text, &plugin.about.connection);
                }
                continue;
            }
            let text = ReleasedText { path, text: unsaved.text, digest: None };
            if self.reopen(root, &text).await {
                let digest = digest_of(text.text.as_bytes());
                self.note_adopted(&text.path, AdoptedText { digest, instance: plugin.about.instance.clone() });
            } else {
                self.conflict(&text.path, &text.text, &plugin.about.connection);
            }
        }
    }

    /// Opens a text in the built-in editor, unsaved as it is. Returns whether that worked.
    async fn reopen(&self, root: &Path, text: &ReleasedText) -> bool {
        let opened = self.builtin.adopt(root, &text.path, &text.text).await;
        if let Err(refusal) = &opened {
            warn!(code = refusal.code.name(), "An unsaved text could not be taken back and is kept aside");
        }
        opened.is_ok()
    }

    fn note_adopted(&self, path: &Path, came_as: AdoptedText) {
        let mut adopted = self.adopted();
        if adopted.len() >= MAX_ADOPTED {
            adopted.clear();
        }
        adopted.insert(path.to_owned(), came_as);
    }

    /// The other editor that a path belongs to. If it is about to become the owner, that is waited for.
    async fn owner_but(&self, path: &Path, leaving: &Arc<Plugin>) -> Option<Arc<Plugin>> {
        let settled = async {
            let mut changes = self.owners.changes();
            loop {
                let others = self.owners.all().into_iter();
                let mut others = others.filter(|(plugin, stage)| {
                    !Arc::ptr_eq(plugin, leaving) && *stage != OwnershipStage::Unsure && plugin.covers(path)
                });
                match others.next() {
                    None => return None,
                    Some((plugin, OwnershipStage::Owner)) => return Some(plugin),
                    Some(_) => {}
                }
                if changes.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(TEXT_WITHIN, settled).await.ok().flatten()
    }

    /// Keeps a text aside, and tells of it.
    fn conflict(&self, path: &Path, text: &str, from: &str) {
        self.kept.keep(path, LooseText { text: text.into(), from: from.to_owned() });
        let data = json!({"path": path, "reason": "conflict", "is_conflicted": true});
        self.happen("buffer_changed", path, data);
    }

    pub(super) fn happen(&self, name: &str, path: &Path, data: Value) {
        if let Some(event) = prism_core::policy::EventSpec::named(name) {
            let path = Some(path.to_owned());
            self.builtin.tell(EditorEvent { event, path, to: None, by: None, data });
        }
    }

    fn tell(&self, plugin: &Plugin, name: &str, data: Value) {
        if let Some(root) = plugin.roots().first() {
            self.happen(name, root, data);
        }
    }

    async fn ask(&self, plugin: &Plugin, verb: &str, args: Value) -> Result<Value, Refusal> {
        if !plugin.can(verb) {
            return Err(Refusal::new(Code::Unsupported, format!("{} cannot {verb}", plugin.about.kind)));
        }
        let args = match args {
            Value::Object(args) => args,
            _ => Map::new(),
        };
        let holder = GrantHolder { id: 0, name: "prism".to_owned(), ..GrantHolder::default() };
        plugin.call(verb, args, (&holder, &[]), TEXT_WITHIN, &ProgressSink::unseen()).await
    }

    /// Whose a path is, once it is somebody's.
    pub(super) async fn owner(&self, path: &Path) -> Result<Option<Arc<Plugin>>, Refusal> {
        let settled = async {
            let mut changes = self.owners.changes();
            loop {
                match self.owners.of(path) {
                    PathOwner::BuiltIn => return None,
                    PathOwner::Plugin(plugin) => return Some(plugin),
                    PathOwner::Nobody => {}
                }
                if changes.changed().await.is_err() {
                    return None;
                }
            }
        };
        tokio::time::timeout(super::SETTLE_WITHIN, settled).await.map_err(|_| Refusal {
            code: Code::TimedOut,
            message: "an editor is taking over this folder; try again".to_owned(),
            retry_after: Some(Duration::from_secs(1)),
        })
    }
}

/// Where a text ends.
fn end_of(text: &str) -> Value {
    let (mut lines, mut last, mut was_return) = (0_u64, 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            '\n' if was_return => last = at + 1,
            '\n' | '\r' => (lines, last) = (lines + 1, at + 1),
            _ => {}
        }
        was_return = letter == '\r';
    }
    let character: usize = text[last..].chars().map(char::len_utf16).sum();
    json!({"line": lines, "character": character})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_where_editors_say() {
        for (text, line, character) in
            [("", 0, 0), ("a", 0, 1), ("a\n", 1, 0), ("a\r\nb😀", 1, 3), ("a\r\rb\n\nc", 4, 1), ("\n\r\n", 2, 0)]
        {
            assert_eq!(end_of(text), json!({"line": line, "character": character}), "{text:?}");
        }
    }
}
