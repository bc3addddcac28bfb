//! A message that may go to the server it was checked for. There is no other way to a server: a link's commands take these
//! only, and only `admission` makes them of what a client says.

use prism_core::{
    mcp::{Method, ModernCall},
    policy,
    wire::{Message, MessageKind},
};

/// A message that may go to the server it was checked for.
#[derive(Clone, Debug)]
pub struct Admitted(Message);

/// The same of a call of the modern era.
pub struct AdmittedAsk(ModernCall);

impl Admitted {
    /// A message that the check has let pass. Nobody else makes one: see `admission`.
    pub(crate) fn checked(message: Message) -> Self {
        Self(message)
    }

    /// A message that calls no tool, as Prism's own requests are.
    pub fn no_tool(message: Message) -> Option<Self> {
        let calls = matches!(
            message.kind(),
            MessageKind::Request(Method::ToolsCall | Method::Other)
                | MessageKind::Notification(Method::ToolsCall | Method::Other)
        );
        (!calls && policy::rules::is_clear(&message)).then_some(Self(message))
    }

    pub fn message(&self) -> &Message {
        &self.0
    }

    pub fn into_message(self) -> Message {
        self.0
    }

    /// The call of the modern era that this message is.
    pub fn asking(self, ask: impl FnOnce(Message) -> ModernCall) -> Box<AdmittedAsk> {
        Box::new(AdmittedAsk(ask(self.0)))
    }
}

impl AdmittedAsk {
    pub fn into_ask(self) -> ModernCall {
        self.0
    }
}
