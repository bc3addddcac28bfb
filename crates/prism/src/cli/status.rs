//! `prism status`: how the daemon, its servers and its sessions are, once or every second (D-05, D-08). What it shows
//! is `/status` of the daemon; how that looks is in `table.rs`.

mod agents;
mod table;
pub(super) mod words;

use std::{io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::bail;
use prism_api::status::StatusReport;
use prism_config::Env;

use super::{
    locate::{DaemonLocation, StatusAnswer, locate},
    reach::{self, Interrupts},
    say,
};

/// What it exits with when there is no daemon: a script must be able to tell that from a failure.
const NOT_RUNNING: u8 = 3;
/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(1);
/// The width of a table that is not shown on a terminal: all of it.
const UNBOUNDED: usize = usize::MAX;

/// Show how the daemon, its servers and its sessions are
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism status
  prism status --watch
  prism status -v              and why each server is shared, or is not
  prism status --json | jq '.destinations[] | {name, state, p99_ms}'

Exit codes: 0 it runs, 1 it cannot be asked, 3 it does not run.")]
pub struct StatusArgs {
    /// Show it anew every second, until Ctrl-C
    #[arg(long, short)]
    watch: bool,
    /// Also say why each server is shared by its clients, or is not
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON, for programs; with --watch one line each time
    #[arg(long)]
    json: bool,
    /// Config file that says where the daemon is, if none has registered itself
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl StatusArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(self.show(env))
    }

    async fn show(self, env: &Env) -> anyhow::Result<ExitCode> {
        let located = locate(self.config.as_deref(), env)?;
        let Some(status) = told(&located, located.ask().await)? else {
            say::note(&format!("Prism is not running (nobody listens at {})", located.base));
            say::note("  fix: prism serve --detach");
            return Ok(ExitCode::from(NOT_RUNNING));
        };
        if self.watch {
            return self.watch(located, status, env).await;
        }
        if self.json {
            say::text(&serde_json::to_string_pretty(&status)?);
        } else {
            let terminal = std::io::stdout().is_terminal();
            let width = if terminal { prism_os::terminal::width() } else { None };
            for line in table::lines(&status, self.detail(), width.unwrap_or(UNBOUNDED)) {
                say::coloured(&line);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn detail(&self) -> table::StatusDetail {
        if self.verbose { table::StatusDetail::Why } else { table::StatusDetail::Usual }
    }

    async fn watch(self, mut located: DaemonLocation, status: StatusReport, env: &Env) -> anyhow::Result<ExitCode> {
        let mut stop = Interrupts::new()?;
        let screen = (!self.json && std::io::stdout().is_terminal()).then(say::FullScreen::enter);
        let mut status = Some(status);
        loop {
            match (&status, &screen) {
                (Some(status), None) if self.json => say::text(&serde_json::to_string(status)?),
                (None, None) if self.json => {}
                (Some(status), None) => {
                    table::lines(status, self.detail(), UNBOUNDED).iter().for_each(say::coloured);
                    say::line("");
                }
                (None, None) => say::line("Prism is not running"),
                (Some(status), Some(screen)) => {
                    let width = prism_os::terminal::width().unwrap_or(UNBOUNDED);
                    screen.draw(&table::lines(status, self.detail(), width));
                }
                (None, Some(screen)) => screen.draw(&[vec![(GONE.to_owned(), Some(say::Colour::Yellow))]]),
            }
            tokio::select! {
                () = tokio::time::sleep(WATCH) => {}
                // That is how one stops watching.
                _ = stop.next() => return Ok(ExitCode::SUCCESS),
            }
            // It may have been started again, elsewhere.
            if let Ok(again) = locate(self.config.as_deref(), env) {
                located = again;
            }
            status = match located.ask().await {
                StatusAnswer::Status(status) => Some(*status),
                _ => None,
            };
        }
    }
}

const GONE: &str = "Prism is not running; this goes on when it does. Ctrl-C ends it.";

fn told(located: &DaemonLocation, answer: StatusAnswer) -> anyhow::Result<Option<StatusReport>> {
    match answer {
        StatusAnswer::Status(status) => Ok(Some(*status)),
        StatusAnswer::Nobody => Ok(None),
        StatusAnswer::OtherToken => bail!(
            "the Prism at {} has another token than the one in {}\n  fix: set PRISM_HOME (or PRISM_API_KEY) as it was set \
             where that one was started, or stop it",
            located.base,
            located.home.display()
        ),
        StatusAnswer::Strange(why) => bail!(
            "who listens at {} does not tell its status: {why}\n  fix: prism doctor says who it is; an older Prism is \
             replaced by `prism restart`",
            located.base
        ),
    }
}
