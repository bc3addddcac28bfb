//! What a child may touch of the file system, kept by the kernel (landlock): it and all that it starts, whoever's files they
//! are, whatever they are named. Which folders that are is decided elsewhere.
//!
//! The idea: landlock binds a thread, and whatever that thread starts is bound with it. So a thread of its own binds itself,
//! starts the child, and ends. Nothing has to run between fork and exec, and the daemon stays free.
//!
//! A fence can only be made of what is allowed: there is no "all but this folder". A closed folder beneath an allowed one is
//! therefore gone around, by allowing what lies beside it; in the folders on the way nothing new can be made then, and names
//! can be listed, also the closed folder's.
//!
//! By itself it does not keep from the network, from looking whether a name is there (`stat`), from changing the modes of what is
//! the user's, nor from programs that are handed to an allowed interpreter (or to the system's loader) as data. Where there is
//! `room`, it is the innermost of three layers (`sandbox.rs`), and they do.

use std::{
    fs, io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    thread,
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, RestrictionStatus, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, fstat, openat},
    io::Errno,
    thread::{CapabilitySet, capabilities, set_capabilities},
};

use super::{NetworkAccess, SandboxRoom, refuse_what_landlock_cannot};
use crate::root::{FolderHandle, place};

/// What is allowed. Whatever is not there is left out; so is what is closed.
#[derive(Debug, Default)]
pub struct SandboxPolicy {
    /// Files and folders that may be read and, unless `exec` says otherwise, executed.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be written as well.
    pub write: Vec<PathBuf>,
    /// The same by handle, for folders whose names somebody could swap.
    pub held: Vec<FolderHandle>,
    /// If it is there, these files and folders may be executed and no others. The system's loader is always among them, as
    /// the kernel has it start what is dynamically linked.
    pub exec: Option<Vec<PathBuf>>,
    /// Folders that are never touched, even beneath one of the others, and in a sandbox files. As the kernel names them, without
    /// links.
    pub closed: Vec<PathBuf>,
    /// The sandbox that all this is in; landlock alone if `None`.
    pub room: Option<SandboxRoom>,
}

/// What has become of a fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxEnforcement {
    /// All three layers; on a kernel without landlock, the other two.
    Sandbox {
        /// The kernel's version of landlock.
        landlock: Option<u32>,
        network: NetworkAccess,
        /// Sockets in the granted folders at which somebody outside listens: they are not there inside.
        covered: Vec<PathBuf>,
    },
    Landlock {
        /// The kernel's version of it.
        abi: u32,
        /// Whether all that was asked for holds. An older kernel may not know how to keep a file from being cut, say.
        is_whole: bool,
        /// Folders that nothing new can be made in, as a closed one lies beneath.
        cramped: Vec<PathBuf>,
    },
    None {
        why: String,
    },
}

/// The rights that are asked for; the kernel's own may be fewer. The last that was added keeps Unix sockets of others apart (Linux 7.1).
const KNOWN: ABI = ABI::V9;

/// What a kernel must have for a fence to be whole.
const WHOLE: ABI = ABI::V7;

/// Entries that are looked at in a folder above a closed one. What comes after is not allowed.
const MAX_BESIDE: usize = 4096;

// === impl SandboxPolicy ===

