//! The one thread that writes. Callers hand it a write and learn when it is on disk; what they write is in the
//! tables' own files.
//!
//! The idea: a commit costs one fsync however much is in it. While one is under way further writes queue up, and
//! the next commit takes them all. So under load each caller still waits for about one fsync, and alone for
//! exactly one.
//!
//! What nobody waits for goes along with what somebody does: it makes no commit that the next caller would have to
//! wait behind. And the log is folded into the database by another thread ([`Checkpointer`]).

use std::{
    collections::VecDeque,
    fmt, io, mem,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{Semaphore, oneshot};

use crate::checkpoint::Checkpointer;

/// Writes that may wait for the thread. Beyond it the caller waits before its write is even queued: a write
/// acknowledges something, and whoever asked for it is held up the same way by a slow disk as by a full queue.
const MAX_QUEUED: usize = 1024;

/// Writes in one transaction. Beyond it they wait for the next: larger ones gain little, and the first caller
/// waits for the last.
const MAX_BATCH: usize = 128;

/// How long what nobody waits for may wait for a commit to go along with. Then it gets its own.
const BEHIND: Duration = if cfg!(test) { Duration::from_millis(1) } else { Duration::from_millis(25) };

/// The writing end of the database.
pub(crate) struct DatabaseWriter {
    shared: Arc<WriterShared>,
    checkpointer: Arc<Checkpointer>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreWriteError {
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
struct WriterShared {
    queue: Mutex<WriteQueue>,
    /// Rung when `queue` changes.
    changed: Condvar,
    /// The free places of the queue; closed with it.
    places: Semaphore,
    commits: AtomicU64,
}

#[derive(Default)]
struct WriteQueue {
    jobs: VecDeque<Box<dyn WriteJob>>,
    /// Those that nobody waits for, and since when the first of them is here.
    behind: VecDeque<Box<dyn WriteJob>>,
    behind_since: Option<Instant>,
    closed: bool,
}

/// One write and who waits for it. In one box, whatever it returns.
trait WriteJob: Send {
    /// Does the write, and keeps what it returned.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()>;

    /// Tells the caller what became of it. One that has left does not mind.
    fn answer(self: Box<Self>, fate: Result<(), StoreWriteError>);
}

struct Write<F, T> {
    /// Until it runs.
    write: Option<F>,
    /// From then on, if it succeeded.
    returned: Option<T>,
    done: oneshot::Sender<Result<T, StoreWriteError>>,
}

// === impl DatabaseWriter ===

impl DatabaseWriter {
    pub(crate) fn spawn(connection: Connection, path: &Path) -> io::Result<Self> {
        let checkpointer = Arc::new(Checkpointer::spawn(path)?);
        let shared = Arc::new(WriterShared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            places: Semaphore::new(MAX_QUEUED),
            commits: AtomicU64::new(0),
        });
        let thread = thread::Builder::new().name("prism-store".to_owned()).spawn({
            let (shared, checkpointer) = (shared.clone(), checkpointer.clone());
            move || run(connection, &shared, &checkpointer)
        })?;
        Ok(Self { shared, checkpointer, thread: Mutex::new(Some(thread)) })
    }

    /// Returns what the write has returned once it is on disk, or has failed. It is not undone if the future is
    /// dropped.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreWriteError> {
        let (done, answer) = oneshot::channel();
        let job = Box::new(Write { write: Some(write), returned: None, done });
        self.enqueue(|queue| queue.jobs.push_back(job)).await?;
        answer.await.unwrap_or(Err(StoreWriteError::Closed))
    }

    /// The same for what nobody waits for: along with the next write that somebody does wait for, or after a moment.
    pub(crate) async fn write_behind<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreWriteError> {
        let (done, answer) = oneshot::channel();
        let job = Box::new(Write { write: Some(write), returned: None, done });
        let enqueue = |queue: &mut WriteQueue| {
            queue.behind.push_back(job);
            queue.behind_since.get_or_insert_with(Instant::now);
        };
        self.enqueue(enqueue).await?;
        answer.await.unwrap_or(Err(StoreWriteError::Closed))
    }

    async fn enqueue(&self, enqueue: impl FnOnce(&mut WriteQueue)) -> Result<(), StoreWriteError> {
        let place = self.shared.places.acquire().await.map_err(|_| StoreWriteError::Closed)?;
        {
            let mut queue = self.shared.queue();
            // The place may have come just before the end.
            if queue.closed {
                return Err(StoreWriteError::Closed);
            }
            enqueue(&mut queue);
            // The thread gives the place back when it takes the job.
            place.forget();
        }
        self.shared.changed.notify_one();
        Ok(())
    }

    pub(crate) fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Refuses new writes and waits until the queued ones are done and the thread has ended.
    pub(crate) fn close(&self) {
        self.shared.close();
        self.checkpointer.close();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // If it has panicked, its callers have been told, and the panic hook has reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for DatabaseWriter {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for DatabaseWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("commits", &self.commits()).finish_non_exhaustive()
    }
}

// === impl Write ===

impl<F, T> WriteJob for Write<F, T>
where
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
    T: Send,
{
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(write) = self.write.take() {
            self.returned = Some(write(connection)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, fate: Result<(), StoreWriteError>) {
        let Self { returned, done, .. } = *self;
        // A write that succeeded has returned something.
        let _ = done.send(fate.and_then(|()| returned.ok_or(StoreWriteError::Closed)));
    }
}

// === impl WriterShared ===

impl WriterShared {
    fn queue(&self) -> MutexGuard<'_, WriteQueue> {
        // Nothing panics while it holds the lock, and a queue is whole between any two of its operations.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.queue().closed = true;
        self.places.close();
        self.changed.notify_one();
    }

    /// Waits for work and takes what is there, at most a batch. Nothing is left when it returns nothing.
    fn next_batch(&self) -> Vec<Box<dyn WriteJob>> {
        let mut queue = self.queue();
        while queue.jobs.is_empty() && !queue.closed {
            let patience = queue.behind_since.map(|since| BEHIND.saturating_sub(since.elapsed()));
            queue = match patience {
                Some(Duration::ZERO) => break,
                Some(patience) => self.changed.wait_timeout(queue, patience).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            };
        }
        let waited_for = queue.jobs.len().min(MAX_BATCH);
        let mut batch: Vec<_> = queue.jobs.drain(..waited_for).collect();
        let behind = queue.behind.len().min(MAX_BATCH - waited_for);
        batch.extend(queue.behind.drain(..behind));
        if queue.behind.is_empty() {
            queue.behind_since = None;
        }
        drop(queue);
        self.places.add_permits(batch.len());
        batch
    }
}

// === the thread ===

/// Fails whoever still waits when the thread ends, by a panic too: an unanswered caller would wait for ever.
struct WriterLastWords<'a>(&'a WriterShared);

