//! Ways to wake an agent, one file each behind one trait. Nothing else in Prism knows a surface: which path is tried,
//! when, and what its outcome means is decided in `core::mesh`.
//!
//! A ring carries no content: whoever hears it asks for its signals. It is not a wake either: that something took it
//! (`RingOutcome::Rang`) says only that the next word is the agent's. Adapters hold no lock while they ring, and each ring has a
//! deadline of its own.

mod acp;
mod channel;
mod codex_app_server;
mod desktop;
mod editor_chat;
mod hook;
mod http;
mod inside;
mod loopback;
mod opencode;
mod piggyback;
mod program;
mod secret;
mod sse;
mod tmux;
mod told;
mod wait;

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, pin::Pin, sync::Arc};

use prism_core::mesh::WakePath;
use serde_json::{Map, Value};

pub use inside::{DaemonChannels, PollKind};
pub use tmux::PaneVariables as Tmux;

use prism_config::Env;

/// One way to wake an agent.
pub trait WakeAdapter: Send + Sync {
    fn path(&self) -> WakePath;

    /// Whether what an agent says under this path's name in the argument `wake` can be used. The error is for the agent,
    /// and names what to say instead.
    fn check(&self, _told: &Value) -> Result<(), String> {
        Err(format!("wake.{} takes nothing: leave it out", self.path().name()))
    }

    /// How to reach the agent by this path, from what its start (or its client) has told; `None`: not by this one.
    /// Touches nothing outside.
    fn attach(&self, agent: &Arc<AgentFacts>) -> Option<WakeContact>;

    /// The agent is not reached by this any more. Most have nothing to let go of.
    fn detach(&self, _contact: &WakeContact) {}

    /// Is anybody there? Has no effect that an agent, or its person, can see.
    fn probe<'a>(&'a self, contact: &'a WakeContact) -> Doing<'a, ProbeOutcome>;

    /// Rings once. Ends by itself, whatever the other side does.
    fn ring<'a>(&'a self, contact: &'a WakeContact, bell: &'a WakeBell) -> Doing<'a, RingOutcome>;
}

/// What an adapter is busy with.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Words for a person: why, and what to do about it. They hold no secret and no content of a signal.
pub type Why = Cow<'static, str>;

/// The doorbell. It has no content of any signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeBell {
    /// What an agent reads, the same on every path that has text.
    pub text: Arc<str>,
    /// Whom it is for: its name, and the session it is reached in.
    pub agent: Arc<str>,
    pub session: Arc<str>,
    /// Who has sent the signal, and of which type it is.
    pub sender: Arc<str>,
    pub kind: Arc<str>,
}

/// What is known of an agent's session, from `prism_start` and from its client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentFacts {
    pub agent: Arc<str>,
    /// The agent session.
    pub session: Arc<str>,
    /// As in `claude_code`; any word.
    pub surface: String,
    pub workspace: Option<PathBuf>,
    /// What the agent's program calls its own session.
    pub surface_session: Option<String>,
    /// The argument `wake`, by names of paths. [`WakeAdapters::check`] has seen it.
    pub wake: Map<String, Value>,
    pub client: ClientFacts,
}

/// What a client tells by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientFacts {
    /// It came through `prism stdio`, which may have a channel to it.
    pub has_channel: bool,
    /// The pane it runs in.
    pub tmux: Option<Tmux>,
}

/// How to reach one agent session by one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeContact {
    pub agent: Arc<str>,
    pub session: Arc<str>,
    to: ContactAddress,
}

/// Where that is. Each path's own words.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ContactAddress {
    /// Something that the daemon holds for this session.
    Inside,
    Codex(codex_app_server::CodexThread),
    Opencode(opencode::OpencodeSession),
    Tmux(tmux::TmuxPane),
    Chat(editor_chat::ChatAddress),
    Person,
}

/// Whether somebody is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeOutcome {
    There,
    Absent(Why),
}

