//! What was changed in other programs' configs: kept in `$PRISM_HOME/installed` until it is undone. Beside each record
//! lie the file as it was (`.before`, a plain backup) and as we left it (`.after`), for nobody but their owner.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    EditError, InstallError,
    document::{ConfigLanguage, ConfigText, Container, lookup},
    hooks,
    jsonc::EmptyObjectRule,
    node::ConfigNode,
};
use prism_config::file::replace;

/// The folder of all records.
#[derive(Clone, Debug)]
pub struct ChangeRecords {
    folder: PathBuf,
}

/// What the file was changed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangePurpose {
    Install,
    Import,
    Migrate,
}

/// One change of one entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedEdit {
    Added {
        container: Container,
        name: String,
    },
    Removed {
        container: Container,
        name: String,
        old: String,
    },
    Changed {
        container: Container,
        name: String,
        old: String,
        new: String,
    },
    /// A hook of ours came into a list.
    Hooked {
        list: Container,
    },
    /// The file is ours from end to end.
    Whole,
}

/// What was done to one file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeRecord {
    pub action: ChangePurpose,
    /// The surface's name; none for `prism.toml`.
    pub surface: Option<String>,
    pub path: PathBuf,
    pub language: ConfigLanguage,
    /// Folders that were made for the file.
    pub folders: Vec<PathBuf>,
    pub edits: Vec<RecordedEdit>,
    /// `None`: there was no file.
    #[serde(skip)]
    pub before: Option<String>,
    #[serde(skip)]
    pub after: String,
    /// Whether there was a file, which the record cannot tell from a lost backup.
    created: bool,
}

// === impl ChangeRecords ===

impl ChangeRecords {
    pub fn new(home: &Path) -> Self {
        Self { folder: home.join("installed") }
    }

    /// Finds what was done to a file. A record that cannot be read is as good as none: the entry can still be found.
    pub fn find(&self, action: ChangePurpose, path: &Path) -> Option<ChangeRecord> {
        self.load(&self.folder.join(file_name(action, path)))
    }

