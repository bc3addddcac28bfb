//! What the daemon says about itself: the log, a record per request, and metrics.
//!
//! Ids, names, sizes and times only; bodies by a setting and without their secrets (`veil`), secrets never (invariant 7).

pub mod events;
pub mod gate;
mod latency;
pub mod log;
pub mod mesh;
pub mod metrics;
pub mod rotation;
pub mod veil;
mod waits;

pub use log::DaemonLog;
pub use metrics::Metrics;
pub use veil::{BodyRedactor, KnownSecrets};
