//! The extension of VS Code: checked as a lane, built by `cargo xtask extension`.
//!
//! What is built is committed, because machines with nothing but Rust build Prism, too, and Prism carries it. So the lane
//! builds it once more and compares. All of it happens in a copy in the cache, where the packages are installed once.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use crate::{
    Outcome, Place,
    place::Scratch,
    process::{self, Show},
    say::say,
    test::Verdict,
};

/// What is needed to build and test it, below `editors/vscode`. What is not in every tree is left out.
const SOURCES: [&str; 9] =
    ["package.json", "package-lock.json", ".npmrc", "tsconfig.json", "build.mjs", "README.md", "src", "test", "media"];
/// What its tests read of the rest: what is said of the protocol, and what tools have said.
const READ: [&str; 2] = ["docs", "crates/editor/src/run/project/tests"];
const BUILT: &str = "dist/extension.js";

/// How long the packages may take to come, on a slow line, and each step after that.
const INSTALL: Duration = Duration::from_secs(600);
const STEP: Duration = Duration::from_secs(180);

/// The copy in the cache. It is ours alone for as long as the lock is held.
struct Workshop {
    source: PathBuf,
    folder: PathBuf,
    _lock: File,
}

/// Checks types, runs the tests, and compares what is committed with what is built.
pub(crate) fn lane(place: &Place) -> anyhow::Result<Verdict> {
    if let Some(missing) = missing() {
        return Ok(Verdict::Skipped(missing));
    }
    let workshop = Workshop::open(place)?;
    for task in ["check", "test", "build"] {
        workshop.npm(&["run", "--silent", task], STEP)?;
    }
    let (built, committed) = (fs::read(workshop.folder.join(BUILT))?, fs::read(workshop.source.join(BUILT)));
    ensure!(
        committed.is_ok_and(|committed| committed == built),
        "editors/vscode/{BUILT} is not what its sources give: run `cargo xtask extension`, and commit it"
    );
    say(format_args!("{BUILT}: {} bytes, as committed", built.len()));
    Ok(Verdict::Passed)
}

/// Builds what is committed; with `--vsix` also the package that Prism makes of it.
pub(crate) fn build(place: &Place, arguments: &[String]) -> anyhow::Result<Outcome> {
    let packs = match arguments {
        [] => false,
        [flag] if flag == "--vsix" => true,
        _ => bail!("cargo xtask extension [--vsix]"),
    };
    if let Some(missing) = missing() {
        bail!("{missing}");
    }
    let workshop = Workshop::open(place)?;
    for task in ["check", "build"] {
        workshop.npm(&["run", "--silent", task], STEP)?;
    }
    let built = workshop.source.join(BUILT);
    fs::create_dir_all(built.parent().context("it lies in a folder")?)?;
    fs::copy(workshop.folder.join(BUILT), &built).with_context(|| format!("cannot write {}", built.display()))?;
    say(format_args!("built {}", built.display()));
    if packs {
        pack(place)?;
    }
    Ok(Outcome::Good)
}

/// Has a Prism make the package. Where it finds no editor's command, it leaves the package for the person.
fn pack(place: &Place) -> anyhow::Result<()> {
    let status = place.cargo(&["build", "--locked", "-p", "prism"]).stdin(Stdio::null()).status()?;
    ensure!(status.success(), "cargo build: {status}");
    let (nowhere, home) = (Scratch::new()?, place.target.join("xtask/prism-home"));
    let mut prism = Command::new(place.target.join("debug/prism"));
    prism.args(["install", "vscode", "--json"]).env_clear().env("HOME", nowhere.path()).env("PRISM_HOME", &home);
    let ran = process::run(prism, STEP, Show::Nothing, || ())?;
    ensure!(ran.status.success(), "prism install vscode: {}", ran.stderr.trim());
    let rows: serde_json::Value = serde_json::from_str(&ran.stdout).context("prism install vscode --json")?;
    let package = rows.as_array().and_then(|rows| rows.iter().find_map(|row| row["package"].as_str()));
    say(format_args!("packed {}", package.context("prism install vscode left no package")?));
    Ok(())
}

/// What the machine lacks.
fn missing() -> Option<String> {
    let mut npm = Command::new("npm");
    npm.arg("--version").stdin(Stdio::null());
    let is_there = npm.output().is_ok_and(|output| output.status.success());
    (!is_there).then(|| "install node (20 or newer) with npm: the extension is built with it".to_owned())
}

/// Where yardsticks install things, as `yardstick/lib.sh` has it.
fn cache() -> anyhow::Result<PathBuf> {
    if let Some(folder) = env::var_os("YARDSTICK_CACHE") {
        return Ok(folder.into());
    }
    Ok(PathBuf::from(env::var_os("HOME").context("HOME is not set")?).join(".cache/yardstick"))
}

// === impl Workshop ===

impl Workshop {
    /// Copies the sources, and installs the packages if the lockfile is another one than last time.
    fn open(place: &Place) -> anyhow::Result<Self> {
        let (source, tree) = (place.root.join("editors/vscode"), cache()?.join("extension"));
        let folder = tree.join("editors/vscode");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let lock = File::create(folder.join(".lock")).context("cannot make a lock in the cache")?;
        lock.lock().context("cannot lock the cache")?;
        for name in SOURCES {
            let (from, to) = (source.join(name), folder.join(name));
            let _ = if to.is_dir() { fs::remove_dir_all(&to) } else { fs::remove_file(&to) };
            copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
        }
        for name in READ {
            copy(&place.root.join(name), &tree.join(name)).with_context(|| format!("cannot copy {name}"))?;
        }
        let workshop = Self { source, folder, _lock: lock };
        let stamp = workshop.folder.join(".installed");
        let wanted = fs::read(workshop.folder.join("package-lock.json")).context("package-lock.json")?;
        if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
            let _ = fs::remove_file(&stamp);
            workshop.npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"], INSTALL)?;
            fs::write(&stamp, wanted)?;
        }
        Ok(workshop)
    }

    fn npm(&self, arguments: &[&str], limit: Duration) -> anyhow::Result<()> {
        let mut command = Command::new("npm");
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        let ran = process::run(command, limit, Show::Live, || ())?;
        ensure!(ran.status.success(), "npm {}: {}", arguments.join(" "), ran.status);
        Ok(())
    }
}

/// Copies a file or a folder, if it is there.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if from.exists() {
        fs::copy(from, to)?;
    }
    Ok(())
}
