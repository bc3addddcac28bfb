//! The machine: space, limits, and processes that nobody owns any more.

use std::fs;

use prism_os::{census, limits, peek, sandbox::Bubblewrap, watch::FolderWatch};

use super::{DoctorContext, Finding};
use crate::cli::status::words::size;
use prism_config::{DestinationConfig, Editor, EnvInheritance};
use prism_daemon::running::editor_settings;

/// What the database and the log may need before anybody looks again.
const LEAST_SPACE: u64 = 200 << 20;
/// Files that a daemon with a few editors has open at most times.
const LEAST_FILES: u64 = 1024;

pub(super) fn check(patient: &DoctorContext) -> Vec<Finding> {
    let mut findings = vec![orphans(patient)];
    findings.extend(space(patient));
    findings.push(open_files());
    findings.extend(watching(patient));
    findings.extend(sandbox(patient));
    findings
}

/// What keeps the commands, builds and language servers of agents.
fn sandbox(patient: &DoctorContext) -> Option<Finding> {
    const WHAT: &str = "sandbox";
    if patient.config.as_ref().is_some_and(|config| !config.editor.fence) {
        let said = "switched off: what agents run can do what you can";
        return Some(Finding::note(WHAT, said, "remove `fence = false` from [editor]"));
    }
    Some(match found(patient)? {
        Ok(()) => Finding::ok(WHAT, "what agents run has files, processes and a network of its own"),
        Err((why, fix)) => {
            let said = format!("what agents run is kept by landlock alone, and you are asked before each build: {why}");
            Finding::note(WHAT, said, fix)
        }
    })
}

/// Servers that run in a sandbox or not at all.
pub(super) fn check_servers(patient: &DoctorContext) -> Vec<Finding> {
    let destinations = patient.config.iter().flat_map(|config| config.destinations.values());
    let servers: Vec<&DestinationConfig> = destinations.filter(|one| one.sandbox.is_some()).collect();
    let Some(found) = (!servers.is_empty()).then(|| found(patient)).flatten() else { return Vec::new() };
    let finding = |server: &&DestinationConfig| match &found {
        Ok(()) => Finding::ok(&server.name, "it can run in its sandbox"),
        Err((why, fix)) => {
            let said = format!("it does not start, as it is to run in a sandbox and there is none: {why}");
            Finding::wrong(&server.name, said, fix.clone())
        }
    };
    servers.iter().map(finding).collect()
}

/// Whether a sandbox can be had; why not, and what to do about it. `None`: this program is not where it was started from.
fn found(patient: &DoctorContext) -> Option<Result<(), (String, String)>> {
    let editor = editor_settings(&Editor::default(), patient.env);
    let env = patient.env.inherited(&EnvInheritance::default());
    let found = Bubblewrap::find(&env, editor.home.as_deref(), &editor.inner?);
    Some(found.map(drop).map_err(|why| {
        let (why, fix) = why.split_once("; ").unwrap_or((&why, "prism doctor --help"));
        (why.to_owned(), fix.to_owned())
    }))
}

/// Processes of a daemon that was killed.
fn orphans(patient: &DoctorContext) -> Finding {
    const WHAT: &str = "orphans";
    let orphans = census::orphans(&patient.home);
    if orphans.is_empty() {
        return Finding::ok(WHAT, "no server outlived its daemon");
    }
    // Only the programs: arguments may hold secrets.
    let named = orphans.iter().map(|orphan| {
        let program = orphan.command.split_whitespace().next().unwrap_or("?");
        format!("{} ({program})", orphan.pid)
    });
    let said = format!("left by a daemon that was killed: {}", named.collect::<Vec<_>>().join(", "));
    // The next daemon ends them by itself, and one that runs has not.
    let pids: Vec<String> = orphans.iter().map(|orphan| orphan.pid.to_string()).collect();
    Finding::wrong(WHAT, said, format!("kill {}", pids.join(" ")))
}

fn space(patient: &DoctorContext) -> Option<Finding> {
    const WHAT: &str = "disk";
    let place = patient.home.ancestors().find(|folder| folder.exists())?;
    let free = peek::free_space(place)?;
    let said = format!("{} free where {} is", size(free), patient.home.display());
    Some(match free < LEAST_SPACE {
        true => Finding::wrong(WHAT, said, format!("du -sh {}; make room", patient.home.display())),
        false => Finding::ok(WHAT, said),
    })
}

fn open_files() -> Finding {
    const WHAT: &str = "open files";
    let (_, hard) = limits::open_files();
    match hard {
        u64::MAX => Finding::ok(WHAT, "as many as the daemon wants"),
        hard if hard < LEAST_FILES => {
            let said = format!("at most {hard}: enough for some {} sessions", hard.saturating_sub(128) / 2);
            Finding::note(WHAT, said, "ulimit -Hn, and raise it in /etc/security/limits.conf")
        }
        hard => Finding::ok(WHAT, format!("up to {hard}")),
    }
}

/// Whether the kernel lets us notice changes of files. It counts the watches of all programs of a user.
fn watching(patient: &DoctorContext) -> Option<Finding> {
    const WHAT: &str = "file changes";
    const TOO_MANY: [i32; 2] = [24, 28]; // EMFILE: instances; ENOSPC: watches.
    let place = patient.home.ancestors().find(|folder| folder.exists())?;
    let error = FolderWatch::new().and_then(|mut watch| watch.add(place)).err()?;
    // Some filesystems cannot be watched at all, and are looked at now and then instead.
    error.raw_os_error().filter(|number| TOO_MANY.contains(number))?;
    let limit = |name: &str| fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).unwrap_or_default();
    let (instances, watches) = (limit("max_user_instances"), limit("max_user_watches"));
    let said = format!(
        "cannot be noticed: {error} (all programs of yours together: {} instances, {} watches)",
        instances.trim(),
        watches.trim()
    );
    Some(Finding::note(WHAT, said, "sudo sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288"))
}
