//! Programs that agents live in, as far as their doors go: an OpenCode and a Codex app-server that answer as the real ones were
//! seen to, and can be made not to; and a pane of a real tmux.

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{accept_async, tungstenite::Message};

use crate::support::{skipped, until};

/// What a server and its test share.
#[derive(Clone, Default)]
struct Mood {
    ready: Arc<AtomicBool>,
    rung: Arc<AtomicUsize>,
}

/// One that hangs up on everybody until it is ready.
pub(super) struct Opencode {
    url: String,
    mood: Mood,
}

/// One that has not loaded the thread until it is ready.
pub(super) struct Codex {
    url: String,
    mood: Mood,
}

/// A pane in which `cat` runs behind a prompt.
pub(super) struct Panes {
    folder: TempDir,
    pane: String,
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

// === impl Opencode ===

impl Opencode {
    pub(super) async fn start(ready: bool) -> Self {
        let (listener, address) = listen().await;
        let mood = Mood::default();
        mood.ready.store(ready, Relaxed);
        let shared = mood.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                if !shared.ready.load(Relaxed) {
                    continue;
                }
                let mood = shared.clone();
                let service = service_fn(move |request| prompted(request, mood.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
            }
        });
        Self { url: format!("http://{address}"), mood }
    }

    pub(super) fn wake(&self) -> Value {
        json!({"opencode": {"url": self.url, "session": "ses_1"}})
    }

    pub(super) fn be_ready(&self, ready: bool) {
        self.mood.ready.store(ready, Relaxed);
    }

    pub(super) fn prompts(&self) -> usize {
        self.mood.rung.load(Relaxed)
    }
}

async fn prompted(request: Request<Incoming>, mood: Mood) -> io::Result<Response<Full<Bytes>>> {
    let (status, body) = match (request.method().as_str(), request.uri().path()) {
        ("GET", "/session/ses_1") => (200, json!({"id": "ses_1"}).to_string()),
        ("POST", "/session/ses_1/prompt_async") => {
            mood.rung.fetch_add(1, Relaxed);
            (204, String::new())
        }
        _ => (404, String::new()),
    };
    Ok(Response::builder().status(status).body(Full::new(body.into())).unwrap())
}

// === impl Codex ===

impl Codex {
    pub(super) async fn start(ready: bool) -> Self {
        let (listener, address) = listen().await;
        let mood = Mood::default();
        mood.ready.store(ready, Relaxed);
        let shared = mood.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(app_server(socket, shared.clone()));
            }
        });
        Self { url: format!("ws://{address}"), mood }
    }

    pub(super) fn wake(&self) -> Value {
        json!({"codex_app_server": {"url": self.url, "thread": "t-1"}})
    }

    pub(super) fn be_ready(&self, ready: bool) {
        self.mood.ready.store(ready, Relaxed);
    }

    pub(super) fn turns(&self) -> usize {
        self.mood.rung.load(Relaxed)
    }
}

async fn app_server(socket: TcpStream, mood: Mood) {
    let Ok(mut socket) = accept_async(socket).await else { return };
    while let Some(Ok(Message::Text(text))) = socket.next().await {
        let message: Value = serde_json::from_str(&text).unwrap();
        let Some(id) = message["id"].as_u64() else { continue };
        let state = if mood.ready.load(Relaxed) { "idle" } else { "notLoaded" };
        let result = match message["method"].as_str().unwrap() {
            "thread/read" => json!({"thread": {"id": "t-1", "status": {"type": state}}}),
            "turn/start" => {
                mood.rung.fetch_add(1, Relaxed);
                json!({"turn": {"id": "turn-1"}})
            }
            _ => json!({}),
        };
        let answer = json!({"id": id, "result": result}).to_string();
        if socket.send(Message::Text(answer.into())).await.is_err() {
            return;
        }
    }
}

// === impl Panes ===

impl Panes {
    /// `None` if there is no tmux here.
    pub(super) async fn open() -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            skipped(&test, "there is no tmux, so the wake path `tmux` is not tested; type: apt-get install tmux");
            return None;
        }
        let mut panes = Self { folder: tempfile::tempdir().unwrap(), pane: String::new() };
        let script = format!("printf '❯ '; exec cat > '{}'", panes.sent_file().display());
        let words = ["new-session", "-d", "-x", "200", "-y", "12", "-P", "-F", "#{pane_id}", "sh", "-c", &script];
        panes.pane = panes.tmux(&words);
        until("cat runs", async || {
            panes.tmux(&["display", "-p", "-t", &panes.pane, "#{pane_current_command}"]) == "cat"
        })
        .await;
        until("the prompt is there", async || panes.shown() == "❯").await;
        Some(panes)
    }

    pub(super) fn wake(&self) -> Value {
        json!({"tmux": {"pane": self.pane, "socket": self.socket(), "command": "cat"}})
    }

    /// Somebody writes, and has not sent it.
    pub(super) async fn draft(&self, words: &str) {
        self.tmux(&["send-keys", "-t", &self.pane, "-l", words]);
        until("it shows", async || self.shown() == format!("❯ {words}")).await;
    }

    /// They think better of it.
    pub(super) async fn clear(&self) {
        self.tmux(&["send-keys", "-t", &self.pane, "C-u"]);
        until("the prompt is empty", async || self.shown() == "❯").await;
    }

    pub(super) fn sent(&self) -> String {
        fs::read_to_string(self.sent_file()).unwrap_or_default()
    }

    fn sent_file(&self) -> PathBuf {
        self.folder.path().join("sent")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux.sock")
    }

    fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &self.pane])
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(self.socket()).args(words).env_remove("TMUX");
        let ran = tmux.output().unwrap();
        assert!(ran.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
    }
}

impl Drop for Panes {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.socket()).arg("kill-server").output();
    }
}
