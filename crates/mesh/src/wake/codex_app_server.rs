//! `codex_app_server`: a turn in the thread of a Codex app-server, whose TUI is another client of the same server
//! (`codex --remote URL`). The person sees the bell arrive, and what they were typing stays.
//!
//! What was seen of Codex 0.166: a client that has not resumed a thread may start a turn in it all the same, and hears
//! nothing of what comes of it, which is right for a doorbell. A thread that the server has not loaded is nobody's at
//! the moment, or another process's: it is not resumed, as two writers spoil it.

mod wire;

#[cfg(test)]
mod tests;

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::mesh::WakePath;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use self::wire::{AppServerConnection, AppServerError};
use super::{
    AgentFacts, ContactAddress, Doing, ProbeOutcome, RingOutcome, WakeAdapter, WakeBell, WakeContact, Why,
    loopback::LoopbackServer,
    secret::{PointedSecrets, SecretPointer},
    told,
};

/// How long one ring may take, from the connection to the turn's number. Measured: 25 ms.
const DEADLINE: Duration = Duration::from_secs(5);
/// Threads that are looked at to find the only one. Where there are more, one has to be named.
const MAX_THREADS: usize = 16;
const EXAMPLE: &str = "ws://127.0.0.1:4500 or unix:///run/user/1000/codex.sock";

pub(super) struct CodexAdapter {
    secrets: PointedSecrets,
    deadline: Duration,
}

/// A thread in an app-server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CodexThread {
    server: AppServerAddress,
    /// `None`: the only one that the server has loaded.
    id: Option<String>,
    /// Where the token is.
    token: Option<SecretPointer>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AppServerAddress {
    Net(LoopbackServer),
    Unix(PathBuf),
}

/// What a thread is doing.
enum CodexThreadState {
    Idle,
    Active,
}

// === impl CodexAdapter ===

impl CodexAdapter {
    pub(super) fn new(secrets: PointedSecrets) -> Self {
        Self { secrets, deadline: DEADLINE }
    }

    /// Does one of the things that have to be done until then; if it takes longer, that means this.
    async fn until<T>(
        &self,
        until: Instant,
        late: fn(Why) -> AppServerError,
        doing: impl Future<Output = Result<T, AppServerError>>,
    ) -> Result<T, AppServerError> {
        let why = || format!("the app-server did not answer within {:?}", self.deadline).into();
        timeout_at(until, doing).await.unwrap_or_else(|_| Err(late(why())))
    }

    /// Connects, says who we are, and finds the thread.
    async fn enter(
        &self,
        thread: &CodexThread,
    ) -> Result<(AppServerConnection, String, CodexThreadState), AppServerError> {
        let token = match &thread.token {
            Some(token) => Some(self.secrets.look_up(token).await.map_err(|why| AppServerError::Broken(why.into()))?),
            None => None,
        };
        let mut wire = AppServerConnection::connect(&thread.server, token.as_deref()).await?;
        let client = json!({ "name": "prism", "title": "Prism", "version": env!("CARGO_PKG_VERSION") });
        wire.ask("initialize", json!({ "clientInfo": client })).await?;
        wire.note("initialized").await?;
        let id = match &thread.id {
            Some(id) => id.clone(),
            None => only_thread(&mut wire).await?,
        };
        let read = wire.ask("thread/read", json!({ "threadId": id, "includeTurns": false })).await;
        let state = match read {
            Ok(read) => read["thread"]["status"]["type"].as_str().unwrap_or_default().to_owned(),
            // In so many words if it is not on disk either.
            Err(AppServerError::Refused(why)) if why.contains("not loaded") || why.contains("not found") => {
                "notLoaded".to_owned()
            }
            Err(error) => return Err(error),
        };
        match state.as_str() {
            "active" => Ok((wire, id, CodexThreadState::Active)),
            "notLoaded" => Err(AppServerError::Nobody(NOT_LOADED.into())),
            // One that has failed can be spoken to again; so can what a later version says.
            _ => Ok((wire, id, CodexThreadState::Idle)),
        }
    }

    async fn knock(&self, thread: &CodexThread, bell: &WakeBell) -> Result<(), AppServerError> {
        let until = Instant::now() + self.deadline;
        let ready = async {
            let (mut wire, id, state) = self.enter(thread).await?;
            let turn = match state {
                CodexThreadState::Active => running_turn(&mut wire, &id).await?,
                CodexThreadState::Idle => None,
            };
            Ok((wire, id, turn))
        };
        let (mut wire, id, turn) = self.until(until, AppServerError::Broken, ready).await?;
        let input = json!([{ "type": "text", "text": &*bell.text }]);
        let asked = async {
            if let Some(turn) = turn {
                let steer = json!({ "threadId": id, "expectedTurnId": turn, "input": input });
                match wire.ask("turn/steer", steer).await {
                    // It ended meanwhile, or is none that can be steered: a turn of its own, then.
                    Err(AppServerError::Refused(_)) => {}
                    steered => return steered,
                }
            }
            // While a turn is active 0.166 takes this for steering, so nothing is lost to a race.
            wire.ask("turn/start", json!({ "threadId": id, "input": input })).await
        };
        self.until(until, AppServerError::Unanswered, asked).await.map(|_| ())
    }
}

