//! A destination as it looks from outside: what is known of its server, and who shares it and why (B-04, D-08).

use prism_core::mcp::{LinkState, quiet::QuietVerdict};

use super::{Audience, Destination, LinkCommand, LinkHandle};
use crate::drive::{
    health::{self, HealthObservations, ServerHealth, ServerState},
    hub::fetch,
    stderr::StderrLine,
    vitals::LastFault,
};
use prism_config::{ProcessSharing, Transport};

/// Who shares the server, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharingModel {
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

    pub fn trouble(&self) -> &LastFault {
        &self.shared.trouble
    }

    /// The last lines of its servers' stderr.
    pub fn stderr(&self) -> Vec<StderrLine> {
        self.shared.stderr.lines()
    }

    /// Ends the processes of its servers; each link starts the next one, and its sessions go on. Returns how many.
    pub async fn restart(&self) -> usize {
        let mut told = 0;
        for link in self.living_links() {
            told += usize::from(link.commands.send(LinkCommand::Restart).await.is_ok());
        }
        told
    }

    /// The links that still do something.
    pub fn living_links(&self) -> Vec<LinkHandle> {
        self.links().into_iter().filter(|link| !link.commands.is_closed()).collect()
    }

    /// How its server is, all links together, as far as it is known without asking it.
    pub fn health(&self) -> ServerHealth {
        let states: Vec<LinkState> = self.living_links().iter().map(|link| link.vitals.state()).collect();
        let any = |state| states.contains(&state);
        let health = |state, said: String| ServerHealth { state, said, fix: health::fix(state, self.config()) };
        // A file is looked at whenever somebody asks: it may have come, or gone, without anybody having used it.
        if !any(LinkState::Up)
            && let Some(absent) = self.shared.environment.absent(self.config())
        {
            let (said, fix) = (absent.to_string(), Some(absent.fix()));
            return ServerHealth { state: ServerState::Missing, said, fix };
        }
        if let Some((state, said)) = self.shared.sightings.now(&states) {
            return health(state, said);
        }
        match () {
            () if any(LinkState::Up) => health(ServerState::Up, "it answers".to_owned()),
            () if any(LinkState::Starting) || any(LinkState::Restarting) => {
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
    pub fn sightings(&self) -> &HealthObservations {
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
    pub fn model(&self) -> SharingModel {
        let model = |name, why| SharingModel { name, why };
        match (self.config().process, self.config().asks, self.verdict()) {
            _ if self.is_built_in() => model("shared", "it is Prism itself"),
            (ProcessSharing::PerSession, ..) => model("per_session", "process = \"per_session\" is set"),
            (ProcessSharing::SharedAlways, ..) => model("shared", "process = \"shared_always\" is set"),
            (ProcessSharing::Shared, ..) if self.config().http.is_some() && !self.is_only_modern() => {
                model("per_session", "it is reached over HTTP, where each session has one of its own")
            }
            (ProcessSharing::Shared, Some(false), _) => model("shared", "asks = false is set"),
            (ProcessSharing::Shared, ..) if self.is_only_modern() => {
                model("shared", "it speaks 2026-07-28, where a question comes with its call")
            }
            (ProcessSharing::Shared, _, QuietVerdict::Quiet) => model("shared", "it never asks its clients"),
            (ProcessSharing::Shared, _, QuietVerdict::Asks) => {
                model("mixed", "it has asked questions, so clients that can answer them have their own")
            }
            (ProcessSharing::Shared, _, QuietVerdict::Unknown) => model(
                "mixed",
                "shared, except clients that support sampling, elicitation or roots: they get their own process",
            ),
        }
    }
}
