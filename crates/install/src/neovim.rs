//! Prism's plugin for Neovim: one file, which is ours from its first line to its last. It is in this program, as the
//! extension of VS Code is. Neovim knows no MCP servers, so there is no entry to write, and it is none of the surfaces.

use std::path::{Path, PathBuf};

use super::{
    ConfigFile, InstallError,
    change::{Change, State, undo},
    document::Language,
    record::{Action, Edit, Records},
    surface::{config_home, home},
};
use prism_config::Env;

/// As it is typed.
pub const NAME: &str = "neovim";
/// As people call it.
pub const TITLE: &str = "Neovim";
/// What a person does so that it runs.
pub const NEXT: &str = "start nvim anew in your project's folder";

const PLUGIN: &str = include_str!("../../../editors/nvim/prism.lua");

/// Returns where Neovim looks for plugins that it loads at its start.
pub fn file(env: &Env) -> Result<PathBuf, InstallError> {
    Ok(folder(env)?.join("plugin/prism.lua"))
}

/// Returns the folder of its config. `NVIM_APPNAME` is how people keep several.
pub fn folder(env: &Env) -> Result<PathBuf, InstallError> {
    let name = env.var("NVIM_APPNAME").map_or(Path::new("nvim"), Path::new);
    Ok(config_home(env, &home(env)?).join(name))
}

/// Plans that the plugin is there.
pub fn install(path: &Path, force: bool, records: &Records) -> Result<Change, InstallError> {
    let file = ConfigFile::open(path)?;
    let known = records.find(Action::Install, path);
    let is_as_we_left_it = file.text.as_ref().is_none_or(|text| known.is_some_and(|known| known.after == *text));
    let state = match &file.text {
        Some(text) if text == PLUGIN => return Ok(Change::nothing(file)),
        Some(_) if !is_as_we_left_it && !force => return Err(InstallError::Taken { path: path.to_owned() }),
        Some(_) => State::Updated,
        None => State::Added,
    };
    let edits = vec![Edit::Whole];
    let change =
        Change::edited_in(Language::Json, file, PLUGIN.to_owned(), state, Action::Install, Some(NAME), edits, records);
    change.map(Change::shared)
}

/// Plans that the plugin goes, unless somebody made it theirs.
pub fn uninstall(path: &Path, records: &Records) -> Result<Change, InstallError> {
    if let Some(record) = records.find(Action::Install, path) {
        return undo(record);
    }
    let file = ConfigFile::open(path)?;
    match file.text.as_deref() == Some(PLUGIN) {
        true => Change::removed(file, String::new()),
        false => Ok(Change::nothing(file)),
    }
}
