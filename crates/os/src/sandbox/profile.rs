//! What there is in a sandbox, in bubblewrap's words. The order is the meaning: what comes later lies above what came before, so
//! it goes from the system to private folders, tools, granted folders, and what is kept from them.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, MetadataExt},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{getegid, geteuid};

use super::{INNER, NetworkAccess, PrivateFolder, SandboxRoom, fence::SandboxPolicy, memory};
use crate::root::{FolderHandle, place};

/// Of the system, as they are. Others of its folders are links into the first, or folders of their own.
const SYSTEM: [&str; 9] = [
    "/usr",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/home/linuxbrew/.linuxbrew",
    "/run/current-system",
    "/run/wrappers",
    "/var/cache/fontconfig",
];
const MERGED: [&str; 6] = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Of `/etc`, what programs need to run. Who the machine's users are, its keys and its passwords are not.
const ETC: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "ssl",
    "ca-certificates",
    "ca-certificates.conf",
    // Debian's Chromium starts with what lies there, and not without.
    "chromium.d",
    "pki",
    "localtime",
    "timezone",
    "nsswitch.conf",
    "host.conf",
    "gai.conf",
    "protocols",
    "services",
    "mime.types",
    "os-release",
    "fonts",
    "gitconfig",
    "inputrc",
    "terminfo",
    "magic",
    "profile",
    "bash.bashrc",
    "debian_version",
    "java-17-openjdk",
    "java-21-openjdk",
    "python3",
];

/// What is there already, with all that lies beneath it: lists for landlock name it, too.
const WHOLE: [&str; 4] = ["/usr", "/proc", "/sys", "/dev"];

/// What is made anew. Beneath it something may be listed all the same.
const ANEW: [&str; 2] = ["/etc", "/tmp"];

/// Bytes that `/dev/shm` and `/var/tmp` may hold, both in memory. `/tmp` is on the disk.
const IN_MEMORY: &str = "536870912";

/// A profile while it is written, and what has to stay open until bubblewrap has it.
#[derive(Debug)]
pub(super) struct BwrapProfile {
    words: Vec<OsString>,
    pub(super) files: Vec<OwnedFd>,
    roots: Vec<FolderHandle>,
    /// The descriptors that bubblewrap and the inner program are given.
    pub(super) inherited: Vec<RawFd>,
    /// What landlock lets be written.
    pub(super) written: Vec<PathBuf>,
    /// What is the machine's own, and not this sandbox's.
    shared: Vec<PathBuf>,
    /// What is this sandbox's own.
    private: Vec<PrivateFolder>,
    /// Sockets of others in what is shared.
    pub(super) covered: Vec<PathBuf>,
    inner: Option<Arc<OwnedFd>>,
}

impl BwrapProfile {
    /// `env` is what the command is given, `cwd` where it starts.
    pub(super) fn new(
        fence: &SandboxPolicy,
        room: &SandboxRoom,
        env: &BTreeMap<OsString, OsString>,
        cwd: &Path,
    ) -> io::Result<Self> {
        let mut profile = Self {
            words: Vec::new(),
            files: Vec::new(),
            roots: Vec::new(),
            inherited: Vec::new(),
            written: Vec::new(),
            shared: Vec::new(),
            private: Vec::new(),
            covered: Vec::new(),
            inner: None,
        };
        profile.say("--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try");
        if room.network == NetworkAccess::Own {
            profile.say("--unshare-net");
        }
        profile.say("--die-with-parent --clearenv --cap-drop ALL");
        profile.system(room, env)?;
        profile.own_folders(room);
        profile.tools(fence);
        profile.granted(fence, room)?;
        profile.cover_sockets();
        profile.closed(fence);
        let inner = room.sandbox.inner.handle()?;
        profile.by_handle("--ro-bind-fd", inner.as_raw_fd(), Path::new(INNER));
        profile.inner = Some(inner);
        profile.say("--remount-ro /");
        for (name, value) in env {
            profile.words.extend(["--setenv".into(), name.clone(), value.clone()]);
        }
        profile.words.extend(["--chdir".into(), cwd.into()]);
        Ok(profile)
    }

