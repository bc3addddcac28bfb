//! Load on any MCP Streamable HTTP endpoint whose server has the `echo` tool.
//!
//! load call    URL   requests a second and latency of tools/call
//! load list    URL   the same of tools/list
//! load idle    URL   memory that N sessions with an open GET stream cost
//! load fanout  URL   time for one list_changed to reach N open GET streams
//! load signal  URL   time from a signal to its bell, among N agents at a steady rate
//! load mesh-scale URL   drains of a page among thousands of signals and agents, and the memory they cost
//! load first   URL -- COMMAND...   time from the start of COMMAND to its first answers
//!
//! `call` with `--revision 2026-07-28` makes stateless requests, each with the headers and the envelope of that revision.
//!
//! One JSON line on stdout. Exit status 1 when an answer was wrong, missing or late.
mod agents;
mod client;
mod list;
mod mesh_scale;
mod signal;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use client::{Client, Target, answer_in, count};

/// What a log note is counted by.
const NOTE: &str = "notifications/message";
/// What every request of 2026-07-28 says about its client.
const ENVELOPE: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"load","version":"0"}}"#;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Extra request header, as `Name: value`.
    #[arg(long, global = true)]
    header: Vec<String>,
    /// Revision to ask for in initialize, or to make each request in.
    #[arg(long, global = true, default_value = "2025-06-18")]
    revision: String,
    /// Name of the echo tool as the bridge shows it.
    #[arg(long, global = true, default_value = "echo")]
    tool: String,
}

#[derive(Subcommand)]
enum Command {
    Call {
        url: String,
        #[arg(long, default_value_t = 16)]
        conns: usize,
        #[arg(long, default_value_t = 5.0)]
        secs: f64,
        /// Bytes of text sent and echoed in each call (20 or more).
        #[arg(long, default_value_t = 256)]
        size: usize,
        /// Ask for an answer of this many bytes instead.
        #[arg(long, default_value_t = 0)]
        answer: usize,
        /// One session per connection instead of one for all.
        #[arg(long)]
        sessions: bool,
        /// Log notifications before each answer; opens a GET stream per session to hear them.
        #[arg(long, default_value_t = 0)]
        notify: usize,
    },
    List {
        url: String,
        #[arg(long, default_value_t = 1)]
        conns: usize,
        #[arg(long, default_value_t = 5.0)]
        secs: f64,
        /// Tools that the list must have at least.
        #[arg(long, default_value_t = 1)]
        tools: usize,
    },
    Idle {
        url: String,
        #[arg(long, default_value_t = 1000)]
        sessions: usize,
        /// Pid of the bridge, for its memory.
        #[arg(long)]
        pid: u32,
    },
    Fanout {
        url: String,
        #[arg(long, default_value_t = 1000)]
        sessions: usize,
        #[arg(long, default_value_t = 5)]
        rounds: usize,
    },
    Signal {
        url: String,
        #[arg(long, default_value_t = 100)]
        agents: usize,
        /// Signals a second, of all agents together.
        #[arg(long, default_value_t = 200.0)]
        rate: f64,
        #[arg(long, default_value_t = 20.0)]
        secs: f64,
        /// Pid of the daemon, for what it writes.
        #[arg(long)]
        pid: u32,
        /// A folder on the daemon's filesystem, to compare with the bare disk.
        #[arg(long)]
        dir: PathBuf,
    },
    MeshScale {
        url: String,
        #[arg(long, default_value_t = 1000)]
        agents: usize,
        /// Signals that wait before the first is drained.
        #[arg(long, default_value_t = 10_000)]
        signals: usize,
        /// How often they are sent and drained.
        #[arg(long, default_value_t = 3)]
        times: usize,
        /// Pid of the daemon, for its memory and what it writes.
        #[arg(long)]
        pid: u32,
        /// A folder on the daemon's filesystem, to compare with the bare disk.
        #[arg(long)]
        dir: PathBuf,
    },
    First {
        url: String,
        #[arg(long, default_value_t = 30.0)]
        secs: f64,
        /// The bridge to start; ended when it has answered.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if cli.revision.as_str() >= "2026" && !matches!(cli.command, Command::Call { notify: 0, .. }) {
        bail!("{} has no sessions and no GET stream: `call` only, and without --notify", cli.revision)
    }
    let target = |url: &str| Target::new(url, &cli);
    match &cli.command {
        Command::Call { url, conns, secs, size, answer, sessions, notify } => {
            call(target(url)?, *conns, *secs, (*size).max(20), *answer, *sessions, *notify).await
        }
        Command::List { url, conns, secs, tools } => list::list(target(url)?, *conns, *secs, *tools).await,
        Command::Idle { url, sessions, pid } => idle(target(url)?, *sessions, *pid).await,
        Command::Fanout { url, sessions, rounds } => fanout(target(url)?, *sessions, *rounds).await,
        Command::Signal { url, agents, rate, secs, pid, dir } => {
            let plan = signal::Plan { agents: (*agents).max(2), rate: *rate, secs: *secs, pid: *pid, dir };
            signal::signal(target(url)?, plan).await
        }
        Command::MeshScale { url, agents, signals, times, pid, dir } => {
            let plan = mesh_scale::Plan { agents: *agents, signals: *signals, times: *times, pid: *pid, dir };
            mesh_scale::mesh_scale(target(url)?, plan).await
        }
        Command::First { url, secs, command } => first(target(url)?, *secs, command).await,
    }
}

