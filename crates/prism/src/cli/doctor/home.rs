//! Prism's folder and the secret in it: there, ours, and closed to others. Nothing is made or mended here.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use prism_os::process::user_id;

use super::{DoctorContext, Finding};
use prism_config::home::TOKEN_FILE;
use prism_daemon::running::DATABASE;

const HOME: &str = "home";
const TOKEN: &str = "token";

pub(super) fn check(patient: &DoctorContext) -> Vec<Finding> {
    let home = &patient.home;
    let shown = home.display();
    match fs::metadata(home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return vec![Finding::note(HOME, format!("{shown} is not there yet; the first start makes it"), START)];
        }
        Err(error) => {
            let fix = "export PRISM_HOME=/some/other/folder";
            return vec![Finding::wrong(HOME, format!("{shown} cannot be looked at: {error}"), fix)];
        }
        Ok(metadata) if !metadata.is_dir() => {
            let fix = format!("mv {shown} {shown}.old");
            return vec![Finding::wrong(HOME, format!("{shown} is not a folder"), fix)];
        }
        Ok(_) => {}
    }
    let mut findings = match closed(home, 0o700) {
        Ok(mode) => vec![Finding::ok(HOME, format!("{shown}, mode {mode:04o}"))],
        Err(finding) => vec![Finding { what: HOME.to_owned(), ..finding }],
    };
    findings.push(token(patient));
    findings.push(database(patient));
    findings
}

const START: &str = "prism serve --detach";

/// Whether a file or a folder is ours alone. Returns its mode.
fn closed(path: &Path, wanted: u32) -> Result<u32, Finding> {
    let shown = path.display();
    let metadata =
        path.metadata().map_err(|error| Finding::wrong("", format!("{shown}: {error}"), format!("ls -l {shown}")))?;
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.uid() != user_id() {
        let said = format!("{shown} belongs to another user (uid {})", metadata.uid());
        return Err(Finding::wrong("", said, format!("sudo chown {} {shown}", user_id())));
    }
    if mode & 0o077 != 0 {
        let said = format!("{shown} is open to others (mode {mode:04o})");
        return Err(Finding::wrong("", said, format!("chmod {wanted:o} {shown}")));
    }
    Ok(mode)
}

fn token(patient: &DoctorContext) -> Finding {
    if patient.env.var("PRISM_API_KEY").is_some() {
        return Finding::ok(TOKEN, "from PRISM_API_KEY; a daemon that was started without it has another one");
    }
    let path = patient.home.join(TOKEN_FILE);
    let shown = path.display();
    if !path.exists() {
        return Finding::note(TOKEN, format!("{shown} is not there yet; the first start makes it"), START);
    }
    let mode = match closed(&path, 0o600) {
        Ok(mode) => mode,
        // Whoever could read it may have: closing it is not enough.
        Err(finding) => {
            let said = format!("{}, so others may know it", finding.said);
            return Finding::wrong(TOKEN, said, format!("rm {shown} && prism restart"));
        }
    };
    match fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() && text.trim().bytes().all(|byte| byte.is_ascii_graphic()) => {
            Finding::ok(TOKEN, format!("{shown}, mode {mode:04o}"))
        }
        _ => Finding::wrong(TOKEN, format!("{shown} holds no token"), format!("rm {shown} && prism restart")),
    }
}

fn database(patient: &DoctorContext) -> Finding {
    const WHAT: &str = "database";
    let path = patient.home.join(DATABASE);
    let shown = path.display();
    if !path.exists() {
        return Finding::ok(WHAT, "none yet; the first start makes it");
    }
    match prism_store::eras_at(&path) {
        Ok(_) => Finding::ok(WHAT, format!("{shown} opens")),
        Err(error) => {
            let error = anyhow::Error::from(error);
            Finding::wrong(WHAT, format!("{error:#}"), format!("prism stop; mv {shown} {shown}.old; {START}"))
        }
    }
}
