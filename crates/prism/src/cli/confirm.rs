//! `prism confirmations` and `prism confirm`: what agents may only do once the person has seen it. What is shown
//! here is what is run: the answer names the digest of it.

mod view;

use std::{process::ExitCode, time::Duration};

use prism_api::gate::{ConfirmRequest, ConfirmationView, DecisionTaken};
use prism_core::policy::ConfirmationState;

use super::{
    columns::{Cell, table, text},
    gate::{GateClient, GateRows, seconds, show},
    moments::{now_ms, until},
    reach,
    say::{self, Colour, Line},
    talk,
    verbs::{Answered, say_not_running},
    visible::visible_line,
};
use prism_config::{Env, duration};

/// Show what agents want to do that you must see first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism confirmations
  prism confirmations --all
  prism confirmations --json | jq '.confirmations[].shown'

See one in full, and decide: prism confirm ID.
Exit codes: 0 shown, 1 refused, 3 the daemon does not run.")]
pub struct ConfirmationsArgs {
    /// Also those that are answered, or over
    #[arg(long)]
    all: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Let an agent do what it wants to, or not
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism confirm 01990d3c
  prism confirm 01990d3c --yes
  prism confirm 01990d3c --uses 10 --for 15m
  prism confirm 01990d3c --deny --reason Use the test database

It shows exactly what would run; on a terminal it asks, unless --yes, --uses, --for or --deny
say what you want. An Allow counts for exactly that, and once, unless you say more.
Exit codes: 0 answered, 1 refused or not answered, 3 the daemon does not run.")]
pub struct ConfirmArgs {
    /// Confirmation, by its id or the beginning of it; see prism confirmations
    confirmation: String,
    /// Do not let it happen
    #[arg(long, conflicts_with_all = ["uses", "within", "yes"])]
    deny: bool,
    /// Why not, for the agent to read
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    reason: Vec<String>,
    /// Let the very same happen this often
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    uses: Option<u32>,
    /// Let the very same happen for this long, as in 15m
    #[arg(long = "for", id = "within", value_name = "DURATION", value_parser = duration)]
    within: Option<Duration>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

// === impl ConfirmationsArgs ===

impl ConfirmationsArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            show(gate.confirmations(self.all).await, self.json, "nothing waits for your word", lines)
        })
    }
}

fn lines(listed: &GateRows<ConfirmationView>, width: usize, now: i64) -> Vec<Line> {
    let columns = [text("CONFIRMATION", 0), text("AGENT", 0), text("STATE", 2), text("ENDS", 1), text("WANTS TO", 0)];
    let rows = listed.rows.iter().map(|row| {
        let waits = row.state == ConfirmationState::Waiting;
        let cells: Vec<Cell> = vec![
            (listed.short(row).to_owned(), None),
            (visible_line(&row.agent_id), None),
            (row.state.name().to_owned(), Some(if waits { Colour::Yellow } else { Colour::Dim })),
            (if waits { until(&row.expires_at, now) } else { String::new() }, None),
            (view::in_short(&row.shown), None),
        ];
        (cells, Vec::new())
    });
    let lines = table(&columns, rows.collect(), width);
    lines.into_iter().map(|line| super::columns::cut(line, width)).collect()
}

// === impl ConfirmArgs ===

impl ConfirmArgs {
    pub fn run(mut self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            let listed = gate.confirmations(true).await?;
            let row = listed.find(&self.confirmation)?;
            // The very text whose digest is sent back; nothing is looked up again.
            let shown = view::in_full(row, now_ms());
            if self.says_what() {
                if !self.json {
                    shown.iter().for_each(say::told);
                }
            } else {
                shown.iter().for_each(say::told);
                if !talk::has_person() {
                    say::note("nothing was answered: nobody is at a terminal to see it");
                    say::note("  fix: --yes allows what is shown, --deny does not");
                    return Ok(ExitCode::FAILURE);
                }
                let asked =
                    || talk::choose("Let it happen? yes, no (the agent is told), later:", &["yes", "no", "later"]);
                match tokio::task::spawn_blocking(asked).await?? {
                    Some("yes") => {}
                    Some("no") => self.deny = true,
                    _ => {
                        say::note("nothing was answered; it goes on waiting");
                        return Ok(ExitCode::FAILURE);
                    }
                }
            }
            let told: Answered<DecisionTaken> = gate.post("/mcp/confirm", &self.body(row)).await?;
            match self.json {
                true => say::text(&serde_json::to_string_pretty(&told)?),
                false if self.deny => say::line("denied"),
                false => say::line("allowed"),
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Whether the command line has the answer.
    fn says_what(&self) -> bool {
        self.deny || self.yes || self.uses.is_some() || self.within.is_some()
    }

    fn body(&self, row: &ConfirmationView) -> ConfirmRequest {
        ConfirmRequest {
            confirmation_id: row.confirmation_id.clone(),
            digest: row.digest.clone(),
            allow: !self.deny,
            uses: self.uses,
            until_seconds: self.within.map(seconds),
            reason: Some(self.reason.join(" ")).filter(|_| !self.reason.is_empty()),
        }
    }
}
