//! The editor as an MCP server: the verbs that one grant allows, as tools, and what is open, as resources. There is
//! one server for each grant that is used so (`daemon::serve::editor`); what a call comes to is the gate's affair, as on a
//! holder's socket.

mod news;
mod resources;
mod uri;

use std::{pin::pin, sync::Arc, time::Duration};

use prism_core::policy::{GrantScope, Scopes, person::CallPatience};
use prism_editor::{
    ProgressNote, ProgressSink,
    verbs::{self, VerbDoc},
};
use serde_json::{Map, Value, json};
use tokio::{sync::Notify, time::interval_at};

pub use news::tell;
use resources::BufferResources;

use crate::{ActionWaiter, Gate, GateError, GrantLease};
use prism_mcp::kit::{BuiltinServer, CallFailure, DataTool, ServerCall, ToolHints, ToolReply};

pub const NAME: &str = "editor";

/// How often a client that waits hears that it still does, where the work itself says nothing.
const STILL: Duration = Duration::from_secs(5);

/// Whose server it is.
#[derive(Clone)]
pub struct EditorGrant {
    pub gate: Arc<Gate>,
    pub held: Arc<GrantLease>,
    /// Rung when it has tried too often what it may not.
    pub trespassed: Arc<Notify>,
}

/// The server of one grant.
pub fn server(holder: &EditorGrant) -> BuiltinServer {
    let server = BuiltinServer::new(NAME, "Prism editor", instructions(holder));
    let server = match holder.may(GrantScope::ReadBuffers) || holder.may(GrantScope::DetectErrors) {
        true => server.resources(BufferResources(holder.clone())),
        false => server,
    };
    verbs::all().fold(server, |server, verb| server.data_tool(VerbTool { verb, holder: holder.clone() }))
}

/// What a model is told before it begins.
fn instructions(holder: &EditorGrant) -> String {
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
    verb: &'static VerbDoc,
    holder: EditorGrant,
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
        let hints = ToolHints {
            read_only: Some(verb.is_read_only()),
            destructive: (!verb.is_read_only()).then_some(verb.is_destructive()),
            open_world: Some(verb.is_destructive()),
            ..ToolHints::NONE
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

    async fn call(&self, arguments: Map<String, Value>, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        Ok(match self.holder.act(self.verb.name, arguments, call).await {
            Ok(result) => ToolReply::structured(result),
            Err(trouble) => {
                let text = format!("{} ({})", trouble.message, trouble.code);
                ToolReply::text(text).with_structured(json!(trouble.told())).failed()
            }
        })
    }
}

fn title(name: &str) -> String {
    let words = name.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

// === impl EditorGrant ===

impl EditorGrant {
    fn may(&self, scope: GrantScope) -> bool {
        self.held.grant().scopes.has_any_of(Scopes::from(scope))
    }

    /// Has the gate do it, and meanwhile tells the client how far it is.
    async fn act(&self, verb: &str, args: Map<String, Value>, call: &ServerCall) -> Result<Value, GateError> {
        let (progress, mut notes) = ProgressSink::channel();
        // As for any other call: who does not hear that it waits is told to come back before it gives up.
        let patience = if call.hears_progress() { CallPatience::Long } else { CallPatience::Short };
        let waiter = ActionWaiter::client(progress, patience, call.cancelled());
        let mut acting = pin!(self.gate.act(&self.held, verb, args, waiter));
        let mut still = interval_at(tokio::time::Instant::now() + STILL, STILL);
        let mut told = ProgressCounter::default();
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
struct ProgressCounter {
    last: u64,
    /// The work counts by itself.
    counts: bool,
}

impl ProgressCounter {
    fn note(&mut self, call: &ServerCall, note: &ProgressNote) {
        let counted = note.done.filter(|done| *done > self.last);
        self.counts |= counted.is_some();
        self.last = counted.unwrap_or(self.last + 1);
        call.progress(self.last, note.total.filter(|_| counted.is_some()), &note.message);
    }

    fn still(&mut self, call: &ServerCall) {
        if !self.counts {
            self.last += 1;
            call.progress(self.last, None, "at work, or waiting until the person has seen it");
        }
    }
}
