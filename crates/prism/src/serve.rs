//! The front: listeners, and the one service that every connection runs.

pub mod body;
mod correlation;
pub mod fault;
mod guard;
mod hub;
mod modern;
mod plain;
mod post;
mod probes;
mod request;
mod route;
mod streams;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener, UnixStream},
    time::{interval, timeout},
};
use tracing::{info, warn};

use self::plain::Plains;
use crate::{
    builtin,
    config::{self, Config},
    drive::{
        Command, Destination, Hub, Sessions,
        destination::{self, Learned, Parts},
        remote::TargetError,
    },
    home::Token,
    telemetry::Access,
};

/// How long a client may take over the head of a request. It also ends connections that are kept alive for nothing.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How often sessions are looked through for idle ones.
const SWEEP: Duration = Duration::from_secs(5);
/// How long a stop waits for calls and children. A child gets 2 s to end by itself and 2 s after SIGTERM.
const STOP_TIMEOUT: Duration = Duration::from_secs(8);
/// How long to wait when no connection can be accepted: the process is out of files, and some must be closed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Everything a request may need. Made once.
pub struct Server {
    pub config: Config,
    pub destinations: BTreeMap<String, Arc<Destination>>,
    /// The destination at `/mcp`, where there is only one.
    pub root: Option<Arc<Destination>>,
    /// All destinations behind one URL, at `/mcp` where there is no root.
    pub hub: Arc<Hub>,
    pub sessions: Arc<Sessions>,
    /// Sessions of the transport of 2024-11-05.
    plains: Arc<Plains>,
    /// `None`: nobody is asked for a token.
    pub token: Option<Token>,
    pub access: Access,
    stopping: AtomicBool,
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error("port {port} of {address} is in use\n  fix: stop the other program, or choose another port with `--port`")]
    InUse { address: std::net::IpAddr, port: u16 },
    #[error("cannot listen on {address}")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("cannot listen on {}", path.display())]
    Unix { path: PathBuf, source: io::Error },
    #[error("another Prism already listens on {}\n  fix: stop it, or give this one its own folder with PRISM_HOME", path.display())]
    Running { path: PathBuf },
}

/// A destination that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("destination {name:?} cannot be reached")]
pub struct DestinationError {
    name: String,
    source: TargetError,
}

/// Opens the port. Loopback, unless the config says otherwise and that it is insecure (D-01).
pub async fn bind(config: &Config) -> Result<TcpListener, BindError> {
    let address = SocketAddr::new(config.address, config.port);
    TcpListener::bind(address).await.map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse { address: config.address, port: config.port },
        _ => BindError::Tcp { address, source },
    })
}

/// Opens the Unix socket, in the place of one that a dead daemon left.
pub async fn bind_unix(path: &Path) -> Result<UnixListener, BindError> {
    if UnixStream::connect(path).await.is_ok() {
        return Err(BindError::Running { path: path.to_owned() });
    }
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).map_err(|source| BindError::Unix { path: path.to_owned(), source })
}

// === impl Server ===

