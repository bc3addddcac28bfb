//! Agents of the mesh as the loads need them: calls to Prism's own tools and verbs, and what the daemon says of itself.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};

use super::client::{Client, Target, answer_in};

/// Bytes of text in every signal: a sentence or two.
pub(super) const BODY: usize = 200;
/// Time between two writes to the bare disk: often enough to meet what the daemon meets, and seldom enough to leave it alone.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// The file they go round in, as a write-ahead log does.
const PROBED: u64 = 4 << 20;

impl Client {
    /// Calls a tool of Prism's own, and returns what it says.
    pub(super) async fn tool(&mut self, session: Option<&str>, name: &str, arguments: Value) -> anyhow::Result<Value> {
        let params = json!({"name": name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let answer = self.post(session, body.to_string()).await?;
        let answer = answer_in(&answer).with_context(|| format!("{name} was not answered"))?;
        if answer["result"]["isError"] != json!(true) && answer["result"]["structuredContent"].is_object() {
            return Ok(answer["result"]["structuredContent"].clone());
        }
        bail!("{name}: {answer}")
    }

    /// Does what a verb of the mesh says, over plain HTTP.
    pub(super) async fn verb(&mut self, arguments: Value) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(&self.post(None, arguments.to_string()).await?)?)
    }
}

impl Target {
    /// Another path of the same daemon.
    pub(super) fn at(&self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self.clone() }
    }
}

/// What the daemon has written down so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) commits: u64,
    pub(super) bytes: u64,
}

impl Written {
    /// Bytes in each commit since then, checkpoints included.
    pub(super) fn bytes_per_commit(&self, since: &Self) -> usize {
        ((self.bytes - since.bytes) / (self.commits - since.commits).max(1)) as usize
    }
}

pub(super) async fn written(target: &Target, pid: u32) -> anyhow::Result<Written> {
    let response = target.at("/prism/mesh").client().get().await?;
    let told: Value = serde_json::from_slice(&response)?;
    let commits = told["counters"]["store_commits"].as_u64().context("no store_commits in the mesh's counters")?;
    let io = std::fs::read_to_string(format!("/proc/{pid}/io"))?;
    let bytes = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).context("no write_bytes")?.parse()?;
    Ok(Written { commits, bytes })
}

/// The bare disk, measured while something else is: what a write and its fdatasync cost on that filesystem meanwhile.
pub(super) struct Disk {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<u32>>>,
}

impl Disk {
    /// Begins with writes of this many bytes.
    pub(super) fn measure(dir: &Path, bytes: usize) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let (path, end) = (dir.join("bare-disk.probe"), ended.clone());
        let thread = thread::spawn(move || {
            let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            let took = probe(&file, bytes.clamp(512, PROBED as usize / 4), &end);
            std::fs::remove_file(&path)?;
            took
        });
        Self { ended, thread }
    }

    /// The median and the p99, in microseconds.
    pub(super) fn end(self) -> anyhow::Result<Value> {
        self.ended.store(true, Relaxed);
        let mut took = self.thread.join().map_err(|_| anyhow!("the probe of the disk died"))??;
        took.sort_unstable();
        Ok(json!({"p50_us": quantile(&took, 0.5), "p99_us": quantile(&took, 0.99), "max_us": quantile(&took, 1.0)}))
    }
}

fn probe(file: &File, bytes: usize, ended: &AtomicBool) -> io::Result<Vec<u32>> {
    file.write_all_at(&vec![b'-'; PROBED as usize], 0)?;
    file.sync_all()?;
    let (block, places) = (vec![b'+'; bytes], PROBED / bytes as u64);
    let mut took = Vec::new();
    while !ended.load(Relaxed) {
        let begun = Instant::now();
        file.write_all_at(&block, took.len() as u64 % places * bytes as u64)?;
        file.sync_data()?;
        took.push(begun.elapsed().as_micros() as u32);
        thread::sleep(PROBE_EVERY);
    }
    Ok(took)
}

/// Of sorted values the one that this part of all are below.
pub(super) fn quantile<T: Copy + Default>(sorted: &[T], part: f64) -> T {
    sorted.get((sorted.len().saturating_sub(1) as f64 * part) as usize).copied().unwrap_or_default()
}
