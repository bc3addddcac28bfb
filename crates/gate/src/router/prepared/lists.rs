//! What all editors have a part in: the open buffers of all of them, and the editors themselves.

use std::{sync::Arc, time::Duration};

use prism_core::policy::{Code, GrantRoot, Refusal};
use prism_editor::{ActionPreview, GrantHolder, ProgressSink, VerbOrder};
use serde_json::{Map, Value, json};

use super::{
    super::{EditorRouter, Plugin, owners::OwnershipStage, sieve::sifted},
    errand::USUAL,
};

pub(super) struct MergedListing {
    what: ListingKind,
    /// What the built-in editor has to say; `None` if it has nothing.
    builtin: Option<prism_editor::PreparedVerb>,
    roots: Vec<GrantRoot>,
    holder: GrantHolder,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListingKind {
    Buffers,
    Plugins,
}

impl MergedListing {
    pub(super) async fn buffers(router: &EditorRouter, order: VerbOrder) -> Result<Self, Refusal> {
        let (roots, holder) = (order.roots.clone(), order.holder.clone());
        let builtin = Some(router.builtin.prepare(order).await?);
        Ok(Self { what: ListingKind::Buffers, builtin, roots, holder })
    }

    pub(super) async fn plugins(router: &EditorRouter, order: VerbOrder) -> Result<Self, Refusal> {
        let (roots, holder) = (order.roots.clone(), order.holder.clone());
        let is_list = order.args.get("do").is_none_or(|word| word == "list");
        let builtin = match router.builtin.prepare(order).await {
            Ok(prepared) => Some(prepared),
            Err(refusal) if refusal.code == Code::Unsupported && is_list => None,
            Err(refusal) => return Err(refusal),
        };
        Ok(Self { what: ListingKind::Plugins, builtin, roots, holder })
    }

    pub(super) fn shown(&self) -> ActionPreview {
        let plain =
            || ActionPreview::Plain { title: "List the editors that are connected".to_owned(), lines: Vec::new() };
        self.builtin.as_ref().map_or_else(plain, prism_editor::PreparedVerb::shown)
    }

    /// A list is made by looking, wherever it comes from.
    pub(super) fn only_looks(&self) -> bool {
        self.builtin.as_ref().is_none_or(|builtin| self.what == ListingKind::Buffers || builtin.only_looks())
    }

    pub(super) fn deadline(&self) -> Duration {
        self.builtin.as_ref().map_or(USUAL, prism_editor::PreparedVerb::deadline) + USUAL
    }

    pub(super) async fn run(self, router: &EditorRouter, progress: ProgressSink) -> Result<Value, Refusal> {
        let mut result = match self.builtin {
            Some(prepared) => prepared.run(progress.clone()).await?,
            None => json!({}),
        };
        if self.what == ListingKind::Plugins {
            // An agent learns of the editors of its own folders only.
            result["plugins"] = json!(router.listed(|plugin| plugin.touches(&self.roots)));
            return Ok(result);
        }
        let mut buffers = match result["buffers"].take() {
            Value::Array(buffers) => buffers,
            _ => Vec::new(),
        };
        for (plugin, _) in router.owners.all().into_iter().filter(|(_, stage)| *stage == OwnershipStage::Owner) {
            if !plugin.can("get_buffers") || !plugin.touches(&self.roots) {
                continue;
            }
            let theirs = plugin.call("get_buffers", Map::new(), (&self.holder, &self.roots), USUAL, &progress).await;
            // One that does not answer has no part in the list, and is said to have none.
            let Ok(Value::Object(mut theirs)) = theirs.and_then(|theirs| sifted(theirs, &self.roots)) else {
                result["is_complete"] = false.into();
                continue;
            };
            if let Some(Value::Array(theirs)) = theirs.remove("buffers") {
                let own = theirs.into_iter().filter(|buffer| is_of(router, &plugin, buffer)).map(|mut buffer| {
                    buffer["plugin"] = plugin.about.plugin.as_str().into();
                    buffer
                });
                buffers.extend(own);
            }
            if theirs.get("ui") == Some(&Value::Bool(true)) {
                result["ui"] = true.into();
            }
        }
        router.kept.mark(&mut buffers, &self.roots);
        result["buffers"] = buffers.into();
        Ok(result)
    }
}

/// Whether a buffer is the editor's to list: another may own its folder.
fn is_of(router: &EditorRouter, plugin: &Arc<Plugin>, buffer: &Value) -> bool {
    use super::super::owners::PathOwner;
    let path = buffer["path"].as_str().and_then(prism_editor::protocol::as_path);
    path.is_some_and(|path| matches!(router.owners.of(&path), PathOwner::Plugin(owner) if Arc::ptr_eq(&owner, plugin)))
}
