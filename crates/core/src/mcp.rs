//! The Model Context Protocol: revisions, methods, and the machines that hold a client's session and a server's link.

pub mod era;
pub mod hello;
pub mod level;
pub mod link;
pub mod method;
pub mod quiet;
pub mod replay;
pub mod session;

pub use era::{Era, Revision};
pub use hello::{Class, Hello};
pub use link::{Accepts, Action, Answer, Fault, Link, Refusal, Settings};
pub use method::Method;
