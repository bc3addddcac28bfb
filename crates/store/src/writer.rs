//! The one thread that writes. Callers hand it a write and learn when it is on disk; what they write is in the
//! tables' own files.
//!
//! The idea: a commit costs one fsync however much is in it. While one is under way further writes queue up, and
//! the next commit takes them all. So under load each caller still waits for about one fsync, and alone for
//! exactly one. See `rust-ecosystem.md`, section 4, for the figures.

use std::{
    collections::VecDeque,
    fmt, io, mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{Semaphore, oneshot};

/// Writes that may wait for the thread. Beyond it the caller waits before its write is even queued: a write
/// acknowledges something, and whoever asked for it is held up the same way by a slow disk as by a full queue.
const MAX_QUEUED: usize = 1024;

/// Writes in one transaction. Beyond it they wait for the next: larger ones gain little, and the first caller
/// waits for the last.
const MAX_BATCH: usize = 128;

/// The writing end of the database.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// This write was refused; others of the same moment may have succeeded.
    #[error("the database refused the write")]
    Refused { source: rusqlite::Error },
    /// The whole transaction failed, and this write with it.
    #[error("the database could not commit the write")]
    Commit { source: Arc<rusqlite::Error> },
    /// The writer is gone. Only if it died just now may the write have happened all the same.
    #[error("the database is closed")]
    Closed,
}

/// What the callers and the thread have in common.
struct Shared {
    queue: Mutex<Queue>,
    /// Rung when `queue` changes.
    changed: Condvar,
    /// The free places of the queue; closed with it.
    places: Semaphore,
    commits: AtomicU64,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

struct Job {
    write: Write,
    done: oneshot::Sender<Result<(), WriteError>>,
}

type Write = Box<dyn FnOnce(&Connection) -> rusqlite::Result<()> + Send>;

// === impl Writer ===

impl Writer {
    pub(crate) fn spawn(connection: Connection) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            places: Semaphore::new(MAX_QUEUED),
            commits: AtomicU64::new(0),
        });
        let thread = thread::Builder::new().name("prism-store".to_owned()).spawn({
            let shared = shared.clone();
            move || run(connection, &shared)
        })?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Returns once the write is on disk, or has failed. It is not undone if the future is dropped.
    pub(crate) async fn write(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<()> + Send + 'static,
    ) -> Result<(), WriteError> {
        let place = self.shared.places.acquire().await.map_err(|_| WriteError::Closed)?;
        let (done, answer) = oneshot::channel();
        {
            let mut queue = self.shared.queue();
            // The place may have come just before the end.
            if queue.closed {
                return Err(WriteError::Closed);
            }
            queue.jobs.push_back(Job { write: Box::new(write), done });
            // The thread gives the place back when it takes the job.
            place.forget();
        }
        self.shared.changed.notify_one();
        answer.await.unwrap_or(Err(WriteError::Closed))
    }

    pub(crate) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Refuses new writes and waits until the queued ones are done and the thread has ended.
    pub(crate) fn close(&self) {
        self.shared.close();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // If it has panicked, its callers have been told, and the panic hook has reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("commits", &self.commits()).finish_non_exhaustive()
    }
}

// === impl Shared ===

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it holds the lock, and a queue is whole between any two of its operations.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.queue().closed = true;
        self.places.close();
        self.changed.notify_one();
    }

    /// Waits for work and takes what is there, at most a batch. Nothing is left when it returns nothing.
    fn next_batch(&self) -> Vec<Job> {
        let mut queue = self
            .changed
            .wait_while(self.queue(), |queue| queue.jobs.is_empty() && !queue.closed)
            .unwrap_or_else(PoisonError::into_inner);
        let count = queue.jobs.len().min(MAX_BATCH);
        let batch = queue.jobs.drain(..count).collect();
        drop(queue);
        self.places.add_permits(count);
        batch
    }
}

// === the thread ===

/// Fails whoever still waits when the thread ends, by a panic too: an unanswered caller would wait for ever.
struct LastWords<'a>(&'a Shared);

impl Drop for LastWords<'_> {
    fn drop(&mut self) {
        self.0.close();
        let unanswered = mem::take(&mut self.0.queue().jobs);
        drop(unanswered);
    }
}

fn run(mut connection: Connection, shared: &Shared) {
    let _last_words = LastWords(shared);
    loop {
        let batch = shared.next_batch();
        if batch.is_empty() {
            break;
        }
        let (writes, callers): (Vec<_>, Vec<_>) = batch.into_iter().map(|job| (job.write, job.done)).unzip();
        match commit(&mut connection, writes) {
            Ok(outcomes) => {
                shared.commits.fetch_add(1, Ordering::Relaxed);
                for (caller, outcome) in callers.into_iter().zip(outcomes) {
                    // A caller that has left does not mind, here and below.
                    let _ = caller.send(outcome.map_err(|source| WriteError::Refused { source }));
                }
            }
            Err(source) => {
                let source = Arc::new(source);
                for caller in callers {
                    let _ = caller.send(Err(WriteError::Commit { source: source.clone() }));
                }
            }
        }
    }
    // Only makes the next start quicker.
    let _ = connection.execute_batch("PRAGMA optimize");
}

/// Does all writes in one transaction and returns what became of each. A write that fails is undone alone.
fn commit(connection: &mut Connection, writes: Vec<Write>) -> rusqlite::Result<Vec<rusqlite::Result<()>>> {
    // A deferred transaction would fail at once, without the busy timeout, when it turns into a writing one.
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut outcomes = Vec::with_capacity(writes.len());
    for write in writes {
        let savepoint = transaction.savepoint()?;
        match write(&savepoint) {
            Ok(()) => {
                savepoint.commit()?;
                outcomes.push(Ok(()));
            }
            Err(refused) => match savepoint.finish() {
                Ok(()) => outcomes.push(Err(refused)),
                // Some errors, a full disk for one, undo the whole transaction and its savepoints with it
                // (sqlite.org/lang_transaction.html, "Response To Errors Within A Transaction"). The writes
                // before this one are lost then as well.
                Err(_) => return Err(refused),
            },
        }
    }
    transaction.commit()?;
    Ok(outcomes)
}

#[cfg(test)]
mod tests;
