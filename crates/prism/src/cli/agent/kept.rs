//! Sessions that were opened, as files in Prism's home that only its user can read: each holds a token, or the claim to one.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
};

use anyhow::{Context, anyhow};
use prism_api::gate::ClaimAnswer;
use prism_config::{
    Env,
    home::{self, Token},
};
use prism_core::time::parse_rfc3339;
use serde::{Deserialize, Serialize};

use super::AgentContext;

/// The folder in Prism's home.
const FOLDER: &str = "agent";

/// What a command is told that finds no session.
pub(super) const NONE: &str = "no session is open\n  fix: prism agent open --root . --preset standard";

/// A session, or the request for one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedSession {
    pub(super) agent: String,
    pub(super) request_id: String,
    pub(super) claim: String,
    /// RFC 3339.
    pub(super) asked_at: String,
    pub(super) given: Option<SavedGrant>,
}

/// What was granted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SavedGrant {
    pub(super) session_id: String,
    token: String,
    pub(super) scopes: Vec<String>,
    pub(super) roots: Vec<String>,
    pub(super) expires_at: String,
}

// === impl SavedSession ===

impl SavedSession {
    /// Returns the session that was opened last, of that agent if one is named.
    pub(super) fn find(around: &AgentContext<'_>) -> anyhow::Result<Option<Self>> {
        let folder = folder(around.env)?;
        let files = match fs::read_dir(&folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(anyhow!(error).context(format!("cannot read {}", folder.display()))),
        };
        // What cannot be read is of another version, or half way to the disk.
        let read = |file: io::Result<fs::DirEntry>| {
            let path = file.ok()?.path();
            let text = fs::read_to_string(path.extension().is_some_and(|end| end == "json").then_some(path)?).ok()?;
            serde_json::from_str::<Self>(&text).ok()
        };
        let mut all: Vec<Self> = files.filter_map(read).collect();
        if let Some(agent) = &around.agent {
            all.retain(|kept| kept.agent == *agent);
        }
        all.sort_by(|a, b| a.asked_at.cmp(&b.asked_at));
        Ok(all.pop())
    }

    /// Writes it down, in the place of what was there of it.
    pub(super) fn keep(&self, env: &Env) -> anyhow::Result<()> {
        let path = self.path(env)?;
        let beside = path.with_extension("new");
        let written = (|| {
            DirBuilder::new().recursive(true).mode(0o700).create(folder(env).map_err(io::Error::other)?)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
            fs::rename(&beside, &path)
        })();
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// Forgets it: it is over.
    pub(super) fn forget(&self, env: &Env) -> anyhow::Result<()> {
        let path = self.path(env)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(anyhow!(error).context(format!("cannot remove {}", path.display())))
            }
            _ => Ok(()),
        }
    }

    fn path(&self, env: &Env) -> anyhow::Result<PathBuf> {
        Ok(folder(env)?.join(format!("{}.json", self.request_id)))
    }

    /// Takes what came of the request, if it was granted with a token.
    pub(super) fn take(&mut self, told: &ClaimAnswer) -> bool {
        let told = told.clone();
        let (Some(session_id), Some(token)) = (told.session_id, told.session_token) else { return false };
        self.given = Some(SavedGrant {
            session_id,
            token,
            scopes: told.allowed_scopes.unwrap_or_default(),
            roots: told.roots.unwrap_or_default(),
            expires_at: told.expires_at.unwrap_or_default(),
        });
        true
    }
}

// === impl SavedGrant ===

impl SavedGrant {
    pub(super) fn token(&self) -> anyhow::Result<Token> {
        Token::read(&self.token)
            .ok_or_else(|| anyhow!("the session that was kept has no token\n  fix: prism agent open"))
    }

    /// When it ends, in milliseconds since 1970.
    pub(super) fn ends(&self) -> Option<i64> {
        parse_rfc3339(&self.expires_at)
    }
}

fn folder(env: &Env) -> anyhow::Result<PathBuf> {
    Ok(home::folder(env)?.join(FOLDER))
}
