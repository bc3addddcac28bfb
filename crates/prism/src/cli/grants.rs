//! `prism grants` and `prism revoke`: who holds what, what was done with it, and taking it back.

use std::process::ExitCode;

use anyhow::bail;
use prism_api::gate::{ActionView, GrantView, GrantsRevoked, RevokeRequest};

use super::{
    columns::{Cell, cut, number, table, text},
    gate::{GateClient, GateRows, show},
    moments::until,
    reach,
    requests::few,
    say::{self, Colour, Line},
    verbs::{Answered, say_not_running},
    visible::visible_line,
};
use prism_config::Env;

/// Show the grants that agents hold
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism grants
  prism grants --all
  prism grants --json | jq '.sessions[] | {agent_id, expires_in_ms}'

Take one back with prism revoke ID.
Exit codes: 0 shown, 1 refused, 3 the daemon does not run.")]
pub struct GrantsArgs {
    /// Also those that are over
    #[arg(long)]
    all: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Take grants back; their sockets are closed at once
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism revoke 5f0c2d1e
  prism revoke --agent fixer
  prism revoke --all

What came from a grant ends with it.
Exit codes: 0 revoked, 1 refused, 3 the daemon does not run.")]
pub struct RevokeArgs {
    /// Grant, by its id or the beginning of it; see prism grants
    #[arg(required_unless_present_any = ["all", "agent"], conflicts_with_all = ["all", "agent"])]
    grant: Option<String>,
    /// Every grant there is
    #[arg(long, conflicts_with = "agent")]
    all: bool,
    /// Every grant of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

// === impl GrantsArgs ===

impl GrantsArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            show(gate.grants(self.all).await, self.json, "nobody holds a grant; prism requests shows who asks", lines)
        })
    }
}

/// Grants in a table, those that came from another below it, each with what was done last.
fn lines(listed: &GateRows<GrantView>, width: usize, now: i64) -> Vec<Line> {
    let columns = [
        text("GRANT", 0),
        text("AGENT", 0),
        text("STATUS", 1),
        text("ENDS", 0),
        text("SCOPES", 3),
        text("ROOTS", 2),
        number("ACTIONS", 4),
    ];
    let rows = listed.rows.iter().map(|row| {
        let alive = row.status.is_granted();
        let is_degraded = alive && !row.degraded.is_empty();
        let colour = if alive && !is_degraded { Colour::Green } else { Colour::Dim };
        let status = if is_degraded { "degraded".to_owned() } else { row.status.name().to_lowercase() };
        let branch = "└ ".repeat(usize::from(row.parent.is_some()));
        let cells: Vec<Cell> = vec![
            (listed.short(row).to_owned(), None),
            (format!("{branch}{}", row.agent_id), None),
            (status, Some(colour)),
            (if alive { until(&row.expires_at, now) } else { String::new() }, None),
            (few(&row.allowed_scopes), None),
            (few(&row.roots), None),
            (row.actions.to_string(), None),
        ];
        let last = row.last_actions.first().filter(|_| alive);
        let details = last.map(|last| cut(vec![(said_last(last, now), Some(Colour::Dim))], width));
        (cells, details.into_iter().collect())
    });
    table(&columns, rows.collect(), width)
}

fn said_last(last: &ActionView, now: i64) -> String {
    let ActionView { at, action, about, result } = last;
    format!("  last: {action} {} ({result}), {}", visible_line(about), until(at, now))
}

// === impl RevokeArgs ===

impl RevokeArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            let listed = gate.grants(self.grant.is_some()).await?;
            let chosen: Vec<&str> = match (&self.grant, &self.agent) {
                (Some(typed), _) => vec![&listed.find(typed)?.session_id],
                (None, Some(agent)) => {
                    let of = |row: &&Answered<GrantView>| row.agent_id.eq_ignore_ascii_case(agent);
                    let own: Vec<&str> = listed.rows.iter().filter(of).map(|row| &*row.session_id).collect();
                    if own.is_empty() {
                        bail!("{agent:?} holds no grant\n  fix: prism grants shows who does");
                    }
                    own
                }
                (None, None) => listed.rows.iter().map(|row| &*row.session_id).collect(),
            };
            let mut all = GrantsRevoked::default();
            for id in chosen {
                let told: GrantsRevoked =
                    gate.post("/mcp/revoke", &RevokeRequest { session_id: id.to_owned() }).await?;
                // One that came from another is over already when its turn comes.
                all.revoked += told.revoked;
                all.unwritten = told.unwritten.or(all.unwritten);
            }
            match (self.json, all.revoked) {
                (true, _) => say::text(&serde_json::to_string_pretty(&all)?),
                (false, 0) => say::line("nothing to revoke: no such grant is alive"),
                (false, 1) => say::line("revoked 1 grant"),
                (false, count) => say::line(&format!("revoked {count} grants")),
            }
            if let Some(why) = all.unwritten.filter(|_| !self.json) {
                say::note(&why);
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
