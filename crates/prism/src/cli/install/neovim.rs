//! The plugin for Neovim, as `prism install` and `prism uninstall` put it there and take it out.

use std::path::{Path, PathBuf};

use prism_config::Env;
use prism_install::{
    ChangeState, InstallError,
    neovim::{self, NAME, NEXT, PluginChange, TITLE},
};

use crate::cli::{
    add::is_program,
    configs::{FileOutcome, InstallContext, SurfaceArgs, state},
};

/// Whether Neovim is on this machine.
pub(super) fn is_there(env: &Env) -> bool {
    is_program("nvim", None, env) || neovim::folder(env).is_ok_and(|folder| folder.is_dir())
}

pub(super) fn add(options: &SurfaceArgs, force: bool, place: &InstallContext, env: &Env) -> FileOutcome {
    let dry = options.dry_run;
    let planned = user_folder(options, env).and_then(|folder| neovim::install(&folder, force, &place.records));
    let outcome = made(planned, options, place, |change, file| match (change.state, dry) {
        (ChangeState::Unchanged, _) => format!("plugin already installed in {TITLE} ({file})"),
        (_, true) => format!("plugin would be installed in {TITLE} ({file})"),
        (ChangeState::Added, false) => format!("plugin installed in {TITLE} ({file})"),
        (_, false) => format!("plugin updated in {TITLE} ({file})"),
    });
    outcome.with("next", NEXT)
}

/// Takes it out wherever we put it, or else looks where it would be.
pub(in crate::cli) fn remove(options: &SurfaceArgs, place: &InstallContext, env: &Env) -> Vec<FileOutcome> {
    let known = neovim::known_folders(&place.records);
    match known.is_empty() || options.project {
        true => vec![remove_from(user_folder(options, env), options, place)],
        false => known.into_iter().map(|folder| remove_from(Ok(folder), options, place)).collect(),
    }
}

fn remove_from(folder: Result<PathBuf, InstallError>, options: &SurfaceArgs, place: &InstallContext) -> FileOutcome {
    let dry = options.dry_run;
    let planned = folder.and_then(|folder| neovim::uninstall(&folder, &place.records));
    made(planned, options, place, |change, file| match (&change.edited, change.state, dry) {
        (Some(edited), ..) => {
            format!("{} is not as `prism install` writes it, so it stays, and the plugin with it", edited.display())
        }
        (None, ChangeState::Unchanged, _) => format!("plugin not installed in {TITLE} ({file})"),
        (None, _, true) => format!("plugin would be removed from {TITLE} ({file})"),
        (None, _, false) if change.deletes() => format!("plugin removed from {TITLE} ({file} is gone, as before)"),
        (None, _, false) => format!("plugin removed from {TITLE} ({file} is as it was before)"),
    })
}

fn user_folder(options: &SurfaceArgs, env: &Env) -> Result<PathBuf, InstallError> {
    match options.project {
        true => Err(InstallError::NoProject { title: TITLE, name: NAME }),
        false => neovim::folder(env),
    }
}

/// Makes a change, unless it is only to be shown. The text is all ours, so that its lines say nothing to the person.
fn made(
    planned: Result<PluginChange, InstallError>,
    options: &SurfaceArgs,
    place: &InstallContext,
    text: impl FnOnce(&PluginChange, std::path::Display<'_>) -> String,
) -> FileOutcome {
    let made = planned.and_then(|change| {
        if !options.dry_run {
            change.make(&place.records)?;
        }
        Ok(change)
    });
    let outcome = match made {
        Ok(change) => {
            let path: &Path = &change.entry;
            let said = FileOutcome::said(None, state(change.state), text(&change, path.display()));
            said.with("file", path.to_string_lossy().into_owned())
        }
        Err(error) => FileOutcome::failed(None, error.into()),
    };
    outcome.with("surface", NAME)
}
