//! One file's change, from what is there to what shall be: planned, shown, then made.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    ConfigFile, EditError, InstallError,
    diff::{self, DiffLine},
    document::{ConfigLanguage, ConfigText, lookup},
    entry::{EntryMarks, NAME, SurfaceTransport},
    jsonc::EmptyObjectRule,
    node::ConfigNode,
    record::{ChangePurpose, ChangeRecord, ChangeRecords, RecordedEdit},
    surface::{Surface, is_second_version},
};

/// What is about to happen to a file.
#[derive(Clone, Debug)]
pub struct FileChange {
    pub file: ConfigFile,
    pub state: ChangeState,
    /// What the file will say; `None`: it goes.
    pub(super) after: Option<String>,
    /// What to keep in mind, or to forget.
    record: RecordUpdate,
    private: bool,
}

/// What a change comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// The entry is new.
    Added,
    /// It was ours, and said something else.
    Updated,
    /// There is nothing to do.
    Unchanged,
    /// The file is byte for byte what it was.
    Restored,
    /// Somebody changed the file since, so only our change was taken back.
    Removed,
    /// Others' entries were changed.
    Changed,
}

#[derive(Clone, Debug)]
enum RecordUpdate {
    Keep(Box<ChangeRecord>),
    Forget(Box<ChangeRecord>),
    Nothing,
}

/// Plans Prism's entry in a surface's config.
pub fn install(
    surface: Surface,
    path: PathBuf,
    way: &SurfaceTransport,
    marks: &EntryMarks,
    force: bool,
    records: &ChangeRecords,
) -> Result<FileChange, InstallError> {
    let file = ConfigFile::open(&path)?;
    let text = ConfigText::new(surface.language(), file.text());
    let in_file = |source| InstallError::Edit { path: path.clone(), source };
    let value = text.value().map_err(in_file)?;
    let container = surface.container(&value);
    let node = way.entry(surface, is_second_version(&value));
    let known = records.find(ChangePurpose::Install, &path);
    let found = lookup(&value, &container).and_then(|servers| servers.get(NAME));
    let Some(found) = found else {
        let after = text.insert(&container, NAME, &node).map_err(in_file)?;
        let edit = RecordedEdit::Added { container, name: NAME.to_owned() };
        return FileChange::edited(
            file,
            after,
            ChangeState::Added,
            ChangePurpose::Install,
            Some(surface),
            vec![edit],
            records,
        );
    };
    if is_contained(&node, found) {
        return Ok(FileChange::nothing(file));
    }
    let ours = known.is_some() || marks.are_on(found);
    if !ours && !force {
        return Err(InstallError::Foreign { path });
    }
    let written = if ours { merged(node, found) } else { node };
    let old = text.raw(&container, NAME).map_err(in_file)?.unwrap_or_default();
    let after = text.replace(&container, NAME, &written).map_err(in_file)?;
    let new = ConfigText::new(surface.language(), &after).raw(&container, NAME).map_err(in_file)?.unwrap_or_default();
    let name = NAME.to_owned();
    let edit = if ours {
        RecordedEdit::Added { container, name }
    } else {
        RecordedEdit::Changed { container, name, old, new }
    };
    FileChange::edited(file, after, ChangeState::Updated, ChangePurpose::Install, Some(surface), vec![edit], records)
}

/// Plans that Prism's entry goes.
pub fn uninstall(
    surface: Surface,
    path: PathBuf,
    marks: &EntryMarks,
    force: bool,
    records: &ChangeRecords,
) -> Result<FileChange, InstallError> {
    if let Some(record) = records.find(ChangePurpose::Install, &path) {
        return undo(record);
    }
    let file = ConfigFile::open(&path)?;
    let text = ConfigText::new(surface.language(), file.text());
    let in_file = |source| InstallError::Edit { path: path.clone(), source };
    let value = text.value().map_err(in_file)?;
    let container = surface.container(&value);
    let Some(found) = lookup(&value, &container).and_then(|servers| servers.get(NAME)) else {
        return Ok(FileChange::nothing(file));
    };
    if !marks.are_on(found) && !force {
        return Err(InstallError::Foreign { path });
    }
    let after = text.remove(&container, NAME, EmptyObjectRule::GoesIfOurs).map_err(in_file)?;
    FileChange::removed(file, after)
}

/// Plans that what a record tells of is undone: to the byte if nobody touched the file since, else entry by entry.
pub fn undo(record: ChangeRecord) -> Result<FileChange, InstallError> {
    let file = ConfigFile::open(&record.path)?;
    let (state, after) = match &file.text {
        // Somebody removed it; there is nothing to take back.
        None => (ChangeState::Unchanged, None),
        Some(text) if *text == record.after => (ChangeState::Restored, record.before.clone()),
        Some(text) => {
            let in_file = |source| InstallError::Edit { path: record.path.clone(), source };
            let after = record.undone(text).map_err(in_file)?;
            let is_empty = record.before.is_none() && after.trim_start_matches('\u{feff}').trim().is_empty();
            (if after == *text { ChangeState::Unchanged } else { ChangeState::Removed }, (!is_empty).then_some(after))
        }
    };
    file.check_writable()?;
    Ok(FileChange { file, state, after, record: RecordUpdate::Forget(Box::new(record)), private: true })
}

// === impl FileChange ===

