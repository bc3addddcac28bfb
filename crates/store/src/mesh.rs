//! What the signal mesh must not lose: signals, who owes a reply, who the agents are, which bells were rung. What it
//! all means, and when, is decided in `core::mesh`; the clock is the caller's.
//!
//! The idea: a signal waits (stage 0), is given in a drain (1), and is known to have arrived (2). Nobody but the
//! client knows that last thing, so a cursor that it sends back settles what is up to it, and what was never settled
//! is given again after a restart, marked. Numbers are of all agents together, and as there is one writer they become
//! visible in their order: whoever has seen number n has missed none below it.

mod agents;
mod bells;
mod drain;
mod ends;
mod mailbox;
mod notes;
mod obligations;
mod signals;

pub use agents::AgentRow;
pub use bells::BellRow;
pub use drain::{DrainPage, DrainRequest, DrainResult};
pub use ends::{ExpiredSignal, HistoryTrim, RecallResult};
pub use mailbox::{FirstRinging, MailboxCount};
pub use notes::MeshNotes;
pub use obligations::{ObligationFilter, ObligationRow, WaiveResult, WakeNote};
pub use signals::{HistoryQuery, NewSignal, SendResult, SignalRow};

use crate::ids::{id, key, optional_id};

/// The stages of a signal, as the schema has them.
mod stage {
    pub(super) const WAITS: u8 = 0;
    pub(super) const GIVEN: u8 = 1;
    pub(super) const OVER: u8 = 2;
}

#[cfg(test)]
mod tests;
