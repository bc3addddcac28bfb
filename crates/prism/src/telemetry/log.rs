//! The log on stderr. Records are collected in memory; one thread puts them into words and writes them, so that no call
//! waits for either.

use std::{
    io::{self, Write},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::access::Request;

/// Records that may wait for a slow terminal. Beyond it they are dropped and counted: a log must not stop the work.
const MAX_WAITING: usize = 1 << 15;
/// How long a record may wait for company before it is written.
const GATHER: Duration = Duration::from_millis(20);

/// The log. Clones write to the same place.
#[derive(Clone)]
pub struct Log {
    shared: Arc<Shared>,
}

struct Shared {
    waiting: Mutex<Vec<Entry>>,
    some: Condvar,
    dropped: AtomicU64,
    level: LevelFilter,
}

/// A record that waits to be written.
enum Entry {
    /// In words already.
    Text(Vec<u8>),
    Request(Request),
}

/// What `tracing` writes one record into: whole records only, in one piece.
pub struct Record {
    log: Log,
    bytes: Vec<u8>,
}

// === impl Log ===

impl Log {
    /// Starts the log, and makes it the one that `tracing` writes to.
    pub fn start(level: LevelFilter, colour: bool) -> Self {
        let shared = Shared { waiting: Mutex::default(), some: Condvar::new(), dropped: AtomicU64::new(0), level };
        let log = Self { shared: Arc::new(shared) };
        let writer = log.clone();
        // A log that cannot have its thread is written on the spot by `flush` at the end; there is nobody to tell.
        let _ = thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_for_ever());
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(colour)
            .with_timer(Clock)
            .with_target(false)
            .with_writer(log.clone())
            .finish();
        // A second start in one process, as in tests, keeps the first one's log.
        let _ = tracing::subscriber::set_global_default(subscriber);
        log
    }

    /// Whether records of ordinary requests are wanted.
    pub fn wants_access(&self) -> bool {
        self.shared.level >= LevelFilter::INFO
    }

    /// Adds the record of a request.
    pub fn request(&self, request: Request) {
        self.add(Entry::Request(request));
    }

    fn add(&self, entry: Entry) {
        let mut waiting = self.waiting();
        if waiting.len() >= MAX_WAITING {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let first = waiting.is_empty();
        waiting.push(entry);
        drop(waiting);
        if first {
            self.shared.some.notify_one();
        }
    }

    /// Writes out what is waiting, before the process ends.
    pub fn flush(&self) {
        let batch = std::mem::take(&mut *self.waiting());
        self.write_out(batch);
    }

    fn write_for_ever(&self) {
        loop {
            let mut waiting = self.waiting();
            while waiting.is_empty() {
                waiting = self.shared.some.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            drop(waiting);
            // Under load one write takes hundreds of records, and nobody is woken for each.
            thread::sleep(GATHER);
            let batch = std::mem::take(&mut *self.waiting());
            self.write_out(batch);
        }
    }

    fn write_out(&self, batch: Vec<Entry>) {
        let mut out = Vec::with_capacity(batch.len() * 128);
        for entry in batch {
            match entry {
                Entry::Text(text) => out.extend_from_slice(&text),
                Entry::Request(request) => request.write(&mut out),
            }
        }
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = writeln!(out, "{} WARN {dropped} log records were dropped: stderr is too slow", Timestamp::now());
        }
        // Nobody is left to be told that stderr is gone.
        let _ = io::stderr().lock().write_all(&out);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Record;

    fn make_writer(&self) -> Record {
        Record { log: self.clone(), bytes: Vec::new() }
    }
}

impl Write for Record {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.log.add(Entry::Text(std::mem::take(&mut self.bytes)));
    }
}

// === Time ===

/// A moment in UTC, written as RFC 3339 with milliseconds.
#[derive(Default)]
pub struct Timestamp(Duration);

struct Clock;

impl Timestamp {
    pub fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let seconds = self.0.as_secs();
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        // Days to a date in the civil calendar: years begin in March, so that leap days come last.
        let shifted = days + 719_468;
        let (era, of_era) = (shifted / 146_097, shifted % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let milli = self.0.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl tracing_subscriber::fmt::time::FormatTime for Clock {
    fn format_time(&self, w: &mut tracing_subscriber::fmt::format::Writer<'_>) -> std::fmt::Result {
        write!(w, "{}", Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_rfc_3339() {
        let at = |seconds, millis| Timestamp(Duration::from_secs(seconds) + Duration::from_millis(millis)).to_string();
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_794_749_951, 123), "2026-11-15T13:39:11.123Z");
    }
}
