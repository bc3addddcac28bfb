//! A session of the hub's: what its client said of itself, and its parts at the members.

use std::{
    collections::HashMap,
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use prism_core::{
    mcp::{
        AcceptedFormats, ClientHello, HubPart, LinkAnswer, MemberNames, Method, link::SessionKey, replay::ReplayKind,
    },
    wire::{Message, MessageKind, members::JsonString, text},
};
use prism_os::random::random_id;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{Hub, HubMember, HubView};
use crate::{
    admitted::Admitted,
    drive::{
        Audience, ForwardedHeaders, LinkCommand, LinkReply, ReplyHead, SessionEntry, SessionTable,
        destination::{SessionsFull, close, lock},
        keeping::numbers_from,
        sessions::{OpenedSession, SessionRole, is_error},
    },
};

/// Resources of one member that are subscribed to again. Those beyond it are not: a link has no room for more either.
const MAX_WATCHED: usize = 1024;

/// What a link says to a part's greeting: nobody else reads it.
const ACCEPTS: AcceptedFormats = AcceptedFormats { json: true, events: false, by_method: false };

pub struct HubSession {
    view: Mutex<Arc<HubView>>,
    hello: ClientHello,
    /// The client's own `initialize`, which each member that it uses gets to see.
    initialize: Message,
    /// Its last `logging/setLevel`.
    level: Mutex<Option<Message>>,
    parts: Mutex<MemberSessions>,
    /// By the numbers of members: who opens the part there.
    opening: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    /// Calls that wait for it to be known where they go, by their ids as the client wrote them. No member knows of them yet.
    waiting: Mutex<Vec<(String, oneshot::Sender<()>)>>,
    /// How often has changed what outlives the daemon.
    version: AtomicU64,
    /// It was taken up from the last daemon, and its client has not been back yet.
    away: AtomicBool,
}

/// What of it outlives the daemon, as it is written down.
#[derive(Default, Serialize, Deserialize)]
struct StoredHubSession {
    level: Option<String>,
    watched: Vec<StoredWatch>,
    #[serde(default)]
    version: u64,
}

#[derive(Serialize, Deserialize)]
struct StoredWatch {
    member: String,
    shown: String,
    message: String,
}

#[derive(Default)]
struct MemberSessions {
    open: HashMap<u32, MemberSession>,
    /// What the client watches at each member, by the name that it has for it, and how it asked for it.
    watched: HashMap<u32, Vec<(String, Message, Option<MemberNames>)>>,
    /// The session is over: what is opened from now on is closed at once.
    closed: bool,
}

struct MemberSession {
    entry: Arc<SessionEntry>,
    /// It is at a server of its own: what that one lists may differ from what the others' does.
    own: bool,
}

/// A part that nobody knows of yet. If whoever opens it gives up, it ends.
struct MemberSessionGuard<'a> {
    part: Option<Arc<SessionEntry>>,
    sessions: &'a SessionTable,
}

impl Drop for MemberSessionGuard<'_> {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            end(part, self.sessions);
        }
    }
}

/// Why there is no part.
pub enum MemberSessionError {
    Full(SessionsFull),
    /// The link is gone, or the daemon is being stopped.
    Gone,
}

impl HubSession {
    pub fn new(view: Arc<HubView>, hello: ClientHello, initialize: &Message) -> Self {
        Self {
            view: Mutex::new(view),
            hello,
            initialize: initialize.detached(),
            level: Mutex::default(),
            parts: Mutex::default(),
            opening: Mutex::default(),
            waiting: Mutex::default(),
            version: AtomicU64::new(0),
            away: AtomicBool::new(false),
        }
    }

