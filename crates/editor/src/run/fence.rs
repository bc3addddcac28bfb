//! The usual fence: what commands, builds, terminals, language servers and git may touch beside the granted folders. How the
//! kernel is told is in `prism_os::fence` and `prism_os::sandbox`.
//!
//! Of the system all may be read that others may read too; of the user's home folder only what toolchains keep there, file by
//! file where a secret lies beside it (`.cargo/credentials.toml`, `.config/git/credentials`). What is written outside of the
//! granted folders goes to a folder that only this holder has: in a sandbox it is what lies at `/tmp` and, beneath the toolchains,
//! at the home folder, so that no cache of the person's is ever written by an agent. With landlock alone names cannot lead elsewhere,
//! and toolchains write their own caches.

mod copy;
mod limits;
mod quarters;
mod report;
mod temporary;
mod usual;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use prism_core::policy::Refusal;
use prism_os::{
    fence::{SandboxEnforcement, SandboxPolicy},
    root::{FolderHandle, place},
    sandbox::{Bubblewrap, NetworkAccess},
};

use crate::{
    refusal::failed,
    roots::{ClosedPaths, GrantedRoots},
    settings::EditorSettings,
    state::GrantHolder,
};
use temporary::TemporaryFolder;

pub(crate) use limits::{Overrun, RunLimits};
pub use quarters::{SandboxRequest, ServerSandbox, ServerSandboxError, ServerSandboxes};
pub(crate) use report::FenceReport;

/// Makes fences, and keeps the folders for temporary files.
#[derive(Debug)]
pub(crate) struct Fences {
    /// `None`: they are switched off.
    usual: Option<Usual>,
    sandbox: SandboxSearch,
    closed: Arc<ClosedPaths>,
    settings: EditorSettings,
    /// Where folders for temporary files are made.
    base: PathBuf,
    temporary: Mutex<HashMap<u128, Arc<TemporaryFolder>>>,
}

/// The sandbox, or why there is landlock alone. Looking for it starts processes, so nobody waits for that before he needs it.
#[derive(Debug)]
struct SandboxSearch {
    env: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    /// What is the first to run inside; `None`: no sandbox is wanted.
    inner: Option<PathBuf>,
    /// Ports of the daemon's that are kept out of reach.
    ports: Mutex<BTreeSet<u16>>,
    found: Mutex<Option<Result<Arc<Bubblewrap>, SandboxLack>>>,
}

/// Why there was no sandbox when it was last looked for.
#[derive(Debug)]
struct SandboxLack {
    why: String,
    at: Instant,
}

/// How long a lack is taken for true. It may have been a machine that was busy, and somebody may have installed what is missing. What
/// was found once stays: who can do without asking is never less held than was thought.
const LOOK_AGAIN: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(30) };

#[derive(Debug)]
struct Usual {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    /// The person's caches: what may be written of them with landlock alone, and what is read of them in a sandbox.
    caches: Vec<PathBuf>,
    read_caches: Vec<(PathBuf, CacheAccess)>,
    /// Where toolchains write outside of the home folder. In a sandbox something else lies there.
    elsewhere: Vec<PathBuf>,
    home: Option<PathBuf>,
    closed: Vec<PathBuf>,
    /// Where go keeps modules.
    go_modules: Option<PathBuf>,
    /// What go keeps its cache in, if it has none in the home folder yet that could be written.
    lacks_go_cache: bool,
}

/// What tools do to a cache of the person's, of which nothing is ever changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheAccess {
    /// They read it.
    IsRead,
    /// They add to it what they fetch, where they have a network: a holder who has one gets a copy.
    Grows,
    /// They write to it although they only look something up: every holder gets a copy.
    IsWritten,
}

/// A fence for one child, and what the child's environment says of it. To be kept while the child runs.
#[derive(Debug)]
pub(crate) struct ChildFence {
    /// `None`: they are switched off.
    pub(crate) fence: Option<SandboxPolicy>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    /// What it may use; it holds on to the folder for temporary files.
    pub(crate) limits: RunLimits,
}

// === impl Fences ===

impl Fences {
    /// `env` is what the children are given, and `closed` what they never touch.
    pub(crate) fn new(settings: &EditorSettings, env: &BTreeMap<OsString, OsString>, closed: Arc<ClosedPaths>) -> Self {
        let base = env.get(OsStr::new("TMPDIR")).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        if settings.fence {
            temporary::clear(&base);
        }
        let usual = settings.fence.then(|| Usual::new(settings, env, closed.folders().to_vec()));
        let inner = settings.inner.clone().filter(|_| settings.fence);
        let (env, home) = (env.clone(), settings.home.clone());
        let sandbox = SandboxSearch { env, home, inner, ports: Mutex::default(), found: Mutex::default() };
        Self { usual, sandbox, closed, settings: settings.clone(), base, temporary: Mutex::default() }
    }

    /// A fence around granted folders, for a holder. Blocks.
    pub(crate) fn around(&self, roots: &GrantedRoots, holder: &GrantHolder) -> Result<ChildFence, Refusal> {
        // One that is not there cannot be touched either.
        let held = roots.names().iter().filter_map(|root| roots.root(root).and_then(|way| way.folder()).ok());
        self.around_folders(held.collect(), holder).map_err(|error| {
            failed(format!(
                "cannot make a folder for temporary files in {:?}: {error}; set TMPDIR to a folder that can be written",
                self.base
            ))
        })
    }

