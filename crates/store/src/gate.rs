//! What the gate must not lose: requests, grants and the hashes of their tokens, confirmations, pinned definitions. What
//! it all means is decided in `core::policy`; the clock is the caller's.
//!
//! The idea: a person, an agent and the clock may all want to end the same thing at the same moment. So every step names
//! the states that it may start from, the database compares and sets at once, and whoever comes second is told so.

mod confirmations;
mod grants;
mod marks;
mod pins;
mod requests;
mod trim;

pub use confirmations::{ConfirmationAnswer, ConfirmationFilter, ConfirmationRow};
pub use grants::{GrantFilter, GrantRow};
pub use marks::{EndMark, EndMarks};
pub use pins::PinRow;
pub use requests::{AddRequestResult, RequestFilter, RequestPatch, RequestRow};

use crate::ids::{id, key, optional_id};

#[cfg(test)]
mod tests;
