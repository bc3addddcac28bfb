//! What the built-in editor is about to do to a text must not come behind the back of an editor that has taken the text over.
//! So a change looks again whose the text is when it is run, and who takes over waits for changes that have begun.

use std::{sync::Arc, time::Duration};

use prism_core::policy::{Code, GrantRoot, Refusal, VerbSpec};
use prism_editor::{GrantHolder, VerbOrder};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{EditorRouter, owners::PathOwner};

/// Where an order goes: enough of it to find its paths again.
pub(super) struct OrderTrace {
    verb: &'static VerbSpec,
    paths: Map<String, Value>,
    roots: Vec<GrantRoot>,
    /// Of the owners, when it was prepared.
    generation: u64,
}

/// A change under way.
pub(super) struct ChangeGuard(Arc<EditorRouter>);

/// How long a takeover waits for changes under way. What has not ended by then finds its buffer closed.
const REST_WITHIN: Duration = Duration::from_secs(10);

impl OrderTrace {
    pub(super) fn of(order: &VerbOrder, generation: u64) -> Self {
        let mut paths: Map<String, Value> = Map::new();
        for name in order.verb.paths {
            if let Some(path) = order.args.get(*name) {
                paths.insert((*name).to_owned(), path.clone());
            }
        }
        if let Some(files) = order.args.get("files").and_then(Value::as_array) {
            let named = files.iter().filter_map(|file| file.get("path").cloned());
            paths.insert("paths".to_owned(), named.collect());
        }
        Self { verb: order.verb, paths, roots: order.roots.clone(), generation }
    }
}

impl EditorRouter {
    /// Refuses if a text that was the built-in editor's is another's by now.
    pub(super) async fn is_still_ours(&self, trace: OrderTrace) -> Result<ChangeGuard, Refusal> {
        let router = self.this.upgrade().ok_or_else(|| Refusal::new(Code::Failed, "the daemon is stopping"))?;
        // First: who takes over from now on waits.
        self.at_work.send_modify(|count| *count += 1);
        let at_work = ChangeGuard(router);
        if self.owners.generation() == trace.generation {
            return Ok(at_work);
        }
        let holder = GrantHolder { id: 0, name: String::new(), ..GrantHolder::default() };
        let order = VerbOrder { verb: trace.verb, args: trace.paths, roots: trace.roots, holder };
        let located = self.builtin.locate(&order).await?;
        let is_ours = |path: &std::path::PathBuf| matches!(self.owners.of(path), PathOwner::BuiltIn);
        if located.paths.iter().all(is_ours) {
            return Ok(at_work);
        }
        Err(Refusal::new(Code::Changed, "an editor has opened this folder meanwhile; look again, then try again"))
    }

    /// Waits until no change is under way.
    pub(super) async fn rests(&self) {
        let mut at_work = self.at_work.subscribe();
        let _ = timeout(REST_WITHIN, at_work.wait_for(|count| *count == 0)).await;
    }
}

impl Drop for ChangeGuard {
    fn drop(&mut self) {
        self.0.at_work.send_modify(|count| *count -= 1);
    }
}
