//! `editor_chat`: the bell is put into the chat of the editor that the agent lives in, by Prism's plugin there. Off unless
//! somebody asks for it, here and in the editor: it begins a turn in a chat that a person may be using.
//!
//! Which window that is follows from the agent's surface and its folder; which of its chats takes the text is the editor's
//! business. A window that does not answer pings is no window.

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::mesh::{ChatFailure, Path};

use super::{AgentFacts, Allowed, Bell, Contact, Doing, Inside, Probe, Rung, To, WakeAdapter};

/// How long an editor may take to put the text into its chat.
const DEADLINE: Duration = Duration::from_secs(5);
/// Surfaces that are editors with a chat, by the kinds that their plugins name.
const SURFACES: [&str; 3] = ["cursor", "vscode", "void"];
const ABSENT: &str = "no window of the agent's editor has its folder open and lets bells in: install Prism's plugin there \
                      and set prism.chat.wake";

pub(super) struct EditorChat {
    allowed: bool,
    inside: Arc<dyn Inside>,
}

/// Where an agent's chat is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chat {
    kind: &'static str,
    folder: Option<PathBuf>,
}

// === impl EditorChat ===

impl EditorChat {
    pub(super) fn new(allowed: &Allowed, inside: Arc<dyn Inside>) -> Self {
        Self { allowed: allowed.editor_chat, inside }
    }
}

impl WakeAdapter for EditorChat {
    fn path(&self) -> Path {
        Path::EditorChat
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<Contact> {
        let kind = SURFACES.into_iter().find(|surface| *surface == agent.surface).filter(|_| self.allowed)?;
        Some(Contact::new(agent, To::Chat(Chat { kind, folder: agent.workspace.clone() })))
    }

    fn probe<'a>(&'a self, contact: &'a Contact) -> Doing<'a, Probe> {
        let To::Chat(Chat { kind, folder }) = &contact.to else { return Box::pin(async { Probe::misled() }) };
        Box::pin(async move {
            match self.inside.has_chat(kind, folder.as_deref()).await {
                true => Probe::There,
                false => Probe::Absent(ABSENT.into()),
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a Contact, bell: &'a Bell) -> Doing<'a, Rung> {
        let To::Chat(Chat { kind, folder }) = &contact.to else { return Box::pin(async { Rung::misled() }) };
        Box::pin(async move {
            match self.inside.ring_chat(kind, folder.as_deref(), bell, DEADLINE).await {
                Ok(()) => Rung::Rang,
                Err(ChatFailure::Nobody) => Rung::Uncaptured(ABSENT.into()),
                Err(ChatFailure::Failed(why)) => {
                    Rung::SendFailed(format!("the editor's chat did not take it: {why}").into())
                }
                Err(ChatFailure::Unanswered(why)) => {
                    Rung::Unanswered(format!("the editor's chat may not have taken it: {why}").into())
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
        let adapter =
            |editor_chat: bool| EditorChat::new(&Allowed { editor_chat, ..Allowed::default() }, wake::empty_house());
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
        let adapter = EditorChat::new(&Allowed { editor_chat: true, ..Allowed::default() }, wake::empty_house());
        let contact = adapter.attach(&wake::agent("cursor", json!({}))).unwrap();
        let Probe::Absent(why) = adapter.probe(&contact).await else { panic!("somebody is there") };
        assert!(why.contains("prism.chat.wake"), "{why}");
        assert_eq!(adapter.ring(&contact, &wake::bell()).await, Rung::Uncaptured(why));
    }
}
