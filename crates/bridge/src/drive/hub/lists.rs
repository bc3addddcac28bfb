//! What each member lists: fetched side by side, kept, and fetched again when the member says so.
//!
//! Some servers offer more to clients that can do more, and a call may change what the process offers that it runs in. So a
//! list is asked for as a client of the same audience would ask, where the calls of such clients run, and is kept for them.
//! Whoever is all alike costs one server; and one that speaks 2026-07-28 only is asked by all on the same.
//!
//! A list that is known is served at once. It is waited for only where nothing is known, or where the member has said
//! that what is known is no longer true; and never for longer than the hub's patience. What comes later is announced.
//!
//! What was last listed outlives the daemon, so that a server's tools are there while it starts. One that has never listed
//! anything, and is starting, is waited for longer, once in its life: many clients list once, and would never have it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use prism_core::mcp::{
    Method,
    cache::CacheHint,
    names::{self, ListItem},
};
use tokio::{
    sync::watch,
    time::{timeout, timeout_at},
};
use tracing::{debug, warn};

use super::{
    Hub, HubMember,
    fetch::{self, FetchError},
};
use crate::drive::{Audience, Destination, LinkCommand, SessionEntry, destination::lock};

/// How long a list counts at least, whatever its server says of it. Then it is fetched again, behind what is served.
const FRESH_FOR: Duration = Duration::from_secs(10);
/// How long a member that failed is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// How long a session's first call waits for what its own server lists.
const COMPARED_WITHIN: Duration = Duration::from_secs(1);
/// Pages of one list. What comes after them is not shown, and the log says so.
const MAX_PAGES: usize = 64;
/// Items of one list, likewise.
const MAX_ITEMS: usize = 10_000;

/// The lists that there are.
pub(super) const LISTS: [Method; 4] =
    [Method::ToolsList, Method::PromptsList, Method::ResourcesList, Method::ResourcesTemplatesList];

/// One member's lists.
#[derive(Default)]
pub(super) struct MemberLists {
    /// As each audience is shown them. There are as many as there are ways to answer questions, for each era: 64.
    shown: Mutex<BTreeMap<Audience, Arc<AudienceLists>>>,
    /// The links that are listened to.
    pub(super) watched: tokio::sync::Mutex<HashSet<u64>>,
    /// Nobody has ever waited for it, or heard what it lists.
    new: AtomicBool,
}

/// Its lists as one audience is shown them.
#[derive(Default)]
struct AudienceLists {
    slots: [ListSlot; LISTS.len()],
}

struct ListSlot {
    state: Mutex<ListState>,
    /// Counts the fetches that are over.
    fetched: watch::Sender<u64>,
}

#[derive(Default)]
struct ListState {
    known: Option<Arc<[ListItem]>>,
    fresh_until: Option<Instant>,
    /// How often nobody listened for its changes any more.
    unheard: u64,
    /// How often that was so, or the member had said that it has changed, before what is known was asked for.
    heeded: u64,
    failed: Option<(String, Instant)>,
    fetching: bool,
    /// Somebody was answered without it.
    missed: bool,
}

/// What can be said of a list now.
enum ListLookup {
    Known(Arc<[ListItem]>),
    Failed(String),
    Wait(watch::Receiver<u64>),
}

/// What a member lists, or why it does not.
pub(super) type Listed = Result<Arc<[ListItem]>, String>;

impl Hub {
    /// What each of these members lists.
    pub(super) async fn gather(
        self: &Arc<Self>,
        members: &[Arc<HubMember>],
        audience: Audience,
        method: Method,
    ) -> Vec<Listed> {
        let begun = tokio::time::Instant::now();
        join_all(members.iter().map(|member| self.list(member, audience, method, begun))).await
    }

    /// What each of these members lists, if none has to be waited for.
    pub(super) fn gathered(
        self: &Arc<Self>,
        members: &[Arc<HubMember>],
        audience: Audience,
        method: Method,
    ) -> Option<Vec<Listed>> {
        let looks = members.iter().map(|member| match self.look(member, audience, method) {
            ListLookup::Known(items) => Some(Ok(items)),
            ListLookup::Failed(why) => Some(Err(why)),
            ListLookup::Wait(_) => None,
        });
        looks.collect()
    }

    /// Begins to fetch whatever a client of this audience will want next.
    pub fn warm(self: &Arc<Self>, members: &[Arc<HubMember>], audience: Audience) {
        for member in members {
            for method in LISTS {
                self.look(member, audience, method);
            }
        }
    }

