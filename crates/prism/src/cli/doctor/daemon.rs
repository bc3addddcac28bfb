//! The daemon: whether it runs, is the one that registered itself, is as new as this program, and has its port.

use std::path::Path;

use prism_api::status::{ConfigState, StatusReport};
use prism_config::registration;
use prism_os::{peek, process::user_id};

use super::{DoctorContext, Finding};
use crate::cli::{
    locate::{DaemonLocation, StatusAnswer, locate},
    status::words::time,
};

const DAEMON: &str = "daemon";
const PORT: &str = "port";
const START: &str = "prism serve --detach";

pub(super) async fn check(config: Option<&Path>, patient: &DoctorContext<'_>) -> (Option<StatusReport>, Vec<Finding>) {
    let mut findings = Vec::new();
    if let Some(stale) = patient.registration.as_ref().filter(|registration| !registration.is_alive()) {
        let file = patient.home.join(registration::FILE);
        let said = format!("{} names a daemon that has ended (pid {})", file.display(), stale.pid);
        findings.push(Finding::note("registration", said, format!("{START}, which replaces it")));
    }
    // The home, the token or the config: that was said.
    let Ok(located) = locate(config, patient.env) else {
        findings.push(Finding::skipped(DAEMON, "cannot be asked before the above is mended"));
        return (None, findings);
    };
    match located.ask().await {
        StatusAnswer::Status(status) => {
            findings.extend(running(&status, patient));
            (Some(*status), findings)
        }
        StatusAnswer::Nobody if located.registration.is_some() => {
            let said = format!("it lives and does not answer at {}", located.base);
            findings.push(Finding::wrong(DAEMON, said, "prism restart; what it did is in `prism logs`"));
            (None, findings)
        }
        StatusAnswer::Nobody => {
            findings.push(Finding::note(DAEMON, "it does not run", START));
            findings.push(Finding::ok(PORT, format!("{} is free", located.base)));
            (None, findings)
        }
        StatusAnswer::OtherToken => {
            let said = format!("a Prism at {} has another token{}", located.base, holder(&located));
            findings.push(Finding::wrong(PORT, said, "set PRISM_HOME as it was set there; or stop that one"));
            (None, findings)
        }
        StatusAnswer::Strange(why) => {
            let said = format!("somebody else listens at {}: {why}{}", located.base, holder(&located));
            findings.push(Finding::wrong(PORT, said, "stop it, or choose another: `port = …` in prism.toml"));
            (None, findings)
        }
    }
}

fn running(status: &StatusReport, patient: &DoctorContext) -> Vec<Finding> {
    let daemon = &status.daemon;
    let own = env!("CARGO_PKG_VERSION");
    let mut findings = vec![if daemon.version == own {
        let said = format!("{} runs, pid {}, up {}", daemon.version, daemon.pid, time(daemon.uptime_s));
        Finding::ok(DAEMON, said)
    } else {
        let said = format!("version {} runs, and this is {own}", daemon.version);
        Finding::wrong(DAEMON, said, "prism restart")
    }];
    findings.push(Finding::ok(PORT, format!("{} is the daemon's", daemon.url)));
    if daemon.foreign_sessions > 0 {
        let said = format!(
            "{} requests came with the session of another server that was at this URL, and were refused (HTTP 400)",
            daemon.foreign_sessions
        );
        findings.push(Finding::note("clients", said, "restart the client that sends them, or its MCP connection"));
    }
    for why in &daemon.record {
        findings.push(Finding::wrong("record", why, "prism audit verify; and see that the disk has room"));
    }
    let why = daemon.config.error.clone().unwrap_or_default();
    match daemon.config.state {
        ConfigState::Ok => {}
        ConfigState::NeedsRestart => findings.push(Finding::note("config", why, "prism restart")),
        // What to type depends on the file, and is said with it.
        ConfigState::Untrusted => {
            let (said, fix) = why.rsplit_once("; ").unwrap_or((&why, "prism trust"));
            findings.push(Finding::wrong("config", said.to_owned(), fix.to_owned()));
        }
        ConfigState::KeptOld => {
            let said = format!("a change of it is not in effect: {why}");
            findings.push(Finding::wrong("config", said, "mend it and save it"));
        }
    }
    if Path::new(&daemon.home) != patient.home
        && Path::new(&daemon.home).canonicalize().ok() != patient.home.canonicalize().ok()
    {
        let said = format!("the daemon's home is {}, and this shell's is {}", daemon.home, patient.home.display());
        findings.push(Finding::note("home", said, format!("export PRISM_HOME={}", daemon.home)));
    }
    findings
}

/// Who has the port, as far as that can be seen.
fn holder(located: &DaemonLocation) -> String {
    let port = located.base.rsplit(':').next().and_then(|port| port.trim_end_matches('/').parse().ok());
    match port.and_then(peek::listener) {
        Some(peek::PortOwner { pid: Some(pid), .. }) => {
            format!(" (pid {pid}, {})", peek::program(pid).unwrap_or_else(|| "?".to_owned()))
        }
        Some(peek::PortOwner { pid: None, uid }) if uid != user_id() => {
            format!(" (a program of the user with uid {uid})")
        }
        _ => String::new(),
    }
}
