//! `GET /status`: how the daemon, its destinations and its sessions are (D-05, D-08). What each field means is in
//! `prism_api::status`. `/metrics` says the same in numbers, from the same places.
//!
//! It costs the calls nothing: counters are read, processes are looked at, and links are asked for their streams as any
//! request asks them, with a deadline.

mod agents;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use hyper::{Response, StatusCode};
use prism_api::status::{
    ConfigState, ConfigStatus, DaemonStatus, DestinationStatus, LastTrouble, LinkStatus, ListenStatus, PeerName,
    SessionStatus, StatusReport, StreamStatus,
};
use prism_core::mcp::{Era, LinkState, link::SessionKey};
use prism_os::{limits, memory};
use tokio::{
    sync::{oneshot, watch},
    time::timeout,
};
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{FOREIGN_SESSION, json},
};
use prism_bridge::drive::{
    Destination, LinkCommand, LinkHandle, SessionEntry,
    sessions::SessionRole,
    visitor::{ClientActivity, ClientTransport},
    vitals::{StreamKind, StreamReport, StreamVitals},
};
use prism_config::{Env, home::TOKEN_FILE, trust::UntrustedFile};

/// How long a link may take to say how its streams are. One that has more to do is shown without them.
const REPORT_TIMEOUT: Duration = Duration::from_millis(250);

/// What the daemon knows of itself, besides what it serves.
pub struct DaemonFacts {
    started: Instant,
    home: PathBuf,
    /// Where the clients' token stands, as a person would write it.
    token: String,
    socket: OnceLock<PathBuf>,
    config: Mutex<ConfigStatus>,
    /// Files that do not count as they are.
    untrusted: watch::Sender<Vec<UntrustedFile>>,
    /// When the config was last read.
    taken: Mutex<Option<Instant>>,
}

impl DaemonFacts {
    pub fn new(home: &Path) -> Self {
        let token = token_place(home, &Env::process());
        Self {
            started: Instant::now(),
            home: home.to_owned(),
            token,
            socket: OnceLock::new(),
            config: Mutex::default(),
            untrusted: watch::Sender::default(),
            taken: Mutex::default(),
        }
    }

    pub fn token_place(&self) -> &str {
        &self.token
    }

    pub fn listens_on(&self, socket: &Path) {
        let _ = self.socket.set(socket.to_owned());
    }

    /// The config of this file is in effect, but for what only a restart changes.
    pub fn configured_by(&self, file: Option<&Path>, restart: Option<String>, untrusted: &[UntrustedFile]) {
        let absolute = |file: &Path| std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let file = file.map(|file| absolute(file).display().to_string());
        let unseen: Vec<String> = untrusted.iter().map(|one| format!("{}; {}", one.why(), one.fix())).collect();
        let (state, error) = match (unseen.is_empty(), restart) {
            (false, _) => (ConfigState::Untrusted, Some(unseen.join("; "))),
            (true, Some(why)) => (ConfigState::NeedsRestart, Some(why)),
            (true, None) => (ConfigState::Ok, None),
        };
        let now = ConfigStatus { file, state, error, taken_s: None };
        self.has_read();
        self.untrusted.send_if_modified(|known| {
            let is_new = known != untrusted;
            if is_new {
                *known = untrusted.to_vec();
            }
            is_new
        });
        let before = std::mem::replace(&mut *self.config(), now.clone());
        match now.error {
            Some(why) if state == ConfigState::Untrusted && before.error.as_ref() != Some(&why) => {
                warn!(why, "A config waits for you to see it");
            }
            Some(_) if state == ConfigState::Untrusted => {}
            Some(why) if before.error.as_ref() != Some(&why) => {
                warn!(why, "The config is in effect, but for one thing")
            }
            None if before.error.is_some() => info!("The config is in effect"),
            _ => {}
        }
    }

    /// The file was changed to something that cannot be used, and what it said before is still in effect.
    pub fn kept_old_config(&self, error: &str) {
        warn!(error, "The config has an error; the last good one stays");
        self.has_read();
        let mut config = self.config();
        (config.state, config.error) = (ConfigState::KeptOld, Some(error.to_owned()));
    }

