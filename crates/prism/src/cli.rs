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
    command: Option<PrismCommand>,
    #[command(flatten)]
    serve: serve::ServeArgs,
}

#[derive(Subcommand)]
enum PrismCommand {
    /// Run the daemon here (the default)
    Serve(serve::ServeArgs),
    /// Stop the daemon
    Stop(stop::StopArgs),
    /// Stop the daemon and start it again in the background
    Restart(stop::RestartArgs),
    /// Show the log of the daemon in the background
    Logs(logs::LogsArgs),
    /// Start the daemon at login, and restart it if it stops
    Service(service::ServiceArgs),
    /// Bridge one server, with nothing configured
    Run(run::RunArgs),
    /// Add a server
    Add(add::AddArgs),
    /// List the servers
    List(list::ListArgs),
    /// Show how the daemon, its servers and its sessions are
    Status(status::StatusArgs),
    /// Check what goes wrong in practice, and say what to type
    Doctor(doctor::DoctorArgs),
    /// Remove a server
    Remove(remove::RemoveArgs),
    /// Look at a project's config, and let it count
    Trust(trust::TrustArgs),
    /// Add Prism to Cursor, Claude Code, VS Code, …
    Install(install::InstallArgs),
    /// Remove Prism from them; restores each file exactly
    Uninstall(uninstall::UninstallArgs),
    /// Take over the servers in other programs' configs
    Import(import::ImportArgs),
    /// Rewrite SSE entries in those configs to Streamable HTTP
    Migrate(migrate::MigrateArgs),
    /// Read, search and write a project's notes for agents
    Workspace(workspace::WorkspaceArgs),
    /// Send, answer and read signals
    Signal(signal::SignalArgs),
    /// Show the signals of the mesh, newest first
    Signals(signals::SignalsArgs),
    /// Wait until a signal comes; as a hook, wake an agent
    Wait(wait::WaitArgs),
    /// Open the console in a browser: decide, see, revoke
    Console(console::ConsoleArgs),
    /// Show the mesh as it changes: agents, obligations, bells
    Mesh(mesh::MeshArgs),
    /// See how agents can be woken
    Wake(wake::WakeArgs),
    /// Show who asks for access and waits for you
    Requests(requests::RequestsArgs),
    /// Give an agent the access it asks for, or a part of it
    Approve(approve::ApproveArgs),
    /// Refuse an agent the access it asks for
    Deny(approve::DenyArgs),
    /// Show the grants that agents hold
    Grants(grants::GrantsArgs),
    /// Take grants back; their sockets are closed at once
    Revoke(grants::RevokeArgs),
    /// Show what agents want to do that you must see first
    Confirmations(confirm::ConfirmationsArgs),
    /// Let an agent do what it wants to, or not
    Confirm(confirm::ConfirmArgs),
    /// Ask for access, and see what can be asked for
    Access(access::AccessArgs),
    /// Work in granted folders from the shell, as a sub-agent does
    Agent(agent::AgentArgs),
    /// Read the audit log, and check that nobody changed it
    Audit(audit::AuditArgs),
    /// List the tools of a server, or of all
    Tools(tools::ToolsArgs),
    /// Call a tool
    Call(call::CallArgs),
    /// Test a server and trace every message
    Probe(probe::ProbeArgs),
    /// Be an MCP server on stdio, for clients that cannot speak HTTP
    Stdio(stdio::StdioArgs),
    /// Wrap an ACP agent so that signals can wake it
    Acp(acp::AcpArgs),
    /// Run a small MCP server to try things out with
    DemoServer(demo::DemoOptions),
    /// Print shell completions
    Completions(completions::CompletionsArgs),
    /// Show the manual page
    Man(man::ManArgs),
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
        match self.command.unwrap_or(PrismCommand::Serve(self.serve)) {
            PrismCommand::Serve(serve) => return serve.run(&env),
            PrismCommand::Stop(stop) => return stop.run(&env),
            PrismCommand::Restart(restart) => return restart.run(&env),
            PrismCommand::Logs(logs) => return logs.run(&env),
            PrismCommand::Service(service) => return service.run(&env),
            PrismCommand::Run(run) => run.run(&env)?,
            PrismCommand::Add(add) => return add.run(&env),
            PrismCommand::List(list) => list.run(&env)?,
            PrismCommand::Remove(remove) => remove.run(&env)?,
            PrismCommand::Trust(trust) => return trust.run(&env),
            PrismCommand::Status(status) => return status.run(&env),
            PrismCommand::Doctor(doctor) => return doctor.run(&env),
            PrismCommand::Install(install) => return install.run(&env),
            PrismCommand::Uninstall(uninstall) => return uninstall.run(&env),
            PrismCommand::Import(import) => return import.run(&env),
            PrismCommand::Migrate(migrate) => return migrate.run(&env),
            PrismCommand::Signal(signal) => return signal.run(&env),
            PrismCommand::Signals(signals) => return signals.run(&env),
            PrismCommand::Wait(wait) => return wait.run(&env),
            PrismCommand::Console(console) => return console.run(&env),
            PrismCommand::Mesh(mesh) => return mesh.run(&env),
            PrismCommand::Wake(wake) => return wake.run(&env),
            PrismCommand::Requests(requests) => return requests.run(&env),
            PrismCommand::Approve(approve) => return approve.run(&env),
            PrismCommand::Deny(deny) => return deny.run(&env),
            PrismCommand::Grants(grants) => return grants.run(&env),
            PrismCommand::Revoke(revoke) => return revoke.run(&env),
            PrismCommand::Confirmations(confirmations) => return confirmations.run(&env),
            PrismCommand::Confirm(confirm) => return confirm.run(&env),
            PrismCommand::Access(access) => return access.run(&env),
            PrismCommand::Agent(agent) => return agent.run(&env),
            PrismCommand::Audit(audit) => return audit.run(&env),
            PrismCommand::Tools(tools) => return tools.run(&env),
            PrismCommand::Call(call) => return call.run(&env),
            PrismCommand::Probe(probe) => return probe.run(&env),
            PrismCommand::Stdio(stdio) => return stdio.run(&env),
            PrismCommand::Acp(acp) => return acp.run(&env),
            PrismCommand::Workspace(workspace) => workspace.run(&env)?,
            PrismCommand::DemoServer(options) => demo_server::run(options, &env)?,
            PrismCommand::Completions(completions) => completions.run(),
            PrismCommand::Man(man) => man.run(&env)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
