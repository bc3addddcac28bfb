//! The places where something runs for a holder, and what it takes to have the script run there.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Outcome, Outcomes,
    world::{Prey, World},
};
use crate::support::{
    Client,
    gate::{Holder, answer},
    prism, stays, until,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Build,
    Tests,
    Command,
    Terminal,
    LanguageServer,
    McpServer,
    GitHook,
}

/// What came of the ways from a place.
pub(super) struct Tried {
    pub(super) outcomes: Outcomes,
    /// What the person was asked.
    pub(super) asked: Vec<Value>,
}

/// What a holder needs for all of them. Not the network: with it, two of the ways are granted.
const SCOPES: &[&str] = &["build:project", "test:code", "run:commands", "exec:terminal", "git:*", "detect:errors"];

/// How long what was left behind has to end. What a sandbox ends needs a few milliseconds.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// What git runs when something is committed, and when branches are switched.
const HOOKS: [&str; 9] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
    "post-rewrite",
];

impl Place {
    pub(super) const ALL: [Self; 7] =
        [Self::Build, Self::Tests, Self::Command, Self::Terminal, Self::LanguageServer, Self::McpServer, Self::GitHook];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Tests => "tests",
            Self::Command => "command",
            Self::Terminal => "terminal",
            Self::LanguageServer => "language server",
            Self::McpServer => "MCP server",
            Self::GitHook => "git hook",
        }
    }
}

impl World {
    /// Has the ways tried from a place, by the holder of a grant of its own.
    pub(super) async fn try_from(&self, place: Place) -> Tried {
        let prey = Prey::laid(self);
        let granted = self.gate.granted(SCOPES).await;
        let mut holder = self.gate.hold(&granted).await;
        let line = self.line(place.name());
        let asked = match place {
            Place::Build => self.build(&mut holder, "build_project", "all", &line).await,
            Place::Tests => self.build(&mut holder, "run_tests", "test", &line).await,
            Place::Command => self.allowed(&mut holder, "exec_command", json!({ "command": line })).await.0,
            Place::Terminal => self.terminal(&mut holder, &line).await,
            Place::LanguageServer => self.language_server(&mut holder, &line).await,
            Place::McpServer => self.mcp_server(&line).await,
            Place::GitHook => self.git_hooks(&mut holder, &line).await,
        };
        if place == Place::GitHook {
            drop(prey);
            return Tried { outcomes: self.proved_by_the_person(place), asked };
        }
        if place == Place::LanguageServer {
            // It ends with its grant, and not before.
            let revoked = self.gate.as_person("/mcp/revoke", json!({ "session_id": granted.id })).await;
            assert_eq!(revoked.0, 200, "{}", revoked.1);
        }
        let ends = until("nothing is left behind", async || self.survivors().is_empty());
        let survives = timeout(ENDS_WITHIN, ends).await.is_err();
        Tried { outcomes: prey.outcomes(place.name(), survives), asked }
    }

    async fn build(&self, holder: &mut Holder, verb: &str, target: &str, line: &str) -> Vec<Value> {
        fs::write(self.gate.path("Makefile"), format!("{target}:\n\t@{line}\n")).unwrap();
        let (asked, result) = self.allowed(holder, verb, json!({"tool": "make"})).await;
        assert_eq!(result["data"]["is_ok"], true, "{result}");
        asked
    }

    async fn terminal(&self, holder: &mut Holder, line: &str) -> Vec<Value> {
        let (asked, result) = self.allowed(holder, "open_terminal", json!({"command": ["sh", "-c", line]})).await;
        let terminal = &result["data"]["terminal"];
        let mut last = Value::Null;
        until("what runs in the terminal ends", async || {
            last = holder.does("get_output", json!({"terminal": terminal, "wait_ms": 100})).await["data"].clone();
            last["is_running"] == false
        })
        .await;
        assert_eq!(last["exit_code"], 0, "{last}");
        asked
    }

    /// One that tries the ways when it is started, and works as one then.
    async fn language_server(&self, holder: &mut Holder, line: &str) -> Vec<Value> {
        let serve = format!("{line}\nexec python3 {} push \"$TMPDIR\"\n", self.readable("server.py"));
        fs::write(self.readable("language-server.sh"), serve).unwrap();
        fs::write(self.gate.path("a.md"), "bad\n").unwrap();
        let (asked, result) = self.allowed(holder, "get_errors", json!({"path": "a.md"})).await;
        assert_eq!(result["status"], "ok", "{result}");
        until("it is through", async || self.is_through(Place::LanguageServer.name())).await;
        asked
    }

