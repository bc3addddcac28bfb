//! What a yardstick runs against: Prism itself, in front of one server (`prism run`) or of several (`prism serve`),
//! and the fixture where it is a server of its own (`--http`, `--sse`). Each ends with its owner.

use std::{
    ffi::OsString,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};

use super::tools::Tools;
use crate::{
    Place,
    place::Scratch,
    process::{Daemon, Group},
};

/// How long a daemon or a fixture may take to say where it listens.
const START: Duration = Duration::from_secs(20);

/// How long the daemon may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(15);

pub(super) const TOKEN: &str = "a-token-for-the-yardsticks";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Auth {
    Token,
    Off,
}

/// The server behind `prism run`.
#[derive(Clone)]
pub(super) enum Server {
    Command(Vec<OsString>),
    Url(String),
}

/// A running Prism with a home of its own.
pub(super) struct Bridge {
    pub(super) daemon: Daemon,
    pub(super) url: String,
    pub(super) log: PathBuf,
    _home: Scratch,
}

/// The fixture as an HTTP server. Dropping it ends it.
pub(super) struct Fixture {
    pub(super) url: String,
    _group: Group,
}

/// The last lines of a log, for the person who has to find out.
pub(super) fn tail(log: &Path) -> String {
    let text = fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// What follows `before` in the first line that has it. The rest is read too, lest the writer block on a full pipe.
fn address(pipe: impl Read + Send + 'static, before: &'static str) -> Option<String> {
    let (tx, rx) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if let Some((_, url)) = line.split_once(before) {
                let _ = tx.try_send(url.trim().to_owned());
            }
        }
    });
    rx.recv_timeout(START).ok()
}

fn warm(url: &str) -> anyhow::Result<()> {
    const TOOL: &str = "test_simple_text";
    let (address, path) = url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).context("it is no URL")?;
    let client = serde_json::json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "yardstick", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let params = serde_json::json!({ "name": TOOL, "arguments": {}, "_meta": client });
    let body = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: \
         {}\r\nAccept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: \
         tools/call\r\nMcp-Name: {TOOL}\r\n\r\n{body}",
        body.len(),
    );
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(START))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let status = answer.lines().next().unwrap_or_default();
    ensure!(status.contains(" 200 ") && answer.contains("\"result\""), "{status}");
    Ok(())
}

// === impl Bridge ===

impl Bridge {
    /// Starts `prism run` in front of one server. `process` says who shares a child, where there is one.
    pub(super) fn run(
        place: &Place,
        tools: &Tools,
        auth: Auth,
        server: &Server,
        process: &str,
        name: &str,
    ) -> anyhow::Result<Self> {
        let mut arguments: Vec<OsString> = vec!["run".into()];
        match server {
            Server::Command(words) => {
                arguments.extend(["--max-sessions", "1000", "--process", process, "--"].map(OsString::from));
                arguments.extend(words.iter().cloned());
            }
            Server::Url(url) => arguments.extend(["--url".into(), url.into()]),
        }
        Self::start(place, tools, auth, &arguments, Scratch::new()?, name)
    }

    /// Starts `prism serve` on a configuration; its URL is the one that all paths begin with.
    pub(super) fn serve(place: &Place, tools: &Tools, auth: Auth, config: &str, name: &str) -> anyhow::Result<Self> {
        let home = Scratch::new()?;
        let file = home.path().join("prism.toml");
        fs::write(&file, config).with_context(|| format!("cannot write {}", file.display()))?;
        let arguments = ["serve".into(), "--config".into(), file.into_os_string()];
        Self::start(place, tools, auth, &arguments, home, name)
    }

    /// The same; its URL is the hub's.
    pub(super) fn hub(place: &Place, tools: &Tools, auth: Auth, config: &str, name: &str) -> anyhow::Result<Self> {
        let mut hub = Self::serve(place, tools, auth, config, name)?;
        hub.url.push_str("/mcp");
        Ok(hub)
    }

