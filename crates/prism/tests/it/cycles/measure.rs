//! What a home's daemon and its clients' shims hold while nothing happens, and how that goes on from kill to kill.

use std::{collections::BTreeSet, fs, io::Write};

use crate::support::{Home, process};

/// What may lie in a home. Anything else was left behind.
const FILES: [&str; 15] = [
    "audit",
    "daemon.lock",
    "ends",
    "http-mcp-token",
    "http-mcp.json",
    "management-token",
    "plugin-token",
    "prism.db",
    "prism.db-shm",
    "prism.db-wal",
    "prism.log",
    "prism.log.1",
    "prism.sock",
    "prism.toml",
    "record",
];

/// Kills after which everything is there that is going to be: caches, the log, connections that are kept.
const WARM_UP: usize = 2;

/// The journal of the database begins anew when a daemon finds what the last one has left, and after every few hundred
/// commits.
const MAX_JOURNAL_KIB: u64 = 6 << 10;

#[derive(Clone, Debug)]
pub(super) struct Measure {
    daemon_kib: u64,
    daemon_files: u64,
    /// All shims together.
    shim_kib: u64,
    shim_files: u64,
    database_kib: u64,
    /// What was written to the database and is not in it yet.
    journal_kib: u64,
}

#[derive(Default)]
pub(super) struct Trend(Vec<Measure>);

impl Measure {
    pub(super) fn take(home: &Home, daemon: u32, shims: &[u32]) -> Self {
        let files: BTreeSet<String> = fs::read_dir(home.path())
            .expect("the home is there")
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let strange: Vec<&String> = files.iter().filter(|name| !FILES.contains(&name.as_str())).collect();
        assert!(strange.is_empty(), "left behind in the home: {strange:?}");
        let size = |name: &str| fs::metadata(home.path().join(name)).map_or(0, |file| file.len());
        Self {
            daemon_kib: process::resident_kib(daemon),
            daemon_files: process::open_files(daemon) as u64,
            shim_kib: shims.iter().map(|pid| process::resident_kib(*pid)).sum(),
            shim_files: shims.iter().map(|pid| process::open_files(*pid) as u64).sum(),
            database_kib: size("prism.db") >> 10,
            journal_kib: size("prism.db-wal") >> 10,
        }
    }
}

impl Trend {
    pub(super) fn add(&mut self, measure: Measure) {
        self.0.push(measure);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Shows a person what came of it.
    pub(super) fn report(&self, headline: &str) {
        let (first, last) = (self.0.get(WARM_UP), self.0.last());
        let text = format!("{headline}\n  after the warm-up {first:?}\n  at the end        {last:?}\n");
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Nothing has grown since the warm-up but by what one look differs from the next.
    pub(super) fn check(&self) {
        self.hold("the daemon's memory, in KiB", |measure| measure.daemon_kib, 3 << 10);
        self.hold("the daemon's open files", |measure| measure.daemon_files, 12);
        self.hold("the shims' memory, in KiB", |measure| measure.shim_kib, 6 << 10);
        self.hold("the shims' open files", |measure| measure.shim_files, 12);
        self.hold("the database, in KiB", |measure| measure.database_kib, 1 << 10);
        let journal = self.0.iter().map(|measure| measure.journal_kib).max();
        assert!(journal <= Some(MAX_JOURNAL_KIB), "the journal of the database grew to {journal:?} KiB");
    }

    /// The middle of the last third is not above the middle of the first by more than a tenth, or by the slack.
    fn hold(&self, what: &str, of: impl Fn(&Measure) -> u64, slack: u64) {
        let values: Vec<u64> = self.0.iter().skip(WARM_UP).map(of).collect();
        let third = values.len().div_ceil(3);
        let (Some(before), Some(after)) = (middle(&values[..third]), middle(&values[values.len() - third..])) else {
            return;
        };
        assert!(after <= before + slack.max(before / 10), "{what} grew from {before} to {after}: {values:?}");
    }
}

fn middle(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}