    /// As bubblewrap reads them from a file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.words.iter().flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect()
    }

    pub(super) fn inherit(&mut self, file: OwnedFd) -> RawFd {
        let number = file.as_raw_fd();
        self.inherited.push(number);
        self.files.push(file);
        number
    }

    fn system(&mut self, room: &SandboxRoom, env: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        for folder in SYSTEM {
            self.read_only(Path::new(folder), Path::new(folder));
        }
        for name in MERGED {
            let folder = Path::new("/").join(name);
            match fs::read_link(&folder) {
                Ok(target) => self.words.extend(["--symlink".into(), target.into(), folder.into()]),
                Err(_) => self.read_only(&folder, &folder),
            }
        }
        for name in ETC {
            let file = Path::new("/etc").join(name);
            self.read_only(&file, &file);
        }
        self.identity(env)?;
        match room.network {
            NetworkAccess::Own => self.text("127.0.0.1 localhost\n::1 localhost\n", "/etc/hosts")?,
            NetworkAccess::All => {
                for file in ["/etc/hosts", "/etc/resolv.conf"].map(Path::new) {
                    if let Ok(real) = file.canonicalize() {
                        self.read_only(&real, file);
                    }
                }
            }
        }
        self.say("--proc /proc --dev /dev --dir /run");
        for folder in ["/dev/shm", "/var/tmp"] {
            self.say(&format!("--perms 1777 --size {IN_MEMORY} --tmpfs {folder}"));
        }
        self.written.extend(["/dev", "/proc", "/var/tmp"].map(PathBuf::from));
        Ok(())
    }

    /// Tools ask who they run as; whoever else has an account here is nobody's business.
    fn identity(&mut self, env: &BTreeMap<OsString, OsString>) -> io::Result<()> {
        let (uid, gid) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        let plain = |name: &str| {
            let value = env.get(OsStr::new(name)).and_then(|value| value.to_str());
            value.filter(|value| !value.contains([':', '\n'])).map(str::to_owned)
        };
        let name = if uid == 0 { "root".to_owned() } else { plain("USER").unwrap_or_else(|| "user".to_owned()) };
        let home = plain("HOME").unwrap_or_else(|| "/".to_owned());
        let nobody = "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n";
        self.text(&format!("{name}:x:{uid}:{gid}::{home}:/bin/sh\n{nobody}"), "/etc/passwd")?;
        self.text(&format!("{name}:x:{gid}:\nnogroup:x:65534:\n"), "/etc/group")
    }

    fn own_folders(&mut self, room: &SandboxRoom) {
        let temporary = PrivateFolder { seems: PathBuf::from("/tmp"), lies: room.temporary.clone() };
        for private in [&temporary].into_iter().chain(&room.home).chain(&room.private) {
            if !self.leads_away(&private.seems) {
                self.writable(&private.lies, &private.seems);
                self.private.push(private.clone());
            }
        }
    }

    /// Whether a link is on the way to this within a folder of the sandbox's own, where only what has run in there can have put it.
    /// Bubblewrap follows it out here, where all of the machine can be reached yet, and makes what something is to be mounted on.
    fn leads_away(&self, seems: &Path) -> bool {
        let is_link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        self.private.iter().any(|private| {
            let Ok(below) = seems.strip_prefix(&private.seems) else { return false };
            let mut way = private.lies.clone();
            below.components().any(|name| {
                way.push(name);
                is_link(&way)
            })
        })
    }

    fn tools(&mut self, fence: &SandboxPolicy) {
        let is_closed = |path: &Path| fence.closed.iter().any(|closed| path.starts_with(closed));
        let is_made = |path: &Path| {
            let is_there = |own: &&str| path == Path::new(*own);
            path.parent().is_none()
                || WHOLE.iter().any(|made| path.starts_with(made))
                || SYSTEM.iter().chain(&ANEW).any(is_there)
        };
        let is_merged = |path: &Path| MERGED.iter().any(|name| path.starts_with(Path::new("/").join(name)));
        let mut read: Vec<&PathBuf> =
            fence.read.iter().filter(|path| !is_made(path) && !is_merged(path) && !is_closed(path)).collect();
        read.sort();
        read.dedup();
        read.retain(|path| !self.leads_away(path));
        let mut listed: Vec<(&Path, PathBuf)> = Vec::new();
        for path in read {
            let Ok(real) = path.canonicalize() else { continue };
            // What lies in one that is listed is there with it, and each mount takes its time. They come in the order of their names.
            let is_there = listed.iter().any(|(above, lies)| path.starts_with(above) && real.starts_with(lies));
            if !is_there {
                self.read_only(path, path);
                listed.push((path, real));
            }
        }
        let mut write: Vec<&PathBuf> = fence.write.iter().filter(|path| !is_made(path) && !is_closed(path)).collect();
        write.sort();
        write.dedup();
        write.retain(|path| !self.leads_away(path));
        for path in write {
            self.writable(path, path);
        }
    }

    /// By the handles that were checked: whatever has become of their names, these are the folders.
    fn granted(&mut self, fence: &SandboxPolicy, room: &SandboxRoom) -> io::Result<()> {
        let mut held = Vec::new();
        for root in &fence.held {
            let place = place(root)?;
            if place.parent().is_none() {
                let why = "the whole file system is granted, and a sandbox cannot be made of that; ask for a folder";
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
            if self.leads_away(&place) {
                let why =
                    format!("what has run in the sandbox before has left a link where {} belongs", place.display());
                return Err(io::Error::other(why));
            }
            held.push((place, root));
        }
        held.sort_by(|one, other| one.0.cmp(&other.0));
        for (place, root) in &held {
            self.by_handle("--bind-fd", root.as_fd().as_raw_fd(), place);
            self.written.push(place.clone());
            self.shared.push(place.clone());
        }
        for (place, root) in &held {
            self.hold_in_place(place, root, &fence.closed);
        }
        for (place, root) in &held {
            // One that is granted itself is meant to be written.
            let meant = |name: &&&str| held.iter().any(|(other, _)| *other == place.join(**name));
            for name in room.guarded.iter().filter(|name| !meant(name)) {
                let Ok(folder) = root.beneath(Path::new(name)) else { continue };
                // A link within the granted folder leads to what is there by its own name, too.
                if super::profile::place(&folder).is_ok_and(|real| real == place.join(name)) {
                    self.by_handle("--ro-bind-fd", folder.as_fd().as_raw_fd(), &place.join(name));
                    self.roots.push(folder);
                }
            }
        }
        Ok(())
    }

    /// What is closed could be moved away with the folder that it lies in, and something else put there. What is a mount is not
    /// moved.
    fn hold_in_place(&mut self, place: &Path, root: &FolderHandle, closed: &[PathBuf]) {
        let mut above: Vec<&Path> = closed
            .iter()
            .filter_map(|path| path.strip_prefix(place).ok())
            .flat_map(|below| below.ancestors().skip(1))
            .filter(|folder| folder.components().next().is_some())
            .collect();
        above.sort();
        above.dedup();
        for folder in above {
            let Ok(opened) = root.beneath(folder) else { continue };
            self.by_handle("--bind-fd", opened.as_fd().as_raw_fd(), &place.join(folder));
            self.roots.push(opened);
        }
    }

    /// Somebody outside listens at these, and whoever connects has them do something out there. Before Linux 7.1 landlock does not
    /// know sockets, and no filter sees a path; one that is made later, or anew, is not covered.
    fn cover_sockets(&mut self) {
        let listening = fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let mut sockets: Vec<PathBuf> = listening
            .lines()
            .filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
            .filter(|path| self.shared.iter().any(|folder| path.starts_with(folder)))
            .filter(|path| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()))
            // An administrator sees what nobody inside comes to, and bubblewrap could cover nothing there.
            .filter(|path| path.ancestors().skip(1).all(can_be_entered))
            .collect();
        sockets.sort();
        sockets.dedup();
        for socket in sockets {
            self.words.extend(["--ro-bind".into(), "/dev/null".into(), socket.clone().into()]);
            self.covered.push(socket);
        }
    }

    /// What is closed lies beneath nothing that is listed, unless somebody has granted a folder above it. In a folder of the
    /// sandbox's own it is not, whatever that seems to be.
    fn closed(&mut self, fence: &SandboxPolicy) {
        for closed in &fence.closed {
            let is_shown = self.shared.iter().any(|path| closed.starts_with(path));
            if is_shown && closed.is_dir() {
                self.say("--perms 0000 --size 4096 --tmpfs");
                self.words.push(closed.into());
            } else if is_shown && closed.is_file() {
                self.words.extend(["--ro-bind".into(), "/dev/null".into(), closed.into()]);
            }
        }
    }

    fn say(&mut self, words: &str) {
        self.words.extend(words.split(' ').map(OsString::from));
    }

    fn read_only(&mut self, lies: &Path, seems: &Path) {
        self.shared.push(seems.to_owned());
        self.words.extend(["--ro-bind-try".into(), lies.into(), seems.into()]);
    }

    fn writable(&mut self, lies: &Path, seems: &Path) {
        if lies == seems {
            self.shared.push(seems.to_owned());
        }
        self.words.extend(["--bind-try".into(), lies.into(), seems.into()]);
        self.written.push(seems.to_owned());
    }

    fn by_handle(&mut self, option: &str, handle: RawFd, seems: &Path) {
        self.words.extend([option.into(), handle.to_string().into(), seems.into()]);
        self.inherited.push(handle);
    }

    fn text(&mut self, text: &str, seems: &str) -> io::Result<()> {
        let number = self.inherit(memory(text.as_bytes())?);
        self.say(&format!("--perms 0644 --ro-bind-data {number} {seems}"));
        Ok(())
    }
}

/// Whether a folder can be entered by who has this user's number and groups, and no other rights.
fn can_be_entered(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|found| {
        let is_in_group = || {
            let groups = rustix::process::getgroups().unwrap_or_default();
            found.gid() == getegid().as_raw() || groups.iter().any(|group| group.as_raw() == found.gid())
        };
        // Whoever owns it can open it.
        let is_own = found.uid() == geteuid().as_raw();
        is_own || found.mode() & if is_in_group() { 0o010 } else { 0o001 } != 0
    })
}
