//! The one thread that writes the log. While the disk is busy with some lines, others gather, and are the next to go.

use std::{
    collections::VecDeque,
    io, mem,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::sync::{Semaphore, broadcast, oneshot};

use super::{
    AuditEntry, AuditError,
    chain::ChainLink,
    head::AuditHead,
    log::{OpenLog, WrittenLines},
    mend::notice,
    reserve::LogRoom,
};

/// Lines that may wait for the thread. Beyond it the caller waits before its line is even queued: what it wants to do has
/// to wait for the disk either way.
const MAX_QUEUED: usize = 1024;

/// Lines that may wait of those that nobody waits for. Beyond it they are not written but counted, and a line says how
/// many: they must not hold up what they tell of.
const MAX_BEHIND: usize = 4096;

/// Lines that may be owed. Beyond it they are counted like those that nobody waits for: there are not as many grants.
const MAX_OWED: usize = 1024;

/// Lines that are written at once. Beyond it they wait for the next time: more gain nothing, and the first waits for the
/// last.
const MAX_BATCH: usize = 512;

/// How long after a failure those that nobody waits for are tried again, if nothing else comes.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct AuditWriter {
    shared: Arc<AuditShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lines: broadcast::Sender<Arc<str>>,
}

/// What the callers and the thread have in common.
struct AuditShared {
    queue: Mutex<AuditQueue>,
    /// Rung when `queue` changes.
    changed: Condvar,
    /// The free places of the queue; closed with it.
    places: Semaphore,
    /// How many full files are kept; 0 for all.
    keep: AtomicUsize,
    /// Lines that are owed and not on disk.
    owed: AtomicUsize,
    /// The newest line that is on disk.
    newest: Mutex<ChainLink>,
}

#[derive(Default)]
struct AuditQueue {
    /// Before all others. Whoever waited for one that could not be written has been told.
    owed: VecDeque<OwedLine>,
    jobs: VecDeque<AuditJob>,
    behind: VecDeque<AuditEntry>,
    /// How many there was no room for.
    lost: u64,
    /// The last write failed: what nobody waits for can wait.
    failed: bool,
    closed: bool,
}

/// A line and who waits for it.
struct AuditJob {
    entry: AuditEntry,
    done: oneshot::Sender<Result<u64, AuditError>>,
}

/// A line about what has happened already, and who wants to know whether it is there.
struct OwedLine {
    entry: AuditEntry,
    done: Option<oneshot::Sender<Result<u64, AuditError>>>,
}

/// What is written at once.
#[derive(Default)]
struct Batch {
    owed: Vec<OwedLine>,
    jobs: Vec<AuditJob>,
    behind: Vec<AuditEntry>,
    lost: u64,
}

// === impl AuditWriter ===

impl AuditWriter {
    pub(super) fn spawn(
        log: OpenLog,
        first: VecDeque<AuditEntry>,
        lines: broadcast::Sender<Arc<str>>,
    ) -> io::Result<Self> {
        let queue = Mutex::new(AuditQueue { behind: first, ..AuditQueue::default() });
        let (places, keep) = (Semaphore::new(MAX_QUEUED), AtomicUsize::new(log.settings.keep));
        let (owed, newest) = (AtomicUsize::new(0), Mutex::new(log.known.newest));
        let shared = Arc::new(AuditShared { queue, changed: Condvar::new(), places, keep, owed, newest });
        let (of_thread, told) = (shared.clone(), lines.clone());
        let run = move || run(log, &of_thread, &told);
        let thread = thread::Builder::new().name("prism-audit".to_owned()).spawn(run)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)), lines })
    }

    pub(super) async fn write(&self, entry: AuditEntry) -> Result<u64, AuditError> {
        let (done, answer) = oneshot::channel();
        {
            let place = self.shared.places.acquire().await.map_err(|_| AuditError::Closed)?;
            let mut queue = self.shared.queue();
            // The place may have come just before the end.
            if queue.closed {
                return Err(AuditError::Closed);
            }
            queue.jobs.push_back(AuditJob { entry, done });
            // The thread gives the place back when it takes the line.
            place.forget();
        }
        self.shared.changed.notify_one();
        answer.await.unwrap_or(Err(AuditError::Closed))
    }

    pub(super) async fn owe(&self, entry: AuditEntry) -> Result<u64, AuditError> {
        let (done, answer) = oneshot::channel();
        {
            let mut queue = self.shared.queue();
            if queue.closed {
                return Err(AuditError::Closed);
            }
            if queue.owed.len() >= MAX_OWED {
                queue.lost += 1;
                return Err(AuditError::Crowded);
            }
            queue.owed.push_back(OwedLine { entry, done: Some(done) });
            self.shared.owed.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.changed.notify_one();
        answer.await.unwrap_or(Err(AuditError::Closed))
    }

    pub(super) fn head(&self) -> AuditHead {
        AuditHead::from(&*self.shared.newest())
    }

    pub(super) fn owed(&self) -> usize {
        self.shared.owed.load(Ordering::Relaxed)
    }

    pub(super) fn write_behind(&self, entry: AuditEntry) {
        {
            let mut queue = self.shared.queue();
            if queue.closed {
                return;
            }
            if queue.behind.len() < MAX_BEHIND {
                queue.behind.push_back(entry);
            } else {
                queue.lost += 1;
            }
        }
        self.shared.changed.notify_one();
    }

    pub(super) fn keep(&self, full_files: usize) {
        self.shared.keep.store(full_files, Ordering::Relaxed);
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Arc<str>> {
        self.lines.subscribe()
    }

    pub(super) fn close(&self) {
        self.shared.close();
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // If it has panicked, its callers have been told, and the panic hook has reported it.
            let _ = thread.join();
        }
    }
}

