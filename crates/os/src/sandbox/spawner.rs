//! The thread that starts all sandboxes. bwrap asks to die with its parent, and that is the thread, not the process: so this one
//! never ends. It has left the person's session of keys, and what it starts inherits that.

use std::{
    io,
    process::{Child, Command},
    sync::{OnceLock, mpsc},
    thread,
};

struct SpawnJob {
    command: Command,
    reply: mpsc::SyncSender<io::Result<Child>>,
}

/// Commands that wait for the thread. Beyond it whoever brings one waits until there is room: each takes a millisecond.
const MAX_WAITING: usize = 64;

/// The one answer to each; who asked waits for it, so there is always room.
const ANSWER: usize = 1;

/// Starts a command there. Blocks until it is started.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Option<mpsc::SyncSender<SpawnJob>>> = OnceLock::new();
    let gone = || io::Error::other("the thread that starts sandboxes is gone");
    let spawner = SPAWNER.get_or_init(begin).as_ref().ok_or_else(gone)?;
    let (reply, started) = mpsc::sync_channel(ANSWER);
    spawner.send(SpawnJob { command, reply }).map_err(|_| gone())?;
    started.recv().map_err(|_| gone())?
}

fn begin() -> Option<mpsc::SyncSender<SpawnJob>> {
    let (jobs, inbox) = mpsc::sync_channel::<SpawnJob>(MAX_WAITING);
    let work = move || {
        leave_keyring();
        for SpawnJob { mut command, reply } in inbox {
            let _ = reply.send(command.spawn());
        }
    };
    thread::Builder::new().name("prism-spawner".to_owned()).spawn(work).ok().map(|_| jobs)
}

#[expect(unsafe_code, reason = "nobody wraps this call")]
fn leave_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: it takes a number and a name that may be null, and gives this thread a keyring of its own.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
}
