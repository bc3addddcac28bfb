//! What `prism serve` and `prism run` say alike: where the daemon listens, who reaches it, how it is typed.

use std::path::Path;

use prism_config::{
    Config, Env,
    home::{Home, TokenOrigin},
};
use tracing::level_filters::LevelFilter;

use super::{add::is_program, say};

/// How much the log says.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// How much is logged to stderr: off, error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub(super) log: LevelFilter,
}

impl LogArgs {
    /// Only what is not as it should be, for a daemon that nobody asked for by its name.
    pub(super) fn warnings() -> Self {
        Self { log: LevelFilter::WARN }
    }
}

/// Where it listens, in words: on every address is not on this machine only. (R-12)
pub fn listening(config: &Config, url: &str) -> String {
    match config.address.is_loopback() {
        true => format!("listening on {url}"),
        false => {
            let address = std::net::SocketAddr::new(config.address, config.port);
            let which = if config.address.is_unspecified() { ", every address of this machine" } else { "" };
            format!("listening on http://{address}{which}; from here {url}")
        }
    }
}

/// Says what it means that other machines reach it.
pub fn warn_if_exposed(config: &Config, authenticated: bool) {
    if config.address.is_loopback() {
        return;
    }
    let who = match authenticated {
        true => "whoever hears the traffic has the token with it, and can then use every server as you",
        false => "and nobody is asked for a token: everybody there can use every server as you",
    };
    say::warning(&format!(
        "other machines can reach {}, without TLS: {who}\n  \
         fix: address = \"127.0.0.1\", and a tunnel (ssh -L {}:127.0.0.1:{}) or a proxy with TLS in front",
        config.address, config.port, config.port
    ));
}

/// Says where the token is, or that there is none, and returns how `claude mcp add` is told of it.
pub fn introduce_token(origin: Option<&TokenOrigin>, token: &Path) -> String {
    let (place, shown) = match origin {
        None => {
            say::warning("no authentication: every program on this machine can use it");
            return String::new();
        }
        Some(TokenOrigin::Environment) => ("from PRISM_API_KEY".to_owned(), "$PRISM_API_KEY".to_owned()),
        Some(_) => (token.display().to_string(), format!("$(cat {})", token.display())),
    };
    say::line(&format!("token        {place}"));
    format!(r#" --header "Authorization: Bearer {shown}""#)
}

/// How this program is to be typed: by its name if the shell would find it, else by its path.
pub fn program(env: &Env) -> String {
    let own = std::env::current_exe().unwrap_or_default();
    let found = is_program("prism", None, env);
    match own.to_str() {
        Some(path) if !found => {
            let here =
                std::env::current_dir().ok().and_then(|here| Some(own.strip_prefix(here).ok()?.to_str()?.to_owned()));
            here.unwrap_or_else(|| path.to_owned())
        }
        _ => "prism".to_owned(),
    }
}

/// The environment names the folder; it is made where it is missing.
pub fn home(env: &Env) -> anyhow::Result<Home> {
    let home = Home::find(env)?;
    if let Some(mode) = home.tightened() {
        let path = home.path().display();
        say::warning(&format!("others could look into {path} (mode {mode:04o}); now it is for its owner alone"));
    }
    Ok(home)
}