    /// What waits for the person to see it.
    pub fn untrusted(&self) -> Vec<UntrustedFile> {
        self.untrusted.borrow().clone()
    }

    /// The same for who is to know when it changes.
    pub fn untrusted_changes(&self) -> watch::Receiver<Vec<UntrustedFile>> {
        self.untrusted.subscribe()
    }

    fn has_read(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// What is in effect, and since when.
    fn config_now(&self) -> ConfigStatus {
        let taken = *self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        ConfigStatus { taken_s: taken.map(|at| at.elapsed().as_secs_f64()), ..self.config().clone() }
    }

    fn config(&self) -> MutexGuard<'_, ConfigStatus> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn token_place(home: &Path, env: &Env) -> String {
    let file = home.join(TOKEN_FILE);
    let below = env.var("HOME").and_then(|user| file.strip_prefix(user).ok());
    match (env.var("PRISM_API_KEY"), below) {
        (Some(_), _) => "PRISM_API_KEY, in the daemon's environment".to_owned(),
        (None, Some(below)) => format!("~/{}", below.display()),
        (None, None) => file.display().to_string(),
    }
}

/// What can only be seen by looking.
struct ProcessUsage {
    memory_bytes: u64,
    open_files: u64,
    /// By the pid of the process that leads the group.
    groups: HashMap<u32, u64>,
}

pub(super) async fn respond(server: &Arc<DaemonSnapshot>) -> Response<ResponseBody> {
    let body = serde_json::to_string(&status(server).await);
    json(StatusCode::OK, body.unwrap_or_default())
}

/// Everything there is to say.
pub async fn status(server: &Arc<DaemonSnapshot>) -> StatusReport {
    let all: Vec<(&Arc<Destination>, Vec<LinkHandle>)> =
        server.destinations.values().map(|destination| (destination, destination.living_links())).collect();
    let (sight, reports) =
        tokio::join!(look(server), join_all(all.iter().map(|(_, links)| join_all(links.iter().map(streams)))));
    let mut listens = Vec::new();
    let mut known = SessionStreams::default();
    for ((destination, links), reports) in all.iter().zip(reports) {
        for (link, report) in links.iter().zip(reports) {
            let heard = report.is_some();
            let report = report.unwrap_or_default();
            let own = report.streams.iter().filter(|stream| stream.kind == StreamKind::Listen);
            listens.extend(own.map(|stream| listen(&destination.config().name, stream)));
            known.add(link.number, &destination.config().name, heard, report);
        }
    }
    StatusReport {
        daemon: daemon(server, &sight),
        destinations: all.iter().map(|(one, links)| self::destination(one, links, &sight)).collect(),
        sessions: sessions(server, &mut known),
        listens,
        clients: server.callers.list(),
        mesh: server.mesh.as_ref().map(|mesh| agents::mesh(mesh)),
    }
}

/// Looks at what is not counted, and tells the metrics of it.
pub(super) async fn refresh(server: &Arc<DaemonSnapshot>) {
    look(server).await;
}

async fn look(server: &Arc<DaemonSnapshot>) -> ProcessUsage {
    let links: Vec<Vec<LinkHandle>> = server.destinations.values().map(|d| d.living_links()).collect();
    let pids: Vec<u32> = links.iter().flatten().filter_map(|link| link.vitals.pid()).collect();
    // It reads a file for every process there is.
    let looking = tokio::task::spawn_blocking(move || ProcessUsage {
        memory_bytes: memory::of_process(std::process::id()).unwrap_or_default(),
        open_files: limits::open_now(),
        groups: memory::of_children(&pids),
    });
    let sight = looking.await.unwrap_or(ProcessUsage { memory_bytes: 0, open_files: 0, groups: HashMap::new() });
    server.access.metrics.seen(sight.memory_bytes, sight.open_files);
    if let Some(mesh) = &server.mesh {
        mesh.measure();
    }
    for (destination, links) in server.destinations.values().zip(links) {
        let in_flight = links.iter().map(|link| link.vitals.in_flight()).sum();
        destination.metrics().seen(sight.of(&links), in_flight);
    }
    sight
}

impl ProcessUsage {
    fn of(&self, links: &[LinkHandle]) -> u64 {
        links.iter().filter_map(|link| self.groups.get(&link.vitals.pid()?)).sum()
    }
}

async fn streams(link: &LinkHandle) -> Option<StreamReport> {
    let asking = async {
        let (reply, report) = oneshot::channel();
        link.commands.send(LinkCommand::Streams { reply }).await.ok()?;
        report.await.ok()
    };
    timeout(REPORT_TIMEOUT, asking).await.ok()?
}

fn daemon(server: &DaemonSnapshot, sight: &ProcessUsage) -> DaemonStatus {
    let about = server.about();
    DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        uptime_s: about.started.elapsed().as_secs_f64(),
        home: about.home.display().to_string(),
        url: server.config.base_url(),
        socket: about.socket.get().map(|socket| socket.display().to_string()),
        memory_bytes: sight.memory_bytes,
        open_files: sight.open_files,
        max_open_files: limits::open_files().0,
        stopping: server.is_stopping(),
        foreign_sessions: server.access.metrics.refused_for(FOREIGN_SESSION),
        record: server.gate.as_ref().map(|gate| gate.record_troubles()).unwrap_or_default(),
        config: about.config_now(),
    }
}

