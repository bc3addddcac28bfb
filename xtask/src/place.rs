//! Where things are: the workspace, the target directory, scratch space.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::Context;

pub(crate) struct Place {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

/// A directory that goes away with its owner.
pub(crate) struct Scratch(PathBuf);

// === impl Place ===

impl Place {
    /// Asks cargo, so that `CARGO_TARGET_DIR` and every `config.toml` are obeyed.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let manifest = root().join("Cargo.toml");
        let answer = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest)
            .output()
            .context("cannot run cargo metadata")?;
        let complaint = String::from_utf8_lossy(&answer.stderr);
        anyhow::ensure!(answer.status.success(), "cargo metadata failed: {complaint}");
        let metadata: serde_json::Value = serde_json::from_slice(&answer.stdout).context("cargo metadata")?;
        let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
        Ok(Self { root: root(), target: target.into() })
    }

    /// A cargo command in the workspace, on the same target directory as this run.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo());
        command.args(arguments).current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_this_run)) {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn release(&self, binary: &str) -> PathBuf {
        self.target.join("release").join(format!("{binary}{}", std::env::consts::EXE_SUFFIX))
    }

    /// Opens `target/xtask/NAME.log`, empty.
    pub(crate) fn log(&self, name: &str) -> anyhow::Result<(File, PathBuf)> {
        let path = self.target.join("xtask").join(format!("{name}.log"));
        let parent = path.parent().context("a log has a directory")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok((file, path))
    }
}

/// Whether a variable is there because `cargo run` started us. Build scripts ask to be run anew when such a variable is
/// another one (ring's does), so a build of ours and one of a person would undo each other, and all that depends on it.
fn is_of_this_run(name: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    name == "CARGO_PRIMARY_PACKAGE" || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns the workspace's root, which is the directory above this crate.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

// === impl Scratch ===

impl Scratch {
    pub(crate) fn new() -> anyhow::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("prism-xtask-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
