//! A command that only needs to be started: in a folder that is open, behind its fence, at a pipe or at a terminal.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use prism_os::{
    census::MarkedRun,
    child::{Child, ChildSpec, SpawnError},
    pty::{Pty, PtySize},
    root::{FolderHandle, WorkDir},
};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::MAX_WORDS;
use crate::{
    happening::Happenings,
    refusal::failed,
    roots::{ResolvedPath, place},
    run::observe::{ObservedRun, RunView},
    run::{RunContext, fence::ChildFence, script::Scripts},
    shown::{ActionPreview, GivenCommand},
};

#[derive(Debug)]
pub(crate) struct Launch {
    words: Vec<String>,
    /// What is added to the usual environment.
    env: BTreeMap<String, String>,
    way: ResolvedPath,
    folder: FolderHandle,
    work_dir: WorkDir,
    pub(crate) cwd: PathBuf,
    pub(crate) context: RunContext,
    /// What the person sees of what it runs, and it must still be that.
    scripts: Scripts,
}

/// What was started, and what has to be kept while it runs.
#[derive(Debug)]
pub(crate) struct StartedProgram<T> {
    pub(crate) what: T,
    pub(crate) launch: Launch,
    pub(crate) run: MarkedRun,
    pub(crate) around: ChildFence,
}

impl Launch {
    /// Opens the folder that it is to run in. Blocks.
    pub(crate) fn open(
        context: &RunContext,
        words: &GivenCommand,
        env: BTreeMap<String, String>,
        cwd: Option<&str>,
    ) -> Result<Self, Refusal> {
        let words = match words {
            GivenCommand::Shell(line) => ["sh", "-c", line].map(str::to_owned).to_vec(),
            GivenCommand::List(list) => list.clone(),
        };
        let additions = env.iter().map(|(name, value)| name.len() + value.len() + 2);
        let bytes: usize = words.iter().map(|word| word.len() + 1).chain(additions).sum();
        if bytes > MAX_WORDS {
            let message = format!("a command of {bytes} bytes; at most {MAX_WORDS} are allowed");
            return Err(Refusal::new(Code::TooLarge, message));
        }
        let way = cwd.map_or_else(|| context.roots.first(), |cwd| context.roots.resolve(cwd))?;
        let folder = way.folder()?;
        let work_dir = folder.dir_for_command().map_err(|error| way.refusal(error))?;
        let cwd = place(&folder, cwd.unwrap_or("."));
        Ok(Self { words, env, way, folder, work_dir, cwd, context: context.clone(), scripts: Scripts::default() })
    }

    /// Has it shown with the files that its words run, which must be the same when it is started (L10). Blocks.
    pub(crate) fn with_scripts(mut self, words: &GivenCommand) -> Self {
        self.scripts = Scripts::of(&self.context.roots, words, &self.cwd);
        self
    }

    /// What a person sees of it, with the words as they were given.
    pub(crate) fn shown(&self, words: GivenCommand, timeout_ms: u64) -> ActionPreview {
        let (cwd, env, runs) = (self.cwd.display().to_string(), self.env.clone(), self.scripts.shown());
        ActionPreview::Command { command: words, cwd, env, timeout_ms, runs }
    }

    /// One of the commands that may run at the same time.
    pub(crate) fn turn(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        self.context.state.commands.clone().try_acquire_owned().map_err(|_| Refusal {
            code: Code::TooFast,
            message: "too many commands run already; try again when one has ended".to_owned(),
            retry_after: Some(Duration::from_secs(5)),
        })
    }

    pub(crate) async fn child(self) -> Result<StartedProgram<Child>, Refusal> {
        self.start(|spec, launch| Child::spawn(spec, &launch.context.state.editor.owner)).await
    }

    pub(crate) async fn at_terminal(self, size: PtySize) -> Result<StartedProgram<Pty>, Refusal> {
        self.start(move |spec, launch| Pty::spawn(spec, &launch.context.state.editor.owner, size)).await
    }

