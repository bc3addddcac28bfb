//! What a child or a connection is given when it starts: its environment, or its headers, with all secrets looked up; and a
//! place in a sandbox, if it is to have one.
//!
//! Most of that is known at once. What is not, a file, a keyring, the PATH of the user's login shell, a sandbox, is waited
//! for in a task of its own, while the link goes on.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    sync::Arc,
};

use prism_editor::{SandboxRequest, ServerSandbox, ServerSandboxError, ServerSandboxes};
use prism_os::{
    login,
    program::{self, ProgramLookupError},
};
use tokio::{sync::OnceCell, task::spawn_blocking};
use tracing::{debug, warn};

use prism_config::{
    DestinationConfig, Env, EnvInheritance,
    http::is_header_value,
    secret::{self, SecretError},
};
use prism_telemetry::KnownSecrets;

/// The daemon's environment, and what its children get of it. One for all of them.
pub struct Environment {
    env: Env,
    /// Whether the user's login shell is to be asked for its PATH.
    asks_shell: bool,
    /// What it said, once it was asked.
    login_path: OnceCell<Option<OsString>>,
    /// What was looked up so far: the log knows it by this.
    secrets: Arc<KnownSecrets>,
    quarters: Arc<ServerSandboxes>,
}

/// What a child or a connection is given. It holds secrets, so it has no `Debug`.
pub struct LaunchEnv {
    /// The whole environment of a child.
    pub variables: BTreeMap<OsString, OsString>,
    /// The configured headers of a connection.
    pub headers: Vec<(String, String)>,
    /// Where a child lives that is to run in a sandbox.
    pub lodging: Option<ServerSandbox>,
}

/// Why there is something that it cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum LaunchEnvError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Quarters(#[from] ServerSandboxError),
}

const PATH: &str = "PATH";

impl Environment {
    /// With `asks_shell`, the user's login shell will be asked for its PATH, once.
    pub fn new(env: Env, asks_shell: bool, quarters: Arc<ServerSandboxes>) -> Arc<Self> {
        Arc::new(Self { env, asks_shell, login_path: OnceCell::new(), secrets: Arc::default(), quarters })
    }

    /// Where servers live that run in a sandbox.
    pub fn quarters(&self) -> &ServerSandboxes {
        &self.quarters
    }

    /// The values that were looked up so far.
    pub fn secrets(&self) -> &Arc<KnownSecrets> {
        &self.secrets
    }

    /// Asks the shell now, behind everything else, so that no child has to wait for it later; and then says of which
    /// destination the program is not there.
    pub fn look_ahead(self: &Arc<Self>, destinations: &BTreeMap<String, DestinationConfig>) {
        let own: Vec<DestinationConfig> =
            destinations.values().filter(|destination| self.wants_login_path(destination)).cloned().collect();
        if own.is_empty() {
            return;
        }
        let environment = self.clone();
        tokio::spawn(async move {
            environment.login_path().await;
            for destination in own {
                if let Some(absent) = environment.absent(&destination) {
                    warn!(destination = destination.name, "The server cannot be started: {absent}");
                }
            }
        });
    }

    /// Why a destination's program cannot be started, as far as can be seen without starting it.
    pub fn absent(&self, destination: &DestinationConfig) -> Option<ProgramLookupError> {
        let wanted = destination.command.first()?;
        if self.wants_login_path(destination) && self.login_path.get().is_none() {
            return None;
        }
        let own = destination.env.get(PATH).map(OsString::from);
        let path = own.or_else(|| self.path()).unwrap_or_default();
        program::find(wanted, destination.cwd.as_deref(), &path).err()
    }

    /// What a destination's server is given, if nothing has to be waited for.
    pub fn at_once(&self, destination: &DestinationConfig) -> Option<Result<LaunchEnv, LaunchEnvError>> {
        let headers = destination.http.iter().flat_map(|http| http.headers.values());
        let mut references = destination
            .env
            .values()
            .filter_map(|value| secret::of_variable(value))
            .chain(headers.filter_map(|value| secret::of_header(value)));
        let waits = references.any(|reference| reference.blocks());
        let waits_for_shell = self.wants_login_path(destination) && self.login_path.get().is_none();
        (!waits && !waits_for_shell && destination.sandbox.is_none()).then(|| self.look_up(destination))
    }

    /// What a destination's server is given.
    pub async fn given(self: Arc<Self>, destination: DestinationConfig) -> Result<LaunchEnv, LaunchEnvError> {
        if self.wants_login_path(&destination) {
            self.login_path().await;
        }
        let looked_up = spawn_blocking(move || self.look_up(&destination)).await;
        looked_up.unwrap_or_else(|error| Err(SecretError::NoKeyring { why: error.to_string() }.into()))
    }

    fn wants_login_path(&self, destination: &DestinationConfig) -> bool {
        self.asks_shell && destination.http.is_none() && !destination.env.contains_key(PATH)
    }

    async fn login_path(&self) -> Option<&OsStr> {
        let ask = || async {
            let shell = login::shell(self.env.var("SHELL"))?;
            let env = self.env.inherited(&EnvInheritance::All);
            let asked = shell.clone();
            let path = spawn_blocking(move || login::path(&asked, &env, login::PATIENCE)).await.ok().flatten();
            match &path {
                Some(_) => debug!(shell = %shell.display(), "Asked the login shell for its PATH"),
                None => warn!(
                    shell = %shell.display(),
                    "The login shell does not say its PATH; children get the daemon's. `login_path = false` asks no more"
                ),
            }
            path
        };
        self.login_path.get_or_init(ask).await.as_deref()
    }

    /// The PATH of children, as far as it is known.
    fn path(&self) -> Option<OsString> {
        let own = self.env.var(PATH);
        match (self.login_path.get().and_then(Option::as_deref), own) {
            (Some(login), own) => Some(login::merged(login, own.unwrap_or_default())),
            (None, own) => own.map(OsStr::to_owned),
        }
    }

    fn look_up(&self, destination: &DestinationConfig) -> Result<LaunchEnv, LaunchEnvError> {
        let mut given = LaunchEnv { variables: BTreeMap::new(), headers: Vec::new(), lodging: None };
        if let Some(http) = &destination.http {
            for (name, value) in &http.headers {
                let is_secret = secret::of_header(value).is_some();
                let value = secret::resolve_header(value, &self.env)?;
                if is_secret {
                    self.secrets.note(&value);
                }
                if !is_header_value(&value) {
                    return Err(SecretError::Header { name: name.clone() }.into());
                }
                given.headers.push((name.clone(), value));
            }
            return Ok(given);
        }
        given.variables = self.env.inherited(&destination.inherit_env);
        if destination.sandbox.is_some() {
            given.variables = self.quarters.variables(given.variables);
        }
        if let Some(path) = self.path().filter(|_| self.wants_login_path(destination)) {
            given.variables.insert(PATH.into(), path);
        }
        for (name, value) in &destination.env {
            let resolved = secret::resolve(value, &self.env)?;
            if secret::of_variable(value).is_some() {
                self.secrets.note(&resolved);
            }
            given.variables.insert(name.into(), resolved.into());
        }
        if let Some(sandbox) = &destination.sandbox {
            let lodger = SandboxRequest {
                name: &destination.name,
                program: destination.command.first().map(String::as_str).unwrap_or_default(),
                cwd: destination.cwd.as_deref(),
                folders: &sandbox.folders,
                readable: &sandbox.readable,
                network: sandbox.network,
            };
            given.lodging = Some(self.quarters.assign(&lodger, &given.variables)?);
        }
        Ok(given)
    }
}
