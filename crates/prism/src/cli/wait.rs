//! `prism wait`: waits until the bell rings for an agent (M-13), for scripts; with `--hook`, as a hook of the program
//! that the agent lives in. Nothing is consumed by it: what waits is read with `prism signal pending`.

pub(super) mod hook;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail};
use prism_api::mesh::{MeshVerb, NoBell, WaitArguments, WaitEnded};
use serde_json::json;
use tokio::time::sleep;

use super::{
    reach::{self, Interrupts},
    say,
    verbs::{Answered, DaemonCallError, MeshClient, acting},
};
use prism_config::{Env, duration};

/// What it exits with when it was typed wrongly, as clap does.
const USAGE: u8 = 2;
/// What it exits with when nothing rang in time.
const TIMED_OUT: u8 = 4;
/// How much longer than asked the daemon may take to say that nothing rang.
const GRACE: Duration = Duration::from_secs(15);
/// The longest that the daemon is asked to wait at once.
const MAX_POLL: Duration = Duration::from_secs(300);
/// How often a daemon that went is looked for.
const LOOK: Duration = Duration::from_millis(500);

/// Wait until a signal comes
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism wait --agent reviewer --timeout 10m && prism signal pending --agent reviewer
  prism wait --agent reviewer --timeout 0s   whether something waits now
  prism wait --hook claude-rewake

With --hook it is a hook: `prism install claude-code --hooks` sets it up.
Exit codes: 0 it rang, 1 refused, 2 typed wrongly (or a bell, for claude-rewake), 4 nothing came in time.")]
pub struct WaitArgs {
    /// Agent whose bell it is [default: $PRISM_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How long
    #[arg(long, value_name = "DURATION", default_value = "50s", value_parser = duration)]
    timeout: Duration,
    /// Print JSON, for programs
    #[arg(long, conflicts_with = "hook")]
    json: bool,
    /// Be a hook: read what the program says on stdin, and answer as it understands it
    #[arg(long, value_name = "HOOK", value_enum)]
    hook: Option<hook::HookKind>,
    /// Say on stderr why a hook does nothing
    #[arg(long, requires = "hook")]
    verbose: bool,
}

impl WaitArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        if let Some(hook) = self.hook {
            return Ok(hook::run(hook, self.agent.as_deref(), self.verbose, env));
        }
        let Some(agent) = acting(self.agent.as_deref(), env) else {
            say::error(&anyhow!("whose bell?\n  fix: prism wait --agent NAME, or set PRISM_AGENT"));
            return Ok(ExitCode::from(USAGE));
        };
        let mesh = MeshClient::started(env)?;
        reach::run(async move {
            let mut stop = Interrupts::new()?;
            tokio::select! {
                waited = self.wait(mesh, &agent, env) => waited,
                code = stop.next() => Ok(code),
            }
        })
    }

    async fn wait(&self, mut mesh: MeshClient, agent: &str, env: &Env) -> anyhow::Result<ExitCode> {
        let mut arguments = WaitArguments { agent: Some(agent.to_owned()), ..WaitArguments::default() };
        let until = Instant::now() + self.timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match poll(&mesh, &mut arguments, left).await {
                Ok(answer) if answer.bell => {
                    match self.json {
                        true => say::text(&serde_json::to_string_pretty(&json!(answer))?),
                        false => say::line(answer.text.as_deref().unwrap_or_default()),
                    }
                    return Ok(ExitCode::SUCCESS);
                }
                Ok(answer) => match answer.why {
                    Some(NoBell::Superseded) => bail!("somebody else waits for this bell now"),
                    Some(NoBell::Wrapped) => bail!("the agent has ended its session"),
                    _ if until <= Instant::now() => {
                        if self.json {
                            say::text(&serde_json::to_string_pretty(&json!(answer))?);
                        }
                        return Ok(ExitCode::from(TIMED_OUT));
                    }
                    _ => {}
                },
                // A restart is not the waiter's affair.
                Err(DaemonCallError::Away(_)) if until > Instant::now() => {
                    sleep(LOOK.min(until.saturating_duration_since(Instant::now()))).await;
                    if let Ok(Some(again)) = MeshClient::running(env) {
                        mesh = again;
                    }
                }
                Err(trouble) => return Err(trouble.into()),
            }
        }
    }
}

/// Waits for the bell, once.
async fn poll(
    mesh: &MeshClient,
    arguments: &mut WaitArguments,
    longest: Duration,
) -> Result<Answered<WaitEnded>, DaemonCallError> {
    let longest = longest.min(MAX_POLL);
    // Rounded up, so that the last part of a second is waited for, and not asked for again and again.
    arguments.timeout_s = Some(longest.as_secs() + u64::from(longest.subsec_nanos() > 0));
    mesh.call(MeshVerb::Wait, arguments, longest + GRACE).await
}