    /// Starts it, if its folder is still the one that was shown.
    async fn start<T: Send + 'static>(
        self,
        spawn: impl FnOnce(&ChildSpec<'_>, &Self) -> Result<T, SpawnError> + Send + 'static,
    ) -> Result<StartedProgram<T>, Refusal> {
        let state = self.context.state.clone();
        state
            .editor
            .blocking(move |_| {
                let state = &self.context.state;
                self.way.is_still(&self.folder)?;
                self.scripts.are_still()?;
                let around = state.fences.around(&self.context.roots, &self.context.holder)?;
                let run = MarkedRun::new(&state.editor.owner);
                let mut env = state.editor.env.clone();
                // Where it is, and not where the daemon is.
                env.insert("PWD".into(), self.cwd.clone().into());
                env.remove(OsStr::new("OLDPWD"));
                env.extend(around.env.iter().map(|(name, value)| (name.clone(), value.clone())));
                env.extend(self.env.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))));
                run.mark(&mut env);
                let cwd = self.work_dir.path();
                let fence = around.fence.as_ref();
                let cgroup = around.limits.cgroup();
                let spec = ChildSpec { command: &self.words, env: &env, cwd: Some(&cwd), cgroup, fence };
                let what = spawn(&spec, &self).map_err(|error| self.refusal(&error, fence.is_some()))?;
                Ok(StartedProgram { what, launch: self, run, around })
            })
            .await
    }

    fn refusal(&self, error: &SpawnError, is_fenced: bool) -> Refusal {
        match error {
            SpawnError::NotFound { .. } | SpawnError::NoCommand => Refusal::new(Code::NotFound, error.to_string()),
            SpawnError::Cwd { .. } => Refusal::new(Code::NotFound, format!("the folder {:?} is no more", self.cwd)),
            SpawnError::Exec { source, .. } if is_fenced && source.kind() == io::ErrorKind::PermissionDenied => {
                let next = "if it lies outside of the granted folders and of the system's, a person can add its \
                            folder to `readable` of `[editor]`";
                failed(format!("{error}: {source}; {next}"))
            }
            SpawnError::Exec { source, .. } => failed(format!("{error}: {source}")),
        }
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }

    /// As one would type it, more or less.
    pub(crate) fn line(&self) -> String {
        let words = match self.words.as_slice() {
            [shell, flag, line] if shell == "sh" && flag == "-c" => line.clone(),
            words => words.join(" "),
        };
        words.chars().take(MAX_LINE).collect()
    }

    /// Tells those who watch that it begins, of a terminal with its size.
    pub(crate) fn view(&self, verb: &'static str, size: Option<PtySize>) -> RunView {
        let (line, holder) = (self.line(), &self.context.holder);
        let run = ObservedRun { verb, holder, name: &line, command: &line, folder: &self.cwd, size };
        RunView::begin(&self.context.state, &run)
    }

    /// Has its end told in any case: as `data`, unless something better is known by then.
    pub(crate) fn ending(&self, name: &'static str, data: Value) -> EndNotice {
        let happenings = self.context.state.editor.happenings.clone();
        EndNotice { happenings, cwd: self.cwd.clone(), by: self.context.holder.id, untold: Some((name, data)) }
    }

    /// Tells of something that happened to it.
    pub(crate) fn tell(&self, name: &str, data: Value) {
        self.context.state.editor.happenings.tell_of(name, Some(&self.cwd), self.context.holder.id, data);
    }
}

/// Tells of an end, also if nobody waits for it any more and the work is dropped.
#[derive(Debug)]
pub(crate) struct EndNotice {
    happenings: Happenings,
    cwd: PathBuf,
    by: u128,
    /// What is told; nothing once it was.
    untold: Option<(&'static str, Value)>,
}

impl EndNotice {
    /// Tells how it has ended.
    pub(crate) fn is(mut self, data: Value) {
        if let Some((_, untold)) = &mut self.untold {
            *untold = data;
        }
    }
}

impl Drop for EndNotice {
    fn drop(&mut self) {
        if let Some((name, data)) = self.untold.take() {
            self.happenings.tell_of(name, Some(&self.cwd), self.by, data);
        }
    }
}

/// Letters of a command that a happening has.
const MAX_LINE: usize = 500;