fn destination(destination: &Destination, links: &[LinkHandle], sight: &ProcessUsage) -> DestinationStatus {
    let (config, metrics, model) = (destination.config(), destination.metrics(), destination.model());
    let (totals, health) = (metrics.totals(), destination.health());
    DestinationStatus {
        name: config.name.clone(),
        kind: destination.kind().to_owned(),
        sandboxed: config.sandbox.is_some(),
        server: destination.server().map(|(name, version)| PeerName { name, version }),
        state: health.state.name().to_owned(),
        ready: health.state.is_ready(),
        why: health.said,
        fix: health.fix,
        era: destination.speaks().name().map(str::to_owned),
        era_from: destination.era_from().map(str::to_owned),
        model: model.name.to_owned(),
        model_why: model.why.to_owned(),
        sessions: metrics.sessions.get(),
        max_sessions: u64::try_from(destination.max_sessions()).ok().filter(|max| *max < usize::MAX as u64),
        streams: metrics.streams.get(),
        in_flight: links.iter().map(|link| link.vitals.in_flight() as u64).sum(),
        requests: totals.requests,
        failures: totals.failures,
        calls: totals.calls,
        p50_ms: totals.p50_ms,
        p99_ms: totals.p99_ms,
        starts: metrics.starts.get(),
        restarts: metrics.restarts.get(),
        children: metrics.children.get(),
        memory_bytes: sight.of(links),
        last_error: destination.trouble().last().map(|(text, ago)| LastTrouble { text, ago_s: ago.as_secs_f64() }),
        changed_tools: destination.definitions().changed(),
        links: links.iter().map(|one| link(one, sight)).collect(),
    }
}

fn link(link: &LinkHandle, sight: &ProcessUsage) -> LinkStatus {
    let vitals = &link.vitals;
    let state = vitals.state();
    let there = matches!(state, LinkState::Up | LinkState::Starting);
    LinkStatus {
        number: link.number,
        purpose: vitals.purpose.name().to_owned(),
        state: match state {
            LinkState::Down if vitals.started() > 0 => "stopped",
            LinkState::Down => "idle",
            LinkState::Asleep => "asleep",
            LinkState::Starting => "starting",
            LinkState::Up => "up",
            LinkState::Restarting => "restarting",
            LinkState::Failed => "failed",
        }
        .to_owned(),
        era: vitals.era().map(Era::name).map(str::to_owned),
        pid: vitals.pid(),
        memory_bytes: vitals.pid().and_then(|pid| sight.groups.get(&pid)).copied(),
        uptime_s: vitals.uptime().filter(|_| there).map(|time| time.as_secs_f64()),
        restarts: vitals.restarts(),
        sessions: vitals.sessions() as u64,
        in_flight: vitals.in_flight() as u64,
    }
}

fn listen(destination: &str, stream: &StreamVitals) -> ListenStatus {
    ListenStatus {
        destination: destination.to_owned(),
        open_s: stream.open_for.as_secs_f64(),
        silent_s: stream.silent_for.as_secs_f64(),
        waiting: stream.waiting as u64,
    }
}

