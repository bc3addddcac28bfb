//! What the agent, the person and the log saw of an attack, as a test has observed it: the lane `attacks` prints it beside what
//! holds. In any other lane it is told to nobody.

use std::{env, fmt::Display, fs::OpenOptions, io::Write, thread};

use serde_json::Value;

use super::{
    Daemon,
    gate::{Gate, Holder},
    until,
};

/// What whoever saw nothing saw.
pub(crate) const NOTHING: &str = "nothing";
/// The most letters of one value.
const LETTERS: usize = 60;
/// A word of so many hexadecimal digits is an id, a digest or a secret.
const ID: usize = 16;

/// Says what the three saw (`PRISM_ATTACKS_SEEN` names the file).
pub(crate) fn seen(agent: impl Display, person: impl Display, log: impl Display) {
    let Some(list) = env::var_os("PRISM_ATTACKS_SEEN") else { return };
    let test = thread::current().name().unwrap_or_default().to_owned();
    let [agent, person, log] = [agent.to_string(), person.to_string(), log.to_string()].map(|text| short(&text));
    let mut list = OpenOptions::new().append(true).create(true).open(list).expect("the list can be written");
    list.write_all(format!("{test}\t{agent}\t{person}\t{log}\n").as_bytes()).expect("the list can be written");
}

/// A line of the audit log.
pub(crate) fn line(line: &Value) -> String {
    format!("{}: {}", line["action"].as_str().unwrap_or("?"), line["result"].as_str().unwrap_or("?"))
}

/// What a holder was told: a code, and why; or what a program said that was run for it.
pub(crate) fn told(result: &Value) -> String {
    let data = &result["data"];
    let text = |name: &str| data[name].as_str().unwrap_or_default();
    match data["code"].as_str() {
        Some(code) => format!("{code}: {}", text("message")),
        None => {
            let said = [text("stderr"), text("stdout")].into_iter().find(|said| !said.trim().is_empty());
            let said = said.and_then(|said| said.lines().find(|line| !line.trim().is_empty()));
            said.map_or_else(|| "ok".to_owned(), str::to_owned)
        }
    }
}

/// The first line of a log that says this, without its time.
pub(crate) fn logged(log: &str, words: &str) -> String {
    let line = log.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("no {words:?} in {log}"));
    line[line.find(words).unwrap_or_default()..].to_owned()
}

impl Daemon {
    /// A line of its own log that says this, from there on, once there is one.
    pub(crate) async fn logged(&self, words: &str) -> String {
        until(&format!("the daemon's log has {words:?}"), async || self.stderr().contains(words)).await;
        logged(&self.stderr(), words)
    }

    /// What it has counted of those that were turned away at the door for this: of them there is no line.
    pub(crate) async fn counted(&self, reason: &str) -> String {
        let count = self.metric(&format!("prism_refused_total{{reason=\"{reason}\"}}")).await;
        match count.expect("there is such a reason") {
            0 => NOTHING.to_owned(),
            count => format!("counted as refused ({reason}): {count}"),
        }
    }
}

impl Gate {
    /// What the person was asked, last, and why.
    pub(crate) async fn person_saw(&self) -> String {
        let asked = self.seen("/mcp/confirmations?all=1").await["confirmations"][0].clone();
        let shown = &asked["shown"];
        match (shown["action"].as_str(), shown["because"][0].as_str()) {
            (Some(action), Some(because)) => format!("{action}? {because}"),
            (Some(action), None) => format!("{action}?"),
            (None, _) if asked.is_null() => "not asked".to_owned(),
            (None, _) => "asked".to_owned(),
        }
    }

    /// The newest line of the audit log about an action, once there is one.
    pub(crate) async fn last_line(&self, action: &str) -> String {
        let mut found = None;
        until(&format!("the audit log has {action}"), async || {
            found = self.audit().iter().rfind(|line| line["action"] == action).map(line);
            found.is_some()
        })
        .await;
        found.expect("it was found")
    }
}

impl Holder {
    /// Has something refused, or done; returns what it was told.
    pub(crate) async fn hears(&mut self, action: &str, args: Value) -> String {
        told(&self.does(action, args).await)
    }
}

/// In one line, without the paths, ids and secrets of this machine.
fn short(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { ' ' } else { letter };
    let text: String = text.chars().map(plain).collect();
    let words = text.split_whitespace().map(|word| {
        let is_id = word.chars().filter(char::is_ascii_hexdigit).count() >= ID
            && word.chars().all(|letter| letter.is_ascii_hexdigit() || !letter.is_alphanumeric());
        let path = word.find('/').filter(|at| word[..*at].chars().all(|letter| !letter.is_alphanumeric()));
        match (is_id, path) {
            (true, _) => "…".to_owned(),
            // The last part says what it is about.
            (false, Some(at)) => format!("{}…{}", &word[..at], &word[word.rfind('/').unwrap_or(at)..]),
            (false, None) => word.to_owned(),
        }
    });
    let text = words.collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}
