//! The kit that the built-in servers are made with: a server is a set of tools, resources and prompts, and the protocol
//! around them is here, once. What any server offers is not known here.
//!
//! A [`BuiltinServer`] is built once and shared. A [`BuiltinConnection`] is one client of it within this process, always in the modern
//! era (2026-07-28); [`serve_stdio`] is one client on stdin and stdout, in whichever era it speaks. Both are a `Peer`: the
//! state of one client, an outbox with what is said to it, and a task for each of its requests.

mod ask;
mod call;
mod connection;
mod listen;
mod offer;
mod outbox;
mod params;
mod reply;
mod room;
mod schema;
mod server;
mod stdio;
#[cfg(test)]
pub mod tests;
mod tool;

pub use ask::ClientQuestion;
pub use call::ServerCall;
pub use connection::{BuiltinConnection, ServerMessage};
pub use listen::ChangeNotifier;
pub use offer::{CompletionRequest, Completions, Prompts, Resources};
pub use params::{CALLER, CallerMark};
pub use prism_core::mcp::level::LogLevel;
pub use reply::{CallFailure, ToolReply};
pub use room::Eras;
pub use schema::read as read_arguments;
pub use server::BuiltinServer;
pub use stdio::{LineVerdict, StdioInterceptor, serve, serve_stdio};
pub use tool::{DataTool, ToolHints, TypedTool};
