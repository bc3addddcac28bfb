//! Editors that come and go, as far as grants are concerned: each is on record, and a grant whose editor is gone is
//! degraded until it is back. Its holder goes on with the built-in editor, and is told.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use prism_api::events::PluginEvent;
use serde_json::json;

use super::{Gate, GateError, live::LiveGrant, paper::AuditSubject};
use crate::router::{EditorRouter, Plugin};

/// How a grant's editors are, seen from what they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServingEditors {
    by: BTreeSet<String>,
    /// Those that are gone.
    pub(super) lost: BTreeSet<String>,
}

impl ServingEditors {
    /// Notes which editors serve the grant now. Returns whether what is lost is another.
    pub(super) fn now(&mut self, serving: &BTreeSet<String>) -> bool {
        if serving.is_subset(&self.by) {
            let lost = self.by.difference(serving).cloned().collect();
            std::mem::replace(&mut self.lost, lost) != self.lost
        } else {
            // Another has taken the place of whichever is gone.
            self.by = serving.clone();
            !std::mem::take(&mut self.lost).is_empty()
        }
    }
}

impl Gate {
    /// Who does what is asked for.
    pub fn router(&self) -> &Arc<EditorRouter> {
        &self.runtime
    }

    /// Writes down that an editor has come. Nothing is told it before that is on disk.
    pub async fn editor_came(&self, plugin: &Plugin) -> Result<(), GateError> {
        self.record(of(plugin), "plugin_connect", &json!(plugin.about), "allowed").await?;
        self.events.tell("plugin", || json!(event(plugin, "connected", None)));
        Ok(())
    }

    pub fn editor_left(&self, plugin: &Plugin, why: &str) {
        let args = json!({"connection": plugin.about.connection, "why": why});
        self.record_behind(of(plugin), "plugin_disconnect", &args, "ok");
        self.events.tell("plugin", || json!(event(plugin, "gone", Some(why))));
    }

    /// Looks which grants have lost their editor, and which have it back.
    fn look_at_editors(&self) {
        let all: Vec<Arc<LiveGrant>> = self.state().live.values().cloned().collect();
        for live in all.into_iter().filter(|live| live.ended().is_none()) {
            let Some(lost) = live.served(&self.runtime.serving(&live.grant.roots)) else { continue };
            let what = if lost.is_empty() { "runtime_recovered" } else { "runtime_degraded" };
            self.record_behind(AuditSubject::holder(&live), what, &json!({"plugins": lost}), "ok");
            self.tell_of_grant(&live);
        }
    }
}

/// Watches the editors for as long as there is a gate.
pub(super) async fn watch(gate: Weak<Gate>) {
    let Some(mut changes) = gate.upgrade().map(|gate| gate.runtime.changes()) else { return };
    while changes.changed().await.is_ok() {
        let Some(gate) = gate.upgrade() else { return };
        gate.look_at_editors();
    }
}

fn event(plugin: &Plugin, state: &str, why: Option<&str>) -> PluginEvent {
    PluginEvent { plugin: plugin.about.clone(), state: state.to_owned(), why: why.map(str::to_owned) }
}

fn of(plugin: &Plugin) -> AuditSubject {
    AuditSubject { actor: format!("plugin {}", plugin.about.plugin), ..AuditSubject::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    //
    #[test]
    fn a_grant_is_degraded_while_an_editor_that_served_it_is_gone() {
        let mut served = ServingEditors::default();
        for (serving, changes, lost) in [
            (&[][..], false, &[][..]),
            (&["vscode"], false, &[]),
            (&[], true, &["vscode"]),
            (&[], false, &["vscode"]),
            (&["vscode"], true, &[]),
            (&["vscode", "nvim"], false, &[]),
            (&["nvim"], true, &["vscode"]),
            (&["nvim", "cursor"], true, &[]),
        ] {
            assert_eq!(served.now(&set(serving)), changes, "{serving:?}");
            assert_eq!(served.lost, set(lost), "{serving:?}");
        }
    }
}
