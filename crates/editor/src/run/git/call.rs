//! One run of git: started behind its guard, within its time, its words within bounds, ended with whoever waits for it.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use prism_os::{
    child::{Child, ChildSpec, SpawnError},
    fence::SandboxEnforcement,
    group::{self, ProcessGroup},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::{
    guard::{self, GitReach},
    porcelain::{self, Configured, lossy},
    repository::Repository,
};
use crate::{
    refusal::failed,
    roots::GrantedRoots,
    run::{RunState, fence::FenceReport},
};

/// git for one repository.
pub(super) struct Git {
    pub(super) repository: Arc<Repository>,
    pub(super) configured: Configured,
    state: Arc<RunState>,
    program: PathBuf,
    closed: Vec<PathBuf>,
    /// What has become of the fence of its first run; `None` if it was not to have one.
    enforced: OnceLock<Option<SandboxEnforcement>>,
}

/// What git said.
#[derive(Debug)]
pub(super) struct GitOutput {
    /// `None` if it was ended because it said more than was wanted.
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

/// How long one run may take. A status of a large tree on a cold disk takes seconds.
const PATIENCE: Duration = Duration::from_secs(25);

/// How long git has to take its locks away before it is killed.
const GRACE: Duration = Duration::from_secs(2);

/// What is kept of its complaints.
const MAX_STDERR: usize = 16 << 10;

/// What is read of what it says, if nothing else is said.
pub(super) const MAX_STDOUT: usize = 4 << 20;

// === impl Git ===

impl Git {
    /// Finds git and learns what of its config would run code. The repository is as `Repository::find` has left it.
    pub(super) async fn open(
        repository: Repository,
        roots: &GrantedRoots,
        state: &Arc<RunState>,
    ) -> Result<Self, Refusal> {
        let program = guard::program(&state.editor.env, |program| roots.holds(program));
        let program = program.ok_or_else(|| Refusal::new(Code::NotFound, "there is no git on the daemon's PATH"))?;
        let (repository, configured) = (Arc::new(repository), Configured::default());
        let closed = roots.closed_folders().to_vec();
        let mut git = Self { repository, configured, state: state.clone(), program, closed, enforced: OnceLock::new() };
        let list = ["config", "--list", "--show-scope", "--show-origin", "-z", "--includes"];
        let said = git.run(GitReach::Config, &list, b"", MAX_STDOUT).await?;
        if said.code != Some(0) {
            // git would name a file that it could not read, and whether it is there: any file, since a repository's config may
            // include it by its name. (L2)
            let list = "git config --list";
            return Err(failed(format!(
                "git cannot read its config; the person sees why with `{list}` in that folder"
            )));
        }
        git.configured = porcelain::configured(&said.stdout);
        Ok(git)
    }

    /// Says in a result what it was run behind.
    pub(super) fn fence(&self) -> FenceReport {
        FenceReport::of(self.enforced.get().and_then(Option::as_ref))
    }

    /// Runs it, and fails if it does.
    pub(super) async fn ask(&self, reach: GitReach, words: &[&str]) -> Result<Vec<u8>, Refusal> {
        let said = self.run(reach, words, b"", MAX_STDOUT).await?;
        match said.code {
            Some(0) => Ok(said.stdout),
            None => Err(Refusal::new(Code::TooLarge, format!("git {} says more than {MAX_STDOUT} bytes", words[0]))),
            Some(_) => Err(said.refusal(&format!("git {} failed", words[0]))),
        }
    }

    /// Runs it. Dropping the future ends git and all that it has started; one that writes is asked first, so that it leaves no
    /// lock behind.
    pub(super) async fn run(
        &self,
        reach: GitReach,
        words: &[&str],
        input: &[u8],
        most: usize,
    ) -> Result<GitOutput, Refusal> {
        let _turn = self.state.repositories.turn().await?;
        let mut command = vec![self.program.display().to_string(), "--no-pager".to_owned()];
        command.extend(words.iter().map(|word| (*word).to_owned()));
        let env = guard::environment(&self.state.editor.env, &self.repository, &self.configured, reach);
        let cwd = self.repository.cwd();
        let fence = || guard::fence(&self.program, &self.repository, &self.configured, reach, self.closed.clone());
        let fence = self.state.editor.settings.fence.then(fence);
        let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: fence.as_ref() };
        let child = Child::spawn(&spec, &self.state.editor.owner).map_err(|error| match error {
            SpawnError::Cwd { .. } => Refusal::new(Code::NotFound, "the work tree is no more"),
            SpawnError::Exec { ref source, .. } => failed(format!("{error}: {source}")),
            error => Refusal::new(Code::NotFound, error.to_string()),
        })?;
        let _ = self.enforced.set(child.enforced.clone());
        let is_gentle = matches!(reach, GitReach::Records | GitReach::Writes);
        attend(child, input, most, is_gentle).await
    }
}

