//! `/editor/mcp`: the holder of a grant as an MCP client, of any revision. What it is offered and what comes of a
//! call is `grant_server`'s and the gate's; here is who is let in, and until when.
//!
//! Each grant that is used so has a destination of its own, made when its holder first comes: a session is found at its
//! destination only, so no holder finds another's, and all that belongs to a grant ends with it at once.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use hyper::{Request, Response, body::Incoming};
use prism_core::mcp::CallFault;
use tokio::{
    sync::{OnceCell, oneshot},
    time::{interval, sleep, timeout},
};
use tracing::info;

use super::{
    DaemonSnapshot, access,
    body::ResponseBody,
    fault::RequestDenial,
    route::{self, Answering},
};
use prism_bridge::drive::{
    Destination, LinkCommand, SessionTable,
    destination::{BridgeContext, BuiltIn},
    replace,
};
use prism_config::{self as config, Config};
use prism_gate::grant_server;
use prism_gate::{Gate, GateError, GrantEnd, GrantLease, grant_server::EditorGrant};
use prism_mcp::kit::ChangeNotifier;

/// Grants that are used over MCP at a time. Beyond it the one that was not used for the longest makes way, and if all are in
/// use the next is refused.
const MAX_DOORS: usize = 64;
/// MCP sessions of one grant. Beyond it the longest idle one makes way, as at every destination.
const MAX_SESSIONS: usize = 16;
/// How long a door stays that nobody comes to, and how often that is looked at.
const IDLE: Duration = Duration::from_secs(30 * 60);
const LOOK: Duration = Duration::from_secs(60);
/// How long calls of a grant that has ended may take to say so: they know already.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long a link may take to say whether anybody listens.
const REPORT_WITHIN: Duration = Duration::from_secs(1);

/// The grants that are used over MCP now.
pub(super) struct GrantDestinations {
    open: Mutex<HashMap<u128, Arc<GrantDestination>>>,
    context: BridgeContext,
}

/// One grant's.
struct GrantDestination {
    destination: Arc<Destination>,
    sessions: Arc<SessionTable>,
    holder: EditorGrant,
    notifier: ChangeNotifier,
    /// The log has it that the holder came.
    known: OnceCell<()>,
    used: Mutex<Instant>,
}

/// Answers whoever comes to `/editor/mcp`. The head is read here, before anything is waited for.
pub(super) fn answer(server: &Arc<DaemonSnapshot>, request: Request<Incoming>) -> Result<Answering, RequestDenial> {
    let gate = server.gate.clone().ok_or(RequestDenial::NoRoute)?;
    let headers = request.headers();
    access::check_url(&gate, "editor", request.uri().query()).map_err(RequestDenial::NotHeld)?;
    let held = gate.hold(None, access::bearer(headers).unwrap_or_default()).map_err(RequestDenial::NotHeld)?;
    let door = server.doors.clone().door(&server.config, &gate, held)?;
    let answering = route::mcp(server, door.destination.clone(), None, request)?;
    Ok(Box::pin(async move {
        match door.known.get_or_try_init(|| gate.connected(&door.holder.held)).await {
            Ok(()) => answering.await,
            Err(trouble) => refused(trouble),
        }
    }))
}

fn refused(trouble: GateError) -> Response<ResponseBody> {
    RequestDenial::NotHeld(trouble).response()
}

// === impl GrantDestinations ===

