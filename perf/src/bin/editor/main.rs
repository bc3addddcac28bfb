//! `editor open|find|tree|edit-event|diagnostics|true|cargo-test`: how fast the built-in editor is for who works over a WebSocket with a grant, and
//! beside it what it is held against: the bare disk, ripgrep, a language server spoken to directly, a daemon without fences. One
//! line of JSON.

mod direct;
mod holder;
mod sandbox;
mod tree;

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use serde_json::{Value, json};

use direct::Server;
use holder::Holder;

/// Files that are opened, one after the other.
const FILES: usize = 100;
/// Times that a tree is gone through, on each side.
const TURNS: usize = 9;
/// Edits whose diagnostics are waited for, on each side.
const MISTAKES: usize = 15;
/// Functions of the file that has them: enough for a server to have something to do.
const FUNCTIONS: usize = 1_500;

/// In the place of a number: a string, which is none.
const WRONG: &str = "'' + a";

#[derive(Parser)]
struct Options {
    act: String,
    /// The daemon, as `http://HOST:PORT`.
    #[arg(long)]
    url: String,
    /// Its folder, with the secrets of its clients and of its person.
    #[arg(long)]
    home: PathBuf,
    /// Where files may be made. A tree that is there already is used.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long, default_value_t = 3.0)]
    secs: f64,
    /// The command of TypeScript's language server.
    #[arg(long, num_args = 1.., allow_hyphen_values = true)]
    server: Vec<String>,
    /// A daemon without fences, and its folder.
    #[arg(long)]
    other_url: Option<String>,
    #[arg(long)]
    other_home: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    fs::create_dir_all(&options.dir).with_context(|| format!("cannot make {}", options.dir.display()))?;
    let options = Options { dir: options.dir.canonicalize()?, ..options };
    let figures = match options.act.as_str() {
        "open" => open(&options).await?,
        "find" => find(&options).await?,
        "tree" => explore(&options).await?,
        "edit-event" => edit_event(&options).await?,
        "diagnostics" => diagnostics(&options).await?,
        "true" => sandbox::nothing(&options).await?,
        "cargo-test" => sandbox::cargo_test(&options).await?,
        other => bail!("there is no {other:?}"),
    };
    writeln!(std::io::stdout(), "{figures}")?;
    Ok(())
}

/// Files of 4 kB, each opened again and again.
async fn open(options: &Options) -> anyhow::Result<Value> {
    let text = "let answer = question.map(|asked| asked.answer());\n".repeat(80);
    let name = |at: usize| format!("open-{at}.rs");
    for at in 0..FILES {
        fs::write(options.dir.join(name(at)), &text)?;
    }
    let mut holder = Holder::enter(&options.url, &options.home, &options.dir).await?;
    let mut took = Vec::new();
    // The first round opens them; it counts like every other.
    let end = Instant::now() + Duration::from_secs_f64(options.secs.max(3.0));
    for at in (0..FILES).cycle() {
        let begun = Instant::now();
        let told = holder.does("open_file", json!({"path": name(at)})).await?;
        took.push(begun.elapsed());
        ensure!(told["bytes"] == text.len(), "{told}");
        if Instant::now() >= end {
            break;
        }
    }
    let mut figures = quantiles(&mut took);
    figures["floor"] = disk(&options.dir)?;
    Ok(figures)
}

/// A search through everything, and ripgrep's of the same, in turns.
async fn find(options: &Options) -> anyhow::Result<Value> {
    let found = tree::grow(&options.dir)?;
    if Command::new("rg").arg("--version").output().is_err() {
        return Ok(json!({"skipped": "no ripgrep: install the package `ripgrep`"}));
    }
    let mut holder = Holder::enter(&options.url, &options.home, &options.dir).await?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let begun = Instant::now();
        let told = holder.does("find_in_project", json!({"text": tree::NEEDLE, "limit": 1_000})).await?;
        let us = begun.elapsed();
        let matches = told["matches"].as_array().map_or(0, Vec::len);
        ensure!(matches == found && told["is_complete"] == true, "{matches} of {found} were found");
        let begun = Instant::now();
        let mut rg = Command::new("rg");
        rg.args(["--no-config", "--line-number", "--column", "--fixed-strings", tree::NEEDLE]).arg(&options.dir);
        let output = rg.stdin(Stdio::null()).output().context("cannot run rg")?;
        let them = begun.elapsed();
        let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        ensure!(lines == found, "ripgrep found {lines} of {found}");
        // The first turn of each brings the files into memory.
        if turn > 0 {
            ours.push(us);
            theirs.push(them);
        }
    }
    Ok(json!({"ms": median_ms(&mut ours), "files": tree::FILES, "floor": {"ms": median_ms(&mut theirs)}}))
}

/// All names of a tree, and how long ripgrep takes to list them.
async fn explore(options: &Options) -> anyhow::Result<Value> {
    tree::grow(&options.dir)?;
    let mut holder = Holder::enter(&options.url, &options.home, &options.dir).await?;
    let (mut ours, mut theirs, mut entries) = (Vec::new(), Vec::new(), 0);
    for turn in 0..=TURNS {
        let begun = Instant::now();
        let told = holder.does("explore_tree", json!({"depth": 16, "limit": 10_000})).await?;
        let us = begun.elapsed();
        entries = told["entries"].as_array().map_or(0, Vec::len);
        ensure!(entries > 0, "{told}");
        let begun = Instant::now();
        let listed =
            Command::new("rg").args(["--no-config", "--files"]).arg(&options.dir).stdin(Stdio::null()).output();
        if turn > 0 {
            ours.push(us);
            theirs.extend(listed.is_ok().then(|| begun.elapsed()));
        }
    }
    Ok(
        json!({"ms": median_ms(&mut ours), "entries": entries, "files": tree::FILES, "floor": {"ms": median_ms(&mut theirs)}}),
    )
}

