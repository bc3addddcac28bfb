//! `prism probe URL`: what a server does on every path that MCP has over HTTP, and whether that is what it should do
//! (N-07). People attach its output to bug reports, so it holds no token and no session id.
//!
//! Tools of a server that is not ours are never called, unless `--call` says so: nobody knows what they would do.

mod check;
mod door;
mod judge;
mod record;
mod run;
mod show;
mod streams;

use std::{process::ExitCode, time::Duration};

use prism_core::mcp::{Era, Revision};
use serde_json::{Value, json};

use super::{
    reach::{self, ConnectArgs, Interrupts, is_url},
    say,
};
use check::ProbeVerdict;
use prism_config::{Env, EventNames, HttpConfig, duration};
use prism_mcp::client::RevisionChoice;
use run::ProbeReport;

/// Test a server and trace every message
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism probe http://127.0.0.1:7420/files/mcp --token @$HOME/.prism/http-mcp-token
  prism probe files --revision all
  prism probe https://example.com/mcp --token env:EXAMPLE_TOKEN --call search query=mcp
Exit codes: 0 all is well, 1 a check failed, 2 no MCP server answered")]
pub struct ProbeArgs {
    /// A URL, or the name of a server
    dest: String,
    /// Exercise the streams of POST requests, and fail where there are none; with neither of the two, both
    #[arg(long)]
    test_post_sse: bool,
    /// Exercise the stream of GET, or the one of 2026-07-28 that is opened by a request
    #[arg(long)]
    test_get_sse: bool,
    /// Call this tool, with these arguments: TOOL key=value ...
    #[arg(long, value_names = ["TOOL", "KEY=VALUE"], num_args = 1..)]
    call: Vec<String>,
    /// What the event lines of streams should say
    #[arg(long, value_name = "NAMES", default_value = "message", value_parser = NAMES)]
    events: String,
    /// Wait for a keep-alive, which servers send after 15 s or more of silence
    #[arg(long)]
    keep_alive: bool,
    /// Print one JSON object, for programs
    #[arg(long)]
    json: bool,
    /// How long any one answer may take
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    timeout: Duration,
    // `--revision all` is for this command only.
    #[command(flatten)]
    toward: ConnectArgs,
}

/// What to try, once it is clear where.
struct ProbePlan {
    http: HttpConfig,
    post: bool,
    get: bool,
    /// POSTs that are never streams are a failure.
    insists: bool,
    call: Vec<String>,
    events: EventNames,
    keep_alive: bool,
    patience: Duration,
}

/// What `--events` may say.
const NAMES: [&str; 2] = ["message", "method"];

/// No server answered.
const UNREACHED: u8 = 2;

impl ProbeArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(self.probe(env))
    }

    async fn probe(self, env: &Env) -> anyhow::Result<ExitCode> {
        let mut stop = Interrupts::new()?;
        let wanted = match self.toward.revision.as_str() {
            "all" => RevisionChoice::all(),
            _ => vec![self.toward.wanted()?],
        };
        if is_url(&self.dest) {
            let plan = self.plan(self.toward.http(&self.dest, env)?);
            return tokio::select! {
                code = self.report(&plan, &wanted) => Ok(code),
                code = stop.next() => Ok(code),
            };
        }
        let reach = self.toward.reach(Some(&self.dest), env).await?;
        let plan = self.plan(reach.http(&self.dest));
        let code = tokio::select! {
            code = self.report(&plan, &wanted) => Ok(code),
            code = stop.next() => Ok(code),
        };
        reach.close(&mut stop).await;
        code
    }

    fn plan(&self, http: HttpConfig) -> ProbePlan {
        let both = !self.test_post_sse && !self.test_get_sse;
        ProbePlan {
            http,
            post: both || self.test_post_sse,
            get: both || self.test_get_sse,
            insists: self.test_post_sse,
            call: self.call.clone(),
            events: EventNames::ALL.into_iter().find(|names| names.as_str() == self.events).unwrap_or_default(),
            keep_alive: self.keep_alive,
            patience: self.timeout.max(Duration::from_millis(1)),
        }
    }

    async fn report(&self, plan: &ProbePlan, wanted: &[RevisionChoice]) -> ExitCode {
        let mut reports = Vec::new();
        let url = plan.http.shown_url();
        if !self.json {
            say::line(&format!("prism {} probe {url}", env!("CARGO_PKG_VERSION")));
        }
        let mut wanted = wanted.to_vec();
        let mut tried = 0;
        while let Some(next) = wanted.get(tried).copied() {
            tried += 1;
            let report = run::run(plan, next).await;
            if next == RevisionChoice::Auto && report.greeting.era == Some(Era::Modern) && report.fault.is_none() {
                // Most clients are of the other era, and only there is a GET stream.
                wanted.push(RevisionChoice::Legacy(Revision::NEWEST));
            } else if tried > 1 && wanted[0] == RevisionChoice::Auto && report.fault.is_some() {
                // The server has just the one.
                continue;
            }
            if !self.json {
                show::report(&report, url);
            }
            reports.push(report);
        }
        let count = |verdict: ProbeVerdict| reports.iter().map(|report| report.count(verdict)).sum::<usize>();
        let counts = [ProbeVerdict::Ok, ProbeVerdict::Fail, ProbeVerdict::Skipped].map(count);
        let reached = reports.iter().any(|report| report.fault.is_none());
        let [ok, failed, skipped] = counts;
        let (word, code) = match (reached, failed) {
            (false, _) => ("unreached", ExitCode::from(UNREACHED)),
            (true, 0) => ("ok", ExitCode::SUCCESS),
            (true, _) => ("failed", ExitCode::FAILURE),
        };
        if self.json {
            let runs: Vec<Value> = reports.iter().map(|report| report.json(url)).collect();
            let checks = json!({"ok": ok, "failed": failed, "skipped": skipped});
            let all = json!({
                "prism": env!("CARGO_PKG_VERSION"), "url": url, "verdict": word, "checks": checks, "runs": runs,
            });
            say::text(&all.to_string());
        } else if reached {
            show::verdict(ok, failed, skipped);
        }
        code
    }
}

impl ProbeReport {
    fn count(&self, verdict: ProbeVerdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}