impl Server {
    /// Builds the server and its destinations. `root` names the one that is at `/mcp` too.
    pub fn new(
        config: Config,
        root: Option<&str>,
        token: Option<Token>,
        access: Access,
        parts: &Parts,
    ) -> Result<Arc<Self>, DestinationError> {
        let eras = match parts.store.as_ref().map(prism_store::Store::eras) {
            Some(Ok(eras)) => eras,
            Some(Err(error)) => {
                warn!(%error, "Cannot read which eras servers speak");
                Vec::new()
            }
            None => Vec::new(),
        };
        let quiet = match parts.store.as_ref().map(prism_store::Store::quiet) {
            Some(Ok(quiet)) => quiet,
            Some(Err(error)) => {
                warn!(%error, "Cannot read which servers are quiet");
                Vec::new()
            }
            None => Vec::new(),
        };
        let mut destinations: BTreeMap<String, Arc<Destination>> = config
            .destinations
            .values()
            .map(|one| {
                let key = destination::key(one);
                let quiet = quiet.iter().find(|q| q.destination == key).map(|q| (q.server.clone(), q.version.clone()));
                let speaks = eras.iter().find(|learned| learned.destination == key).and_then(destination::still_counts);
                let learned = Learned { quiet, speaks: speaks.unwrap_or_default() };
                match Destination::new(one.clone(), &config, parts, learned) {
                    Ok(destination) => Ok((one.name.clone(), destination)),
                    Err(source) => Err(DestinationError { name: one.name.clone(), source }),
                }
            })
            .collect::<Result<_, _>>()?;
        let root = root.and_then(|name| destinations.get(name).cloned());
        let behind = builtin::prism::Behind::default();
        let own = |name: &str, server| {
            let own = config::Destination { max_sessions: usize::MAX, ..config::Destination::stdio(name, Vec::new()) };
            let made = Destination::built_in(own, server, &config, parts);
            made.map_err(|source| DestinationError { name: name.to_owned(), source })
        };
        let home = own(builtin::prism::NAME, builtin::prism::server(&behind))?;
        let memory = builtin::workspace::server(config.workspace.as_deref(), &parts.home);
        let memory = own(builtin::workspace::NAME, memory)?;
        let behind_hub = destinations.values().filter(|destination| destination.config().hub);
        let members: Vec<Arc<Destination>> = [memory.clone()].iter().chain(behind_hub).cloned().collect();
        let hub = Hub::new(home.clone(), members, &config, parts.sessions.clone());
        let _ = behind.set(Arc::downgrade(&hub));
        destinations.insert(builtin::prism::NAME.to_owned(), home);
        destinations.insert(builtin::workspace::NAME.to_owned(), memory);
        let sessions = parts.sessions.clone();
        let plains = Arc::new(Plains::default());
        let stopping = AtomicBool::new(false);
        Ok(Arc::new(Self { config, destinations, root, hub, sessions, plains, token, access, stopping }))
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve_tcp(self: Arc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Small messages both ways: waiting to fill a packet would only add delay.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(connection(self.clone(), stream));
                }
                Err(error) => pause_accepting(&error).await,
            }
        }
    }

    pub async fn serve_unix(self: Arc<Self>, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::spawn(connection(self.clone(), stream))),
                Err(error) => pause_accepting(&error).await,
            }
        }
    }

    /// Ends sessions that nobody uses (B-10), for ever.
    pub async fn sweep(self: Arc<Self>) {
        let Some(limit) = self.config.session_idle_timeout else { return };
        let mut ticks = interval(SWEEP.min(limit / 2).max(Duration::from_millis(50)));
        loop {
            ticks.tick().await;
            for idle in self.sessions.idle_for(limit, None) {
                if let Some(entry) = self.sessions.remove(&idle.id) {
                    info!(destination = entry.destination.config().name, "Ended an idle session");
                    destination::close(&entry);
                }
            }
        }
    }

    /// The destinations that are not Prism itself.
    pub fn configured(&self) -> impl Iterator<Item = &Arc<Destination>> {
        self.destinations.values().filter(|destination| !destination.is_built_in())
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends sessions, streams and children, and waits until they are gone (B-25). Returns whether they are.
    pub async fn stop(&self) -> bool {
        self.stopping.store(true, Ordering::Relaxed);
        let links: Vec<_> = self.destinations.values().flat_map(|d| d.links()).collect();
        for link in links {
            let _ = timeout(Duration::from_secs(1), link.commands.send(Command::ShutDown)).await;
        }
        let all = async {
            // Links stay, idle, until the process ends; what must be gone are their children.
            while prism_os::group::living() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(STOP_TIMEOUT, all).await.is_ok()
    }
}

async fn pause_accepting(error: &io::Error) {
    warn!(%error, "Cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

async fn connection<S>(server: Arc<Server>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let answering = route::route(&server, request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    // A connection that breaks is its client's affair; what it left behind is found by the streams' and calls' ends.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
