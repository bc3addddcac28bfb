//! A sandbox of three layers for a child and all that it starts: namespaces, made by bubblewrap, in which there is nothing but
//! what is listed; a filter of system calls (seccomp), for what namespaces do not keep apart; and landlock, inside, for what a
//! mount cannot say. Which folders are listed is decided elsewhere (`fence::SandboxPolicy`).
//!
//! ```text
//! daemon ── spawner ── bwrap ── inner (pid 1) ── the command
//!           a thread   mounts   binds itself by landlock, waits for "go",
//!           that stays filter   ends with bwrap, and all with it
//! ```
//! - bwrap dies with the *thread* that started it, so it is started by one that never ends.
//! - It is killed with its process group and pid 1, and whatever was started inside dies with pid 1: no session, double fork or
//!   emptied environment leaves a pid namespace.
//! - The inner program, which is our own under another name, runs nothing before it is told to: by then the daemon holds pid 1.
//! - bwrap's own environment and command line say nothing, as everybody inside can read them.

pub mod fence;
mod filter;
pub mod inner;
mod profile;
mod spawner;
mod stage;

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsString,
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{
            fs::{DirBuilderExt, MetadataExt},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rustix::fs::{CWD, Mode, OFlags, fstat, openat};

use crate::{ask::ask_aloud, census::OwnerDaemon, pid_namespace::InitProcess};

use fence::{SandboxEnforcement, SandboxPolicy};
pub(crate) use filter::refuse_what_landlock_cannot;
pub(crate) use stage::{SandboxCommand, SandboxStage};

/// Bubblewrap, as it was found to work on this machine.
#[derive(Debug)]
pub struct Bubblewrap {
    program: PathBuf,
    /// The program that is the first to run inside.
    inner: InnerProgram,
    filters: Vec<Vec<u8>>,
    /// The kernel's version of landlock, inside.
    landlock: Option<u32>,
    /// Ports that nobody inside connects to, whatever network there is: the daemon's own.
    ports: Mutex<BTreeSet<u16>>,
}

/// A program, held open: whatever has come to lie at its name meanwhile, it is this one.
#[derive(Debug)]
struct InnerProgram {
    path: PathBuf,
    opened: Mutex<Arc<OwnedFd>>,
}

/// How a child lives in a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxRoom {
    pub sandbox: Arc<Bubblewrap>,
    /// What it finds in the place of the user's home folder.
    pub home: Option<PrivateFolder>,
    /// What it finds as `/tmp`.
    pub temporary: PathBuf,
    /// Other folders of its own.
    pub private: Vec<PrivateFolder>,
    pub network: NetworkAccess,
    /// Folders beneath the granted ones, by their names from there, that it may only read, unless they are granted themselves.
    pub guarded: Vec<&'static str>,
}

/// A folder that lies elsewhere than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateFolder {
    pub seems: PathBuf,
    pub lies: PathBuf,
}

/// What of the network a child reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkAccess {
    /// A loopback of its own.
    #[default]
    Own,
    /// What the machine reaches, and the programs on it.
    All,
}

/// Options that are needed. Their names are looked for, as the version does not tell: distributions mend old ones.
const OPTIONS: [&str; 6] = ["--bind-fd", "--ro-bind-fd", "--add-seccomp-fd", "--perms", "--size", "--info-fd"];

/// How long bubblewrap may take to tell its options: a moment, and more where others keep the machine busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the inner program is, inside.
const INNER: &str = "/.prism-inner";

impl Bubblewrap {
    /// Finds bubblewrap, and tries it with the real profile. `inner` is a program that calls [`inner::run`] first of all.
    /// `Err` says what is missing, and what to do about it. Blocks, for some milliseconds.
    pub fn find(env: &BTreeMap<OsString, OsString>, home: Option<&Path>, inner: &Path) -> Result<Arc<Self>, String> {
        let path = env.get(&OsString::from("PATH")).cloned().unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let program = folders
            .filter(|folder| home.is_none_or(|home| !folder.starts_with(home)))
            .filter_map(|folder| folder.join("bwrap").canonicalize().ok())
            .find(|program| is_the_systems(program))
            .ok_or("bubblewrap is not installed; install the package `bubblewrap`")?;
        let said = ask_aloud(program.as_os_str(), &["--help"], &BTreeMap::new(), PATIENCE)
            .map_err(|error| format!("{} does not work: {error}", program.display()))?;
        let said = String::from_utf8_lossy(&said.stdout);
        if let Some(lacks) = OPTIONS.iter().find(|option| !said.contains(**option)) {
            return Err(format!(
                "{} is too old: it has no {lacks}; install bubblewrap 0.10 or newer",
                program.display()
            ));
        }
        let inner =
            InnerProgram::open(inner).map_err(|error| format!("{} cannot be opened: {error}", inner.display()))?;
        let filters = filter::programs().map_err(|error| format!("no filter can be made for this machine: {error}"))?;
        let tried = Arc::new(Self { program, inner, filters, landlock: None, ports: Mutex::default() });
        let landlock = tried.try_it().map_err(advice)?;
        let tried = Arc::into_inner(tried).ok_or("it is still being tried")?;
        Ok(Arc::new(Self { landlock, ..tried }))
    }

