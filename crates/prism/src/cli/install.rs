//! `prism install`: writes Prism into the configs of the programs that agents live in (D-06). How that is done without
//! hurting anything else is `prism_install`.

pub(super) mod extension;
pub(super) mod neovim;

use std::{path::PathBuf, process::ExitCode};

use anyhow::bail;
use prism_core::shell::command_line;

use super::{
    add::is_program,
    configs::{FileOutcome, InstallContext, SurfaceArgs, is_there},
    start,
    wait::hook::CURSOR_LOOP_LIMIT,
};
use prism_config::Env;
use prism_install::{
    ChangeState, FileChange, InstallError,
    entry::{EntryMarks, SurfaceTransport},
    hooks,
    surface::Surface,
};

/// Write Prism into a program's config
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("named", with_neovim),
    after_help = "Examples:
  prism install cursor claude-code
  prism install --all
  prism install vscode --project
  prism install claude-code --hooks   and the hooks that wake its agents
  prism install vscode                and Prism's extension, as for cursor and void
  prism install neovim                the Neovim plugin

`prism uninstall` puts every file back as it was."
)]
pub struct InstallArgs {
    #[command(flatten)]
    surfaces: SurfaceArgs,
    /// All programs that are found here
    #[arg(long)]
    all: bool,
    /// Write the URL and the token into a project's config too, which others may get to see
    #[arg(long)]
    http: bool,
    /// Write the hooks, too, by which a signal wakes an agent: claude-code, codex, cursor
    #[arg(long)]
    hooks: bool,
    /// Leave Prism's extension out of VS Code, Cursor and Void
    #[arg(long)]
    no_extension: bool,
    /// Replace an entry or an extension named prism that is not Prism's
    #[arg(long)]
    force: bool,
}

/// Lets Neovim be named, too. It has no servers, so it is none of the surfaces.
pub(super) fn with_neovim(named: clap::Arg) -> clap::Arg {
    let names = Surface::ALL.map(Surface::name).into_iter().chain([prism_install::neovim::NAME]);
    named.value_parser(clap::builder::PossibleValuesParser::new(names))
}

impl InstallArgs {
    /// Installs, and says what to do next.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let place = InstallContext::find(env)?;
        let mut outcomes = Vec::new();
        let mut wanted = self.surfaces.named();
        let mut neovim = self.surfaces.names(prism_install::neovim::NAME);
        if self.all {
            neovim |= !self.surfaces.project && neovim::is_there(env);
            for surface in Surface::ALL.into_iter().filter(|one| !wanted.contains(one)).collect::<Vec<_>>() {
                let fits = !self.surfaces.project || self.surfaces.file(surface, &place, env).is_ok();
                match is_there(surface, env) {
                    true if fits => wanted.push(surface),
                    true => {}
                    false => {
                        let text = format!("not found: {}", surface.title());
                        outcomes.push(FileOutcome::said(Some(surface), "not_found", text));
                    }
                }
            }
            if wanted.is_empty() && !neovim && !self.surfaces.json {
                bail!("none of the programs that I know was found here\n  fix: prism install cursor");
            }
        } else if wanted.is_empty() && !neovim {
            wanted = self.surfaces.wanted("install", env)?;
        }

