//! What the yardstick runners need from the machine, and how it gets there. What they install themselves
//! (packages, virtual environments) is their own affair.

use std::{
    env,
    ffi::OsString,
    path::Path,
    process::{Command, Stdio},
    sync::OnceLock,
    time::Duration,
};

use anyhow::{Context, ensure};

use super::bridge::Server;
use crate::{
    Place,
    process::{self, Show},
    say::say,
};

/// How long an install may take, on a slow line.
const INSTALL: Duration = Duration::from_secs(600);

/// The oldest node that the clients and the fixture run on.
const NODE: u32 = 20;

/// What distributions call the browser, as `console/run.sh` looks for it.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// With venv, 3.10 or newer.
    Python,
    /// With npm.
    Node,
    /// A terminal for programs that want a person.
    Tmux,
    /// A browser.
    Chromium,
    Git,
    /// A compiler of C, and make.
    Compiler,
    Ripgrep,
    /// Makes the sandboxes that agents' programs run in.
    Bubblewrap,
    /// With ctest and a compiler of C++.
    Cmake,
    Go,
    /// Language servers.
    Gopls,
    Clangd,
}

/// What tests of the workspace need beside Rust, and what to know where it cannot be had.
const OF_TESTS: [(Tool, &str); 6] = [
    (Tool::Git, "tests of git, searching and watching fail"),
    (Tool::Python, "tests of language servers and Python projects fail"),
    (Tool::Node, "tests of the fence and of npm projects fail"),
    (Tool::Compiler, "tests of the fence and of make projects fail"),
    (Tool::Bubblewrap, "tests of the sandbox are skipped"),
    (Tool::Tmux, "the wake path `tmux` is not tested"),
];

/// Installs what the tests of the workspace need, before the first of them runs. Returns what is missing all the same, with
/// what to type.
pub(crate) fn prepare(place: &Place) -> Vec<String> {
    let mut missing = Vec::new();
    for (tool, then) in OF_TESTS {
        if !tool.is_there() {
            install(tool);
        }
        if !tool.is_there() {
            missing.push(format!("{}: {then}; type: apt-get install {}", tool.name(), tool.packages()));
        }
    }
    let path = env::var_os("PATH").unwrap_or_default();
    if let Err(error) = library(place, "yard_rust", &path) {
        missing.push(format!("rust-analyzer with the standard library: tests with it are skipped; {error:#}"));
    }
    missing
}

/// Installs what Prism's search is measured beside. Where it cannot be had, those measures say so.
pub(crate) fn install_ripgrep() {
    Tool::wish(&[Tool::Ripgrep]);
}

/// The same for what the sandbox is measured with.
pub(crate) fn install_bubblewrap() {
    Tool::wish(&[Tool::Bubblewrap]);
}

/// What a yardstick runs on; `path` has a node that is new enough in front.
pub(super) struct Tools {
    pub(super) path: OsString,
}

// === impl Tool ===

impl Tool {
    /// Installs what is missing, where that is possible.
    pub(super) fn wish(tools: &[Self]) {
        tools.iter().filter(|tool| !tool.is_there()).for_each(|tool| install(*tool));
    }

    fn is_there(self) -> bool {
        match self {
            Self::Python => {
                let script = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
                answer("python3", &["-c", script]).is_some()
            }
            Self::Node => node_major().is_some() && answer("npm", &["--version"]).is_some(),
            Self::Tmux => answer("tmux", &["-V"]).is_some(),
            Self::Git => answer("git", &["--version"]).is_some(),
            Self::Ripgrep => answer("rg", &["--version"]).is_some(),
            Self::Bubblewrap => answer("bwrap", &["--version"]).is_some(),
            Self::Compiler => answer("cc", &["--version"]).is_some() && answer("make", &["--version"]).is_some(),
            Self::Cmake => ["cmake", "ctest", "c++", "make"].iter().all(|name| answer(name, &["--version"]).is_some()),
            Self::Go => answer("go", &["version"]).is_some(),
            Self::Gopls => answer("gopls", &["version"]).is_some(),
            Self::Clangd => answer("clangd", &["--version"]).is_some(),
            Self::Chromium => BROWSERS.iter().any(|name| answer(name, &["--version"]).is_some()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Python => "python3 (3.10 or newer) with venv",
            Self::Node => "node (20 or newer) with npm",
            Self::Tmux => "tmux",
            Self::Chromium => "chromium",
            Self::Git => "git",
            Self::Compiler => "a C compiler and make",
            Self::Ripgrep => "ripgrep",
            Self::Bubblewrap => "bubblewrap",
            Self::Cmake => "cmake, a C++ compiler and make",
            Self::Go => "go",
            Self::Gopls => "gopls",
            Self::Clangd => "clangd",
        }
    }

    fn packages(self) -> &'static str {
        match self {
            Self::Python => "python3 python3-venv",
            Self::Node => "nodejs npm",
            Self::Tmux => "tmux",
            Self::Chromium => "chromium",
            Self::Git => "git",
            Self::Compiler => "gcc libc6-dev make",
            Self::Ripgrep => "ripgrep",
            Self::Bubblewrap => "bubblewrap",
            Self::Cmake => "cmake g++ make",
            Self::Go => "golang-go",
            Self::Gopls => "gopls",
            Self::Clangd => "clangd",
        }
    }
}