    /// Has nobody inside connect to a port from now on, not even where the machine's network is granted.
    pub fn keep_from(&self, port: u16) {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
    }

    /// What is kept out of reach of who has this network.
    fn out_of_reach(&self, network: NetworkAccess) -> Vec<u16> {
        match network {
            NetworkAccess::Own => Vec::new(),
            NetworkAccess::All => self.ports.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect(),
        }
    }

    /// What becomes of a fence in it.
    pub fn enforced(&self) -> SandboxEnforcement {
        SandboxEnforcement::Sandbox { landlock: self.landlock, network: NetworkAccess::Own, covered: Vec::new() }
    }

    /// Runs the real profile with nothing in it.
    fn try_it(self: &Arc<Self>) -> Result<Option<u32>, String> {
        // One of its own: in that of all there is what others have put there.
        let folder = ProbeFolder::make().map_err(|error| format!("no folder can be made to try it in: {error}"))?;
        let room = SandboxRoom {
            sandbox: self.clone(),
            home: None,
            temporary: folder.0.clone(),
            private: Vec::new(),
            network: NetworkAccess::Own,
            guarded: Vec::new(),
        };
        let fence = SandboxPolicy { room: Some(room.clone()), ..SandboxPolicy::default() };
        let command = ["/bin/sh", "-c", "exit 7"].map(str::to_owned);
        let inside = SandboxCommand { command: &command, env: &BTreeMap::new(), cwd: Path::new("/") };
        let owner = OwnerDaemon::this_process(Path::new("/"));
        let tried = (|| {
            let (mut command, stage) = SandboxStage::set(&inside, &fence, &room, &owner)?;
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
            let mut started = stage.start(command)?;
            let status = started.child.wait()?;
            Ok::<_, io::Error>((status, started.enforced))
        })();
        match tried.map_err(|error| error.to_string())? {
            (status, Some(SandboxEnforcement::Sandbox { landlock, .. })) if status.code() == Some(7) => Ok(landlock),
            (status, _) => Err(format!("what was tried in it ended with {status}")),
        }
    }
}

/// A folder to try a sandbox in, which goes away again.
struct ProbeFolder(PathBuf);

impl ProbeFolder {
    fn make() -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let base = fs::canonicalize(std::env::temp_dir())?;
        loop {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let folder = base.join(format!("prism-probe-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(folder)),
            }
        }
    }
}

impl Drop for ProbeFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Whether it is where only the system's administrator writes, and gains nothing from being started.
fn is_the_systems(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|found| {
        let is_setuid = found.mode() & 0o6000 != 0;
        found.is_file() && found.uid() == 0 && found.mode() & 0o022 == 0 && found.mode() & 0o111 != 0 && !is_setuid
    })
}

/// What to do about what bubblewrap says. Its words choose the advice, and nothing else.
fn advice(said: String) -> String {
    let restricted = fs::read_to_string("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
    let next = if restricted.is_ok_and(|value| value.trim() == "1") {
        "AppArmor keeps programs from making user namespaces: give bwrap a profile with `userns`, or set the sysctl \
         kernel.apparmor_restrict_unprivileged_userns to 0"
    } else if said.contains("No permissions to create") || said.contains("Operation not permitted") {
        "this machine, or the container that this is, allows no user namespaces: see the sysctls \
         user.max_user_namespaces and kernel.unprivileged_userns_clone"
    } else {
        return said;
    };
    format!("{said}; {next}")
}

impl InnerProgram {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), opened: Mutex::new(Arc::new(by_path(path)?)) })
    }

    /// One that was removed cannot be mounted; after an upgrade the new one is taken, which says if it is too different.
    fn handle(&self) -> io::Result<Arc<OwnedFd>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if fstat(&*opened)?.st_nlink == 0 {
            let gone = |error| io::Error::other(format!("{} cannot be opened: {error}", self.path.display()));
            *opened = Arc::new(by_path(&self.path).map_err(gone)?);
        }
        Ok(opened.clone())
    }
}

fn by_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

impl NetworkAccess {
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "none",
            Self::All => "all",
        }
    }
}

/// What is started, and what has become of its fence.
#[derive(Debug)]
pub(crate) struct BegunChild {
    pub(crate) child: std::process::Child,
    pub(crate) enforced: Option<SandboxEnforcement>,
    /// The first process of its pid namespace, if it has one.
    pub(crate) first: Option<InitProcess>,
}

/// A file in memory with these bytes, to be read from its beginning.
fn memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SeekFrom, memfd_create, seek};
    let file = memfd_create("prism", MemfdFlags::CLOEXEC)?;
    let mut written = 0;
    while written < bytes.len() {
        written += rustix::io::write(&file, &bytes[written..])?;
    }
    seek(&file, SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests;
