//! The plugin for Neovim, as `prism install` and `prism uninstall` put it there and take it out.

use std::path::{Path, PathBuf};

use prism_config::Env;
use prism_install::{
    InstallError, State,
    neovim::{self, NAME, NEXT, PluginChange, TITLE},
};

use crate::cli::{
    add::is_program,
    configs::{Outcome, Place, Surfaces, state},
};

/// Whether Neovim is on this machine.
pub(super) fn is_there(env: &Env) -> bool {
    is_program("nvim", None, env) || neovim::folder(env).is_ok_and(|folder| folder.is_dir())
}

pub(super) fn add(options: &Surfaces, force: bool, place: &Place, env: &Env) -> Outcome {
    let dry = options.dry_run;
    let planned = user_folder(options, env).and_then(|folder| neovim::install(&folder, force, &place.records));
    let outcome = made(planned, options, place, |change, file| match (change.state, dry) {
        (State::Unchanged, _) => format!("plugin already installed in {TITLE} ({file})"),
        (_, true) => format!("plugin would be installed in {TITLE} ({file})"),
        (State::Added, false) => format!("plugin installed in {TITLE} ({file})"),
        (_, false) => format!("plugin updated in {TITLE} ({file})"),
    });
    outcome.with("next", NEXT)
}

/// Takes it out wherever we put it, or else looks where it would be.
pub(in crate::cli) fn remove(options: &Surfaces, place: &Place, env: &Env) -> Vec<Outcome> {
    let known = neovim::known_folders(&place.records);
    match known.is_empty() || options.project {
        true => vec![remove_from(user_folder(options, env), options, place)],
        false => known.into_iter().map(|folder| remove_from(Ok(folder), options, place)).collect(),
    }
}

fn remove_from(folder: Result<PathBuf, InstallError>, options: &Surfaces, place: &Place) -> Outcome {
    let dry = options.dry_run;
    let planned = folder.and_then(|folder| neovim::uninstall(&folder, &place.records));
    made(planned, options, place, |change, file| match (&change.edited, change.state, dry) {
        (Some(edited), ..) => {
            format!("{} is not as `prism install` writes it, so it stays, and the plugin with it", edited.display())
        }
        (None, State::Unchanged, _) => format!("plugin not installed in {TITLE} ({file})"),
        (None, _, true) => format!("plugin would be removed from {TITLE} ({file})"),
        (None, _, false) if change.deletes() => format!("plugin removed from {TITLE} ({file} is gone, as before)"),
        (None, _, false) => format!("plugin removed from {TITLE} ({file} is as it was before)"),
    })
}

fn user_folder(options: &Surfaces, env: &Env) -> Result<PathBuf, InstallError> {
    match options.project {
        true => Err(InstallError::NoProject { title: TITLE, name: NAME }),
        false => neovim::folder(env),
    }
}

/// Makes a change, unless it is only to be shown. The text is all ours, so that its lines say nothing to the person.
fn made(
    planned: Result<PluginChange, InstallError>,
    options: &Surfaces,
    place: &Place,
    text: impl FnOnce(&PluginChange, std::path::Display<'_>) -> String,
) -> Outcome {
    let made = planned.and_then(|change| {
        if !options.dry_run {
            change.make(&place.records)?;
        }
        Ok(change)
    });
    let outcome = match made {
        Ok(change) => {
            let path: &Path = &change.entry;
            let said = Outcome::said(None, state(change.state), text(&change, path.display()));
            said.with("file", path.to_string_lossy().into_owned())
        }
        Err(error) => Outcome::failed(None, error.into()),
    };
    outcome.with("surface", NAME)
}