    /// What a session's own parts list, by their members' numbers. Those that do not say are left out.
    pub(super) async fn gather_own(&self, parts: &[(u32, Arc<SessionEntry>)], method: Method) -> Vec<(u32, Listed)> {
        let asked = parts.iter().map(|(number, part)| async {
            let listed =
                timeout(self.plan().settings.patience, fetch_all(ListSource::Part(part), method)).await.ok()?.ok()?;
            Some((*number, Ok(listed.0)))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Tells a session if its own server lists other things than the one that the hub has asked: it may go by more than
    /// what the client can answer. Before its first call, because a note that comes while two are under way could be
    /// about either.
    pub(super) async fn compare(
        &self,
        home: &SessionEntry,
        member: &HubMember,
        audience: Audience,
        part: &SessionEntry,
    ) {
        let compared = LISTS.into_iter().map(async |method| {
            let known = lock(&member.shown(audience).slot(method).state).known.clone()?;
            let told = told_by(method).filter(|_| !known.is_empty())?;
            let own = timeout(COMPARED_WITHIN, fetch_all(ListSource::Part(part), method)).await.ok()?.ok()?;
            // How an item is told depends on the client's revision; what there is does not.
            let named = |items: &[ListItem]| items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
            (named(&own.0) != named(&known)).then_some(told)
        });
        for method in join_all(compared).await.into_iter().flatten() {
            let _ = home
                .link
                .commands
                .send(LinkCommand::Announce { method, to: vec![home.key()], listens: Vec::new() })
                .await;
        }
    }

    async fn list(
        self: &Arc<Self>,
        member: &Arc<HubMember>,
        audience: Audience,
        method: Method,
        begun: tokio::time::Instant,
    ) -> Listed {
        let (patience, first) = (self.plan().settings.patience, self.plan().settings.first_patience);
        loop {
            let mut fetched = match self.look(member, audience, method) {
                ListLookup::Known(items) => return Ok(items),
                ListLookup::Failed(why) => return Err(why),
                ListLookup::Wait(fetched) => fetched,
            };
            let mut late = timeout_at(begun + patience, fetched.changed()).await.is_err();
            if late && member.lists.new.load(Ordering::Relaxed) && member.destination.is_starting(audience) {
                let first = first.min(member.destination.start_timeout()).max(patience);
                late = timeout_at(begun + first, fetched.changed()).await.is_err();
                if late && member.lists.new.swap(false, Ordering::Relaxed) {
                    member.remember(audience, method, None);
                }
            }
            if late {
                let shown = member.shown(audience);
                shown.miss();
                // Better what was true a moment ago, or what others are shown, than nothing.
                let known = lock(&shown.slot(method).state).known.clone();
                return known.or_else(|| member.lists.any(method)).ok_or_else(|| self.no_answer());
            }
        }
    }

    pub(super) fn no_answer(&self) -> String {
        format!(
            "no answer within {:?} (hub.patience); it is shown as soon as it answers",
            self.plan().settings.patience
        )
    }

    fn look(self: &Arc<Self>, member: &Arc<HubMember>, audience: Audience, method: Method) -> ListLookup {
        let audience = member.destination.audience(audience);
        let shown = member.lists.shown_to(audience);
        let slot = shown.slot(method);
        let mut state = lock(&slot.state);
        let now = Instant::now();
        let heard = member.heard_of(method);
        let outdated = state.is_outdated(heard);
        let fresh = state.fresh_until.is_some_and(|until| now < until) && !outdated;
        let left_alone = state.failed.as_ref().is_some_and(|(_, at)| now < *at + RETRY_AFTER) && !outdated;
        if !fresh && !left_alone && !state.fetching {
            state.fetching = true;
            tokio::spawn(self.clone().fetch(member.clone(), (audience, shown.clone()), method, state.unheard + heard));
        }
        match &*state {
            // Nobody waits twice for what does not come.
            ListState { known: Some(items), missed, .. } if !outdated || *missed => ListLookup::Known(items.clone()),
            ListState { failed: Some((why, _)), .. } if !outdated => ListLookup::Failed(why.clone()),
            ListState { missed: true, .. } => ListLookup::Failed(self.no_answer()),
            _ => ListLookup::Wait(slot.fetched.subscribe()),
        }
    }

    /// Fetches a list of which the member had said so often that it has changed.
    async fn fetch(
        self: Arc<Self>,
        member: Arc<HubMember>,
        (audience, shown): (Audience, Arc<AudienceLists>),
        method: Method,
        said: u64,
    ) {
        // What changes from the moment on in which the list is asked for is heard of.
        let watched = self.watch(&member, audience).await;
        if member.destination.audience(audience) != audience {
            return self.fetch_elsewhere(&member, audience, &shown, method);
        }
        let outcome = match watched {
            Ok(()) => fetch_all(ListSource::Member(&member, audience), method).await,
            Err(why) => Err(why),
        };
        let mut news = None;
        let changed = {
            let mut state = lock(&shown.slot(method).state);
            state.fetching = false;
            let was = state.is_outdated(member.heard_of(method));
            state.heeded = said;
            let missed = std::mem::take(&mut state.missed);
            let failed_before = state.failed.is_some();
            match &outcome {
                Ok((items, ttl)) => {
                    let before = state.known.replace(items.clone());
                    if before.as_ref() != Some(items) {
                        news = Some(items.clone());
                    }
                    state.failed = None;
                    state.fresh_until = Some(Instant::now() + (*ttl).max(FRESH_FOR));
                    // Who was told that it has changed has come for it, or will.
                    let differs = before.as_ref().is_some_and(|before| before != items);
                    missed || (differs && !was) || (failed_before && !items.is_empty())
                }
                Err(why) => {
                    state.failed = Some((why.clone(), Instant::now()));
                    state.fresh_until = None;
                    state.known.take().is_some()
                }
            }
        };
        if let Some(items) = news {
            member.lists.new.store(false, Ordering::Relaxed);
            member.remember(audience, method, names::result(method, &items));
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
        shown.slot(method).fetched.send_modify(|count| *count += 1);
        if let Err(why) = outcome {
            debug!(destination = member.name(), why, "The hub cannot list a destination");
        }
        if let Some(told) = told_by(method).filter(|_| changed) {
            self.announce(&member, |of| member.destination.audience(of) == audience, told);
        }
    }

    /// The server has been found to see this audience as another one, which is shown the same as somebody else. Who waits
    /// looks there.
    fn fetch_elsewhere(
        self: &Arc<Self>,
        member: &Arc<HubMember>,
        audience: Audience,
        shown: &AudienceLists,
        method: Method,
    ) {
        let missed = {
            let mut state = lock(&shown.slot(method).state);
            state.fetching = false;
            std::mem::take(&mut state.missed)
        };
        lock(&member.shown(audience).slot(method).state).missed |= missed;
        self.look(member, audience, method);
        shown.slot(method).fetched.send_modify(|count| *count += 1);
    }

    /// Whatever a member's lists will be from now on, as these are shown them, nobody hears of it.
    pub(super) fn outdate(&self, member: &HubMember, whose: impl Fn(Audience) -> bool) {
        for shown in member.lists.all(whose) {
            for slot in &shown.slots {
                lock(&slot.state).unheard += 1;
            }
        }
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Who is asked for a list.
#[derive(Clone, Copy)]
enum ListSource<'a> {
    /// A member, as clients of an audience would.
    Member(&'a HubMember, Audience),
    /// A session's own part.
    Part(&'a SessionEntry),
}

impl ListSource<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Member(member, _) => member.name(),
            Self::Part(part) => &part.destination.config().name,
        }
    }
}

/// All pages of a list, and how long it counts.
async fn fetch_all(from: ListSource<'_>, method: Method) -> Result<(Arc<[ListItem]>, Duration), String> {
    let (mut all, mut ttl, mut cursor): (Vec<ListItem>, _, Option<String>) = (Vec::new(), Duration::MAX, None);
    for _ in 0..MAX_PAGES {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let answer = match from {
            ListSource::Member(member, audience) => {
                fetch::request(&member.destination, audience, method, &params).await
            }
            ListSource::Part(part) => fetch::request_as(part, method, &params).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            // It has no such thing.
            Err(FetchError::Error { code: -32601, .. }) => return Ok((all.into(), FRESH_FOR)),
            Err(FetchError::Error { message, .. }) => return Err(message),
            Err(FetchError::Fault(why)) => return Err(why),
        };
        let result = answer.result_span().map(|span| answer.text(span)).unwrap_or_default();
        let Some(items) = names::items(method, result) else {
            return Err(format!("its answer to {} is no list", method.name()));
        };
        all.extend(items);
        ttl = ttl.min(CacheHint::read(result).map_or(Duration::ZERO, |hint| hint.ttl));
        cursor = next_cursor(result);
        if cursor.is_none() || all.len() > MAX_ITEMS {
            break;
        }
    }
    if cursor.is_some() {
        warn!(destination = from.name(), list = method.name(), "A list is too long for the hub; its end is not shown");
        all.truncate(MAX_ITEMS);
    }
    Ok((all.into(), ttl))
}

fn next_cursor(result: &str) -> Option<String> {
    let members = prism_core::wire::Members::read(result)?;
    members.get("nextCursor").filter(|raw| raw.starts_with('"')).map(str::to_owned)
}

/// The note that says that a list has changed.
fn told_by(list: Method) -> Option<Method> {
    match list {
        Method::ToolsList => Some(Method::ToolsChanged),
        Method::PromptsList => Some(Method::PromptsChanged),
        Method::ResourcesList | Method::ResourcesTemplatesList => Some(Method::ResourcesChanged),
        _ => None,
    }
}

/// Reads which list something remembered is, and for whom.
fn read_key(list: &str) -> Option<(Method, Audience)> {
    let (name, audience) = list.split_once(' ')?;
    Some((LISTS.into_iter().find(|method| method.name() == name)?, Audience::read(audience)?))
}

// === impl HubMember ===

impl HubMember {
    /// How often its links have heard that a list has changed.
    fn heard_of(&self, list: Method) -> u64 {
        told_by(list).map_or(0, |told| self.destination.shared().changes(told))
    }

    /// Its lists as an audience is shown them.
    fn shown(&self, audience: Audience) -> Arc<AudienceLists> {
        self.lists.shown_to(self.destination.audience(audience))
    }

    /// Has it written down what it lists for an audience, or that it was waited for in vain.
    fn remember(&self, audience: Audience, method: Method, items: Option<String>) {
        let audience = self.destination.audience(audience);
        self.destination.shared().remember(format!("{} {}", method.name(), audience.to_text()), items);
    }
}

// === impl MemberLists ===

impl MemberLists {
    /// Begins with what was listed in another life of the daemon's. It is asked for again all the same.
    pub(super) fn of(destination: &Destination) -> Self {
        let lists = Self { new: AtomicBool::new(true), ..Self::default() };
        for remembered in destination.shared().remembered() {
            let Some((method, audience)) = read_key(&remembered.list) else { continue };
            lists.new.store(false, Ordering::Relaxed);
            let items = remembered.items.as_ref().and_then(|items| names::items(method, items));
            lock(&lists.shown_to(audience).slot(method).state).known = items.map(Into::into);
        }
        lists
    }

    fn shown_to(&self, audience: Audience) -> Arc<AudienceLists> {
        lock(&self.shown).entry(audience).or_default().clone()
    }

    fn all(&self, whose: impl Fn(Audience) -> bool) -> Vec<Arc<AudienceLists>> {
        let shown = lock(&self.shown);
        let wanted = shown.iter().filter(|(of, _)| whose(**of));
        wanted.map(|(_, shown)| shown.clone()).collect()
    }

    /// What some audience is shown.
    fn any(&self, method: Method) -> Option<Arc<[ListItem]>> {
        self.all(|_| true).iter().find_map(|shown| lock(&shown.slot(method).state).known.clone())
    }

    /// How long a list is: the longest that anybody is shown.
    pub(super) fn count(&self, method: Method) -> Option<usize> {
        let counts =
            self.all(|_| true).into_iter().map(|shown| lock(&shown.slot(method).state).known.as_ref().map(|i| i.len()));
        counts.max().flatten()
    }

    /// Whether somebody has waited in vain, and the answer has not come since.
    pub(super) fn is_missed(&self) -> bool {
        self.all(|_| true).iter().any(|shown| shown.slots.iter().any(|slot| lock(&slot.state).missed))
    }

    /// Why a list could not be had the last time.
    pub(super) fn trouble(&self) -> Option<String> {
        let failed = |slot: &ListSlot| lock(&slot.state).failed.as_ref().map(|(why, _)| why.clone());
        self.all(|_| true).iter().find_map(|shown| shown.slots.iter().find_map(failed))
    }
}

// === impl AudienceLists ===

impl AudienceLists {
    fn slot(&self, method: Method) -> &ListSlot {
        let at = LISTS.iter().position(|list| *list == method).unwrap_or_default();
        &self.slots[at]
    }

    /// Somebody has waited in vain. Whatever else the member is being asked for is not waited for, either.
    fn miss(&self) {
        for slot in &self.slots {
            let mut state = lock(&slot.state);
            state.missed |= state.fetching;
        }
    }
}

impl ListState {
    /// Whether what is known may no longer be so, of a list that the member's links have heard so often that it has changed.
    fn is_outdated(&self, heard: u64) -> bool {
        self.unheard + heard != self.heeded
    }
}

impl Default for ListSlot {
    fn default() -> Self {
        Self { state: Mutex::default(), fetched: watch::Sender::new(0) }
    }
}