impl Drop for AuditWriter {
    fn drop(&mut self) {
        self.close();
    }
}

// === impl AuditShared ===

impl AuditShared {
    fn queue(&self) -> MutexGuard<'_, AuditQueue> {
        // Nothing panics while it holds the lock, and a queue is whole between any two of its operations.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn newest(&self) -> MutexGuard<'_, ChainLink> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        let mut queue = self.queue();
        // What is left is tried once more.
        queue.failed &= queue.closed;
        queue.closed = true;
        drop(queue);
        self.places.close();
        self.changed.notify_one();
    }

    /// Waits for lines and takes what is there, at most a batch. Nothing is left, or can be written, when it returns
    /// nothing.
    fn next_batch(&self) -> Option<Batch> {
        let mut queue = self.queue();
        loop {
            let some_behind = !queue.behind.is_empty() || queue.lost > 0 || !queue.owed.is_empty();
            let waited_for = !queue.jobs.is_empty() || queue.owed.iter().any(|owed| owed.done.is_some());
            if waited_for || some_behind && !queue.failed {
                break;
            }
            if queue.closed {
                return None;
            }
            if some_behind {
                queue = self.changed.wait_timeout(queue, RETRY).unwrap_or_else(PoisonError::into_inner).0;
                queue.failed = false;
            } else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
        let owed: Vec<OwedLine> = queue.owed.drain(..).collect();
        // What is the longest here goes first.
        let behind = queue.behind.len().min(MAX_BATCH / 2);
        let behind: Vec<AuditEntry> = queue.behind.drain(..behind).collect();
        let taken = queue.jobs.len().min(MAX_BATCH - behind.len());
        let jobs: Vec<AuditJob> = queue.jobs.drain(..taken).collect();
        // Where some were lost is known once the others are written.
        let lost = if queue.behind.is_empty() { mem::take(&mut queue.lost) } else { 0 };
        drop(queue);
        self.places.add_permits(taken);
        Some(Batch { owed, jobs, behind, lost })
    }

    /// Lines that were owed are on disk, from this number on.
    fn paid(&self, first: u64, owed: Vec<OwedLine>) {
        self.owed.fetch_sub(owed.len(), Ordering::Relaxed);
        for (seq, done) in (first..).zip(owed.into_iter().map(|owed| owed.done)) {
            let _ = done.map(|done| done.send(Ok(seq)));
        }
    }

    /// Takes back what nobody was promised, to be tried again.
    fn put_back(&self, owed: Vec<OwedLine>, behind: Vec<AuditEntry>, lost: u64) {
        let mut queue = self.queue();
        queue.failed = true;
        owed.into_iter().rev().for_each(|owed| queue.owed.push_front(owed));
        queue.lost += lost;
        behind.into_iter().rev().for_each(|entry| queue.behind.push_front(entry));
    }
}

// === the thread ===

/// Fails whoever still waits when the thread ends, by a panic too: an unanswered caller would wait for ever.
struct AuditLastWords<'a>(&'a AuditShared);

impl Drop for AuditLastWords<'_> {
    fn drop(&mut self) {
        self.0.close();
        let mut queue = self.0.queue();
        let unanswered = (mem::take(&mut queue.jobs), mem::take(&mut queue.owed));
        drop(queue);
        drop(unanswered);
    }
}

fn run(mut log: OpenLog, shared: &AuditShared, lines: &broadcast::Sender<Arc<str>>) {
    let _last_words = AuditLastWords(shared);
    while let Some(mut batch) = shared.next_batch() {
        let path = log.path();
        log.settings.keep = shared.keep.load(Ordering::Relaxed);
        let lost = (batch.lost > 0).then(|| notice("audit.lost", format!("{{\"lines\":{}}}", batch.lost)));
        let owed = batch.owed.iter().map(|owed| &owed.entry);
        let waited_for = batch.jobs.iter().map(|job| &job.entry);
        match log.write(LogRoom::Common, owed.chain(&batch.behind).chain(&lost).chain(waited_for)) {
            Ok(written) => {
                shared.queue().failed = false;
                *shared.newest() = written.newest;
                let before = batch.behind.len() + usize::from(lost.is_some());
                let first = written.first + (batch.owed.len() + before) as u64;
                shared.paid(written.first, batch.owed);
                for (seq, job) in (first..).zip(batch.jobs) {
                    // One who no longer waits need not know.
                    let _ = job.done.send(Ok(seq));
                }
                tell(&written, lines);
            }
            Err(error) => {
                let owed = batch.owed.iter().map(|owed| &owed.entry);
                // What has happened already may have what was kept for it, if all the rest has to wait.
                if !batch.owed.is_empty()
                    && let Ok(written) = log.write(LogRoom::Reserve, owed)
                {
                    *shared.newest() = written.newest;
                    shared.paid(written.first, mem::take(&mut batch.owed));
                    tell(&written, lines);
                }
                fail(batch, error, path, shared);
            }
        }
    }
    log.close();
}

fn tell(written: &WrittenLines<'_>, lines: &broadcast::Sender<Arc<str>>) {
    if lines.receiver_count() == 0 {
        return;
    }
    for line in written.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        // Nobody may listen any more.
        let _ = lines.send(String::from_utf8_lossy(line).into());
    }
}

fn fail(mut batch: Batch, error: io::Error, path: PathBuf, shared: &AuditShared) {
    let source = Arc::new(error);
    let told = batch.owed.iter_mut().filter_map(|owed| owed.done.take()).collect::<Vec<_>>();
    // First: whoever is told may look at once at what is owed.
    shared.put_back(batch.owed, batch.behind, batch.lost);
    for done in told.into_iter().chain(batch.jobs.into_iter().map(|job| job.done)) {
        let _ = done.send(Err(AuditError::Write { path: path.clone(), source: source.clone() }));
    }
}
