//! Values of `env` and `headers` that stand elsewhere: in a variable of the daemon's, in a file, or in the user's keyring.
//! A config holds the reference, and what it stands for is looked up when a child starts or a server is connected to. So a
//! secret is in no config, no log and no error, and one that was changed counts from the next start on.
//!
//! ```text
//! env:NAME                  keyring:SERVICE/ACCOUNT
//! file:/path/to/secret      text:WHATEVER    that text itself, if it looks like one of the others
//! ```
//!
//! In a header, the reference may be the last word: `Bearer env:NAME`.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use prism_os::ask::{ProgramRunError, ask};

use super::{Env, EnvInheritance, inherit::OWN_SECRETS};

#[cfg(test)]
mod tests;

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretReference<'a> {
    Variable(&'a str),
    File(&'a str),
    Keyring { service: &'a str, account: &'a str },
}

/// Why a value was not found. No part of any secret is in it.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error(
        "it wants the environment variable {variable}, which is not set, or empty, where the daemon was started; \
         export {variable}=... and restart the daemon"
    )]
    NoVariable { variable: String },
    #[error("it wants {variable}, which is Prism's own secret and is given to no server; give it a key of its own")]
    Own { variable: String },
    #[error("cannot read the secret file {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the file {} with a secret in it can be read by others (mode {mode:04o}); chmod 600 it", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("the secret file {} {problem}", path.display())]
    File { path: PathBuf, problem: &'static str },
    #[error("the header {name} would have a value that no header can carry: one line, without blanks around it")]
    Header { name: String },
    #[error("the keyring cannot be asked: {why}")]
    NoKeyring { why: String },
    #[error(
        "the keyring has no secret for service {service:?} and account {account:?}, or it is locked; \
         store it with `{}`",
        store_command(service, account)
    )]
    NotInKeyring { service: String, account: String },
}

/// How long a keyring may take: it may have to ask a person for its password.
const KEYRING_PATIENCE: Duration = Duration::from_secs(20);
/// No secret is longer, and a path to something endless is soon written.
const MAX_FILE_BYTES: u64 = 64 << 10;

const SCHEMES: [&str; 4] = ["env:", "file:", "keyring:", "text:"];

/// Returns where a value is, if it is a reference. What is badly written is one, too, and `check` says so.
fn reference(value: &str) -> Option<Result<SecretReference<'_>, &'static str>> {
    let (scheme, rest) = value.split_once(':')?;
    Some(match scheme {
        "env" if !rest.is_empty() && !rest.contains([' ', '=', '\0']) => Ok(SecretReference::Variable(rest)),
        "env" => Err("names no variable after env:"),
        "file" if !rest.trim().is_empty() => Ok(SecretReference::File(rest)),
        "file" => Err("names no file after file:"),
        "keyring" => match rest.split_once('/') {
            Some((service, account)) if !service.is_empty() && !account.is_empty() => {
                Ok(SecretReference::Keyring { service, account })
            }
            _ => Err("is not keyring:SERVICE/ACCOUNT"),
        },
        _ => return None,
    })
}

/// Splits a header before the reference that it ends with: all of it, or its last word.
fn in_header(value: &str) -> (&str, &str) {
    // A path or an account may have blanks in it, so what begins as one is one to its end.
    if ["file:", "keyring:", "text:"].iter().any(|scheme| value.starts_with(scheme)) {
        return ("", value);
    }
    value.split_at(value.rfind(' ').map_or(0, |blank| blank + 1))
}

/// Returns what is wrong with the reference that a value of `env` is, if it is one.
pub(super) fn check(value: &str) -> Result<(), &'static str> {
    reference(value).transpose().map(drop)
}

pub(super) fn check_header(value: &str) -> Result<(), &'static str> {
    check(in_header(value).1)
}

/// Returns where a value of `env` is, if it is elsewhere.
#[must_use]
pub fn of_variable(value: &str) -> Option<SecretReference<'_>> {
    reference(value)?.ok()
}

/// Returns where the end of a header is, if it is elsewhere.
#[must_use]
pub fn of_header(value: &str) -> Option<SecretReference<'_>> {
    of_variable(in_header(value).1)
}

/// Writes a text as a value that means this text, whatever it looks like.
#[must_use]
pub fn literal(text: &str) -> String {
    let looks_like_one = |value: &str| SCHEMES.iter().any(|scheme| value.starts_with(scheme));
    if looks_like_one(text) || looks_like_one(in_header(text).1) { format!("text:{text}") } else { text.to_owned() }
}

/// Makes a file's path one that means the same wherever the daemon runs.
pub(super) fn anchored(value: &str, folder: impl Fn(&str) -> PathBuf) -> String {
    let (before, word) = in_header(value);
    match of_variable(word) {
        Some(SecretReference::File(path)) => format!("{before}file:{}", folder(path).to_string_lossy()),
        _ => value.to_owned(),
    }
}

/// Returns what a value of `env` stands for. Blocks if that is in a file or a keyring.
pub fn resolve(value: &str, env: &Env) -> Result<String, SecretError> {
    match of_variable(value) {
        Some(reference) => reference.look_up(env),
        None => Ok(value.strip_prefix("text:").unwrap_or(value).to_owned()),
    }
}

