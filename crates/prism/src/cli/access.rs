//! `prism access`: what can be granted, and asking for it as an agent does: with the client's token, which opens nothing
//! else of the gate.

mod request;
mod tables;

use std::process::ExitCode;

pub(super) use request::{ROUND, UNDECIDED, ask, asked_scopes, folder, requested};

use prism_config::Env;

/// Ask for access, and see what can be asked for
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism access scopes
  prism access actions
  prism access request --agent fixer --preset standard --root . --reason Tidying
  prism access request --agent fixer --scope read:files --scope git:* --root . --reason Review --wait
  prism access claim 01990d3c-7c58-7e9f-9d3a-6a5d3c2b1a00 -

A person decides: prism requests, prism approve, or prism console.
Exit codes: 0 done, 1 refused or denied, 2 typed wrongly, 4 nobody decided in time.")]
pub struct AccessArgs {
    #[command(subcommand)]
    command: AccessCommand,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum AccessCommand {
    /// Ask for access to folders, on behalf of an agent
    Request(request::AccessRequestArgs),
    /// See what came of a request, and take its token, once
    Claim(request::AccessClaimArgs),
    /// Show the scopes that can be asked for, and what each means
    Scopes,
    /// Show what can be done with a grant, and which scope each needs
    Actions,
}

impl AccessArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        match self.command {
            AccessCommand::Request(request) => return request.run(env, self.json),
            AccessCommand::Claim(claim) => return claim.run(env, self.json),
            AccessCommand::Scopes => tables::scopes(self.json)?,
            AccessCommand::Actions => tables::actions(self.json)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
