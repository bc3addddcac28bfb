//! Folds the write-ahead log into the database. Left to SQLite, one commit in sixty would do it, and its callers and all
//! behind them would wait for a thousand pages and two more fsyncs. Here a thread of its own copies the pages while others
//! write; what has come meanwhile is left, and the writer folds that in between two commits. Then the log begins anew.

use std::{
    fs, io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;

use crate::connection::connect;

/// Commits between two checkpoints. A commit of the mesh writes up to twenty pages, so the log has some thousands by then.
const EVERY: u64 = 200;

/// The bytes of a log, left by a process that was killed, at which the next one folds it in when it starts: it may live no
/// longer than the last.
const LEFT_BYTES: u64 = 1 << 20;

/// Wishes to be woken that may wait. Beyond it they are dropped: one is as good as two.
const MAX_WISHES: usize = 1;

#[derive(Debug)]
pub(crate) struct Checkpointer {
    /// Gone when it is to end.
    wake: Mutex<Option<SyncSender<()>>>,
    /// The writer is to do the rest.
    rest: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Checkpointer {
    pub(crate) fn spawn(path: &Path) -> io::Result<Self> {
        let (wake, woken) = sync_channel(MAX_WISHES);
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if fs::metadata(log).is_ok_and(|log| log.len() > LEFT_BYTES) {
            let _ = wake.try_send(());
        }
        let rest = Arc::new(AtomicBool::new(false));
        let (path, wanted) = (path.to_owned(), rest.clone());
        let run = move || run(&path, &woken, &wanted);
        let thread = thread::Builder::new().name("prism-checkpoint".to_owned()).spawn(run)?;
        Ok(Self { wake: Mutex::new(Some(wake)), rest, thread: Mutex::new(Some(thread)) })
    }

    /// Told by the writer of every commit, after its callers.
    pub(crate) fn committed(&self, connection: &Connection, commits: u64) {
        if self.rest.swap(false, Ordering::Relaxed) {
            // What fails is tried again some commits later.
            let _ = fold(connection);
        }
        if commits.is_multiple_of(EVERY)
            && let Some(wake) = &*self.wake.lock().unwrap_or_else(PoisonError::into_inner)
        {
            let _ = wake.try_send(());
        }
    }

    /// Ends it. The last connection to close tidies up, and that has to be the writer's.
    pub(crate) fn close(&self) {
        drop(self.wake.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // If it has panicked, the panic hook has reported it, and commits do its work.
        let _ = thread.map(JoinHandle::join);
    }
}

fn run(path: &Path, woken: &Receiver<()>, rest: &AtomicBool) {
    let mut kept = None;
    while woken.recv().is_ok() {
        // Opened when it is first needed: most daemons never write that much.
        let connection = match kept.take() {
            Some(connection) => Ok(connection),
            None => connect(path),
        };
        // What fails here is tried again, and in the end by a commit, which tells its callers.
        kept = connection.and_then(|connection| fold(&connection).map(|()| connection)).ok();
        rest.store(true, Ordering::Relaxed);
    }
}

/// Folds in what may be while others write, and makes nobody wait.
fn fold(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}
