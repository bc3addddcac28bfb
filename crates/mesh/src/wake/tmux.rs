//! `tmux`: the bell is typed into the pane that the agent is in. Off unless somebody asks for it: keys go to whatever
//! has the pane, and a person may be writing there.
//!
//! So it is done only when the pane shows the empty prompt of the agent's own program, twice and unchanged, and nobody who
//! looks at it has typed lately; and what stands there is read once more before Enter. Where any of that is not so,
//! nothing is typed. Enter comes after a pause: Codex takes text and an Enter that follows at once for a paste.

mod screen;

#[cfg(test)]
mod tests;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prism_core::mesh::WakePath;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use self::screen::PaneScreen;
use super::{
    AgentFacts, ContactAddress, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, WakeSettings,
    Why, program::WakeProgram, told::WakeFields,
};

/// How long one ring may take: nine runs of tmux and two pauses.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long nobody who looks at the pane may have typed. Whoever thinks longer has written something by then.
const QUIET: Duration = Duration::from_secs(5);
/// Between the two looks at the prompt, and between the text and its Enter. Codex takes what comes within 120 ms for a
/// paste.
const PAUSE: Duration = Duration::from_millis(300);
/// What runs in a pane when no agent does. Typing there would be running commands.
const SHELLS: [&str; 14] =
    ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "pwsh", "xonsh", "elvish"];

pub(super) struct TmuxAdapter {
    allowed: bool,
    tmux: WakeProgram,
    quiet: Duration,
}

/// Where an agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TmuxPane {
    /// As in `%3`.
    id: String,
    /// `None`: the user's own.
    socket: Option<PathBuf>,
    /// What has to run there.
    command: String,
}

/// What a client tells of the pane it is in: its variables `TMUX_PANE`, and `TMUX` as far as the first comma.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaneVariables {
    pub pane: String,
    /// `None`: the user's own.
    pub socket: Option<PathBuf>,
}

// === impl TmuxAdapter ===

impl TmuxAdapter {
    pub(super) fn new(allowed: &WakeSettings) -> Self {
        Self { allowed: allowed.tmux, tmux: WakeProgram::new("tmux", &allowed.env), quiet: QUIET }
    }

    async fn tmux(&self, pane: &TmuxPane, words: &[&str]) -> Result<String, Why> {
        let mut arguments = vec!["-u".to_owned()];
        if let Some(socket) = &pane.socket {
            arguments.extend(["-S".to_owned(), socket.display().to_string()]);
        }
        arguments.extend(words.iter().map(|word| (*word).to_owned()));
        self.tmux.run(arguments).await.map_err(|why| format!("the pane {} cannot be reached: {why}", pane.id).into())
    }

    /// Looks at the pane, and says why it is not one to type into. Changes nothing.
    async fn look(&self, pane: &TmuxPane) -> Result<PaneScreen, Why> {
        const FORMAT: &str = "#{pane_dead} #{pane_in_mode} #{pane_input_off} #{pane_synchronized} #{cursor_x} \
                              #{cursor_y} #{pane_current_command}";
        let said = self.tmux(pane, &["display-message", "-p", "-t", &pane.id, "-F", FORMAT]).await?;
        let parts: Vec<&str> = said.trim_end().splitn(7, ' ').collect();
        let [dead, mode, off, together, x, y, command] = parts.as_slice() else {
            return Err(format!("there is no pane {}", pane.id).into());
        };
        if *command != pane.command {
            return Err(format!("in the pane {} runs {command}, not {}", pane.id, pane.command).into());
        }
        // The first is empty for a pane that lives; the others are 0.
        if [dead, mode, off, together].iter().any(|flag| !matches!(**flag, "" | "0")) {
            return Err(
                format!("the pane {} takes no keys now: it is scrolled back, or shares its keys", pane.id).into()
            );
        }
        let (Ok(x), Ok(y)) = (x.parse(), y.parse()) else {
            return Err("tmux does not say where the cursor is".into());
        };
        let shown = self.tmux(pane, &["capture-pane", "-p", "-e", "-t", &pane.id]).await?;
        Ok(PaneScreen::read(&shown, x, y))
    }

    /// Whether somebody who looks at the pane has typed lately.
    async fn is_typed_at(&self, pane: &TmuxPane) -> Result<bool, Why> {
        let clients = self.tmux(pane, &["list-clients", "-F", "#{pane_id} #{client_activity}"]).await?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(clients.lines().filter_map(|line| line.split_once(' ')).any(|(looks_at, typed)| {
            let typed = Duration::from_secs(typed.parse().unwrap_or(u64::MAX));
            looks_at == pane.id && typed + self.quiet > now
        }))
    }

