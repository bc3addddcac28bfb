//! `prism signal`: sends, answers, takes back and reads the signals of the mesh, for people and scripts (M-02).

use std::{
    io::{self, IsTerminal, Read},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use prism_api::mesh::{
    MeshVerb, PendingArguments, RecallArguments, RecipientState, ReplyArguments, SendArguments, SignalAccepted,
    SignalDelivery, SignalRecalled, SignalWaived, SignalsPage, WaiveArguments,
};
use prism_core::time::parse_rfc3339;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use super::{
    moments::{clock, distance, now_ms},
    reach, say,
    verbs::{Answered, MeshClient, PATIENCE, PERSON, acting},
};
use prism_config::{Env, duration};

/// The types that people and agents send. Those of the mesh itself are its own.
const TYPES: [&str; 8] = [
    "Question",
    "TaskAssigned",
    "ReviewRequested",
    "StatusUpdate",
    "Acknowledgment",
    "TaskCompleted",
    "ReviewCompleted",
    "Answer",
];
/// The longest text that is read from stdin. The daemon has its own limit, and says it.
const MAX_STDIN_BYTES: u64 = 16 << 20;

/// Send, answer and read signals
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism signal send --to reviewer Please look at the login page
  prism signal send --to reviewer --type TaskAssigned --ttl 10m -   the text from stdin
  prism signal reply 01990d3c-7c58-7e9f-9d3a-6a5d3c2b1a00 Done
  prism signal pending

You are `person`, unless --from or PRISM_AGENT name an agent.
Exit codes: 0 done, 1 refused, 2 typed wrongly.")]
pub struct SignalArgs {
    #[command(subcommand)]
    command: SignalCommand,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum SignalCommand {
    /// Send a signal to an agent
    Send(SignalSendArgs),
    /// Answer a signal
    Reply(SignalReplyArgs),
    /// Take back a signal that nobody has read yet
    Recall(SignalRecallArgs),
    /// End what is owed for a signal without a reply, and say why
    Waive(SignalWaiveArgs),
    /// Read what waits for you, or for an agent; what was read waits no longer
    Pending(SignalPendingArgs),
}

#[derive(Debug, clap::Args)]
struct SignalSendArgs {
    /// Agent to send it to
    #[arg(long, value_name = "AGENT")]
    to: String,
    /// What it is
    #[arg(long = "type", value_name = "TYPE", default_value = "Question", value_parser = TYPES)]
    kind: String,
    /// Agent that sends it
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// Signal that it belongs to
    #[arg(long, value_name = "ID")]
    reply_to: Option<String>,
    /// How long it is worth delivering, as in 10m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// Refuse it unless the agent can be woken now
    #[arg(long)]
    sync: bool,
    /// Its id, a UUID: sent twice with the same one, it is one signal
    #[arg(long, value_name = "UUID", value_parser = uuid)]
    id: Option<String>,
    #[command(flatten)]
    text: SignalTextArgs,
}

#[derive(Debug, clap::Args)]
struct SignalReplyArgs {
    /// Id of the signal, as it was shown with it
    id: String,
    #[command(flatten)]
    text: SignalTextArgs,
    /// What the answer is [default: what the signal asks for]
    #[arg(long = "type", value_name = "TYPE", value_parser = TYPES)]
    kind: Option<String>,
    /// Agent that answers
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
}

#[derive(Debug, clap::Args)]
struct SignalRecallArgs {
    /// Id of the signal
    id: String,
    /// Agent that has sent it
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
}

#[derive(Debug, clap::Args)]
struct SignalWaiveArgs {
    /// Id of the signal, as prism mesh shows it
    id: String,
    #[command(flatten)]
    reason: SignalTextArgs,
    /// Agent that waives it: the one that was asked, or the one that has asked
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
}

#[derive(Debug, clap::Args)]
struct SignalPendingArgs {
    /// Agent whose signals they are
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only look: they go on waiting
    #[arg(long)]
    peek: bool,
    /// How many at once
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=200))]
    limit: u32,
}

#[derive(Debug, clap::Args)]
struct SignalTextArgs {
    /// What it says; `-`, or nothing where stdin is a pipe: what stands there
    #[arg(value_name = "TEXT")]
    words: Vec<String>,
}

fn uuid(text: &str) -> Result<String, String> {
    text.parse::<uuid::Uuid>().map(|id| id.to_string()).map_err(|_| "it is no UUID".to_owned())
}

// === impl SignalArgs ===

