//! `prism signals`: the history of the mesh, and what comes. Events only tell that something came; what it is comes from
//! the history, by its number, so that nothing is shown twice or left out when the daemon is restarted.

use std::{io, process::ExitCode, time::Duration};

use prism_api::mesh::{HistoryArguments, HistoryPage, MeshVerb, SignalView};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    moments::clock,
    reach::{self, Interrupts},
    say,
    verbs::{Answered, DaemonCallError, EventFeed, FeedItem, MeshClient, PATIENCE, acting, say_not_running},
};
use prism_config::Env;

/// Signals that are asked for at once.
const PAGE: u64 = 200;
/// How often a daemon that went is looked for.
const LOOK: Duration = Duration::from_millis(250);

/// Show the signals of the mesh, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism signals
  prism signals --agent reviewer --limit 5
  prism signals --tail
  prism signals --json | jq '.signals[].type'

Exit codes: 0 shown, 1 refused, 3 the daemon does not run.")]
pub struct SignalsArgs {
    /// Only those from and to this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u64,
    /// Show them oldest first, and go on with those that come, until Ctrl-C
    #[arg(long)]
    tail: bool,
    /// Print JSON, for programs; with --tail one line each
    #[arg(long)]
    json: bool,
}

/// A history that is shown as it grows.
struct SignalTail<'a> {
    options: &'a SignalsArgs,
    env: &'a Env,
    mesh: MeshClient,
    /// The number of the last signal that was shown.
    last: i64,
}

// === impl SignalsArgs ===

impl SignalsArgs {
    pub fn run(mut self, env: &Env) -> anyhow::Result<ExitCode> {
        // Whose history it is, is said; an agent that looks at the mesh sees all of it.
        self.agent = self.agent.take().and_then(|agent| acting(Some(&agent), env));
        reach::run(async move {
            let Some(mesh) = MeshClient::running(env)? else { return Ok(say_not_running()) };
            if self.tail {
                return SignalTail { options: &self, env, mesh, last: 0 }.follow().await;
            }
            let signals = match self.newest(&mesh, self.limit, 0).await {
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                signals => signals?,
            };
            match self.json {
                true => say::text(&serde_json::to_string_pretty(&json!({ "signals": signals }))?),
                false if signals.is_empty() => say::line("no signals yet; next: prism signal send --to AGENT TEXT"),
                false => signals.iter().for_each(|one| say::line(&line(one))),
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// Returns the newest signals that came after one, the newest first.
    async fn newest(
        &self,
        mesh: &MeshClient,
        limit: u64,
        after: i64,
    ) -> Result<Vec<Answered<SignalView>>, DaemonCallError> {
        let mut found: Vec<Answered<SignalView>> = Vec::new();
        let mut before = None;
        while (found.len() as u64) < limit {
            let wanted = PAGE.min(limit - found.len() as u64);
            let arguments = HistoryArguments { agent: self.agent.clone(), before, limit: u32::try_from(wanted).ok() };
            let mut answer: Answered<HistoryPage> = mesh.call(MeshVerb::History, &arguments, PATIENCE).await?;
            let as_came = answer.raw.get_mut("signals").and_then(Value::as_array_mut).map(std::mem::take);
            let signals = answer.signals.iter().cloned().zip(as_came.unwrap_or_default());
            let mut page: Vec<_> = signals.map(|(one, raw)| Answered::new(one, raw)).collect();
            let full = page.len() as u64 >= wanted;
            page.sort_by_key(|one| std::cmp::Reverse(one.seq));
            // A daemon that did not go back would be asked for ever.
            page.retain(|one| before.is_none_or(|before| one.seq < before));
            let Some(lowest) = page.last().map(|one| one.seq) else { break };
            before = Some(lowest);
            found.extend(page.into_iter().filter(|one| one.seq > after));
            if !full || lowest <= after {
                break;
            }
        }
        Ok(found)
    }
}

// === impl SignalTail ===

impl SignalTail<'_> {
    async fn follow(mut self) -> anyhow::Result<ExitCode> {
        let mut stop = Interrupts::new()?;
        let shown = tokio::select! {
            shown = self.show_all() => shown,
            _ = stop.next() => Ok(ExitCode::SUCCESS),
        };
        match shown {
            // Nobody reads any more: that is how `| head` ends it.
            Err(error) if error.downcast_ref::<io::Error>().is_some() => Ok(ExitCode::SUCCESS),
            shown => shown,
        }
    }

    async fn show_all(&mut self) -> anyhow::Result<ExitCode> {
        let mut limit = self.options.limit;
        let mut was_there = false;
        loop {
            // The stream comes first: what happens while the history is read is told there.
            match self.mesh.events().await {
                Ok(mut events) => {
                    was_there = true;
                    if self.catch_up(limit).await? {
                        // What came before the beginning was left out on purpose; from here on nothing is.
                        limit = u64::MAX;
                        while self.next(&mut events).await {
                            if !self.catch_up(limit).await? {
                                break;
                            }
                        }
                    }
                    say::status(Some("the daemon is away; this goes on when it is back"));
                }
                Err(DaemonCallError::Away(_) | DaemonCallError::Late(_)) if was_there => {}
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                Err(trouble) => return Err(trouble.into()),
            }
            sleep(LOOK).await;
            // It may be elsewhere by now.
            if let Ok(Some(mesh)) = MeshClient::running(self.env) {
                self.mesh = mesh;
            }
        }
    }

    /// Waits until a signal was sent. `false`: the stream ended.
    async fn next(&self, events: &mut EventFeed) -> bool {
        loop {
            match events.next().await {
                FeedItem::Event { name, .. } if name == "signal_sent" => return true,
                FeedItem::Event { .. } => {}
                FeedItem::End => return false,
            }
        }
    }

    /// Shows what came since. `false`: the daemon is away.
    async fn catch_up(&mut self, limit: u64) -> anyhow::Result<bool> {
        let mut news = match self.options.newest(&self.mesh, limit, self.last).await {
            Err(DaemonCallError::Away(_) | DaemonCallError::Late(_)) => return Ok(false),
            news => news?,
        };
        say::status(None);
        news.reverse();
        for one in &news {
            say::try_line(&if self.options.json { json!(one).to_string() } else { line(one) })?;
            self.last = self.last.max(one.seq);
        }
        Ok(true)
    }
}

/// A signal in one line.
fn line(one: &SignalView) -> String {
    let known = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
    let body: String = one.body.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(
        "{:>6}  {}  {} > {}  {}  {}  {}  {body}",
        one.seq,
        clock(&one.sent_at),
        one.from,
        known(&one.to),
        one.kind,
        known(&one.state),
        one.signal_id,
    )
}
