//! Prism's plugin for Neovim: files that are ours from their first line to their last, which come and go together. They are in
//! this program, as the extension of VS Code is. Neovim knows no MCP servers, so there is no entry to write, and it is none of
//! the surfaces.

use std::path::{Path, PathBuf};

use prism_config::Env;

use super::{
    ConfigFile, InstallError,
    change::{ChangeState, FileChange, undo},
    document::ConfigLanguage,
    record::{ChangePurpose, ChangeRecord, ChangeRecords, RecordedEdit},
    surface::{config_home, home},
};

/// As it is typed.
pub const NAME: &str = "neovim";
/// As people call it.
pub const TITLE: &str = "Neovim";
/// What a person does so that it runs.
pub const NEXT: &str = "start nvim anew in your project's folder";

/// What Neovim runs at its start. The first versions of the plugin were this file alone.
const ENTRY: &str = "plugin/prism.lua";
/// Where the other files are.
const MODULES: &str = "lua/prism";

macro_rules! plugin_files {
    ($($name:literal),* $(,)?) => { &[$(($name, include_str!(concat!("../../../editors/nvim/", $name)))),*] };
}

/// Each file with its text. The entry is the last, so that what it needs is there before it.
const FILES: &[(&str, &str)] = plugin_files![
    "lua/prism/arguments.lua",
    "lua/prism/buffers.lua",
    "lua/prism/commands.lua",
    "lua/prism/connection.lua",
    "lua/prism/desk.lua",
    "lua/prism/disk.lua",
    "lua/prism/edits.lua",
    "lua/prism/events.lua",
    "lua/prism/init.lua",
    "lua/prism/language.lua",
    "lua/prism/position.lua",
    "lua/prism/refusal.lua",
    "lua/prism/roots.lua",
    "lua/prism/runs.lua",
    "lua/prism/text.lua",
    "lua/prism/verbs/buffers.lua",
    "lua/prism/verbs/changes.lua",
    "lua/prism/verbs/code.lua",
    "lua/prism/verbs/files.lua",
    "lua/prism/verbs/search.lua",
    "lua/prism/verbs/windows.lua",
    "lua/prism/watch.lua",
    "lua/prism/websocket.lua",
    "plugin/prism.lua",
];

/// What is about to happen to the plugin's files: to all of them, or to none.
#[derive(Debug)]
pub struct PluginChange {
    pub state: ChangeState,
    /// The plugin's entry, by which a person finds the others.
    pub entry: PathBuf,
    /// A file that somebody has made theirs, so that nothing happens.
    pub edited: Option<PathBuf>,
    changes: Vec<FileChange>,
}

/// Returns the folder of Neovim's config. `NVIM_APPNAME` is how people keep several.
pub fn folder(env: &Env) -> Result<PathBuf, InstallError> {
    let name = env.var("NVIM_APPNAME").map_or(Path::new("nvim"), Path::new);
    Ok(config_home(env, &home(env)?).join(name))
}

/// Returns the folders that the plugin was put into.
pub fn known_folders(records: &ChangeRecords) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = records_of(records).map(|(folder, _)| folder).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Plans that the plugin is there, and of an older one no file is left.
pub fn install(folder: &Path, force: bool, records: &ChangeRecords) -> Result<PluginChange, InstallError> {
    let planned = FILES.iter().map(|(name, text)| put(&folder.join(name), text, force, records));
    let mut changes = planned.collect::<Result<Vec<_>, _>>()?;
    let is_ours = |path: &Path| FILES.iter().any(|(name, _)| folder.join(name) == path);
    for (_, record) in records_of(records).filter(|(of, record)| of == folder && !is_ours(&record.path)) {
        changes.push(undo(record)?);
    }
    Ok(PluginChange::new(folder, changes))
}

/// Plans that the plugin goes, unless somebody made a file of it theirs: a part of it would be of no use to them.
pub fn uninstall(folder: &Path, records: &ChangeRecords) -> Result<PluginChange, InstallError> {
    let mut changes = Vec::new();
    for (_, record) in records_of(records).filter(|(of, _)| of == folder) {
        changes.push(undo(record)?);
    }
    for (name, text) in FILES {
        let file = ConfigFile::open(&folder.join(name))?;
        if changes.iter().all(|change: &FileChange| change.file.path != file.path) {
            changes.push(match file.text.as_deref() == Some(*text) {
                true => FileChange::removed(file, String::new())?,
                false => FileChange::nothing(file),
            });
        }
    }
    // The last one takes the folders along that were made for an older plugin, which was the entry alone.
    changes.sort_by_key(|change| change.file.path.ends_with(ENTRY));
    let mut planned = PluginChange::new(folder, changes);
    let is_theirs = |change: &&FileChange| change.state == ChangeState::Unchanged && change.file.text.is_some();
    planned.edited = planned.changes.iter().find(is_theirs).map(|change| change.file.path.clone());
    if planned.edited.is_some() {
        planned.state = ChangeState::Unchanged;
        planned.changes.clear();
    }
    Ok(planned)
}

fn put(path: &Path, text: &str, force: bool, records: &ChangeRecords) -> Result<FileChange, InstallError> {
    let file = ConfigFile::open(path)?;
    let known = records.find(ChangePurpose::Install, path);
    let is_as_we_left_it = file.text.as_ref().is_none_or(|there| known.is_some_and(|known| known.after == *there));
    let state = match &file.text {
        Some(there) if there == text => return Ok(FileChange::nothing(file)),
        Some(_) if !is_as_we_left_it && !force => return Err(InstallError::Taken { path: path.to_owned() }),
        Some(_) => ChangeState::Updated,
        None => ChangeState::Added,
    };
    let edits = vec![RecordedEdit::Whole];
    let change = FileChange::edited_in(
        ConfigLanguage::Json,
        file,
        text.to_owned(),
        state,
        ChangePurpose::Install,
        Some(NAME),
        edits,
        records,
    );
    change.map(FileChange::shared)
}

/// What is remembered of files of the plugin, each with Neovim's folder.
fn records_of(records: &ChangeRecords) -> impl Iterator<Item = (PathBuf, ChangeRecord)> {
    let ours = records.all(ChangePurpose::Install).into_iter().filter(|record| record.surface.as_deref() == Some(NAME));
    ours.filter_map(|record| {
        let is_folder = |above: &&Path| {
            let below = record.path.strip_prefix(above).unwrap_or(Path::new(""));
            below == Path::new(ENTRY) || below.starts_with(MODULES)
        };
        let folder = record.path.ancestors().find(is_folder)?.to_owned();
        Some((folder, record))
    })
}

// === impl PluginChange ===

impl PluginChange {
    fn new(folder: &Path, changes: Vec<FileChange>) -> Self {
        let mut states = changes.iter().map(|change| change.state);
        let first = states.clone().find(|state| *state != ChangeState::Unchanged);
        let state = match first {
            // Where there is some of it already, it is brought up to date.
            Some(ChangeState::Added) if !states.all(|state| state == ChangeState::Added) => ChangeState::Updated,
            first => first.unwrap_or(ChangeState::Unchanged),
        };
        Self { state, entry: folder.join(ENTRY), edited: None, changes }
    }

    /// Returns whether the plugin is gone afterwards, and nothing in its place.
    pub fn deletes(&self) -> bool {
        self.changes.iter().all(|change| change.deletes() || change.file.text.is_none())
    }

    /// Makes the changes, one file after the other. Whoever is interrupted does it again.
    pub fn make(&self, records: &ChangeRecords) -> Result<(), InstallError> {
        self.changes.iter().try_for_each(|change| change.make(records))
    }
}
