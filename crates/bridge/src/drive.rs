//! The tasks that run core's machines over real pipes: one per link, and what finds the right link for a request.

pub mod beginning;
pub mod carried;
pub mod ceiling;
pub mod destination;
pub mod environment;
pub mod health;
pub mod hub;
mod keeper;
pub mod keeping;
pub mod link;
pub mod outlet;
pub mod reach;
pub mod replace;
pub mod sessions;
pub mod stderr;
pub mod visitor;
pub mod vitals;

pub use carried::ForwardedHeaders;
pub use destination::{Audience, Destination};
pub use environment::Environment;
pub use hub::Hub;
pub use link::{LinkCommand, LinkHandle, LinkReply, ReplyHead};
pub use sessions::{SessionEntry, SessionTable};
