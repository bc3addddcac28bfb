//! The config: whether it can be read, whether the programs it names are found, and whether the secrets it refers to are
//! where it says.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use prism_os::{login, peek, program};
use tokio::task::spawn_blocking;

use super::{DoctorContext, Finding};
use prism_bridge::drive::health::ServerState;
use prism_config::{
    Config, DestinationConfig, Env, EnvInheritance, Flags,
    file::{self, ConfigPaths},
    secret::{self, SecretError, SecretReference},
};

const PATH: &str = "PATH";

pub(super) fn check(explicit: Option<&Path>, patient: &DoctorContext) -> (Option<Config>, Vec<Finding>) {
    const WHAT: &str = "config";
    const ADD: &str = "prism add files -- npx -y @modelcontextprotocol/server-filesystem .";
    let explicit = explicit.map(Path::to_owned);
    let places = ConfigPaths { explicit, here: PathBuf::new(), home: patient.home.clone() };
    let loaded = match file::load(&places, &[], &Flags::default(), patient.env) {
        Ok(loaded) => loaded,
        Err(error) => return (None, vec![Finding::error(WHAT, &error.into())]),
    };
    let count = loaded.config.destinations.len();
    let finding = match &loaded.file {
        None => Finding::note(WHAT, "there is none yet, so there are no servers", ADD),
        Some(path) if count == 0 => Finding::note(WHAT, format!("{} has no servers", absolute(path)), ADD),
        Some(path) => {
            let count = if count == 1 { "1 server".to_owned() } else { format!("{count} servers") };
            Finding::ok(WHAT, format!("{}, {count}", absolute(path)))
        }
    };
    let unseen = loaded.untrusted.iter().map(|one| Finding::wrong(WHAT, one.why(), one.fix()));
    let findings = unseen.chain([finding]).collect();
    (Some(loaded.config), findings)
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// PATHs, and the programs that destinations need on them: the servers get the login shell's and the daemon's.
pub(super) async fn check_programs(patient: &DoctorContext<'_>) -> Vec<Finding> {
    let Some(config) = &patient.config else { return Vec::new() };
    let own: Vec<&DestinationConfig> = config.destinations.values().filter(|one| !one.command.is_empty()).collect();
    if own.is_empty() {
        return Vec::new();
    }
    let here = patient.env.var(PATH).unwrap_or_default().to_owned();
    let daemon = patient.status.as_ref().and_then(|status| peek::variable(status.daemon.pid, PATH));
    let mut findings = Vec::new();
    let login = if config.login_path { login_path(patient.env, &mut findings).await } else { None };
    let base = daemon.as_deref().unwrap_or(&here);
    let path = login.as_ref().map_or_else(|| base.to_owned(), |login| login::merged(login, base));
    if let (Some(_), Some(daemon), true) = (&login, &daemon, findings.is_empty()) {
        let missing = folders(&here).difference(&folders(daemon)).count();
        findings.push(Finding::ok(
            PATH,
            match missing {
                0 => "the daemon has all folders of this shell's; servers get the login shell's, too".to_owned(),
                1 => "1 folder of this shell's is not on the daemon's; servers get the login shell's, too".to_owned(),
                more => format!(
                    "{more} folders of this shell's are not on the daemon's; servers get the login shell's, too"
                ),
            },
        ));
    }
    findings.extend(own.into_iter().map(|destination| of_program(destination, &path, &here)));
    findings
}

async fn login_path(env: &Env, findings: &mut Vec<Finding>) -> Option<OsString> {
    let Some(shell) = login::shell(env.var("SHELL")) else {
        findings.push(Finding::skipped(PATH, "there is no login shell to ask for its PATH"));
        return None;
    };
    let (asked, all) = (shell.clone(), env.inherited(&EnvInheritance::All));
    let path = spawn_blocking(move || login::path(&asked, &all, login::PATIENCE)).await.ok().flatten();
    if path.is_none() {
        let said = format!(
            "the login shell ({}) does not say its PATH within {:?}, so servers get the daemon's",
            shell.display(),
            login::PATIENCE
        );
        let fix = format!("{} -l -i -c 'echo $PATH', and see what holds it up", shell.display());
        findings.push(Finding::note(PATH, said, fix));
    }
    path
}

fn folders(path: &OsStr) -> BTreeSet<PathBuf> {
    std::env::split_paths(path).filter(|folder| !folder.as_os_str().is_empty()).collect()
}

fn of_program(destination: &DestinationConfig, path: &OsStr, here: &OsStr) -> Finding {
    let what = &destination.name;
    let wanted = destination.command.first().map(String::as_str).unwrap_or_default();
    let cwd = destination.cwd.as_deref();
    let own = destination.env.get(PATH).map(OsString::from);
    let Err(absent) = program::find(wanted, cwd, own.as_deref().unwrap_or(path)) else {
        return Finding::ok(what, format!("its program {wanted:?} is there"));
    };
    if Env::finds(wanted, cwd, here) {
        let said = format!("its program {wanted:?} is on this shell's PATH and not on the one that servers get");
        return Finding::wrong(what, said, "prism restart, from this shell");
    }
    let said = format!("{}: {absent}", ServerState::Missing);
    Finding::wrong(what, said, format!("{}; or prism remove {what}", absent.fix()))
}

/// What stands elsewhere: variables, files, the keyring.
pub(super) async fn check_secrets(patient: &DoctorContext<'_>) -> Vec<Finding> {
    let Some(config) = &patient.config else { return Vec::new() };
    let daemon = patient.status.as_ref().map(|status| status.daemon.pid);
    let mut findings = Vec::new();
    for destination in config.destinations.values() {
        let headers = destination.http.iter().flat_map(|http| http.headers.iter());
        let variables = destination.env.iter().filter(|(_, value)| secret::of_variable(value).is_some());
        let headers = headers.filter(|(_, value)| secret::of_header(value).is_some());
        let mut wanted: Vec<(String, String, bool)> = Vec::new();
        wanted.extend(variables.map(|(name, value)| (name.clone(), value.clone(), false)));
        wanted.extend(headers.map(|(name, value)| (name.clone(), value.clone(), true)));
        let count = wanted.len();
        let mut wrong = Vec::new();
        for (name, value, is_header) in wanted {
            let env = patient.env.clone();
            let finding = spawn_blocking(move || look_up(&name, &value, is_header, &env, daemon)).await;
            wrong.extend(finding.ok().flatten());
        }
        match (count, wrong.is_empty()) {
            (0, _) => {}
            (_, true) => findings.push(Finding::ok(&destination.name, "the secrets that it is given are there")),
            (_, false) => {
                findings.extend(wrong.into_iter().map(|(said, fix)| Finding::wrong(&destination.name, said, fix)));
            }
        }
    }
    findings
}

/// What is wrong with a secret, and what to type; `None` if it is there.
fn look_up(name: &str, value: &str, is_header: bool, env: &Env, daemon: Option<u32>) -> Option<(String, String)> {
    let reference = if is_header { secret::of_header(value) } else { secret::of_variable(value) };
    // The daemon's environment counts, and it may differ from this shell's.
    if let (Some(SecretReference::Variable(variable)), Some(pid)) = (reference, daemon) {
        let set = |value: &OsStr| !value.is_empty();
        if peek::variable(pid, variable).as_deref().is_some_and(set) {
            return None;
        }
        if env.var(variable).is_some() {
            let said = format!("{name} wants {variable}, which is set here and not where the daemon was started");
            return Some((said, "prism restart, from this shell".to_owned()));
        }
    }
    let resolved = if is_header { secret::resolve_header(value, env) } else { secret::resolve(value, env) };
    let error = resolved.err()?;
    let fix = match &error {
        SecretError::NoVariable { variable } => format!("export {variable}=…; prism restart"),
        SecretError::Open { path, .. } => format!("chmod 600 {}", path.display()),
        SecretError::Read { path, .. } | SecretError::File { path, .. } => format!("ls -l {}", path.display()),
        _ => "prism list, and look at its entry in the config".to_owned(),
    };
    Some((format!("{name}: {error}"), fix))
}
