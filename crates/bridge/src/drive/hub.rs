//! The hub: every destination behind one URL (B-27). Which of them a request is for, and under which names.
//!
//! A session of the hub's lives at Prism's own server, its *home*, where its streams are and what it says of itself; at
//! each other destination, a *member*, it has a part from the first use on. So a call goes to its member's link as
//! directly as if the client had come there, and what comes back goes to the client without a detour. Only what belongs
//! to no call passes through the home.

pub(super) mod fetch;
mod lists;
mod session;
mod tools;
mod view;
mod watch;
mod way;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use prism_core::{
    mcp::{ClientHello, MemberNames, Method, link::StreamKey},
    wire::Message,
};
use tracing::{debug, warn};

pub use session::{HubSession, MemberSessionError};
pub use view::{HubView, HubViewer, UnknownViewError};
pub use way::HubTarget;

use self::lists::MemberLists;
use super::{Audience, Destination, LinkCommand, SessionEntry, SessionTable, destination::lock, health::ServerHealth};
use prism_config as config;

/// What a client is told of that may have missed something.
const CHANGES: [Method; 3] = [Method::ToolsChanged, Method::PromptsChanged, Method::ResourcesChanged];

/// Views that are kept: what `/mcp` and the profiles show, and what clients put into `?only=`. Beyond it a view lives as
/// long as its sessions, and its lists are put together anew.
const MAX_VIEWS: usize = 64;

pub struct Hub {
    home: Arc<Destination>,
    plan: RwLock<Arc<HubPlan>>,
    sessions: Arc<SessionTable>,
    views: Mutex<HashMap<String, Arc<HubView>>>,
    /// Counts what has changed in any member's lists.
    changes: AtomicU64,
    /// Streams of changes that modern clients have open, or are about to; and of those that are open at home what their
    /// clients see, and who those are.
    listening: AtomicUsize,
    listens: Mutex<HashMap<StreamKey, (Arc<HubView>, Audience)>>,
    /// Milliseconds since the hub was made, plus one; 0 if nobody without a session was there yet.
    last_used: AtomicU64,
    epoch: Instant,
}

/// What a config makes of the hub.
struct HubPlan {
    members: Vec<Arc<HubMember>>,
    /// The number of the next new one. None is given twice: sessions remember what they had where.
    next_number: u32,
    settings: config::HubConfig,
    profiles: BTreeMap<String, config::ProfileConfig>,
    /// How long the members are kept awake for nobody.
    keeps: Duration,
}

/// A destination behind the hub.
pub struct HubMember {
    pub destination: Arc<Destination>,
    /// From 1 on: the number of its parts.
    number: u32,
    names: MemberNames,
    /// It is Prism itself: its names are known to be nobody else's.
    own: bool,
    lists: MemberLists,
    /// Whether it was said in the log that it lists names of others.
    has_squatted: AtomicBool,
}

/// What the hub knows of a member.
#[derive(Debug)]
pub struct MemberStatus {
    pub name: String,
    /// How many tools it lists.
    pub tools: Option<usize>,
    /// How its server is.
    pub health: ServerHealth,
    /// Why it is not well, or a list of it could not be had.
    pub why: Option<String>,
}

/// A stream of changes that is open. While there is one, the members' lists are watched.
pub struct HubSubscription {
    hub: Arc<Hub>,
    stream: Option<StreamKey>,
}

// === impl Hub ===

impl Hub {
    /// `members` in the order in which lists show them; the `home` comes before all of them.
    pub fn new(
        home: Arc<Destination>,
        members: impl IntoIterator<Item = Arc<Destination>>,
        daemon: &config::Config,
        sessions: Arc<SessionTable>,
    ) -> Arc<Self> {
        let plan = HubPlan::new([home.clone()].into_iter().chain(members), daemon, None);
        Arc::new(Self {
            home,
            plan: RwLock::new(Arc::new(plan)),
            sessions,
            views: Mutex::default(),
            changes: AtomicU64::new(0),
            listening: AtomicUsize::new(0),
            listens: Mutex::default(),
            last_used: AtomicU64::new(0),
            epoch: Instant::now(),
        })
    }

