//! What `prism install`, `uninstall`, `import` and `migrate` share: which surfaces are meant, where the daemon is, and
//! how a change is shown and made.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::bail;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    add::{self, is_program},
    say::{self, Colour},
};
use prism_config::{Config, Env, Flags, file, home::Home, registration::Registration};
use prism_install::{
    ChangePurpose, ChangeRecords, ChangeState, FileChange, InstallError,
    diff::{self, DiffLine},
    surface::{Surface, SurfaceScope},
};

/// Which surfaces a command is for.
#[derive(Debug, clap::Args)]
pub(super) struct SurfaceArgs {
    /// Which programs
    #[arg(value_name = "CLIENT", value_parser = Surface::ALL.map(Surface::name))]
    named: Vec<String>,
    /// The project's config in the current folder, in place of the user's
    #[arg(long)]
    pub(super) project: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub(super) json: bool,
}

/// Where things are.
pub(super) struct InstallContext {
    pub(super) home: Home,
    pub(super) records: ChangeRecords,
    /// The hub.
    pub(super) url: String,
    /// Whether the daemon runs.
    pub(super) running: bool,
    /// The folder one works in.
    pub(super) here: PathBuf,
}

/// What is said of one file.
pub(super) struct FileOutcome {
    surface: Option<Surface>,
    path: Option<PathBuf>,
    state: &'static str,
    diff: Vec<DiffLine>,
    /// What was done, in words.
    text: String,
    warnings: Vec<String>,
    error: Option<anyhow::Error>,
    more: Vec<(&'static str, Value)>,
}

/// The same for programs.
#[derive(Serialize)]
struct OutcomeRow<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    surface: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    more: BTreeMap<&'static str, &'a Value>,
}

// === impl SurfaceArgs ===

impl SurfaceArgs {
    /// Returns the surfaces that were named.
    pub(super) fn named(&self) -> Vec<Surface> {
        let mut named = Vec::new();
        for surface in self.named.iter().filter_map(|name| Surface::named(name)) {
            if !named.contains(&surface) {
                named.push(surface);
            }
        }
        named
    }

    /// Returns whether this was named, which need not be a surface.
    pub(super) fn names(&self, name: &str) -> bool {
        self.named.iter().any(|named| named == name)
    }

    /// Returns the surfaces that were named, or else a refusal that says which there are.
    pub(super) fn wanted(&self, command: &str, env: &Env) -> anyhow::Result<Vec<Surface>> {
        let named = self.named();
        if named.is_empty() {
            let all = Surface::ALL.map(Surface::name);
            let found: Vec<&str> =
                Surface::ALL.into_iter().filter(|one| is_there(*one, env)).map(Surface::name).collect();
            if found.is_empty() {
                let known = all.join(", ");
                bail!(
                    "which program? None that I know was found here\n  known: {known}\n  fix: prism {command} {}",
                    all[0]
                );
            }
            bail!(
                "which program?\n  found here: {}\n  fix: prism {command} {}, or prism {command} --all",
                found.join(", "),
                found.join(" "),
            );
        }
        Ok(named)
    }

    /// Returns the surfaces that were named, or else all that there are.
    pub(super) fn named_or_all(&self) -> Vec<Surface> {
        let named = self.named();
        if named.is_empty() { Surface::ALL.to_vec() } else { named }
    }

    /// Undoes all that one of the commands did, or what it did to the surfaces that were named.
    pub(super) fn undo(&self, action: ChangePurpose, what: &str, place: &InstallContext) -> ExitCode {
        let named = self.named();
        let mut outcomes = Vec::new();
        for record in place.records.all(action) {
            let surface = record.surface.as_deref().and_then(Surface::named);
            if !named.is_empty() && !surface.is_some_and(|surface| named.contains(&surface)) {
                continue;
            }
            let undone = prism_install::undo(record);
            outcomes.push(FileOutcome::of(surface, undone, self, &place.records, |change| {
                let file = change.file.path.display();
                match change.state {
                    _ if self.dry_run => format!("would be undone in {file}"),
                    ChangeState::Restored => format!("{file} is as it was before the {what}"),
                    ChangeState::Unchanged => format!("{file} has nothing of the {what} in it any more"),
                    _ => format!("{file} was changed since; what the {what} did was taken back"),
                }
            }));
        }
        if outcomes.is_empty() {
            outcomes.push(FileOutcome::said(None, "unchanged", format!("there is no {what} to undo")));
        }
        self.report(&outcomes, &[])
    }

    /// Returns where the surface's config is.
    pub(super) fn file(&self, surface: Surface, place: &InstallContext, env: &Env) -> Result<PathBuf, InstallError> {
        let scope = if self.project { SurfaceScope::Project(&place.here) } else { SurfaceScope::User };
        surface.file(scope, env)
    }

    /// Returns where the surface's hooks are.
    pub(super) fn hooks_file(
        &self,
        surface: Surface,
        place: &InstallContext,
        env: &Env,
    ) -> Result<PathBuf, InstallError> {
        let scope = if self.project { SurfaceScope::Project(&place.here) } else { SurfaceScope::User };
        surface.hooks_file(scope, env)
    }

