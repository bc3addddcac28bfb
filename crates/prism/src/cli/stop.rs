//! `prism stop` and `prism restart`. Who is meant is known by pid and start time, so nobody else is ever ended.

use std::{
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail, ensure};
use prism_os::process::ProcessHandle;

use super::{
    daemon, say, service,
    start::{self, DaemonCommandLine, StartOutcome},
};
use prism_config::{Env, duration, home::Home, lock::LockHolder, registration::Registration};

/// How long a stop may take where nobody has said how long.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a daemon may take to be started again by whoever watches over it.
const SUPERVISED_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// Stop the daemon: calls in flight are answered, servers are ended
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism stop
  prism stop --timeout 2s    say what still runs after two seconds

Exits with 0 if nothing runs, too.")]
pub struct StopArgs {
    #[command(flatten)]
    patience: StopTimeoutArgs,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

/// Stop the daemon and start it again in the background, with what it was started with
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism restart
  prism serve --port 7421 --detach && prism restart    still on port 7421

The environment is that of this command: export what the servers need before.")]
pub struct RestartArgs {
    #[command(flatten)]
    patience: StopTimeoutArgs,
    /// Print where the daemon is as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct StopTimeoutArgs {
    /// How long to wait until it is gone
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

impl StopArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = daemon::home(env)?;
        let found = Registration::alive(home.path());
        // One that has not begun to listen, or no longer does, has none.
        let pid = found.as_ref().map(|found| found.pid).or_else(|| Some(LockHolder::of(home.path())?.pid));
        let Some(pid) = pid else {
            match self.json {
                true => say::line(r#"{"stopped":false,"running":false}"#),
                false => say::line("not running"),
            }
            return Ok(ExitCode::SUCCESS);
        };
        match (found, LockHolder::of(home.path())) {
            (Some(found), _) => end(&found, self.patience.timeout)?,
            (None, Some(holder)) => {
                if let Some(held) = holder.process().hold().context("cannot take hold of the daemon")? {
                    terminate(&held, pid)?;
                    wait(&held, pid, None, self.patience.timeout)?;
                }
            }
            (None, None) => {}
        }
        match self.json {
            true => say::line(&serde_json::json!({"stopped": true, "running": false, "pid": pid}).to_string()),
            false => say::line(&format!("stopped (pid {pid})")),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RestartArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = daemon::home(env)?;
        let registration = match Registration::alive(home.path()) {
            Some(found) => {
                ensure!(
                    found.folder.is_dir(),
                    "the folder it was started in is gone: {}\n  fix: prism stop, then prism serve --detach",
                    found.folder.display()
                );
                let start = DaemonCommandLine { arguments: found.arguments.clone(), folder: found.folder.clone() };
                // A daemon that runs on its old config is more than none.
                start
                    .check()
                    .map_err(|error| anyhow!("{error}\n  the daemon was not stopped, and runs on as it is"))?;
                if found.supervisor.is_some() {
                    self.restart_supervised(&found, &home)?
                } else {
                    end(&found, self.patience.timeout)?;
                    begin(start, &home)?
                }
            }
            None => {
                say::note("not running; starting it");
                start::ensure_running(env, &home)?
            }
        };
        match self.json {
            true => say::line(&serde_json::to_string_pretty(&registration)?),
            false => start::announce(&registration, &daemon::program(env)),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Whoever watches over the daemon starts it again as soon as it is gone.
    fn restart_supervised(&self, old: &Registration, home: &Home) -> anyhow::Result<Registration> {
        let held = old.process().hold().context("cannot take hold of the daemon")?;
        if let Some(held) = held {
            terminate(&held, old.pid)?;
            wait(&held, old.pid, old.log.as_deref(), self.patience.timeout)?;
        }
        let begun = Instant::now();
        while begun.elapsed() < SUPERVISED_WITHIN {
            if let Some(found) = start::running(home.path()).filter(|found| found.pid != old.pid) {
                return Ok(found);
            }
            std::thread::sleep(LOOK);
        }
        bail!(
            "it is stopped, and {} has not started it again within {} s\n  fix: prism service status",
            old.supervisor.as_deref().unwrap_or_default(),
            SUPERVISED_WITHIN.as_secs()
        )
    }
}

fn begin(start: DaemonCommandLine, home: &Home) -> anyhow::Result<Registration> {
    match start.run(home)? {
        StartOutcome::Started(registration) => Ok(registration),
        StartOutcome::Found(found) => {
            say::note(&format!("another one was faster (pid {})", found.pid));
            Ok(found)
        }
    }
}

/// Stops a daemon, and returns when its process is gone.
pub(super) fn end(found: &Registration, timeout: Duration) -> anyhow::Result<()> {
    let Some(held) = found.process().hold().context("cannot take hold of the daemon")? else {
        return Ok(());
    };
    // It would be started again at once by who watches over it, were that not told.
    let told = found.supervisor.as_deref().is_some_and(service::tell_to_stop);
    if !told {
        terminate(&held, found.pid)?;
    }
    wait(&held, found.pid, found.log.as_deref(), timeout)
}

fn terminate(held: &ProcessHandle, pid: u32) -> anyhow::Result<()> {
    held.terminate().with_context(|| format!("cannot stop the daemon\n  fix: kill {pid}, as the user it runs as"))
}

fn wait(held: &ProcessHandle, pid: u32, log: Option<&Path>, timeout: Duration) -> anyhow::Result<()> {
    if held.wait(timeout) {
        return Ok(());
    }
    let log = log.map(|log| format!("; its log is {}", log.display())).unwrap_or_default();
    Err(anyhow!(
        "pid {pid} still runs after {} s: it lets calls finish and ends its servers{log}\n  \
         fix: wait with a longer --timeout, or end it at once: kill -9 {pid}",
        timeout.as_secs_f32()
    ))
}
