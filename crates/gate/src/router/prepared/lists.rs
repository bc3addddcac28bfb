//! What all editors have a part in: the open buffers of all of them, and the editors themselves.

use std::{sync::Arc, time::Duration};

use prism_core::policy::{Code, Refusal, Root};
use prism_editor::{Holder, Order, Progress, Shown};
use serde_json::{Map, Value, json};

use super::{
    super::{Plugin, Router, owners::Stage, sieve::sifted},
    errand::USUAL,
};

pub(super) struct Listing {
    what: What,
    /// What the built-in editor has to say; `None` if it has nothing.
    builtin: Option<prism_editor::Prepared>,
    roots: Vec<Root>,
    holder: Holder,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Buffers,
    Plugins,
}

impl Listing {
    pub(super) async fn buffers(router: &Router, order: Order) -> Result<Self, Refusal> {
        let (roots, holder) = (order.roots.clone(), order.holder.clone());
        let builtin = Some(router.builtin.prepare(order).await?);
        Ok(Self { what: What::Buffers, builtin, roots, holder })
    }

    pub(super) async fn plugins(router: &Router, order: Order) -> Result<Self, Refusal> {
        let (roots, holder) = (order.roots.clone(), order.holder.clone());
        let is_list = order.args.get("do").is_none_or(|word| word == "list");
        let builtin = match router.builtin.prepare(order).await {
            Ok(prepared) => Some(prepared),
            Err(refusal) if refusal.code == Code::Unsupported && is_list => None,
            Err(refusal) => return Err(refusal),
        };
        Ok(Self { what: What::Plugins, builtin, roots, holder })
    }

    pub(super) fn shown(&self) -> Shown {
        let plain = || Shown::Plain { title: "List the editors that are connected".to_owned(), lines: Vec::new() };
        self.builtin.as_ref().map_or_else(plain, prism_editor::Prepared::shown)
    }

    /// A list is made by looking, wherever it comes from.
    pub(super) fn only_looks(&self) -> bool {
        self.builtin.as_ref().is_none_or(|builtin| self.what == What::Buffers || builtin.only_looks())
    }

    pub(super) fn deadline(&self) -> Duration {
        self.builtin.as_ref().map_or(USUAL, prism_editor::Prepared::deadline) + USUAL
    }

    pub(super) async fn run(self, router: &Router, progress: Progress) -> Result<Value, Refusal> {
        let mut result = match self.builtin {
            Some(prepared) => prepared.run(progress.clone()).await?,
            None => json!({}),
        };
        if self.what == What::Plugins {
            // An agent learns of the editors of its own folders only.
            result["plugins"] = json!(router.listed(|plugin| plugin.touches(&self.roots)));
            return Ok(result);
        }
        let mut buffers = match result["buffers"].take() {
            Value::Array(buffers) => buffers,
            _ => Vec::new(),
        };
        for (plugin, _) in router.owners.all().into_iter().filter(|(_, stage)| *stage == Stage::Owner) {
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
fn is_of(router: &Router, plugin: &Arc<Plugin>, buffer: &Value) -> bool {
    use super::super::owners::Owner;
    let path = buffer["path"].as_str().and_then(prism_editor::protocol::as_path);
    path.is_some_and(|path| matches!(router.owners.of(&path), Owner::Plugin(owner) if Arc::ptr_eq(&owner, plugin)))
}
