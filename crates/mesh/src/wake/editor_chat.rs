//! `editor_chat`: the bell is put into the chat of the editor that the agent lives in, by Prism's plugin there. Off unless
//! somebody asks for it, here and in the editor: it begins a turn in a chat that a person may be using.
//!
//! Which window that is follows from the agent's surface and its folder; which of its chats takes the text is the editor's
//! business. A window that does not answer pings is no window.

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::mesh::{ChatFailure, WakePath};

use super::{
    AgentFacts, ContactAddress, DaemonChannels, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact,
    WakeSettings,
};

/// How long an editor may take to put the text into its chat.
const DEADLINE: Duration = Duration::from_secs(5);
/// Surfaces that are editors with a chat, by the kinds that their plugins name.
const SURFACES: [&str; 3] = ["cursor", "vscode", "void"];
const ABSENT: &str = "no window of the agent's editor has its folder open and lets bells in: install Prism's plugin there \
                      and set prism.chat.wake";

pub(super) struct EditorChatAdapter {
    allowed: bool,
    inside: Arc<dyn DaemonChannels>,
}

/// Where an agent's chat is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChatAddress {
    kind: &'static str,
    folder: Option<PathBuf>,
}

// === impl EditorChatAdapter ===

impl EditorChatAdapter {
    pub(super) fn new(allowed: &WakeSettings, inside: Arc<dyn DaemonChannels>) -> Self {
        Self { allowed: allowed.editor_chat, inside }
    }
}

impl WakeAdapter for EditorChatAdapter {
    fn path(&self) -> WakePath {
        WakePath::EditorChat
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        let kind = SURFACES.into_iter().find(|surface| *surface == agent.surface).filter(|_| self.allowed)?;
        Some(WakeContact::new(agent, ContactAddress::Chat(ChatAddress { kind, folder: agent.workspace.clone() })))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        let ContactAddress::Chat(ChatAddress { kind, folder }) = &contact.to else {
            return Box::pin(async { ProbeOutcome::misled() });
        };
        Box::pin(async move {
            match self.inside.has_chat(kind, folder.as_deref()).await {
                true => ProbeOutcome::There,
                false => ProbeOutcome::Absent(ABSENT.into()),
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        let ContactAddress::Chat(ChatAddress { kind, folder }) = &contact.to else {
            return Box::pin(async { RingOutcome::misled() });
        };
        Box::pin(async move {
            match self.inside.ring_chat(kind, folder.as_deref(), bell, DEADLINE).await {
                Ok(()) => RingOutcome::Rang,
                Err(ChatFailure::Nobody) => RingOutcome::Uncaptured(ABSENT.into()),
                Err(ChatFailure::Failed(why)) => {
                    RingOutcome::SendFailed(format!("the editor's chat did not take it: {why}").into())
                }
                Err(ChatFailure::Unanswered(why)) => {
                    RingOutcome::Unanswered(format!("the editor's chat may not have taken it: {why}").into())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::tests as wake, *};

    // M-03
    #[test]
    fn only_agents_that_live_in_an_editor_have_one_and_only_where_it_is_allowed() {
        let adapter = |editor_chat: bool| {
            EditorChatAdapter::new(&WakeSettings { editor_chat, ..WakeSettings::default() }, wake::empty_house())
        };
        for (surface, has_one) in [("cursor", true), ("vscode", true), ("void", true), ("codex", false), ("", false)] {
            let agent = wake::agent(surface, json!({}));
            assert_eq!(adapter(true).attach(&agent).is_some(), has_one, "{surface}");
            assert!(adapter(false).attach(&agent).is_none(), "{surface}");
        }
        let error = adapter(true).check(&json!({})).unwrap_err();
        assert!(error.contains("takes nothing"), "{error}");
    }

    #[tokio::test]
    async fn without_an_editor_it_is_said_what_is_missing() {
        let adapter =
            EditorChatAdapter::new(&WakeSettings { editor_chat: true, ..WakeSettings::default() }, wake::empty_house());
        let contact = adapter.attach(&wake::agent("cursor", json!({}))).unwrap();
        let ProbeOutcome::Absent(why) = adapter.probe(&contact).await else { panic!("somebody is there") };
        assert!(why.contains("prism.chat.wake"), "{why}");
        assert_eq!(adapter.ring(&contact, &wake::bell()).await, RingOutcome::Uncaptured(why));
    }
}
