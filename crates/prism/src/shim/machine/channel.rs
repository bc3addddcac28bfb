//! Claude Code's channel: a server on stdio that declares one may start a turn with a note (`mesh::wake::channel`). It is declared
//! to that client alone, and where the mesh is: at the hub, and at Prism's own server.

use bytes::Bytes;
use prism_core::{
    mcp::Method,
    wire::{Members, Message, MessageKind, members::edited},
};
use serde_json::json;

use super::{ShimAction, ShimMachine, ShimRoute, flight::OutboundMessage};
use crate::shim::bells::ShimBell;

/// What a client with channels calls itself.
const CLIENT: &str = "claude-code";
const CAPABILITY: &str = "claude/channel";

// === impl ShimMachine ===

impl ShimMachine {
    /// The answer to a greeting, with the channel declared in it; `None` if there is nothing to declare, or nobody to
    /// declare it to. From the first one on bells are waited for.
    pub(super) fn with_channel(&mut self, flight: &OutboundMessage, answer: &Message) -> Option<Bytes> {
        let here = match &self.route {
            ShimRoute::Hub => true,
            ShimRoute::Direct(name) => name == "prism",
        };
        let greeting = flight.message.as_ref().filter(|_| here)?;
        if !matches!(greeting.kind(), MessageKind::Request(Method::Initialize | Method::Discover))
            || !has_channels(greeting)
        {
            return None;
        }
        let span = answer.result_span()?;
        let result = edited(answer.text(span), |result| {
            result.edit("capabilities", |capabilities| {
                edited(capabilities, |capabilities| {
                    let own = capabilities.get("experimental").unwrap_or("{}").to_owned();
                    if let Some(all) = edited(&own, |all| all.set(CAPABILITY, "{}")) {
                        capabilities.set("experimental", all);
                    }
                })
            });
        })?;
        if !self.attends {
            self.attends = true;
            self.actions.push_back(ShimAction::Attend);
        }
        Some(answer.with(span, &result).bytes().clone())
    }

    /// Says a bell in the client's words.
    pub(in crate::shim) fn handle_bell(&mut self, bell: &ShimBell) {
        let note = json!({
            "jsonrpc": "2.0",
            "method": "notifications/claude/channel",
            "params": { "content": bell.text, "meta": { "agent": bell.agent } },
        });
        self.actions.push_back(ShimAction::Write(note.to_string().into()));
    }
}

/// Whether a greeting is of a client that has them: by its name, which is all that there is to go by.
fn has_channels(greeting: &Message) -> bool {
    let named = |info: Option<Members<'_>>| info.is_some_and(|info| info.says("name", CLIENT));
    let text = std::str::from_utf8(greeting.bytes()).unwrap_or_default();
    let message = Members::read(text).unwrap_or_default();
    let Some(params) = message.object("params") else { return false };
    let meta = params.object("_meta").unwrap_or_default();
    named(params.object("clientInfo")) || named(meta.object("io.modelcontextprotocol/clientInfo"))
}
