//! Short runs of other programs: `tmux`, `notify-send`. Each ends by a deadline, and is given no more of the daemon's
//! environment than such a program needs.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
    time::Duration,
};

use prism_os::ask::{ProgramRunError, ask};
use tokio::task::spawn_blocking;

use prism_config::Env;

/// How long one run may take. They take milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);
/// Variables that are handed on: where programs, the person's screen and its bus are.
const HANDED_ON: [&str; 9] = [
    "PATH",
    "TMUX_TMPDIR",
    "HOME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
];

#[derive(Clone)]
pub(super) struct WakeProgram {
    name: &'static str,
    env: BTreeMap<OsString, OsString>,
}

// === impl WakeProgram ===

impl WakeProgram {
    pub(super) fn new(name: &'static str, env: &Env) -> Self {
        let handed = |name: &&str| Some((OsString::from(name), env.var(name)?.to_owned()));
        Self { name, env: HANDED_ON.iter().filter_map(handed).collect() }
    }

    pub(super) fn var(&self, name: &str) -> Option<&OsStr> {
        self.env.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    pub(super) fn is_there(&self) -> bool {
        self.var("PATH").is_some_and(|path| Env::finds(self.name, None::<&Path>, path))
    }

    /// Runs it. Returns what it printed; the error is for a person.
    pub(super) async fn run(&self, arguments: Vec<String>) -> Result<String, String> {
        let Self { name, env } = self.clone();
        let ran = spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            ask(OsStr::new(name), &arguments, &env, PATIENCE)
        });
        match ran.await {
            Ok(Ok(answer)) if answer.success => Ok(String::from_utf8_lossy(&answer.stdout).into_owned()),
            Ok(Ok(_)) => Err(format!("{name} said no")),
            Ok(Err(ProgramRunError::Start { .. })) => Err(format!("there is no {name} on the daemon's PATH")),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("{name} could not be run")),
        }
    }
}