/// From an edit of one holder to the event of it at another.
async fn edit_event(options: &Options) -> anyhow::Result<Value> {
    fs::write(options.dir.join("shared.txt"), "a line\n".repeat(500))?;
    let mut writer = Holder::enter(&options.url, &options.home, &options.dir).await?;
    let mut reader = Holder::enter(&options.url, &options.home, &options.dir).await?;
    // What an earlier run has not saved is kept, and is not what this one is about.
    let _ = writer.does("close_buffer", json!({"path": "shared.txt", "discard": true})).await;
    let mut version = writer.does("open_file", json!({"path": "shared.txt"})).await?["version"].clone();
    let mut took = Vec::new();
    let end = Instant::now() + Duration::from_secs_f64(options.secs.max(3.0));
    while Instant::now() < end {
        let start = json!({"line": 7, "character": 0});
        let edit = json!({"range": {"start": start, "end": start}, "new_text": "x"});
        let begun = Instant::now();
        let id =
            writer.begin("edit_buffer", json!({"path": "shared.txt", "version": version, "edits": [edit]})).await?;
        let (edited, seen) = tokio::try_join!(writer.result(&id), reader.event("buffer_changed"))?;
        took.push(seen.0.duration_since(begun));
        version = edited["version"].clone();
        ensure!(seen.1["version"] == version, "another version was told: {}", seen.1);
    }
    let mut figures = quantiles(&mut took);
    figures["floor"] = disk(&options.dir)?;
    Ok(figures)
}

/// From an edit to the errors of the new text; and the same from the language server itself, in turns.
async fn diagnostics(options: &Options) -> anyhow::Result<Value> {
    let Some((program, arguments)) = options.server.split_first() else {
        return Ok(
            json!({"skipped": "no TypeScript language server: run `cargo xtask test editor` once, which installs it"}),
        );
    };
    let line = |at: usize| format!("export function f{at}(a: number): number {{ return a + {at}; }}\n");
    let good: String = (0..FUNCTIONS).map(line).collect();
    let (ours, theirs) = (options.dir.join("ours"), options.dir.join("theirs"));
    for folder in [&ours, &theirs] {
        fs::create_dir_all(folder)?;
        fs::write(folder.join("tsconfig.json"), r#"{"compilerOptions": {"strict": true}, "include": ["*.ts"]}"#)?;
        fs::write(folder.join("a.ts"), &good)?;
    }
    let mut holder = Holder::enter(&options.url, &options.home, &ours).await?;
    let mut server = Server::start(program, arguments, &theirs, &good)?;
    let (mut us, mut them) = (Vec::new(), Vec::new());
    let _ = holder.does("close_buffer", json!({"path": "a.ts", "discard": true})).await;
    let mut version = holder.does("open_file", json!({"path": "a.ts"})).await?["version"].clone();
    let last = FUNCTIONS - 1;
    for turn in 0..=MISTAKES {
        // Wrong and right in turns, so that the number of errors tells which text they are of.
        let (wrong, new_text) = (turn % 2 == 0, if turn % 2 == 0 { WRONG } else { "a" });
        let column = line(last).find("return").map_or(0, |at| at + "return ".len());
        let end = column + if wrong { 1 } else { WRONG.len() };
        let range = json!({"start": {"line": last, "character": column}, "end": {"line": last, "character": end}});
        let edit = json!({"range": range, "new_text": new_text});
        let begun = Instant::now();
        let edited = holder.does("edit_buffer", json!({"path": "a.ts", "version": version, "edits": [edit]})).await?;
        version = edited["version"].clone();
        let told = holder.does("get_errors", json!({"path": "a.ts", "wait_ms": 20_000})).await?;
        let ours = begun.elapsed();
        let count =
            told["diagnostics"].as_array().into_iter().flatten().filter(|one| one["severity"] == "error").count();
        ensure!(count == usize::from(wrong) && told["analyzed_version"] == version, "turn {turn}: {told}");
        let text = if wrong {
            good.replace(&format!("return a + {last};"), &format!("return {WRONG} + {last};"))
        } else {
            good.clone()
        };
        let begun = Instant::now();
        let count = server.errors_of(&text)?;
        let theirs = begun.elapsed();
        ensure!(count == usize::from(wrong), "turn {turn}: the server itself told of {count} errors");
        if turn > 0 {
            us.push(ours);
            them.push(theirs);
        }
    }
    Ok(json!({"ms": median_ms(&mut us), "floor": {"ms": median_ms(&mut them)}}))
}

/// What a line of the audit log costs at least: to write it, and to have it on the disk.
fn disk(dir: &Path) -> anyhow::Result<Value> {
    let path = dir.join("bare-disk.probe");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let mut took = Vec::new();
    for _ in 0..300 {
        let begun = Instant::now();
        file.write_all(&[b'-'; 400])?;
        file.sync_data()?;
        took.push(begun.elapsed());
    }
    fs::remove_file(&path)?;
    Ok(quantiles(&mut took))
}

fn quantiles(took: &mut [Duration]) -> Value {
    took.sort_unstable();
    let at =
        |part: f64| took.get(((took.len() as f64 - 1.0) * part).round() as usize).map_or(0, Duration::as_micros) as u64;
    json!({"p50_us": at(0.5), "p99_us": at(0.99), "max_us": at(1.0), "count": took.len()})
}

fn median_ms(took: &mut [Duration]) -> Option<f64> {
    took.sort_unstable();
    took.get(took.len() / 2).map(milliseconds)
}

fn milliseconds(took: &Duration) -> f64 {
    (took.as_secs_f64() * 1e5).round() / 100.0
}
