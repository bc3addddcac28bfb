//! The built-in editor: what the actions of a grant do to files and commands. It knows the granted folders and neither grants
//! nor tokens: whether an action is allowed was decided before (`prism_core::policy`), and who is asked about it is the
//! gate's business (`crates/prism/src/gate`).
//!
//! An action has two phases. `Runtime::prepare` opens all that it is about, by handle, changes nothing, and can tell a person
//! what will happen (`Shown`). `Prepared::run` acts on these very handles, and refuses if what was shown is no longer so
//! . Nothing is reached but through the granted folders' handles (A-08, `prism_os::root`); only a command that a
//! person has allowed can do what the user can do.

mod args;
mod change;
mod command;
mod edit;
mod files;
mod find;
mod glob;
mod ground;
mod names;
mod prepared;
mod runtime;
mod shown;
mod text;
mod tree;
mod workspace;

pub use args::edit_bytes;
pub use prepared::Prepared;
pub use runtime::{Order, Runtime, Surroundings};
pub use shown::{Shown, Words};

#[cfg(test)]
mod tests;
