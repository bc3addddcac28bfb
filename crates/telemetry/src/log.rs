//! The log on stderr. Records gather in memory, in words; one thread writes them, so that no call waits for that.

use std::{
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prism_core::time::date_and_time;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::rotation::LogRotation;

/// Bytes that may wait for a slow terminal. Beyond it records are dropped and counted: a log must not stop the work.
const MAX_WAITING_BYTES: usize = 8 << 20;
/// How long a record may wait for company before it is written.
const GATHER: Duration = Duration::from_millis(20);

/// The log. Clones write to the same place.
#[derive(Clone)]
pub struct DaemonLog {
    shared: Arc<LogState>,
}

struct LogState {
    waiting: Mutex<LogBuffer>,
    some: Condvar,
    level: LevelFilter,
    /// Where stderr is a file of ours.
    rotation: OnceLock<LogRotation>,
}

/// What is to be written, and what there was no room for.
#[derive(Default)]
struct LogBuffer {
    text: Vec<u8>,
    dropped: u64,
    clock: TimestampCache,
}

/// What `tracing` writes one record into: whole records only, in one piece.
pub struct LogRecord {
    log: DaemonLog,
    bytes: Vec<u8>,
}

// === impl DaemonLog ===

impl DaemonLog {
    /// Starts the log, and makes it the one that `tracing` writes to.
    pub fn start(level: LevelFilter, colour: bool) -> Self {
        let (waiting, some, rotation) = (Mutex::default(), Condvar::new(), OnceLock::new());
        let log = Self { shared: Arc::new(LogState { waiting, some, level, rotation }) };
        let writer = log.clone();
        // A log that cannot have its thread is written on the spot by `flush` at the end; there is nobody to tell.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_for_ever());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(colour)
            .with_timer(LogTimer)
            .with_target(false)
            .with_writer(log.clone())
            .finish();
        // A second start in one process, as in tests, keeps the first one's log.
        let _ = tracing::subscriber::set_global_default(subscriber);
        log
    }

    /// Keeps the file small that stdout and stderr go to.
    pub fn rotate(&self, path: PathBuf) {
        self.shared.rotation.get_or_init(|| LogRotation::new(path)).look();
    }

    /// Whether records of ordinary requests are wanted.
    pub fn wants_access(&self) -> bool {
        self.shared.level >= LevelFilter::INFO
    }

    /// Adds a record of this moment; the words are what comes after the time.
    pub fn add(&self, words: impl FnOnce(&mut Vec<u8>)) {
        self.append(|waiting| {
            waiting.clock.write(&mut waiting.text, since_1970());
            words(&mut waiting.text);
        });
    }

    fn append(&self, write: impl FnOnce(&mut LogBuffer)) {
        let mut waiting = self.waiting();
        if waiting.text.len() >= MAX_WAITING_BYTES {
            waiting.dropped += 1;
            return;
        }
        let first = waiting.text.is_empty();
        write(&mut waiting);
        drop(waiting);
        if first {
            self.shared.some.notify_one();
        }
    }

    /// Writes out what is waiting, before the process ends.
    pub fn flush(&self) {
        let batch = self.waiting().take();
        write_out(&batch);
    }

    fn write_for_ever(&self) {
        let mut spare = Vec::new();
        loop {
            let mut waiting = self.waiting();
            while waiting.text.is_empty() {
                waiting = self.shared.some.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            drop(waiting);
            // Under load one write takes hundreds of records, and nobody is woken for each.
            thread::sleep(GATHER);
            let mut waiting = self.waiting();
            let batch = waiting.take();
            // The room of the last batch is there for the next.
            waiting.text = std::mem::take(&mut spare);
            drop(waiting);
            write_out(&batch);
            if let Some(rotation) = self.shared.rotation.get() {
                rotation.look();
            }
            spare = batch;
            spare.clear();
            spare.shrink_to(64 << 10);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, LogBuffer> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_out(batch: &[u8]) {
    // Nobody is left to be told that stderr is gone.
    let _ = io::stderr().lock().write_all(batch);
}

impl LogBuffer {
    fn take(&mut self) -> Vec<u8> {
        let mut batch = std::mem::take(&mut self.text);
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            self.clock.write(&mut batch, since_1970());
            let _ = writeln!(batch, "  WARN {dropped} log records were dropped: stderr is too slow");
        }
        batch
    }
}

impl MakeWriter<'_> for DaemonLog {
    type Writer = LogRecord;

    fn make_writer(&self) -> LogRecord {
        LogRecord { log: self.clone(), bytes: Vec::new() }
    }
}

impl Write for LogRecord {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LogRecord {
    fn drop(&mut self) {
        self.log.append(|waiting| waiting.text.extend_from_slice(&self.bytes));
    }
}

// === Time ===

/// Writes moments in UTC as RFC 3339 with milliseconds. Most of one is the same for a whole second.
#[derive(Default)]
struct TimestampCache {
    second: Option<u64>,
    shown: String,
}

/// The clock of `tracing`'s own records.
struct LogTimer;

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

impl TimestampCache {
    fn write(&mut self, out: &mut Vec<u8>, at: Duration) {
        if self.second != Some(at.as_secs()) {
            self.second = Some(at.as_secs());
            self.shown = date_and_time(at.as_secs());
        }
        out.extend_from_slice(self.shown.as_bytes());
        // Writing to memory cannot fail.
        let _ = write!(out, ".{:03}Z", at.subsec_millis());
    }
}

impl tracing_subscriber::fmt::time::FormatTime for LogTimer {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        let at = since_1970();
        write!(w, "{}.{:03}Z", date_and_time(at.as_secs()), at.subsec_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_rfc_3339() {
        let mut clock = TimestampCache::default();
        let mut at = |seconds, millis| {
            let mut out = Vec::new();
            clock.write(&mut out, Duration::from_secs(seconds) + Duration::from_millis(millis));
            String::from_utf8(out).unwrap()
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(951_782_400, 8), "2000-02-29T00:00:00.008Z");
        assert_eq!(at(1_794_749_951, 123), "2026-11-15T13:39:11.123Z");
    }

    #[test]
    fn a_log_that_nobody_writes_out_is_bounded_and_says_so() {
        let log = DaemonLog {
            shared: Arc::new(LogState {
                waiting: Mutex::default(),
                some: Condvar::new(),
                level: LevelFilter::INFO,
                rotation: OnceLock::new(),
            }),
        };
        for _ in 0..MAX_WAITING_BYTES / 500_000 + 3 {
            log.add(|out| out.resize(out.len() + 500_000, b'x'));
        }
        let batch = log.waiting().take();
        assert!(batch.len() < MAX_WAITING_BYTES + 600_000);
        assert!(batch.ends_with(b"  WARN 2 log records were dropped: stderr is too slow\n"), "{}", batch.len());
    }
}
