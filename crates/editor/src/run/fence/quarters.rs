//! Quarters for MCP servers: the sandbox that commands of holders run in, with folders that last. What of the system and of
//! toolchains is there is what holders have, but for the person's caches: a server's are its own, and filled by it alone.
//! What else is open the person says; where that cannot be had, nobody moves in.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prism_os::{
    fence::SandboxPolicy,
    root::FolderHandle,
    sandbox::{Bubblewrap, NetworkAccess},
};

use super::{
    Usual,
    temporary::{TEMPORARY, laid_out},
    usual::is_above,
};
use crate::{roots::ClosedPaths, run::command::without_secrets, settings::EditorSettings};

/// Where servers live that run in a sandbox. One for the daemon.
#[derive(Debug)]
pub struct ServerSandboxes {
    /// Where bubblewrap is looked for.
    env: BTreeMap<OsString, OsString>,
    home: Option<PathBuf>,
    inner: Option<PathBuf>,
    /// Each has a folder of its own in this.
    base: PathBuf,
    closed: ClosedPaths,
    ports: Mutex<BTreeSet<u16>>,
    /// What was found. What was not is looked for again: somebody may have installed it.
    sandbox: Mutex<Option<Arc<Bubblewrap>>>,
    /// Whose temporary files of another daemon's time are gone.
    swept: Mutex<BTreeSet<String>>,
}

/// Who moves in, and what is to be open there beside the usual.
#[derive(Clone, Copy, Debug)]
pub struct SandboxRequest<'a> {
    /// Fit to name a folder.
    pub name: &'a str,
    /// Its program, as the person has written it.
    pub program: &'a str,
    /// Where it is to start; in its own home folder if `None`.
    pub cwd: Option<&'a Path>,
    /// Folders that it may write.
    pub folders: &'a [PathBuf],
    /// Files and folders that it may read.
    pub readable: &'a [PathBuf],
    pub network: NetworkAccess,
}

/// A place to live.
#[derive(Debug)]
pub struct ServerSandbox {
    pub fence: SandboxPolicy,
    /// Where it starts, inside.
    pub cwd: PathBuf,
}

/// Why nobody can move in.
#[derive(Debug, thiserror::Error)]
pub enum ServerSandboxError {
    #[error("it is to run in a sandbox, and there is none: {why}. Or take `sandbox` out of its settings")]
    NoSandbox { why: String },
    #[error("the folder {} cannot be made: {source}", path.display())]
    Make { path: PathBuf, source: io::Error },
    #[error("its sandbox is to have {}, which cannot be opened: {source}; make it, or take it out of its settings", path.display())]
    Absent { path: PathBuf, source: io::Error },
    #[error("its sandbox is to have {}, which is reached through a link; write {} in its place", path.display(), real.display())]
    Linked { path: PathBuf, real: PathBuf },
    #[error("its sandbox is to have {}, which is Prism's own, with its secrets; take it out of its settings", path.display())]
    Closed { path: PathBuf },
    #[error("its sandbox is to have {}, and your home folder with it; name the folders in there that it needs", path.display())]
    Home { path: PathBuf },
}

/// Variables that say where a cache is, if it is not in its usual place, which is beneath the home folder. Elsewhere nothing is
/// there to be written.
const CACHES: [&str; 5] = ["DENO_DIR", "NPM_CONFIG_CACHE", "UV_CACHE_DIR", "XDG_CACHE_HOME", "npm_config_cache"];

