//! The extension, as `prism install` and `prism uninstall` put it into editors and take it out. What it consists of is
//! `prism_install::extension`.

use std::path::Path;

use anyhow::anyhow;

use crate::cli::configs::{FileOutcome, InstallContext, SurfaceArgs};
use prism_config::Env;
use prism_install::{
    InstallError,
    extension::{
        self, VERSION,
        kept::{ExtensionStore, InstalledExtension},
        program::{EditorProgram, EditorProgramError},
    },
    surface::Surface,
};

/// What is done for one surface.
struct ExtensionTask<'a> {
    surface: Surface,
    options: &'a SurfaceArgs,
    shelf: ExtensionStore,
    package: Vec<u8>,
}

/// Puts the extension into a surface's editors, all that are here: what came of each. It is the user's, and no project's.
pub(super) fn add(
    surface: Surface,
    options: &SurfaceArgs,
    force: bool,
    place: &InstallContext,
    env: &Env,
) -> Vec<FileOutcome> {
    if options.project || surface.extension_programs().is_empty() {
        return Vec::new();
    }
    let (shelf, package) = (ExtensionStore::new(place.home.path()), extension::package());
    let errand = ExtensionTask { surface, options, shelf, package };
    let programs = EditorProgram::all_of(surface, env);
    match programs.is_empty() {
        true => vec![errand.leave()],
        false => programs.iter().map(|program| errand.install(program, force)).collect(),
    }
}

/// Takes the extension out of a surface's editors, wherever we put it.
pub(in crate::cli) fn remove(
    surface: Surface,
    options: &SurfaceArgs,
    place: &InstallContext,
    env: &Env,
) -> Vec<FileOutcome> {
    let shelf = ExtensionStore::new(place.home.path());
    let all = shelf.all(surface);
    let removed = |kept: InstalledExtension| match remove_one(&kept, surface, options, env) {
        Ok(outcome) => {
            if !options.dry_run {
                shelf.forget(&kept);
            }
            outcome
        }
        Err(error) => FileOutcome::failed(Some(surface), error.into()),
    };
    all.into_iter().map(removed).map(|outcome| outcome.with("extension", VERSION)).collect()
}

fn remove_one(
    kept: &InstalledExtension,
    surface: Surface,
    options: &SurfaceArgs,
    env: &Env,
) -> Result<FileOutcome, EditorProgramError> {
    let (title, said) = (surface.title(), |state, text| Ok(FileOutcome::said(Some(surface), state, text)));
    let Some(path) = &kept.program else {
        let text = if options.dry_run { "would be removed" } else { "was removed" };
        return said("removed", format!("the package of the extension for {title} {text}"));
    };
    let (program, shown) = (EditorProgram::at(path.clone(), env), path.display());
    if !program.is_there() {
        return said("unchanged", format!("{shown} is gone, so nobody can be asked to remove the extension"));
    }
    if program.version()?.is_none() {
        return said("unchanged", format!("the extension is not in {title} any more ({shown})"));
    }
    if options.dry_run {
        return said("removed", format!("the extension would be removed from {title} ({shown})"));
    }
    program.uninstall()?;
    said("removed", format!("the extension was removed from {title} ({shown})"))
}

// === impl ExtensionTask ===