// === impl Tools ===

impl Tools {
    /// Finds what a runner needs, installing it where that is possible; else the line that says what to
    /// install by hand.
    pub(super) fn find(place: &Place, needed: &[Tool]) -> anyhow::Result<Result<Self, String>> {
        let missing = || needed.iter().copied().filter(|tool| !tool.is_there()).collect::<Vec<Tool>>();
        Tool::wish(needed);
        let missing: Vec<&str> = missing().into_iter().map(Tool::name).collect();
        if !missing.is_empty() {
            return Ok(Err(format!("install {}", missing.join(" and "))));
        }
        let path = env::var_os("PATH").unwrap_or_default();
        if !needed.contains(&Tool::Node) || node_major().is_some_and(|major| major >= NODE) {
            return Ok(Ok(Self { path }));
        }
        say(format_args!("the system's node is older than {NODE}: fetching one from npm"));
        let node = library(place, "yard_node", &path)?;
        let folder = Path::new(&node).parent().context("yard_node prints a path")?;
        let path = env::join_paths(std::iter::once(folder.to_owned()).chain(env::split_paths(&path)))?;
        Ok(Ok(Self { path }))
    }

    /// Installs the fixture now, so that no client waits for it later, and returns its command: the program itself, as a shell
    /// in front of it, which looks whether all is installed, takes as long as its start.
    pub(super) fn everything(&self, place: &Place) -> anyhow::Result<[OsString; 2]> {
        let said = library(place, "yard_npm everything-server && node -p process.execPath", &self.path)?;
        let (folder, node) = said.split_once('\n').context("yard_npm prints a folder")?;
        Ok([node.into(), Path::new(folder).join("server.mjs").into()])
    }

    /// The fixture on stdio, with these options.
    pub(super) fn fixture(&self, place: &Place, options: &[&str]) -> anyhow::Result<Server> {
        let words = self.everything(place)?.into_iter();
        Ok(Server::Command(words.chain(options.iter().map(OsString::from)).collect()))
    }

    /// Installs the real servers, fills a folder with what they work on, and returns the configuration of all.
    pub(super) fn servers(&self, place: &Place, folder: &Path) -> anyhow::Result<String> {
        let mut command = self.bash(place, "servers/run.sh");
        command.arg("--config").arg(folder);
        let ran = process::run(command, INSTALL, Show::Nothing, || ())?;
        ensure!(ran.status.success(), "servers/run.sh --config: {}", ran.stderr.trim());
        Ok(ran.stdout)
    }

    /// A runner of `yardstick/`, to be given its arguments.
    pub(super) fn bash(&self, place: &Place, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.arg(place.root.join("yardstick").join(script)).env("PATH", &self.path).env_remove("CARGO_TARGET_DIR");
        command
    }
}

/// Calls a function of `yardstick/lib.sh` and returns what it prints.
fn library(place: &Place, call: &str, path: &OsString) -> anyhow::Result<String> {
    let mut command = Command::new("bash");
    command.args(["-c", &format!(". yardstick/lib.sh && {call}")]).current_dir(&place.root).env("PATH", path);
    let ran = process::run(command, INSTALL, Show::Nothing, || ())?;
    let said = if ran.stderr.trim().is_empty() { &ran.stdout } else { &ran.stderr };
    ensure!(ran.status.success(), "{call}: {}", said.trim());
    Ok(ran.stdout.trim().to_owned())
}

fn node_major() -> Option<u32> {
    answer("node", &["--version"])?.strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// What a program prints, when it is there and content.
fn answer(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Tries apt, and only as root: nothing else may be changed without asking.
fn install(tool: Tool) {
    static UPDATED: OnceLock<()> = OnceLock::new();
    if answer("id", &["-u"]).as_deref() != Some("0") {
        return;
    }
    let update = if UPDATED.set(()).is_ok() { "apt-get update -qq && " } else { "" };
    let script = format!("{update}apt-get install -y -qq {}", tool.packages());
    say(format_args!("no {}; running {script}", tool.name()));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("DEBIAN_FRONTEND", "noninteractive");
    match process::run(command, INSTALL, Show::Nothing, || ()) {
        Ok(ran) if ran.status.success() => {}
        Ok(ran) => say(format_args!("it failed: {}", ran.stderr.trim())),
        Err(error) => say(format_args!("it failed: {error:#}")),
    }
}