    /// Returns every record of an action.
    pub fn all(&self, action: ChangePurpose) -> Vec<ChangeRecord> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut records: Vec<ChangeRecord> = entries
            .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
            .filter_map(|path| self.load(&path))
            .filter(|record| record.action == action)
            .collect();
        records.sort_by(|a, b| a.path.cmp(&b.path));
        records
    }

    fn load(&self, path: &Path) -> Option<ChangeRecord> {
        let mut record: ChangeRecord = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        record.after = fs::read_to_string(path.with_extension("after")).ok()?;
        if !record.created {
            record.before = Some(fs::read_to_string(path.with_extension("before")).ok()?);
        }
        Some(record)
    }

    /// Keeps a record. The backup is complete before the record names it.
    pub fn keep(&self, record: &ChangeRecord) -> Result<(), InstallError> {
        let path = self.folder.join(file_name(record.action, &record.path));
        let kept = (|| {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            match &record.before {
                Some(before) => replace(&path.with_extension("before"), before, 0o600)?,
                None => drop(fs::remove_file(path.with_extension("before"))),
            }
            replace(&path.with_extension("after"), &record.after, 0o600)?;
            replace(&path, &serde_json::to_string_pretty(record).map_err(io::Error::other)?, 0o600)
        })();
        kept.map_err(|source| InstallError::Record { path: self.folder.clone(), source })
    }

    pub fn forget(&self, record: &ChangeRecord) {
        let path = self.folder.join(file_name(record.action, &record.path));
        for path in [path.clone(), path.with_extension("before"), path.with_extension("after")] {
            let _ = fs::remove_file(path);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

/// A name that says what it is, and is another one for every file.
fn file_name(action: ChangePurpose, path: &Path) -> String {
    let action = match action {
        ChangePurpose::Install => "install",
        ChangePurpose::Import => "import",
        ChangePurpose::Migrate => "migrate",
    };
    let hash = hash(path.as_os_str().as_encoded_bytes());
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{action}-{}-{hash:016x}.json", name.trim_start_matches('.'))
}

/// FNV-1a: std's hashes may be others in the next release.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

// === impl ChangeRecord ===

impl ChangeRecord {
    /// A record of a first change.
    pub fn new(action: ChangePurpose, surface: Option<&str>, path: &Path, language: ConfigLanguage) -> Self {
        Self {
            action,
            surface: surface.map(str::to_owned),
            path: path.to_owned(),
            language,
            folders: Vec::new(),
            edits: Vec::new(),
            before: None,
            after: String::new(),
            created: true,
        }
    }

    /// Returns whether it is of a file with hooks.
    pub fn holds_hooks(&self) -> bool {
        self.edits.iter().any(|edit| matches!(edit, RecordedEdit::Hooked { .. }))
    }

    /// Takes a further change in: the file is `current` now and will be `after`.
    pub fn extend(&mut self, current: Option<&str>, after: &str, edits: Vec<RecordedEdit>) -> Result<(), EditError> {
        // What was there before is what would be there now, had we never touched it.
        if self.edits.is_empty() || current != Some(self.after.as_str()) {
            self.before = match current {
                Some(current) => Some(self.undone(current)?),
                None => None,
            };
        }
        self.created = self.before.is_none();
        self.after = after.to_owned();
        for edit in edits {
            self.add(edit)?;
        }
        Ok(())
    }

    /// Adds an edit. Of one entry only the first old text and the last new one count.
    fn add(&mut self, edit: RecordedEdit) -> Result<(), EditError> {
        let Some((container, name)) = edit.entry() else {
            if !self.edits.contains(&edit) {
                self.edits.push(edit);
            }
            return Ok(());
        };
        let now = ConfigText::new(self.language, &self.after).raw(container, name)?;
        let known = self.edits.iter_mut().find(|known| known.entry() == edit.entry());
        match (known, &edit, now) {
            (
                Some(RecordedEdit::Changed { new, .. }),
                RecordedEdit::Added { .. } | RecordedEdit::Changed { .. },
                Some(now),
            ) => *new = now,
            (Some(RecordedEdit::Added { .. }), RecordedEdit::Added { .. } | RecordedEdit::Changed { .. }, _) => {}
            _ => self.edits.push(edit),
        }
        Ok(())
    }

    /// Takes our changes back out of a text that others have changed since.
    pub fn undone(&self, text: &str) -> Result<String, EditError> {
        let before =
            ConfigText::new(self.language, self.before.as_deref().unwrap_or_default()).value().unwrap_or_default();
        // An empty file has no objects in it, not even the outermost.
        let empty = |path: &[String]| match lookup(&before, path) {
            Some(there) if !there.is_null() => EmptyObjectRule::Stays,
            _ => EmptyObjectRule::GoesIfOurs,
        };
        let mut text = text.to_owned();
        for edit in self.edits.iter().rev() {
            let now = ConfigText::new(self.language, &text);
            let has = |container: &[String], name: &str| now.raw(container, name);
            text = match edit {
                RecordedEdit::Added { container, name } => now.remove(container, name, empty(container))?,
                RecordedEdit::Hooked { list } => now.remove_items(list, hooks::is_ours, empty(list))?,
                RecordedEdit::Removed { container, name, old } if has(container, name)?.is_none() => {
                    now.insert(container, name, &ConfigNode::Raw(old.clone()))?
                }
                RecordedEdit::Changed { container, name, old, new } if same(has(container, name)?.as_deref(), new) => {
                    now.replace(container, name, &ConfigNode::Raw(old.clone()))?
                }
                // Somebody else has decided on this entry since, or made the file theirs.
                RecordedEdit::Removed { .. } | RecordedEdit::Changed { .. } | RecordedEdit::Whole => text.clone(),
            };
        }
        Ok(text)
    }
}

// === impl RecordedEdit ===

impl RecordedEdit {
    /// Names the entry, if it is one.
    fn entry(&self) -> Option<(&Container, &str)> {
        match self {
            Self::Hooked { .. } | Self::Whole => None,
            Self::Added { container, name }
            | Self::Removed { container, name, .. }
            | Self::Changed { container, name, .. } => Some((container, name)),
        }
    }
}

/// Whether an entry is the one that we wrote, however it is laid out by now.
fn same(found: Option<&str>, written: &str) -> bool {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    found.is_some_and(|found| {
        squeezed(found) == squeezed(written) || value(found).is_some_and(|found| Some(found) == value(written))
    })
}
