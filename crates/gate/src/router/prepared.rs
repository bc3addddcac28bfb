//! One order: by whom it is done, what is shown of it, and the doing. The same shape as the built-in editor's own.

mod affects;
mod errand;
mod lists;

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::policy::{ActionCategory, Code, Effect, LossOwner, Refusal, Risk, VerbSpec};
use prism_editor::{ActionPreview, ProgressSink, ResolvedArgs, VerbOrder};
use serde_json::{Value, json};

use self::{errand::PluginCall, lists::MergedListing};
use super::{EditorRouter, Plugin, trace::OrderTrace};

/// An action that can be shown, and then run. Dropping it leaves everything as it was.
pub struct RoutedVerb {
    router: Arc<EditorRouter>,
    way: Executor,
}

enum Executor {
    /// With what to look at again, if it changes texts: an editor may have come for them.
    BuiltIn(prism_editor::PreparedVerb, Option<Box<OrderTrace>>),
    /// The same in a folder that is an editor's, which has a part in the answer; and what it is about.
    Beside(prism_editor::PreparedVerb, Arc<Plugin>, Vec<PathBuf>),
    Plugin(Box<PluginCall>),
    /// What all editors have a part in.
    Listing(Box<MergedListing>),
    /// A text that is kept aside: read, or dropped.
    Kept {
        path: PathBuf,
        verb: &'static str,
    },
}

impl EditorRouter {
    /// Finds out who does it, and has it prepared. Nothing is changed.
    pub async fn prepare(&self, order: VerbOrder) -> Result<RoutedVerb, Refusal> {
        let way = self.way(order).await?;
        let router = self.this.upgrade().ok_or_else(|| Refusal::new(Code::Failed, "the daemon is stopping"))?;
        Ok(RoutedVerb { router, way })
    }

    async fn way(&self, mut order: VerbOrder) -> Result<Executor, Refusal> {
        let generation = self.owners.generation();
        match order.verb.verb {
            "manage_plugins" => return Ok(Executor::Listing(Box::new(MergedListing::plugins(self, order).await?))),
            // With no editor about, all this costs nothing.
            _ if self.owners.is_empty() && self.kept.is_empty() => {
                return self.built_in(order, generation).await;
            }
            "get_buffers" => return Ok(Executor::Listing(Box::new(MergedListing::buffers(self, order).await?))),
            _ => {}
        }
        if order.args.get("kept") == Some(&Value::Bool(true)) && matches!(order.verb.verb, "open_file" | "close_buffer")
        {
            return self.kept(order).await;
        }
        let ResolvedArgs { args, paths } = self.builtin.locate(&order).await?;
        let mut owners = Vec::with_capacity(1);
        for path in &paths {
            owners.push(self.owner(path).await?);
        }
        let is_same = |other: &Option<Arc<Plugin>>| match (&owners[0], other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        if owners.is_empty() {
            return self.built_in(order, generation).await;
        }
        if !owners.iter().all(is_same) {
            let why = "these files are open in different editors; take one editor's at a time";
            return Err(Refusal::new(Code::Unsupported, why));
        }
        let Some(plugin) = owners.swap_remove(0) else {
            return self.built_in(order, generation).await;
        };
        if plugin.can(order.verb.verb) {
            order.args = args;
            return Ok(Executor::Plugin(Box::new(PluginCall::new(order, plugin, paths))));
        }
        let is_unsaved = paths.iter().any(|path| plugin.is_unsaved(path));
        if !can_do_without(order.verb) || (is_unsaved && reads_text(order.verb)) {
            let why = format!(
                "{} has this folder open and cannot {}; the built-in editor would not see what is open there",
                plugin.about.kind, order.verb.verb
            );
            return Err(Refusal::new(Code::Unsupported, why));
        }
        Ok(Executor::Beside(self.builtin.prepare(order).await?, plugin, paths))
    }

    async fn built_in(&self, order: VerbOrder, generation: u64) -> Result<Executor, Refusal> {
        let trace = changes_texts(order.verb).then(|| Box::new(OrderTrace::of(&order, generation)));
        Ok(Executor::BuiltIn(self.builtin.prepare(order).await?, trace))
    }

    async fn kept(&self, mut order: VerbOrder) -> Result<Executor, Refusal> {
        order.args.remove("kept");
        if order.verb.verb == "close_buffer" && order.args.remove("discard") != Some(Value::Bool(true)) {
            return Err(Refusal::new(Code::BadArguments, "a kept text is dropped with `discard` only"));
        }
        let located = self.builtin.locate(&order).await?;
        let Some(path) = located.paths.into_iter().next().filter(|path| !self.kept.at(path).is_empty()) else {
            return Err(Refusal::new(Code::NotFound, "no other text of this file is kept; get_buffers lists them"));
        };
        Ok(Executor::Kept { path, verb: order.verb.verb })
    }
}

/// Whether the built-in editor can do a verb in a folder that another has open: what only reads, and does not ask about a
/// window; and what sees the disk only, whoever does it.
fn can_do_without(verb: &VerbSpec) -> bool {
    match verb.category {
        ActionCategory::Terminal | ActionCategory::Git | ActionCategory::Project => true,
        ActionCategory::Sync | ActionCategory::Buffers => false,
        ActionCategory::Files | ActionCategory::Analysis | ActionCategory::Search | ActionCategory::Advanced => {
            verb.risk == Risk::Reads
        }
    }
}

/// Whether a verb changes texts that may be an editor's by the time it is run.
fn changes_texts(verb: &VerbSpec) -> bool {
    let on_disk = matches!(verb.category, ActionCategory::Terminal | ActionCategory::Git | ActionCategory::Project);
    verb.risk != Risk::Reads && !on_disk
}

/// Whether a verb is about a text, and so about the one in the editor.
fn reads_text(verb: &VerbSpec) -> bool {
    matches!(verb.category, ActionCategory::Analysis | ActionCategory::Advanced)
        || matches!(verb.verb, "open_file" | "find_in_file")
}

// === impl RoutedVerb ===

impl RoutedVerb {
    /// What will happen. Of an editor's text it is made from that text, and what is run is bound to it.
    pub async fn shown(&mut self) -> Result<ActionPreview, Refusal> {
        match &mut self.way {
            Executor::BuiltIn(prepared, _) | Executor::Beside(prepared, ..) => Ok(prepared.shown()),
            Executor::Plugin(errand) => errand.shown(&self.router).await,
            Executor::Listing(listing) => Ok(listing.shown()),
            Executor::Kept { path, .. } => {
                let title = format!("Drop the text of {} that was kept aside", path.display());
                Ok(ActionPreview::Plain { title, lines: Vec::new() })
            }
        }
    }