/// Returns what the value of a header stands for. Blocks if that is in a file or a keyring.
pub fn resolve_header(value: &str, env: &Env) -> Result<String, SecretError> {
    let (before, word) = in_header(value);
    Ok(format!("{before}{}", resolve(word, env)?))
}

/// Tells whether a value of this name that is written out is likely a secret.
#[must_use]
pub fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSW", "AUTHORIZATION"].iter().any(|word| name.contains(word))
}

/// Returns a command's words to be shown: without the secrets that people write there in spite of all. (L9)
#[must_use]
pub fn without_secrets(words: &[String]) -> Vec<String> {
    let mut is_next = false;
    let mut shown = Vec::with_capacity(words.len());
    for word in words {
        let is_value = std::mem::take(&mut is_next) && !word.starts_with('-');
        let is_option = word.starts_with('-');
        shown.push(match word.split_once(['=', ':']) {
            _ if is_value => "…".to_owned(),
            Some((name, value)) if sounds_secret(name) && !value.is_empty() && !value.starts_with("//") => {
                format!("{}…", &word[..=name.len()])
            }
            _ => without_login(word),
        });
        is_next = is_option && !word.contains('=') && sounds_secret(word);
    }
    shown
}

/// A URL without the password in it.
fn without_login(word: &str) -> String {
    let hidden = || {
        let (scheme, rest) = word.split_once("://")?;
        let (login, host) = rest.split(['/', '?', '#']).next()?.rsplit_once('@')?;
        let (user, _) = login.split_once(':')?;
        Some(format!("{scheme}://{user}:…@{host}{}", &rest[login.len() + 1 + host.len()..]))
    };
    hidden().unwrap_or_else(|| word.to_owned())
}

// === impl SecretReference ===

impl SecretReference<'_> {
    /// Tells whether looking it up may take a while.
    #[must_use]
    pub fn blocks(self) -> bool {
        !matches!(self, Self::Variable(_))
    }

    /// Returns the file that it is in, if it is in one.
    #[must_use]
    pub fn file(self, env: &Env) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(expanded(path, env)),
            Self::Variable(_) | Self::Keyring { .. } => None,
        }
    }

    fn look_up(self, env: &Env) -> Result<String, SecretError> {
        match self {
            Self::Variable(variable) if OWN_SECRETS.contains(&variable) => {
                Err(SecretError::Own { variable: variable.to_owned() })
            }
            Self::Variable(variable) => {
                let value = env.var(variable).and_then(OsStr::to_str).map(str::to_owned);
                value.ok_or_else(|| SecretError::NoVariable { variable: variable.to_owned() })
            }
            Self::File(path) => read(&expanded(path, env)),
            Self::Keyring { service, account } => ask_keyring(service, account, env),
        }
    }
}

fn expanded(path: &str, env: &Env) -> PathBuf {
    match (path.strip_prefix("~/"), env.var("HOME")) {
        (Some(rest), Some(home)) => Path::new(home).join(rest),
        _ => path.into(),
    }
}

fn read(path: &Path) -> Result<String, SecretError> {
    let cannot_read = |source| SecretError::Read { path: path.to_owned(), source };
    let wrong = |problem| SecretError::File { path: path.to_owned(), problem };
    let metadata = fs::metadata(path).map_err(cannot_read)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if !metadata.is_file() {
        return Err(wrong("is no file"));
    }
    if mode & 0o077 != 0 {
        return Err(SecretError::Open { path: path.to_owned(), mode });
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(wrong("is too large to be one"));
    }
    let text = String::from_utf8(fs::read(path).map_err(cannot_read)?).map_err(|_| wrong("is not text in UTF-8"))?;
    match text.trim() {
        "" => Err(wrong("is empty")),
        text if text.contains('\0') => Err(wrong("is not text")),
        text => Ok(text.to_owned()),
    }
}

/// Asks by way of the program that each system has for it. The secret comes back on its stdout, and is on no command line.
fn ask_keyring(service: &str, account: &str, env: &Env) -> Result<String, SecretError> {
    let (program, arguments) = if cfg!(target_os = "macos") {
        ("security", vec!["find-generic-password", "-w", "-s", service, "-a", account])
    } else {
        // The names by which Python's and Rust's keyring libraries store theirs.
        ("secret-tool", vec!["lookup", "service", service, "username", account])
    };
    let own = env.inherited(&EnvInheritance::Allowed);
    let answer = ask(OsStr::new(program), &arguments, &own, KEYRING_PATIENCE).map_err(|error| {
        let why = match &error {
            ProgramRunError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                format!(
                    "{program} is not installed (on Debian: apt install libsecret-tools); file:PATH works without it"
                )
            }
            _ => error.to_string(),
        };
        SecretError::NoKeyring { why }
    })?;
    let secret = String::from_utf8(answer.stdout).unwrap_or_default();
    match secret.trim_end_matches('\n') {
        secret if answer.success && !secret.is_empty() && !secret.contains('\0') => Ok(secret.to_owned()),
        _ => Err(SecretError::NotInKeyring { service: service.to_owned(), account: account.to_owned() }),
    }
}

/// What to type to put a secret where it is looked for. Both programs then ask for it.
fn store_command(service: &str, account: &str) -> String {
    if cfg!(target_os = "macos") {
        return format!("security add-generic-password -s {service:?} -a {account:?} -w");
    }
    format!("secret-tool store --label={service:?} service {service:?} username {account:?}")
}
