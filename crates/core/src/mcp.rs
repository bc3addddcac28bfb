//! The Model Context Protocol: revisions, methods, and the machines that hold a client's session and a server's link.

pub mod cache;
pub mod era;
pub mod hello;
pub mod level;
pub mod link;
pub mod modern;
pub mod names;
pub mod params;
pub mod payload;
pub mod quiet;
pub mod replay;
pub mod session;
mod transport;

pub use crate::wire::Method;
pub use era::{Era, Revision, Speaks};
pub use hello::{Class, Hello};
pub use link::{Accepts, Action, Answer, Ask, Condition, Fault, Link, Opening, Refusal, Settings, State, Wire};
pub use names::Names;
pub use session::{Kept, Part};
pub use transport::Transport;
