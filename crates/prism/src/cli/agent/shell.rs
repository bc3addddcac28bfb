//! `prism agent shell`: line by line over one connection, so that terminals, panes and watches last. From a keyboard it has a
//! prompt and shows what happens; from a pipe it does one line after the other.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use anyhow::Context;
use prism_api::socket::HolderEvent;
use prism_editor::verbs;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Stdin, Take};

use super::{
    AgentContext,
    run::{done, opened},
    show,
    socket::{AgentSocket, SocketMessage},
    words,
};
use crate::cli::{reach, say};

/// The longest line.
const MAX_LINE: u64 = 16 << 20;

#[derive(Debug, clap::Args)]
pub(super) struct AgentShellArgs {
    /// Stop at the first line that fails
    #[arg(long)]
    strict: bool,
}

/// What a line comes to.
enum LineOutcome {
    Well,
    Badly,
    /// The person leaves.
    End,
}

impl AgentShellArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let mut socket = match opened(around).await? {
                Ok(socket) => socket,
                Err(code) => return Ok(code),
            };
            let is_person = io::stdin().is_terminal() && io::stdout().is_terminal();
            if is_person {
                say::note("type a verb and its arguments, as in open_file path=README.md; help, exit");
            }
            let mut lines = BufReader::new(tokio::io::stdin()).take(MAX_LINE);
            let mut failed = false;
            loop {
                if is_person {
                    say::prompt("prism> ");
                }
                let Some(line) = heard(&mut lines, &mut socket, is_person, around).await? else { break };
                match obey(&line, &mut socket, is_person, around).await? {
                    LineOutcome::Well => {}
                    LineOutcome::Badly if self.strict => {
                        failed = true;
                        break;
                    }
                    LineOutcome::Badly => failed = !is_person,
                    LineOutcome::End => break,
                }
            }
            socket.close().await;
            Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
        })
    }
}

/// The next line; `None`: there is no more. Meanwhile a person sees what happens.
async fn heard(
    lines: &mut Take<BufReader<Stdin>>,
    socket: &mut AgentSocket,
    is_person: bool,
    around: &AgentContext<'_>,
) -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    lines.set_limit(MAX_LINE);
    let mut reading = std::pin::pin!(lines.read_line(&mut line));
    loop {
        tokio::select! {
            read = &mut reading => {
                let count = read.context("stdin is no UTF-8 text")?;
                break if count == 0 { Ok(None) } else { Ok(Some(line)) };
            }
            said = socket.next(around) => match said? {
                SocketMessage::Event(message) if is_person => {
                    say::status(None);
                    say::coloured(&show::event(&message));
                    say::prompt("prism> ");
                }
                _ => {}
            }
        }
    }
}

async fn obey(
    line: &str,
    socket: &mut AgentSocket,
    is_person: bool,
    around: &AgentContext<'_>,
) -> anyhow::Result<LineOutcome> {
    let typed = match words::split(line) {
        Ok(typed) => typed,
        Err(why) => {
            say::error(&anyhow::anyhow!("{why}"));
            return Ok(LineOutcome::Badly);
        }
    };
    let Some((verb, rest)) = typed.split_first() else { return Ok(LineOutcome::Well) };
    match verb.as_str() {
        "exit" | "quit" => return Ok(LineOutcome::End),
        "help" => {
            match rest.first().map(|name| words::named(name)) {
                None => verbs::all().for_each(|verb| say::line(&format!("{:20} {}", verb.name, verb.about))),
                Some(Ok(verb)) => {
                    say::line(verb.about);
                    for arg in verb.args {
                        let star = if arg.is_required { "*" } else { "" };
                        say::line(&format!("  {}{star}: {} [{}]", arg.name, arg.about, arg.kind.in_words()));
                    }
                }
                Some(Err(error)) => say::error(&error),
            }
            return Ok(LineOutcome::Well);
        }
        _ => {}
    }
    let (verb, args) = match words::understood(verb, rest) {
        Ok(understood) => understood,
        Err(error) => {
            say::error(&error);
            return Ok(LineOutcome::Badly);
        }
    };
    let event = |message: &HolderEvent| {
        if is_person {
            say::status(None);
            say::coloured(&show::event(message));
        }
    };
    let result = done(socket, verb.name, args, around, event).await?;
    // From a pipe each result is one line, for whoever reads them.
    if around.json && !is_person {
        let (status, data) = match &result {
            Ok(data) => ("ok", data.clone()),
            Err(refusal) => ("error", serde_json::json!(refusal)),
        };
        say::text(&serde_json::json!({"verb": verb.name, "status": status, "data": data}).to_string());
    } else {
        show::told(verb.name, &result, around.json)?;
    }
    Ok(if result.is_ok() { LineOutcome::Well } else { LineOutcome::Badly })
}