impl SandboxPolicy {
    /// Starts something from within the fence: what `start` does, it does bound by it. Blocks until that has returned.
    ///
    /// A kernel without landlock is no error, and `start` runs all the same; a kernel that has it and refuses is one.
    pub fn spawn<T: Send>(&self, start: impl FnOnce() -> T + Send) -> io::Result<(T, SandboxEnforcement)> {
        thread::scope(|scope| {
            let bound = move || {
                let enforced = self.enforce()?;
                Ok((start(), enforced))
            };
            let thread = thread::Builder::new().name("prism-fence".to_owned()).spawn_scoped(scope, bound)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Binds this thread.
    fn enforce(&self) -> io::Result<SandboxEnforcement> {
        drop_powers();
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(KNOWN))
            // Nobody outside is sent a signal, nor spoken to by a socket without a name.
            .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
            .and_then(Ruleset::create)
            .map_err(io::Error::other)?;
        let mut rules = FenceRules { ruleset: Some(ruleset), closed: &self.closed, cramped: Vec::new() };
        let read = if self.exec.is_some() { READ } else { READ | AccessFs::Execute };
        for path in &self.read {
            rules.allow_path(path, read)?;
        }
        for path in &self.write {
            rules.allow_path(path, read | WRITE)?;
        }
        for folder in &self.held {
            let place = place(folder)?;
            rules.allow(folder, &place, read | WRITE)?;
        }
        for path in self.exec.iter().flatten() {
            rules.allow_path(path, AccessFs::Execute.into())?;
        }
        if self.exec.is_some() {
            for loader in loaders() {
                rules.allow_path(&loader, AccessFs::Execute.into())?;
            }
        }
        let ruleset = rules.ruleset.expect("it is put back wherever it is taken");
        let status = ruleset.restrict_self().map_err(io::Error::other)?;
        let enforced = SandboxEnforcement::of(&status, rules.cramped);
        if let SandboxEnforcement::Landlock { .. } = enforced {
            refuse_what_landlock_cannot().map_err(io::Error::other)?;
        }
        Ok(enforced)
    }
}

/// Binds this process, inside of a sandbox: what is there may be read, as it was listed; this may be written and, if it is said,
/// that executed; and no port is connected to that is closed. Returns the kernel's version of landlock; 0 if it has none.
///
/// Not before bubblewrap has done its work: who is bound mounts nothing. And all in one set: a second one, even if it says nothing
/// of files, keeps every file from being moved to another folder.
pub(crate) fn bind_inside(written: &[PathBuf], exec: Option<&[PathBuf]>, closed_ports: &[u16]) -> io::Result<u32> {
    let ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(
            |ruleset| if closed_ports.is_empty() { Ok(ruleset) } else { ruleset.handle_access(AccessNet::ConnectTcp) },
        )
        .and_then(Ruleset::create)
        .and_then(|ruleset| {
            // What is allowed can be said, and nothing else.
            let open = (0..=u16::MAX).filter(|port| !closed_ports.is_empty() && !closed_ports.contains(port));
            ruleset.add_rules(open.map(|port| Ok::<_, RulesetError>(NetPort::new(port, AccessNet::ConnectTcp))))
        });
    let mut rules = FenceRules { ruleset: Some(ruleset.map_err(io::Error::other)?), closed: &[], cramped: Vec::new() };
    let read = if exec.is_some() { READ } else { READ | AccessFs::Execute };
    rules.allow_path(Path::new("/"), read)?;
    for path in written {
        rules.allow_path(path, read | WRITE)?;
    }
    if let Some(exec) = exec {
        for path in exec.iter().cloned().chain(loaders()) {
            rules.allow_path(&path, AccessFs::Execute.into())?;
        }
    }
    let ruleset = rules.ruleset.expect("it is put back wherever it is taken");
    match SandboxEnforcement::of(&ruleset.restrict_self().map_err(io::Error::other)?, Vec::new()) {
        SandboxEnforcement::Landlock { abi, .. } => Ok(abi),
        _ => Ok(0),
    }
}

/// Gives up what leads around any fence, where the daemon has it because it is root's: to look into other processes
/// (`/proc/PID/environ` asks for nothing else), at raw memory and disks, to load code into the kernel. As nothing that is started
/// can gain (`no_new_privs`), it stays given up. Where it fails the fence itself still stands.
fn drop_powers() {
    let powers = CapabilitySet::SYS_ADMIN
        | CapabilitySet::SYS_PTRACE
        | CapabilitySet::SYS_MODULE
        | CapabilitySet::SYS_RAWIO
        | CapabilitySet::SYS_BOOT
        | CapabilitySet::MKNOD
        | CapabilitySet::PERFMON
        | CapabilitySet::BPF;
    let Ok(mut held) = capabilities(None) else { return };
    if held.permitted.intersects(powers) {
        for set in [&mut held.effective, &mut held.permitted, &mut held.inheritable] {
            set.remove(powers);
        }
        let _ = set_capabilities(None, held);
    }
}

const READ: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{ ReadFile | ReadDir });

/// All but the making of devices: for whoever may make them (root), one is a way around every fence.
const WRITE: BitFlags<AccessFs> = landlock::make_bitflags!(AccessFs::{
    WriteFile | Truncate | IoctlDev | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer
});

/// What a file can be allowed; the rest is about folders.
const OF_FILES: BitFlags<AccessFs> =
    landlock::make_bitflags!(AccessFs::{ Execute | ReadFile | WriteFile | Truncate | IoctlDev });

/// Returns the system's loaders: what is dynamically linked cannot be started without.
fn loaders() -> Vec<PathBuf> {
    let names = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            ["ld-linux", "ld-musl", "ld64.so"].iter().any(|loader| name.starts_with(loader))
        })
    };
    ["/lib64", "/lib"].into_iter().flat_map(names).map(|entry| entry.path()).collect()
}