impl Drop for WriterLastWords<'_> {
    fn drop(&mut self) {
        self.0.close();
        let mut queue = self.0.queue();
        let unanswered = (mem::take(&mut queue.jobs), mem::take(&mut queue.behind));
        drop(queue);
        drop(unanswered);
    }
}

fn run(mut connection: Connection, shared: &WriterShared, checkpointer: &Checkpointer) {
    let _last_words = WriterLastWords(shared);
    loop {
        let mut batch = shared.next_batch();
        if batch.is_empty() {
            break;
        }
        match commit(&mut connection, &mut batch) {
            Ok(outcomes) => {
                let commits = shared.commits.fetch_add(1, Ordering::Relaxed) + 1;
                for (job, outcome) in batch.into_iter().zip(outcomes) {
                    job.answer(outcome.map_err(|source| StoreWriteError::Refused { source }));
                }
                checkpointer.committed(&connection, commits);
            }
            Err(source) => {
                let source = Arc::new(source);
                for job in batch {
                    job.answer(Err(StoreWriteError::Commit { source: source.clone() }));
                }
            }
        }
    }
    // Only makes the next start quicker.
    let _ = connection.execute_batch("PRAGMA optimize");
}

/// Does all writes in one transaction and returns what became of each. A write that fails is undone alone.
fn commit(connection: &mut Connection, jobs: &mut [Box<dyn WriteJob>]) -> rusqlite::Result<Vec<rusqlite::Result<()>>> {
    // A deferred transaction would fail at once, without the busy timeout, when it turns into a writing one.
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let [job] = jobs {
        // Alone it is undone with the transaction, and needs no savepoint, for which pages are copied.
        if let Err(refused) = job.run(&transaction) {
            return if transaction.is_autocommit() { Err(refused) } else { Ok(vec![Err(refused)]) };
        }
        transaction.commit()?;
        return Ok(vec![Ok(())]);
    }
    let mut outcomes = Vec::with_capacity(jobs.len());
    for job in jobs {
        let savepoint = transaction.savepoint()?;
        match job.run(&savepoint) {
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
