//! `prism agent events`: what happens in the editor, as the session may hear of it.

use std::process::ExitCode;

use anyhow::anyhow;
use prism_api::socket::{HolderEvent, HolderMessage};
use prism_core::policy::{EventSpec, Scopes};
use serde_json::json;

use super::{
    AgentContext,
    run::{TYPED_WRONGLY, opened},
    show,
    socket::SocketMessage,
};
use crate::cli::{
    reach::{self, Interrupts},
    say,
};
use prism_config::raw;

#[derive(Debug, clap::Args)]
pub(super) struct AgentEventsArgs {
    /// Only these, by name or category, as in buffer_changed or git_state
    #[arg(value_name = "EVENT")]
    only: Vec<String>,
}

impl AgentEventsArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        if let Some(unknown) = self.only.iter().find(|word| !names().any(|name| name == word.as_str())) {
            let near = raw::nearest(unknown, names());
            let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            say::error(&anyhow!("there is no event {unknown:?}{near}\n  fix: prism agent events --help"));
            return Ok(ExitCode::from(TYPED_WRONGLY));
        }
        reach::run(async move {
            let mut stop = Interrupts::new()?;
            let mut socket = match opened(around).await? {
                Ok(socket) => socket,
                Err(code) => return Ok(code),
            };
            if let Some(unheard) = self.unheard(socket.kept().given.as_ref().map_or(&[], |given| &given.scopes)) {
                say::warning(&unheard);
            }
            say::note(&format!("following, as {}; Ctrl-C ends it", socket.kept().agent));
            loop {
                let message = tokio::select! {
                    said = socket.next(around) => match said? {
                        SocketMessage::Event(message) => message,
                        SocketMessage::Result { .. } | SocketMessage::Progress(_) => continue,
                    },
                    code = stop.next() => return Ok(code),
                };
                if !self.wants(&message) {
                    continue;
                }
                let written = match around.json {
                    true => say::try_line(&json!(HolderMessage::Event(message)).to_string()),
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

    /// Says what is waited for and will not be told, for want of a scope.
    fn unheard(&self, scopes: &[String]) -> Option<String> {
        let scopes = Scopes::read(scopes.iter().map(String::as_str)).unwrap_or_default();
        let wanted = |event: &&EventSpec| {
            self.only.is_empty() || self.only.iter().any(|word| word == event.name || word == event.category)
        };
        let unheard: Vec<_> = EventSpec::all().filter(wanted).filter(|event| !event.is_seen_with(scopes)).collect();
        let needs = unheard.first()?.needs().names().join(" or ");
        let names: Vec<_> = unheard.iter().map(|event| event.name).collect();
        Some(match names.as_slice() {
            [name] => format!("this session does not hear of {name}: it has no {needs}"),
            names => format!("this session does not hear of {}: for the first it has no {needs}", names.join(", ")),
        })
    }

    fn wants(&self, message: &HolderEvent) -> bool {
        let is = |word: &String| message.event == *word || message.data.event == *word;
        self.only.is_empty() || self.only.iter().any(is)
    }
}

/// Every event, and every category of them.
fn names() -> impl Iterator<Item = &'static str> {
    EventSpec::all().flat_map(|event| [event.name, event.category])
}
