//! Where the daemon of this home is, and how it is asked how it is: for `prism status` and `prism doctor`, which look and
//! change nothing. Who needs a daemon starts one in `start.rs`.

use std::path::{Path, PathBuf};

use prism_api::status::StatusReport;

use super::reach;
use prism_config::{
    Config, Env, Flags,
    file::{self, ConfigPaths},
    home::{self, Token},
    raw::RawConfig,
    registration::Registration,
};
use prism_mcp::remote::RemoteFailure;

/// Where to look, and with which secret.
pub(super) struct DaemonLocation {
    pub(super) home: PathBuf,
    pub(super) base: String,
    /// `None`: there is none yet, so there cannot be a daemon that knows it.
    pub(super) token: Option<Token>,
    /// What a daemon that lives has registered.
    pub(super) registration: Option<Registration>,
}

/// What came of asking.
pub(super) enum StatusAnswer {
    Status(Box<StatusReport>),
    /// Nobody listens there.
    Nobody,
    /// Somebody does, and wants another token.
    OtherToken,
    /// A Prism that knows no `/status`, or something else altogether.
    Strange(String),
}

/// Finds where the daemon is: as it has registered itself, or else where the config puts it.
pub(super) fn locate(config: Option<&Path>, env: &Env) -> anyhow::Result<DaemonLocation> {
    let folder = home::folder(env)?;
    let registration = Registration::alive(&folder);
    let base = match &registration {
        Some(registration) => registration.url.clone(),
        None => configured(config, &folder, env)?.base_url(),
    };
    let token = home::existing_token(env)?;
    Ok(DaemonLocation { home: folder, base, token, registration })
}

/// The config as it is written: a variable that only the daemon has must not stop anybody from looking.
fn configured(explicit: Option<&Path>, home: &Path, env: &Env) -> anyhow::Result<Config> {
    let places = ConfigPaths { explicit: explicit.map(Path::to_owned), here: PathBuf::new(), home: home.to_owned() };
    let around = RawConfig::default().config(env, &Flags::default())?;
    let Some(mut config) = file::load_counting(&places)? else { return Ok(around) };
    if env.var("PRISM_PORT").is_some() {
        config.port = around.port;
    }
    if env.var("PRISM_ADDRESS").is_some() {
        config.address = around.address;
    }
    Ok(config)
}

impl DaemonLocation {
    pub(super) async fn ask(&self) -> StatusAnswer {
        match reach::get(&self.base, "/status", self.token.as_ref()).await {
            Ok((200, body)) => match serde_json::from_slice(&body) {
                Ok(status) => StatusAnswer::Status(Box::new(status)),
                Err(error) => StatusAnswer::Strange(format!("its answer cannot be read: {error}")),
            },
            Ok((401, _)) => StatusAnswer::OtherToken,
            Ok((status, _)) => StatusAnswer::Strange(format!("it answers HTTP {status}")),
            Err(RemoteFailure::Unreachable { .. }) => StatusAnswer::Nobody,
            Err(failure) => StatusAnswer::Strange(failure.to_string()),
        }
    }
}
