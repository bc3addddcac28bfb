//! The two sides of a measurement and the load on them (`perf/`), each with a process group of its own.

use std::{
    env,
    ffi::OsString,
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::Options;
use crate::{
    Place,
    place::Scratch,
    process::{self, Daemon, Group, Show},
};

/// How long a side may take to accept its first connection.
const START: Duration = Duration::from_secs(30);

/// How long it may take to end.
const STOP: Duration = Duration::from_secs(10);

/// After the first connection, for what a side still has to do before it rests.
const SETTLE: Duration = Duration::from_millis(500);

/// Where the one server of a side is, or the hub of several.
pub(super) const MCP: &str = "/mcp";

const TOKEN: &str = "a-token-for-the-bench";

/// Raises the soft limit of open files to the hard one: two sockets a session are more than most shells allow.
const UNLIMITED: &str = r#"ulimit -n "$(ulimit -H -n)" 2>/dev/null; exec "$@""#;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// What Prism is held against: the floor in front of a child, a plain proxy in front of a server.
    Floor,
    /// Prism, or what stands in its place.
    Bridge,
}

/// What both sides stand in front of.
#[derive(Clone, Copy)]
pub(super) enum Behind<'a> {
    /// A child each: `echo-stdio`.
    Child,
    /// One server for both.
    Server(&'a EchoHttp),
}

/// `echo-http`, ended when dropped.
pub(super) struct EchoHttp {
    port: u16,
    _daemon: Daemon,
}

pub(super) struct Rig<'a> {
    pub(super) place: &'a Place,
    pub(super) options: Options,
}

/// A started side. Ended, with everything below it, when dropped.
pub(super) struct Running<'a> {
    rig: &'a Rig<'a>,
    daemon: Daemon,
    port: u16,
    home: Scratch,
}

// === impl Side ===

impl Side {
    /// Both, the other one first in every second round, so that a machine that gets slower favours nobody.
    pub(super) fn in_round(round: usize) -> [Self; 2] {
        if round.is_multiple_of(2) { [Self::Floor, Self::Bridge] } else { [Self::Bridge, Self::Floor] }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Bridge => "prism",
        }
    }
}

// === impl Rig ===

impl<'a> Rig<'a> {
    pub(super) fn new(place: &'a Place, options: Options) -> Self {
        Self { place, options }
    }

