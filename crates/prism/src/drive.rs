//! The tasks that run core's machines over real pipes: one per link, and what finds the right link for a request.

pub mod destination;
pub mod hub;
mod keeper;
pub mod link;
pub mod outlet;
pub mod remote;
pub mod sessions;
mod stderr;

pub use destination::Destination;
pub use hub::Hub;
pub use link::{Command, Head, LinkHandle, Reply};
pub use sessions::{Entry, Sessions};
