//! Secrets that contacts only point to: a file, or a variable of the daemon's. They are read when a bell rings, kept
//! nowhere and shown to nobody.
//!
//! Who points is an agent, and where the secret goes is what the same agent has told. So that this is no way to have any
//! secret of the user's sent to oneself, the person's config lists those that may be pointed to (`secrets` of `[mesh]`); and a
//! file must look like one made for this all the same (one short word, nobody else's to read) and not be Prism's own.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::spawn_blocking;

use super::WakeSettings;
use prism_config::{
    Env, OWN_SECRETS,
    secret::{self, SecretReference},
};

/// The longest token. A longer file is none.
const MAX_BYTES: u64 = 4096;

#[derive(Clone)]
pub(super) struct PointedSecrets {
    env: Arc<Env>,
    home: PathBuf,
    listed: Arc<BTreeMap<String, String>>,
}

/// Where an agent says that a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SecretPointer {
    /// By its name in the person's config.
    Named(String),
    Env(String),
    File(PathBuf),
}

// === impl PointedSecrets ===

impl PointedSecrets {
    pub(super) fn new(allowed: &WakeSettings) -> Self {
        let WakeSettings { env, home, secrets, .. } = allowed.clone();
        Self { env: Arc::new(env), home, listed: Arc::new(secrets) }
    }

    /// Refuses what the person has not listed. The error is for the agent, and says what the person can add. (H9)
    pub(super) fn check(&self, pointed: &SecretPointer) -> Result<(), String> {
        self.listed(pointed).map(drop)
    }

    /// Returns a secret. The error is for a person and repeats nothing of it.
    pub(super) async fn look_up(&self, pointed: &SecretPointer) -> Result<String, String> {
        match self.listed(pointed)? {
            SecretReference::Variable(name) => self.in_env(name),
            SecretReference::File(path) => self.in_file(Path::new(path)).await,
            SecretReference::Keyring { .. } => Err("a keyring cannot be asked here".to_owned()),
        }
    }

    fn listed(&self, pointed: &SecretPointer) -> Result<SecretReference<'_>, String> {
        let (name, wanted) = match pointed {
            SecretPointer::Named(name) => (name.as_str(), "file:PATH".to_owned()),
            SecretPointer::Env(variable) => ("NAME", format!("env:{variable}")),
            SecretPointer::File(path) => ("NAME", format!("file:{}", path.display())),
        };
        let found = match pointed {
            SecretPointer::Named(name) => self.listed.get(name),
            SecretPointer::Env(_) | SecretPointer::File(_) => self.listed.values().find(|listed| **listed == wanted),
        };
        found.and_then(|listed| secret::of_variable(listed)).ok_or_else(|| {
            format!(
                "the person's config does not list this secret, so nobody may point to it; they can add it to prism.toml, \
                 `secrets = {{ {name} = {wanted:?} }}` below [mesh], and then prism restart"
            )
        })
    }

    async fn in_file(&self, path: &Path) -> Result<String, String> {
        let (secrets, path) = (self.clone(), path.to_owned());
        // A file may be on a disk that does not answer; the ring's deadline does not wait for that.
        let reading = spawn_blocking(move || secrets.read(&path)).await;
        reading.unwrap_or_else(|_| Err("the token file could not be read".to_owned()))
    }

    fn read(&self, path: &Path) -> Result<String, String> {
        let said = |why: &str| Err(format!("the token file {} {why}", path.display()));
        // Resolved first: a link must not lead where its name does not say.
        let Ok(real) = fs::canonicalize(path) else { return said("is not there") };
        if fs::canonicalize(&self.home).is_ok_and(|home| real.starts_with(home)) {
            return said("is in Prism's own folder: keep tokens of other programs elsewhere");
        }
        let Ok(about) = fs::metadata(&real) else { return said("cannot be looked at") };
        if !about.is_file() || about.len() > MAX_BYTES {
            return said("is not a file with one token in it");
        }
        if about.permissions().mode() & 0o077 != 0 {
            return said("can be read by others: chmod 600 it");
        }
        let mut text = String::new();
        let read = File::open(&real).and_then(|file| {
            // Not what was looked at is refused, whatever was put there meanwhile.
            let same = file.metadata().is_ok_and(|now| now.ino() == about.ino() && now.dev() == about.dev());
            if same {
                file.take(MAX_BYTES).read_to_string(&mut text).map(|_| ())
            } else {
                Err(std::io::ErrorKind::NotFound.into())
            }
        });
        if read.is_err() {
            return said("cannot be read");
        }
        let token = text.trim();
        let is_word = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_word { Ok(token.to_owned()) } else { said("must hold one token, in one line, and nothing else") }
    }

    /// What a variable of the daemon's holds.
    fn in_env(&self, name: &str) -> Result<String, String> {
        if OWN_SECRETS.contains(&name) {
            return Err(format!("{name} is Prism's own secret, and opens no other door"));
        }
        let value = self.env.var(name).and_then(OsStr::to_str).map(str::to_owned);
        value.ok_or_else(|| {
            format!("the daemon has no variable {name}: set it where the daemon is started, then prism restart")
        })
    }
}
