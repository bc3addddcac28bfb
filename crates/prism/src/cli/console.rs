//! `prism console`: opens the page where a person decides. The link opens it once, within a minute; it is made by the
//! daemon for whoever has the management secret.

use std::process::{Command, ExitCode, Stdio};

use prism_api::gate::ConsoleLink;
use serde_json::json;

use super::{
    gate::GateClient,
    reach, say,
    verbs::{Answered, DaemonCallError, say_not_running},
};
use prism_config::Env;

/// Open the console in a browser: decide, see, revoke
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism console
  prism console --print

The link opens the console once, within a minute, and the session lasts eight hours.
Exit codes: 0 opened or printed, 1 refused, 3 the daemon does not run.")]
pub struct ConsoleArgs {
    /// Print the link instead of opening a browser
    #[arg(long)]
    print: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl ConsoleArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(gate) = GateClient::running(env)? else { return Ok(say_not_running()) };
            let answer: Answered<ConsoleLink> = match gate.post("/prism/console/link", &json!({})).await {
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                answer => answer?,
            };
            if self.json {
                say::text(&serde_json::to_string_pretty(&json!(answer))?);
            } else if self.print || !open(env, &answer.url) {
                say::line(&answer.url);
                say::note("This opens the console once, within a minute.");
            } else {
                say::line("The console opens in your browser.");
                say::note("If it does not: prism console --print");
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Asks the desktop to open a page. Returns whether there is one that took it.
fn open(env: &Env, url: &str) -> bool {
    let is_set = |name: &str| env.var(name).is_some_and(|value| !value.is_empty());
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") => "xdg-open",
        false => return false,
    };
    let silent =
        Command::new(program).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}
