//! `prism stdio` as a client starts it: a process with pipes. What it writes is kept, so that a test can look for
//! anything, and count it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Home, MODERN, demo, prism, process, until};

pub(crate) struct Shim {
    process: Child,
    stdin: Option<ChildStdin>,
    said: Arc<Mutex<Vec<Value>>>,
    warned: Arc<Mutex<String>>,
    home: Home,
    last: u64,
}

/// A home whose daemon the shim starts by itself: one demo server behind it.
pub(crate) fn home_with_demo(flags: &[&str]) -> Home {
    let home = Home::new();
    home_config(&home, &format!("[destination.demo]\ncommand = {:?}\n", demo(flags)));
    home
}

/// Writes the config that the daemon of a home is started on.
pub(crate) fn home_config(home: &Home, destinations: &str) {
    fs::write(home.file("prism.toml"), format!("port = 0\n{destinations}")).expect("the home can be written to");
}

/// The daemon that is registered in a home.
pub(crate) fn registered(home: &Home) -> Option<u32> {
    let text = fs::read(home.path().join("http-mcp.json")).ok()?;
    let registration: Value = serde_json::from_slice(&text).ok()?;
    let pid = u32::try_from(registration["pid"].as_u64()?).ok()?;
    process::is_alive(pid).then_some(pid)
}

/// A request of the modern era; the client can be asked what `capabilities` says.
pub(crate) fn modern(mut params: Value, capabilities: &Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "it", "version": "1"});
    params
}

impl Shim {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_in(home.path(), home, arguments)
    }

    /// One whose client works in this folder.
    pub(crate) fn start_in(folder: &Path, home: &Home, arguments: &[&str]) -> Self {
        let (mut shim, stdout) = Self::spawn_in(folder, home, arguments);
        let said = shim.said.clone();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({"not a message": line}));
                said.lock().unwrap_or_else(PoisonError::into_inner).push(message);
            }
        });
        shim.last = 0;
        shim
    }

    /// One whose stdout the test reads, or does not.
    pub(crate) fn spawn(home: &Home, arguments: &[&str]) -> (Self, ChildStdout) {
        Self::spawn_in(home.path(), home, arguments)
    }

    fn spawn_in(folder: &Path, home: &Home, arguments: &[&str]) -> (Self, ChildStdout) {
        let mut command = Command::new(prism());
        command
            .arg("stdio")
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home.path())
            .env("PRISM_HOME", home.path())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().expect("the binary was built for this test");
        let stdout = process.stdout.take().expect("stdout is a pipe");
        let stderr = process.stderr.take().expect("stderr is a pipe");
        let warned = Arc::<Mutex<String>>::default();
        let kept = warned.clone();
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) += &format!("{line}\n");
            }
        });
        let stdin = process.stdin.take();
        (Self { process, stdin, said: Arc::default(), warned, home: home.clone(), last: 0 }, stdout)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn stderr(&self) -> String {
        self.warned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin.write_all(format!("{line}\n").as_bytes()).expect("it reads its stdin");
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub(crate) fn note(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and returns its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        self.last
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// All that was said so far.
    pub(crate) fn said(&self) -> Vec<Value> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The answers to a request so far. There has to be one in the end, and never two.
    pub(crate) fn answers(&self, id: u64) -> Vec<Value> {
        self.said().into_iter().filter(|said| said["id"] == id && said.get("method").is_none()).collect()
    }

    pub(crate) async fn answer(&self, id: u64) -> Value {
        until(&format!("request {id} is answered"), async || !self.answers(id).is_empty()).await;
        self.answers(id).remove(0)
    }

    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id).await;
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits for a message with this method: the newest one.
    pub(crate) async fn heard(&self, method: &str) -> Value {
        let find = || self.said().into_iter().rfind(|said| said["method"] == method);
        until(&format!("{method} is heard"), async || find().is_some()).await;
        find().expect("it was there a moment ago")
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.said().iter().filter(|said| said["method"] == method).count()
    }

    /// The handshake of the legacy era.
    pub(crate) async fn initialize(&mut self, version: &str, capabilities: Value) -> Value {
        let info = json!({"name": "it", "version": "1"});
        let hello = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let greeting = self.result("initialize", hello).await;
        self.note("notifications/initialized", json!({}));
        greeting
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        process::signal(self.pid(), signal);
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the shim ends", async || {
            ended = self.process.try_wait().expect("our own child can be waited for");
            ended.is_some()
        })
        .await;
        ended.expect("it ended")
    }
}

impl Drop for Shim {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // The daemon that it has started outlives it, as it should; the test's home does not.
        for pid in registered(&self.home).into_iter().chain(process::marked(self.home.path()).iter().map(|it| it.pid)) {
            process::signal_if_there(pid, Signal::KILL);
        }
        if thread::panicking() {
            let log = fs::read_to_string(self.home.path().join("prism.log")).unwrap_or_default();
            let said = format!("--- the shim's stderr ---\n{}--- the daemon's log ---\n{log}\n", self.stderr());
            let _ = std::io::stderr().write_all(said.as_bytes());
        }
    }
}
