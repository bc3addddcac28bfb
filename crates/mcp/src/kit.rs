//! The kit that the built-in servers are made with: a server is a set of tools, resources and prompts, and the protocol
//! around them is here, once. What any server offers is not known here.
//!
//! A [`Server`] is built once and shared. A [`Connection`] is one client of it within this process, always in the modern
//! era (2026-07-28); [`serve_stdio`] is one client on stdin and stdout, in whichever era it speaks. Both are a `Room`: the
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

pub use ask::Question;
pub use call::Call;
pub use connection::{Connection, Said};
pub use listen::Notifier;
pub use offer::{Completion, Completions, Prompts, Resources};
pub use params::{CALLER, CallerMark};
pub use prism_core::mcp::level::Level;
pub use reply::{Failure, Reply};
pub use room::Eras;
pub use schema::read as read_arguments;
pub use server::Server;
pub use stdio::{Gate, Pass, serve, serve_stdio};
pub use tool::{DataTool, Hints, Tool};
