//! The place of one server: what it is for, who needs it, how often it has died, and when it may be started again.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    client::LspClient,
    conversation::brief,
    known::ServerPhase,
    servers::{LanguageServerKey, WantedServer},
};
use crate::run::fence::FenceReport;

/// The place of one server, whether it runs or not.
#[derive(Debug)]
pub(super) struct ServerSlot {
    pub(super) wanted: WantedServer,
    /// LSP's names of the languages that it was asked about.
    pub(super) languages: BTreeSet<&'static str>,
    pub(super) client: Option<Arc<LspClient>>,
    pub(super) holders: HashSet<u128>,
    pub(super) starts: u64,
    /// How often in a row it has died without having answered anything.
    pub(super) failures: u32,
    pub(super) not_before: Option<Instant>,
    /// Why the last one ended.
    pub(super) reason: Option<String>,
}

/// How often a server may die at its start before it has to wait, how long then, doubling, and at most.
const FREE_FAILURES: u32 = 2;
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// From so many on, it is said to be broken.
const BROKEN: u32 = 6;

impl ServerSlot {
    pub(super) fn new(wanted: WantedServer) -> Self {
        Self {
            wanted,
            languages: BTreeSet::new(),
            client: None,
            holders: HashSet::new(),
            starts: 0,
            failures: 0,
            not_before: None,
            reason: None,
        }
    }

    pub(super) fn running(&self) -> Option<Arc<LspClient>> {
        self.client.clone().filter(|client| !client.is_gone())
    }

    /// Takes note of how the last one ended, and refuses if the next has to wait.
    pub(super) fn may_start(&mut self) -> Result<(), Refusal> {
        if let Some(client) = self.client.take_if(|client| client.is_gone()) {
            match client.known.read(|facts| facts.phase.clone()) {
                ServerPhase::Died(reason) if client.is_proven() => {
                    (self.failures, self.not_before, self.reason) = (0, None, Some(reason));
                }
                ServerPhase::Died(reason) => self.failed(reason),
                phase => self.reason = phase.end().map(str::to_owned),
            }
        }
        let now = Instant::now();
        let Some(wait) = self.not_before.map(|at| at.saturating_duration_since(now)).filter(|wait| !wait.is_zero())
        else {
            return Ok(());
        };
        let why = self.reason.as_deref().unwrap_or("it died");
        let message = format!(
            "the language server {} has died {} times in a row as it started ({}); {}, then restart it with \
             manage_plugins, or wait {} s",
            self.wanted.kind.name,
            self.failures,
            brief(why),
            self.wanted.kind.hint(),
            wait.as_secs() + 1
        );
        Err(Refusal { code: Code::Failed, message, retry_after: Some(wait) })
    }

    pub(super) fn failed(&mut self, reason: String) {
        self.reason = Some(reason);
        self.failures += 1;
        let doublings = self.failures.saturating_sub(FREE_FAILURES + 1).min(16);
        let wait = LONGEST_WAIT.min(FIRST_WAIT * 2_u32.pow(doublings));
        self.not_before = (self.failures > FREE_FAILURES).then(|| Instant::now() + wait);
    }

    /// Forgets its failures, and gives out what still runs.
    pub(super) fn forgiven(&mut self) -> Option<Arc<LspClient>> {
        (self.failures, self.not_before) = (0, None);
        self.client.clone()
    }

    pub(super) fn to_json(&self, key: &LanguageServerKey, language: &str) -> Value {
        let running = self.running();
        let (state, busy) = match &running {
            Some(client) => client.known.read(|facts| match (&facts.phase, facts.busy_with()) {
                (ServerPhase::Starting, _) => ("starting", None),
                (_, None) => ("ready", None),
                (_, busy) => ("indexing", busy),
            }),
            None if self.failures >= BROKEN => ("failed", None),
            None if self.not_before.is_some_and(|at| at > Instant::now()) => ("resting", None),
            None if self.client.as_ref().is_some_and(|client| is_dead(client)) => ("died", None),
            None => ("stopped", None),
        };
        let last = || {
            let ended =
                self.client.as_ref().and_then(|client| client.known.read(|facts| facts.phase.end().map(str::to_owned)));
            ended.or_else(|| self.reason.clone())
        };
        json!({
            "language": language,
            "server": self.wanted.kind.name,
            "root": key.folder,
            "command": key.command,
            "state": state,
            "busy_with": busy,
            "pid": running.as_ref().map(|client| client.pid),
            "restarts": self.starts.saturating_sub(1),
            "is_watched_whole": running.as_ref().map(|client| client.is_watched_whole()),
            "fence": running.as_ref().map(|client| FenceReport::of(client.enforced.as_ref())),
            "why": if running.is_some() { None } else { last().map(|why| brief(&why)) },
        })
    }
}

fn is_dead(client: &LspClient) -> bool {
    client.known.read(|facts| matches!(facts.phase, ServerPhase::Died(_)))
}
