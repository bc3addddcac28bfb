//! In real panes. The agent is `cat` behind a prompt: the terminal shows what is typed, and the file what was sent. Where
//! there is no tmux these tests say so, and prove nothing.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    thread::yield_now,
    time::{Duration, Instant},
};

use serde_json::json;
use tempfile::TempDir;

use super::{
    super::{
        ProbeOutcome, RingOutcome, WakeAdapter, WakeSettings,
        tests::{TEXT, agent, bell},
    },
    PaneVariables, TmuxAdapter,
};
use prism_config::Env;

/// Says that this test is skipped here: to whoever reads its output, and to the lane `unit`, which lists what was skipped
/// (`PRISM_TESTS_SKIPPED` names the file). (R-01)
fn skipped(why: &str) {
    let line = format!("{}: {why}\n", std::thread::current().name().unwrap_or("a test"));
    eprint!("SKIPPED {line}");
    if let Some(list) = Env::process().var("PRISM_TESTS_SKIPPED") {
        let mut list = fs::File::options().append(true).create(true).open(list).unwrap();
        std::io::Write::write_all(&mut list, line.as_bytes()).unwrap();
    }
}

/// A tmux server of the test's own, with one pane that `cat` runs in.
struct Panes {
    folder: TempDir,
    pane: String,
}

impl Panes {
    /// `prompt` is what `printf` shows before `cat` begins. `None` if there is no tmux here.
    fn open(prompt: &str) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            skipped("there is no tmux, so the wake path `tmux` is not tested; type: apt-get install tmux");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut panes = Self { folder, pane: String::new() };
        let sent = panes.sent_file();
        let script = format!("printf '{prompt}'; exec cat > '{}'", sent.display());
        let words = ["new-session", "-d", "-x", "60", "-y", "12", "-P", "-F", "#{pane_id}", "sh", "-c", &script];
        panes.pane = panes.tmux(&words);
        panes.until(|panes| panes.tmux(&["display", "-p", "-t", &panes.pane, "#{pane_current_command}"]) == "cat");
        panes.until(|panes| !panes.shown().is_empty());
        Some(panes)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("tmux.sock")
    }

    fn sent_file(&self) -> PathBuf {
        self.folder.path().join("sent")
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(self.socket()).args(words).env_remove("TMUX");
        let ran = tmux.output().unwrap();
        assert!(ran.status.success(), "tmux {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim_end().to_owned()
    }

    fn shown(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", &self.pane])
    }

    fn sent(&self) -> String {
        fs::read_to_string(self.sent_file()).unwrap()
    }

    fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !is_so(self) {
            assert!(Instant::now() < until, "it did not come to that; the pane shows:\n{}", self.shown());
            yield_now();
        }
    }

    async fn ring(&self, adapter: &TmuxAdapter) -> RingOutcome {
        let told = json!({ "pane": self.pane, "socket": self.socket(), "command": "cat" });
        let contact = adapter.attach(&agent("cat", json!({ "tmux": told }))).unwrap();
        assert_eq!(adapter.probe(&contact).await, ProbeOutcome::There);
        adapter.ring(&contact, &bell()).await
    }
}

impl Drop for Panes {
    fn drop(&mut self) {
        let _ = Command::new("tmux").arg("-S").arg(self.socket()).arg("kill-server").output();
    }
}

fn adapter() -> TmuxAdapter {
    TmuxAdapter::new(&WakeSettings { tmux: true, env: Env::process(), ..WakeSettings::default() })
}

fn uncaptured(rung: RingOutcome) -> String {
    match rung {
        RingOutcome::Uncaptured(why) => why.into_owned(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_bell_is_typed_at_an_empty_prompt_and_sent() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    assert_eq!(panes.ring(&adapter()).await, RingOutcome::Rang);
    panes.until(|panes| panes.sent() == format!("{TEXT}\n"));
}

#[tokio::test]
async fn words_of_the_program_itself_are_no_draft() {
    let Some(panes) = Panes::open(r"› \033[2mAsk me anything\033[0m\r\033[2C") else { return };
    // A terminal does not take faint words away when somebody types over them, as a program would; these are shorter than
    // the bell.
    assert_eq!(panes.ring(&adapter()).await, RingOutcome::Rang);
    panes.until(|panes| panes.sent() == format!("{TEXT}\n"));
}

#[tokio::test]
async fn nothing_is_typed_over_a_persons_draft() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    panes.tmux(&["send-keys", "-t", &panes.pane, "-l", "half a thou"]);
    panes.until(|panes| panes.shown() == "❯ half a thou");
    assert!(uncaptured(panes.ring(&adapter()).await).contains("not empty"));
    assert_eq!(panes.shown(), "❯ half a thou");
    assert_eq!(panes.sent(), "");
}

#[tokio::test]
async fn nothing_is_typed_where_no_known_prompt_is() {
    let Some(panes) = Panes::open(r"Password: ") else { return };
    assert!(uncaptured(panes.ring(&adapter()).await).contains("none that is known"));
    assert_eq!(panes.shown(), "Password:");
}

#[tokio::test]
async fn nothing_is_typed_into_a_pane_that_is_scrolled_back() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    panes.tmux(&["copy-mode", "-t", &panes.pane]);
    let told = json!({ "pane": panes.pane, "socket": panes.socket(), "command": "cat" });
    let adapter = adapter();
    let contact = adapter.attach(&agent("cat", json!({ "tmux": told }))).unwrap();
    assert!(uncaptured(adapter.ring(&contact, &bell()).await).contains("scrolled back"));
    assert_eq!(panes.sent(), "");
}

