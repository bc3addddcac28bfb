//! What comes after the file was written: the daemon that runs takes the server up, and it is started once, so that whoever
//! added it hears at once whether it works.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use prism_api::status::{ConfigState, DestinationStatus, StatusReport};
use prism_bridge::drive::health;
use prism_config::{HttpConfig, home::Token};
use prism_mcp::client::{ClientError, QuestionHandler, RevisionChoice};
use tokio::time::{interval, sleep, timeout};

use crate::cli::{reach, say, tools::NullObserver};

/// How long a daemon may take to see a changed file: it looks twice a second, and waits until it has settled.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// How often it is asked.
const LOOK: Duration = Duration::from_millis(100);
/// How long the first start is waited for: the first `npx` of a server downloads it.
const STARTED_WITHIN: Duration = Duration::from_secs(120);
/// Whoever waits for longer than this is told for what.
const PATIENCE: Duration = Duration::from_millis(300);
/// It is in the config, and does not answer.
const DOES_NOT_ANSWER: u8 = 4;

/// A daemon that runs on the file that was written.
#[derive(Debug)]
pub(super) struct StartupWatch {
    pub(super) base: String,
    pub(super) token: Token,
    pub(super) name: String,
    /// The server, in a few words.
    pub(super) server: String,
    pub(super) written: Instant,
}

impl StartupWatch {
    /// Waits until it is there and has answered, and says so; or why not.
    pub(super) async fn watch(self) -> anyhow::Result<ExitCode> {
        let begun = Instant::now();
        let mut ticks = interval(LOOK);
        let working = self.start();
        tokio::pin!(working);
        let outcome = loop {
            tokio::select! {
                outcome = &mut working => break outcome,
                _ = ticks.tick() => {
                    if begun.elapsed() >= PATIENCE {
                        let text = format!("starting {} ({}) {} s", self.name, self.server, begun.elapsed().as_secs());
                        say::status(Some(&text));
                    }
                }
            }
        };
        say::status(None);
        match outcome {
            Ok(tools) => {
                let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
                say::line(&format!("ready, {tools}. Try: prism tools {}", self.name));
                Ok(ExitCode::SUCCESS)
            }
            Err(why) => {
                say::error(&anyhow::anyhow!("{} is in the config, and does not answer: {why}", self.name));
                Ok(ExitCode::from(DOES_NOT_ANSWER))
            }
        }
    }

    /// How many tools it has.
    async fn start(&self) -> Result<usize, String> {
        self.taken_up().await?;
        let mut http = HttpConfig::new(&format!("{}/{}/mcp", self.base, self.name));
        http.headers.insert("authorization".to_owned(), format!("Bearer {}", self.token.expose()));
        let url = http.shown_url().to_owned();
        let asking = async {
            let client = reach::open(
                http,
                RevisionChoice::Auto,
                STARTED_WITHIN,
                QuestionHandler::Decline,
                Arc::new(NullObserver),
            )
            .await?;
            let tools = if client.has("tools") { client.tools().await } else { Ok(Vec::new()) };
            client.close().await;
            Ok(tools?.len())
        };
        let late = |_| Err(ClientError::Timeout { what: "answer".to_owned(), after: STARTED_WITHIN });
        let fault = match timeout(STARTED_WITHIN, asking).await.unwrap_or_else(late) {
            Ok(tools) => return Ok(tools),
            Err(fault) => fault,
        };
        // The daemon knows more of it than what a client is told.
        let status = self.status().await;
        let known = status.iter().flat_map(|status| &status.destinations).find(|one| one.name == self.name);
        Err(known.filter(|one| one.is_ill()).map_or_else(|| fault.explained(&url, None).to_string(), told))
    }

    async fn taken_up(&self) -> Result<(), String> {
        while self.written.elapsed() < TAKEN_WITHIN {
            // Before the question: what was taken since then was taken after the file was written.
            let since = self.written.elapsed().as_secs_f64();
            if let Some(status) = self.status().await {
                let config = &status.daemon.config;
                let is_new = config.taken_s.is_some_and(|ago| ago < since);
                let is_there = status.destinations.iter().any(|one| one.name == self.name);
                match config.state {
                    ConfigState::KeptOld if is_new => {
                        let why = config.error.clone().unwrap_or_default();
                        return Err(format!("the daemon does not take the file: {why}"));
                    }
                    _ if is_new && is_there => return Ok(()),
                    _ => {}
                }
            }
            sleep(LOOK).await;
        }
        let waited = TAKEN_WITHIN.as_secs();
        Err(format!("the daemon has not taken it up within {waited} s\n  fix: prism status, and see what it says"))
    }

    async fn status(&self) -> Option<StatusReport> {
        let (_, body) = reach::get(&self.base, "/status", Some(&self.token)).await.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

fn told(one: &DestinationStatus) -> String {
    let fix = one.fix.as_ref().map(|fix| format!("\n  fix: {fix}")).unwrap_or_default();
    format!("{} ({}){fix}", one.why, health::word(&one.state))
}
