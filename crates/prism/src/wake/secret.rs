//! Secrets that contacts only point to: a file, or a variable of the daemon's. They are read when a bell rings, kept
//! nowhere and shown to nobody.
//!
//! Who points is an agent, and where the secret goes is what the same agent has told. So that this is no way to have any
//! secret of the user's sent to oneself, a file must look like one made for this (one short word, nobody else's to read),
//! must not be Prism's own, and variables are those of the server that is spoken to.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::task::spawn_blocking;

use crate::config::Env;

/// The longest token. A longer file is none.
const MAX_BYTES: u64 = 4096;

#[derive(Clone)]
pub(super) struct Secrets {
    env: Arc<Env>,
    home: PathBuf,
}

// === impl Secrets ===

impl Secrets {
    pub(super) fn new(env: Env, home: PathBuf) -> Self {
        Self { env: Arc::new(env), home }
    }

    /// The word in a file. The error is for a person and repeats nothing of what the file holds.
    pub(super) async fn in_file(&self, path: &Path) -> Result<String, String> {
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
    pub(super) fn in_env(&self, name: &str) -> Result<String, String> {
        let value = self.env.var(name).and_then(OsStr::to_str).map(str::to_owned);
        value.ok_or_else(|| {
            format!("the daemon has no variable {name}: set it where the daemon is started, then prism restart")
        })
    }
}
