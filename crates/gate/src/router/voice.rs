//! What editors say, and what is made of it. Nothing that one says can stop the daemon or reach whom it is not for.

use std::{path::Path, sync::Arc};

use prism_core::policy::{Code, EventSpec, Refusal};
use prism_editor::{
    EditorEvent,
    protocol::{
        DecideMessage, ErrorMessage, EventMessage, FromPlugin, PluginError, Pong, RevokeMessage, ToPlugin, as_path,
    },
};
use serde_json::Value;
use uuid::Uuid;

use super::{EditorRouter, mirror::MirrorUpdate, owners::PathOwner, plugin::Plugin};

/// The category of events about terminals.
const TERMINALS: &str = "terminal_output";

impl EditorRouter {
    /// Takes a message in; returns it if it is not the router's. What is not understood is answered with a complaint.
    pub fn hear(&self, plugin: &Arc<Plugin>, text: &str) -> Option<RelayedMessage> {
        let message = match serde_json::from_str::<FromPlugin>(text) {
            Ok(message) => message,
            Err(error) => {
                // What it was is not repeated: it may hold a text.
                let why =
                    format!("this is no message of the protocol (line {}, column {})", error.line(), error.column());
                complain(plugin, Refusal::new(Code::BadArguments, why));
                return None;
            }
        };
        let heard = match message {
            FromPlugin::Register(_) => {
                complain(plugin, Refusal::new(Code::BadArguments, "a connection registers once; connect anew"));
                return None;
            }
            FromPlugin::Pong(pong) => return Some(RelayedMessage::Pong(pong)),
            FromPlugin::Decide(word) => return Some(RelayedMessage::Decide(word)),
            FromPlugin::Revoke(word) => return Some(RelayedMessage::Revoke(word)),
            FromPlugin::Rung(rung) => {
                plugin.rung(rung);
                return None;
            }
            FromPlugin::Result(answer) => {
                if !plugin.answered(answer) {
                    self.metrics.plugin_command("unasked");
                }
                return None;
            }
            FromPlugin::Progress(step) => {
                plugin.progressed(&step);
                return None;
            }
            FromPlugin::State(state) => plugin.take_state(state),
            FromPlugin::Event(told) => self.told(plugin, told),
        };
        if heard == MirrorUpdate::NotKept && plugin.complains() {
            let why = "more unsaved text than is kept; what is beyond the limits is lost if this editor goes away";
            complain(plugin, Refusal::new(Code::TooLarge, why));
        }
        plugin.catch_up();
        None
    }

    fn told(&self, plugin: &Arc<Plugin>, told: EventMessage) -> MirrorUpdate {
        let written = told.data.get("path").and_then(Value::as_str);
        let path = written.and_then(as_path).filter(|path| plugin.covers(path));
        let Some(heard) = plugin.hear(&told, path.as_deref(), self.clock.now()) else { return MirrorUpdate::Again };
        // What is about no file is about the editor's first folder.
        let is_outside = told.data.contains_key("path") && path.is_none();
        let about = path.or_else(|| plugin.roots().first().cloned()).filter(|_| !is_outside);
        let is_owner = |path: &Path| match self.owners.of(path) {
            PathOwner::Plugin(owner) => Arc::ptr_eq(&owner, plugin),
            PathOwner::BuiltIn | PathOwner::Nobody => false,
        };
        match (EventSpec::named(told.name()), about.filter(|path| is_owner(path))) {
            // A person's own terminals are nobody else's business, and agents have none there.
            (Some(event), Some(path)) if event.category != TERMINALS => self.tell_on(plugin, event, &path, told),
            _ => {
                plugin.drop_event();
                self.metrics.plugin_event_dropped();
            }
        }
        heard
    }

    /// Tells what happened in an editor, without what is only for the daemon.
    fn tell_on(&self, plugin: &Arc<Plugin>, event: &'static EventSpec, path: &Path, told: EventMessage) {
        let mut data = told.data;
        for name in ["text", "base_version", "event", "session_id"] {
            if name != "text" || event.name == "buffer_changed" {
                data.remove(name);
            }
        }
        let by = data.get("by").and_then(Value::as_str).and_then(|id| Uuid::parse_str(id).ok());
        let new_path = data.get("new_path").and_then(Value::as_str).and_then(as_path);
        if !new_path.is_some_and(|path| plugin.covers(&path)) {
            data.remove("new_path");
        }
        if data.contains_key("path") {
            data.insert("path".to_owned(), path.display().to_string().into());
        }
        let by = by.map(|id| id.as_u128());
        let data = Value::Object(data);
        self.builtin.tell(EditorEvent { event, path: Some(path.to_owned()), to: None, by, data });
    }
}

/// What is said to others than the router.
#[derive(Clone, Debug)]
pub enum RelayedMessage {
    /// To who asked whether somebody is there.
    Pong(Pong),
    /// To the gate.
    Decide(DecideMessage),
    Revoke(RevokeMessage),
}

fn complain(plugin: &Plugin, refusal: Refusal) {
    plugin.say(ToPlugin::Error(ErrorMessage { error: PluginError::from(refusal) }));
}