impl GrantDestinations {
    pub(super) fn new(context: &BridgeContext) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), context: context.clone() })
    }

    /// The destinations of all of them.
    pub(super) fn destinations(&self) -> Vec<Arc<Destination>> {
        self.open().values().map(|door| door.destination.clone()).collect()
    }

    /// The door of a grant.
    fn door(
        self: Arc<Self>,
        config: &Config,
        gate: &Arc<Gate>,
        held: GrantLease,
    ) -> Result<Arc<GrantDestination>, RequestDenial> {
        let mut open = self.open();
        if let Some(door) = open.get(&held.id()) {
            *lock(&door.used) = Instant::now();
            return Ok(door.clone());
        }
        if open.len() >= MAX_DOORS {
            let unused = open.values().filter(|door| door.is_quiet()).min_by_key(|door| *lock(&door.used)).cloned();
            let unused = unused.ok_or(RequestDenial::Full { max_sessions: MAX_DOORS })?;
            open.remove(&unused.id());
            tokio::spawn(async move { unused.close(CallFault::SessionEnded).await });
        }
        let own = config::DestinationConfig {
            max_sessions: MAX_SESSIONS,
            ..config::DestinationConfig::stdio(grant_server::NAME, Vec::new())
        };
        let holder = EditorGrant { gate: gate.clone(), held: Arc::new(held), trespassed: Arc::default() };
        let server = grant_server::server(&holder);
        let notifier = server.notifier();
        let destination =
            Destination::built_in(own, BuiltIn { server, waits: true, meets_agents: false }, config, &self.context)
                .map_err(|_| RequestDenial::LinkGone)?;
        let (sessions, used) = (self.context.sessions.clone(), Mutex::new(Instant::now()));
        let door = Arc::new(GrantDestination { destination, sessions, holder, notifier, known: OnceCell::new(), used });
        open.insert(door.id(), door.clone());
        drop(open);
        tokio::spawn(keep(Arc::downgrade(&self), door.clone()));
        Ok(door)
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u128, Arc<GrantDestination>>> {
        lock(&self.open)
    }
}

/// Keeps a door until its grant ends, or nobody comes any more.
async fn keep(doors: Weak<GrantDestinations>, door: Arc<GrantDestination>) {
    let why = tokio::select! {
        ended = door.holder.held.ended() => CallFault::Unavailable { why: told(ended) },
        () = door.holder.trespassed.notified() => CallFault::Unavailable { why: "too many actions out of scope".to_owned() },
        () = door.deserted() => CallFault::SessionEnded,
        never = grant_server::tell(&door.holder, &door.notifier) => match never {},
    };
    if let Some(doors) = doors.upgrade() {
        let mut open = doors.open();
        if open.get(&door.id()).is_some_and(|now| Arc::ptr_eq(now, &door)) {
            open.remove(&door.id());
        }
    }
    door.close(why).await;
}

fn told(ended: GrantEnd) -> String {
    format!("the grant was {}; ask for another with prism_request_access or `prism agent open`", ended.name())
}

// === impl GrantDestination ===

impl GrantDestination {
    fn id(&self) -> u128 {
        self.holder.held.id()
    }

    /// Whether nobody has a session here, and nothing is under way.
    fn is_quiet(&self) -> bool {
        let links = self.destination.living_links();
        links.iter().all(|link| link.vitals.sessions() == 0 && link.vitals.in_flight() == 0)
    }

    /// Waits until nobody has come for long.
    async fn deserted(&self) {
        loop {
            sleep(LOOK).await;
            let is_old = lock(&self.used).elapsed() >= IDLE;
            if is_old && self.is_quiet() && !self.is_listened_to().await {
                return;
            }
        }
    }

    /// Whether a stream of changes is open, which a modern client has without a session.
    async fn is_listened_to(&self) -> bool {
        for link in self.destination.living_links() {
            let (reply, report) = oneshot::channel();
            let asked = async {
                link.commands.send(LinkCommand::Streams { reply }).await.ok()?;
                report.await.ok()
            };
            if timeout(REPORT_WITHIN, asked).await.ok().flatten().is_none_or(|report| !report.streams.is_empty()) {
                return true;
            }
        }
        false
    }

    /// Ends its sessions, its streams and what its calls are at.
    async fn close(&self, why: CallFault) {
        for session in self.sessions.all().iter().filter(|entry| Arc::ptr_eq(&entry.destination, &self.destination)) {
            self.sessions.remove(&session.id);
        }
        let links = self.destination.living_links();
        let answered = async {
            let mut looks = interval(Duration::from_millis(5));
            while links.iter().any(|link| link.vitals.in_flight() > 0) {
                looks.tick().await;
            }
        };
        // The grant has ended for the calls too, and what they say of it is more than the link could.
        let _ = timeout(LAST_WORDS, answered).await;
        drop(replace::shut_down(links, why).await);
        info!(grant = %uuid::Uuid::from_u128(self.id()), "Nobody uses this grant over MCP any more");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
