//! The command line: one file per subcommand.

pub mod access;
pub mod acp;
pub mod add;
pub mod agent;
pub mod approve;
pub mod audit;
pub mod bar;
pub mod call;
mod columns;
pub mod completions;
mod configs;
pub mod confirm;
pub mod console;
pub mod daemon;
mod demo_server;
pub mod doctor;
mod gate;
pub mod grants;
mod help;
pub mod import;
pub mod install;
pub mod list;
mod locate;
pub mod logs;
pub mod man;
pub mod mesh;
pub mod migrate;
mod moments;
pub mod probe;
mod reach;
pub mod remove;
pub mod requests;
pub mod run;
pub mod serve;
pub mod service;
pub mod signal;
pub mod signals;
pub mod start;
pub mod status;
pub mod stdio;
pub mod stop;
mod talk;
mod target;
pub mod tools;
pub mod trust;
pub mod uninstall;
mod verbs;
mod visible;
pub mod wait;
pub mod wake;
pub mod workspace;

use std::process::ExitCode;

use clap::{FromArgMatches, Parser, Subcommand};

use crate::demo;
use prism_config::Env;

use crate::say;

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
    /// Run the daemon here (the default)
    Serve(serve::Serve),
    /// Stop the daemon
    Stop(stop::Stop),
    /// Stop the daemon and start it again in the background
    Restart(stop::Restart),
    /// Show the log of the daemon in the background
    Logs(logs::Logs),
    /// Start the daemon at login, and restart it if it stops
    Service(service::Service),
    /// Bridge one server, with nothing configured
    Run(run::Run),
    /// Add a server
    Add(add::Add),
    /// List the servers
    List(list::List),
    /// Show how the daemon, its servers and its sessions are
    Status(status::Status),
    /// Check what goes wrong in practice, and say what to type
    Doctor(doctor::Doctor),
    /// Remove a server
    Remove(remove::Remove),
    /// Look at a project's config, and let it count
    Trust(trust::Trust),
    /// Add Prism to Cursor, Claude Code, VS Code, …
    Install(install::Install),
    /// Remove Prism from them; restores each file exactly
    Uninstall(uninstall::Uninstall),
    /// Take over the servers in other programs' configs
    Import(import::Import),
    /// Rewrite SSE entries in those configs to Streamable HTTP
    Migrate(migrate::Migrate),
    /// Read, search and write a project's notes for agents
    Workspace(workspace::Workspace),
    /// Send, answer and read signals
    Signal(signal::Signal),
    /// Show the signals of the mesh, newest first
    Signals(signals::Signals),
    /// Wait until a signal comes; as a hook, wake an agent
    Wait(wait::Wait),
    /// Open the console in a browser: decide, see, revoke
    Console(console::Console),
    /// Show the mesh as it changes: agents, obligations, bells
    Mesh(mesh::Overview),
    /// See how agents can be woken
    Wake(wake::Wake),
    /// Show who asks for access and waits for you
    Requests(requests::Requests),
    /// Give an agent the access it asks for, or a part of it
    Approve(approve::Approve),
    /// Refuse an agent the access it asks for
    Deny(approve::Deny),
    /// Show the grants that agents hold
    Grants(grants::Grants),
    /// Take grants back; their sockets are closed at once
    Revoke(grants::Revoke),
    /// Show what agents want to do that you must see first
    Confirmations(confirm::Confirmations),
    /// Let an agent do what it wants to, or not
    Confirm(confirm::Confirm),
    /// Ask for access, and see what can be asked for
    Access(access::Access),
    /// Work in granted folders from the shell, as a sub-agent does
    Agent(agent::Agent),
    /// Read the audit log, and check that nobody changed it
    Audit(audit::Audit),
    /// List the tools of a server, or of all
    Tools(tools::Tools),
    /// Call a tool
    Call(call::Call),
    /// Test a server and trace every message
    Probe(probe::Probe),
    /// Be an MCP server on stdio, for clients that cannot speak HTTP
    Stdio(stdio::Stdio),
    /// Wrap an ACP agent so that signals can wake it
    Acp(acp::Acp),
    /// Run a small MCP server to try things out with
    DemoServer(demo::Options),
    /// Print shell completions
    Completions(completions::Completions),
    /// Show the manual page
    Man(man::Man),
}

impl Cli {
    /// Reads what was typed. Where that is wrong, or a question for help, it is said and the process ends.
    #[must_use]
    pub fn read() -> Self {
        let matches = help::command().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Returns the exit code; an error is said by the caller, and is a failure.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let env = Env::process();
        match self.command.unwrap_or(Command::Serve(self.serve)) {
            Command::Serve(serve) => return serve.run(&env),
            Command::Stop(stop) => return stop.run(&env),
            Command::Restart(restart) => return restart.run(&env),
            Command::Logs(logs) => return logs.run(&env),
            Command::Service(service) => return service.run(&env),
            Command::Run(run) => run.run(&env)?,
            Command::Add(add) => return add.run(&env),
            Command::List(list) => list.run(&env)?,
            Command::Remove(remove) => remove.run(&env)?,
            Command::Trust(trust) => return trust.run(&env),
            Command::Status(status) => return status.run(&env),
            Command::Doctor(doctor) => return doctor.run(&env),
            Command::Install(install) => return install.run(&env),
            Command::Uninstall(uninstall) => return uninstall.run(&env),
            Command::Import(import) => return import.run(&env),
            Command::Migrate(migrate) => return migrate.run(&env),
            Command::Signal(signal) => return signal.run(&env),
            Command::Signals(signals) => return signals.run(&env),
            Command::Wait(wait) => return wait.run(&env),
            Command::Console(console) => return console.run(&env),
            Command::Mesh(mesh) => return mesh.run(&env),
            Command::Wake(wake) => return wake.run(&env),
            Command::Requests(requests) => return requests.run(&env),
            Command::Approve(approve) => return approve.run(&env),
            Command::Deny(deny) => return deny.run(&env),
            Command::Grants(grants) => return grants.run(&env),
            Command::Revoke(revoke) => return revoke.run(&env),
            Command::Confirmations(confirmations) => return confirmations.run(&env),
            Command::Confirm(confirm) => return confirm.run(&env),
            Command::Access(access) => return access.run(&env),
            Command::Agent(agent) => return agent.run(&env),
            Command::Audit(audit) => return audit.run(&env),
            Command::Tools(tools) => return tools.run(&env),
            Command::Call(call) => return call.run(&env),
            Command::Probe(probe) => return probe.run(&env),
            Command::Stdio(stdio) => return stdio.run(&env),
            Command::Acp(acp) => return acp.run(&env),
            Command::Workspace(workspace) => workspace.run(&env)?,
            Command::DemoServer(options) => demo_server::run(options, &env)?,
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(&env)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