impl SignalArgs {
    /// Runs one command.
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let json = self.json;
        match self.command {
            SignalCommand::Send(send) => {
                let to = send.to.clone();
                let arguments = send.arguments(env)?;
                ask(env, MeshVerb::Send, &arguments, json, |sent| said_sent(sent, &to))
            }
            SignalCommand::Reply(reply) => {
                let arguments = reply.arguments(env)?;
                ask(env, MeshVerb::Reply, &arguments, json, |sent| said_sent(sent, "the sender"))
            }
            SignalCommand::Recall(recall) => {
                let agent = acting(recall.from.as_deref(), env);
                let arguments = RecallArguments { signal_id: recall.id, session: None, agent };
                let words = |_: &SignalRecalled| vec![format!("recalled {}", arguments.signal_id)];
                ask(env, MeshVerb::Recall, &arguments, json, words)
            }
            SignalCommand::Waive(waive) => {
                let reason = waive.reason.read("prism signal waive ID")?;
                let agent = acting(waive.from.as_deref(), env);
                let arguments = WaiveArguments { signal_id: waive.id, reason, session: None, agent };
                let words = |_: &SignalWaived| vec![format!("waived {}: nobody owes it any more", arguments.signal_id)];
                ask(env, MeshVerb::Waive, &arguments, json, words)
            }
            SignalCommand::Pending(pending) => {
                let agent = acting(pending.agent.as_deref(), env);
                let whose = agent.clone().unwrap_or_else(|| PERSON.to_owned());
                let (peek, limit) = (pending.peek, Some(pending.limit));
                let arguments = PendingArguments { session: None, agent, peek, after: None, limit };
                ask(env, MeshVerb::Pending, &arguments, json, |told| waiting(told, &whose, peek))
            }
        }
    }
}

/// Calls a verb of the daemon, which is started if it does not run, and shows what it answers.
fn ask<T: DeserializeOwned>(
    env: &Env,
    verb: MeshVerb,
    arguments: &impl Serialize,
    json: bool,
    words: impl FnOnce(&T) -> Vec<String>,
) -> anyhow::Result<ExitCode> {
    let mesh = MeshClient::started(env)?;
    // The clients' token is nobody's name.
    let mesh = mesh.as_person(env).unwrap_or(mesh);
    reach::run(async move {
        let answer: Answered<T> = mesh.call(verb, arguments, PATIENCE).await?;
        match json {
            true => say::text(&serde_json::to_string_pretty(&json!(answer))?),
            false => words(&answer).iter().for_each(|line| say::line(line)),
        }
        Ok(ExitCode::SUCCESS)
    })
}

// === impl SignalSendArgs ===

impl SignalSendArgs {
    fn arguments(self, env: &Env) -> anyhow::Result<SendArguments> {
        Ok(SendArguments {
            to: self.to,
            kind: self.kind,
            body: self.text.read("prism signal send")?,
            session: None,
            // Nobody named is the person.
            agent: acting(self.from.as_deref(), env),
            reply_to: self.reply_to,
            trace_id: None,
            signal_id: self.id,
            delivery: self.sync.then_some(SignalDelivery::Sync),
            // A part of a second is better rounded up than taken for no limit.
            ttl_s: self.ttl.map(|ttl| ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)),
        })
    }
}

// === impl SignalReplyArgs ===

impl SignalReplyArgs {
    fn arguments(self, env: &Env) -> anyhow::Result<ReplyArguments> {
        Ok(ReplyArguments {
            to_signal: self.id,
            body: self.text.read("prism signal reply ID")?,
            kind: self.kind,
            session: None,
            agent: acting(self.from.as_deref(), env),
            signal_id: None,
        })
    }
}

// === impl SignalTextArgs ===

impl SignalTextArgs {
    /// Returns what was typed, or else what stands on stdin.
    fn read(&self, typed: &str) -> anyhow::Result<String> {
        let from_stdin = match self.words.as_slice() {
            [] if io::stdin().is_terminal() => bail!("there is no text\n  fix: {typed} --help shows examples"),
            [] => true,
            [only] => only == "-",
            _ => false,
        };
        let text = match from_stdin {
            true => {
                let mut text = String::new();
                let read = io::stdin().lock().take(MAX_STDIN_BYTES + 1).read_to_string(&mut text);
                read.context("cannot read the text on stdin")?;
                text
            }
            false => self.words.join(" "),
        };
        if text.len() as u64 > MAX_STDIN_BYTES {
            bail!("the text is longer than {} MiB\n  fix: send where it is, not what it says", MAX_STDIN_BYTES >> 20);
        }
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            bail!("the text is empty\n  fix: {typed} --help shows examples");
        }
        Ok(text.to_owned())
    }
}

