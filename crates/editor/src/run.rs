//! Programs that run for a holder: commands, terminals, builds and tests, git. Each runs behind a fence, within limits, and ends
//! with whoever it runs for.

pub(crate) mod command;
pub(crate) mod fence;
pub(crate) mod git;
pub(crate) mod project;
pub(crate) mod script;
pub(crate) mod terminal;
