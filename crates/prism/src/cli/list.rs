//! `prism list`: the destinations that are written down. Whether they run is `prism status`.

use std::path::{Path, PathBuf};

use super::{add, say};
use crate::config::{Config, Env, file};

/// List the destinations
#[derive(Debug, clap::Args)]
pub struct List {
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// Config file to read
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl List {
    /// Prints one line for each destination.
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        say::line(&self.text(Path::new(""), env)?);
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
        if self.json {
            return json(&config, &path);
        }
        if config.destinations.is_empty() {
            return Ok(empty(&path));
        }
        Ok(table(&config, &path))
    }
}

fn empty(path: &Path) -> String {
    format!(
        "no destinations yet (looked in {})\nnext: prism add files -- npx -y @modelcontextprotocol/server-filesystem .",
        path.display()
    )
}

fn json(config: &Config, path: &Path) -> anyhow::Result<String> {
    let rows: Vec<serde_json::Value> = config
        .destinations
        .values()
        .map(|destination| {
            serde_json::json!({
                "name": destination.name,
                "process": destination.process.as_str(),
                "command": destination.command,
                "file": path.to_string_lossy(),
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)?)
}

fn table(config: &Config, path: &Path) -> String {
    let names = config.destinations.keys().map(String::len);
    let width = names.max().unwrap_or_default().max("NAME".len());
    let mut text = format!("{:width$}  {:13}  COMMAND\n", "NAME", "PROCESS");
    for destination in config.destinations.values() {
        text.push_str(&format!(
            "{:width$}  {:13}  {}\n",
            destination.name,
            destination.process.as_str(),
            say::command(&destination.command)
        ));
    }
    text.push_str(&format!("from {}", path.display()));
    text
}