async fn attend(child: Child, input: &[u8], most: usize, is_gentle: bool) -> Result<GitOutput, Refusal> {
    let Child { mut stdin, mut stdout, mut stderr, group, .. } = child;
    let mut group = EndingGit { group: Some(group), is_gentle };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let talk = async {
        let write = async {
            // It may end before it has read everything; then its complaint says more than a broken pipe.
            let _ = stdin.write_all(input).await;
            drop(stdin);
        };
        let read = async {
            let is_whole = read(&mut stdout, &mut out, most).await;
            // Whoever has more to say learns that nobody listens.
            drop(stdout);
            is_whole
        };
        tokio::join!(read, write, read_some(&mut stderr, &mut err, MAX_STDERR)).0
    };
    let Ok(is_whole) = timeout(PATIENCE, talk).await else {
        let message = format!("git was not done within {} s; try a smaller part", PATIENCE.as_secs());
        return Err(Refusal::new(Code::TimedOut, message));
    };
    let stderr = lossy(&err);
    if !is_whole {
        return Ok(GitOutput { code: None, stdout: out, stderr });
    }
    let ended = group.finish().await?;
    Ok(GitOutput { code: Some(ended), stdout: out, stderr })
}

/// Reads to the end; `false` if there was more than `most`.
async fn read(stream: &mut (impl AsyncRead + Unpin), kept: &mut Vec<u8>, most: usize) -> bool {
    let mut limited = stream.take(most as u64 + 1);
    let _ = limited.read_to_end(kept).await;
    let is_whole = kept.len() <= most;
    kept.truncate(most);
    is_whole
}

/// Reads to the end and keeps the end.
async fn read_some(stream: &mut (impl AsyncRead + Unpin), kept: &mut Vec<u8>, most: usize) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(bytes @ 1..) = stream.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..bytes]);
        let too_many = kept.len().saturating_sub(most);
        kept.drain(..too_many);
    }
}

// === impl EndingGit ===

/// A child that ends with this.
struct EndingGit {
    group: Option<ProcessGroup>,
    is_gentle: bool,
}

impl EndingGit {
    async fn finish(&mut self) -> Result<i32, Refusal> {
        let Some(group) = &self.group else { return Err(failed("git has ended already")) };
        if timeout(GRACE, group.exited()).await.is_err() {
            return Err(failed("git has closed its mouth and does not end"));
        }
        let Some(group) = self.group.take() else { return Err(failed("git has ended already")) };
        let status = group.finish().map_err(|error| failed(format!("git: {error}")))?;
        // By a signal: somebody has killed it.
        status.code().ok_or_else(|| failed("git was killed"))
    }
}

impl Drop for EndingGit {
    fn drop(&mut self) {
        let Some(group) = self.group.take() else { return };
        let runtime = tokio::runtime::Handle::try_current();
        if let (true, Ok(runtime)) = (self.is_gentle, runtime) {
            group.terminate();
            runtime.spawn(group::stop(group, GRACE));
        }
        // Else it is killed as it is dropped: who only reads has nothing to take away.
    }
}

// === impl GitOutput ===

impl GitOutput {
    /// Tells what went wrong in git's own words.
    pub(super) fn refusal(&self, what: &str) -> Refusal {
        failed(match self.complaint() {
            Some(complaint) => format!("{what}: {complaint}"),
            None => {
                format!("{what} (exit code {})", self.code.map_or_else(|| "none".to_owned(), |code| code.to_string()))
            }
        })
    }

    /// The last line that is no hint, and what it is about where that stands above it.
    pub(super) fn complaint(&self) -> Option<String> {
        let lines = self.stderr.lines().map(str::trim_end);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("hint:")).collect();
        let first = lines.iter().rposition(|line| line.starts_with("fatal:") || line.starts_with("error:"));
        let last = lines.len().checked_sub(1)?;
        let mut told = lines[first.unwrap_or(last)..].join("\n");
        if let Some((end, _)) = told.char_indices().nth(MAX_COMPLAINT) {
            told.truncate(end);
        }
        Some(told)
    }
}

/// Characters of a complaint.
const MAX_COMPLAINT: usize = 2_000;
