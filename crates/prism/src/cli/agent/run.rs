//! `prism agent run`: one verb, and what came of it.

use std::process::ExitCode;

use prism_api::{refusal::ToldRefusal, socket::HolderEvent};
use serde_json::{Map, Value};

use super::{
    AgentContext, show,
    socket::{AgentSocket, DaemonNotRunning, SocketMessage},
    words,
};
use crate::cli::{reach, say};

/// What a shell is told of what was typed wrongly, as clap does.
pub(super) const TYPED_WRONGLY: u8 = 2;

#[derive(Debug, clap::Args)]
pub(super) struct AgentRunArgs {
    /// What to do, as in open_file; see prism agent verbs
    verb: String,
    /// Arguments, as in path=src/main.rs; @FILE takes a value from a file, - from stdin
    #[arg(value_name = "KEY=VALUE")]
    words: Vec<String>,
}

impl AgentRunArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        let (verb, args) = match words::understood(&self.verb, &self.words) {
            Ok(understood) => understood,
            Err(error) => {
                say::error(&error);
                return Ok(ExitCode::from(TYPED_WRONGLY));
            }
        };
        reach::run(async move {
            let mut socket = match opened(around).await? {
                Ok(socket) => socket,
                Err(code) => return Ok(code),
            };
            let result = done(&mut socket, verb.name, args, around, |_| {}).await;
            let code = match &result {
                Ok(result) => show::told(verb.name, result, around.json)?,
                Err(error) => return Err(anyhow::anyhow!("{error:#}")),
            };
            socket.close().await;
            Ok(code)
        })
    }
}

/// Opens the session's socket; `Err`: there is no daemon, which has been said.
pub(super) async fn opened(around: &AgentContext<'_>) -> anyhow::Result<Result<AgentSocket, ExitCode>> {
    match AgentSocket::open(around).await {
        Ok(socket) => Ok(Ok(socket)),
        Err(error) if error.is::<DaemonNotRunning>() => {
            say::error(&error);
            Ok(Err(ExitCode::from(DaemonNotRunning::CODE)))
        }
        Err(error) => Err(error),
    }
}

/// Has one thing done. How far it is is shown on a terminal; what else happens goes to `event`.
pub(super) async fn done(
    socket: &mut AgentSocket,
    verb: &str,
    args: Map<String, Value>,
    around: &AgentContext<'_>,
    event: impl Fn(&HolderEvent),
) -> anyhow::Result<Result<Value, ToldRefusal>> {
    let number = socket.send(verb, args).await?;
    say::status(Some(&format!("{verb} …")));
    let result = loop {
        match socket.next(around).await {
            Ok(SocketMessage::Result { id, result }) if id == number => break Ok(result),
            Ok(SocketMessage::Result { .. }) => {}
            Ok(SocketMessage::Progress(how_far)) => say::status(Some(&format!("{verb} … {how_far}"))),
            Ok(SocketMessage::Event(message)) => event(&message),
            Err(error) => break Err(error),
        }
    };
    say::status(None);
    result
}