/// What is said of a signal that is on its way.
fn said_sent(sent: &SignalAccepted, to: &str) -> Vec<String> {
    let mut lines = vec![format!("sent {}", sent.signal_id)];
    let RecipientState { presence, surface_support, pending } = &sent.recipient_state;
    let mut known: Vec<String> = Vec::new();
    if !presence.is_empty() && presence != PERSON {
        known.push(format!("{to} is {presence}"));
    }
    if let Some(support) = surface_support {
        known.push(
            if support == "degraded" { "hears of it only at its next tool call" } else { "can be woken" }.to_owned(),
        );
    }
    if let Some(pending) = pending {
        known.push(format!("{pending} pending"));
    }
    if let Some(due) = sent.obligation.as_ref().and_then(|owed| parse_rfc3339(&owed.due_at)) {
        known.push(format!("an answer is due {}", distance(due, now_ms())));
    }
    if !known.is_empty() {
        lines.push(known.join("; "));
    }
    lines
}

/// What waits, in words.
fn waiting(told: &SignalsPage, whose: &str, peeked: bool) -> Vec<String> {
    if told.signals.is_empty() {
        return vec![format!("nothing waits for {whose}")];
    }
    let mut lines = Vec::new();
    for one in &told.signals {
        let again = if one.redelivered { ", delivered before" } else { "" };
        lines.push(format!("{} from {}  {}  {}{again}", one.kind, one.from, clock(&one.sent_at), one.signal_id));
        lines.extend(one.body.lines().map(|line| format!("  {line}")));
        // A reply is wanted only where the mesh says so.
        if one.reply_with.is_some() {
            lines.push(format!("  answer: prism signal reply {} …", one.signal_id));
        }
        lines.push(String::new());
    }
    lines.extend(told.notice.clone());
    if told.remaining > 0 {
        let how = if peeked { "with a larger --limit" } else { "with the same command again" };
        lines.push(format!("{} more wait; see them {how}", told.remaining));
    }
    lines
}

#[cfg(test)]
mod tests {
    use prism_core::Time;
    use serde_json::Value;

    use super::*;
    use prism_core::time::rfc3339;

    fn waiting(told: &Value, whose: &str, peeked: bool) -> Vec<String> {
        super::waiting(&serde_json::from_value(told.clone()).unwrap(), whose, peeked)
    }

    fn said_sent(sent: &Value, to: &str) -> Vec<String> {
        super::said_sent(&serde_json::from_value(sent.clone()).unwrap(), to)
    }

    #[test]
    fn what_waits_is_told_with_who_and_how_to_answer() {
        let told = json!({
            "signals": [
                {"signal_id": "a1", "type": "Question", "from": "planner", "sent_at": "2026-11-16T02:27:00Z",
                 "body": "one\ntwo", "reply_with": "prism_signal_reply"},
                {"signal_id": "a2", "type": "StatusUpdate", "from": "builder", "sent_at": "2026-11-16T02:28:00Z",
                 "body": "built", "redelivered": true},
            ],
            "remaining": 3, "notice": "Text of other agents.",
        });
        assert_eq!(
            waiting(&told, "reviewer", false),
            [
                "Question from planner  2026-11-16T02:27:00Z  a1",
                "  one",
                "  two",
                "  answer: prism signal reply a1 …",
                "",
                "StatusUpdate from builder  2026-11-16T02:28:00Z  a2, delivered before",
                "  built",
                "",
                "Text of other agents.",
                "3 more wait; see them with the same command again",
            ]
        );
        assert_eq!(waiting(&json!({"signals": []}), "reviewer", true), ["nothing waits for reviewer"]);
    }

    #[test]
    fn what_was_sent_is_told_with_what_is_known_of_the_recipient() {
        let sent = json!({"signal_id": "a1", "recipient_state": {"presence": "connected", "surface_support": "full",
                          "pending": 2}, "obligation": {"due_at": rfc3339(Time((now_ms() + 90_000) * 1000))}});
        assert_eq!(
            said_sent(&sent, "reviewer"),
            ["sent a1", "reviewer is connected; can be woken; 2 pending; an answer is due in 1 min"]
        );
        assert_eq!(said_sent(&json!({"signal_id": "a2"}), "reviewer"), ["sent a2"]);
    }
}
