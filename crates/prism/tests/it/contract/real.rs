//! A real editor: started by a command that opens a folder and stays until its stdin ends.

use std::{
    collections::BTreeSet,
    env,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use prism_core::policy::VerbSpec;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::support::{gate::Gate, process::is_alive};

/// How long it takes to have the folder open; a browser and its editor start meanwhile.
const OPENS_WITHIN: Duration = Duration::from_secs(60);
/// How long it may take to end by itself.
const ENDS_WITHIN: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// Which editor is held to the contract.
pub(super) struct Told {
    /// Its column in the table.
    pub(super) runtime: String,
    /// For a shell; the folder is added to it.
    command: String,
}

/// `PRISM_EDITOR` and `PRISM_EDITOR_COMMAND`, or nothing to do.
pub(super) fn told() -> Option<Told> {
    let runtime = env::var("PRISM_EDITOR").ok()?;
    let command = env::var("PRISM_EDITOR_COMMAND").expect("PRISM_EDITOR_COMMAND says how PRISM_EDITOR is started");
    Some(Told { runtime, command })
}

pub(super) struct Editor {
    child: Child,
}

impl Editor {
    /// Has it open the gate's folder, and waits until that is its own.
    pub(super) async fn start(gate: &Gate, told: &Told, path: &str) -> Self {
        let child = Command::new("sh")
            .args(["-c", &format!("exec {} \"$1\"", told.command), "sh", &gate.project()])
            .env("PRISM_HOME", gate.daemon.home().path())
            .env("PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("there is a shell");
        let mut editor = Self { child };
        let begun = Instant::now();
        while editor.listed(gate).await.is_none() {
            let ended = editor.child.try_wait().expect("it is ours");
            assert!(ended.is_none(), "{}: ended with {ended:?} before it had the folder", told.command);
            let plugins = gate.seen("/mcp/plugins").await;
            assert!(begun.elapsed() < OPENS_WITHIN, "no editor owns {} but {plugins}", gate.project());
            tokio::time::sleep(LOOK).await;
        }
        editor
    }

    /// What it has registered.
    pub(super) async fn verbs(&self, gate: &Gate) -> BTreeSet<&'static str> {
        let listed = self.listed(gate).await.expect("it owns the folder");
        let named = listed["capabilities"].as_array().expect("a list of verbs").clone();
        named.iter().filter_map(|verb| VerbSpec::named(verb.as_str()?)).map(|action| action.verb).collect()
    }

    /// As the person sees it, once the folder is its own.
    async fn listed(&self, gate: &Gate) -> Option<Value> {
        let folder = std::fs::canonicalize(gate.project()).expect("the folder is there");
        let plugins = gate.seen("/mcp/plugins").await;
        let is_it = |plugin: &&Value| {
            let roots = plugin["roots"].as_array().into_iter().flatten();
            plugin["state"] == "owner" && roots.filter_map(Value::as_str).any(|root| folder.as_path() == root)
        };
        plugins["plugins"].as_array()?.iter().find(is_it).cloned()
    }

    /// Lets it end, and fails if it does not.
    pub(super) async fn end(mut self) {
        drop(self.child.stdin.take());
        let begun = Instant::now();
        while is_alive(self.child.id()) {
            assert!(begun.elapsed() < ENDS_WITHIN, "the editor does not end when its stdin does");
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}
