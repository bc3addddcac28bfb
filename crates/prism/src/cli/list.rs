//! `prism list`: the destinations that are written down. Whether they run is `prism status`.

use std::path::{Path, PathBuf};

use prism_core::mcp::Era;
use prism_store::LearnedEra;
use serde::Serialize;

use super::{add, say};
use prism_bridge::drive::destination::{key, still_counts};
use prism_config::{Config, DestinationConfig, Env, SandboxConfig, Transport, file, secret};

/// List the servers
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism list
  prism list --json")]
pub struct ListArgs {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// Config file to read
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A server, for programs.
#[derive(Serialize)]
struct ServerRow {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    era: String,
    era_set: bool,
    process: &'static str,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<SandboxRow>,
}

#[derive(Serialize)]
struct SandboxRow {
    folders: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    network: &'static str,
}

/// What the daemon has found out about its destinations.
struct LearnedEras(Vec<LearnedEra>);

impl ListArgs {
    /// Prints one line for each destination.
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        let here = Path::new("");
        say::line(&self.text(here, env)?);
        say::untrusted(&file::unseen(&add::places(self.config.as_deref(), here, env)?)?);
        Ok(())
    }

    pub(super) fn text(&self, here: &Path, env: &Env) -> anyhow::Result<String> {
        let places = add::places(self.config.as_deref(), here, env)?;
        let Some(path) = places.find()? else {
            return Ok(if self.json { "[]".to_owned() } else { empty(&places.home.join(file::NAME)) });
        };
        // What the file says by itself: a variable that only the daemon has must not stop anybody from looking.
        let config = file::load_written(&path)?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let learned = LearnedEras::read(&places.home.join(prism_daemon::running::DATABASE));
        if self.json {
            return json(&config, &learned, &path);
        }
        if config.destinations.is_empty() {
            return Ok(empty(&path));
        }
        Ok(table(&config, &learned, &path))
    }
}

fn empty(path: &Path) -> String {
    format!(
        "no servers yet (looked in {})\nnext: prism add files -- npx -y @modelcontextprotocol/server-filesystem .",
        path.display()
    )
}

fn json(config: &Config, learned: &LearnedEras, path: &Path) -> anyhow::Result<String> {
    let row = |destination: &DestinationConfig| {
        let is_stdio = destination.http.is_none();
        ServerRow {
            name: destination.name.clone(),
            kind: kind(destination),
            era: destination.era.map(Era::name).or_else(|| learned.era(destination)).unwrap_or("auto").to_owned(),
            era_set: destination.era.is_some(),
            process: destination.process.as_str(),
            file: path.to_string_lossy().into_owned(),
            url: destination.http.as_ref().map(|http| http.shown_url().to_owned()),
            command: is_stdio.then(|| secret::without_secrets(&destination.command)),
            sandbox: destination.sandbox.as_ref().filter(|_| is_stdio).map(sandbox),
        }
    };
    let rows: Vec<ServerRow> = config.destinations.values().map(row).collect();
    Ok(serde_json::to_string_pretty(&serde_json::json!(rows))?)
}

fn table(config: &Config, learned: &LearnedEras, path: &Path) -> String {
    let mut rows = vec![["NAME", "TYPE", "ERA", "PROCESS", "COMMAND OR URL"].map(str::to_owned)];
    for destination in config.destinations.values() {
        let era = match destination.era {
            Some(era) => format!("{} (set)", era.name()),
            None => learned.era(destination).unwrap_or("auto").to_owned(),
        };
        rows.push([
            destination.name.clone(),
            kind(destination).to_owned(),
            era,
            destination.process.as_str().to_owned(),
            match destination.sandbox {
                Some(_) => format!("{} (sandboxed)", say::server(destination)),
                None => say::server(destination),
            },
        ]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2), width(3)];
    let mut text = String::new();
    for [name, kind, era, process, server] in &rows {
        let [a, b, c, d] = widths;
        text.push_str(&format!("{name:a$}  {kind:b$}  {era:c$}  {process:d$}  {server}\n"));
    }
    text.push_str(&format!("from {}", path.display()));
    text
}

fn sandbox(sandbox: &SandboxConfig) -> SandboxRow {
    let SandboxConfig { folders, readable, network } = sandbox.clone();
    SandboxRow { folders, readable, network: network.name() }
}

/// Returns how a destination is reached; `http` where only the daemon will find out which of the two it is.
fn kind(destination: &DestinationConfig) -> &'static str {
    match &destination.http {
        Some(http) => http.transport.map_or("http", Transport::as_str),
        None => "stdio",
    }
}

// === impl LearnedEras ===

impl LearnedEras {
    /// Reads what is remembered. A database that is missing, locked or broken has nothing to say, and is no reason
    /// not to list what is in the config.
    fn read(database: &Path) -> Self {
        Self(prism_store::eras_at(database).unwrap_or_default())
    }

    fn era(&self, destination: &DestinationConfig) -> Option<&'static str> {
        let key = key(destination);
        let learned = self.0.iter().find(|learned| learned.destination == key)?;
        still_counts(learned)?.name()
    }
}
