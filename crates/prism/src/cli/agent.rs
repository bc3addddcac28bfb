//! `prism agent`: to be a sub-agent at the shell. A grant is asked for as every agent asks, and the verbs go over the same
//! socket, through the same gate.

mod close;
mod events;
mod kept;
mod open;
mod run;
mod shell;
mod show;
mod socket;
mod verbs;
mod words;

use std::process::ExitCode;

use prism_config::Env;

/// Work in granted folders from the shell, as a sub-agent does
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism agent open --root . --preset standard --for 1h
  prism agent verbs
  prism agent verbs edit_buffer
  prism agent run open_file path=src/main.rs
  prism agent run edit_buffer path=src/main.rs old_text=mian new_text=main
  prism agent run write_file path=notes.md content=-
  prism agent run goto_definition path=src/main.rs position=4:8 --json
  prism agent shell
  prism agent events
  prism agent close

A person decides what is granted: prism approve, or prism console.
Exit codes: 0 done, 1 refused or failed, 2 typed wrongly, 3 the daemon does not run, 4 nobody decided in time.")]
pub struct AgentArgs {
    #[command(subcommand)]
    command: AgentCommand,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    /// Agent whose session is meant [default: PRISM_AGENT, or the one that was opened last]
    #[arg(long, global = true, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum AgentCommand {
    /// Ask for access to folders, wait for the person, and keep the session for the other commands
    Open(open::AgentOpenArgs),
    /// Do one thing
    Run(run::AgentRunArgs),
    /// Show what the session may do, or one verb with its arguments and an example
    Verbs(verbs::AgentVerbsArgs),
    /// Follow what happens in the editor
    Events(events::AgentEventsArgs),
    /// Do one thing after the other over one connection, from the keyboard or a pipe
    Shell(shell::AgentShellArgs),
    /// Give the access back
    Close(close::AgentCloseArgs),
}

/// What all of them are told.
struct AgentContext<'a> {
    env: &'a Env,
    json: bool,
    agent: Option<String>,
}

impl AgentArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let agent = super::verbs::acting(self.agent.as_deref(), env);
        let around = AgentContext { env, json: self.json, agent };
        match self.command {
            AgentCommand::Open(open) => open.run(&around),
            AgentCommand::Run(run) => run.run(&around),
            AgentCommand::Verbs(verbs) => verbs.run(&around),
            AgentCommand::Events(events) => events.run(&around),
            AgentCommand::Shell(shell) => shell.run(&around),
            AgentCommand::Close(close) => close.run(&around),
        }
    }
}
