//! Bells for agents that live in an editor's own chat: the editor puts the text there, and says whether it could.

use std::{path::Path, sync::Arc, time::Duration};

use prism_api::gate::PluginView;
use prism_core::mesh::ChatFailure;
use prism_editor::protocol::{ResultStatus, RingMessage, RungMessage, ToPlugin};
use tokio::{sync::oneshot, time::timeout};

use super::{EditorRouter, plugin::Plugin};

/// Bells that one editor has not answered. A further one does not ring: its chat is busy with those.
pub(super) const MAX_RINGING: usize = 16;
/// As much of an editor's words as is kept.
const MAX_WHY: usize = 300;

/// Makes room for another bell when nobody waits for this one any more.
struct ChatRingGuard<'p> {
    plugin: &'p Plugin,
    id: u64,
}

impl EditorRouter {
    /// Whether there is a chat for agents of this kind of editor and folder.
    pub async fn has_chat(&self, kind: &str, folder: Option<&Path>) -> bool {
        self.chat(kind, folder).await.is_some()
    }

    /// Has an editor put a bell into its chat.
    pub async fn ring_chat(
        &self,
        kind: &str,
        folder: Option<&Path>,
        (agent, text): (&str, &str),
        within: Duration,
    ) -> Result<(), ChatFailure> {
        let plugin = self.chat(kind, folder).await.ok_or(ChatFailure::Nobody)?;
        plugin.ring(agent, text, within).await
    }

    /// The newest window that fits. For an agent that does not say where it works it is the only one, or none.
    async fn chat(&self, kind: &str, folder: Option<&Path>) -> Option<Arc<Plugin>> {
        // Windows have their folders as they really are.
        let folder = match folder.map(Path::to_owned) {
            Some(folder) => {
                Some(tokio::task::spawn_blocking(move || folder.canonicalize().unwrap_or(folder)).await.ok()?)
            }
            None => None,
        };
        let fits = |plugin: &Arc<Plugin>| {
            let PluginView { chat, kind: own, .. } = &plugin.about;
            *chat && plugin.is_alive() && is_kind(own, kind) && folder.as_ref().is_none_or(|at| plugin.covers(at))
        };
        let mut fitting = self.owners.all().into_iter().map(|(plugin, _)| plugin).filter(fits);
        let newest = fitting.next()?;
        (folder.is_some() || fitting.next().is_none()).then_some(newest)
    }
}

impl Plugin {
    async fn ring(&self, agent: &str, text: &str, within: Duration) -> Result<(), ChatFailure> {
        let (done, doing) = oneshot::channel();
        let Some(id) = self.begin_ring(done) else {
            return Err(ChatFailure::Failed("it has not answered the bells before this one".to_owned()));
        };
        let deadline_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        let (agent, text) = (agent.to_owned(), text.to_owned());
        self.say(ToPlugin::Ring(RingMessage { id, agent, text, deadline_ms }));
        let _ringing = ChatRingGuard { plugin: self, id };
        let answer = timeout(within, doing).await;
        match answer {
            Ok(Ok(RungMessage { status: ResultStatus::Ok, .. })) => Ok(()),
            Ok(Ok(RungMessage { error, .. })) => {
                let why = error.map_or_else(|| "it does not say why".to_owned(), |error| error.message);
                Err(ChatFailure::Failed(why.chars().take(MAX_WHY).collect()))
            }
            Ok(Err(_)) => Err(ChatFailure::Failed("it went away".to_owned())),
            Err(_) => Err(ChatFailure::Unanswered(format!("it did not answer within {} s", within.as_secs()))),
        }
    }
}

impl Drop for ChatRingGuard<'_> {
    fn drop(&mut self) {
        self.plugin.end_ring(self.id);
    }
}

/// Whether a kind of editor is the one that a surface names. VS Code served to a browser is VS Code too.
fn is_kind(kind: &str, surface: &str) -> bool {
    kind == surface || (surface == "vscode" && kind == "code-server")
}
