//! What each member lists: fetched side by side, kept, and fetched again when the member says so.
//!
//! A list that is known is served at once. It is waited for only where nothing is known, or where the member has said
//! that what is known is no longer true; and never for longer than the hub's patience. What comes later is announced.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use prism_core::mcp::{
    Method,
    cache::Hint,
    names::{self, Item},
};
use tokio::{
    sync::watch,
    time::{timeout, timeout_at},
};
use tracing::{debug, warn};

use super::{
    Hub, Member,
    fetch::{self, NoResult},
};
use crate::drive::{Command, Entry, destination::lock};

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
pub(super) struct Lists {
    slots: [Slot; LISTS.len()],
    /// The links that are listened to.
    pub(super) watched: tokio::sync::Mutex<HashSet<u64>>,
}

struct Slot {
    state: Mutex<State>,
    /// Counts the fetches that are over.
    fetched: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    known: Option<Arc<[Item]>>,
    fresh_until: Option<Instant>,
    /// How often the member has said that it is no longer so, and how often before what is known was asked for.
    said: u64,
    heeded: u64,
    failed: Option<(String, Instant)>,
    fetching: bool,
    /// Somebody was answered without it.
    missed: bool,
}

/// What can be said of a list now.
enum Look {
    Known(Arc<[Item]>),
    Failed(String),
    Wait(watch::Receiver<u64>),
}

/// What a member lists, or why it does not.
pub(super) type Listed = Result<Arc<[Item]>, String>;

impl Hub {
    /// What each of these members lists.
    pub(super) async fn gather(self: &Arc<Self>, members: &[Arc<Member>], method: Method) -> Vec<Listed> {
        let until = tokio::time::Instant::now() + self.plan().settings.patience;
        join_all(members.iter().map(|member| self.list(member, method, until))).await
    }

    /// What each of these members lists, if none has to be waited for.
    pub(super) fn gathered(self: &Arc<Self>, members: &[Arc<Member>], method: Method) -> Option<Vec<Listed>> {
        let looks = members.iter().map(|member| match self.look(member, method) {
            Look::Known(items) => Some(Ok(items)),
            Look::Failed(why) => Some(Err(why)),
            Look::Wait(_) => None,
        });
        looks.collect()
    }

    /// Begins to fetch whatever a client will want next.
    pub fn warm(self: &Arc<Self>, members: &[Arc<Member>]) {
        for member in members {
            for method in LISTS {
                self.look(member, method);
            }
        }
    }