    /// Starts a side and waits until it listens. `extra` are options of `prism run`.
    pub(super) fn start(&'a self, side: Side, behind: Behind<'_>, extra: &[&str]) -> anyhow::Result<Running<'a>> {
        let (port, home) = (free_port()?, Scratch::new()?);
        let command = self.command(side, behind, port, extra);
        let daemon = self.daemon(&format!("bench-{}", side.name()), &command, port, &home)?;
        Ok(Running { rig: self, daemon, port, home })
    }

    /// Starts a `prism serve` in front of this many children, `d1` and so on, that have that many tools each.
    pub(super) fn hub(&'a self, destinations: usize, tools: usize) -> anyhow::Result<Running<'a>> {
        self.serve(destinations, tools, "")
    }

    /// The same in front of two, of which `d2` has rules for its tools that are for none of its calls.
    pub(super) fn gated(&'a self) -> anyhow::Result<Running<'a>> {
        let rules = "[server.d2.tools]\n\
                     allow = [{ tool = \"query\", arguments = { sql = \"select *\" } }, \"read_*\"]\n\
                     confirm = [\"write_*\", \"*_file\"]\n\
                     deny = [\"delete_*\", { tool = \"*\", arguments = { path = \"*/.ssh/*\" } }]\n\
                     otherwise = \"allow\"\n";
        self.serve(2, 1, rules)
    }

    fn serve(&'a self, destinations: usize, tools: usize, more: &str) -> anyhow::Result<Running<'a>> {
        let (port, home) = (free_port()?, Scratch::new()?);
        let echo = Value::from(self.place.release("echo-stdio").to_string_lossy());
        // More sessions than the rounds open: a load does not end its own.
        let mut config = "max_sessions = 1000\n".to_owned();
        for n in 1..=destinations {
            config += &format!("[server.d{n}]\ncommand = [{echo}, \"{tools}\"]\n");
        }
        config += more;
        let file = home.path().join("prism.toml");
        fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
        let words = [self.place.release("prism").into(), "serve".into(), "--config".into(), file.into_os_string()];
        let words = [&words[..], &["--port".into(), port.to_string().into()]].concat();
        let daemon = self.daemon("bench-hub", &words, port, &home)?;
        Ok(Running { rig: self, daemon, port, home })
    }

    /// Starts a `prism serve` whose gate is in nobody's way, with an editor.
    pub(super) fn editor(&'a self) -> anyhow::Result<Running<'a>> {
        let mut more = "[gate]\nrate_limit = 100000\nmax_edit_bytes = \"4MB\"\n".to_owned();
        if let Some(server) = typescript() {
            let folder = server.ancestors().nth(2).unwrap_or(&server);
            more += &format!("[editor]\nreadable = [{folder:?}]\n");
            more += &format!("[editor.servers]\ntypescript = [{server:?}, \"--lsp\", \"--stdio\"]\n");
        }
        self.serve(0, 0, &more)
    }

    /// The same without fences: what is started there is in no sandbox.
    pub(super) fn unfenced(&'a self) -> anyhow::Result<Running<'a>> {
        self.serve(0, 0, "[gate]\nrate_limit = 100000\n[editor]\nfence = false\n")
    }

    /// Starts the server that a proxy and Prism are compared in front of.
    pub(super) fn echo_http(&self) -> anyhow::Result<EchoHttp> {
        let (port, home) = (free_port()?, Scratch::new()?);
        let words = [self.place.release("echo-http").into(), port.to_string().into(), "legacy".into()];
        Ok(EchoHttp { port, _daemon: self.daemon("bench-echo-http", &words, port, &home)? })
    }

    /// Runs the audit log itself, in a folder of its own.
    pub(super) fn audit(&self, act: &str) -> anyhow::Result<Value> {
        let home = Scratch::new()?;
        let mut command = unlimited(&[self.place.release("audit").into(), act.into(), home.path().into()]);
        if act == "write" {
            command.args(["--secs", &self.options.secs.to_string()]);
        }
        outcome(command, Duration::from_secs(300))
    }

    fn daemon(&self, name: &str, words: &[OsString], port: u16, home: &Scratch) -> anyhow::Result<Daemon> {
        let (log, path) = self.place.log(name)?;
        let mut command = unlimited(words);
        command.env("PRISM_API_KEY", TOKEN).env("PRISM_HOME", home.path());
        command.stdout(log.try_clone().context("cannot share the log")?).stderr(log);
        let mut daemon = Daemon::new(Group::spawn(command)?, format!("={}", home.path().display()));
        let deadline = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if daemon.ended() || Instant::now() >= deadline {
                bail!("{name} does not listen on port {port}; see {}", path.display());
            }
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(SETTLE);
        Ok(daemon)
    }

    /// Time from the start of a side to its first answer: here the load starts it.
    pub(super) fn first(&self, side: Side) -> anyhow::Result<Value> {
        let (port, home) = (free_port()?, Scratch::new()?);
        let mut command = Command::new(self.place.release("load"));
        command.args(["first", &url(port), "--secs", "20", "--header", &authorization(), "--"]);
        command
            .args(self.command(side, Behind::Child, port, &[]))
            .env("PRISM_API_KEY", TOKEN)
            .env("PRISM_HOME", home.path());
        outcome(command, Duration::from_secs(40))
    }

    fn command(&self, side: Side, behind: Behind<'_>, port: u16, extra: &[&str]) -> Vec<OsString> {
        let echo = self.place.release("echo-stdio").into_os_string();
        let port = port.to_string();
        let upstream = match behind {
            Behind::Child => String::new(),
            Behind::Server(server) => url(server.port),
        };
        match (side, &self.options.bridge, behind) {
            (Side::Floor, _, Behind::Child) => vec![self.place.release("floor").into(), port.into(), echo],
            (Side::Floor, _, Behind::Server(server)) => {
                vec![self.place.release("proxy").into(), port.into(), format!("127.0.0.1:{}", server.port).into()]
            }
            (Side::Bridge, Some(other), _) => {
                let fill = |word: &String| {
                    let word = word.replace("{port}", &port).replace("{upstream}", &upstream);
                    word.replace("{echo}", &echo.to_string_lossy()).into()
                };
                other.iter().map(fill).collect()
            }
            (Side::Bridge, None, _) => {
                let mut words: Vec<OsString> = vec![self.place.release("prism").into()];
                words.extend(["run", "--port", &port].map(OsString::from));
                words.extend(extra.iter().map(OsString::from));
                match behind {
                    Behind::Child => {
                        let most = (self.options.sessions + 100).max(10_000).to_string();
                        words.extend(["--max-sessions", &most, "--"].map(OsString::from));
                        words.push(echo);
                    }
                    Behind::Server(_) => words.extend(["--url", &upstream].map(OsString::from)),
                }
                words
            }
        }
    }
}

/// TypeScript's compiler, which is its language server too, where `yardstick/editor` has installed it.
fn typescript() -> Option<PathBuf> {
    let cache = env::var_os("YARDSTICK_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache/yardstick")))?;
    Some(cache.join("editor/node_modules/.bin/tsc")).filter(|file| file.is_file())
}

/// Returns how many files a process may have open, once it has raised its limit.
pub(super) fn open_files() -> Option<usize> {
    let answer = Command::new("sh").args(["-c", "ulimit -H -n"]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    if text.trim() == "unlimited" { Some(usize::MAX) } else { text.trim().parse().ok() }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}{MCP}")
}

fn authorization() -> String {
    format!("Authorization: Bearer {TOKEN}")
}

/// A port that was free a moment ago: the floor cannot say which one it took.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr().context("no free port")?.port())
}

fn unlimited(words: &[OsString]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", UNLIMITED, "sh"]).args(words);
    command
}

/// What the load measured. What went wrong stands under `failed`, beside what was measured all the same.
fn outcome(command: Command, limit: Duration) -> anyhow::Result<Value> {
    let ran = match process::run(command, limit, Show::Nothing, || ()) {
        Ok(ran) => ran,
        Err(error) => return Ok(json!({ "failed": format!("{error:#}") })),
    };
    let mut figures: Value = serde_json::from_str(ran.stdout.trim()).unwrap_or_else(|_| json!({}));
    if !ran.status.success() {
        let words = ran.stderr.split("Stack backtrace").next().unwrap_or_default();
        let words: Vec<&str> = words.split_whitespace().collect();
        let fault = figures["fault"].as_str().map(|fault| format!(" ({fault})")).unwrap_or_default();
        figures["failed"] = format!("{}{fault}", words.join(" ")).into();
    }
    Ok(figures)
}

// === impl Running ===

impl Running<'_> {
    pub(super) fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Prism's own folder.
    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    /// How long a load of the usual length may take.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.rig.options.secs) + Duration::from_secs(40)
    }

    pub(super) fn load(&self, kind: &str, arguments: &[&str], limit: Duration) -> anyhow::Result<Value> {
        self.load_at(MCP, kind, arguments, limit)
    }

    pub(super) fn load_at(&self, path: &str, kind: &str, arguments: &[&str], limit: Duration) -> anyhow::Result<Value> {
        let load = self.rig.place.release("load").into_os_string();
        let mut command = unlimited(&[load, kind.into(), format!("http://127.0.0.1:{}{path}", self.port).into()]);
        command.args(arguments).args(["--header", &authorization()]);
        outcome(command, limit)
    }

    /// Runs `editor ACT` on it, in a folder that the tree of files is kept in, and where it takes two on the other, too.
    pub(super) fn edit(&self, act: &str, other: Option<&Self>, limit: Duration) -> anyhow::Result<Value> {
        let place = self.rig.place;
        let folder = if matches!(act, "find" | "tree") { "bench-tree" } else { "bench-files" };
        let url = format!("http://127.0.0.1:{}", self.port);
        let mut command = unlimited(&[place.release("editor").into(), act.into(), "--url".into(), url.into()]);
        command.arg("--home").arg(self.home.path()).arg("--dir").arg(place.target.join(folder));
        command.args(["--secs", &self.rig.options.secs.to_string()]).env("PRISM_API_KEY", TOKEN);
        if let Some(other) = other {
            let url = format!("http://127.0.0.1:{}", other.port);
            command.args(["--other-url", &url, "--other-home"]).arg(other.home.path());
        }
        if let Some(server) = typescript() {
            command.arg("--server").arg(server).args(["--lsp", "--stdio"]);
        }
        outcome(command, limit)
    }

    /// Ends it and returns what it left behind or did wrong.
    pub(super) fn stop(mut self) -> Vec<String> {
        self.daemon.stop(STOP)
    }
}