#[derive(Default)]
struct Tally {
    latencies: Vec<u32>,
    faults: usize,
    fault: Option<String>,
    bytes: usize,
    notes: usize,
}

impl Tally {
    fn wrong(&mut self, why: String) {
        self.faults += 1;
        self.fault.get_or_insert(why);
    }

    fn add(&mut self, other: Tally) {
        self.latencies.extend(other.latencies);
        self.faults += other.faults;
        self.bytes += other.bytes;
        self.notes += other.notes;
        self.fault = self.fault.take().or(other.fault);
    }

    fn figures(&mut self, took: f64) -> Value {
        self.latencies.sort_unstable();
        let calls = self.latencies.len();
        let at = |q: f64| self.latencies.get(((calls as f64 - 1.0) * q) as usize).copied().unwrap_or(0);
        json!({"rps": (calls as f64 / took * 10.0).round() / 10.0, "p50_us": at(0.5), "p99_us": at(0.99), "p999_us": at(0.999),
            "calls": calls, "errors": self.faults, "fault": self.fault, "MBps": (self.bytes as f64 / took / 1e5).round() / 10.0})
    }
}

async fn call(
    target: Target,
    conns: usize,
    secs: f64,
    size: usize,
    answer: usize,
    per_conn: bool,
    notify: usize,
) -> anyhow::Result<()> {
    let shared = target.client().open().await?;
    let mut clients = Vec::new();
    for n in 0..conns {
        let mut client = target.client();
        let session =
            if per_conn { client.open().await.with_context(|| format!("session {n}"))? } else { shared.clone() };
        clients.push((client, session));
    }
    let notes_on_get = Arc::new(AtomicUsize::new(0));
    let mut refused = None;
    if notify > 0 {
        for (_, session) in &clients[..if per_conn { conns } else { 1 }] {
            let mut ear = target.client();
            match ear.listen(session.as_deref()).await {
                Err(e) => refused = Some(format!("{e:#}")),
                Ok(mut stream) => {
                    let notes = notes_on_get.clone();
                    tokio::spawn(async move {
                        // A read may end within a note: the end of one frame is looked at with the next.
                        let mut seen: Vec<u8> = Vec::new();
                        while let Some(Ok(frame)) = stream.frame().await {
                            if let Some(data) = frame.data_ref() {
                                seen.extend_from_slice(data);
                                notes.fetch_add(count(&seen, NOTE), Relaxed);
                                let whole = seen.len().saturating_sub(NOTE.len() - 1);
                                // What was counted must not be counted again.
                                let rest = match seen.windows(NOTE.len()).rposition(|w| w == NOTE.as_bytes()) {
                                    Some(at) => whole.max(at + NOTE.len()),
                                    None => whole,
                                };
                                seen.drain(..rest);
                            }
                        }
                        drop(ear);
                    });
                }
            }
        }
    }
    let pad = "y".repeat(size - 20);
    let mut workers = Vec::new();
    let start = Instant::now();
    let end = start + Duration::from_secs_f64(secs);
    for (worker, (mut client, session)) in clients.into_iter().enumerate() {
        let pad = pad.clone();
        let arguments = format!(r#","size":{answer},"notify":{notify}"#);
        let tool = target.tool.clone();
        let envelope = if target.is_modern() { ENVELOPE } else { "" };
        workers.push(tokio::spawn(async move {
            let mut tally = Tally { latencies: Vec::with_capacity(1 << 16), ..Tally::default() };
            let mut n = 0u64;
            while Instant::now() < end {
                n += 1;
                let id = worker as u64 * 100_000_000 + n;
                let mark = format!("{id:020}");
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{mark}{pad}"{arguments}}}{envelope}}}}}"#);
                let begun = Instant::now();
                let outcome = client.post(session.as_deref(), body).await;
                let took = begun.elapsed();
                // Full parse of a sample, cheap check of the rest: the load must not be the bottleneck.
                let right = |body: &[u8]| if n % 64 == 1 {
                    answer_in(body).is_some_and(|v| v["id"] == id && v["result"]["content"][0]["text"].as_str()
                        .is_some_and(|t| if answer > 0 { t.len() == answer } else { t.len() == size && t.starts_with(&mark) }))
                } else if answer > 0 { body.len() > answer } else { count(body, &mark) == 1 };
                match outcome {
                    Ok(body) if right(&body) => {
                        tally.latencies.push(took.as_micros() as u32);
                        tally.bytes += body.len();
                        if notify > 0 { tally.notes += count(&body, "notifications/message") }
                    }
                    Ok(body) => tally.wrong(format!("wrong: {}", String::from_utf8_lossy(&body[..body.len().min(300)]))),
                    Err(e) => {
                        tally.wrong(format!("{e:#}"));
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            tally
        }));
    }
    let mut all = Tally::default();
    for worker in workers {
        all.add(worker.await?);
    }
    let mut line = all.figures(start.elapsed().as_secs_f64());
    if notify > 0 {
        tokio::time::sleep(Duration::from_millis(300)).await;
        line["notes"] = json!({"sent": (all.latencies.len() + all.faults) * notify, "on_post": all.notes, "on_get": notes_on_get.load(Relaxed), "get_refused": refused});
    }
    println!("{line}");
    if all.faults > 0 {
        bail!("{} wrong answers", all.faults)
    }
    Ok(())
}

fn kib_in(path: String, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find(|l| l.starts_with(field))?.split_whitespace().nth(1)?.parse().ok()
}

/// RSS of the process, proportional memory (PSS) of it and all below it, and how many those are.
fn memory_kib(pid: u32) -> anyhow::Result<(u64, u64, usize)> {
    let parent = |p: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{p}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<(u32, u32)> = std::fs::read_dir("/proc")?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter_map(|p| Some((p, parent(p)?)))
        .collect();
    let mut tree = vec![pid];
    let mut next = 0;
    while let Some(&at) = tree.get(next) {
        tree.extend(all.iter().filter(|(_, up)| *up == at).map(|(p, _)| *p));
        next += 1;
    }
    let pss = tree.iter().filter_map(|p| kib_in(format!("/proc/{p}/smaps_rollup"), "Pss:")).sum();
    Ok((kib_in(format!("/proc/{pid}/status"), "VmRSS:").context("VmRSS")?, pss, tree.len()))
}

async fn open_streams(target: &Target, sessions: usize) -> anyhow::Result<Vec<(Client, Client, Incoming)>> {
    let mut open = Vec::with_capacity(sessions);
    for n in 0..sessions {
        let (mut poster, mut getter) = (target.client(), target.client());
        let session = poster.open().await.with_context(|| format!("session {n}"))?.context("no session id")?;
        let stream = getter.listen(Some(&session)).await.with_context(|| format!("session {n}"))?;
        open.push((poster, getter, stream));
    }
    Ok(open)
}

async fn idle(target: Target, sessions: usize, pid: u32) -> anyhow::Result<()> {
    let mut warm = target.client();
    warm.open().await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = memory_kib(pid)?;
    let start = Instant::now();
    let open = open_streams(&target, sessions).await?;
    let took = start.elapsed().as_secs_f64();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = memory_kib(pid)?;
    let each = |after: u64, before: u64| (after.saturating_sub(before) as f64 / sessions as f64 * 10.0).round() / 10.0;
    println!(
        "{}",
        json!({"sessions": open.len(), "rss_before_kib": before.0, "rss_after_kib": after.0, "processes_before": before.2, "processes": after.2,
        "kib_per_session": each(after.0, before.0), "tree_pss_kib_per_session": each(after.1, before.1),
        "opened_per_s": (sessions as f64 / took).round()})
    );
    Ok(())
}

async fn fanout(target: Target, sessions: usize, rounds: usize) -> anyhow::Result<()> {
    let open = open_streams(&target, sessions).await?;
    let mut caller = target.client();
    let session = caller.open().await?;
    // One entry a stream and a round, and some that a bridge announces by itself: an ear that waits would measure itself.
    let (heard, mut ears) = tokio::sync::mpsc::channel::<(usize, Instant)>(sessions * (rounds + 2));
    let mut connections = Vec::new();
    for (n, (poster, getter, mut stream)) in open.into_iter().enumerate() {
        connections.push((poster, getter));
        let heard = heard.clone();
        tokio::spawn(async move {
            while let Some(Ok(frame)) = stream.frame().await {
                if frame.data_ref().is_some_and(|d| count(d, "list_changed") > 0) {
                    let _ = heard.try_send((n, Instant::now()));
                }
            }
        });
    }
    // What a bridge announces by itself when a session opens is not counted.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut worst = Vec::new();
    for round in 0..rounds {
        while ears.try_recv().is_ok() {}
        let begun = Instant::now();
        caller.post(session.as_deref(), target.call(round as u64 + 1, json!({"text":"x","broadcast":true}))).await?;
        let (mut last, mut who) = (begun, HashSet::new());
        while who.len() < sessions {
            match tokio::time::timeout(Duration::from_secs(5), ears.recv()).await {
                Ok(Some((n, at))) => {
                    who.insert(n);
                    last = last.max(at)
                }
                _ => bail!("round {round}: {} of {sessions} streams heard it", who.len()),
            }
        }
        worst.push((last - begun).as_micros() as u64);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    worst.sort_unstable();
    println!(
        "{}",
        json!({"streams": sessions, "all_heard_us_median": worst[worst.len() / 2], "all_heard_us_worst": worst.last()})
    );
    Ok(())
}

/// A bridge that was started. It ends with this.
struct Bridge(std::process::Child);

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn first(target: Target, secs: f64, command: &[String]) -> anyhow::Result<()> {
    let null = std::process::Stdio::null;
    let start = Instant::now();
    let mut bridge = std::process::Command::new(&command[0]);
    bridge.args(&command[1..]).stdin(null()).stdout(null()).stderr(null());
    let mut bridge = Bridge(bridge.spawn()?);
    let mut answered = None;
    while start.elapsed().as_secs_f64() < secs {
        let mut client = target.client();
        if let Ok(session) = client.open().await {
            let initialize = start.elapsed();
            answered.get_or_insert(initialize);
            if client
                .post(session.as_deref(), target.call(1, json!({"text":"hello, hello"})))
                .await
                .is_ok_and(|b| count(&b, "hello, hello") > 0)
            {
                println!(
                    "{}",
                    json!({"first_answer_ms": initialize.as_millis() as u64, "first_call_ms": start.elapsed().as_millis() as u64})
                );
                // A polite end first, so that the bridge can end its own children.
                let _ = std::process::Command::new("kill").arg(bridge.0.id().to_string()).status();
                let asked = Instant::now();
                while matches!(bridge.0.try_wait(), Ok(None)) && asked.elapsed() < Duration::from_secs(2) {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    bail!("no answer in {secs} s; initialize answered after {answered:?}")
}