    /// How long it may take at most.
    pub fn deadline(&self) -> Duration {
        match &self.way {
            Executor::BuiltIn(prepared, _) | Executor::Beside(prepared, ..) => prepared.deadline(),
            Executor::Plugin(errand) => errand.deadline(),
            Executor::Listing(listing) => listing.deadline(),
            Executor::Kept { .. } => errand::USUAL,
        }
    }

    /// How many bytes of new text it puts in, as far as that is known before.
    pub fn writes(&self) -> u64 {
        match &self.way {
            Executor::BuiltIn(prepared, _) | Executor::Beside(prepared, ..) => prepared.writes(),
            Executor::Plugin(_) | Executor::Listing(_) | Executor::Kept { .. } => 0,
        }
    }

    /// What it does to files, as far as that is known. An editor is asked what it would change.
    pub async fn effects(&mut self) -> Result<Option<Vec<Effect>>, Refusal> {
        match &mut self.way {
            Executor::BuiltIn(prepared, _) | Executor::Beside(prepared, ..) => {
                Ok(prepared.effects().map(<[Effect]>::to_vec))
            }
            Executor::Plugin(errand) => errand.effects(&self.router).await.map(Some),
            Executor::Kept { path, verb: "close_buffer" } => {
                let what = format!("{}: a text that was kept aside, and is nowhere else, is dropped", path.display());
                Ok(Some(vec![Effect::Loss { what, whose: LossOwner::Others }]))
            }
            Executor::Listing(_) | Executor::Kept { .. } => Ok(Some(Vec::new())),
        }
    }

    /// Whether it changes nothing at all, whatever else its verb may do.
    pub fn only_looks(&self) -> bool {
        match &self.way {
            Executor::BuiltIn(prepared, _) | Executor::Beside(prepared, ..) => prepared.only_looks(),
            Executor::Listing(listing) => listing.only_looks(),
            Executor::Plugin(_) | Executor::Kept { .. } => false,
        }
    }

    pub async fn run(self, progress: ProgressSink) -> Result<Value, Refusal> {
        match self.way {
            Executor::BuiltIn(prepared, trace) => {
                // Held until it is done: nobody takes the texts over meanwhile.
                let _at_work = match trace {
                    Some(trace) => Some(self.router.is_still_ours(*trace).await?),
                    None => None,
                };
                prepared.run(progress).await
            }
            Executor::Beside(prepared, plugin, paths) => Ok(beside(prepared.run(progress).await?, &plugin, &paths)),
            Executor::Plugin(errand) => errand.run(&self.router, &progress).await,
            Executor::Listing(listing) => listing.run(&self.router, progress).await,
            Executor::Kept { path, verb: "close_buffer" } => {
                self.router.kept.drop_at(&path);
                Ok(json!({"path": path}))
            }
            Executor::Kept { path, .. } => {
                let texts = self.router.kept.at(&path);
                let told = texts.iter().map(|kept| json!({"from": kept.from, "content": &*kept.text}));
                Ok(json!({"path": path, "kept": told.collect::<Vec<_>>()}))
            }
        }
    }
}

/// Adds what only the editor knows to what the built-in one says of its folder: nothing of others.
fn beside(mut result: Value, plugin: &Plugin, paths: &[PathBuf]) -> Value {
    if result.get("runtime").is_some() {
        result["runtime"] = json!({"kind": plugin.about.kind, "ui": plugin.about.ui, "plugin": plugin.about.plugin});
    }
    let beneath = plugin.unsaved().into_iter().filter(|(path, _)| paths.iter().any(|above| path.starts_with(above)));
    let beneath: Vec<Value> = beneath.map(|(path, _)| path.display().to_string().into()).collect();
    if let Some(unsaved) = result.get_mut("unsaved").and_then(Value::as_array_mut) {
        unsaved.extend(beneath);
    } else if result.get("matches").is_some() && !beneath.is_empty() {
        // What was found is what the disk has, and that is said.
        (result["is_complete"], result["unsaved"]) = (false.into(), beneath.into());
    }
    result
}
