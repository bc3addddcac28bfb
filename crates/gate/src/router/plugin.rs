//! One connection of an editor's: what it can do, the commands that it has, and what it said of its texts.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prism_api::gate::PluginView;
use prism_core::{
    Time,
    policy::{Bucket, Code, GrantRoot, Refusal, VerbSpec},
};
use prism_editor::{
    GrantHolder, ProgressSink,
    protocol::{
        CancelMessage, CommandMessage, EventMessage, GetStateMessage, ProgressMessage, RegisterMessage, ResultMessage,
        RungMessage, ToPlugin,
    },
};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use super::{
    chat::MAX_RINGING,
    mirror::{BufferMirror, MirrorUpdate, UnsavedText},
    shows::RunShows,
};

/// An editor that has registered.
#[derive(Debug)]
pub struct Plugin {
    pub about: PluginView,
    /// The folders that are open in it, as they really are.
    roots: Vec<PathBuf>,
    verbs: HashSet<&'static str>,
    /// Of two the later one owns a folder: by when it says that it began, then by when it came.
    pub(super) newness: (u64, u64),
    out: mpsc::Sender<ToPlugin>,
    /// What is run in its folders, for it to show.
    pub(super) shows: RunShows,
    pub(super) life: watch::Sender<PluginLiveness>,
    state: Mutex<PluginState>,
}

/// How a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PluginLiveness {
    /// It has not shown yet that somebody is there, or no longer does.
    Unsure,
    Alive,
    Gone,
}

#[derive(Debug)]
struct PluginState {
    next: u64,
    waiting: HashMap<u64, PendingCommand>,
    /// Bells that its chat has been asked to show.
    ringing: HashMap<u64, oneshot::Sender<RungMessage>>,
    mirror: BufferMirror,
    events: Bucket,
    /// Events that nobody was told of: of other folders, of no name, too many.
    dropped: u64,
    complained: bool,
}

#[derive(Debug)]
struct PendingCommand {
    done: oneshot::Sender<Result<Value, Refusal>>,
    progress: ProgressSink,
}

/// Takes a command back if nobody waits for it any more.
struct CommandGuard<'p> {
    plugin: &'p Plugin,
    id: u64,
}

/// Commands that wait for one editor at the same time. A further one is refused and told to come back: an editor does one
/// thing after the other.
pub(super) const MAX_COMMANDS: usize = 64;
/// Messages that an editor has not read yet. Beyond it commands are refused: it does not read.
const MAX_UNSENT: usize = 256;
/// Events of one editor that are listened to: a second, and at once.
pub(super) const EVENTS_PER_SECOND: u32 = 500;
const EVENTS_AT_ONCE: u32 = 2_000;

impl Plugin {
    pub(super) fn new(
        plugin: &str,
        register: &RegisterMessage,
        roots: Vec<PathBuf>,
        newness: (u64, u64),
        now: Time,
    ) -> (Arc<Self>, mpsc::Receiver<ToPlugin>) {
        let (out, outgoing) = mpsc::channel(MAX_UNSENT);
        let named: HashSet<&str> = register.capabilities.iter().map(String::as_str).collect();
        // What runs programs is never its to do, whatever it says that it can.
        let is_offered = |action: &&VerbSpec| named.contains(action.verb) && !action.runs_programs();
        let capabilities: Vec<_> = VerbSpec::all().filter(is_offered).map(|action| action.verb).collect();
        let verbs = capabilities.iter().copied().collect();
        let about = PluginView {
            plugin: plugin.to_owned(),
            connection: format!("{plugin}#{}", newness.1),
            instance: register.instance_id.clone(),
            kind: register.kind.clone(),
            version: register.version.clone(),
            roots: roots.iter().map(|root| root.display().to_string()).collect(),
            ui: register.ui,
            decides: register.decides,
            chat: register.chat && register.ui,
            shows: register.shows,
            capabilities: capabilities.iter().map(|verb| (*verb).to_owned()).collect(),
            pid: register.pid,
            ..PluginView::default()
        };
        let state = PluginState {
            next: 0,
            waiting: HashMap::new(),
            ringing: HashMap::new(),
            mirror: BufferMirror::default(),
            events: Bucket::full(EVENTS_AT_ONCE, now),
            dropped: 0,
            complained: false,
        };
        let (life, _) = watch::channel(PluginLiveness::Unsure);
        let (shows, state) = (RunShows::default(), Mutex::new(state));
        (Arc::new(Self { about, roots, verbs, newness, out, shows, life, state }), outgoing)
    }

