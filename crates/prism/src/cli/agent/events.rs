//! `prism agent events`: what happens in the editor, as the session may hear of it.

use std::process::ExitCode;

use serde_json::Value;

use super::{Around, run::opened, show, socket::Said};
use crate::cli::{
    reach::{self, Interrupts},
    say,
};

#[derive(Debug, clap::Args)]
pub(super) struct Events {
    /// Only these, by name or category, as in buffer_changed or git_state
    #[arg(value_name = "EVENT")]
    only: Vec<String>,
}

impl Events {
    pub(super) fn run(self, around: &Around<'_>) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let mut stop = Interrupts::new()?;
            let mut socket = match opened(around).await? {
                Ok(socket) => socket,
                Err(code) => return Ok(code),
            };
            say::note(&format!("following, as {}; Ctrl-C ends it", socket.kept().agent));
            loop {
                let message = tokio::select! {
                    said = socket.next(around) => match said? {
                        Said::Event(message) => message,
                        Said::Result { .. } | Said::Progress(_) => continue,
                    },
                    code = stop.next() => return Ok(code),
                };
                if !self.wants(&message) {
                    continue;
                }
                let written = match around.json {
                    true => say::try_line(&message.to_string()),
                    false => {
                        say::coloured(&show::event(&message));
                        Ok(())
                    }
                };
                if written.is_err() {
                    return Ok(ExitCode::SUCCESS);
                }
            }
        })
    }

    fn wants(&self, message: &Value) -> bool {
        let is = |word: &String| message["event"] == word.as_str() || message["data"]["event"] == word.as_str();
        self.only.is_empty() || self.only.iter().any(is)
    }
}