/// Variables that name certificates of the person's own: behind a company's proxy nothing is reached without. They are no secrets.
const CERTIFICATES: [&str; 10] = [
    "AWS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "NIX_SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

// === impl ServerSandboxes ===

impl ServerSandboxes {
    /// `env` is the daemon's, `base` a folder that is made when it is needed, and `closed` what no server touches, whatever is
    /// said of it.
    pub fn new(
        settings: &EditorSettings,
        env: BTreeMap<OsString, OsString>,
        base: PathBuf,
        closed: Vec<PathBuf>,
    ) -> Arc<Self> {
        Arc::new(Self {
            env,
            home: settings.home.clone(),
            inner: settings.inner.clone(),
            base,
            closed: ClosedPaths::new(closed),
            ports: Mutex::default(),
            sandbox: Mutex::default(),
            swept: Mutex::default(),
        })
    }

    /// Closes these files to every server that starts from now on, and no others.
    pub fn close_files(&self, files: &[PathBuf]) {
        self.closed.close_files(files);
    }

    /// Has no server that starts from now on connect to a port, whatever network it has.
    pub fn keep_from(&self, port: u16) {
        lock(&self.ports).insert(port);
    }

    /// What of an environment is of use in there: what leads out is not, nor what is Prism's.
    pub fn variables(&self, env: BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
        let mut env = without_secrets(env);
        env.extend(["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), "/tmp".into())));
        let is_beneath = |path: &OsString| self.home.as_deref().is_some_and(|home| Path::new(path).starts_with(home));
        env.retain(|name, path| !CACHES.iter().any(|cache| name == cache) || is_beneath(path));
        if let Some(home) = &self.home {
            // `uvx` locks the folder of the person's tools before it looks into it, and that one is only for reading.
            env.insert("UV_TOOL_DIR".into(), home.join(".cache/uv-tools").into());
        }
        env
    }

    /// A place for a server whose environment this is. Blocks: it makes folders, and the first time it looks for bubblewrap.
    pub fn assign(
        &self,
        lodger: &SandboxRequest<'_>,
        env: &BTreeMap<OsString, OsString>,
    ) -> Result<ServerSandbox, ServerSandboxError> {
        let held = lodger.folders.iter().map(|folder| self.held(folder)).collect::<Result<_, _>>()?;
        for path in lodger.readable {
            self.fit(path)?;
        }
        let mut readable = lodger.readable.to_vec();
        // Whoever is at home starts in its own.
        if let Some(cwd) = lodger.cwd.filter(|cwd| !fs::canonicalize(cwd).is_ok_and(|real| self.is_above_home(&real))) {
            self.fit(cwd)?;
            readable.push(cwd.to_owned());
        }
        // A program that was written with its folder may lie anywhere.
        let program = Some(PathBuf::from(lodger.program));
        let certificates = CERTIFICATES.iter().filter_map(|name| env.get(OsStr::new(name)).map(PathBuf::from));
        let named = program.into_iter().chain(certificates).filter(|path| path.is_absolute());
        readable.extend(named.filter(|path| self.fit(path).is_ok()));
        let sandbox = self.sandbox()?;
        let settings = EditorSettings { home: self.home.clone(), readable, ..EditorSettings::default() };
        let usual = Usual::new(&settings, env, self.closed.folders().to_vec());
        let folder = self.base.join(lodger.name);
        self.sweep(lodger.name, &folder);
        let room = laid_out(&folder, &sandbox, &usual, lodger.network)
            .map_err(|source| ServerSandboxError::Make { path: folder, source })?;
        let at_home = || self.home.clone().filter(|home| home.is_dir()).unwrap_or_else(|| PathBuf::from("/tmp"));
        let cwd = lodger.cwd.map_or_else(at_home, Path::to_owned);
        let closed = usual.closed.into_iter().chain(self.closed.files()).collect();
        let fence = SandboxPolicy { read: usual.read, write: usual.write, held, exec: None, closed, room: Some(room) };
        Ok(ServerSandbox { fence, cwd })
    }

    fn sandbox(&self) -> Result<Arc<Bubblewrap>, ServerSandboxError> {
        let mut found = lock(&self.sandbox);
        let sandbox = match &*found {
            Some(sandbox) => sandbox.clone(),
            None => {
                let inner = self.inner.as_deref().ok_or("the program of Prism itself is not found");
                let sandbox = inner
                    .map_err(str::to_owned)
                    .and_then(|inner| Bubblewrap::find(&self.env, self.home.as_deref(), inner))
                    .map_err(|why| ServerSandboxError::NoSandbox { why })?;
                found.insert(sandbox).clone()
            }
        };
        lock(&self.ports).iter().for_each(|port| sandbox.keep_from(*port));
        Ok(sandbox)
    }

    /// Opens a folder that may be written.
    fn held(&self, folder: &Path) -> Result<FolderHandle, ServerSandboxError> {
        self.fit(folder)?;
        FolderHandle::open(folder).map_err(|error| {
            let source = io::Error::other(error.to_string());
            ServerSandboxError::Absent { path: folder.to_owned(), source }
        })
    }

    /// Refuses what no server is to have, by where it really is; and a folder that is named by a link: what is closed in there is
    /// known by its own name.
    fn fit(&self, path: &Path) -> Result<(), ServerSandboxError> {
        let named = || path.to_owned();
        let real = fs::canonicalize(path).map_err(|source| ServerSandboxError::Absent { path: named(), source })?;
        if self.closed.holds(&real) {
            return Err(ServerSandboxError::Closed { path: named() });
        }
        if self.is_above_home(&real) {
            return Err(ServerSandboxError::Home { path: named() });
        }
        if real != path && real.is_dir() {
            return Err(ServerSandboxError::Linked { path: named(), real });
        }
        Ok(())
    }

    fn is_above_home(&self, real: &Path) -> bool {
        let home = self.home.as_deref().map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
        is_above(real, home.as_deref())
    }

    /// Removes what the servers of another daemon have left of temporary files: nobody uses it any more.
    fn sweep(&self, name: &str, folder: &Path) {
        // Held all the while: who comes second must not lose what is made for him.
        let mut swept = lock(&self.swept);
        if swept.insert(name.to_owned()) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_dir_all(folder.join(TEMPORARY));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
