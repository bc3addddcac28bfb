//! `prism access request` and `prism access claim`: an agent's side of the gate, for scripts and for agents without MCP.

use std::{
    io::{self, Read},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use prism_api::gate::{AccessRequest, AccessRequested, ClaimAnswer, ClaimRequest};
use prism_config::{Env, duration};
use prism_core::policy::RequestState;
use prism_core::time::parse_rfc3339;
use serde_json::json;
use tokio::time::Instant;

use crate::cli::{
    gate::{seconds, understood},
    moments::{distance, now_ms},
    reach::{self, Interrupts},
    say,
    verbs::{Answered, DaemonCallError, MeshClient, PATIENCE, acting},
};

/// How long one question after a decision waits.
pub(in crate::cli) const ROUND: Duration = Duration::from_secs(50);
/// What a shell is told when nobody decided in time.
pub(in crate::cli) const UNDECIDED: u8 = 4;
/// The longest claim that is read from stdin; it has 64 letters.
const MAX_CLAIM_BYTES: u64 = 4096;

#[derive(Debug, clap::Args)]
pub(super) struct AccessRequestArgs {
    /// Agent that asks [default: PRISM_AGENT]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Scope it asks for, as in read:files or git:*; see prism access scopes
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Scopes by kind: restricted, basic, standard or advanced; each contains the ones before it
    #[arg(long = "preset", value_name = "NAME", value_parser = ["restricted", "basic", "standard", "advanced"])]
    presets: Vec<String>,
    /// Folder it is about; all beneath it is
    #[arg(long = "root", value_name = "FOLDER", required = true)]
    roots: Vec<String>,
    /// What for, in words for the person who decides
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How long, as in 15m
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    ttl: Option<Duration>,
    /// Wait for the decision, and print the grant
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct AccessClaimArgs {
    /// Id of the request
    request: String,
    /// The claim that came with it; `-` reads it from stdin
    claim: String,
    /// Wait for the decision
    #[arg(long)]
    wait: bool,
}

// === impl AccessRequestArgs ===

impl AccessRequestArgs {
    pub(super) fn run(self, env: &Env, json: bool) -> anyhow::Result<ExitCode> {
        let ask = self.body(env)?;
        let wait = self.wait;
        let mesh = MeshClient::started(env)?;
        reach::run(async move {
            let asked = requested(&mesh, &ask, env).await?;
            if wait {
                say::note(&format!("asked; a person decides: prism approve {}", asked.request_id));
                return followed(&mesh, &asked.request_id, &asked.claim, json).await;
            }
            match json {
                true => say::text(&serde_json::to_string_pretty(&json!(asked))?),
                false => said_asked(&asked).iter().for_each(|line| say::line(line)),
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn body(&self, env: &Env) -> anyhow::Result<AccessRequest> {
        let agent = acting(self.agent.as_deref(), env);
        let agent = agent.ok_or_else(|| anyhow!("nobody said who asks\n  fix: --agent NAME, or PRISM_AGENT=NAME"))?;
        if self.scopes.is_empty() && self.presets.is_empty() {
            bail!("there is nothing to ask for\n  fix: --scope read:files, or --preset basic; prism access scopes");
        }
        let roots = self.roots.iter().map(|root| folder(root)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(AccessRequest {
            agent_id: agent,
            scopes: asked_scopes(&self.scopes, &self.presets),
            roots,
            reason: self.reason.clone(),
            preset: None,
            ttl_seconds: self.ttl.map(seconds),
        })
    }
}

/// Asks for access. The person's secret is shown where it can be read: only then is it believed that the command line asks,
/// as any program that has the clients' token can say so.
pub(in crate::cli) async fn requested(
    mesh: &MeshClient,
    body: &AccessRequest,
    env: &Env,
) -> anyhow::Result<Answered<AccessRequested>> {
    const PATH: &str = "/mcp/request_access";
    if let Some(person) = mesh.as_person(env) {
        match person.post(PATH, body, PATIENCE).await {
            // Another secret than the daemon's, which a client need not have.
            Err(DaemonCallError::Refused { code, .. }) if code == "unauthorized" => {}
            told => return Ok(told.map_err(understood)?),
        }
    }
    Ok(mesh.post(PATH, body, PATIENCE).await.map_err(understood)?)
}

/// Returns the words that ask for scopes and for presets, of which there may be several.
pub(in crate::cli) fn asked_scopes(scopes: &[String], presets: &[String]) -> Vec<String> {
    scopes.iter().cloned().chain(presets.iter().map(|preset| format!("preset:{preset}"))).collect()
}

/// A folder as the gate takes it: absolute, with nothing in it that leads upwards.
pub(in crate::cli) fn folder(typed: &str) -> anyhow::Result<String> {
    let absolute = std::path::absolute(typed).with_context(|| format!("{typed:?} names no folder"))?;
    let leads_up = Path::new(typed).components().any(|part| part == std::path::Component::ParentDir);
    let folder = match leads_up {
        true => absolute.canonicalize().with_context(|| format!("{typed:?} names no folder that is there"))?,
        false => absolute,
    };
    let folder = folder.into_os_string().into_string();
    folder.map_err(|_| anyhow!("the name of the folder {typed:?} is not UTF-8, so it cannot be asked for"))
}

// === impl AccessClaimArgs ===

impl AccessClaimArgs {
    pub(super) fn run(self, env: &Env, json: bool) -> anyhow::Result<ExitCode> {
        let claim = match self.claim.as_str() {
            "-" => {
                let mut text = String::new();
                io::stdin().lock().take(MAX_CLAIM_BYTES).read_to_string(&mut text).context("cannot read the claim")?;
                text.trim().to_owned()
            }
            typed => typed.to_owned(),
        };
        let mesh = MeshClient::started(env)?;
        reach::run(async move {
            if self.wait {
                return followed(&mesh, &self.request, &claim, json).await;
            }
            let told = ask(&mesh, &self.request, &claim, Duration::ZERO).await?;
            show(&told, json)
        })
    }
}

/// Asks until there is a decision.
async fn followed(mesh: &MeshClient, id: &str, claim: &str, json: bool) -> anyhow::Result<ExitCode> {
    let mut stop = Interrupts::new()?;
    let begun = Instant::now();
    let deciding = async {
        loop {
            let waited = begun.elapsed().as_secs();
            say::status(Some(&format!("waiting for a decision … {waited} s")));
            let told = ask(mesh, id, claim, ROUND).await?;
            if !told.status.is_open() {
                return anyhow::Ok(told);
            }
        }
    };
    let told = tokio::select! {
        told = deciding => told,
        code = stop.next() => {
            reach::say_interrupted();
            say::note(&format!("the request stays open; later: prism access claim {id} {claim}"));
            return Ok(code);
        }
    };
    say::status(None);
    show(&told?, json)
}

pub(in crate::cli) async fn ask(
    mesh: &MeshClient,
    id: &str,
    claim: &str,
    wait: Duration,
) -> anyhow::Result<Answered<ClaimAnswer>> {
    let (request_id, claim) = (id.to_owned(), claim.to_owned());
    let body = ClaimRequest { request_id, claim, wait_seconds: wait.as_secs() };
    Ok(mesh.post("/mcp/claim", &body, PATIENCE + wait).await.map_err(understood)?)
}

fn show(told: &Answered<ClaimAnswer>, json: bool) -> anyhow::Result<ExitCode> {
    let code = match told.status {
        RequestState::Denied => ExitCode::FAILURE,
        RequestState::Expired if told.session_id.is_none() => ExitCode::from(UNDECIDED),
        _ => ExitCode::SUCCESS,
    };
    match json {
        true => say::text(&serde_json::to_string_pretty(&json!(told))?),
        false => said_told(told, now_ms()).iter().for_each(|line| say::line(line)),
    }
    Ok(code)
}

fn said_asked(asked: &AccessRequested) -> Vec<String> {
    let AccessRequested { request_id, claim, .. } = asked;
    vec![
        format!("asked {request_id}"),
        format!("claim {claim}"),
        format!("a person decides: prism approve {request_id}, or prism console"),
        format!("then: prism access claim {request_id} {claim}"),
    ]
}

/// What came of a request, in words.
fn said_told(told: &ClaimAnswer, now: i64) -> Vec<String> {
    let listed = |words: &Option<Vec<String>>| words.as_deref().unwrap_or_default().join(" ");
    match (told.status, &told.session_id) {
        (RequestState::Requested | RequestState::Pending, _) => vec!["nobody has decided yet; --wait waits".to_owned()],
        (RequestState::Denied, _) => {
            let why = told.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            vec![format!("denied{why}")]
        }
        (RequestState::Expired, None) => vec!["nobody decided in time; ask again".to_owned()],
        (_, Some(id)) => {
            let mut lines = vec![format!("session {id}")];
            if let Some(token) = &told.session_token {
                lines.push(format!("token   {token}"));
            }
            lines.push(format!("scopes  {}", listed(&told.allowed_scopes)));
            lines.push(format!("roots   {}", listed(&told.roots)));
            if let Some(at) = told.expires_at.as_deref().and_then(parse_rfc3339) {
                lines.push(format!("ends    {}", distance(at, now)));
            }
            if told.session_token.is_none() {
                lines.push("the token was given before; it is given once".to_owned());
            }
            lines
        }
        (other, None) => vec![format!("the request is {}", other.name().to_lowercase())],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_came_of_a_request_is_told_in_words() {
        let told = |told: Value| said_told(&serde_json::from_value(told).unwrap(), 0);
        assert_eq!(told(json!({"status": "DENIED", "reason": "not today"})), ["denied: not today"]);
        assert_eq!(told(json!({"status": "EXPIRED"})), ["nobody decided in time; ask again"]);
        assert_eq!(
            told(
                json!({"status": "APPROVED", "session_id": "s", "session_token": "t", "allowed_scopes": ["a:b", "c:d"],
                        "roots": ["/p"], "expires_at": "1970-01-01T00:15:00Z"})
            ),
            ["session s", "token   t", "scopes  a:b c:d", "roots   /p", "ends    in 15 min"]
        );
    }

    #[test]
    fn a_folder_is_absolute_and_leads_nowhere_else() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(folder(".").unwrap(), here.to_str().unwrap());
        assert_eq!(folder("/a/./b").unwrap(), "/a/b");
        assert_eq!(folder("..").unwrap(), here.parent().unwrap().canonicalize().unwrap().to_str().unwrap());
        assert!(folder("../no such folder").unwrap_err().to_string().contains("names no folder that is there"));
    }
}
