//! `prism import`: takes the servers that are already in the configs of other programs into `prism.toml`, so that those
//! need only Prism.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;

use super::{
    add,
    configs::{FileOutcome, InstallContext, SurfaceArgs},
    say,
};
use prism_config::{
    DestinationConfig, Env, ServerTable,
    file::{ConfigDraft, NAME},
};
use prism_install::{
    ChangePurpose, ChangeState, ConfigFile, FileChange, InstallError, RecordedEdit,
    entry::EntryMarks,
    import::{self, ImportCandidate, SurfaceServers},
    surface::{Surface, SurfaceScope},
};

/// Take servers from other programs' configs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism import --dry-run
  prism import cursor --remove
  prism import --undo")]
pub struct ImportArgs {
    #[command(flatten)]
    surfaces: SurfaceArgs,
    /// Take the servers out of the other configs, too
    #[arg(long)]
    remove: bool,
    /// Put everything back as it was before the import
    #[arg(long, conflicts_with_all = ["remove", "config"])]
    undo: bool,
    /// Config file to write to
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A file, and which of its servers are in `prism.toml` now.
struct ImportSource {
    surface: Surface,
    file: ConfigFile,
    servers: SurfaceServers,
    taken: Vec<String>,
}

impl ImportArgs {
    /// Imports, or undoes it.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let place = InstallContext::find(env)?;
        if self.undo {
            return Ok(self.surfaces.undo(ChangePurpose::Import, "import", &place));
        }
        let target = match &self.config {
            Some(path) => std::path::absolute(path)?,
            None => place.home.path().join(NAME),
        };
        let mut outcomes = Vec::new();
        let mut draft = ConfigDraft::open(&target, place.home.path()).context("nothing was imported")?;
        let mut meant = draft.written().destinations.clone();
        let max_sessions = draft.written().max_sessions;
        let mut edits = Vec::new();
        let mut sources = Vec::new();
        for surface in self.surfaces.named_or_all() {
            let (file, servers) = match self.servers(surface, &place, env) {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) => {
                    outcomes.push(FileOutcome::failed(Some(surface), error.into()));
                    continue;
                }
            };
            let mut taken = Vec::new();
            let mut warnings = Vec::new();
            let mut lines = Vec::new();
            for ImportCandidate { name, destination, left_out } in &servers.found {
                let destination = match destination {
                    Ok(destination) => destination,
                    Err(reason) => {
                        lines.push(format!("  {name} stays: {reason}"));
                        continue;
                    }
                };
                taken.push(name.clone());
                if let Some(known) = meant.values().find(|known| import::is_same(known, destination)) {
                    lines.push(format!("  {name} is already there, as {}", known.name));
                    continue;
                }
                let new_name = import::valid_name(name, |name| meant.contains_key(name));
                let table = ServerTable::of_entry(&draft.document, &new_name);
                let destination =
                    DestinationConfig { name: new_name.clone(), table, max_sessions, ..destination.clone() };
                add::put(&mut draft, &new_name, import::toml(&destination))?;
                edits.push(RecordedEdit::Added { container: vec![table.as_str().to_owned()], name: new_name.clone() });
                lines.push(match *name == new_name {
                    true => format!("  {name}"),
                    false => format!("  {name} is called {new_name}"),
                });
                warnings.extend(left_out.iter().map(|what| format!("{name} {what}")));
                if import::has_literals(&destination) {
                    lines.push(format!("    its variables or headers stand in {} as they did there", target.display()));
                }
                meant.insert(new_name, destination);
            }
            let text = format!("{} ({})\n{}", surface.title(), file.path.display(), lines.join("\n"));
            outcomes.push(FileOutcome::said(Some(surface), "read", text).warn(warnings).with("servers", taken.clone()));
            sources.push(ImportSource { surface, file, servers, taken });
        }

        let imported = edits.len();
        if imported > 0 {
            let change = ConfigFile::open(&target).and_then(|file| {
                FileChange::edited(
                    file,
                    draft.text(),
                    ChangeState::Added,
                    ChangePurpose::Import,
                    None,
                    edits,
                    &place.records,
                )
            })?;
            if !self.surfaces.dry_run {
                change.remember(&place.records)?;
                let counts = draft.counts() || self.config.is_some();
                draft.save(&meant).context("nothing was imported")?;
                if !counts {
                    say::warning(&add::unseen(&target));
                }
            }
            let text = format!("imported {imported} into {}", target.display());
            outcomes.push(FileOutcome::done(None, &change, text));
        } else {
            drop(draft);
        }
        if self.remove {
            for source in sources.into_iter().filter(|source| !source.taken.is_empty()) {
                outcomes.push(self.take_out(source, &place));
            }
        }
        Ok(self.surfaces.report(&outcomes, &self.closing(imported)))
    }

    /// What is said last: what to do next, and how to take it back.
    fn closing(&self, imported: usize) -> Vec<String> {
        match (imported, self.surfaces.dry_run) {
            (0, _) => vec!["there is nothing to import".to_owned()],
            (_, true) => Vec::new(),
            (_, false) if self.remove => {
                vec!["next: prism install --all".to_owned(), "undo: prism import --undo".to_owned()]
            }
            (_, false) => vec![
                "next: prism import --remove takes them out of the other configs; prism install --all puts Prism in"
                    .to_owned(),
                "undo: prism import --undo".to_owned(),
            ],
        }
    }

    /// Reads a surface's servers; none if it has no config.
    fn servers(
        &self,
        surface: Surface,
        place: &InstallContext,
        env: &Env,
    ) -> Result<Option<(ConfigFile, SurfaceServers)>, InstallError> {
        let path = match self.surfaces.file(surface, place, env) {
            Err(InstallError::NoProject { .. }) if self.surfaces.named().is_empty() => return Ok(None),
            path => path?,
        };
        let file = ConfigFile::open(&path)?;
        if file.text.is_none() {
            return Ok(None);
        }
        let scope = if self.surfaces.project { SurfaceScope::Project(&place.here) } else { SurfaceScope::User };
        let token = place.home.token().ok().map(|(token, _)| token.expose().to_owned());
        let marks = EntryMarks { url: place.url.clone(), token };
        let servers = import::servers(surface, scope, &file, &marks, env)?;
        Ok((!servers.found.is_empty()).then_some((file, servers)))
    }

    /// Takes the servers that Prism has now out of the config that they came from.
    fn take_out(&self, source: ImportSource, place: &InstallContext) -> FileOutcome {
        let ImportSource { surface, file, servers, taken } = source;
        let change = servers.removed(surface, &file, &taken).and_then(|(after, edits)| {
            FileChange::edited(
                file,
                after,
                ChangeState::Changed,
                ChangePurpose::Import,
                Some(surface),
                edits,
                &place.records,
            )
        });
        FileOutcome::of(Some(surface), change, &self.surfaces, &place.records, |_| {
            let verb = if self.surfaces.dry_run { "would be taken" } else { "taken" };
            format!("{verb} out of {}: {}", surface.title(), taken.join(", "))
        })
    }
}
