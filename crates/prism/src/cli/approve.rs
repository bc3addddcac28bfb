//! `prism approve` and `prism deny`: the person's decision on a request. An approval is at most what was asked for.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use prism_api::gate::{ApproveRequest, DecisionTaken, DenyRequest, GrantIssued, RequestView};
use prism_core::policy::GrantScope;
use serde_json::json;

use super::{
    access::folder,
    gate::{GateClient, seconds},
    moments::{distance, now_ms},
    reach,
    requests::in_full,
    say, talk,
    verbs::{Answered, say_not_running},
};
use prism_config::{Env, duration};

/// Give an agent the access it asks for, or a part of it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism approve 01990d3c
  prism approve 01990d3c --scope read:files --scope search:* --ttl 15m
  prism approve 01990d3c --root ./docs --confirm-changes
  prism approve 01990d3c --yes --json

It shows who asks, why and for what, and asks you. With --yes, or with the scopes or folders that
you approve on the command line, it does not; where nobody is at a terminal to be asked, nothing is
approved without. As much of an id as tells it from the others is enough.
Exit codes: 0 approved, 1 refused or not approved, 3 the daemon does not run.")]
pub struct ApproveArgs {
    /// Request, by its id or the beginning of it; see prism requests
    request: String,
    /// Only this scope of those it asks for
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Only this folder of those it asks for, or one beneath
    #[arg(long = "root", value_name = "FOLDER")]
    roots: Vec<String>,
    /// How long, as in 15m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// Show me every change before it is made, not only what cannot be undone
    #[arg(long)]
    confirm_changes: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Print the token of the grant, too; an agent takes its own with its claim
    #[arg(long)]
    token: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// Refuse an agent the access it asks for
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism deny 01990d3c
  prism deny 01990d3c --reason Not on a Friday

The agent is told the reason.
Exit codes: 0 denied, 1 refused, 3 the daemon does not run.")]
pub struct DenyArgs {
    /// Request, by its id or the beginning of it; see prism requests
    request: String,
    /// Why, for the agent to read
    #[arg(long, value_name = "TEXT", num_args = 1..)]
    reason: Vec<String>,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What the person at the terminal has said.
enum ApprovalChoice {
    /// These scopes.
    Approve(Vec<String>),
    Deny(Option<String>),
    Nothing,
}

// === impl ApproveArgs ===

impl ApproveArgs {
    pub fn run(mut self, env: &Env) -> anyhow::Result<ExitCode> {
        self.roots = self.roots.iter().map(|root| folder(root)).collect::<anyhow::Result<_>>()?;
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            let listed = gate.requests(true).await?;
            let row = listed.find(&self.request)?;
            let id = row.request_id.clone();
            if !self.says_what() {
                if !talk::has_person() {
                    in_full(row, now_ms()).iter().for_each(say::told);
                    say::note("nothing was approved: nobody is at a terminal to see it");
                    say::note("  fix: --yes approves what is shown, --scope SCOPE a part of it; prism deny refuses it");
                    return Ok(ExitCode::FAILURE);
                }
                let row = RequestView::clone(row);
                match tokio::task::spawn_blocking(move || asked(&row)).await?? {
                    ApprovalChoice::Approve(scopes) => self.scopes = scopes,
                    ApprovalChoice::Deny(reason) => return denied(&gate, id, reason, self.json).await,
                    ApprovalChoice::Nothing => {
                        say::note("nothing was decided; the request goes on waiting");
                        return Ok(ExitCode::FAILURE);
                    }
                }
            }
            let given: Answered<GrantIssued> = gate.post("/mcp/approve", &self.body(id)).await?;
            match self.json {
                true => say::text(&serde_json::to_string_pretty(&json!(given))?),
                false => self.said(&given, row).iter().for_each(|line| say::line(line)),
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Whether the command line says what is approved. How long, and in which form it is told, does not.
    fn says_what(&self) -> bool {
        self.yes || !self.scopes.is_empty() || !self.roots.is_empty()
    }

    fn body(&self, request_id: String) -> ApproveRequest {
        ApproveRequest {
            request_id,
            approved_scopes: Some(self.scopes.clone()).filter(|scopes| !scopes.is_empty()),
            approved_roots: Some(self.roots.clone()).filter(|roots| !roots.is_empty()),
            ttl_seconds: self.ttl.map(seconds),
            confirm_changes: self.confirm_changes,
        }
    }

    fn said(&self, given: &GrantIssued, row: &RequestView) -> Vec<String> {
        let (id, agent) = (&given.session_id, &row.agent_id);
        let ends = distance(given.expires_at * 1000, now_ms());
        let mut lines = vec![format!("approved: {agent} has grant {id}, which ends {ends}")];
        if let Some(token) = given.session_token.as_ref().filter(|_| self.token) {
            lines.push(format!("token {token}"));
        }
        lines.push(format!("take it back: prism revoke {}", id.get(..8).unwrap_or(id)));
        lines
    }
}

/// Shows a request to the person, and asks.
fn asked(row: &RequestView) -> anyhow::Result<ApprovalChoice> {
    in_full(row, now_ms()).iter().for_each(say::told);
    let chosen = talk::choose("Approve? [y]es / [s]ome / [d]eny / [n]ot now:", &["yes", "some", "deny", "no"])?;
    Ok(match chosen {
        Some("yes") => ApprovalChoice::Approve(row.scopes.clone()),
        Some("some") => {
            let mut some = Vec::new();
            for name in &row.scopes {
                let words = GrantScope::named(name).map_or(name.as_str(), |scope| scope.in_words());
                match talk::choose(&format!("  {words}? yes, no:"), &["yes", "no"])? {
                    Some("yes") => some.push(name.clone()),
                    Some(_) => {}
                    None => return Ok(ApprovalChoice::Nothing),
                }
            }
            if some.is_empty() {
                bail!("nothing of it was approved\n  fix: prism deny refuses all of it");
            }
            ApprovalChoice::Approve(some)
        }
        Some("deny") => {
            let why = talk::line("Why? The agent reads it; an empty line says nothing:")?;
            ApprovalChoice::Deny(why.filter(|why| !why.is_empty()))
        }
        _ => ApprovalChoice::Nothing,
    })
}

// === impl DenyArgs ===

impl DenyArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            let listed = gate.requests(true).await?;
            let id = listed.find(&self.request)?.request_id.clone();
            let reason = Some(self.reason.join(" ")).filter(|reason| !reason.trim().is_empty());
            denied(&gate, id, reason, self.json).await
        })
    }
}

async fn denied(gate: &GateClient, id: String, reason: Option<String>, json: bool) -> anyhow::Result<ExitCode> {
    let denied = format!("denied {id}");
    let told: Answered<DecisionTaken> = gate.post("/mcp/deny", &DenyRequest { request_id: id, reason }).await?;
    match json {
        true => say::text(&serde_json::to_string_pretty(&told)?),
        false => say::line(&denied),
    }
    if let Some(why) = told.unwritten.as_ref().filter(|_| !json) {
        say::note(why);
    }
    Ok(ExitCode::SUCCESS)
}
