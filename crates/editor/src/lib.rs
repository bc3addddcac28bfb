//! The built-in editor: what the actions of a grant do to files and commands. It knows the granted folders and neither grants
//! nor tokens: whether an action is allowed was decided before (`prism_core::policy`), and who is asked about it is the
//! gate's business (`crates/gate`).
//!
//! An action has two phases. `BuiltinEditor::prepare` opens all that it is about, by handle, changes nothing, and can tell a
//! person what will happen (`ActionPreview`). `PreparedVerb::run` acts on these very handles, and refuses if what was shown is no
//! longer so. Nothing is reached but through the granted folders' handles (A-08, `prism_os::root`); only a command that
//! a person has allowed can do what the user can do.

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
pub use dispatch::{BuiltinEditor, EditorEnvironment, VerbOrder, locate::ResolvedArgs};
pub use encoding::digest_of;
pub use happening::EditorEvent;
pub use lsp::{DefaultLanguageServer, usual_servers};
pub use prepared::PreparedVerb;
pub use progress::{ProgressNote, ProgressSink};
pub use run::fence::{SandboxRequest, ServerSandbox, ServerSandboxError, ServerSandboxes};
pub use run::observe::{ObservedRun, RunEnding, RunObserver, RunViewer};
pub use settings::EditorSettings;
pub use shown::{ActionPreview, GivenCommand, Script};
pub use state::GrantHolder;
pub use text::{
    buffers::ReleasedText,
    difference::unified,
    preview::{edited, edited_by},
};

#[cfg(test)]
mod tests;
