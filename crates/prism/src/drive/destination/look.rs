//! A destination as it looks from outside: what is known of its server, and who shares it and why (B-04, D-08).

use prism_core::mcp::{State, quiet::Verdict};

use super::{Command, Destination, LinkHandle};
use crate::{
    config::{Process, Transport},
    drive::{stderr::Written, vitals::Trouble},
};

/// Who shares the server, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    pub name: &'static str,
    pub why: &'static str,
}

impl Destination {
    /// How its server is reached.
    pub fn kind(&self) -> &'static str {
        match &self.shared.target {
            _ if self.is_built_in() => "built_in",
            Some(target) => target.transport().map_or("http", Transport::as_str),
            None => "stdio",
        }
    }

    /// Name and version of the server, as it last gave them.
    pub fn server(&self) -> Option<(String, String)> {
        self.shared.server()
    }

    /// How it is known which eras the server speaks.
    pub fn era_from(&self) -> Option<&'static str> {
        match self.config().era {
            Some(_) => Some("set"),
            None if self.speaks().name().is_none() => None,
            None if self.shared.has_heard() => Some("asked"),
            None => Some("remembered"),
        }
    }

    pub fn trouble(&self) -> &Trouble {
        &self.shared.trouble
    }

    /// The last lines of its servers' stderr.
    pub fn stderr(&self) -> Vec<Written> {
        self.shared.stderr.lines()
    }

    /// Ends the processes of its servers; each link starts the next one, and its sessions go on. Returns how many.
    pub async fn restart(&self) -> usize {
        let mut told = 0;
        for link in self.living_links() {
            told += usize::from(link.commands.send(Command::Restart).await.is_ok());
        }
        told
    }

    /// The links that still do something.
    pub fn living_links(&self) -> Vec<LinkHandle> {
        self.links().into_iter().filter(|link| !link.commands.is_closed()).collect()
    }

    /// What it does, all links together: if one is up, so is it.
    pub fn state(&self, links: &[LinkHandle]) -> &'static str {
        let any = |state| links.iter().any(|link| link.vitals.state() == state);
        match () {
            () if any(State::Up) => "up",
            () if any(State::Starting) => "starting",
            () if any(State::Restarting) => "restarting",
            () if any(State::Asleep) => "asleep",
            () if any(State::Failed) => "failed",
            () if self.metrics().starts.get() > 0 => "stopped",
            () => "idle",
        }
    }

    /// Who shares the server, by the same rules by which links are given out.
    pub fn model(&self) -> Model {
        let model = |name, why| Model { name, why };
        match (self.config().process, self.config().asks, self.verdict()) {
            _ if self.is_built_in() => model("shared", "it is Prism itself"),
            (Process::PerSession, ..) => model("per_session", "process = \"per_session\" is set"),
            (Process::SharedAlways, ..) => model("shared", "process = \"shared_always\" is set"),
            (Process::Shared, Some(false), _) => model("shared", "asks = false is set"),
            (Process::Shared, ..) if self.is_only_modern() => {
                model("shared", "it speaks 2026-07-28, where a question comes with its call")
            }
            (Process::Shared, _, Verdict::Quiet) => {
                model("shared", "it is known to be quiet: it never asks its clients")
            }
            (Process::Shared, _, Verdict::Asks) => {
                model("mixed", "it has asked questions, so clients that can answer them have their own")
            }
            (Process::Shared, _, Verdict::Unknown) => {
                model("mixed", "clients that can be asked have their own, until it is known to be quiet")
            }
        }
    }
}
