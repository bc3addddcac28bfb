//! `prism service`: lets the system start the daemon at login and again whenever it ends (D-10). What the system is told
//! is in `service/unit.rs`.

mod unit;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

use anyhow::{Context, bail, ensure};
use prism_core::shell::command_line;

use super::{daemon, say, start, stop};
use prism_config::{Env, home, registration::Registration};
use unit::{LaunchdAgent, MARK, SystemdUnit};

/// Who watches over the daemon, as it is registered.
pub const SYSTEMD: &str = "systemd";
pub const LAUNCHD: &str = "launchd";
/// The name that systemd knows it by.
pub const UNIT: &str = "prism.service";
/// The name that launchd knows it by.
const LABEL: &str = "prism";

/// Start the daemon at login, and restart it if it stops
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism service install
  prism service install --dry-run           only show the file
  prism service install -- --port 7421      with flags of `prism serve`; paths must be absolute
  prism service status
  prism service uninstall")]
pub struct ServiceArgs {
    #[command(subcommand)]
    what: ServiceCommand,
}

#[derive(clap::Subcommand)]
enum ServiceCommand {
    /// Write the service file, and start the service
    Install {
        /// Print the file, and do nothing
        #[arg(long)]
        dry_run: bool,
        /// Flags of `prism serve`, after `--`
        #[arg(last = true, value_name = "FLAGS")]
        flags: Vec<String>,
    },
    /// Stop the service, and remove its file
    Uninstall {
        /// Print what would be removed, and do nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Say whether the service is installed and runs
    Status {
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The system's way to keep something running, for this user.
struct ServiceDefinition {
    /// The file that says what to run.
    path: PathBuf,
    text: String,
    /// What puts it into effect, and what ends that, in the words of a shell.
    begin: Vec<Vec<String>>,
    end: Vec<Vec<String>>,
    /// What is to be done after the file is gone.
    after: Vec<Vec<String>>,
    /// What starts it when it does not run.
    again: Vec<String>,
    /// What succeeds if there is somebody to talk to.
    ping: Vec<String>,
}

impl ServiceArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        match self.what {
            ServiceCommand::Install { dry_run, flags } => install(env, &flags, dry_run)?,
            ServiceCommand::Uninstall { dry_run } => uninstall(env, dry_run)?,
            ServiceCommand::Status { json } => status(env, json)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn install(env: &Env, flags: &[String], dry_run: bool) -> anyhow::Result<()> {
    let keeper = ServiceDefinition::of_this_system(env, flags)?;
    if dry_run {
        say::line(&format!("would write {}:", keeper.path.display()));
        say::text(&keeper.text);
        return Ok(());
    }
    let home = daemon::home(env)?;
    ensure_ours(&keeper.path)?;
    let reachable = succeeds(&keeper.ping);
    // Two cannot run, and from now on it is the system's.
    if let Some(found) = Registration::alive(home.path()).filter(|found| reachable && found.supervisor.is_none()) {
        stop::end(&found, stop::PATIENCE)?;
        say::line(&format!("stopped the one that ran (pid {})", found.pid));
    }
    write(&keeper.path, &keeper.text).with_context(|| format!("cannot write {}", keeper.path.display()))?;
    say::line(&format!("wrote {}", keeper.path.display()));
    if !reachable {
        say::line("no service manager of this user answers here; where one does, type:");
        for words in &keeper.begin {
            say::line(&format!("  {}", command_line(words)));
        }
        return Ok(());
    }
    for words in &keeper.begin {
        do_or_say(words)?;
    }
    say::line("the service runs, and starts at login");
    say::line(&format!("next         {} service status", daemon::program(env)));
    Ok(())
}

fn uninstall(env: &Env, dry_run: bool) -> anyhow::Result<()> {
    let keeper = ServiceDefinition::of_this_system(env, &[])?;
    if !keeper.path.exists() {
        say::line(&format!("not installed: there is no {}", keeper.path.display()));
        return Ok(());
    }
    ensure_ours(&keeper.path)?;
    if dry_run {
        say::line(&format!("would stop the service and remove {}", keeper.path.display()));
        return Ok(());
    }
    let reachable = succeeds(&keeper.ping);
    if reachable {
        for words in &keeper.end {
            do_or_say(words)?;
        }
    }
    fs::remove_file(&keeper.path).with_context(|| format!("cannot remove {}", keeper.path.display()))?;
    if reachable {
        for words in &keeper.after {
            do_or_say(words)?;
        }
    }
    say::line(&format!("removed {}", keeper.path.display()));
    Ok(())
}

fn status(env: &Env, json: bool) -> anyhow::Result<()> {
    let keeper = ServiceDefinition::of_this_system(env, &[])?;
    let installed = keeper.path.exists();
    let manager = succeeds(&keeper.ping);
    let found = Registration::alive(&home::folder(env)?);
    let supervised = found.as_ref().is_some_and(|found| found.supervisor.is_some());
    if json {
        let report = serde_json::json!({
            "file": keeper.path, "installed": installed, "manager": manager, "running": found.is_some(),
            "supervised": supervised, "pid": found.as_ref().map(|found| found.pid),
        });
        say::line(&report.to_string());
        return Ok(());
    }
    let program = daemon::program(env);
    match installed {
        true => say::line(&format!("installed    {}", keeper.path.display())),
        false => say::line(&format!("installed    no; {program} service install")),
    }
    if !manager {
        say::line("manager      none of this user answers here");
    }
    match (&found, supervised) {
        (Some(found), true) => say::line(&format!("running      as a service, pid {}, at {}", found.pid, found.url)),
        (Some(found), false) => {
            say::line(&format!("running      not as a service, pid {}, at {}", found.pid, found.url))
        }
        (None, _) => say::line("running      no"),
    }
    Ok(())
}

impl ServiceDefinition {
    fn of_this_system(env: &Env, flags: &[String]) -> anyhow::Result<Self> {
        let program = start::own_program()?;
        let program = program.to_str().context("the path of this program is not UTF-8")?.to_owned();
        let user = env.var("HOME").map(PathBuf::from).context("HOME is not set\n  fix: export HOME=/home/you")?;
        let moved = match env.var("PRISM_HOME") {
            Some(_) => Some(home::folder(env)?),
            None => None,
        };
        let log = home::folder(env)?.join(start::LOG);
        Ok(match cfg!(target_os = "macos") {
            true => Self::launchd(&LaunchdAgent { program, flags: flags.to_vec(), home: moved, log }, &user),
            false => {
                let folder = env.var("XDG_CONFIG_HOME").map_or_else(|| user.join(".config"), PathBuf::from);
                Self::systemd(&SystemdUnit { program, flags: flags.to_vec(), home: moved }, &folder)
            }
        })
    }

    fn systemd(unit: &SystemdUnit, config: &Path) -> Self {
        let user =
            |words: &[&str]| ["systemctl", "--user"].iter().chain(words).map(|word| (*word).to_owned()).collect();
        Self {
            path: config.join("systemd/user").join(UNIT),
            text: unit.text(),
            begin: vec![user(&["daemon-reload"]), user(&["enable", UNIT]), user(&["restart", UNIT])],
            end: vec![user(&["disable", "--now", UNIT])],
            after: vec![user(&["daemon-reload"])],
            again: user(&["--no-block", "start", UNIT]),
            ping: user(&["show-environment"]),
        }
    }

    fn launchd(agent: &LaunchdAgent, user: &Path) -> Self {
        let path = user.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
        let domain = format!("gui/{}", prism_os::process::user_id());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        Self {
            text: agent.text(),
            begin: vec![words(&["launchctl", "bootstrap", &domain, &path.to_string_lossy()])],
            end: vec![words(&["launchctl", "bootout", &format!("{domain}/{LABEL}")])],
            after: Vec::new(),
            again: words(&["launchctl", "kickstart", &format!("{domain}/{LABEL}")]),
            ping: words(&["launchctl", "print", &domain]),
            path,
        }
    }
}

/// Asks the system to start the daemon of this home, if that is its task. Returns whether it will.
pub(super) fn begin_installed(env: &Env, home: &Path) -> bool {
    let Ok(keeper) = ServiceDefinition::of_this_system(env, &[]) else { return false };
    let Ok(text) = fs::read_to_string(&keeper.path) else { return false };
    let usual = env.var("HOME").is_some_and(|user| Path::new(user).join(".prism") == home);
    text.contains(MARK) && unit::is_for(&text, home, usual) && succeeds(&keeper.again)
}

/// Returns whether who watches over the daemon has taken it upon itself to stop it.
pub(super) fn tell_to_stop(supervisor: &str) -> bool {
    let agent = format!("gui/{}/{LABEL}", prism_os::process::user_id());
    let words: &[&str] = match supervisor {
        SYSTEMD => &["systemctl", "--user", "--no-block", "stop", UNIT],
        LAUNCHD => &["launchctl", "bootout", &agent],
        _ => return false,
    };
    succeeds(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>())
}

/// A file of that name that somebody has written by hand is theirs.
fn ensure_ours(path: &Path) -> anyhow::Result<()> {
    match fs::read_to_string(path) {
        Ok(text) => ensure!(
            text.contains(MARK),
            "{} was not written by Prism, so it is left alone\n  fix: mv {} {}.mine, and try again",
            path.display(),
            path.display(),
            path.display()
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

fn quiet(words: &[String]) -> Option<Command> {
    let [program, arguments @ ..] = words else { return None };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    Some(command)
}

fn succeeds(words: &[String]) -> bool {
    quiet(words).is_some_and(|mut command| command.stderr(Stdio::null()).status().is_ok_and(|status| status.success()))
}

/// Runs a command, and says which one it was that failed.
fn do_or_say(words: &[String]) -> anyhow::Result<()> {
    let typed = command_line(words);
    let Some(mut command) = quiet(words) else { return Ok(()) };
    let output = command.output().with_context(|| format!("cannot run `{typed}`"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("`{typed}` failed ({}): {}\n  fix: type it yourself, and see what is wrong", output.status, said.trim())
}
