//! Prism's entry in the configs of other programs (D-06), and the servers that those configs hold. What a person types,
//! and what is said to them, is in `prism::cli`.
//!
//! Such a file is somebody else's. It is changed in one place, by splices (`jsonc.rs`, `toml.rs`), the new text is read
//! again before it is written (`document.rs`), and what was there before is kept (`record.rs`) until it is put back.

mod change;
pub mod diff;
mod document;
pub mod entry;
pub mod extension;
mod file;
pub mod found;
pub mod hooks;
pub mod import;
mod jsonc;
pub mod migrate;
pub mod neovim;
mod node;
mod record;
mod splice;
pub mod surface;
mod toml;

#[cfg(test)]
mod tests;

use std::{io, path::PathBuf};

pub use change::{ChangeState, FileChange, install, undo, uninstall};
pub use file::ConfigFile;
pub use record::{ChangePurpose, ChangeRecords, RecordedEdit};

/// Why a config was not changed. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("HOME is not set, so nobody knows where the configs are\n  fix: export HOME=/your/folder")]
    NoHome,
    #[error("{title} has no config per project\n  fix: prism install {name}, without --project")]
    NoProject { title: &'static str, name: &'static str },
    #[error("{title} starts its servers itself, so --http is not for it\n  fix: take --http out")]
    NoHttp { title: &'static str },
    #[error(
        "Prism knows no hooks of {title}\n  fix: take --hooks out; those of claude-code, codex and cursor are known"
    )]
    NoHooks { title: &'static str },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not UTF-8; nothing was changed\n  fix: save the file as UTF-8", path.display())]
    NotText { path: PathBuf },
    #[error("{} is read-only (mode {mode:04o}); nothing was changed\n  fix: chmod u+w {}", path.display(), path.display())]
    ReadOnly { path: PathBuf, mode: u32 },
    #[error("{} was changed by another program just now, so we did not\n  fix: try again", path.display())]
    Raced { path: PathBuf },
    #[error("cannot write {}; nothing was changed", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot keep what was there before in {}; nothing was changed", path.display())]
    Record { path: PathBuf, source: io::Error },
    #[error("{}{}: {source}; nothing was changed", path.display(), source.spot())]
    Edit { path: PathBuf, source: EditError },
    #[error(
        "{} has an entry \"prism\" that is not Prism's; nothing was changed\n  \
         fix: give it another name there, or replace it with --force",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "{} is there and is not what `prism install` wrote; nothing was changed\n  \
         fix: move it elsewhere, or replace it with --force",
        path.display()
    )]
    Taken { path: PathBuf },
}

/// Why a text cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    #[error("the file is broken: {problem}")]
    Broken { spot: LineColumn, problem: String },
    #[error("{what} is not an object")]
    WrongType { spot: LineColumn, what: String },
    #[error("{what} is not a list")]
    NoList { spot: LineColumn, what: String },
    #[error("{name:?} is there twice")]
    Twice { spot: LineColumn, name: String },
    #[error("the file is written in a way that cannot be edited safely")]
    Unsafe,
}

/// A place in a text. Line and column count from one, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    line: usize,
    column: usize,
}

// === impl EditError ===

impl EditError {
    /// Returns the place as it follows a file's name.
    fn spot(&self) -> String {
        match self {
            Self::Broken { spot, .. }
            | Self::WrongType { spot, .. }
            | Self::NoList { spot, .. }
            | Self::Twice { spot, .. } => format!(":{}:{}", spot.line, spot.column),
            Self::Unsafe => String::new(),
        }
    }
}

// === impl LineColumn ===

impl LineColumn {
    fn of(text: &str, place: usize) -> Self {
        let before = text.get(..place).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        Self { line: before.matches('\n').count() + 1, column: before[start..].chars().count() + 1 }
    }
}
