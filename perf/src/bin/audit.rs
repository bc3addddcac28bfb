//! The audit log's two promises, on the store itself: no daemon is in the way.
//!
//! audit write  DIR   durable lines a second, of many that write at once; and what the bare disk does meanwhile alone
//! audit verify DIR   time to verify a log, which is made first; and to merely read it
//!
//! One JSON line on stdout. Exit status 1 when a line is missing or the log is not whole.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};
use prism_store::audit::{AuditEntry, AuditLog, AuditSettings, tail, verify};
use serde_json::{Value, json};
use tokio::task::JoinSet;

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Write {
        dir: PathBuf,
        #[arg(long, default_value_t = 64)]
        writers: usize,
        #[arg(long, default_value_t = 3.0)]
        secs: f64,
    },
    Verify {
        dir: PathBuf,
        #[arg(long, default_value_t = 1_000_000)]
        lines: usize,
    },
}

/// Lines that are under way at once while a log is made.
const MAKERS: usize = 1000;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let figures = match Cli::parse().command {
        Command::Write { dir, writers, secs } => write(&dir, writers, Duration::from_secs_f64(secs)).await?,
        Command::Verify { dir, lines } => verified(&dir, lines).await?,
    };
    Ok(writeln!(std::io::stdout(), "{figures}")?)
}

async fn write(dir: &Path, writers: usize, time: Duration) -> anyhow::Result<Value> {
    let folder = dir.join("audit");
    let audit = Arc::new(AuditLog::open(&folder, AuditSettings::default())?);
    audit.write(entry(0)).await?;
    let began = Instant::now();
    let mut under_way = JoinSet::new();
    for writer in 0..writers {
        let audit = audit.clone();
        under_way.spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < time {
                let asked = Instant::now();
                audit.write(entry(writer)).await?;
                took.push(asked.elapsed());
            }
            anyhow::Ok(took)
        });
    }
    let mut took = Vec::new();
    while let Some(of_writer) = under_way.join_next().await {
        took.extend(of_writer.context("a writer died")??);
    }
    let seconds = began.elapsed().as_secs_f64();
    audit.close();
    let lines = took.len();
    ensure!(verify(&folder, |_, _| {})?.lines == lines as u64 + 1, "lines are missing");
    let bytes = tail(&folder, 1)?.first().map_or(0, String::len);
    took.sort_unstable();
    let at = |part: f64| took.get((lines as f64 * part) as usize).map_or(0, Duration::as_micros);
    Ok(json!({
        "lines_per_s": (lines as f64 / seconds).round(), "lines": lines, "writers": writers, "line_bytes": bytes,
        "p50_us": at(0.5), "p99_us": at(0.99), "disk": disk(&dir.join("bare-disk.probe"), bytes, time / 2)?,
    }))
}

/// What one gets who writes a line and waits for the disk, one after the other.
fn disk(path: &Path, bytes: usize, time: Duration) -> anyhow::Result<Value> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    let line = vec![b'x'; bytes];
    let (began, mut lines) = (Instant::now(), 0_u32);
    while began.elapsed() < time {
        file.write_all(&line)?;
        file.sync_data()?;
        lines += 1;
    }
    let rate = f64::from(lines) / began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(json!({ "lines_per_s": rate.round() }))
}

async fn verified(dir: &Path, lines: usize) -> anyhow::Result<Value> {
    let folder = dir.join("audit");
    make(&folder, lines).await?;
    let bytes: u64 = fs::read_dir(&folder)?.map(|file| Ok(file?.metadata()?.len())).sum::<anyhow::Result<u64>>()?;
    let read = Instant::now();
    let mut buffer = vec![0; 1 << 20];
    for file in fs::read_dir(&folder)? {
        let mut file = File::open(file?.path())?;
        while file.read(&mut buffer)? > 0 {}
    }
    let read = read.elapsed().as_secs_f64();
    let began = Instant::now();
    let verified = verify(&folder, |_, _| {})?;
    let seconds = began.elapsed().as_secs_f64();
    ensure!(verified.lines == lines as u64, "lines are missing: {verified:?}");
    Ok(json!({
        "seconds": round(seconds), "lines": lines, "files": verified.files, "mb": bytes / 1_000_000,
        "disk": { "seconds": round(read) },
    }))
}

async fn make(folder: &Path, lines: usize) -> anyhow::Result<()> {
    let audit = Arc::new(AuditLog::open(folder, AuditSettings::default())?);
    let next = Arc::new(AtomicUsize::new(0));
    let mut makers = JoinSet::new();
    for _ in 0..MAKERS {
        let (audit, next) = (audit.clone(), next.clone());
        makers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= lines {
                    return anyhow::Ok(());
                }
                audit.write(entry(number)).await?;
            }
        });
    }
    while let Some(made) = makers.join_next().await {
        made.context("a maker died")??;
    }
    audit.close();
    Ok(())
}

/// What an action of a grant has in its line.
fn entry(number: usize) -> AuditEntry {
    AuditEntry {
        actor: "reviewer".to_owned(),
        user: "me".to_owned(),
        action: "edit_buffer".to_owned(),
        args: format!(r#"{{"path":"/home/me/project/src/module/file_{number}.rs","edits":{{"bytes":{number}}}}}"#),
        result: "allowed".to_owned(),
        session_id: Some("0198f6a2-0000-7000-8000-000000000001".to_owned()),
        request_id: Some("0198f6a2-0000-7000-8000-000000000002".to_owned()),
        of: None,
    }
}

fn round(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}