    fn start(
        place: &Place,
        tools: &Tools,
        auth: Auth,
        arguments: &[OsString],
        home: Scratch,
        name: &str,
    ) -> anyhow::Result<Self> {
        let (log, path) = place.log(name)?;
        let mut command = Command::new(place.release("prism"));
        let (verb, rest) = arguments.split_first().context("a subcommand")?;
        command.arg(verb).args(["--port", "0"]);
        match auth {
            Auth::Token => command.env("PRISM_API_KEY", TOKEN),
            Auth::Off => command.arg("--no-auth").env_remove("PRISM_API_KEY"),
        };
        command.args(rest).env("PRISM_HOME", home.path()).env("PATH", &tools.path).current_dir(home.path());
        command.stdout(Stdio::piped()).stderr(log);
        let mut group = Group::spawn(command)?;
        let stdout = group.stdout().context("the daemon's stdout")?;
        let mut daemon = Daemon::new(group, format!("={}", home.path().display()));
        let Some(url) = address(stdout, "listening on ") else {
            let ended = if daemon.ended() { "ended" } else { "said nothing" };
            bail!("prism {ended} before `listening on URL`; see {}:\n{}", path.display(), tail(&path));
        };
        Ok(Self { daemon, url, log: path, _home: home })
    }

    /// Calls a tool of the fixture as a client of 2026-07-28 that can be asked. Such clients' calls take turns on a process of
    /// their own, which is there from then on.
    pub(super) fn warm(&self) -> anyhow::Result<()> {
        warm(&self.url).with_context(|| format!("no call at {} came through", self.url))
    }

    /// Ends it, and returns what it left or did wrong.
    pub(super) fn stop(mut self) -> Vec<String> {
        let mut wrong: Vec<String> =
            self.daemon.zombies().into_iter().map(|process| format!("not reaped: {process}")).collect();
        wrong.extend(self.daemon.stop(STOP));
        wrong
    }
}

// === impl Fixture ===

impl Fixture {
    /// Starts the fixture with these options, on a port of its own choice.
    pub(super) fn start(place: &Place, tools: &Tools, options: &[&str]) -> anyhow::Result<Self> {
        let [node, server] = tools.everything(place)?;
        let mut command = Command::new(node);
        command.arg(server).args(options).env("PATH", &tools.path).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut group = Group::spawn(command)?;
        let stderr = group.stderr().context("the fixture's stderr")?;
        let Some(url) = address(stderr, "everything server at ") else {
            bail!("the fixture did not start: everything-server {}", options.join(" "));
        };
        Ok(Self { url, _group: group })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    //
    #[test]
    fn a_bridge_is_warmed_by_a_call_of_a_client_that_can_be_asked() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serve = thread::spawn(move || {
            let mut heads = Vec::new();
            for answer in
                ["200 OK\r\n\r\n{\"result\":{}}", "200 OK\r\n\r\n{\"error\":{}}", "503 Service Unavailable\r\n\r\n"]
            {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                heads.push(lines.by_ref().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"));
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
            }
            heads
        });
        warm(&url).unwrap();
        assert!(warm(&url).is_err(), "an error is no answer");
        assert_eq!(warm(&url).unwrap_err().to_string(), "HTTP/1.1 503 Service Unavailable");
        let heads = serve.join().unwrap();
        assert!(
            heads[0].starts_with("POST /mcp HTTP/1.1\n") && heads[0].contains("\nMcp-Name: test_simple_text"),
            "{heads:?}"
        );
    }

    #[test]
    fn the_address_is_the_one_that_was_printed() {
        let said = "a warning\nlistening on http://127.0.0.1:4711/mcp\nmore\n";
        assert_eq!(address(said.as_bytes(), "listening on "), Some("http://127.0.0.1:4711/mcp".into()));
        assert_eq!(address("no such line\n".as_bytes(), "listening on "), None);
    }
}
