//! `prism acp`: the real command between an editor (the test) and an agent (a shell that answers two requests), with a daemon
//! whose mesh is the test's.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::support::{Home, prism, soon, upstream::Upstream};

/// Opens every session as `s1`, says in an update what it was prompted with, and ends with 7.
const AGENT: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  case "$line" in
    *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s1"}}\n' "$id" ;;
    *'"session/prompt"'*)
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","heard":%s}}\n' "$id"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) printf '%s\n' "$line" ;;
  esac
done
exit 7
"#;

/// An editor, with an agent behind `prism acp`.
struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Editor {
    fn start(home: &Home, url: &str, words: &[&str]) -> Self {
        let mut command = Command::new(prism());
        command.arg("acp").args(words).args(["--", "sh", "-c", AGENT]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("PRISM_HOME", home.path()).env("PRISM_URL", url).env("PRISM_API_KEY", "k".repeat(43));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout).lines() }
    }

    fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    fn hear(&mut self) -> String {
        self.stdout.next().expect("the agent is there").unwrap()
    }

    fn open(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#);
        assert_eq!(self.hear(), r#"{"jsonrpc":"2.0","id":0,"result":{"sessionId":"s1"}}"#);
    }

    /// What the editor sees of a bell.
    fn hears_bell(&mut self, text: &str) {
        let shown: Value = serde_json::from_str(&self.hear()).unwrap();
        assert_eq!(shown["params"]["update"]["content"]["text"], text);
        let update =
            r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","heard":"prism-bell-1"}}"#;
        assert_eq!(self.hear(), update);
    }

    /// Leaves, and says how the agent ended.
    fn leave(&mut self) -> Option<i32> {
        self.stdin = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// M-13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bell_prompts_the_agent_and_its_answer_stays_with_us() {
    let (mut daemon, home) = (Upstream::start().await, Home::new());
    for (words, who) in [
        (vec!["--agent", "Bob"], json!({ "agent": "bob" })),
        (vec!["--surface", "zed"], json!({ "surface": "zed", "workspace": "/w", "surface_session": "s1" })),
    ] {
        let mut editor = Editor::start(&home, &daemon.at(""), &words);
        editor.open();
        let asked = soon("the wait", daemon.next()).await;
        assert_eq!((asked.verb.as_str(), asked.path.as_str()), ("POST", "/prism/mesh/wait"));
        let mut expected = who;
        expected["hook"] = json!("acp");
        expected["timeout_s"] = json!(300);
        assert_eq!(asked.body, expected);
        asked.json(200, &json!({ "bell": true, "agent": "bob", "text": "RING", "pending": 1 })).await;
        tokio::task::block_in_place(|| {
            editor.hears_bell("RING");
            // What comes next is the answer to what the editor itself says: nothing of ours is before it.
            editor.say(r#"{"jsonrpc":"2.0","id":1,"method":"other"}"#);
            assert_eq!(editor.hear(), r#"{"jsonrpc":"2.0","id":1,"method":"other"}"#);
            assert_eq!(editor.leave(), Some(7));
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_daemon_it_is_as_if_it_were_not_there() {
    let home = Home::new();
    let mut editor = Editor::start(&home, "http://127.0.0.1:1", &["--agent", "bob"]);
    tokio::task::block_in_place(|| {
        editor.open();
        let long = format!(r#"{{"jsonrpc":"2.0","id":1, "method":"x","params":"{}"}}"#, "ä".repeat(300_000));
        editor.say(&long);
        assert_eq!(editor.hear(), long);
        assert_eq!(editor.leave(), Some(7));
    });
}

#[test]
fn an_agent_that_cannot_be_started_is_told() {
    let home = Home::new();
    let mut command = Command::new(prism());
    command.args(["acp", "--", "no-such-agent"]).env_clear().env("PRISM_HOME", home.path());
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("no-such-agent") && said.contains("fix:"), "{said}");
}