#[tokio::test]
async fn nothing_is_typed_when_something_else_runs_in_the_pane() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    let client = PaneVariables { pane: panes.pane.clone(), socket: Some(panes.socket()) };
    let mut facts = super::AgentFacts::clone(&agent("claude_code", json!({})));
    facts.client.tmux = Some(client);
    let adapter = adapter();
    let contact = adapter.attach(&facts.into()).unwrap();
    assert!(uncaptured(adapter.ring(&contact, &bell()).await).contains("runs cat, not claude"));
    assert!(matches!(adapter.probe(&contact).await, ProbeOutcome::Absent(_)));
    assert_eq!(panes.shown(), "❯");
}

#[tokio::test]
async fn nothing_is_typed_while_somebody_types_there() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    let Some(person) = Panes::open("here") else { return };
    // Somebody at a terminal of their own looks at the pane: the key that they press leaves no draft.
    let attach = format!("env -u TMUX tmux -u -f /dev/null -S '{}' attach", panes.socket().display());
    let at = person.tmux(&["split-window", "-d", "-P", "-F", "#{pane_id}", &attach]);
    panes.until(|panes| panes.tmux(&["list-clients"]).lines().count() == 1);
    person.until(|person| person.tmux(&["capture-pane", "-p", "-t", &at]).contains('❯'));
    person.tmux(&["send-keys", "-t", &at, "x", "BSpace"]);
    panes.until(|panes| panes.shown() == "❯");
    assert!(uncaptured(panes.ring(&adapter()).await).contains("typed in the agent's pane"));
    assert_eq!(panes.sent(), "");
    // Long after that it would be.
    let patient = TmuxAdapter { quiet: Duration::ZERO, ..adapter() };
    assert_eq!(panes.ring(&patient).await, RingOutcome::Rang);
    panes.until(|panes| panes.sent() == format!("{TEXT}\n"));
}

#[tokio::test]
async fn a_pane_that_is_gone_is_nobody() {
    let Some(panes) = Panes::open(r"❯ ") else { return };
    let told = json!({ "pane": "%77", "socket": panes.socket(), "command": "cat" });
    let adapter = adapter();
    let contact = adapter.attach(&agent("cat", json!({ "tmux": told }))).unwrap();
    assert!(uncaptured(adapter.ring(&contact, &bell()).await).contains("%77"));
    let told = json!({ "pane": "%0", "socket": panes.folder.path().join("other"), "command": "cat" });
    let contact = adapter.attach(&agent("cat", json!({ "tmux": told }))).unwrap();
    uncaptured(adapter.ring(&contact, &bell()).await);
}

#[test]
fn keys_are_for_those_who_asked_for_them() {
    let told = json!({ "pane": "%1" });
    let off = TmuxAdapter::new(&WakeSettings::default());
    assert!(off.check(&told).unwrap_err().contains("switched off"));
    assert!(off.attach(&agent("codex", json!({ "tmux": told }))).is_none());
    let on = adapter();
    assert!(on.attach(&agent("codex", json!({ "tmux": told }))).is_some());
    assert!(on.attach(&agent("codex", json!({}))).is_none(), "nobody said which pane");
    assert!(on.attach(&agent("void", json!({ "tmux": told }))).is_none(), "nor what runs there");
    assert!(on.check(&json!({ "pane": "%1", "command": "bash" })).unwrap_err().contains("not a shell"));
}

#[test]
fn the_variables_of_tmux_are_understood() {
    let told = PaneVariables::read("/tmp/tmux-1000/default,4071,0", "%3").unwrap();
    assert_eq!((told.pane.as_str(), told.socket), ("%3", Some("/tmp/tmux-1000/default".into())));
    for (tmux, pane) in [("", "%3"), ("rel,1,0", "%3"), ("/s,1,0", "3"), ("/s,1,0", "%x"), ("/s,1,0", "")] {
        assert_eq!(PaneVariables::read(tmux, pane), None, "{tmux:?} {pane:?}");
    }
}