    /// What a session's own parts list, by their members' numbers. Those that do not say are left out.
    pub(super) async fn gather_own(&self, parts: &[(u32, Arc<Entry>)], method: Method) -> Vec<(u32, Listed)> {
        let asked = parts.iter().map(|(number, part)| async {
            let listed =
                timeout(self.plan().settings.patience, fetch_all(From::Part(part), method)).await.ok()?.ok()?;
            Some((*number, Ok(listed.0)))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Tells a session if its own server lists other things than the one that the hub has asked: some offer more to
    /// clients that can do more. Before its first call, because a note that comes while two are under way could be
    /// about either.
    pub(super) async fn compare(&self, home: &Entry, member: &Member, part: &Entry) {
        let compared = LISTS.into_iter().map(async |method| {
            let known = lock(&member.lists.slot(method).state).known.clone()?;
            let told = told_by(method).filter(|_| !known.is_empty())?;
            let own = timeout(COMPARED_WITHIN, fetch_all(From::Part(part), method)).await.ok()?.ok()?;
            // How an item is told depends on the client's revision; what there is does not.
            let named = |items: &[Item]| items.iter().map(|item| item.name.clone()).collect::<Vec<_>>();
            (named(&own.0) != named(&known)).then_some(told)
        });
        for method in join_all(compared).await.into_iter().flatten() {
            let _ =
                home.link.commands.send(Command::Announce { method, to: vec![home.key()], listens: Vec::new() }).await;
        }
    }

    async fn list(self: &Arc<Self>, member: &Arc<Member>, method: Method, until: tokio::time::Instant) -> Listed {
        loop {
            let mut fetched = match self.look(member, method) {
                Look::Known(items) => return Ok(items),
                Look::Failed(why) => return Err(why),
                Look::Wait(fetched) => fetched,
            };
            if timeout_at(until, fetched.changed()).await.is_err() {
                member.lists.miss();
                // Better what was true a moment ago than nothing.
                let state = lock(&member.lists.slot(method).state);
                return state.known.clone().ok_or_else(|| self.no_answer());
            }
        }
    }

    pub(super) fn no_answer(&self) -> String {
        format!(
            "no answer within {:?} (hub.patience); it is shown as soon as it answers",
            self.plan().settings.patience
        )
    }

    fn look(self: &Arc<Self>, member: &Arc<Member>, method: Method) -> Look {
        let slot = member.lists.slot(method);
        let mut state = lock(&slot.state);
        let now = Instant::now();
        let outdated = state.is_outdated();
        let fresh = state.fresh_until.is_some_and(|until| now < until) && !outdated;
        let left_alone = state.failed.as_ref().is_some_and(|(_, at)| now < *at + RETRY_AFTER) && !outdated;
        if !fresh && !left_alone && !state.fetching {
            state.fetching = true;
            tokio::spawn(self.clone().fetch(member.clone(), method, state.said));
        }
        match &*state {
            // Nobody waits twice for what does not come.
            State { known: Some(items), missed, .. } if !outdated || *missed => Look::Known(items.clone()),
            State { failed: Some((why, _)), .. } if !outdated => Look::Failed(why.clone()),
            State { missed: true, .. } => Look::Failed(self.no_answer()),
            _ => Look::Wait(slot.fetched.subscribe()),
        }
    }

    /// Fetches a list of which the member had said so often that it has changed.
    async fn fetch(self: Arc<Self>, member: Arc<Member>, method: Method, said: u64) {
        // What changes from the moment on in which the list is asked for is heard of.
        let outcome = match self.watch(&member).await {
            Ok(()) => fetch_all(From::Member(&member), method).await,
            Err(why) => Err(why),
        };
        let changed = {
            let mut state = lock(&member.lists.slot(method).state);
            state.fetching = false;
            let was = state.is_outdated();
            state.heeded = said;
            let missed = std::mem::take(&mut state.missed);
            let failed_before = state.failed.is_some();
            match &outcome {
                Ok((items, ttl)) => {
                    let before = state.known.replace(items.clone());
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
        self.changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        member.lists.slot(method).fetched.send_modify(|count| *count += 1);
        if let Err(why) = outcome {
            debug!(destination = member.name(), why, "The hub cannot list a destination");
        }
        if let Some(told) = told_by(method).filter(|_| changed) {
            self.announce(&member, told);
        }
    }

    /// A member says that its lists are no longer what they were.
    pub(super) fn outdate(&self, member: &Member, told: Method) {
        for method in LISTS.into_iter().filter(|method| told_by(*method) == Some(told)) {
            lock(&member.lists.slot(method).state).said += 1;
        }
        self.changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Who is asked for a list.
#[derive(Clone, Copy)]
enum From<'a> {
    Member(&'a Member),
    /// A session's own part.
    Part(&'a Entry),
}

impl From<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Member(member) => member.name(),
            Self::Part(part) => &part.destination.config().name,
        }
    }
}

/// All pages of a list, and how long it counts.
async fn fetch_all(from: From<'_>, method: Method) -> Result<(Arc<[Item]>, Duration), String> {
    let (mut all, mut ttl, mut cursor): (Vec<Item>, _, Option<String>) = (Vec::new(), Duration::MAX, None);
    for _ in 0..MAX_PAGES {
        let params = cursor.map_or_else(|| "{}".to_owned(), |cursor| format!(r#"{{"cursor":{cursor}}}"#));
        let answer = match from {
            From::Member(member) => fetch::request(&member.destination, method, &params).await,
            From::Part(part) => fetch::request_as(part, method, &params).await,
        };
        let answer = match answer {
            Ok(answer) => answer,
            // It has no such thing.
            Err(NoResult::Error { code: -32601, .. }) => return Ok((all.into(), FRESH_FOR)),
            Err(NoResult::Error { message, .. }) => return Err(message),
            Err(NoResult::Fault(why)) => return Err(why),
        };
        let result = answer.result_span().map(|span| answer.text(span)).unwrap_or_default();
        let Some(items) = names::items(method, result) else {
            return Err(format!("its answer to {} is no list", method.name()));
        };
        all.extend(items);
        ttl = ttl.min(Hint::read(result).map_or(Duration::ZERO, |hint| hint.ttl));
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

// === impl Lists ===

impl Lists {
    fn slot(&self, method: Method) -> &Slot {
        let at = LISTS.iter().position(|list| *list == method).unwrap_or_default();
        &self.slots[at]
    }

    pub(super) fn count(&self, method: Method) -> Option<usize> {
        lock(&self.slot(method).state).known.as_ref().map(|items| items.len())
    }

    /// Somebody has waited in vain. Whatever else the member is being asked for is not waited for, either.
    fn miss(&self) {
        for slot in &self.slots {
            let mut state = lock(&slot.state);
            state.missed |= state.fetching;
        }
    }

    /// Whether somebody has waited in vain, and the answer has not come since.
    pub(super) fn is_missed(&self) -> bool {
        self.slots.iter().any(|slot| lock(&slot.state).missed)
    }

    /// Why a list could not be had the last time.
    pub(super) fn trouble(&self) -> Option<String> {
        self.slots.iter().find_map(|slot| lock(&slot.state).failed.as_ref().map(|(why, _)| why.clone()))
    }
}

impl State {
    /// Whether the member has said that what is known is no longer so.
    fn is_outdated(&self) -> bool {
        self.said != self.heeded
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self { state: Mutex::default(), fetched: watch::Sender::new(0) }
    }
}