        let mut closing = Vec::new();
        let mut needs_daemon = false;
        for surface in wanted {
            let outcome = self.one(surface, &place, env);
            if !outcome.has_failed() && !self.surfaces.dry_run {
                needs_daemon |= self.speaks_http(surface);
                if outcome.has_changed() {
                    closing.push(format!("next: {}", surface.next()));
                }
            }
            let failed = outcome.has_failed();
            outcomes.push(outcome);
            if !failed && !self.no_extension {
                let extensions = extension::add(surface, &self.surfaces, self.force, &place, env);
                if !self.surfaces.dry_run {
                    closing.extend(extensions.iter().filter_map(FileOutcome::next_after_change));
                }
                outcomes.extend(extensions);
            }
            // Hooks of a surface that has no way to the daemon's verbs would wake it for nothing.
            if let Some(outcome) = self.hooks(surface, &place, env).filter(|_| !failed) {
                if outcome.has_changed() && !outcome.has_failed() && !self.surfaces.dry_run {
                    closing.push(format!("next: {}", surface.next_for_hooks()));
                }
                outcomes.push(outcome);
            }
        }
        if neovim {
            let outcome = neovim::add(&self.surfaces, self.force, &place, env);
            if !self.surfaces.dry_run {
                closing.extend(outcome.next_after_change());
            }
            outcomes.push(outcome);
        }
        if needs_daemon && !place.running {
            closing.push("next: prism serve --detach (the daemon is not running)".to_owned());
        }
        Ok(self.surfaces.report(&outcomes, &closing))
    }

    fn one(&self, surface: Surface, place: &InstallContext, env: &Env) -> FileOutcome {
        let (way, token) = match self.way(surface, place, env) {
            Ok(found) => found,
            Err(error) => return FileOutcome::failed(Some(surface), error),
        };
        let marks = EntryMarks { url: place.url.clone(), token };
        let planned = self
            .surfaces
            .file(surface, place, env)
            .and_then(|path| prism_install::install(surface, path, &way, &marks, self.force, &place.records));
        let planned = match self.surfaces.project && !way.is_secret() {
            true => planned.map(FileChange::shared),
            false => planned,
        };
        let warnings = match &planned {
            Ok(change) => self.warnings(change, &way, env),
            Err(_) => Vec::new(),
        };
        let dry = self.surfaces.dry_run;
        let outcome = FileOutcome::of(Some(surface), planned, &self.surfaces, &place.records, |change| {
            let file = change.file.path.display();
            let title = surface.title();
            match (change.state, dry) {
                (ChangeState::Unchanged, _) => format!("already installed in {title} ({file})"),
                (_, true) => format!("would be installed in {title}"),
                (ChangeState::Updated, false) => format!("updated in {title} ({file})"),
                (_, false) => format!("installed in {title} ({file})"),
            }
        });
        let next = surface.next();
        outcome.warn(warnings).with("transport", way.transport()).with("next", next)
    }

    /// Writes the hooks of a surface, if they are wanted. Of all surfaces those are meant that have some.
    fn hooks(&self, surface: Surface, place: &InstallContext, env: &Env) -> Option<FileOutcome> {
        if !self.hooks {
            return None;
        }
        let path = match self.surfaces.hooks_file(surface, place, env) {
            Err(InstallError::NoHooks { .. }) if self.all => return None,
            path => path,
        };
        let command = match self.program(env) {
            Ok(program) => command_line(&[program]),
            Err(error) => return Some(FileOutcome::failed(Some(surface), error)),
        };
        let command = match env.var("PRISM_HOME").filter(|_| !self.surfaces.project) {
            Some(_) => format!("PRISM_HOME={} {command}", command_line(&[place.home.path().to_string_lossy().into()])),
            None => command,
        };
        let planned = path.and_then(|path| hooks::install(surface, path, &command, CURSOR_LOOP_LIMIT, &place.records));
        let planned = if self.surfaces.project { planned.map(FileChange::shared) } else { planned };
        let dry = self.surfaces.dry_run;
        let outcome = FileOutcome::of(Some(surface), planned, &self.surfaces, &place.records, |change| {
            let (file, title) = (change.file.path.display(), surface.title());
            match (change.state, dry) {
                (ChangeState::Unchanged, _) => format!("hooks already installed in {title} ({file})"),
                (_, true) => format!("hooks would be installed in {title}"),
                (ChangeState::Updated, false) => format!("hooks updated in {title} ({file})"),
                (_, false) => format!("hooks installed in {title} ({file})"),
            }
        });
        Some(outcome.with("hooks", true).with("next", surface.next_for_hooks()))
    }

    fn speaks_http(&self, surface: Surface) -> bool {
        surface.speaks_http() && (!self.surfaces.project || self.http)
    }

    /// Returns how the surface shall come to the daemon, and the token if it is known.
    fn way(
        &self,
        surface: Surface,
        place: &InstallContext,
        env: &Env,
    ) -> anyhow::Result<(SurfaceTransport, Option<String>)> {
        if self.http && !surface.speaks_http() {
            return Err(InstallError::NoHttp { title: surface.title() }.into());
        }
        let token = place.home.token()?.0.expose().to_owned();
        if self.speaks_http(surface) {
            if place.url.contains(":0/") {
                bail!(
                    "the daemon takes any free port, so there is no URL to write down\n  fix: set a port in prism.toml"
                );
            }
            return Ok((SurfaceTransport::Http { url: place.url.clone(), token: token.clone() }, Some(token)));
        }
        let command = self.program(env)?;
        // What others may get to see holds nothing of this machine.
        let home = match self.surfaces.project {
            true => None,
            false => env.var("PRISM_HOME").map(|_| place.home.path().to_string_lossy().into_owned()),
        };
        Ok((SurfaceTransport::Stdio { command, home }, Some(token)))
    }

    /// Returns how the shim is started. A desktop program has no shell's PATH, so it is told the whole path; a project
    /// is used on other machines too, so it has the name.
    fn program(&self, env: &Env) -> anyhow::Result<String> {
        if self.surfaces.project && is_program("prism", None, env) {
            return Ok("prism".to_owned());
        }
        let own = start::own_program()?;
        let path = env.var("PATH").unwrap_or_default();
        // Where a package manager links it stays right when the program is replaced.
        let linked = std::env::split_paths(path)
            .map(|folder| folder.join("prism"))
            .find(|found| found.is_absolute() && found.canonicalize().is_ok_and(|real| real == own));
        let found: PathBuf = linked.unwrap_or(own);
        match found.to_str() {
            Some(path) => Ok(path.to_owned()),
            None => bail!("{} is not UTF-8, so no config can hold it", found.display()),
        }
    }

    fn warnings(&self, change: &FileChange, way: &SurfaceTransport, env: &Env) -> Vec<String> {
        let mut warnings = Vec::new();
        let path = change.file.path.display();
        if change.state == ChangeState::Unchanged {
            return warnings;
        }
        if way.is_secret() && self.surfaces.project {
            warnings.push(format!("{path} holds Prism's token now: do not commit it"));
        } else if let Some(mode) = change.file.open_to_others().filter(|_| way.is_secret()) {
            warnings.push(format!(
                "others on this machine can read {path} (mode {mode:04o}), which holds Prism's token\n  fix: chmod 600 {path}"
            ));
        }
        if self.surfaces.project && !way.is_secret() && !is_program("prism", None, env) {
            warnings.push(format!("prism is not on PATH, so {path} has the path of this machine in it"));
        }
        warnings
    }
}