    pub(crate) fn around_folders(&self, held: Vec<FolderHandle>, holder: &GrantHolder) -> io::Result<ChildFence> {
        let folders: Vec<PathBuf> = held.iter().filter_map(|root| place(root).ok()).collect();
        let Some(usual) = &self.usual else {
            let limits = RunLimits::new(&self.settings, None, &folders);
            return Ok(ChildFence { fence: None, env: BTreeMap::new(), limits });
        };
        let temporary = self.temporary_of(holder.id)?;
        let (mut read, mut write, mut closed) = (usual.read.clone(), usual.write.clone(), usual.closed.clone());
        let mut env = BTreeMap::new();
        let mut seems = temporary.path().to_owned();
        let room = match self.sandbox.sandbox() {
            Ok(sandbox) => {
                let ports = self.sandbox.ports.lock().unwrap_or_else(PoisonError::into_inner);
                ports.iter().for_each(|port| sandbox.keep_from(*port));
                drop(ports);
                closed.extend(self.closed.files());
                let mut room = temporary.room(&sandbox, usual, holder.network)?;
                seems = PathBuf::from("/tmp");
                let is_online = holder.network == NetworkAccess::All;
                if holder.network == NetworkAccess::Own {
                    env.extend(AT_ONCE.map(|(name, value)| (name.into(), value.into())));
                }
                read.extend(usual.read_caches.iter().filter_map(|(cache, access)| {
                    let is_own = match access {
                        CacheAccess::IsRead => false,
                        CacheAccess::Grows => is_online,
                        CacheAccess::IsWritten => true,
                    };
                    let copy = if is_own { temporary.copy(cache, cache) } else { None };
                    // What is too large to be copied is fetched anew, or read as far as that goes.
                    let is_read = copy.is_none() && !(is_own && is_online);
                    room.private.extend(copy);
                    is_read.then(|| cache.clone())
                }));
                // Its folder lies in one that is read, and go can be told of another.
                if let (true, Some(modules), Some(home)) = (is_online, &usual.go_modules, &usual.home) {
                    let own = home.join(".cache/go-mod");
                    room.private.extend(temporary.copy(&modules.join("cache/download"), &own.join("cache/download")));
                    env.insert("GOMODCACHE".into(), own.into());
                }
                Some(room)
            }
            Err(_) => {
                write.extend(usual.caches.iter().chain(&usual.elsewhere).cloned());
                write.push(seems.clone());
                if usual.lacks_go_cache {
                    env.insert("GOCACHE".into(), seems.join("go-build").into());
                }
                None
            }
        };
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), seems.as_os_str().to_owned())));
        let fence = SandboxPolicy { read, write, held, exec: None, closed, room };
        let limits = RunLimits::new(&self.settings, Some(temporary), &folders);
        Ok(ChildFence { fence: Some(fence), env, limits })
    }

    fn temporary_of(&self, holder: u128) -> io::Result<Arc<TemporaryFolder>> {
        let mut all = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.get(&holder).filter(|made| made.can_be_used()) {
            return Ok(made.clone());
        }
        let made = Arc::new(TemporaryFolder::make(&self.base)?);
        all.insert(holder, made.clone());
        Ok(made)
    }

    /// A holder is no more: its temporary files go as soon as nothing of its runs.
    pub(crate) fn release(&self, holder: u128) {
        self.temporary.lock().unwrap_or_else(PoisonError::into_inner).remove(&holder);
    }

    /// Removes the temporary files of all. Blocks.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.temporary.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_values().filter_map(Arc::into_inner).for_each(TemporaryFolder::remove);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.usual.is_some()
    }

    /// Why a fence is less than a sandbox, if it is; `None` also where the person has switched fences off. Blocks, for some
    /// milliseconds at the first time.
    pub(crate) fn lacks(&self) -> Option<String> {
        self.usual.as_ref().and_then(|_| self.sandbox.sandbox().err())
    }

    /// What is enforced, for those who only want to know. Blocks like `lacks`.
    pub(crate) fn kind(&self) -> Option<SandboxEnforcement> {
        self.usual.as_ref()?;
        if let Ok(sandbox) = self.sandbox.sandbox() {
            return Some(sandbox.enforced());
        }
        Some(match SandboxPolicy::default().spawn(|| ()) {
            Ok(((), enforced)) => enforced,
            Err(error) => SandboxEnforcement::None { why: error.to_string() },
        })
    }

    /// Has nothing that runs in a sandbox connect to a port of the daemon's.
    pub(crate) fn keep_from(&self, port: u16) {
        self.sandbox.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
    }
}

// === impl SandboxSearch ===

impl SandboxSearch {
    fn sandbox(&self) -> Result<Arc<Bubblewrap>, String> {
        let inner = self.inner.as_deref().ok_or("it was not asked for")?;
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some(Ok(sandbox)) => return Ok(sandbox.clone()),
            Some(Err(lack)) if lack.at.elapsed() < LOOK_AGAIN => return Err(lack.why.clone()),
            Some(Err(_)) | None => {}
        }
        let looked = Bubblewrap::find(&self.env, self.home.as_deref(), inner);
        *found = Some(looked.clone().map_err(|why| SandboxLack { why, at: Instant::now() }));
        looked
    }
}

// === impl ChildFence ===

#[cfg(test)]
impl ChildFence {
    /// The folder for temporary files, where there is one.
    pub(crate) fn temporary(&self) -> Option<&std::path::Path> {
        self.limits.scratch()
    }
}

/// Has tools that have no network say so, where they would try for minutes. pip says it when it tries again.
const AT_ONCE: [(&str, &str); 3] = [("npm_config_fetch_retries", "0"), ("CARGO_NET_RETRY", "0"), ("PIP_RETRIES", "1")];

#[cfg(test)]
mod tests;
