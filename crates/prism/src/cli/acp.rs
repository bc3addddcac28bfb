//! `prism acp`: the agent that stands behind it, and who waits at the daemon for its bells.

use std::{os::unix::process::ExitStatusExt, process::ExitCode, time::Duration};

use anyhow::Context;
use prism_api::mesh::{MeshVerb, NoBell, WaitArguments, WaitEnded};
use tokio::{sync::mpsc, task::spawn_blocking, time::sleep};

use super::{
    say,
    verbs::{DaemonCallError, MeshClient, acting},
};
use crate::acp::{self, AcpBell, BellSubscriber};
use prism_config::Env;

/// How long one poll lasts.
const POLL: Duration = Duration::from_secs(300);
const GRACE: Duration = Duration::from_secs(15);
/// The pause after a bell, and after a daemon or an agent that is not there: nobody is rung at more often.
const PAUSE: Duration = Duration::from_secs(2);
/// Bells that may wait for the proxy. Beyond it their waiters wait with them.
const BELLS: usize = 16;

/// Wrap an ACP agent so that signals can wake it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism acp -- opencode acp                       in place of the command in an editor's config
  prism acp --agent reviewer -- gemini --acp      the agent is known by this name in prism_start

All that the editor and the agent say passes as it is. Without --agent a session is known by its folder and by
--surface, which is what the agent says in prism_start.")]
pub struct AcpArgs {
    /// What the agent calls itself in prism_start [default: $PRISM_AGENT]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The client that the agent says it runs in, in prism_start
    #[arg(long, value_name = "CLIENT", default_value = "acp")]
    surface: String,
    /// The agent's command
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Who waits, session by session or for one agent.
struct BellWaiters {
    env: Env,
    agent: Option<String>,
    surface: String,
    bells: mpsc::Sender<AcpBell>,
}

impl AcpArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
        let ended = runtime.block_on(async {
            let (bells, arriving) = mpsc::channel(BELLS);
            let agent = acting(self.agent.as_deref(), env);
            let waiters = BellWaiters { env: env.clone(), agent, surface: self.surface.clone(), bells };
            if let Some(agent) = &waiters.agent {
                waiters.wait_for(WaitArguments { agent: Some(agent.clone()), ..WaitArguments::default() }, None);
            }
            acp::run(&self.command, waiters, arriving).await
        });
        // A thread may still wait for a line that does not come.
        runtime.shutdown_background();
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        let status =
            ended.with_context(|| format!("cannot run {program:?}\n  fix: look whether it starts by itself"))?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
    }
}

impl BellSubscriber for BellWaiters {
    fn session(&mut self, id: &str, folder: &str) {
        if self.agent.is_none() {
            let who = WaitArguments {
                surface: Some(self.surface.clone()),
                workspace: Some(folder.to_owned()),
                surface_session: Some(id.to_owned()),
                ..WaitArguments::default()
            };
            self.wait_for(who, Some(id.to_owned()));
        }
    }
}

impl BellWaiters {
    fn wait_for(&self, who: WaitArguments, session: Option<String>) {
        let who = WaitArguments { hook: Some("acp".to_owned()), timeout_s: Some(POLL.as_secs()), ..who };
        let (env, bells) = (self.env.clone(), self.bells.clone());
        tokio::spawn(async move {
            loop {
                let pause = match wait(&env, &who).await {
                    Ok(answer) if answer.bell => {
                        let text = answer.text.unwrap_or_default();
                        if bells.send(AcpBell { session: session.clone(), text }).await.is_err() {
                            return;
                        }
                        PAUSE
                    }
                    Ok(answer) if answer.why == Some(NoBell::Timeout) => Duration::ZERO,
                    // Another one waits for the same session: it is the newer one.
                    Ok(answer) if answer.why == Some(NoBell::Superseded) => return,
                    Err(DaemonCallError::Refused { code, message }) if code != "unknown_agent" => {
                        return say::warning(&format!("bells do not reach this agent: {message}"));
                    }
                    // Neither is there yet, or any more.
                    Ok(_) | Err(_) => PAUSE,
                };
                sleep(pause).await;
            }
        });
    }
}

async fn wait(env: &Env, who: &WaitArguments) -> Result<WaitEnded, DaemonCallError> {
    let env = env.clone();
    // Looks at files, and starts nothing: an agent without Prism is still an agent.
    let found = spawn_blocking(move || MeshClient::running(&env)).await;
    match found {
        Ok(Ok(Some(mesh))) => mesh.call(MeshVerb::Wait, who, POLL + GRACE).await,
        _ => Err(DaemonCallError::Away("it does not run".to_owned())),
    }
}
