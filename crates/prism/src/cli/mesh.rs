//! `prism mesh`: who is in the mesh, what they owe each other and how the bells ring, as it changes. What it shows is
//! the daemon's page of everything; how that looks is in `view.rs`.

mod view;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    thread,
    time::Duration,
};

use prism_api::mesh::MeshOverview;
use prism_os::terminal::{self, RawTerminal};
use serde_json::json;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    moments::now_ms,
    reach::{self, Interrupts},
    say::{self, Colour},
    verbs::{Answered, DaemonCallError, EventFeed, FeedItem, MeshClient, say_not_running},
};
use prism_config::Env;

/// How often it is looked, whether something happens or not.
const LOOK: Duration = Duration::from_millis(500);
/// How soon it is looked again when much happens.
const SOON: Duration = Duration::from_millis(60);
/// Keys that nobody has looked at yet. Beyond it the terminal keeps them.
const KEYS: usize = 16;
/// The width and height of what is not shown on a terminal: all of it.
const UNBOUNDED: usize = usize::MAX;
const AWAY: &str = "Prism is not running; this goes on when it does. q leaves.";

/// Show the mesh as it changes: agents, obligations, bells
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism mesh
  prism mesh --once
  prism mesh --json | jq '.agents[] | {agent, presence, pending}'

q or Ctrl-C leaves. Without a terminal it is shown once.
Exit codes: 0 shown, 1 refused, 3 the daemon does not run.")]
pub struct MeshArgs {
    /// Show it once
    #[arg(long)]
    once: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// What is looked at, and what there is to look for.
struct MeshScreen<'a> {
    env: &'a Env,
    mesh: MeshClient,
    events: Option<EventFeed>,
}

// === impl MeshArgs ===

impl MeshArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(mesh) = MeshClient::running(env)? else { return Ok(say_not_running()) };
            let page = match mesh.page().await {
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                page => page?,
            };
            let live = io::stdout().is_terminal() && io::stdin().is_terminal() && !self.once && !self.json;
            if live {
                return MeshScreen { env, mesh, events: None }.show(page).await;
            }
            if self.json {
                say::text(&serde_json::to_string_pretty(&json!(page))?);
                return Ok(ExitCode::SUCCESS);
            }
            let width = if io::stdout().is_terminal() { terminal::width() } else { None };
            view::lines(&page, width.unwrap_or(UNBOUNDED), UNBOUNDED, now_ms()).iter().for_each(say::coloured);
            Ok(ExitCode::SUCCESS)
        })
    }
}

// === impl MeshScreen ===

impl MeshScreen<'_> {
    async fn show(mut self, page: Answered<MeshOverview>) -> anyhow::Result<ExitCode> {
        let mut stop = Interrupts::new()?;
        let mut resized = signal(SignalKind::window_change())?;
        let _keys = RawTerminal::take()?;
        let screen = say::FullScreen::enter();
        let mut pressed = keys();
        let mut page = Some(page);
        self.events = self.mesh.events().await.ok();
        loop {
            draw(&screen, page.as_ref());
            let drawn = Instant::now();
            loop {
                tokio::select! {
                    key = pressed.recv() => match key {
                        Some(b'q' | b'Q') | None => return Ok(ExitCode::SUCCESS),
                        Some(_) => {}
                    },
                    // That is how one leaves, too.
                    _ = stop.next() => return Ok(ExitCode::SUCCESS),
                    () = shown_again(&mut resized) => draw(&screen, page.as_ref()),
                    () = happened(&mut self.events) => {
                        sleep_until(drawn + SOON).await;
                        break;
                    }
                    () = sleep_until(drawn + LOOK) => break,
                }
            }
            page = self.look().await;
        }
    }

    /// Looks again. It may have been started again, elsewhere.
    async fn look(&mut self) -> Option<Answered<MeshOverview>> {
        if self.events.is_none() {
            if let Ok(Some(again)) = MeshClient::running(self.env) {
                self.mesh = again;
            }
            self.events = self.mesh.events().await.ok();
        }
        self.mesh.page().await.ok()
    }
}

fn draw(screen: &say::FullScreen, page: Option<&Answered<MeshOverview>>) {
    let (width, height) = (terminal::width().unwrap_or(UNBOUNDED), terminal::height().unwrap_or(UNBOUNDED));
    match page {
        Some(page) => screen.draw(&view::lines(page, width, height, now_ms())),
        None => screen.draw(&[vec![(AWAY.chars().take(width).collect(), Some(Colour::Yellow))]]),
    }
}

/// Returns the keys as they are pressed. The thread ends with the process: it may wait for a key that does not come.
fn keys() -> mpsc::Receiver<u8> {
    let (tx, rx) = mpsc::channel(KEYS);
    let reading = move || {
        while let Some(key) = RawTerminal::next() {
            if tx.blocking_send(key).is_err() {
                break;
            }
        }
    };
    // Without the thread there are no keys, and the receiver says so: the view is left at once, not stuck.
    let _ = thread::Builder::new().name("keys".to_owned()).spawn(reading);
    rx
}

/// Returns when the terminal has another size. Cancel safe.
async fn shown_again(resized: &mut Signal) {
    if resized.recv().await.is_none() {
        std::future::pending().await
    }
}

/// Returns when something has happened in the mesh, or nobody is left to tell. Cancel safe.
async fn happened(events: &mut Option<EventFeed>) {
    match events {
        Some(stream) => {
            if matches!(stream.next().await, FeedItem::End) {
                *events = None;
            }
        }
        None => std::future::pending().await,
    }
}