    /// Takes up what the last daemon has written down.
    pub fn take_up(view: Arc<HubView>, hello: ClientHello, initialize: &Message, text: Option<&str>) -> Self {
        let StoredHubSession { level, watched, version } =
            text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let parse = |text: String| Message::parse(Bytes::from(text)).ok();
        let mut parts = MemberSessions::default();
        for StoredWatch { member, shown, message } in watched {
            if let Some(member) = view.members().iter().find(|known| known.name() == member)
                && let Some(message) = parse(message)
            {
                let names = view.names_for(member, &shown);
                parts.watched.entry(member.number).or_default().push((shown, message, names));
            }
        }
        Self {
            level: Mutex::new(level.and_then(parse)),
            parts: Mutex::new(parts),
            version: AtomicU64::new(version),
            away: AtomicBool::new(true),
            ..Self::new(view, hello, initialize)
        }
    }

    /// What is written down, and the how-manieth that is; `None` before there is anything.
    pub fn to_text(&self) -> Option<(u64, String)> {
        let parts = lock(&self.parts);
        let version = self.version.load(Ordering::Relaxed);
        let text = |message: &Message| String::from_utf8_lossy(message.bytes()).into_owned();
        let view = self.view();
        let mut watched = Vec::new();
        for (number, all) in &parts.watched {
            let Some(member) = view.members().iter().find(|member| member.number == *number) else { continue };
            let one = |(shown, message, _): &(String, Message, _)| StoredWatch {
                member: member.name().to_owned(),
                shown: shown.clone(),
                message: text(message),
            };
            watched.extend(all.iter().map(one));
        }
        let level = lock(&self.level).as_ref().map(text);
        let text = serde_json::to_string(&StoredHubSession { level, watched, version }).ok()?;
        (version > 0).then_some((version, text))
    }

    pub fn view(&self) -> Arc<HubView> {
        lock(&self.view).clone()
    }

    /// Who its client is, as far as lists go by it.
    pub fn audience(&self) -> Audience {
        Audience::legacy(self.hello.class)
    }

    /// From now on its client sees this.
    pub(super) fn see(&self, view: Arc<HubView>) {
        *lock(&self.view) = view;
    }

    /// Whether this is the first time that its client is back.
    pub(super) fn is_back(&self) -> bool {
        self.away.load(Ordering::Relaxed) && self.away.swap(false, Ordering::Relaxed)
    }

    /// The numbers of the members where its client watches something.
    pub(super) fn watched_at(&self) -> Vec<u32> {
        lock(&self.parts).watched.iter().filter(|(_, all)| !all.is_empty()).map(|(number, _)| *number).collect()
    }

    /// Whether its client watches something by this part of it.
    pub(crate) fn watches_by(&self, part: &SessionEntry) -> bool {
        let parts = lock(&self.parts);
        let number = parts.open.iter().find(|(_, open)| open.entry.id == part.id).map(|(number, _)| *number);
        number.and_then(|number| parts.watched.get(&number)).is_some_and(|watched| !watched.is_empty())
    }

    /// The part at a member, opened if there is none. It need not have been greeted yet: its link keeps what it is asked
    /// meanwhile, and tells who asks that the server is starting. What goes along with the call it is opened for goes
    /// along with its opening, too.
    pub async fn part(
        &self,
        hub: &Arc<Hub>,
        home: &Arc<SessionEntry>,
        member: &Arc<HubMember>,
        carried: Option<Arc<ForwardedHeaders>>,
    ) -> Result<Arc<SessionEntry>, MemberSessionError> {
        if let Some(part) = self.open_part(member.number) {
            return Ok(part);
        }
        let opening = lock(&self.opening).entry(member.number).or_default().clone();
        let _turn = opening.lock().await;
        match self.open_part(member.number) {
            // Somebody else was faster.
            Some(part) => Ok(part),
            None => self.open(hub, home, member, carried).await,
        }
    }