    /// One in a sandbox, without network, that does the same, and ends with its last client.
    async fn mcp_server(&self, line: &str) -> Vec<Value> {
        let client = self.served(line).initialize().await;
        assert!(self.is_through(Place::McpServer.name()));
        assert_eq!(client.text("echo", json!({"text": "to and fro"})).await, "to and fro");
        client.delete().await;
        Vec::new()
    }

    /// A server in a sandbox is not started where there can be none.
    pub(super) async fn starts_no_mcp_server(&self) {
        let name = Place::McpServer.name();
        let reply = self.served(&self.line(name)).say_hello().await;
        let (status, body) = (reply.status, reply.answer().await);
        assert!(status == 503 && body.to_string().contains("bubblewrap is not installed"), "{status} {body}");
        assert!(!Path::new(&self.said(name)).exists());
    }

    fn served(&self, line: &str) -> Client {
        let serve = format!("{line}\nexec {} demo-server\n", prism());
        fs::write(self.readable("mcp-server.sh"), serve).unwrap();
        self.gate.daemon.client_at("/ways/mcp")
    }

    /// Has a repository worked on in which all runs the script that git runs for the person.
    async fn git_hooks(&self, holder: &mut Holder, line: &str) -> Vec<Value> {
        let script = self.gate.path(".git/hooks/script");
        for name in HOOKS.iter().chain(&["script"]) {
            let hook = self.gate.path(&format!(".git/hooks/{name}"));
            fs::write(&hook, format!("#!/bin/sh\n[ -s {0} ] || {line}\n", self.said(Place::GitHook.name()))).unwrap();
            fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for key in ["core.fsmonitor", "core.pager", "core.editor", "diff.external", "diff.way.textconv", "gpg.program"]
        {
            self.git(&["config", key, &script]);
        }
        self.git(&["config", "commit.gpgSign", "true"]);
        fs::write(self.gate.path(".gitattributes"), "*.way diff=way\n").unwrap();
        fs::write(self.gate.path("a.way"), "text\n").unwrap();
        let mut asked = Vec::new();
        let mut does = async |verb, args| {
            let (more, result) = self.allowed(holder, verb, args).await;
            asked.extend(more);
            result
        };
        for (verb, args) in [
            ("git_status", json!({})),
            ("git_add", json!({"paths": ["main.rs", "a.way", ".gitattributes"]})),
            ("git_diff", json!({"staged": true})),
            ("git_commit", json!({"message": "Begin"})),
            ("git_branch", json!({"name": "other", "create": true, "switch": true})),
        ] {
            let result = does(verb, args).await;
            assert_eq!(result["status"], "ok", "{verb}: {result}");
        }
        // What would have to go through a filter is refused.
        fs::write(self.gate.path(".gitattributes"), "*.way filter=way\n").unwrap();
        fs::write(self.gate.path("b.way"), "text\n").unwrap();
        for key in ["filter.way.clean", "filter.way.smudge", "filter.way.process"] {
            self.git(&["config", key, &script]);
        }
        does("git_add", json!({"paths": ["b.way"]})).await;
        does("git_branch", json!({"name": "main", "switch": true})).await;
        does("git_commit", json!({"message": "Go on"})).await;
        asked
    }

    /// Nothing has run; and as soon as the person commits, it does.
    fn proved_by_the_person(&self, place: Place) -> Outcomes {
        assert!(!Path::new(&self.said(place.name())).exists(), "a hook has run");
        let prey = Prey::laid(self);
        // What it comes to does not matter: one of the ways breaks the repository's config.
        let _ = self.command("git").args(["commit", "-q", "--allow-empty", "-m", "By hand"]).output();
        assert!(self.is_through(place.name()), "a hook runs for the person");
        let outcomes = prey.outcomes(place.name(), !self.survivors().is_empty());
        assert!(outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Out).count() > 20, "{outcomes:?}");
        outcomes.into_iter().map(|(way, _)| (way, Outcome::NotRun)).collect()
    }

    /// Has a verb done, by a person who allows what they are asked. Returns what they were shown, and what came of it.
    async fn allowed(&self, holder: &mut Holder, verb: &str, args: Value) -> (Vec<Value>, Value) {
        let (gate, ran) = (&self.gate, self.ran());
        let mut asked = Vec::new();
        let id = holder.begins(verb, args).await;
        let person = stays("the person is there", Duration::from_secs(3600), async || {
            let waiting = gate.seen("/mcp/confirmations").await["confirmations"][0].clone();
            if waiting.is_object() {
                assert_eq!(self.ran(), ran, "the script runs before the person has said anything");
                let digest = waiting["digest"].clone();
                asked.push(waiting.clone());
                answer(gate, &waiting, &digest, true).await;
            }
            true
        });
        let result = tokio::select! {
            result = holder.result(&id) => result,
            () = person => unreachable!("the person goes on"),
        };
        (asked, result)
    }
}
