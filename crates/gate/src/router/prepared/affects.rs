//! What an errand does to files, for who decides whether the person sees it first: an editor is asked for its texts where it is
//! about a part of one, and for a preview where only it knows what it would change.

use std::path::Path;

use prism_core::policy::{Effect, EffectTarget, LossOwner, Refusal, TextLocation, guarded};
use serde_json::{Map, Value};

use super::{super::EditorRouter, errand::PluginCall};

impl PluginCall {
    /// What it changes. An editor may save by itself, so what is changed in it counts as if it were on the disk.
    pub(super) async fn effects(&mut self, router: &EditorRouter) -> Result<Vec<Effect>, Refusal> {
        if self.order.args.get("preview") == Some(&Value::Bool(true)) {
            return Ok(Vec::new());
        }
        match self.order.verb.verb {
            "edit_buffer" | "write_file" | "save_buffer" if self.is_about_one_text() => self.of_one_text().await,
            "edit_buffer" => Ok(self.of_edits()),
            "save_buffer" => {
                let unsaved = self.unsaved().await?;
                let effects = unsaved.iter().map(|path| unknown(path)).collect();
                self.saves = Some(unsaved);
                Ok(effects)
            }
            "format_code" => Ok(self.paths.iter().map(|path| unknown(&path.display().to_string())).collect()),
            "replace_text" | "refactor_symbol" => self.of_preview().await,
            "apply_quick_fix" if self.order.args.get("title").is_some_and(Value::is_string) => self.of_preview().await,
            "create_file" | "delete_file" | "rename_file" => self.of_names(router).await,
            "close_buffer" if self.order.args.get("discard") == Some(&Value::Bool(true)) => self.of_discard().await,
            _ => Ok(Vec::new()),
        }
    }

    async fn of_one_text(&mut self) -> Result<Vec<Effect>, Refusal> {
        let path = self.paths[0].display().to_string();
        let is_write = self.order.verb.verb == "write_file";
        let is_named = self.order.args.get("digest").is_some_and(Value::is_string);
        let mut effects = Vec::new();
        if is_write && !is_named {
            let what = format!("{path}: all that it holds is replaced, and the agent gave no digest of what it saw");
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        if self.order.verb.verb == "save_buffer" && self.order.args.get("overwrite") == Some(&Value::Bool(true)) {
            let what = format!("{path}: what somebody else may have written there meanwhile is replaced");
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        let is_in_part = guarded::guard_of(&path).is_some_and(guarded::GuardedPath::is_in_part);
        let may_empty = self.order.verb.verb == "save_buffer" || (is_write && is_empty(&self.order.args));
        effects.push(match is_in_part || may_empty {
            true => {
                let (before, after) = self.texts().await?;
                let (before, after) = (Some(before.into()), Some(after.into()));
                Effect::Text { path, at: TextLocation::Disk, before, after }
            }
            false => unknown(&path),
        });
        Ok(effects)
    }

    /// Several files, or what is undone in one.
    fn of_edits(&self) -> Vec<Effect> {
        let mut effects: Vec<Effect> = self.paths.iter().map(|path| unknown(&path.display().to_string())).collect();
        if ["undo", "redo"].iter().any(|name| self.order.args.get(*name).is_some_and(|steps| !steps.is_null())) {
            let what = "changes are undone or made again that the person may have made".to_owned();
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        effects
    }

    /// What only the editor knows. It is asked again before it is done, if the person was shown it.
    async fn of_preview(&mut self) -> Result<Vec<Effect>, Refusal> {
        let preview = self.previewed().await?;
        let files = preview["files"].as_array().into_iter().flatten();
        let effects: Vec<Effect> = files.filter_map(|file| file["path"].as_str()).map(unknown).collect();
        let is_guarded = |effect: &Effect| match effect {
            Effect::Text { path, .. } => guarded::guard_of(path).is_some(),
            _ => true,
        };
        if effects.iter().any(is_guarded) {
            self.preview = Some(preview);
        }
        Ok(effects)
    }

    /// What these are about is the disk, and the built-in editor knows what is there.
    async fn of_names(&self, router: &EditorRouter) -> Result<Vec<Effect>, Refusal> {
        let named = |path: &Path| Effect::Name { path: path.display().to_string(), what: EffectTarget::Folder };
        let by_name = || self.paths.iter().map(|path| named(path)).collect();
        match router.builtin.prepare(self.copied()).await {
            Ok(prepared) => Ok(prepared.effects().map_or_else(by_name, <[Effect]>::to_vec)),
            // It has other words for what is wrong, and they are the ones to be heard.
            Err(_) => {
                let mut effects: Vec<Effect> = by_name();
                if self.order.args.get("overwrite") == Some(&Value::Bool(true)) {
                    let what = "what is there by the new name is replaced".to_owned();
                    effects.push(Effect::Loss { what, whose: LossOwner::Others });
                }
                Ok(effects)
            }
        }
    }

    /// Who has typed what in an editor nobody knows but the person.
    async fn of_discard(&mut self) -> Result<Vec<Effect>, Refusal> {
        let Some(path) = self.paths.first().map(|path| path.display().to_string()) else { return Ok(Vec::new()) };
        let args = Map::from_iter([("path".to_owned(), path.as_str().into())]);
        // What cannot be asked may be unsaved.
        let is_dirty = self.ask("open_file", args).await.map_or(true, |there| there["is_dirty"] != false);
        let what = format!("{path}: unsaved text in {} is thrown away", self.plugin.about.kind);
        Ok(is_dirty.then_some(Effect::Loss { what, whose: LossOwner::Others }).into_iter().collect())
    }

    /// The granted texts that the editor has unsaved.
    async fn unsaved(&self) -> Result<Vec<String>, Refusal> {
        let mut listed = self.ask("get_buffers", Map::new()).await?;
        let listed = listed.get_mut("buffers").and_then(Value::as_array_mut).map(std::mem::take).unwrap_or_default();
        let unsaved = listed.iter().filter(|buffer| buffer["is_dirty"] == true);
        let paths = unsaved.filter_map(|buffer| buffer["path"].as_str());
        let granted = paths.filter(|path| self.order.roots.iter().any(|root| root.is_above(path)));
        Ok(granted.map(str::to_owned).collect())
    }
}

/// A text of which it is not known what becomes of it.
fn unknown(path: &str) -> Effect {
    Effect::Text { path: path.to_owned(), at: TextLocation::Disk, before: None, after: None }
}

fn is_empty(args: &Map<String, Value>) -> bool {
    args.get("content").and_then(Value::as_str).is_none_or(|content| content.trim().is_empty())
}