    /// Types, if nothing speaks against it. What does before anything was typed is a reason; after that it is a failure.
    async fn type_in(&self, pane: &TmuxPane, bell: &WakeBell) -> RingOutcome {
        if let Err(why) = self.is_free(pane).await {
            return RingOutcome::Uncaptured(why);
        }
        let typed = self.tmux(pane, &["send-keys", "-t", &pane.id, "-l", "--", &bell.text]).await;
        if let Err(why) = typed {
            return RingOutcome::SendFailed(why);
        }
        sleep(PAUSE).await;
        match self.look(pane).await {
            Ok(screen) if screen.holds(&bell.text) => {}
            // Somebody typed at the same moment, or the program does something else with keys than show them.
            _ => {
                return RingOutcome::SendFailed(
                    "the prompt does not hold the bell as it was typed, so it was not sent".into(),
                );
            }
        }
        match self.tmux(pane, &["send-keys", "-t", &pane.id, "Enter"]).await {
            Ok(_) => RingOutcome::Rang,
            Err(why) => RingOutcome::SendFailed(why),
        }
    }

    async fn is_free(&self, pane: &TmuxPane) -> Result<(), Why> {
        let first = self.look(pane).await?;
        if !first.is_empty_prompt() {
            return Err("the agent's prompt is not empty, or none that is known: somebody may be writing there".into());
        }
        sleep(PAUSE).await;
        if !self.look(pane).await?.is_as(&first) {
            return Err("the agent's prompt is changing: somebody may be writing there".into());
        }
        if self.is_typed_at(pane).await? {
            return Err("somebody typed in the agent's pane a moment ago".into());
        }
        Ok(())
    }
}

impl WakeAdapter for TmuxAdapter {
    fn path(&self) -> WakePath {
        WakePath::Tmux
    }

    fn check(&self, told: &Value) -> Result<(), String> {
        if !self.allowed {
            return Err("wake.tmux is switched off here: leave it out, or ask the person to allow it".to_owned());
        }
        TmuxPane::read(told, &AgentFacts::default()).map(|_| ())
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        if !self.allowed {
            return None;
        }
        let pane = match (agent.wake.get(self.path().name()), &agent.client.tmux) {
            (Some(told), _) => TmuxPane::read(told, agent).ok()?,
            (None, Some(told)) => {
                TmuxPane { id: told.pane.clone(), socket: told.socket.clone(), command: command_of(&agent.surface)? }
            }
            (None, None) => return None,
        };
        // A surface that nobody knows the command of.
        (!pane.command.is_empty()).then(|| WakeContact::new(agent, ContactAddress::Tmux(pane)))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        let ContactAddress::Tmux(pane) = &contact.to else { return Box::pin(async { ProbeOutcome::misled() }) };
        Box::pin(async {
            match timeout(DEADLINE, self.look(pane)).await {
                // A person's draft is no reason to say that the agent is not there.
                Ok(Ok(_)) => ProbeOutcome::There,
                Ok(Err(why)) => ProbeOutcome::Absent(why),
                Err(_) => ProbeOutcome::Absent("tmux did not answer in time".into()),
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        let ContactAddress::Tmux(pane) = &contact.to else { return Box::pin(async { RingOutcome::misled() }) };
        Box::pin(async {
            let late = |_| RingOutcome::SendFailed("tmux did not answer in time: tmux ls shows whether it does".into());
            timeout(DEADLINE, self.type_in(pane, bell)).await.unwrap_or_else(late)
        })
    }
}

// === impl TmuxPane ===

impl TmuxPane {
    fn read(told: &Value, agent: &AgentFacts) -> Result<Self, String> {
        let told = WakeFields::read("tmux", told, &["pane", "socket", "command"])?;
        let id = told.wanted("pane")?;
        if id.strip_prefix('%').is_none_or(|number| number.parse::<u32>().is_err()) {
            return Err(told.wrong("pane", "must be a pane's own name, as in %3: it is in the variable TMUX_PANE"));
        }
        let command = match told.text("command")? {
            Some(command) if SHELLS.contains(&command) => {
                return Err(told.wrong("command", "must be the agent's own program, not a shell"));
            }
            Some(command) => command.to_owned(),
            None => command_of(&agent.surface).unwrap_or_default(),
        };
        let socket = told.file("socket")?.or_else(|| agent.client.tmux.as_ref().and_then(|told| told.socket.clone()));
        Ok(Self { id: id.to_owned(), socket, command })
    }
}

/// What a surface's program is called in a pane.
fn command_of(surface: &str) -> Option<String> {
    let command = match surface {
        "claude_code" | "claude-code" | "claude" => "claude",
        "codex" => "codex",
        "gemini" | "gemini_cli" => "gemini",
        _ => return None,
    };
    Some(command.to_owned())
}

// === impl PaneVariables ===

impl PaneVariables {
    /// From the variables `TMUX` and `TMUX_PANE`.
    #[must_use]
    pub fn read(tmux: &str, pane: &str) -> Option<Self> {
        let socket = tmux.split(',').next().filter(|socket| socket.starts_with('/'))?;
        let is_pane = pane.strip_prefix('%').is_some_and(|number| number.parse::<u32>().is_ok());
        is_pane.then(|| Self { pane: pane.to_owned(), socket: Some(socket.into()) })
    }
}