    /// Whether somebody is there: its window has answered lately.
    pub fn is_alive(&self) -> bool {
        *self.life.borrow() == PluginLiveness::Alive
    }

    /// Waits until somebody is there; `false` if the connection is over before.
    pub async fn alive(&self) -> bool {
        let mut life = self.life.subscribe();
        life.wait_for(|life| *life != PluginLiveness::Unsure).await.is_ok_and(|life| *life == PluginLiveness::Alive)
    }

    /// Waits until nobody is there any more.
    pub async fn faded(&self) {
        let _ = self.life.subscribe().wait_for(|life| *life != PluginLiveness::Alive).await;
    }

    /// What it is called where it is on record that a person decided there.
    pub fn signature(&self) -> String {
        format!("editor {}", self.about.connection)
    }

    pub(super) fn can(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }

    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Whether a path is one of its folders or beneath one.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root))
    }

    /// Whether one of its folders is in one of these, or above it.
    pub(super) fn touches(&self, roots: &[GrantRoot]) -> bool {
        let names: Vec<PathBuf> = roots.iter().map(|root| PathBuf::from(root.to_string())).collect();
        self.roots.iter().any(|own| names.iter().any(|root| own.starts_with(root) || root.starts_with(own)))
    }

    pub(super) fn unsaved(&self) -> Vec<(PathBuf, UnsavedText)> {
        self.state().mirror.unsaved()
    }

    pub(super) fn is_unsaved(&self, path: &Path) -> bool {
        self.state().mirror.is_dirty(path)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.state().dropped
    }

    /// Has it do a verb. Beyond the time it is `timed_out`, and if nobody waits any more it is told so.
    pub(super) async fn call(
        &self,
        verb: &str,
        args: Map<String, Value>,
        for_whom: (&GrantHolder, &[GrantRoot]),
        within: Duration,
        progress: &ProgressSink,
    ) -> Result<Value, Refusal> {
        let (done, doing) = oneshot::channel();
        // Dropped with this future, or at its deadline: then the editor is told.
        let _errand = self.send(verb, args, for_whom, within, PendingCommand { done, progress: progress.clone() })?;
        match tokio::time::timeout(within, doing).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(self.gone_away()),
            Err(_) => {
                let message = format!(
                    "{} did not answer within {} s; whether {verb} was done is not known, look again",
                    self.about.kind,
                    within.as_secs()
                );
                Err(Refusal::new(Code::TimedOut, message))
            }
        }
    }

    fn send(
        &self,
        verb: &str,
        args: Map<String, Value>,
        (holder, roots): (&GrantHolder, &[GrantRoot]),
        within: Duration,
        waiting: PendingCommand,
    ) -> Result<CommandGuard<'_>, Refusal> {
        let retry =
            |message: String| Refusal { code: Code::TooFast, message, retry_after: Some(Duration::from_secs(1)) };
        let mut state = self.state();
        if *self.life.borrow() == PluginLiveness::Gone {
            return Err(self.gone_away());
        }
        if state.waiting.len() >= MAX_COMMANDS {
            return Err(retry(format!("{} has {MAX_COMMANDS} commands to do already; try again", self.about.kind)));
        }
        state.next += 1;
        let id = state.next;
        let command = CommandMessage {
            id,
            action: verb.to_owned(),
            args,
            session_id: Uuid::from_u128(holder.id).to_string(),
            deadline_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            roots: roots.iter().map(ToString::to_string).collect(),
        };
        if self.out.try_send(ToPlugin::Cmd(command)).is_err() {
            return Err(retry(format!("{} does not read what it is sent; try again", self.about.kind)));
        }
        state.waiting.insert(id, waiting);
        Ok(CommandGuard { plugin: self, id })
    }

    /// Makes room for a bell's answer; returns its number, unless too many are out.
    pub(super) fn begin_ring(&self, done: oneshot::Sender<RungMessage>) -> Option<u64> {
        let mut state = self.state();
        if state.ringing.len() >= MAX_RINGING || *self.life.borrow() == PluginLiveness::Gone {
            return None;
        }
        state.next += 1;
        let id = state.next;
        state.ringing.insert(id, done);
        Some(id)
    }

    pub(super) fn end_ring(&self, id: u64) {
        self.state().ringing.remove(&id);
    }

    /// Takes the answer to a bell.
    pub(super) fn rung(&self, rung: RungMessage) {
        let waiting = self.state().ringing.remove(&rung.id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(rung);
        }
    }

    /// Takes a result. One that nobody waits for is none: it came twice, too late, or under a wrong id.
    pub(super) fn answered(&self, answer: ResultMessage) -> bool {
        let waiting = self.state().waiting.remove(&answer.id);
        waiting.is_some_and(|waiting| waiting.done.send(answer.result()).is_ok())
    }

    pub(super) fn progressed(&self, step: &ProgressMessage) {
        if let Some(waiting) = self.state().waiting.get(&step.id) {
            waiting.progress.say(&step.message, step.done, step.total);
        }
    }

    pub(super) fn take_state(&self, state: prism_editor::protocol::StateMessage) -> MirrorUpdate {
        self.state().mirror.take(state, |path| self.covers(path))
    }

    /// Takes an event in; `None` if nobody is to be told of it.
    pub(super) fn hear(&self, told: &EventMessage, path: Option<&Path>, now: Time) -> Option<MirrorUpdate> {
        let mut state = self.state();
        if state.events.take(EVENTS_PER_SECOND, EVENTS_AT_ONCE, now).is_err() {
            state.mirror.missed();
            state.dropped += 1;
            return None;
        }
        match state.mirror.hear(told, path) {
            MirrorUpdate::Again => {
                state.dropped += 1;
                None
            }
            heard => Some(heard),
        }
    }

    /// Counts an event that nobody is told of.
    pub(super) fn drop_event(&self) {
        self.state().dropped += 1;
    }

    /// Asks for the state, if something of it was missed.
    pub(super) fn catch_up(&self) {
        let asks = self.state().mirror.asks();
        if asks {
            self.say(ToPlugin::GetState(GetStateMessage {}));
        }
    }

    /// Says something that may be lost if the editor does not read.
    pub fn say(&self, message: ToPlugin) {
        let _ = self.out.try_send(message);
    }

    /// Waits for what it is to be told of what runs in its folders. Cancel safe.
    pub async fn next_show(&self) -> ToPlugin {
        self.shows.next().await
    }

    /// Whether this is the first complaint about it.
    pub(super) fn complains(&self) -> bool {
        !std::mem::replace(&mut self.state().complained, true)
    }

    /// Ends the connection, for all who wait for it.
    pub(super) fn end(&self) {
        self.life.send_replace(PluginLiveness::Gone);
        let mut state = self.state();
        state.waiting.clear();
        state.ringing.clear();
        drop(state);
        self.shows.close();
    }

    /// Ends what waits for it: it is there, but nobody is at its window.
    pub(super) fn abandon(&self) {
        self.state().waiting.clear();
    }

    fn gone_away(&self) -> Refusal {
        let message = format!("{} went away; look again what was done, then try again", self.about.kind);
        Refusal { code: Code::Failed, message, retry_after: Some(Duration::from_secs(1)) }
    }

    fn state(&self) -> MutexGuard<'_, PluginState> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CommandGuard<'_> {
    fn drop(&mut self) {
        if self.plugin.state().waiting.remove(&self.id).is_some() {
            self.plugin.say(ToPlugin::Cancel(CancelMessage { id: self.id }));
        }
    }
}

#[cfg(test)]
mod tests;