impl ExtensionTask<'_> {
    fn install(&self, program: &EditorProgram, force: bool) -> FileOutcome {
        let outcome = self.installed(program, force).unwrap_or_else(|error| self.failed(&error));
        let path = program.path.to_string_lossy().into_owned();
        outcome.with("extension", VERSION).with("program", path).with("next", next(self.surface))
    }

    fn installed(&self, program: &EditorProgram, force: bool) -> Result<FileOutcome, EditorProgramError> {
        let wanted = InstalledExtension::new(self.surface, Some(&program.path), &self.package);
        let known = self.shelf.all(self.surface).into_iter().find(|kept| kept.program == wanted.program);
        let (title, shown) = (self.surface.title(), program.path.display());
        let said = |state, text| Ok(FileOutcome::said(Some(self.surface), state, text));
        let state = match program.version()? {
            Some(there) if there == VERSION && known.as_ref().is_none_or(|known| *known == wanted) && !force => {
                return said("unchanged", format!("extension {VERSION} already installed in {title} ({shown})"));
            }
            Some(there) if known.is_none() && !force => {
                let text = format!("{title} has extension {there}, which `prism install` did not put there; it stays");
                let fix = format!("{shown} is not told\n  fix: prism install {} --force", self.surface.name());
                return said("foreign", text).map(|outcome| outcome.warn([fix]));
            }
            Some(_) => "updated",
            None => "added",
        };
        if self.options.dry_run {
            return said(state, format!("extension {VERSION} would be installed in {title} ({shown})"));
        }
        // Nothing is told to an editor that could not be taken back.
        let package = match self.shelf.keep(&wanted).and_then(|()| self.shelf.put(&self.package)) {
            Ok(package) => package,
            Err(error) => return Ok(FileOutcome::failed(Some(self.surface), error.into())),
        };
        if let Err(error) = program.install(&package) {
            self.remember(known, &wanted);
            return Err(error);
        }
        self.nobody_waits();
        let done = if state == "added" { "installed" } else { "updated" };
        said(state, format!("extension {VERSION} {done} in {title} ({shown})"))
    }

    /// The editor has not taken it: what is remembered is what was.
    fn remember(&self, known: Option<InstalledExtension>, wanted: &InstalledExtension) {
        match known {
            Some(known) => drop(self.shelf.keep(&known)),
            None => self.shelf.forget(wanted),
        }
    }

    /// Says why an editor did not install it, and how a person can.
    fn failed(&self, error: &EditorProgramError) -> FileOutcome {
        let waiting = self.options.dry_run || self.wait().is_ok();
        let by_hand = by_hand(self.surface, &self.shelf.package());
        let fix = if waiting { by_hand } else { format!("prism install {}", self.surface.name()) };
        FileOutcome::failed(Some(self.surface), anyhow!("{error}\n  fix: {fix}"))
    }

    /// No command of the editor is here: leaves the package for the person to install.
    fn leave(&self) -> FileOutcome {
        let names = self.surface.extension_programs().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (title, path) = (self.surface.title(), self.shelf.package());
        let is_there = self.shelf.has(&self.package);
        let state = match (is_there, self.options.dry_run) {
            (true, _) => "is",
            (false, true) => "would be",
            (false, false) => "is now",
        };
        if let Err(error) = if self.options.dry_run { Ok(()) } else { self.wait() } {
            return FileOutcome::failed(Some(self.surface), error.into());
        }
        let text = format!(
            "no `{names}` command was found on PATH, so the extension for {title} {state} in {}",
            path.display()
        );
        let outcome = FileOutcome::said(Some(self.surface), "waiting", text);
        outcome
            .with("extension", VERSION)
            .with("package", path.to_string_lossy().into_owned())
            .with("next", by_hand(self.surface, &path))
    }

    /// Puts the package where the person finds it.
    fn wait(&self) -> Result<(), InstallError> {
        self.shelf.put(&self.package)?;
        self.shelf.keep(&InstalledExtension::new(self.surface, None, &self.package))
    }

    /// It is installed: the package may go, unless another surface's person has yet to take it.
    fn nobody_waits(&self) {
        self.shelf.forget(&InstalledExtension::new(self.surface, None, &self.package));
    }
}

/// Returns what a person does so that the extension runs.
fn next(surface: Surface) -> String {
    format!("windows of {} that are open may want a reload (Developer: Reload Window)", surface.title())
}

fn by_hand(surface: Surface, package: &Path) -> String {
    format!("in {}, run Extensions: Install from VSIX… and choose {}", surface.title(), package.display())
}
