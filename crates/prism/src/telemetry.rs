//! What the daemon says about itself: the log, a record per request, and metrics.
//!
//! Ids, names, sizes and times only; bodies by a setting, secrets never (invariant 7).

pub mod access;
pub mod log;
pub mod metrics;

pub use access::Access;
pub use log::Log;
pub use metrics::Metrics;
