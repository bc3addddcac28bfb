//! The command line: one file per subcommand.

pub mod add;
pub mod bar;
pub mod call;
pub mod daemon;
mod demo_server;
pub mod list;
pub mod probe;
mod reach;
pub mod remove;
pub mod run;
mod running;
pub mod say;
pub mod serve;
mod target;
pub mod tools;
pub mod workspace;

use std::process::ExitCode;

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
    /// What is known of a workspace: look, search, write down
    Workspace(workspace::Workspace),
    /// List the tools of a destination, or of all of them
    Tools(tools::Tools),
    /// Call a tool of a destination
    Call(call::Call),
    /// Exercise a server and print what arrived where
    Probe(probe::Probe),
    /// A small MCP server on stdio, to try things out with
    DemoServer(demo::Options),
}

impl Cli {
    /// Returns the exit code; an error is said by the caller, and is a failure.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let env = Env::process();
        match self.command.unwrap_or(Command::Serve(self.serve)) {
            Command::Serve(serve) => serve.run(&env)?,
            Command::Run(run) => run.run(&env)?,
            Command::Add(add) => add.run(&env)?,
            Command::List(list) => list.run(&env)?,
            Command::Remove(remove) => remove.run(&env)?,
            Command::Tools(tools) => return tools.run(&env),
            Command::Call(call) => return call.run(&env),
            Command::Probe(probe) => return probe.run(&env),
            Command::Workspace(workspace) => workspace.run(&env)?,
            Command::DemoServer(options) => demo_server::run(options, &env)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
