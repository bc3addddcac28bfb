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
pub use era::{Era, Revision, SpokenEras};
pub use hello::{ClientClass, ClientHello};
pub use link::{
    AcceptedFormats, CallFault, EraDiscovery, Link, LinkAction, LinkAnswer, LinkCondition, LinkRefusal, LinkSettings,
    LinkState, ModernCall, UpstreamKind,
};
pub use names::MemberNames;
pub use session::{HubPart, SessionSnapshot};
pub use transport::Transport;
