//! The real daemon, one process per test, in a home of its own, on a port of its own. It ends with the test, and
//! what it started ends with it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use hyper::Method;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{
    client::Client,
    http::{Place, Reply, Request},
    modern::Modern,
    process, until,
};

/// The binary under test: the one that was built with the tests, or the release build (`cargo xtask test survival`).
pub(crate) fn prism() -> String {
    std::env::var("PRISM_TESTED_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_prism").to_owned())
}

/// A folder for one daemon, or for one after the other.
#[derive(Clone)]
pub(crate) struct Home(Arc<TempDir>);

/// A daemon that is about to be started.
pub(crate) struct Launch {
    arguments: Vec<String>,
    /// What its `--config` says.
    config: Option<String>,
    variables: Vec<(&'static str, String)>,
    home: Home,
    /// Where it is started; in its home, if nobody says.
    folder: Option<PathBuf>,
    /// Where its MCP endpoint is, if there is one at the root.
    path: &'static str,
    /// What it can read on stdin.
    stdin: Option<String>,
    /// What a shell does first, in its process.
    shell: Option<&'static str>,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A daemon that listens.
pub(crate) struct Daemon {
    process: Child,
    home: Home,
    port: u16,
    path: &'static str,
    stdout: Transcript,
    stderr: Transcript,
}

/// What a process has written so far.
#[derive(Clone, Default)]
struct Transcript(Arc<Mutex<String>>);

/// The command of the demo server, with the flags of a test.
pub(crate) fn demo(flags: &[&str]) -> Vec<String> {
    let words = ["demo-server"].iter().chain(flags).map(|word| (*word).to_owned());
    [prism()].into_iter().chain(words).collect()
}

/// A demo server as a destination in a config file, with more lines of settings.
pub(crate) fn destination(name: &str, flags: &[&str], settings: &str) -> String {
    format!("[destination.{name}]\ncommand = {:?}\n{settings}\n", demo(flags))
}

// === impl Home ===

impl Home {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("the folder is ours");
        Self(Arc::new(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it, as text for a command line.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("temporary folders have plain names").to_owned()
    }
}

// === impl Launch ===

impl Launch {
    /// `prism run` of a command.
    pub(crate) fn run(flags: &[&str], command: &[String]) -> Self {
        let mut arguments: Vec<String> =
            ["run", "--port", "0"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
        arguments.push("--".to_owned());
        arguments.extend_from_slice(command);
        Self { path: "/mcp", ..Self::prism(arguments) }
    }

    /// `prism serve` on a config.
    pub(crate) fn serve(config: &str) -> Self {
        let arguments = ["serve", "--port", "0"].map(str::to_owned).to_vec();
        Self { config: Some(config.to_owned()), ..Self::prism(arguments) }
    }

    /// `prism` with whatever arguments.
    pub(crate) fn prism(arguments: Vec<String>) -> Self {
        let (config, variables, folder, stdin, shell) = (None, Vec::new(), None, None, None);
        Self { arguments, config, variables, home: Home::new(), folder, path: "/nowhere", stdin, shell }
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub(crate) fn home(self, home: &Home) -> Self {
        Self { home: home.clone(), ..self }
    }

    /// From this folder.
    pub(crate) fn folder(self, folder: &Path) -> Self {
        Self { folder: Some(folder.to_owned()), ..self }
    }

    /// With a config of its own.
    pub(crate) fn config(self, config: &str) -> Self {
        Self { config: Some(config.to_owned()), ..self }
    }

    pub(crate) fn stdin(self, text: &str) -> Self {
        Self { stdin: Some(text.to_owned()), ..self }
    }

    /// Has a shell do something first, such as to set a limit.
    pub(crate) fn shell(self, script: &'static str) -> Self {
        Self { shell: Some(script), ..self }
    }

    /// Runs a command that ends by itself, one way or the other.
    pub(crate) async fn end(self) -> Ended {
        self.begin().end().await
    }

    /// Starts a command, whatever it does.
    pub(crate) fn begin(self) -> Daemon {
        self.spawn()
    }

    /// Starts it and waits until it listens.
    pub(crate) async fn start(self) -> Daemon {
        let mut daemon = self.spawn();
        let (stdout, stderr) = (daemon.stdout.clone(), daemon.stderr.clone());
        until("the daemon listens", async || {
            if let Ok(Some(status)) = daemon.process.try_wait() {
                panic!("the daemon did not start: {status}\n{}", stderr.text());
            }
            // The last thing it says.
            stdout.text().lines().any(|line| line.starts_with("next "))
        })
        .await;
        let said = stdout.text();
        let listens = said.lines().find(|line| line.starts_with("listening on "));
        let url = listens.and_then(|line| Some(line.split_once("http://127.0.0.1:")?.1));
        let port = url.expect("it listens on loopback").split('/').next().expect("a split has a first part");
        daemon.port = port.parse().expect("a port");
        daemon
    }

    /// Starts one that is not going to listen. Returns how it ended and what it said.
    pub(crate) async fn fail(self) -> (ExitStatus, String) {
        let mut daemon = self.spawn();
        let status = daemon.ended().await;
        until("its last words are read", async || daemon.stderr.is_complete()).await;
        (status, daemon.stderr())
    }

    /// Runs a command that ends well by itself. Returns what it printed.
    pub(crate) async fn output(self) -> String {
        let mut daemon = self.spawn();
        let status = daemon.ended().await;
        assert_eq!(status.code(), Some(0), "{}", daemon.stderr());
        until("all of it is read", async || daemon.stdout.is_complete()).await;
        daemon.stdout()
    }

    fn spawn(mut self) -> Daemon {
        // Nothing of the environment of whoever runs the tests: a PRISM_PORT there would be a fixed port here.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut command = Command::new(if self.shell.is_some() { "/bin/sh".to_owned() } else { prism() });
        if let Some(script) = self.shell {
            command.args(["-c", &format!("{script}; exec \"$0\" \"$@\""), &prism()]);
        }
        if let Some(config) = self.config {
            let file = self.home.file("it.toml");
            fs::write(&file, config).expect("the home can be written to");
            self.arguments.extend(["--config".to_owned(), file]);
        }
        command
            .args(self.arguments)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("PRISM_HOME", self.home.path())
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.folder.as_deref().unwrap_or(self.home.path()))
            .stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary was built for this test");
        if let (Some(text), Some(mut stdin)) = (self.stdin, process.stdin.take()) {
            stdin.write_all(text.as_bytes()).expect("it reads its stdin");
        }
        let stdout = Transcript::of(process.stdout.take().expect("stdout is a pipe"));
        let stderr = Transcript::of(process.stderr.take().expect("stderr is a pipe"));
        Daemon { process, home: self.home, port: 0, path: self.path, stdout, stderr }
    }
}

// === impl Daemon ===

impl Daemon {
    /// `prism run` of the demo server.
    pub(crate) async fn run(flags: &[&str], demo_flags: &[&str]) -> Self {
        Launch::run(flags, &demo(demo_flags)).start().await
    }

    /// A client of the destination at the root.
    pub(crate) fn client(&self) -> Client {
        self.client_at(self.path)
    }

    /// A client of the modern era of the destination at the root, which can answer nothing.
    pub(crate) fn modern(&self) -> Modern {
        Modern::new(self.client())
    }

    pub(crate) fn client_at(&self, path: &str) -> Client {
        Client::new(self.place(), path, Some(self.token()))
    }

    /// The person, by the secret that no client has.
    pub(crate) fn person_at(&self, path: &str) -> Client {
        let secret = fs::read_to_string(self.home.path().join("management-token")).expect("a daemon has made it");
        Client::new(self.place(), path, Some(secret.trim().to_owned()))
    }

    pub(crate) fn client_without_token(&self) -> Client {
        Client::new(self.place(), self.path, None)
    }

    /// A request with nothing but what it needs to get in.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        Request::new(self.place(), Method::GET, path).header("host", "localhost").send().await
    }

    pub(crate) fn place(&self) -> Place {
        Place::Tcp(self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    pub(crate) fn token(&self) -> String {
        let file = self.home.path().join("http-mcp-token");
        fs::read_to_string(file).expect("a daemon that listens has made its token").trim().to_owned()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub(crate) fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// The children it has now, and what they have started.
    pub(crate) fn children(&self) -> Vec<u32> {
        let ours = process::marked(self.home.path()).into_iter().filter(|marked| marked.owner == self.pid());
        ours.map(|marked| marked.pid).collect()
    }

    /// The value of a metric, by its name and labels as they are written.
    pub(crate) async fn metric(&self, name: &str) -> Option<u64> {
        let reply = self.client_at("/metrics").request(Method::GET).send().await;
        assert_eq!(reply.status, 200);
        let text = reply.text().await;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the daemon ends", async || {
            ended = self.process.try_wait().expect("our own child can be waited for");
            ended.is_some()
        })
        .await;
        ended.expect("it ended")
    }

    /// Waits until it has ended by itself, and said all it had to say.
    pub(crate) async fn end(mut self) -> Ended {
        let code = self.ended().await.code();
        until("all of it is read", async || self.stdout.is_complete() && self.stderr.is_complete()).await;
        Ended { code, stdout: self.stdout(), stderr: self.stderr() }
    }

    /// Stops it as a person would, and returns everything it has logged.
    pub(crate) async fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        assert_eq!(self.ended().await.code(), Some(0));
        until("its last words are read", async || self.stderr.is_complete()).await;
        self.stderr()
    }

    /// `kill -9`. Its children are left behind.
    pub(crate) async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.ended().await;
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        for child in self.children() {
            process::signal_if_there(child, Signal::KILL);
        }
        if thread::panicking() {
            let said = format!("--- the daemon's stderr ---\n{}\n", self.stderr());
            let _ = std::io::stderr().write_all(said.as_bytes());
        }
    }
}

// === impl Transcript ===

impl Transcript {
    /// Collects what comes out of a pipe, in a thread that ends with it.
    fn of(pipe: impl Read + Send + 'static) -> Self {
        let transcript = Self::default();
        let writer = transcript.clone();
        thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
                writer.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        transcript
    }

    /// Whether the pipe has ended: nobody is left to write.
    fn is_complete(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The lines of a file that a child writes; none while it does not exist.
pub(crate) fn lines(file: &str) -> Vec<String> {
    let text = fs::read(PathBuf::from(file)).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