/// What came of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RingOutcome {
    /// Something took it that is there for this agent. Whether the agent woke is shown by its drain.
    Rang,
    /// Nobody is there to take it, or now is not the time; the path itself is in order.
    Uncaptured(Why),
    /// The path does not work. Says what a person can do.
    SendFailed(Why),
    /// It was given all of the bell, and did not say in time whether it took it. Nobody knows.
    Unanswered(Why),
}

/// What the daemon's owner allows, and what adapters need of the world.
#[derive(Clone, Debug, Default)]
pub struct WakeSettings {
    /// Keys may be typed into an agent's pane. Off unless somebody asks for it: see `tmux`.
    pub tmux: bool,
    /// Bells may be put into editors' own chats. Off unless somebody asks for it: see `editor_chat`.
    pub editor_chat: bool,
    /// The person may be sent notices.
    pub desktop: bool,
    pub env: Env,
    /// Prism's own folder: nothing in it is anybody's token.
    pub home: PathBuf,
    /// The secrets that agents may point to, by name, as the config has them.
    pub secrets: BTreeMap<String, String>,
}

/// All adapters, one for each path.
pub struct WakeAdapters {
    table: Vec<Box<dyn WakeAdapter>>,
}

// === impl WakeAdapters ===

impl WakeAdapters {
    pub fn new(inside: &Arc<dyn DaemonChannels>, allowed: &WakeSettings) -> Self {
        let secrets = secret::PointedSecrets::new(allowed);
        let table: Vec<Box<dyn WakeAdapter>> = vec![
            Box::new(wait::WaitAdapter::new(inside.clone())),
            Box::new(codex_app_server::CodexAdapter::new(secrets.clone())),
            Box::new(opencode::OpencodeAdapter::new(secrets)),
            Box::new(acp::AcpAdapter::new(inside.clone())),
            Box::new(hook::HookAdapter::new(inside.clone())),
            Box::new(sse::SseAdapter::new(inside.clone())),
            Box::new(channel::ChannelAdapter::new(inside.clone())),
            Box::new(piggyback::PiggybackAdapter::new(inside.clone())),
            Box::new(tmux::TmuxAdapter::new(allowed)),
            Box::new(editor_chat::EditorChatAdapter::new(allowed, inside.clone())),
            Box::new(desktop::DesktopAdapter::new(allowed)),
        ];
        Self { table }
    }

    pub fn all(&self) -> impl Iterator<Item = &dyn WakeAdapter> {
        self.table.iter().map(AsRef::as_ref)
    }

    pub fn of(&self, path: WakePath) -> Option<&dyn WakeAdapter> {
        self.all().find(|adapter| adapter.path() == path)
    }

    /// Every way to an agent, in the table's order.
    pub fn attach(&self, agent: &Arc<AgentFacts>) -> Vec<(WakePath, WakeContact)> {
        self.all().filter_map(|adapter| Some((adapter.path(), adapter.attach(agent)?))).collect()
    }

    /// Whether the argument `wake` of a start can be used. The error is for the agent that wrote it.
    pub fn check(&self, wake: &Map<String, Value>) -> Result<(), String> {
        for (name, told) in wake {
            let adapter = WakePath::named(name).and_then(|path| self.of(path));
            let adapter = adapter.ok_or_else(|| {
                format!("wake.{name} is no wake path; those that can be told are codex_app_server, opencode and tmux")
            })?;
            adapter.check(told)?;
        }
        Ok(())
    }
}

// === impl WakeContact ===

impl WakeContact {
    fn new(agent: &AgentFacts, to: ContactAddress) -> Self {
        Self { agent: agent.agent.clone(), session: agent.session.clone(), to }
    }
}

// === impl RingOutcome ===

impl RingOutcome {
    /// A contact that another adapter has made. The table hands each its own, so nobody sees this.
    fn misled() -> Self {
        Self::SendFailed("this contact belongs to another wake path".into())
    }
}

impl ProbeOutcome {
    fn misled() -> Self {
        Self::Absent("this contact belongs to another wake path".into())
    }
}

#[cfg(test)]
mod tests;
