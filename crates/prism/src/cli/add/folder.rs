//! Which folder a destination's command runs in. What is relative in it was meant from where its user typed it, and the
//! daemon is at home elsewhere.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};

use prism_config::file::ConfigPaths;

/// A folder for the command.
#[derive(Debug)]
pub(super) struct CommandFolder {
    /// As it is written.
    pub(super) written: PathBuf,
    /// The word that made it necessary, if nobody asked for it.
    pub(super) because: Option<String>,
    /// As it is on this machine. A `~` is for the config to expand.
    pub(super) real: PathBuf,
}

impl CommandFolder {
    /// Returns the one that was asked for. What is relative to this shell would mean something else to the daemon, so it
    /// is made absolute; a `~` that the shell left alone stays.
    pub(super) fn asked(cwd: &str) -> anyhow::Result<Self> {
        let folder = match cwd == "~" || cwd.starts_with("~/") {
            true => cwd.into(),
            false => std::path::absolute(cwd).with_context(|| format!("--cwd {cwd:?}"))?,
        };
        match folder.to_str() {
            Some(_) => Ok(Self { written: folder.clone(), because: None, real: folder }),
            None => Err(anyhow!("--cwd {cwd:?} lies in a folder whose name is not UTF-8")),
        }
    }

    /// Returns the one that a command needs; none if nothing in it is relative. In a project's own file it is relative to
    /// the file, as that may be cloned to elsewhere.
    pub(super) fn needed(command: &[String], places: &ConfigPaths, target: &Path) -> anyhow::Result<Option<Self>> {
        let here = match places.here.as_os_str().is_empty() {
            true => std::env::current_dir().context("the folder this was typed in is gone")?,
            false => std::path::absolute(&places.here)?,
        };
        let Some(because) = command.iter().find(|word| is_relative(word, &here)) else {
            return Ok(None);
        };
        let project = places.project(target);
        let inside = project.as_deref().and_then(|project| {
            let below = here.canonicalize().ok()?.strip_prefix(project).ok()?.to_owned();
            Some(if below.as_os_str().is_empty() { PathBuf::from(".") } else { below })
        });
        let written = inside.unwrap_or_else(|| here.clone());
        if written.to_str().is_none() {
            return Err(anyhow!("{because:?} is meant from a folder whose name is not UTF-8\n  fix: --cwd DIR"));
        }
        Ok(Some(Self { written, because: Some(because.clone()), real: here }))
    }
}

/// Whether a word is a path from here: it says so itself, or leads to something that is there. What is after the `=` of an
/// option counts, too.
fn is_relative(word: &str, here: &Path) -> bool {
    let path = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => word,
    };
    let says_so = matches!(path, "." | "..") || path.starts_with("./") || path.starts_with("../");
    let leads = || path.contains('/') && !path.starts_with(['/', '~', '-']) && here.join(path).exists();
    says_so || leads()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_here_is_told_from_other_words() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("docs/api")).unwrap();
        let relative = |word: &str| is_relative(word, folder.path());
        for word in [".", "..", "./a", "../a", "docs/api", "--root=.", "--root=./a", "-d=docs/api"] {
            assert!(relative(word), "{word}");
        }
        let others =
            ["docs", ".hidden", "...", "a/b", "@scope/x", "/tmp", "~/docs", "--root", "https://x/y", "", "a=./b"];
        for word in others {
            assert!(!relative(word), "{word}");
        }
    }
}
