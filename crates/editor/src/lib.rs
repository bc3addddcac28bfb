//! The built-in editor: what the actions of a grant do to files and commands. It knows the granted folders and neither grants
//! nor tokens: whether an action is allowed was decided before (`prism_core::policy`), and who is asked about it is the
//! gate's business (`crates/prism/src/gate`).
//!
//! An action has two phases. `Runtime::prepare` opens all that it is about, by handle, changes nothing, and can tell a person
//! what will happen (`Shown`). `Prepared::run` acts on these very handles, and refuses if what was shown is no longer so
//! . Nothing is reached but through the granted folders' handles (A-08, `prism_os::root`); only a command that a
//! person has allowed can do what the user can do.

mod args;
mod buffers;
mod change;
mod command;
mod deeds;
mod edit;
mod fence;
mod files;
mod find;
mod foresee;
mod git;
mod glob;
mod ground;
mod happening;
mod language;
mod locate;
mod lsp;
mod names;
mod observe;
mod panes;
mod prepared;
mod progress;
mod project;
pub mod protocol;
mod runtime;
mod scene;
mod script;
mod search;
mod settings;
mod shown;
mod syntax;
mod terminal;
mod text;
mod tree;
pub mod verbs;
mod walk;
mod watch;
mod workspace;

pub use args::edit_bytes;
pub use buffers::Surrendered;
pub use change::unified;
pub use fence::{Lodger, Lodging, Quarters, QuartersError};
pub use foresee::{edited, edited_by};
pub use happening::Happening;
pub use language::LANGUAGES;
pub use locate::Located;
pub use lsp::{UsualServer, usual_servers};
pub use observe::{ObservedRun, RunEnding, RunObserver, RunViewer};
pub use prepared::Prepared;
pub use progress::{Note, Progress};
pub use runtime::{Order, Runtime, Surroundings};
pub use scene::Holder;
pub use script::Script;
pub use settings::Settings;
pub use shown::{Shown, Words};
pub use text::digest_of;

#[cfg(test)]
mod tests;
