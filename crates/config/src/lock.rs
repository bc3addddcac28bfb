//! One daemon per home (D-02). The kernel holds the lock for as long as the daemon lives, however it ends; the text of
//! the file only says who that is.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use prism_os::clock::now_rfc3339;
use prism_os::process::ProcessIdentity;
use serde::{Deserialize, Serialize};

/// The file, in Prism's home. It is never removed: a lock on a removed file would be a lock beside another one.
pub const FILE: &str = "daemon.lock";

/// How long a holder may take to write who it is, and how often to look.
const NAMED_WITHIN: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);

/// The lock, held. Dropping it lets the next daemon in.
#[derive(Debug)]
pub struct DaemonLock {
    file: File,
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    pub pid: u32,
    /// The kernel's clock ticks since boot.
    pub process_started: u64,
    /// RFC 3339.
    pub started_at: String,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// `None`: it has not said who it is; it is just starting, or ending.
    #[error("another daemon holds {}", path.display())]
    Held { path: PathBuf, holder: Option<LockHolder> },
    #[error("cannot lock {}\n  fix: export PRISM_HOME=/some/folder on a local disk", path.display())]
    Open { path: PathBuf, source: io::Error },
}

impl DaemonLock {
    /// Takes the lock of a home. Text that a dead daemon left is overwritten.
    pub fn take(home: &Path) -> Result<Self, LockError> {
        let path = home.join(FILE);
        let cannot = |source| LockError::Open { path: path.clone(), source };
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
        let mut file = options.map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held { holder: holder(&mut file), path }),
            Err(TryLockError::Error(source)) => return Err(cannot(source)),
        }
        let ProcessIdentity { pid, start_ticks } = ProcessIdentity::this_process();
        let ours = LockHolder { pid, process_started: start_ticks, started_at: now_rfc3339() };
        write(&mut file, &ours).map_err(cannot)?;
        Ok(Self { file })
    }
}

impl Drop for DaemonLock {
    fn drop(&mut self) {
        // Closing the file unlocks it. Without its text nobody is named who no longer runs.
        let _ = self.file.set_len(0);
    }
}

fn write(file: &mut File, holder: &LockHolder) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    let mut text = serde_json::to_vec(holder).map_err(io::Error::other)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// Reads who holds the lock. Between the lock and the text there is a moment; and the text may be a dead daemon's until
/// then.
fn holder(file: &mut File) -> Option<LockHolder> {
    let begun = Instant::now();
    loop {
        let mut text = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
        let named = read.ok().and_then(|_| serde_json::from_str::<LockHolder>(&text).ok());
        match named.filter(|holder| holder.process().is_alive()) {
            None if begun.elapsed() < NAMED_WITHIN => thread::sleep(LOOK),
            named => return named,
        }
    }
}

impl LockHolder {
    /// Returns who holds the lock of a home, if it has said so and lives. Takes no lock, so it is in nobody's way.
    #[must_use]
    pub fn of(home: &Path) -> Option<Self> {
        let text = fs::read_to_string(home.join(FILE)).ok()?;
        serde_json::from_str(&text).ok().filter(|holder: &Self| holder.process().is_alive())
    }

    /// Names the process.
    #[must_use]
    pub fn process(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_ticks: self.process_started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-02
    #[test]
    fn one_holds_it_and_the_other_learns_who() {
        let home = tempfile::tempdir().unwrap();
        let first = DaemonLock::take(home.path()).unwrap();
        let Err(LockError::Held { holder: Some(holder), .. }) = DaemonLock::take(home.path()) else {
            panic!("it is held")
        };
        assert_eq!(holder.process(), ProcessIdentity::this_process());
        drop(first);
        DaemonLock::take(home.path()).unwrap();
    }

    // D-02
    #[test]
    fn the_text_of_a_dead_daemon_keeps_nobody_out() {
        let home = tempfile::tempdir().unwrap();
        let dead = r#"{"pid":1,"process_started":12345678901,"started_at":"2020-01-01T00:00:00Z"} and much more text"#;
        std::fs::write(home.path().join(FILE), dead).unwrap();
        let _lock = DaemonLock::take(home.path()).unwrap();
        let text = std::fs::read_to_string(home.path().join(FILE)).unwrap();
        let holder: LockHolder = serde_json::from_str(&text).unwrap();
        assert_eq!(holder.pid, std::process::id());
    }

    #[test]
    fn who_does_not_say_who_it_is_is_waited_for_only_so_long() {
        let home = tempfile::tempdir().unwrap();
        let file = File::create(home.path().join(FILE)).unwrap();
        file.lock().unwrap();
        let refused = DaemonLock::take(home.path());
        assert!(matches!(refused, Err(LockError::Held { holder: None, .. })), "{refused:?}");
    }
}