const NOT_LOADED: &str =
    "that app-server has not this thread open: start Codex with codex --remote URL, and name the thread that it shows";

/// The only thread that a person can be at. Codex has threads of its own besides, as to find a title.
async fn only_thread(wire: &mut AppServerConnection) -> Result<String, AppServerError> {
    let loaded = wire.ask("thread/loaded/list", json!({ "limit": MAX_THREADS })).await?;
    let mut found = None;
    for id in loaded["data"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let read = match wire.ask("thread/read", json!({ "threadId": id, "includeTurns": false })).await {
            Ok(read) => read,
            // It has gone meanwhile.
            Err(AppServerError::Refused(_)) => continue,
            Err(error) => return Err(error),
        };
        let thread = &read["thread"];
        if thread["ephemeral"] == true || thread["parentThreadId"].is_string() {
            continue;
        }
        if found.replace(id.to_owned()).is_some() {
            return Err(AppServerError::Nobody(
                "that app-server has several threads open: name one, as wake.codex_app_server.thread in prism_start"
                    .into(),
            ));
        }
    }
    found.ok_or(AppServerError::Nobody(NOT_LOADED.into()))
}

/// The turn that is under way. Not `thread/read` with its turns: that is the whole conversation.
async fn running_turn(wire: &mut AppServerConnection, thread: &str) -> Result<Option<String>, AppServerError> {
    let newest = json!({ "threadId": thread, "limit": 1, "sortDirection": "desc" });
    match wire.ask("thread/turns/list", newest).await {
        Ok(turns) => {
            let turn = &turns["data"][0];
            Ok(turn["id"].as_str().filter(|_| turn["status"] == "inProgress").map(str::to_owned))
        }
        // An older server, or a thread of an older kind.
        Err(AppServerError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

impl WakeAdapter for CodexAdapter {
    fn path(&self) -> WakePath {
        WakePath::CodexAppServer
    }

    fn check(&self, told: &Value) -> Result<(), String> {
        let thread = CodexThread::read(told)?;
        thread.token.map_or(Ok(()), |token| self.secrets.check(&token))
    }

    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact> {
        let thread = CodexThread::read(agent.wake.get(self.path().name())?).ok()?;
        Some(WakeContact::new(agent, ContactAddress::Codex(thread)))
    }

    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome> {
        let ContactAddress::Codex(thread) = &contact.to else { return Box::pin(async { ProbeOutcome::misled() }) };
        Box::pin(async {
            match self.until(Instant::now() + self.deadline, AppServerError::Broken, self.enter(thread)).await {
                Ok(_) => ProbeOutcome::There,
                Err(error) => ProbeOutcome::Absent(error.why()),
            }
        })
    }

    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome> {
        let ContactAddress::Codex(thread) = &contact.to else { return Box::pin(async { RingOutcome::misled() }) };
        Box::pin(async {
            match self.knock(thread, bell).await {
                Ok(()) => RingOutcome::Rang,
                Err(AppServerError::Nobody(why)) => RingOutcome::Uncaptured(why),
                Err(AppServerError::Unanswered(why)) => RingOutcome::Unanswered(why),
                Err(error) => RingOutcome::SendFailed(error.why()),
            }
        })
    }
}

// === impl CodexThread ===

impl CodexThread {
    fn read(told: &Value) -> Result<Self, String> {
        let told = told::WakeFields::read("codex_app_server", told, &["url", "thread", "secret", "token_file"])?;
        let url = told.wanted("url")?;
        let server = match url.strip_prefix("unix://") {
            Some(path) if path.starts_with('/') => AppServerAddress::Unix(path.into()),
            Some(_) => return Err(told.wrong("url", &format!("must be an address on this machine, as in {EXAMPLE}"))),
            None => {
                AppServerAddress::Net(LoopbackServer::parse(url, "ws", EXAMPLE).map_err(|why| told.wrong("url", &why))?)
            }
        };
        let named = told.text("secret")?.map(|name| SecretPointer::Named(name.to_owned()));
        let in_file = told.file("token_file")?.map(SecretPointer::File);
        if named.is_some() && in_file.is_some() {
            return Err(told.wrong("secret", "and token_file exclude each other"));
        }
        Ok(Self { server, id: told.text("thread")?.map(str::to_owned), token: named.or(in_file) })
    }
}

// === impl AppServerError ===

impl AppServerError {
    fn why(self) -> Why {
        match self {
            Self::Nobody(why) | Self::Broken(why) | Self::Unanswered(why) => why,
            Self::Refused(why) => format!("the app-server refused: {why}").into(),
        }
    }
}
