//! Refusals that every room makes.

use prism_core::policy::{Code, Refusal};

/// Says that something went wrong here, which is nobody's mistake.
pub(crate) fn failed(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::Failed, message)
}