/// The fence while it is being put up.
struct FenceRules<'a> {
    /// `None` only for a moment, as adding a rule consumes it.
    ruleset: Option<RulesetCreated>,
    closed: &'a [PathBuf],
    cramped: Vec<PathBuf>,
}

impl FenceRules<'_> {
    fn allow_path(&mut self, path: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        let opened = match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(opened) => opened,
            // Not there, or not for us: then nobody is kept from anything by its absence.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::PERM | Errno::LOOP) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let place = place(&opened)?;
        self.allow(&opened, &place, access)
    }

    /// Allows what is open, and lies at `place`; if a closed folder is beneath it, what lies beside that.
    fn allow(&mut self, opened: impl AsFd, place: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        if self.closed.iter().any(|closed| place.starts_with(closed)) {
            return Ok(());
        }
        let is_folder = FileType::from_raw_mode(fstat(&opened)?.st_mode) == FileType::Directory;
        if is_folder && self.closed.iter().any(|closed| closed.starts_with(place)) {
            return self.allow_around(opened, place, access);
        }
        self.add(opened, if is_folder { access } else { access & OF_FILES })
    }

    fn allow_around(&mut self, folder: impl AsFd, place: &Path, access: BitFlags<AccessFs>) -> io::Result<()> {
        self.add(&folder, access & AccessFs::ReadDir)?;
        if access.contains(AccessFs::MakeReg) {
            self.cramped.push(place.to_owned());
        }
        let listed = openat(&folder, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        for entry in rustix::fs::Dir::read_from(&listed)?.take(MAX_BESIDE) {
            let entry = entry?;
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(opened) = openat(&listed, entry.file_name(), flags, Mode::empty()) else { continue };
            // A link is nothing by itself: where it leads to has to be allowed too.
            if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::Symlink {
                let place = crate::root::place(&opened)?;
                self.allow(&opened, &place, access)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, opened: impl AsFd, access: BitFlags<AccessFs>) -> io::Result<()> {
        if access.is_empty() {
            return Ok(());
        }
        let ruleset = self.ruleset.take().expect("it is put back below");
        self.ruleset = Some(ruleset.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)?);
        Ok(())
    }
}

// === impl SandboxEnforcement ===

impl SandboxEnforcement {
    fn of(status: &RestrictionStatus, cramped: Vec<PathBuf>) -> Self {
        let none = |why: &str| Self::None { why: why.to_owned() };
        match (&status.ruleset, &status.landlock) {
            (_, LandlockStatus::NotImplemented) => none("this kernel has no landlock (Linux 5.13 and later)"),
            (_, LandlockStatus::NotEnabled) => none("landlock is not among the kernel's `lsm=`"),
            (RulesetStatus::NotEnforced, _) => none("the kernel has not taken the fence"),
            (ruleset, LandlockStatus::Available { effective_abi, kernel_abi }) => {
                let abi = kernel_abi.and_then(|abi| u32::try_from(abi).ok()).unwrap_or(*effective_abi as u32);
                let is_whole = *ruleset == RulesetStatus::FullyEnforced || *effective_abi >= WHOLE;
                Self::Landlock { abi, is_whole, cramped }
            }
        }
    }
}

#[cfg(test)]
mod tests;
