//! One order: by whom it is done, what is shown of it, and the doing. The same shape as the built-in editor's own.

mod affects;
mod errand;
mod lists;

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::policy::{Action, Category, Code, Effect, Refusal, Risk, Whose};
use prism_editor::{Located, Order, Progress, Shown};
use serde_json::{Value, json};

use self::{errand::Errand, lists::Listing};
use super::{Plugin, Router, trace::Trace};

/// An action that can be shown, and then run. Dropping it leaves everything as it was.
pub struct Prepared {
    router: Arc<Router>,
    way: Way,
}

enum Way {
    /// With what to look at again, if it changes texts: an editor may have come for them.
    BuiltIn(prism_editor::Prepared, Option<Box<Trace>>),
    /// The same in a folder that is an editor's, which has a part in the answer; and what it is about.
    Beside(prism_editor::Prepared, Arc<Plugin>, Vec<PathBuf>),
    Plugin(Box<Errand>),
    /// What all editors have a part in.
    Listing(Box<Listing>),
    /// A text that is kept aside: read, or dropped.
    Kept {
        path: PathBuf,
        verb: &'static str,
    },
}

impl Router {
    /// Finds out who does it, and has it prepared. Nothing is changed.
    pub async fn prepare(&self, order: Order) -> Result<Prepared, Refusal> {
        let way = self.way(order).await?;
        let router = self.this.upgrade().ok_or_else(|| Refusal::new(Code::Failed, "the daemon is stopping"))?;
        Ok(Prepared { router, way })
    }

    async fn way(&self, mut order: Order) -> Result<Way, Refusal> {
        let generation = self.owners.generation();
        match order.verb.verb {
            "manage_plugins" => return Ok(Way::Listing(Box::new(Listing::plugins(self, order).await?))),
            // With no editor about, all this costs nothing.
            _ if self.owners.is_empty() && self.kept.is_empty() => {
                return self.built_in(order, generation).await;
            }
            "get_buffers" => return Ok(Way::Listing(Box::new(Listing::buffers(self, order).await?))),
            _ => {}
        }
        if order.args.get("kept") == Some(&Value::Bool(true)) && matches!(order.verb.verb, "open_file" | "close_buffer")
        {
            return self.kept(order).await;
        }
        let Located { args, paths } = self.builtin.locate(&order).await?;
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
            return Ok(Way::Plugin(Box::new(Errand::new(order, plugin, paths))));
        }
        let is_unsaved = paths.iter().any(|path| plugin.is_unsaved(path));
        if !can_do_without(order.verb) || (is_unsaved && reads_text(order.verb)) {
            let why = format!(
                "{} has this folder open and cannot {}; the built-in editor would not see what is open there",
                plugin.about.kind, order.verb.verb
            );
            return Err(Refusal::new(Code::Unsupported, why));
        }
        Ok(Way::Beside(self.builtin.prepare(order).await?, plugin, paths))
    }

    async fn built_in(&self, order: Order, generation: u64) -> Result<Way, Refusal> {
        let trace = changes_texts(order.verb).then(|| Box::new(Trace::of(&order, generation)));
        Ok(Way::BuiltIn(self.builtin.prepare(order).await?, trace))
    }

    async fn kept(&self, mut order: Order) -> Result<Way, Refusal> {
        order.args.remove("kept");
        if order.verb.verb == "close_buffer" && order.args.remove("discard") != Some(Value::Bool(true)) {
            return Err(Refusal::new(Code::BadArguments, "a kept text is dropped with `discard` only"));
        }
        let located = self.builtin.locate(&order).await?;
        let Some(path) = located.paths.into_iter().next().filter(|path| !self.kept.at(path).is_empty()) else {
            return Err(Refusal::new(Code::NotFound, "no other text of this file is kept; get_buffers lists them"));
        };
        Ok(Way::Kept { path, verb: order.verb.verb })
    }
}

/// Whether the built-in editor can do a verb in a folder that another has open: what only reads, and does not ask about a
/// window; and what sees the disk only, whoever does it.
fn can_do_without(verb: &Action) -> bool {
    match verb.category {
        Category::Terminal | Category::Git | Category::Project => true,
        Category::Sync | Category::Buffers => false,
        Category::Files | Category::Analysis | Category::Search | Category::Advanced => verb.risk == Risk::Reads,
    }
}

