//! `prism agent open`: asks, waits for the person, and keeps what was granted.

use std::{process::ExitCode, time::Duration};

use anyhow::bail;
use prism_api::gate::{AccessRequest, AccessRequested, ClaimAnswer};
use prism_config::duration;
use prism_core::policy::RequestState;
use prism_os::clock::now_rfc3339;
use serde_json::json;
use tokio::time::{Instant, interval};

use super::{AgentContext, kept::SavedSession};
use crate::cli::{
    access::{ROUND, UNDECIDED, ask, asked_scopes, folder, requested},
    gate::seconds,
    moments::{distance, now_ms},
    reach::{self, Interrupts},
    say,
    verbs::MeshClient,
};

/// Who asks if nobody says.
const SHELL: &str = "shell";
/// How often the spinner turns.
const TURN: Duration = Duration::from_millis(120);
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠴", "⠦", "⠧", "⠇"];

#[derive(Debug, clap::Args)]
pub(super) struct AgentOpenArgs {
    /// Folder to work in; all beneath it is meant
    #[arg(long = "root", value_name = "FOLDER", default_value = ".")]
    roots: Vec<String>,
    /// Scopes by kind: restricted, basic, standard or advanced; each contains the ones before it [default: standard, if no scope is named]
    #[arg(long = "preset", value_name = "NAME", value_parser = ["restricted", "basic", "standard", "advanced"])]
    presets: Vec<String>,
    /// Scope to ask for, as in read:files or git:*; see prism access scopes
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// How long, as in 1h
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// What for, in words for the person who decides
    #[arg(long, value_name = "TEXT", default_value = "Work from the shell (prism agent)")]
    reason: String,
}

impl AgentOpenArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        let agent = around.agent.clone().unwrap_or_else(|| SHELL.to_owned());
        let roots = self.roots.iter().map(|root| folder(root)).collect::<anyhow::Result<Vec<_>>>()?;
        let mut scopes = asked_scopes(&self.scopes, &self.presets);
        if scopes.is_empty() {
            scopes.push("preset:standard".to_owned());
        }
        let body = AccessRequest {
            agent_id: agent.clone(),
            scopes,
            roots,
            reason: self.reason,
            preset: None,
            ttl_seconds: self.ttl.map(seconds),
        };
        let mesh = MeshClient::started(around.env)?;
        reach::run(async move {
            let asked = requested(&mesh, &body, around.env).await?;
            let AccessRequested { request_id, claim, .. } = AccessRequested::clone(&asked);
            let kept = SavedSession { agent, request_id, claim, asked_at: now_rfc3339(), given: None };
            // Before anything is waited for: whoever is interrupted can go on later.
            kept.keep(around.env)?;
            say::note(&format!("asked; a person decides: prism approve {}, or prism console", kept.request_id));
            followed(&mesh, kept, around).await
        })
    }
}

/// Waits until there is a decision.
async fn followed(mesh: &MeshClient, kept: SavedSession, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
    let mut stop = Interrupts::new()?;
    let begun = Instant::now();
    let deciding = async {
        loop {
            let told = ask(mesh, &kept.request_id, &kept.claim, ROUND).await?;
            if !told.status.is_open() {
                return anyhow::Ok(told);
            }
        }
    };
    let mut deciding = std::pin::pin!(deciding);
    let mut turns = interval(TURN);
    let mut turn = 0;
    let told = loop {
        tokio::select! {
            told = &mut deciding => break told,
            code = stop.next() => {
                reach::say_interrupted();
                say::note("the request stays open; once it is approved, prism agent run takes the session");
                return Ok(code);
            }
            _ = turns.tick() => {
                let waited = begun.elapsed().as_secs();
                say::status(Some(&format!("{} waiting for the person … {waited} s", SPINNER[turn % SPINNER.len()])));
                turn += 1;
            }
        }
    };
    say::status(None);
    let told = told?;
    settled(kept.clone(), &told, around)
}

/// Keeps what was granted, or says what came of it instead.
fn settled(mut kept: SavedSession, told: &ClaimAnswer, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
    if !kept.take(told) {
        kept.forget(around.env)?;
        let why = told.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        match told.status {
            RequestState::Denied => bail!("the person said no{why}"),
            RequestState::Expired if told.session_id.is_none() => {
                say::note("nobody decided in time\n  fix: prism agent open again, and prism approve");
                return Ok(ExitCode::from(UNDECIDED));
            }
            _ => bail!("the session was taken by somebody else, or is over\n  fix: prism agent open"),
        }
    }
    kept.keep(around.env)?;
    let Some(given) = &kept.given else { bail!("nothing was granted\n  fix: prism agent open") };
    if around.json {
        // The token is where it is kept: whoever may read that can have it.
        let shown = json!({"agent": kept.agent, "session_id": given.session_id, "scopes": given.scopes,
                           "roots": given.roots, "expires_at": given.expires_at});
        say::text(&serde_json::to_string_pretty(&shown)?);
        return Ok(ExitCode::SUCCESS);
    }
    let ends = given.ends().map(|at| distance(at, now_ms())).unwrap_or_default();
    say::line(&format!("open: {} may work in {}", kept.agent, given.roots.join(" ")));
    say::line(&format!("ends    {ends}"));
    say::line(&format!("scopes  {}", given.scopes.join(" ")));
    say::line("next: prism agent verbs, prism agent shell");
    Ok(ExitCode::SUCCESS)
}

/// The session to work with: one that is open, or one whose request has been approved meanwhile.
pub(super) async fn current(around: &AgentContext<'_>) -> anyhow::Result<SavedSession> {
    let Some(mut kept) = SavedSession::find(around)? else {
        match &around.agent {
            Some(agent) => bail!("{agent:?} has no session open\n  fix: prism agent open --agent {agent} --root ."),
            None => bail!(super::kept::NONE),
        }
    };
    if kept.given.is_some() {
        return Ok(kept);
    }
    let mesh = MeshClient::running(around.env)?;
    let Some(mesh) = mesh else { bail!("Prism is not running\n  fix: prism serve --detach") };
    let told = ask(&mesh, &kept.request_id, &kept.claim, Duration::ZERO).await?;
    if told.status.is_open() {
        bail!("not granted yet: a person has to decide\n  fix: prism approve {}", kept.request_id);
    }
    if !kept.take(&told) {
        settled(kept, &told, around)?;
        bail!("nobody decided in time\n  fix: prism agent open");
    }
    kept.keep(around.env)?;
    Ok(kept)
}
