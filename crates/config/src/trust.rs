//! Whose word a config is. What it says is started as the person, so it has to be theirs: a file in Prism's own folder is, as
//! nobody else reaches that; one that is named on a command line counts as it is when it is named; any other, above all the
//! `prism.toml` of a folder that one happens to work in, counts once the person has seen what it says (`prism trust`). After
//! that it counts as it was seen: another text under the same name waits for the next look, and the one that was seen stays
//! in effect.
//!
//! What was seen is kept as a whole, in Prism's own folder, so that a difference can be shown and no digest has to be believed.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use prism_core::shell::command_line;
use serde::{Deserialize, Serialize};

use super::file;

/// The list of what was seen, in Prism's home.
pub const FILE: &str = "trusted.json";

/// No config is longer, and the list of what was seen is read often.
const MAX_BYTES: usize = 1 << 20;

/// What the person has seen, as Prism's home has it.
#[derive(Clone, Debug)]
pub struct TrustStore {
    home: PathBuf,
}

/// A text that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedText {
    pub path: PathBuf,
    pub text: String,
    /// When, as in the log.
    pub at: String,
}

/// How a file's text stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustStatus {
    /// It lies where nobody but the person writes.
    Own,
    Seen,
    /// Another was seen, this one.
    Changed(TrustedText),
    Unknown,
}

/// A file that does not count as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedFile {
    pub path: PathBuf,
    /// What it says.
    pub text: String,
    /// What counts in its place, if it was ever seen.
    pub seen: Option<String>,
}

// === impl TrustStore ===

impl TrustStore {
    #[must_use]
    pub fn of(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Where the list is.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.home.join(FILE)
    }

    /// Returns all that was seen.
    pub fn all(&self) -> io::Result<Vec<TrustedText>> {
        let text = match fs::read(self.file()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        serde_json::from_slice(&text).map_err(|error| {
            io::Error::other(format!("it is not as Prism has written it ({error}); rm it, and say `prism trust` again"))
        })
    }

    /// Returns how a text stands that was read under this name.
    pub fn standing(&self, path: &Path, text: &str) -> io::Result<TrustStatus> {
        if self.is_own(path) {
            return Ok(TrustStatus::Own);
        }
        let name = name_of(path);
        Ok(match self.all()?.into_iter().find(|seen| seen.path == name) {
            None => TrustStatus::Unknown,
            Some(seen) if seen.text == text => TrustStatus::Seen,
            Some(seen) => TrustStatus::Changed(seen),
        })
    }

    /// Tells whether a file really lies in Prism's own folder, which is part of no grant and open to no fence.
    #[must_use]
    pub fn is_own(&self, path: &Path) -> bool {
        let real = fs::canonicalize(path).unwrap_or_else(|_| name_of(path));
        fs::canonicalize(&self.home).is_ok_and(|home| real.starts_with(home))
    }

    /// Tells whether it goes by a name in that folder, wherever that leads.
    #[must_use]
    pub fn is_in_home(&self, path: &Path) -> bool {
        fs::canonicalize(&self.home).is_ok_and(|home| name_of(path).starts_with(home))
    }

    /// Notes that the person has seen this very text.
    pub fn see(&self, path: &Path, text: &str, at: String) -> io::Result<()> {
        if text.len() > MAX_BYTES {
            return Err(io::Error::other("it is larger than a config can be (1 MiB)"));
        }
        let path = name_of(path);
        if path.to_str().is_none() {
            return Err(io::Error::other("its name is not UTF-8"));
        }
        self.change(|all| {
            all.retain(|seen| seen.path != path);
            all.push(TrustedText { path: path.clone(), text: text.to_owned(), at });
            true
        })
        .map(drop)
    }

    /// Forgets that a file was seen. Returns whether it was.
    pub fn forget(&self, path: &Path) -> io::Result<bool> {
        let path = name_of(path);
        self.change(|all| {
            let before = all.len();
            all.retain(|seen| seen.path != path);
            all.len() < before
        })
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TrustedText>) -> bool) -> io::Result<bool> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.home)?;
        // Two at once must not lose each other's word.
        let lock = File::open(&self.home)?;
        let _ = lock.lock();
        let mut all = self.all()?;
        let has_changed = change(&mut all);
        if has_changed {
            all.sort_by(|one, other| one.path.cmp(&other.path));
            let text = serde_json::to_string_pretty(&all).map_err(io::Error::other)?;
            file::replace(&self.file(), &format!("{text}\n"), 0o600)?;
        }
        Ok(has_changed)
    }
}

/// The name that a file is known by: where its folder really is. A link keeps its own name, as what is relative in a config
/// begins at the folder that it was found in.
#[must_use]
pub fn name_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.zip(path.file_name()).map_or(path.clone(), |(folder, name)| folder.join(name))
}

// === impl UntrustedFile ===

impl UntrustedFile {
    /// Says it in a line, without what to type.
    #[must_use]
    pub fn why(&self) -> String {
        let path = self.path.display();
        match self.seen {
            Some(_) => format!("{path} was changed, and counts as you saw it last until you have seen the change"),
            None => {
                format!("{path} does not count: it is a project's own config, and you have not seen yet what it says")
            }
        }
    }

    /// What to type about it.
    #[must_use]
    pub fn fix(&self) -> String {
        command_line(&["prism".to_owned(), "trust".to_owned(), self.path.display().to_string()])
    }
}
