//! The built-in editor: what the actions of a grant do to files and commands. It knows the granted folders and neither grants
//! nor tokens: whether an action is allowed was decided before (`prism_core::policy`), and who is asked about it is the
//! gate's business (`crates/gate`).
//!
//! An action has two phases. `Runtime::prepare` opens all that it is about, by handle, changes nothing, and can tell a person
//! what will happen (`Shown`). `Prepared::run` acts on these very handles, and refuses if what was shown is no longer so
//! . Nothing is reached but through the granted folders' handles (A-08, `prism_os::root`); only a command that a
//! person has allowed can do what the user can do.

mod args;
mod disk;
mod dispatch;
mod encoding;
mod happening;
mod language;
mod lsp;
mod prepared;
mod progress;
pub mod protocol;
mod refusal;
mod roots;
mod run;
mod settings;
mod shown;
mod state;
mod syntax;
mod text;
pub mod verbs;

pub use args::edit_bytes;
pub use dispatch::{Order, Runtime, Surroundings, locate::Located};
pub use encoding::digest_of;
pub use happening::Happening;
pub use lsp::{UsualServer, usual_servers};
pub use prepared::Prepared;
pub use progress::{Note, Progress};
pub use run::fence::{Lodger, Lodging, Quarters, QuartersError};
pub use run::observe::{ObservedRun, RunEnding, RunObserver, RunViewer};
pub use settings::Settings;
pub use shown::{GivenCommand, Script, Shown};
pub use state::Holder;
pub use text::{
    buffers::Surrendered,
    difference::unified,
    preview::{edited, edited_by},
};

#[cfg(test)]
mod tests;
