//! The command line: one file per subcommand.

pub mod add;
pub mod daemon;
pub mod list;
pub mod remove;
pub mod run;
pub mod say;
pub mod serve;
mod target;

use clap::{Parser, Subcommand};

use crate::{builtin::demo, config::Env};

/// One daemon between every coding agent and every MCP server.
#[derive(Parser)]
#[command(name = "prism", version, about, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Serve,
}

#[derive(Subcommand)]
enum Command {
    /// Serve every configured destination (the default)
    Serve(serve::Serve),
    /// Bridge one server, with nothing configured
    Run(run::Run),
    /// Add a destination to prism.toml
    Add(add::Add),
    /// List the configured destinations
    List(list::List),
    /// Remove a destination from prism.toml
    Remove(remove::Remove),
    /// A small MCP server on stdio, to try things out with
    DemoServer(demo::Options),
}

impl Cli {
    pub fn run(self) -> anyhow::Result<()> {
        let env = Env::process();
        match self.command.unwrap_or(Command::Serve(self.serve)) {
            Command::Serve(serve) => serve.run(&env),
            Command::Run(run) => run.run(&env),
            Command::Add(add) => add.run(&env),
            Command::List(list) => list.run(&env),
            Command::Remove(remove) => remove.run(&env),
            Command::DemoServer(options) => Ok(demo::run(options)?),
        }
    }
}
