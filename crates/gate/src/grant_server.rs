//! The editor as an MCP server: the verbs that one grant allows, as tools, and what is open, as resources. There is
//! one server for each grant that is used so (`daemon::serve::editor`); what a call comes to is the gate's affair, as on a
//! holder's socket.

mod news;
mod resources;
mod uri;

use std::{pin::pin, sync::Arc, time::Duration};

use prism_core::policy::{Scope, Scopes, person::CallPatience};
use prism_editor::{
    Note, Progress,
    verbs::{self, Verb},
};
use serde_json::{Map, Value, json};
use tokio::{sync::Notify, time::interval_at};

pub use news::tell;
use resources::Open;

use crate::{Gate, Held, Trouble, Waiter};
use prism_mcp::kit::{Call, DataTool, Failure, Hints, Reply, Server};

pub const NAME: &str = "editor";

/// How often a client that waits hears that it still does, where the work itself says nothing.
const STILL: Duration = Duration::from_secs(5);

/// Whose server it is.
#[derive(Clone)]
pub struct Holder {
    pub gate: Arc<Gate>,
    pub held: Arc<Held>,
    /// Rung when it has tried too often what it may not.
    pub trespassed: Arc<Notify>,
}

/// The server of one grant.
pub fn server(holder: &Holder) -> Server {
    let server = Server::new(NAME, "Prism editor", instructions(holder));
    let server = match holder.may(Scope::ReadBuffers) || holder.may(Scope::DetectErrors) {
        true => server.resources(Open(holder.clone())),
        false => server,
    };
    verbs::all().fold(server, |server, verb| server.data_tool(VerbTool { verb, holder: holder.clone() }))
}

/// What a model is told before it begins.
fn instructions(holder: &Holder) -> String {
    let roots: Vec<String> = holder.held.grant().roots.iter().map(ToString::to_string).collect();
    format!(
        "A person has granted you to work in {}, and nowhere else. Paths are absolute, or relative to the first of these. \
         Texts are open buffers: open_file, then edit_buffer with the version you saw, then save_buffer; until then builds, \
         git and commands do not see the change. Lines and characters count from zero, in UTF-16 units. What deletes \
         or runs something, or changes what the person's own tools run, waits until the person has seen it, and may be \
         refused; if that takes long, call again as you are told. An error has a code and says what to do.",
        roots.join(", ")
    )
}

/// A verb as a tool.
struct VerbTool {
    verb: &'static Verb,
    holder: Holder,
}

impl DataTool for VerbTool {
    fn name(&self) -> &'static str {
        self.verb.name
    }

    fn entry(&self) -> Option<Value> {
        let Self { verb, holder } = self;
        let action = verb.action()?;
        if !holder.held.grant().scopes.has_any_of(action.scopes()) {
            return None;
        }
        let hints = Hints {
            read_only: Some(verb.is_read_only()),
            destructive: (!verb.is_read_only()).then_some(verb.is_destructive()),
            open_world: Some(verb.is_destructive()),
            ..Hints::NONE
        };
        let mut entry = json!({
            "name": verb.name,
            "title": title(verb.name),
            "description": format!("{} For example: {}", verb.about, verb.example),
            "inputSchema": verb.schema(),
        });
        if let Some(annotations) = hints.annotations() {
            entry["annotations"] = annotations;
        }
        Some(entry)
    }

    async fn call(&self, arguments: Map<String, Value>, call: &Call) -> Result<Reply, Failure> {
        Ok(match self.holder.act(self.verb.name, arguments, call).await {
            Ok(result) => Reply::structured(result),
            Err(trouble) => {
                let text = format!("{} ({})", trouble.message, trouble.code);
                Reply::text(text).with_structured(json!(trouble.told())).failed()
            }
        })
    }
}

fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

// === impl Holder ===

impl Holder {
    fn may(&self, scope: Scope) -> bool {
        self.held.grant().scopes.has_any_of(Scopes::from(scope))
    }

    /// Has the gate do it, and meanwhile tells the client how far it is.
    async fn act(&self, verb: &str, args: Map<String, Value>, call: &Call) -> Result<Value, Trouble> {
        let (progress, mut notes) = Progress::channel();
        // As for any other call: who does not hear that it waits is told to come back before it gives up.
        let patience = if call.hears_progress() { CallPatience::Long } else { CallPatience::Short };
        let waiter = Waiter::client(progress, patience, call.cancelled());
        let mut acting = pin!(self.gate.act(&self.held, verb, args, waiter));
        let mut still = interval_at(tokio::time::Instant::now() + STILL, STILL);
        let mut told = Told::default();
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut acting => break outcome,
                Some(note) = notes.recv() => told.note(call, &note),
                _ = still.tick() => told.still(call),
            }
        };
        if outcome.trespassed {
            self.trespassed.notify_one();
        }
        outcome.result
    }
}

/// How far a client was told that its call is. Each number must be larger than the last.
#[derive(Default)]
struct Told {
    last: u64,
    /// The work counts by itself.
    counts: bool,
}

impl Told {
    fn note(&mut self, call: &Call, note: &Note) {
        let counted = note.done.filter(|done| *done > self.last);
        self.counts |= counted.is_some();
        self.last = counted.unwrap_or(self.last + 1);
        call.progress(self.last, note.total.filter(|_| counted.is_some()), &note.message);
    }

    fn still(&mut self, call: &Call) {
        if !self.counts {
            self.last += 1;
            call.progress(self.last, None, "at work, or waiting until the person has seen it");
        }
    }
}
