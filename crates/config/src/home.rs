//! Prism's folder, `~/.prism`, and the two secrets in it: one opens the MCP endpoints (D-03, D-04), the other lets a
//! person decide what agents may do. What else lies in the folder belongs to those who put it there.

use std::{
    fmt,
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use prism_os::process::user_id;
use subtle::ConstantTimeEq;

use crate::Env;

#[cfg(test)]
mod tests;

/// The folder. It exists.
#[derive(Clone, Debug)]
pub struct Home {
    path: PathBuf,
    api_key: Option<Token>,
    management_key: Option<Token>,
    /// The mode that it had while others could look into it.
    tightened: Option<u32>,
}

/// The secret that clients show. Its `Debug` does not.
#[derive(Clone)]
pub struct Token(String);

/// Where a token came from; worth a line to the person who starts the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    /// `PRISM_API_KEY`.
    Environment,
    /// The file was there, and nobody else could read it.
    File,
    /// There was none, so it was made.
    Made,
}

/// Why there is no home, or no token in it.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("neither PRISM_HOME nor HOME is set\n  fix: export PRISM_HOME=/some/folder")]
    Nowhere,
    #[error("cannot create the folder {}\n  fix: export PRISM_HOME=/some/other/folder", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("{} is not a folder\n  fix: move it away, or export PRISM_HOME=/some/other/folder", path.display())]
    NotAFolder { path: PathBuf },
    #[error("cannot read the token in {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write the token to {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "others could read the token in {} (mode {mode:04o}), so they may know it\n  \
         fix: rm {}, and a new one is made; or, if nobody else was on this machine: chmod 600 {}",
        path.display(), path.display(), path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error(
        "the token in {} belongs to another user (uid {uid})\n  fix: rm {}, and a new one is made",
        path.display(), path.display()
    )]
    NotOurs { path: PathBuf, uid: u32 },
    #[error(
        "others can write to the folder {} (mode {mode:04o}), so nothing in it can be trusted\n  \
         fix: chmod 700 {}, and look at what is in it; or export PRISM_HOME=/some/other/folder",
        path.display(), path.display()
    )]
    Open { path: PathBuf, mode: u32 },
    #[error(
        "the folder {} belongs to another user (uid {uid})\n  \
         fix: export PRISM_HOME=/some/folder of your own, or run this as that user",
        path.display()
    )]
    Foreign { path: PathBuf, uid: u32 },
    #[error("cannot take the folder {} away from other users (mode {mode:04o})", path.display())]
    Tighten { path: PathBuf, mode: u32, source: io::Error },
    #[error("{} holds no token: one word of visible ASCII\n  fix: rm {}, and a new one is made", path.display(), path.display())]
    NoToken { path: PathBuf },
    #[error("PRISM_API_KEY is not one word of visible ASCII, so no client could send it in a header")]
    ApiKey,
    #[error("MCP_TOKEN is not one word of visible ASCII, so nobody could send it in a header")]
    ManagementKey,
    #[error(
        "MCP_TOKEN and PRISM_API_KEY are the same, so every agent could approve its own requests\n  \
         fix: give MCP_TOKEN another value, or none: then it is made"
    )]
    OneSecret,
    #[error("the system gives no random bytes")]
    Random { source: getrandom::Error },
}

/// The file that holds the secret.
pub const TOKEN_FILE: &str = "http-mcp-token";

/// The file that holds the one that agents do not have.
pub const MANAGEMENT_FILE: &str = "management-token";

/// The file that holds the one that editors show: agents, who have the clients', must not be taken for an editor.
pub const PLUGIN_FILE: &str = "plugin-token";

/// Names the folder, whether it is there or not.
pub fn folder(env: &Env) -> Result<PathBuf, HomeError> {
    let path = match (env.var("PRISM_HOME"), env.var("HOME")) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(home)) => Path::new(home).join(".prism"),
        (None, None) => return Err(HomeError::Nowhere),
    };
    std::path::absolute(&path).map_err(|source| HomeError::Create { path, source })
}

/// The variable that holds it instead.
const MANAGEMENT_VARIABLE: &str = "MCP_TOKEN";

/// Returns the management secret if there is one, for those who call a daemon that runs.
pub fn existing_management(env: &Env) -> Result<Option<Token>, HomeError> {
    match env.var(MANAGEMENT_VARIABLE) {
        Some(key) => key.to_str().and_then(Token::read).map(Some).ok_or(HomeError::ManagementKey),
        None => Ok(read_token(&folder(env)?.join(MANAGEMENT_FILE))?.map(|(token, _)| token)),
    }
}

/// Returns the token if there is one, and makes and mends nothing: for those who only look.
pub fn existing_token(env: &Env) -> Result<Option<Token>, HomeError> {
    match env.var("PRISM_API_KEY") {
        Some(key) => key.to_str().and_then(Token::read).map(Some).ok_or(HomeError::ApiKey),
        None => Ok(read_token(&folder(env)?.join(TOKEN_FILE))?.map(|(token, _)| token)),
    }
}

// === impl Home ===

