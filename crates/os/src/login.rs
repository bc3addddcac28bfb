//! The PATH that the user's own shell would have. A daemon that a service manager or an editor has started has a poor
//! one, on which `npx` and `uvx` are not found.
//!
//! The shell is asked as a login shell that is interactive too: some people set their PATH in the files of the one, and
//! version managers write into those of the other. Both kinds of files are programs, which print, prompt, hang, or
//! become another shell. So the answer stands between marks, there is a deadline, and no answer is a possible one.

use std::{
    collections::BTreeMap,
    env::{join_paths, split_paths},
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::process::getuid;

use crate::ask::ask_until;

/// How long a shell may take. Most need a tenth of a second; version managers a second.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// Stands in the shell's environment, so that a profile can tell that nobody looks.
pub const ASKING: &str = "PRISM_RESOLVING_ENVIRONMENT";

const MARK: &str = "__prism_path__";

/// Returns the user's shell: what `SHELL` says, or else the user's entry among the machine's users.
pub fn shell(variable: Option<&OsStr>) -> Option<PathBuf> {
    let from_passwd = || entry(&fs::read_to_string("/etc/passwd").ok()?, getuid().as_raw());
    variable
        .map(PathBuf::from)
        .filter(|shell| is_shell(shell))
        .or_else(|| from_passwd().filter(|shell| is_shell(shell)))
}

/// Asks a shell for its PATH. Blocks for as long as `patience` at most; `None`: it has no usable answer.
pub fn path(shell: &Path, env: &BTreeMap<OsString, OsString>, patience: Duration) -> Option<OsString> {
    let until = Instant::now() + patience;
    let mut env = env.clone();
    env.insert(ASKING.into(), "1".into());
    // `printenv` and not `$PATH`, which in some shells is a list.
    let script = format!("printf %s {MARK}; printenv PATH; printf %s {MARK}");
    // A profile that becomes another shell mostly does so in interactive ones only.
    [&["-l", "-i", "-c", &script][..], &["-l", "-c", &script]].into_iter().find_map(|arguments| {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let answer = ask_until(shell.as_os_str(), arguments, &env, left, |printed| between(printed).is_some());
        usable(between(&answer.ok()?.stdout)?)
    })
}

/// Puts two PATHs together: the first one's folders, then those of the second that the first has not.
#[must_use]
pub fn merged(first: &OsStr, second: &OsStr) -> OsString {
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in split_paths(first).chain(split_paths(second)) {
        if !folder.as_os_str().is_empty() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    // What was split at the colons has none.
    join_paths(folders).unwrap_or_else(|_| first.to_owned())
}

/// What stands between the first two marks.
fn between(printed: &[u8]) -> Option<&[u8]> {
    let find = |text: &[u8]| text.windows(MARK.len()).position(|window| window == MARK.as_bytes());
    let rest = &printed[find(printed)? + MARK.len()..];
    Some(&rest[..find(rest)?])
}

fn usable(text: &[u8]) -> Option<OsString> {
    let path = OsString::from_vec(text.trim_ascii().to_owned());
    let is_usable = split_paths(&path).any(|folder| folder.is_absolute()) && !text.trim_ascii().contains(&b'\n');
    is_usable.then_some(path)
}

/// The shell of a user in the text of `/etc/passwd`.
fn entry(passwd: &str, uid: u32) -> Option<PathBuf> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.into_iter().find(|fields| fields.get(2).is_some_and(|field| field.parse() == Ok(uid)))?;
    own.get(6).filter(|shell| !shell.is_empty()).map(PathBuf::from)
}

/// Some users have a program in the place of a shell that only turns them away.
fn is_shell(path: &Path) -> bool {
    let turns_away = path.file_name().is_some_and(|name| name == "false" || name == "nologin");
    let is_program = |metadata: fs::Metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
    path.is_absolute() && !turns_away && path.metadata().is_ok_and(is_program)
}

#[cfg(test)]
mod tests;
