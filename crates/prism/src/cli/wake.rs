//! `prism wake test`: tries every way to wake an agent and shows what came of it, row by row (M-13).

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use anyhow::bail;
use prism_api::mesh::{MeshVerb, WakeTestArguments, WakeTestNews, WakeTestRow};
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::{
    reach::{self, Interrupts},
    say::{self, Colour, Line},
    status::words::took,
    verbs::{Answered, DaemonCallError, FeedItem, MeshClient, VerbReply},
};
use prism_config::Env;

/// How long one way may take to be tried.
const ROW_PATIENCE: Duration = Duration::from_secs(120);

/// The ways there are, and what sets up one that is missing.
const SETUP: [(&str, &str); 11] = [
    ("wait", "the agent calls prism_signals_wait and leaves it running"),
    ("hook", "prism install claude-code --hooks (or codex, cursor)"),
    ("codex_app_server", "run codex with --remote, and give prism_start wake.codex_app_server = {url, thread}"),
    ("opencode", "run opencode serve, and give prism_start wake.opencode = {url, session}"),
    ("acp", "let the editor start the agent as prism acp -- COMMAND"),
    ("sse", "prism install CLIENT: the client opens the stream by itself, over HTTP"),
    ("channel", "claude --dangerously-load-development-channels server:prism, with prism stdio as the server"),
    ("piggyback", "nothing: it comes with the agent's next tool call"),
    ("tmux", "run the agent in tmux, and give prism_start wake.tmux = {pane}"),
    ("editor_chat", "prism install vscode (or cursor, void), and prism.chat.wake in the editor's settings"),
    ("desktop", "a desktop session with notify-send"),
];

/// See how agents can be woken
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism wake test
  prism wake test reviewer --ring

Without --ring it is only looked who is there, and no agent notices.")]
pub struct WakeArgs {
    #[command(subcommand)]
    command: WakeCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WakeCommand {
    /// Look at every way to wake an agent, or all agents
    Test(WakeTestArgs),
}

#[derive(Debug, clap::Args)]
struct WakeTestArgs {
    /// Agent to try it with; all, if left out
    agent: Option<String>,
    /// Really ring, which may start a turn of the agent
    #[arg(long)]
    ring: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// All rows at once.
#[derive(Deserialize)]
struct WakeTestRows {
    #[serde(default)]
    rows: Vec<Answered<WakeTestRow>>,
}

impl WakeArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let WakeCommand::Test(test) = self.command;
        let mesh = MeshClient::started(env)?;
        reach::run(async move {
            let mut stop = Interrupts::new()?;
            tokio::select! {
                tested = test.run(&mesh) => tested,
                code = stop.next() => Ok(code),
            }
        })
    }
}

// === impl WakeTestArgs ===

impl WakeTestArgs {
    async fn run(&self, mesh: &MeshClient) -> anyhow::Result<ExitCode> {
        let agent = self.agent.as_ref().map(|agent| agent.to_lowercase());
        let arguments = WakeTestArguments { agent, ring: self.ring };
        let asked = timeout(ROW_PATIENCE, mesh.told::<WakeTestRows>(MeshVerb::WakeTest, &arguments)).await;
        let mut rows = Vec::new();
        match asked.unwrap_or(Err(DaemonCallError::Late(ROW_PATIENCE)))? {
            VerbReply::Result(result) => result.rows.into_iter().for_each(|row| self.show(row, &mut rows)),
            VerbReply::Rows(mut events) => loop {
                match timeout(ROW_PATIENCE, events.next()).await.map_err(|_| DaemonCallError::Late(ROW_PATIENCE))? {
                    FeedItem::Event { data, .. } => match WakeTestNews::deserialize(&data)? {
                        // The last one is the whole, which was seen row by row.
                        WakeTestNews { rows: Some(_), .. } => break,
                        WakeTestNews { error: Some(refusal), .. } => bail!("{}", refusal.message),
                        WakeTestNews { row, .. } => self.show(Answered::new(row, data), &mut rows),
                    },
                    FeedItem::End => bail!("the daemon went away before the end\n  fix: prism wake test, once more"),
                }
            },
        }
        if self.json {
            say::text(&serde_json::to_string_pretty(&json!({ "rows": rows }))?);
            return Ok(ExitCode::SUCCESS);
        }
        if rows.is_empty() {
            say::line("no agents yet; an agent comes with prism_start");
        }
        for line in missing(rows.iter().map(|row| &**row)) {
            say::line(&line);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show(&self, row: Answered<WakeTestRow>, rows: &mut Vec<Answered<WakeTestRow>>) {
        if !self.json {
            if rows.is_empty() {
                say::coloured(&cells(["AGENT", "PATH", "ATTACHED", "OUTCOME"], "TOOK", "NOTE", Some(Colour::Dim)));
            }
            say::coloured(&line(&row));
        }
        rows.push(row);
    }
}

/// A row. It is shown before the next one is known, so the columns have the room that is usually enough.
fn line(row: &WakeTestRow) -> Line {
    let ms = row.ms.map(took).unwrap_or_default();
    let colour = match row.outcome.as_str() {
        "there" | "rang" | "confirmed" => Some(Colour::Green),
        "send-failed" => Some(Colour::Red),
        "absent" | "uncaptured" | "unanswered" => Some(Colour::Yellow),
        _ if !row.attached => Some(Colour::Dim),
        _ => None,
    };
    let attached = if row.attached { "yes" } else { "no" };
    cells([&row.agent, &row.path, attached, &row.outcome], &ms, row.note.as_deref().unwrap_or_default(), colour)
}

fn cells([agent, path, attached, outcome]: [&str; 4], ms: &str, note: &str, colour: Option<Colour>) -> Line {
    vec![
        (format!("{agent:16}  {path:16}  {attached:8}  "), colour.filter(|colour| *colour == Colour::Dim)),
        (format!("{outcome:12}"), colour),
        (format!("  {ms:>8}  {note}"), colour.filter(|colour| *colour == Colour::Dim)),
    ]
}

/// What to do for the ways that are set up for nobody. Why one that is set up leads nowhere stands in its row.
fn missing<'a>(rows: impl Iterator<Item = &'a WakeTestRow> + Clone) -> Vec<String> {
    let ways = |wanted: bool| -> BTreeSet<&str> {
        rows.clone().filter(|row| row.attached == wanted).map(|row| &*row.path).collect()
    };
    let there = ways(true);
    let missing: Vec<(&str, &str)> =
        SETUP.into_iter().filter(|(path, _)| ways(false).contains(path) && !there.contains(path)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let lines = missing.iter().map(|(path, how)| format!("  {path:16}  {how}"));
    ["".to_owned(), "to set up what is missing:".to_owned()].into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_leads_to_nobody_is_explained_once() {
        let rows = [
            json!({"agent": "a", "path": "wait", "attached": true, "outcome": "there", "ms": 0.2}),
            json!({"agent": "a", "path": "sse", "attached": true, "outcome": "absent", "note": "no open stream"}),
            json!({"agent": "a", "path": "hook", "attached": false, "outcome": "not set up"}),
            json!({"agent": "b", "path": "hook", "attached": false, "outcome": "not set up"}),
            json!({"agent": "b", "path": "wait", "attached": false, "outcome": "not set up"}),
        ];
        let rows: [WakeTestRow; 5] = rows.map(|row| serde_json::from_value(row).unwrap());
        let said = missing(rows.iter());
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(said[2].contains("prism install claude-code --hooks"), "{said:#?}");
        assert_eq!(missing(rows[..1].iter()), Vec::<String>::new());
    }
}