impl FileChange {
    /// Plans a change of a file, and what is remembered of it.
    pub fn edited(
        file: ConfigFile,
        after: String,
        state: ChangeState,
        action: ChangePurpose,
        surface: Option<Surface>,
        edits: Vec<RecordedEdit>,
        records: &ChangeRecords,
    ) -> Result<Self, InstallError> {
        let language = surface.map_or(ConfigLanguage::Toml, Surface::language);
        Self::edited_in(language, file, after, state, action, surface.map(Surface::name), edits, records)
    }

    /// The same, in a file of a surface that is written in another language than its servers are.
    #[expect(clippy::too_many_arguments, reason = "it is what a change consists of")]
    pub(super) fn edited_in(
        language: ConfigLanguage,
        file: ConfigFile,
        after: String,
        state: ChangeState,
        action: ChangePurpose,
        surface: Option<&str>,
        edits: Vec<RecordedEdit>,
        records: &ChangeRecords,
    ) -> Result<Self, InstallError> {
        file.check_writable()?;
        let mut record = records
            .find(action, &file.path)
            .unwrap_or_else(|| ChangeRecord::new(action, surface, &file.path, language));
        let folders = file.missing_folders();
        if !folders.is_empty() {
            record.folders = folders;
        }
        record
            .extend(file.text.as_deref(), &after, edits)
            .map_err(|source| InstallError::Edit { path: file.path.clone(), source })?;
        Ok(Self { file, state, after: Some(after), record: RecordUpdate::Keep(Box::new(record)), private: true })
    }

    /// Plans that what is ours goes from a file that nobody remembers anything of.
    pub(super) fn removed(file: ConfigFile, after: String) -> Result<Self, InstallError> {
        file.check_writable()?;
        // Nobody keeps an empty config; an editor would call it broken.
        let after = (!after.trim_start_matches('\u{feff}').trim().is_empty()).then_some(after);
        Ok(Self { file, state: ChangeState::Removed, after, record: RecordUpdate::Nothing, private: true })
    }

    pub(super) fn nothing(file: ConfigFile) -> Self {
        let after = file.text.clone();
        Self { file, state: ChangeState::Unchanged, after, record: RecordUpdate::Nothing, private: true }
    }

    /// A file that is made is for its owner alone, unless this is called: the project's is for all who work on it.
    pub fn shared(self) -> Self {
        Self { private: false, ..self }
    }

    /// Returns what changes, line by line; nothing if nothing does.
    pub fn diff(&self) -> Vec<DiffLine> {
        match self.after == self.file.text {
            true => Vec::new(),
            false => diff::lines(&self.file.path, self.file.text.as_deref(), self.after.as_deref()),
        }
    }

    /// Returns whether the file is gone afterwards.
    pub fn deletes(&self) -> bool {
        self.after.is_none() && self.file.text.is_some()
    }

    /// Keeps what is needed to undo it.
    pub fn remember(&self, records: &ChangeRecords) -> Result<(), InstallError> {
        match &self.record {
            RecordUpdate::Keep(record) => records.keep(record),
            RecordUpdate::Forget(_) | RecordUpdate::Nothing => Ok(()),
        }
    }

    /// Makes the change. The backup comes first: a crash between the two leaves nothing that cannot be undone.
    pub fn make(&self, records: &ChangeRecords) -> Result<(), InstallError> {
        self.remember(records)?;
        match &self.after {
            _ if self.after == self.file.text => {}
            Some(after) => self.file.write(after, self.private)?,
            None => {
                let folders = match &self.record {
                    RecordUpdate::Forget(record) => record.folders.as_slice(),
                    RecordUpdate::Keep(_) | RecordUpdate::Nothing => &[],
                };
                self.file.delete(folders)?;
            }
        }
        if let RecordUpdate::Forget(record) = &self.record {
            records.forget(record);
        }
        Ok(())
    }
}

/// Whether an entry says all that ours does. What its owner added to it is theirs.
pub(super) fn is_contained(node: &ConfigNode, found: &Value) -> bool {
    match (node, found) {
        (ConfigNode::Items(items), Value::Array(found)) => {
            items.len() == found.len() && items.iter().zip(found).all(|(node, found)| is_contained(node, found))
        }
        (ConfigNode::Table(members), Value::Object(found)) => {
            members.iter().all(|(name, node)| found.get(name).is_some_and(|found| is_contained(node, found)))
        }
        (node, found) => node.value() == *found,
    }
}

/// Keeps what the owner of an entry added to it, like a switch or a list of trusted tools.
fn merged(node: ConfigNode, found: &Value) -> ConfigNode {
    const OURS: [&str; 10] =
        ["type", "url", "serverUrl", "httpUrl", "headers", "http_headers", "command", "args", "env", "environment"];
    let (ConfigNode::Table(mut members), Value::Object(found)) = (node.clone(), found) else {
        return node;
    };
    for (name, value) in found {
        if !OURS.contains(&name.as_str()) && !members.iter().any(|(ours, _)| ours == name) {
            members.push((name.clone(), ConfigNode::Other(value.clone())));
        }
    }
    ConfigNode::Table(members)
}

/// Returns the text of several entries that go, and what is remembered of it.
pub(super) fn without(
    language: ConfigLanguage,
    text: &str,
    container: &[String],
    names: &[String],
) -> Result<(String, Vec<RecordedEdit>), EditError> {
    let mut after = text.to_owned();
    let mut edits = Vec::new();
    for name in names {
        let now = ConfigText::new(language, &after);
        if let Some(old) = now.raw(container, name)? {
            let next = now.remove(container, name, EmptyObjectRule::Stays)?;
            edits.push(RecordedEdit::Removed { container: container.to_vec(), name: name.clone(), old });
            after = next;
        }
    }
    Ok((after, edits))
}
