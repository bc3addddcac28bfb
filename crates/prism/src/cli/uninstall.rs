//! `prism uninstall`: takes Prism out of the configs again. A file that nobody touched since is put back byte for byte.

use std::{path::PathBuf, process::ExitCode};

use super::{
    configs::{FileOutcome, InstallContext, SurfaceArgs},
    install::{extension, neovim, with_neovim},
};
use prism_config::Env;
use prism_install::{ChangePurpose, ChangeState, FileChange, InstallError, entry::EntryMarks, surface::Surface};

/// Take Prism out of a program's config
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("named", with_neovim),
    after_help = "Examples:
  prism uninstall cursor
  prism uninstall claude-code --hooks   its hooks alone
  prism uninstall --all"
)]
pub struct UninstallArgs {
    #[command(flatten)]
    surfaces: SurfaceArgs,
    /// All configs that Prism was written into, those of projects too
    #[arg(long)]
    all: bool,
    /// Take out the hooks, and leave the entry
    #[arg(long)]
    hooks: bool,
    /// Remove an entry named prism that is not Prism's
    #[arg(long)]
    force: bool,
}

impl UninstallArgs {
    /// Uninstalls.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let place = InstallContext::find(env)?;
        let marks =
            EntryMarks { url: place.url.clone(), token: place.home.token().ok().map(|(t, _)| t.expose().to_owned()) };
        let mut outcomes = Vec::new();
        let mut done = Vec::new();
        let is_named = self.surfaces.names(prism_install::neovim::NAME);
        let wanted = match self.all {
            true => Surface::ALL.to_vec(),
            false if is_named && self.surfaces.named().is_empty() => Vec::new(),
            false => self.surfaces.wanted("uninstall", env)?,
        };
        if self.all {
            let mut records = place.records.all(ChangePurpose::Install);
            records.retain(|record| !self.hooks || record.holds_hooks());
            records.retain(|record| record.surface.as_deref() != Some(prism_install::neovim::NAME));
            // They came after the entries, into folders that may have been made for those.
            records.sort_by_key(|record| !record.holds_hooks());
            for record in records {
                let surface = record.surface.as_deref().and_then(Surface::named);
                done.push(record.path.clone());
                outcomes.push(self.outcome(surface, prism_install::undo(record), &place));
            }
        }
        for surface in wanted {
            if let Some(outcome) = self.hooks(surface, &done, &place, env) {
                outcomes.push(outcome);
            }
            if self.hooks {
                continue;
            }
            if !self.surfaces.project {
                outcomes.extend(extension::remove(surface, &self.surfaces, &place, env));
            }
            let path = match self.surfaces.file(surface, &place, env) {
                Ok(path) => path,
                Err(_) if self.all => continue,
                Err(error) => {
                    outcomes.push(FileOutcome::failed(Some(surface), error.into()));
                    continue;
                }
            };
            if done.contains(&path) || (self.all && !path.exists()) {
                continue;
            }
            let change = prism_install::uninstall(surface, path, &marks, self.force, &place.records);
            if self.all && !matches!(&change, Ok(change) if change.state != ChangeState::Unchanged) {
                // Nobody asked for this one by its name, and there is nothing of ours in it.
                continue;
            }
            outcomes.push(self.outcome(Some(surface), change, &place));
        }
        if !self.hooks && (is_named || (self.all && !self.surfaces.project)) {
            let removed = neovim::remove(&self.surfaces, &place, env);
            outcomes.extend(removed.into_iter().filter(|outcome| is_named || !outcome.is_unchanged()));
        }
        if outcomes.is_empty() {
            outcomes.push(FileOutcome::said(None, "unchanged", "Prism is not installed in any config".to_owned()));
        }
        Ok(self.surfaces.report(&outcomes, &[]))
    }

    /// Takes out the hooks of a surface, if it has any, or if they alone are meant.
    fn hooks(&self, surface: Surface, done: &[PathBuf], place: &InstallContext, env: &Env) -> Option<FileOutcome> {
        let path = match self.surfaces.hooks_file(surface, place, env) {
            Ok(path) if done.contains(&path) => return None,
            Ok(path) => path,
            Err(error) => return (self.hooks && !self.all).then(|| FileOutcome::failed(Some(surface), error.into())),
        };
        let change = prism_install::hooks::uninstall(surface, path, &place.records);
        let named = self.hooks && !self.all;
        match &change {
            Ok(change) if change.state == ChangeState::Unchanged && !named => None,
            // Whoever takes out the entry need not have hooks, nor a file of hooks that can be read.
            Err(_) if !named => None,
            _ => Some(self.outcome(Some(surface), change, place).with("hooks", true)),
        }
    }

    fn outcome(
        &self,
        surface: Option<Surface>,
        change: Result<FileChange, InstallError>,
        place: &InstallContext,
    ) -> FileOutcome {
        let title = surface.map_or("the config", Surface::title);
        let dry = self.surfaces.dry_run;
        FileOutcome::of(surface, change, &self.surfaces, &place.records, |change| {
            let file = change.file.path.display();
            match (change.state, dry) {
                (ChangeState::Unchanged, _) => format!("not installed in {title} ({file})"),
                (_, true) => format!("would be removed from {title}"),
                (_, false) if change.deletes() => format!("removed from {title} ({file} is gone, as before)"),
                (ChangeState::Restored, false) => format!("removed from {title} ({file} is as it was before)"),
                (_, false) => {
                    format!("removed from {title} ({file} was changed since; all but prism is as it is now)")
                }
            }
        })
    }
}