    /// Prints all there is to say, and returns the exit code.
    pub(super) fn report(&self, outcomes: &[FileOutcome], closing: &[String]) -> ExitCode {
        let failed = outcomes.iter().any(|outcome| outcome.error.is_some());
        match self.json {
            true => {
                let rows: Vec<Value> = outcomes.iter().map(FileOutcome::json).collect();
                say::line(&format!("{:#}", Value::from(rows)));
            }
            false => {
                outcomes.iter().for_each(FileOutcome::print);
                closing.iter().for_each(|line| say::line(line));
                if self.dry_run {
                    say::line("nothing was written (--dry-run)");
                }
            }
        }
        if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

/// Whether a program is on this machine, or has been.
pub(super) fn is_there(surface: Surface, env: &Env) -> bool {
    surface.marks(env).iter().any(|mark| mark.exists())
        || surface.programs().iter().any(|program| is_program(program, None, env))
}

// === impl InstallContext ===

impl InstallContext {
    pub(super) fn find(env: &Env) -> anyhow::Result<Self> {
        let home = Home::find(env)?;
        let here = std::env::current_dir()?;
        let config = settings(&here, env)?;
        let daemon = Registration::alive(home.path());
        let url = daemon.as_ref().map_or_else(|| config.root_url(), |daemon| format!("{}/mcp", daemon.url));
        Ok(Self { records: ChangeRecords::new(home.path()), home, url, running: daemon.is_some(), here })
    }
}

/// The settings that a daemon would start with. A variable that only the daemon has must not stop anybody here.
fn settings(here: &Path, env: &Env) -> anyhow::Result<Config> {
    let places = add::places(None, here, env)?;
    if let Ok(loaded) = file::load(&places, &[], &Flags::default(), env) {
        return Ok(loaded.config);
    }
    Ok(file::load_counting(&places).ok().flatten().unwrap_or_default())
}

// === impl FileOutcome ===

impl FileOutcome {
    /// Makes a change, unless it is only to be shown, and says how it went.
    pub(super) fn of(
        surface: Option<Surface>,
        change: Result<FileChange, InstallError>,
        options: &SurfaceArgs,
        records: &ChangeRecords,
        text: impl FnOnce(&FileChange) -> String,
    ) -> Self {
        let made = change.and_then(|change| {
            if !options.dry_run {
                change.make(records)?;
            }
            Ok(change)
        });
        match made {
            Ok(change) => {
                let text = text(&change);
                Self::done(surface, &change, text)
            }
            Err(error) => Self::failed(surface, error.into()),
        }
    }

    /// A change was made, or would be.
    pub(super) fn done(surface: Option<Surface>, change: &FileChange, text: String) -> Self {
        let path = Some(change.file.path.clone());
        Self { path, diff: change.diff(), ..Self::said(surface, state(change.state), text) }
    }

    pub(super) fn failed(surface: Option<Surface>, error: anyhow::Error) -> Self {
        Self { error: Some(error), ..Self::said(surface, "failed", String::new()) }
    }

    /// Nothing was done, and why.
    pub(super) fn said(surface: Option<Surface>, state: &'static str, text: String) -> Self {
        let (diff, warnings, more) = (Vec::new(), Vec::new(), Vec::new());
        Self { surface, path: None, state, diff, text, warnings, error: None, more }
    }

    pub(super) fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Adds a member to the JSON.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }

    /// Returns what is to be done next, if anything was done.
    pub(super) fn next_after_change(&self) -> Option<String> {
        let (_, next) = self.more.iter().find(|(name, _)| *name == "next")?;
        matches!(self.state, "added" | "updated" | "waiting")
            .then(|| format!("next: {}", next.as_str().unwrap_or_default()))
    }

    /// Returns whether the file is another one now.
    pub(super) fn has_changed(&self) -> bool {
        !self.diff.is_empty()
    }

    pub(super) fn is_unchanged(&self) -> bool {
        self.state == "unchanged"
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn print(&self) {
        for line in &self.diff {
            let colour = match line {
                DiffLine::Head(_) => Some(Colour::Dim),
                DiffLine::Same(_) => None,
                DiffLine::Added(_) => Some(Colour::Green),
                DiffLine::Removed(_) => Some(Colour::Red),
            };
            say::parts(&[(line.as_str(), colour)]);
        }
        if !self.text.is_empty() {
            say::line(&self.text);
        }
        for warning in &self.warnings {
            say::warning(warning);
        }
        if let Some(error) = &self.error {
            say::error(error);
        }
    }

    fn json(&self) -> Value {
        json!(OutcomeRow {
            state: self.state,
            surface: self.surface.map(Surface::name),
            file: self.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
            diff: (!self.diff.is_empty()).then(|| diff::text(&self.diff)),
            warnings: &self.warnings,
            error: self.error.as_ref().map(|error| format!("{error:#}")),
            more: self.more.iter().map(|(name, value)| (*name, value)).collect(),
        })
    }
}

pub(super) fn state(state: ChangeState) -> &'static str {
    match state {
        ChangeState::Added => "added",
        ChangeState::Updated => "updated",
        ChangeState::Unchanged => "unchanged",
        ChangeState::Restored => "restored",
        ChangeState::Removed => "removed",
        ChangeState::Changed => "changed",
    }
}
