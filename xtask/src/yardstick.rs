//! The yardstick lanes: `yardstick/` against our own release binary, as a person would run both.

mod tools;

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};

use crate::{
    Place,
    place::Scratch,
    process::{self, Daemon, Group, Show},
    say::say,
    test::Verdict,
};

use tools::{Tool, Tools};

/// How long the daemon may take to say where it listens.
const START: Duration = Duration::from_secs(20);

/// How long it may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(15);

/// How often its processes are looked at while a yardstick runs.
const LOOK: Duration = Duration::from_millis(250);

const TOKEN: &str = "a-token-for-the-yardsticks";

/// The clients that speak the revisions up to 2025-11-25 only; the others ask `server/discover` first.
const LEGACY: [&str; 7] = ["ts-v1", "ts-v2", "py-v1", "py-v2-legacy", "fastmcp-legacy", "rmcp", "inspector"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Auth {
    Token,
    Off,
}

/// Prism itself, started with `prism run` and a home of its own.
struct Bridge {
    daemon: Daemon,
    url: String,
    log: PathBuf,
    _home: Scratch,
}

pub(crate) fn crosstalk(place: &Place) -> anyhow::Result<Verdict> {
    let tools = match Tools::find(place, &[Tool::Python])? {
        Ok(tools) => tools,
        Err(missing) => return Ok(Verdict::Skipped(missing)),
    };
    let server = place.root.join("yardstick/crosstalk/echo_server.py");
    let server = ["python3".as_ref(), server.as_os_str()];
    let mut runs = Vec::new();
    for sessions in ["32", "128"] {
        for mixed in [None, Some("--mixed-ids")] {
            let arguments: Vec<&str> = ["--sessions", sessions].into_iter().chain(mixed).collect();
            runs.push(Run { name: "crosstalk", arguments, process: "shared", limit: Duration::from_secs(240) });
        }
    }
    // These clients can be asked, so by default each has a child of its own. Once more with all of them on one, less the
    // questions, whose owner nobody could know there.
    let arguments = vec!["--sessions", "128", "--mixed-ids", "--phases", "echo,cancel"];
    runs.push(Run { name: "crosstalk", arguments, process: "shared_always", limit: Duration::from_secs(240) });
    measure(place, &tools, Auth::Token, &server, &runs)
}

pub(crate) fn conformance(place: &Place) -> anyhow::Result<Verdict> {
    let tools = match Tools::find(place, &[Tool::Python, Tool::Node])? {
        Ok(tools) => tools,
        Err(missing) => return Ok(Verdict::Skipped(missing)),
    };
    let server = tools.everything(place)?;
    let run = |set| {
        let limit = Duration::from_secs(300);
        Run { name: "conformance", arguments: vec![set], process: "shared", limit }
    };
    // The suite cannot send a token.
    measure(place, &tools, Auth::Off, &[server.as_os_str()], &[run("2025-11-25"), run("stable")])
}

pub(crate) fn clients(place: &Place) -> anyhow::Result<Verdict> {
    let tools = match Tools::find(place, &[Tool::Python, Tool::Node])? {
        Ok(tools) => tools,
        Err(missing) => return Ok(Verdict::Skipped(missing)),
    };
    let server = tools.everything(place)?;
    // Long, because the first run builds the rmcp client.
    let limit = Duration::from_secs(900);
    let run = Run { name: "clients", arguments: LEGACY.to_vec(), process: "shared", limit };
    measure(place, &tools, Auth::Token, &[server.as_os_str()], &[run])
}

/// One call of `yardstick/NAME/run.sh URL ARGUMENTS`.
struct Run {
    name: &'static str,
    arguments: Vec<&'static str>,
    /// Who shares a child: `prism run --process`.
    process: &'static str,
    limit: Duration,
}

/// Runs each on a bridge of its own, all of them even when one fails.
fn measure(place: &Place, tools: &Tools, auth: Auth, server: &[&OsStr], runs: &[Run]) -> anyhow::Result<Verdict> {
    let mut wrong = Vec::new();
    for run in runs {
        let label = format!("{} {}, {}", run.name, run.arguments.join(" "), run.process);
        say(format_args!("{label}"));
        let mut bridge = Bridge::start(place, tools, auth, server, run)?;
        let outcome = run.on(place, tools, auth, &mut bridge);
        let log = bridge.log.clone();
        let mut faults = bridge.stop();
        faults.extend(outcome.err().map(|error| format!("{error:#}")));
        if !faults.is_empty() {
            say(format_args!("the end of {}:\n{}", log.display(), tail(&log)));
            wrong.push(format!("{label}: {}", faults.join("; ")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join(" | "));
    Ok(Verdict::Passed)
}

/// The last lines of a log, for the person who has to find out.
fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

// === impl Run ===

impl Run {
    fn on(&self, place: &Place, tools: &Tools, auth: Auth, bridge: &mut Bridge) -> anyhow::Result<()> {
        let mut command = Command::new("bash");
        command.arg(place.root.join("yardstick").join(self.name).join("run.sh")).arg(&bridge.url).args(&self.arguments);
        command.env("PATH", &tools.path).env_remove("CARGO_TARGET_DIR");
        match auth {
            Auth::Token => command.env("YARD_AUTH", format!("Bearer {TOKEN}")),
            Auth::Off => command.env_remove("YARD_AUTH"),
        };
        let mut looked = Instant::now();
        let ran = process::run(command, self.limit, Show::Live, || {
            if looked.elapsed() >= LOOK {
                bridge.daemon.look();
                looked = Instant::now();
            }
        })?;
        match ran.status.code() {
            Some(0) => Ok(()),
            Some(1) => bail!("{}", ran.last_words()),
            _ => bail!("could not run ({}): {}", ran.status, ran.last_words()),
        }
    }
}

// === impl Bridge ===

impl Bridge {
    fn start(place: &Place, tools: &Tools, auth: Auth, server: &[&OsStr], run: &Run) -> anyhow::Result<Self> {
        let home = Scratch::new()?;
        let (log, path) = place.log(run.name)?;
        let mut command = Command::new(place.release("prism"));
        command.args(["run", "--port", "0", "--max-sessions", "1000", "--process", run.process]);
        match auth {
            Auth::Token => command.env("PRISM_API_KEY", TOKEN),
            Auth::Off => command.arg("--no-auth").env_remove("PRISM_API_KEY"),
        };
        command.arg("--").args(server).env("PRISM_HOME", home.path()).env("PATH", &tools.path).current_dir(home.path());
        command.stdout(Stdio::piped()).stderr(log);
        let mut group = Group::spawn(command)?;
        let stdout = group.stdout().context("the daemon's stdout")?;
        let mut daemon = Daemon::new(group, format!("={}", home.path().display()));
        let Some(url) = address(stdout) else {
            let ended = if daemon.ended() { "ended" } else { "said nothing" };
            bail!("prism {ended} before `listening on URL`; see {}:\n{}", path.display(), tail(&path));
        };
        Ok(Self { daemon, url, log: path, _home: home })
    }

    /// Ends it, and returns what it left or did wrong.
    fn stop(mut self) -> Vec<String> {
        let mut wrong: Vec<String> =
            self.daemon.zombies().into_iter().map(|process| format!("not reaped: {process}")).collect();
        wrong.extend(self.daemon.stop(STOP));
        wrong
    }
}

/// The URL in the first line that has one. The rest is read too, lest the daemon block on a full pipe.
fn address(stdout: impl std::io::Read + Send + 'static) -> Option<String> {
    let (tx, rx) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("listening on ") {
                let _ = tx.try_send(url.trim().to_owned());
            }
        }
    });
    rx.recv_timeout(START).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_one_the_daemon_prints() {
        let said = "a warning\nlistening on http://127.0.0.1:4711/mcp\nmore\n";
        assert_eq!(address(said.as_bytes()), Some("http://127.0.0.1:4711/mcp".into()));
        assert_eq!(address("no such line\n".as_bytes()), None);
    }

    #[test]
    fn every_runner_is_there_and_may_be_executed() {
        use std::os::unix::fs::PermissionsExt;
        for script in ["crosstalk/run.sh", "conformance/run.sh", "clients/run.sh", "everything-server/run.sh"] {
            let path = crate::place::root().join("yardstick").join(script);
            let mode = fs::metadata(&path).unwrap_or_else(|error| panic!("{script}: {error}")).permissions().mode();
            assert!(mode & 0o111 != 0, "{script} is not executable: chmod +x yardstick/{script}");
        }
    }
}