/// The streams of sessions, and what waits for those without.
#[derive(Default)]
struct SessionStreams {
    /// Links that told of theirs: of this destination, with this number.
    heard: Vec<(String, u64)>,
    of: HashMap<SessionKey, Vec<StreamStatus>>,
    undelivered: HashMap<SessionKey, u64>,
}

impl SessionStreams {
    fn add(&mut self, number: u64, destination: &str, heard: bool, report: StreamReport) {
        if heard {
            self.heard.push((destination.to_owned(), number));
        }
        for stream in report.streams {
            if let Some(key) = stream.session {
                self.of.entry(key).or_default().push(StreamStatus {
                    kind: stream.kind.name().to_owned(),
                    open_s: stream.open_for.as_secs_f64(),
                    silent_s: stream.silent_for.as_secs_f64(),
                    waiting: stream.waiting as u64,
                });
            }
        }
        self.undelivered.extend(report.undelivered.into_iter().map(|(key, events)| (key, events as u64)));
    }

    /// Those of a session; `None` if its link did not tell.
    fn take(&mut self, entry: &SessionEntry) -> Option<Vec<StreamStatus>> {
        let heard = self.heard.iter().any(|(destination, number)| {
            *number == entry.link.number && *destination == entry.destination.config().name
        });
        heard.then(|| self.of.remove(&entry.key()).unwrap_or_default())
    }
}

fn sessions(server: &DaemonSnapshot, known: &mut SessionStreams) -> Vec<SessionStatus> {
    let mut sessions = Vec::new();
    for entry in server.sessions.all() {
        // A part is shown with the whole.
        if matches!(entry.role, SessionRole::Part(_)) {
            continue;
        }
        let parts = entry.hub().map(|hub| hub.parts()).unwrap_or_default();
        let mut streams = known.take(&entry);
        // The calls of a session of the hub's have their streams where its parts are.
        for part in &parts {
            if let (Some(streams), Some(more)) = (&mut streams, known.take(part)) {
                streams.extend(more);
            }
        }
        let mut names: Vec<String> = parts.iter().map(|part| part.destination.config().name.clone()).collect();
        names.sort();
        let is_hub = entry.hub().is_some();
        sessions.push(SessionStatus {
            destination: (!is_hub).then(|| entry.destination.config().name.clone()),
            hub: is_hub,
            parts: names,
            streams,
            undelivered: known.undelivered.remove(&entry.key()).unwrap_or_default(),
            revision: Some(entry.revision.name().to_owned()),
            ..session(&entry.id, &entry.visit, ClientTransport::Http)
        });
    }
    for plain in server.plains.all() {
        let (waiting, open, silent) = plain.outlet.health();
        let (open_s, silent_s) = (open.as_secs_f64(), silent.as_secs_f64());
        let stream =
            StreamStatus { kind: StreamKind::Sse.name().to_owned(), open_s, silent_s, waiting: waiting as u64 };
        sessions.push(SessionStatus {
            destination: Some(plain.destination.config().name.clone()),
            streams: Some(vec![stream]),
            ..session(&plain.id, &plain.visit, ClientTransport::Sse)
        });
    }
    sessions
}

/// What is the same for all sessions.
fn session(id: &Uuid, visit: &ClientActivity, way: ClientTransport) -> SessionStatus {
    let who = visit.who();
    let client = who.and_then(|who| who.client.clone());
    SessionStatus {
        id: short(id),
        client: client.map(|(name, version)| PeerName { name, version }),
        revision: who.map(|who| who.revision.to_owned()),
        transport: who.map_or(way, |who| who.way).name().to_owned(),
        calls: visit.calls(),
        age_s: visit.age().as_secs_f64(),
        idle_s: visit.idle().as_secs_f64(),
        ..SessionStatus::default()
    }
}

/// Tells sessions apart without giving them away: 32 bits of a hash of 122 random ones (FNV-1a).
fn short(id: &Uuid) -> String {
    let hash = id
        .as_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{:08x}", hash >> 32)
}