    /// Does what comes before a call is with its server, which may wait for one to start; `None` if the client has cancelled
    /// the call meanwhile, of which no server knows yet.
    pub async fn unless_cancelled<T>(&self, id: &str, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        // Most often nothing has to be waited for, and nobody has to be told of it.
        if let Poll::Ready(done) = poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
            return Some(done);
        }
        let (tx, cancelled) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            waiting.retain(|(_, tx)| !tx.is_closed());
            waiting.push((id.to_owned(), tx));
        }
        tokio::select! {
            done = work => Some(done),
            Ok(()) = cancelled => None,
        }
    }

    /// The client no longer wants the answer to this call. What a member knows of, its part is told.
    pub fn cancel(&self, id: &str) {
        let found = lock(&self.waiting).extract_if(.., |(waiting, _)| *waiting == id).collect::<Vec<_>>();
        // Two calls under one id: nothing says which one is meant.
        if let Ok([(_, tx)]) = <[_; 1]>::try_from(found) {
            let _ = tx.send(());
        }
    }

    fn open_part(&self, number: u32) -> Option<Arc<SessionEntry>> {
        lock(&self.parts).open.get(&number).map(|part| &part.entry).filter(|part| part.is_open()).cloned()
    }

    async fn open(
        &self,
        hub: &Arc<Hub>,
        home: &Arc<SessionEntry>,
        member: &Arc<HubMember>,
        carried: Option<Arc<ForwardedHeaders>>,
    ) -> Result<Arc<SessionEntry>, MemberSessionError> {
        let destination = &member.destination;
        let place = destination.place().map_err(MemberSessionError::Full)?;
        let id = random_id().ok_or(MemberSessionError::Gone)?;
        let link = destination.link_for(self.hello.class);
        // The hub itself hears what changes at the link that all like it share.
        let tells_of_lists = link.number != destination.list_link(self.audience()).number;
        let names = self.view().names(member);
        let numbers_from = numbers_from();
        let part = HubPart { home: home.key(), number: member.number, names, tells_of_lists, numbers_from };
        let (reply, head) = oneshot::channel();
        let command = LinkCommand::Open {
            key: SessionKey(id.as_u128()),
            hello: Box::new(self.hello.clone()),
            message: self.initialize.clone(),
            accepts: ACCEPTS,
            part: Some(Box::new((part, home.link.clone()))),
            carried,
            reply,
        };
        link.commands.send(command).await.map_err(|_| MemberSessionError::Gone)?;
        let head = LinkReply::new(head, link.clone());
        let role = SessionRole::Part(Arc::downgrade(home));
        // It is taken up with the whole, if ever.
        let (revision, initialize) = (self.hello.revision, Bytes::new());
        // Who it is, its whole says.
        let visit = Arc::default();
        let part = hub.sessions.insert(OpenedSession { id, place, link, revision, role, initialize, visit });
        let mut unclaimed = MemberSessionGuard { part: Some(part.clone()), sessions: &hub.sessions };
        loop {
            // What is asked of it from now on comes after it.
            let level = lock(&self.level).clone();
            if let Some(level) = level.clone() {
                tell(&part, level, None).await;
            }
            let mut parts = lock(&self.parts);
            if parts.closed {
                return Err(MemberSessionError::Gone);
            }
            // Who has set another one meanwhile did not find this part.
            if lock(&self.level).as_ref().map(Message::bytes) == level.as_ref().map(Message::bytes) {
                parts.open.insert(member.number, MemberSession { entry: part.clone(), own: tells_of_lists });
                unclaimed.part = None;
                break;
            }
        }
        self.watch_again(home, member, &part).await;
        let differs_for = tells_of_lists.then(|| self.audience());
        tokio::spawn(greeted(head, (hub.clone(), home.clone(), member.clone()), part.clone(), differs_for));
        Ok(part)
    }

    /// Notes what a call changes in what the client watches at a member, for a part that has to be opened again. Returns
    /// whether it does.
    pub fn note(&self, member: &HubMember, message: &Message, names: Option<&MemberNames>) -> bool {
        let Some(uri) = message.string(message.params().uri) else { return false };
        let shown = names.map_or_else(|| uri.to_string(), |names| names.uri(&uri));
        let mut parts = lock(&self.parts);
        let watched = parts.watched.entry(member.number).or_default();
        match message.kind() {
            MessageKind::Request(Method::ResourcesUnsubscribe) => watched.retain(|(known, ..)| *known != shown),
            MessageKind::Request(Method::ResourcesSubscribe)
                if watched.len() < MAX_WATCHED && watched.iter().all(|(known, ..)| *known != shown) =>
            {
                watched.push((shown, message.detached(), names.cloned()));
            }
            _ => return false,
        }
        self.version.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Subscribes a new part to what the last one was subscribed to, which was ended by its link. What has changed
    /// meanwhile nobody knows, so the client is told that it may have.
    async fn watch_again(&self, home: &SessionEntry, member: &HubMember, part: &SessionEntry) {
        let watched = lock(&self.parts).watched.get(&member.number).cloned().unwrap_or_default();
        for (shown, message, names) in watched {
            tell(part, message, names).await;
            let updated = Method::ResourceUpdated;
            let text = text::note(updated, format_args!(r#"{{"uri":{}}}"#, JsonString(&shown))).into();
            let what = ReplayKind::Change(format!("{} {shown}", updated.name()).into());
            let _ = home.link.commands.send(LinkCommand::Relay { home: home.key(), text, what }).await;
        }
    }

    /// The part with this number, if it is open.
    pub fn part_numbered(&self, number: u32) -> Option<Arc<SessionEntry>> {
        self.open_part(number)
    }

    /// The parts that are open.
    pub fn parts(&self) -> Vec<Arc<SessionEntry>> {
        lock(&self.parts).open.values().map(|part| &part.entry).filter(|part| part.is_open()).cloned().collect()
    }

    /// The parts that are at servers of their own.
    pub(super) fn own_parts(&self) -> Vec<(u32, Arc<SessionEntry>)> {
        let parts = lock(&self.parts);
        let own = parts.open.iter().filter(|(_, part)| part.own && part.entry.is_open());
        own.map(|(number, part)| (*number, part.entry.clone())).collect()
    }

    /// Sets the log level at every member, now or when the session comes to it. What the client asks for next counts
    /// with it.
    pub async fn set_level(&self, message: &Message) {
        let parts = {
            let parts = lock(&self.parts);
            *lock(&self.level) = Some(message.detached());
            self.version.fetch_add(1, Ordering::Relaxed);
            parts.open.values().map(|part| part.entry.clone()).collect::<Vec<_>>()
        };
        for part in parts.iter().filter(|part| part.is_open()) {
            tell(part, message.clone(), None).await;
        }
    }

    /// The session is over, and so are its parts.
    pub fn close(&self, sessions: &SessionTable) {
        let open = {
            let mut parts = lock(&self.parts);
            parts.closed = true;
            std::mem::take(&mut parts.open)
        };
        for part in open.into_values() {
            end(&part.entry, sessions);
        }
    }
}

/// Waits until a part was greeted: whoever called first may have left by then, and others wait with it. One that was not
/// ends, and who calls next opens another. What a server of its own lists may differ from what these clients were shown.
async fn greeted(
    head: LinkReply,
    (hub, home, member): (Arc<Hub>, Arc<SessionEntry>, Arc<HubMember>),
    part: Arc<SessionEntry>,
    differs_for: Option<Audience>,
) {
    let head = head.head().await;
    if !matches!(&head, Some(ReplyHead::Answer(LinkAnswer::Message(answer))) if !is_error(answer.to_vec())) {
        return end(&part, &hub.sessions);
    }
    if let Some(audience) = differs_for {
        hub.compare(&home, &member, audience, &part).await;
    }
}

fn end(part: &SessionEntry, sessions: &SessionTable) {
    if let Some(part) = sessions.remove(&part.id) {
        close(&part);
    }
}

/// Sends a part a request whose answer nobody waits for.
async fn tell(part: &SessionEntry, message: Message, names: Option<MemberNames>) {
    let Some(message) = Admitted::no_tool(message) else { return };
    let (reply, head) = oneshot::channel();
    let call = LinkCommand::Call { key: Some(part.key()), message, accepts: ACCEPTS, names, carried: None, reply };
    if part.link.commands.send(call).await.is_ok() {
        // A call that nobody seems to wait for would be cancelled.
        tokio::spawn(head);
    }
}