    fn plan(&self) -> Arc<HubPlan> {
        self.plan.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes on with another config. A member of the same name keeps its number, and what is known of it if it is the
    /// same. Who looks at the hub sees the new one from now on.
    pub fn reload(&self, members: impl IntoIterator<Item = Arc<Destination>>, daemon: &config::Config) {
        let before = self.plan();
        let plan = HubPlan::new([self.home.clone()].into_iter().chain(members), daemon, Some(&before));
        *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
        lock(&self.views).clear();
        self.changes.fetch_add(1, Ordering::Relaxed);
        for (view, _) in lock(&self.listens).values_mut() {
            *view = self.view_again(view);
        }
        for entry in self.sessions.of_hub() {
            if let Some(session) = entry.hub() {
                session.see(self.view_again(&session.view()));
            }
        }
    }

    /// What was asked for with this view, as it is now; nothing but Prism itself if it is no more. Who was to see some of
    /// the members must not see all of them.
    fn view_again(&self, view: &Arc<HubView>) -> Arc<HubView> {
        let asked = Some(view.asked()).filter(|asked| !asked.is_empty());
        self.view(asked).unwrap_or_else(|_| Arc::new(view.bare()))
    }

    /// All members are what they are going to be: clients are told that anything may have changed, and what they watched
    /// is watched again.
    pub fn reloaded(self: &Arc<Self>) {
        for entry in self.sessions.of_hub() {
            self.welcome_back(&entry);
        }
        let listens: Vec<StreamKey> = lock(&self.listens).keys().copied().collect();
        let link = self.home.stateless_link();
        tokio::spawn(async move {
            for method in CHANGES {
                let (to, listens) = (Vec::new(), listens.clone());
                let _ = link.commands.send(LinkCommand::Announce { method, to, listens }).await;
            }
        });
    }

    /// Prism's own server.
    pub fn home(&self) -> &Arc<Destination> {
        &self.home
    }

    /// What is known of each member.
    pub fn overview(&self) -> Vec<MemberStatus> {
        let plan = self.plan();
        let members = plan.members.iter().filter(|member| !member.is_home());
        let known = members.map(|member| {
            let health = member.destination.health();
            let ill = (!health.state.is_ready()).then(|| health.said.clone());
            let unlisted = || member.lists.trouble().or_else(|| member.lists.is_missed().then(|| self.no_answer()));
            let (name, tools) = (member.name().to_owned(), member.lists.count(Method::ToolsList));
            MemberStatus { name, tools, why: ill.or_else(unlisted), health }
        });
        known.collect()
    }

    /// A new session's life at the hub, and at its members. What its client will want to see first is fetched at once.
    pub fn open(self: &Arc<Self>, view: Arc<HubView>, hello: &ClientHello, initialize: &Message) -> HubSession {
        self.warm(view.members(), Audience::legacy(hello.class));
        HubSession::new(view, hello.clone(), initialize)
    }

    /// The same of one that the last daemon has left, if there still is what its client asked to see. Its members are
    /// left alone until it is back.
    pub fn take_up(
        &self,
        asked: &str,
        hello: &ClientHello,
        initialize: &Message,
        text: Option<&str>,
    ) -> Option<HubSession> {
        let view = self.view(Some(asked)).ok()?;
        Some(HubSession::take_up(view, hello.clone(), initialize, text))
    }

    /// The client of a session is there. After it was away for a change of daemons it is told that anything may have
    /// changed, and what it watched is watched again.
    pub fn is_back(self: &Arc<Self>, entry: &Arc<SessionEntry>) {
        if entry.hub().is_some_and(HubSession::is_back) {
            self.welcome_back(entry);
        }
    }

    fn welcome_back(self: &Arc<Self>, entry: &Arc<SessionEntry>) {
        let Some(session) = entry.hub() else { return };
        let watched = session.watched_at();
        let members: Vec<Arc<HubMember>> =
            session.view().members().iter().filter(|member| watched.contains(&member.number)).cloned().collect();
        let (hub, entry) = (self.clone(), entry.clone());
        tokio::spawn(async move {
            for method in CHANGES {
                let announce = LinkCommand::Announce { method, to: vec![entry.key()], listens: Vec::new() };
                let _ = entry.link.commands.send(announce).await;
            }
            for member in members {
                // One that cannot be reached now is subscribed to when it is used.
                if let Some(session) = entry.hub() {
                    let _ = session.part(&hub, &entry, &member, None).await;
                }
            }
        });
    }

    /// Notes that somebody is there whom no session shows.
    pub fn touch(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.last_used.store(now, Ordering::Relaxed);
    }

    pub fn listen(self: &Arc<Self>) -> HubSubscription {
        self.listening.fetch_add(1, Ordering::Relaxed);
        HubSubscription { hub: self.clone(), stream: None }
    }

    /// Whether anybody would miss the members.
    fn is_used(&self) -> bool {
        let lately = match self.last_used.load(Ordering::Relaxed) {
            0 => false,
            then => self.epoch.elapsed().saturating_sub(Duration::from_millis(then - 1)) < self.plan().keeps,
        };
        lately || self.listening.load(Ordering::Relaxed) > 0 || self.sessions.has_hub_sessions()
    }

    /// Tells those of the clients that see this member that one of its lists has changed.
    fn announce(&self, member: &HubMember, whose: impl Fn(Audience) -> bool, method: Method) {
        let to = self.sessions.hub_sessions(|session| session.view().shows(member) && whose(session.audience()));
        debug!(destination = member.name(), method = method.name(), sessions = to.len(), "A list of the hub's changed");
        let hears = |(_, (view, of)): &(&StreamKey, &(Arc<HubView>, Audience))| view.shows(member) && whose(*of);
        let listens: Vec<StreamKey> = lock(&self.listens).iter().filter(hears).map(|(stream, _)| *stream).collect();
        let link = self.home.stateless_link();
        tokio::spawn(async move { link.commands.send(LinkCommand::Announce { method, to, listens }).await });
    }
}

// === impl HubPlan ===

impl HubPlan {
    fn new(
        members: impl IntoIterator<Item = Arc<Destination>>,
        daemon: &config::Config,
        before: Option<&Self>,
    ) -> Self {
        let mut next_number = before.map_or(0, |before| before.next_number);
        let before = before.map(|before| &before.members[..]).unwrap_or_default();
        let mut taken: Vec<MemberNames> = before.iter().map(|member| member.names.clone()).collect();
        let mut all = Vec::new();
        for destination in members {
            let own = destination.is_built_in();
            let known = before.iter().find(|member| member.name() == destination.config().name);
            all.push(match known {
                Some(same) if Arc::ptr_eq(&same.destination, &destination) => same.clone(),
                Some(changed) => {
                    let (number, names) = (changed.number, changed.names.clone());
                    Arc::new(HubMember::new(destination, number, names, own))
                }
                None => {
                    let names = MemberNames::new(&destination.config().name, &taken);
                    taken.push(names.clone());
                    let number = next_number;
                    next_number += 1;
                    Arc::new(HubMember::new(destination, number, names, own))
                }
            });
        }
        let keeps = daemon.session_idle_timeout.unwrap_or(Duration::from_secs(30 * 60));
        let (settings, profiles) = (daemon.hub.clone(), daemon.profiles.clone());
        Self { members: all, next_number, settings, profiles, keeps }
    }
}

// === impl HubMember ===

impl HubMember {
    fn new(destination: Arc<Destination>, number: u32, names: MemberNames, own: bool) -> Self {
        let lists = MemberLists::of(&destination);
        Self { lists, destination, number, names, own, has_squatted: AtomicBool::new(false) }
    }

    /// Says once in the log that it lists something under a name that leads to another.
    fn squats(&self, name: &str) {
        if !self.has_squatted.swap(true, Ordering::Relaxed) {
            let destination = self.name();
            let shown = self.names.name(name, usize::MAX);
            warn!(
                destination,
                name, shown, "A server lists a name that is another's; it is shown under its own prefix"
            );
        }
    }

    /// Whether it is Prism's own server, where the hub's sessions are at home.
    pub fn is_home(&self) -> bool {
        self.number == 0
    }

    pub fn name(&self) -> &str {
        &self.destination.config().name
    }
}

// === impl HubSubscription ===

impl HubSubscription {
    /// From now on it is this stream at home, whose client sees this much and is one of these.
    pub fn is(&mut self, stream: StreamKey, view: &Arc<HubView>, audience: Audience) {
        lock(&self.hub.listens).insert(stream, (view.clone(), audience));
        self.stream = Some(stream);
    }
}

impl Drop for HubSubscription {
    fn drop(&mut self) {
        if let Some(stream) = &self.stream {
            lock(&self.hub.listens).remove(stream);
        }
        self.hub.touch();
        self.hub.listening.fetch_sub(1, Ordering::Relaxed);
    }
}