impl Home {
    /// Finds the folder, and makes it where it is missing, for its owner alone. One that others can only look into is
    /// closed to them; one that they could have changed is refused.
    pub fn find(env: &Env) -> Result<Self, HomeError> {
        let path = folder(env)?;
        match DirBuilder::new().recursive(true).mode(0o700).create(&path) {
            Ok(()) => {}
            Err(_) if path.exists() => return Err(HomeError::NotAFolder { path }),
            Err(source) => return Err(HomeError::Create { path, source }),
        }
        let tightened = close_to_others(&path)?;
        let key = |name: &str, wrong: HomeError| match env.var(name) {
            Some(key) => key.to_str().and_then(Token::read).map(Some).ok_or(wrong),
            None => Ok(None),
        };
        let api_key = key("PRISM_API_KEY", HomeError::ApiKey)?;
        let management_key = key(MANAGEMENT_VARIABLE, HomeError::ManagementKey)?;
        Ok(Self { path, api_key, management_key, tightened })
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the mode that the folder had until now, if others could look into it.
    #[must_use]
    pub fn tightened(&self) -> Option<u32> {
        self.tightened
    }

    /// Returns the token, which is made at first use. Two starts at once get the same one.
    pub fn token(&self) -> Result<(Token, TokenOrigin), HomeError> {
        match &self.api_key {
            Some(key) => Ok((key.clone(), TokenOrigin::Environment)),
            None => self.kept(TOKEN_FILE),
        }
    }

    /// Returns the management secret in the same way. It is never the clients' token. One from the environment is
    /// written to the file: the commands of the person read it there, who has not that variable in every terminal.
    pub fn management(&self) -> Result<Token, HomeError> {
        let secret = match &self.management_key {
            Some(key) => key.clone(),
            None => self.kept(MANAGEMENT_FILE)?.0,
        };
        let (clients, _) = self.token()?;
        if clients.matches(secret.expose().as_bytes()) {
            return Err(HomeError::OneSecret);
        }
        let path = self.path.join(MANAGEMENT_FILE);
        let is_written = || Ok(read_token(&path)?.is_some_and(|(kept, _)| kept.matches(secret.expose().as_bytes())));
        if self.management_key.is_some() && !is_written()? {
            write_token(&self.path, &path, &secret, |beside, path| fs::rename(beside, path))?;
        }
        Ok(secret)
    }

    /// Returns what editors show, in the same way. They read it from its file.
    pub fn plugin(&self) -> Result<Token, HomeError> {
        Ok(self.kept(PLUGIN_FILE)?.0)
    }

    /// The secret in a file, which is made if it is not there.
    fn kept(&self, name: &str) -> Result<(Token, TokenOrigin), HomeError> {
        let path = self.path.join(name);
        if let Some(found) = read_token(&path)? {
            return Ok(found);
        }
        let token = Token::random()?;
        // Unlike a rename, a link does not replace what is already there.
        if write_token(&self.path, &path, &token, |beside, path| fs::hard_link(beside, path))? {
            return Ok((token, TokenOrigin::Made));
        }
        // Another start was faster, and its file is complete: it appeared under its name in one step.
        read_token(&path)?.ok_or(HomeError::NoToken { path })
    }
}

fn mode(metadata: &Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

fn close_to_others(path: &Path) -> Result<Option<u32>, HomeError> {
    let metadata = fs::metadata(path).map_err(|source| HomeError::Create { path: path.to_owned(), source })?;
    let mode = mode(&metadata);
    if metadata.uid() != user_id() {
        return Err(HomeError::Foreign { path: path.to_owned(), uid: metadata.uid() });
    }
    if mode & 0o022 != 0 {
        return Err(HomeError::Open { path: path.to_owned(), mode });
    }
    if mode & 0o077 == 0 {
        return Ok(None);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(|source| HomeError::Tighten {
        path: path.to_owned(),
        mode,
        source,
    })?;
    Ok(Some(mode))
}

fn read_token(path: &Path) -> Result<Option<(Token, TokenOrigin)>, HomeError> {
    let cannot_read = |source| HomeError::Read { path: path.to_owned(), source };
    // A pipe of that name would be waited for, for ever. (L9)
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(HomeError::NoToken { path: path.to_owned() });
    }
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(cannot_read(source)),
    };
    // Mode and text are those of the open file, so nobody can swap it in between.
    let metadata = file.metadata().map_err(cannot_read)?;
    if metadata.uid() != user_id() {
        return Err(HomeError::NotOurs { path: path.to_owned(), uid: metadata.uid() });
    }
    // To take it away now would not make those forget it who have read it.
    if mode(&metadata) & 0o077 != 0 {
        return Err(HomeError::Exposed { path: path.to_owned(), mode: mode(&metadata) });
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(cannot_read)?;
    match Token::read(&text) {
        Some(token) => Ok(Some((token, TokenOrigin::File))),
        None => Err(HomeError::NoToken { path: path.to_owned() }),
    }
}

/// Writes the token to a file beside its own and has it put in place; returns `false` if what is there was to stay.
fn write_token(
    folder: &Path,
    path: &Path,
    token: &Token,
    put: impl FnOnce(&Path, &Path) -> io::Result<()>,
) -> Result<bool, HomeError> {
    let cannot_write = |source| HomeError::Write { path: path.to_owned(), source };
    let beside = folder.join(format!(".token.{}", hex(&random::<8>()?)));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(format!("{}\n", token.expose()).as_bytes())?;
        file.sync_all()?;
        put(&beside, path)
    })();
    let _ = fs::remove_file(&beside);
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(cannot_write(source)),
    }
}

fn random<const N: usize>() -> Result<[u8; N], HomeError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|source| HomeError::Random { source })?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// === impl Token ===

impl Token {
    /// Returns the secret, to be sent or written down; never to be logged.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not depend on where the two differ (D-04).
    #[must_use]
    pub fn matches(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }

    /// Makes a new one.
    pub fn random() -> Result<Self, HomeError> {
        Ok(Self(hex(&random::<32>()?)))
    }

    /// Takes a token from a text, if it is one that a header can carry. An empty one would let everybody in.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
