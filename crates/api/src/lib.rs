//! What Prism's own processes tell each other as JSON, as types: the daemon makes them, and the command line, the console and
//! an agent's shell read them. A member that is renamed on one side does not compile on the other.
//!
//! There is no behaviour here. Members that a reader does not know are passed over, so that a newer daemon can say more, and
//! members that are missing are at their default, so that an older one can say less. What is asked of the daemon is strict:
//! a member that it does not know is refused, as it may have been meant to matter.

pub mod audit;
pub mod editor;
pub mod events;
pub mod gate;
pub mod mesh;
pub mod refusal;
pub mod shown;
pub mod socket;
pub mod status;
pub mod workspace;

#[cfg(test)]
mod tests;

/// Whether a member need not be written, as it is at its default.
fn is_false(value: &bool) -> bool {
    !value
}