/// Whether a verb changes texts that may be an editor's by the time it is run.
fn changes_texts(verb: &Action) -> bool {
    let on_disk = matches!(verb.category, Category::Terminal | Category::Git | Category::Project);
    verb.risk != Risk::Reads && !on_disk
}

/// Whether a verb is about a text, and so about the one in the editor.
fn reads_text(verb: &Action) -> bool {
    matches!(verb.category, Category::Analysis | Category::Advanced)
        || matches!(verb.verb, "open_file" | "find_in_file")
}

// === impl Prepared ===

impl Prepared {
    /// What will happen. Of an editor's text it is made from that text, and what is run is bound to it.
    pub async fn shown(&mut self) -> Result<Shown, Refusal> {
        match &mut self.way {
            Way::BuiltIn(prepared, _) | Way::Beside(prepared, ..) => Ok(prepared.shown()),
            Way::Plugin(errand) => errand.shown(&self.router).await,
            Way::Listing(listing) => Ok(listing.shown()),
            Way::Kept { path, .. } => {
                let title = format!("Drop the text of {} that was kept aside", path.display());
                Ok(Shown::Plain { title, lines: Vec::new() })
            }
        }
    }

    /// How long it may take at most.
    pub fn deadline(&self) -> Duration {
        match &self.way {
            Way::BuiltIn(prepared, _) | Way::Beside(prepared, ..) => prepared.deadline(),
            Way::Plugin(errand) => errand.deadline(),
            Way::Listing(listing) => listing.deadline(),
            Way::Kept { .. } => errand::USUAL,
        }
    }

    /// How many bytes of new text it puts in, as far as that is known before.
    pub fn writes(&self) -> u64 {
        match &self.way {
            Way::BuiltIn(prepared, _) | Way::Beside(prepared, ..) => prepared.writes(),
            Way::Plugin(_) | Way::Listing(_) | Way::Kept { .. } => 0,
        }
    }

    /// What it does to files, as far as that is known. An editor is asked what it would change.
    pub async fn effects(&mut self) -> Result<Option<Vec<Effect>>, Refusal> {
        match &mut self.way {
            Way::BuiltIn(prepared, _) | Way::Beside(prepared, ..) => Ok(prepared.effects().map(<[Effect]>::to_vec)),
            Way::Plugin(errand) => errand.effects(&self.router).await.map(Some),
            Way::Kept { path, verb: "close_buffer" } => {
                let what = format!("{}: a text that was kept aside, and is nowhere else, is dropped", path.display());
                Ok(Some(vec![Effect::Loss { what, whose: Whose::Others }]))
            }
            Way::Listing(_) | Way::Kept { .. } => Ok(Some(Vec::new())),
        }
    }

    /// Whether it changes nothing at all, whatever else its verb may do.
    pub fn only_looks(&self) -> bool {
        match &self.way {
            Way::BuiltIn(prepared, _) | Way::Beside(prepared, ..) => prepared.only_looks(),
            Way::Listing(listing) => listing.only_looks(),
            Way::Plugin(_) | Way::Kept { .. } => false,
        }
    }

    pub async fn run(self, progress: Progress) -> Result<Value, Refusal> {
        match self.way {
            Way::BuiltIn(prepared, trace) => {
                // Held until it is done: nobody takes the texts over meanwhile.
                let _at_work = match trace {
                    Some(trace) => Some(self.router.is_still_ours(*trace).await?),
                    None => None,
                };
                prepared.run(progress).await
            }
            Way::Beside(prepared, plugin, paths) => Ok(beside(prepared.run(progress).await?, &plugin, &paths)),
            Way::Plugin(errand) => errand.run(&self.router, &progress).await,
            Way::Listing(listing) => listing.run(&self.router, progress).await,
            Way::Kept { path, verb: "close_buffer" } => {
                self.router.kept.drop_at(&path);
                Ok(json!({"path": path}))
            }
            Way::Kept { path, .. } => {
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
