//! Language servers (E-04): real ones, as children of the editor. They see the buffers' texts, saved or not, and what they
//! propose becomes a change of buffers.
//!
//! `frame`, `message`, `documents` and `conversation` are the protocol without pipes; `task` and `client` are one running
//! server; `servers` is all of them. `site` is where a verb meets its server, and each verb has a file.

mod abilities;
mod attend;
mod catalogue;
mod client;
mod complete;
mod conversation;
mod documents;
mod edits;
mod errors;
mod fix;
mod format;
mod frame;
mod known;
mod lack;
mod lens;
mod locate;
mod manage;
mod message;
mod outside;
mod project;
mod project_trust;
mod proof;
mod rename;
mod servers;
mod site;
mod slot;
mod task;
mod uri;

use std::sync::Arc;

use crate::{
    run::fence::Fences,
    state::{EditorState, OrderContext},
    text::TextState,
};
pub use catalogue::{DefaultLanguageServer, usual_servers};
pub(crate) use complete::completions;
pub(crate) use errors::errors;
pub(crate) use fix::fix;
pub(crate) use format::format;
pub(crate) use lens::lenses;
pub(crate) use locate::locate;
pub(crate) use manage::manage;
pub(crate) use rename::rename;
pub(crate) use servers::LanguageServers;

/// The language servers, and what they see.
#[derive(Debug)]
pub(crate) struct LspState {
    pub(crate) editor: Arc<EditorState>,
    pub(crate) text: Arc<TextState>,
    pub(crate) fences: Arc<Fences>,
    pub(crate) servers: LanguageServers,
}

/// Where an order that a language server is asked about is carried out.
pub(crate) type LspContext = OrderContext<LspState>;

impl LspState {
    pub(crate) fn new(text: Arc<TextState>, fences: Arc<Fences>) -> Self {
        let editor = text.editor.clone();
        let (env, owner) = (editor.env.clone(), editor.owner.clone());
        let servers = LanguageServers::new(env, owner, editor.settings.clone(), editor.happenings.clone());
        Self { editor, text, fences, servers }
    }
}

#[cfg(test)]
mod tests;
