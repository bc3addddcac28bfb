//! A destination as it looks from outside: what is known of its server, and who shares it and why (B-04, D-08).

use prism_core::mcp::{State, quiet::Verdict};

use super::{Audience, Command, Destination, LinkHandle};
use crate::drive::{
    health::{self, Health, ServerState, Sightings},
    hub::fetch,
    stderr::Written,
    vitals::Trouble,
};
use prism_config::{Process, Transport};

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

    /// How its server is, all links together, as far as it is known without asking it.
    pub fn health(&self) -> Health {
        let states: Vec<State> = self.living_links().iter().map(|link| link.vitals.state()).collect();
        let any = |state| states.contains(&state);
        let health = |state, said: String| Health { state, said, fix: health::fix(state, self.config()) };
        // A file is looked at whenever somebody asks: it may have come, or gone, without anybody having used it.
        if !any(State::Up)
            && let Some(absent) = self.shared.environment.absent(self.config())
        {
            let (said, fix) = (absent.to_string(), Some(absent.fix()));
            return Health { state: ServerState::Missing, said, fix };
        }
        if let Some((state, said)) = self.shared.sightings.now(&states) {
            return health(state, said);
        }
        match () {
            () if any(State::Up) => health(ServerState::Up, "it answers".to_owned()),
            () if any(State::Starting) || any(State::Restarting) => {
                let before = self.shared.sightings.so_far().map(|said| format!("; {said}"));
                health(ServerState::Starting, format!("it is being started{}", before.unwrap_or_default()))
            }
            () if self.metrics().starts.get() > 0 => {
                health(ServerState::Asleep, "nobody uses it now; it starts with the next call".to_owned())
            }
            () => health(ServerState::NeverUsed, "it starts with the first call".to_owned()),
        }
    }

    /// What whoever uses the server tells of it.
    pub fn sightings(&self) -> &Sightings {
        &self.shared.sightings
    }

    /// Tries to reach a server that is somewhere else; what comes of it is noted. Nothing is started for it.
    pub async fn try_to_reach(&self) {
        if self.shared.target.is_some() {
            // Why not is noted where it was found out.
            let _ = fetch::reach(self, Audience::PLAIN).await;
        }
    }

    /// Who shares the server, by the same rules by which links are given out.
    pub fn model(&self) -> Model {
        let model = |name, why| Model { name, why };
        match (self.config().process, self.config().asks, self.verdict()) {
            _ if self.is_built_in() => model("shared", "it is Prism itself"),
            (Process::PerSession, ..) => model("per_session", "process = \"per_session\" is set"),
            (Process::SharedAlways, ..) => model("shared", "process = \"shared_always\" is set"),
            (Process::Shared, ..) if self.config().http.is_some() && !self.is_only_modern() => {
                model("per_session", "it is reached over HTTP, where each session has one of its own")
            }
            (Process::Shared, Some(false), _) => model("shared", "asks = false is set"),
            (Process::Shared, ..) if self.is_only_modern() => {
                model("shared", "it speaks 2026-07-28, where a question comes with its call")
            }
            (Process::Shared, _, Verdict::Quiet) => model("shared", "it never asks its clients"),
            (Process::Shared, _, Verdict::Asks) => {
                model("mixed", "it has asked questions, so clients that can answer them have their own")
            }
            (Process::Shared, _, Verdict::Unknown) => model(
                "mixed",
                "shared, except clients that support sampling, elicitation or roots: they get their own process",
            ),
        }
    }
}
