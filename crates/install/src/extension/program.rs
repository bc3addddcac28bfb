//! An editor's own command, which is asked to install the extension: how it is found, and what is asked of it. The editor
//! knows where its extensions are and which windows to tell of a new one; we do not.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    time::Duration,
};

use prism_os::ask::{ProgramRunError, ask, ask_aloud};

use super::ID;
use crate::surface::Surface;
use prism_config::{Env, EnvInheritance};

/// The command of an editor that is here.
#[derive(Clone, Debug)]
pub struct EditorProgram {
    pub path: PathBuf,
    env: BTreeMap<OsString, OsString>,
}

/// Why an editor did not do as it was told.
#[derive(Debug, thiserror::Error)]
pub enum EditorProgramError {
    #[error(transparent)]
    Ask(#[from] ProgramRunError),
    #[error("{} {option} failed:\n{said}", path.display())]
    Failed { path: PathBuf, option: &'static str, said: String },
}

/// How long an editor may take to install or remove the extension. One takes two seconds, more on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long it may take to say what it has.
const PATIENCE_FOR_LIST: Duration = Duration::from_secs(20);
/// Lines of a complaint that are shown, the last ones.
const SHOWN_LINES: usize = 12;

impl EditorProgram {
    /// Finds the commands of a surface: on PATH, or within the application where macOS puts it.
    pub fn all_of(surface: Surface, env: &Env) -> Vec<Self> {
        let path = env.var("PATH").unwrap_or_default();
        let mut found: Vec<PathBuf> = Vec::new();
        for (name, application) in surface.extension_programs() {
            let on_path = std::env::split_paths(path).map(|folder| folder.join(name));
            let within = format!("Applications/{application}.app/Contents/Resources/app/bin/{name}");
            let homes = [Some(OsStr::new("/")), env.var("HOME")].into_iter().flatten();
            let applications = homes.filter(|_| cfg!(target_os = "macos")).map(|home| Path::new(home).join(&within));
            found.extend(on_path.chain(applications).find(|path| path.is_absolute() && is_executable(path)));
        }
        found.into_iter().map(|path| Self::at(path, env)).collect()
    }

    /// The command at a place where it was once found.
    pub fn at(path: PathBuf, env: &Env) -> Self {
        Self { path, env: env.inherited(&EnvInheritance::All) }
    }

    pub fn is_there(&self) -> bool {
        is_executable(&self.path)
    }

    /// Returns the version of the extension that the editor has, if it has one.
    pub fn version(&self) -> Result<Option<String>, EditorProgramError> {
        let arguments = ["--list-extensions", "--show-versions"];
        let answer = ask(self.path.as_os_str(), &arguments, &self.env, PATIENCE_FOR_LIST)?;
        let text = String::from_utf8_lossy(&answer.stdout);
        if !answer.success {
            let said = last_lines(&text);
            return Err(EditorProgramError::Failed { path: self.path.clone(), option: arguments[0], said });
        }
        let mut all = text.lines().filter_map(|line| line.trim().split_once('@'));
        Ok(all.find(|(id, _)| id.eq_ignore_ascii_case(ID)).map(|(_, version)| version.to_owned()))
    }

    /// Has the editor install a package, in place of whichever version it has.
    pub fn install(&self, package: &Path) -> Result<(), EditorProgramError> {
        self.tell("--install-extension", &package.to_string_lossy(), &["--force"])
    }

    /// Has the editor remove the extension.
    pub fn uninstall(&self) -> Result<(), EditorProgramError> {
        self.tell("--uninstall-extension", ID, &[])
    }

    fn tell(&self, option: &'static str, value: &str, more: &[&str]) -> Result<(), EditorProgramError> {
        let arguments = [&[option, value], more].concat();
        let answer = ask_aloud(self.path.as_os_str(), &arguments, &self.env, PATIENCE)?;
        match answer.success {
            true => Ok(()),
            false => {
                let said = last_lines(&String::from_utf8_lossy(&answer.stdout));
                Err(EditorProgramError::Failed { path: self.path.clone(), option, said })
            }
        }
    }
}

fn is_executable(path: &Path) -> bool {
    path.to_str().is_some_and(|path| Env::finds(path, None, OsStr::new("")))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    match shown {
        [] => "  it said nothing".to_owned(),
        shown => shown.iter().map(|line| format!("  {}", line.trim_end())).collect::<Vec<_>>().join("\n"),
    }
}
