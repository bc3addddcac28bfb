//! Listeners, and the one service that every connection runs.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hyper::{Request, Response, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener, UnixStream},
    sync::watch,
};
use tracing::warn;

use super::{
    DaemonService,
    body::ResponseBody,
    fault::RequestDenial,
    guard, route,
    strangers::{UnverifiedConnection, UnverifiedConnections},
};
use prism_config::Config;

/// How long a client may take over the head of a request. It also ends connections that are kept alive for nothing. Whoever
/// has shown no key yet has less (`strangers`).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The longest head. Browsers send the cookies of all ports of this address, which any server there can set: some 180 of 4 KiB,
/// and nobody is to be shut out of the console by them (L7).
const MAX_HEAD_BYTES: usize = 1 << 20;
/// How long another user may take over the head of a request, before it is told that it is one.
const FOREIGNERS_HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait when no connection can be accepted: the process is out of files, and some must be closed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
    let bound = UnixListener::bind(path).and_then(|listener| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    });
    bound.map_err(|source| BindError::Unix { path: path.to_owned(), source })
}

impl DaemonService {
    /// Accepts connections until the future is dropped.
    pub async fn serve_tcp(self: Arc<Self>, listener: TcpListener) {
        let strangers = UnverifiedConnections::by_files();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Small messages both ways: waiting to fill a packet would only add delay.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(connection(self.clone(), stream, strangers.meet().await));
                }
                Err(error) => pause_accepting(&error).await,
            }
        }
    }

    /// The same for the Unix socket. Only the daemon's own user gets in, whatever the modes of file and folder say by
    /// now; and needs the token all the same: not every process of a user is one that the user trusts (D-01, D-04).
    pub async fn serve_unix(self: Arc<Self>, listener: UnixListener) {
        let ours = prism_os::process::user_id();
        // Of its own: who fills the port does not fill this.
        let strangers = UnverifiedConnections::by_files();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => match stream.peer_cred().map(|peer| peer.uid()) {
                    Ok(uid) if uid == ours => {
                        drop(tokio::spawn(connection(self.clone(), stream, strangers.meet().await)))
                    }
                    Ok(uid) => self.turn_away(stream, uid, strangers.meet().await),
                    // It has left already.
                    Err(_) => {}
                },
                Err(error) => pause_accepting(&error).await,
            }
        }
    }

    fn turn_away(&self, stream: UnixStream, uid: u32, stranger: Arc<UnverifiedConnection>) {
        self.current().access.metrics.refused(RequestDenial::ForeignUser { uid }.reason());
        // Once: a stranger must not be able to fill the log.
        if !self.life.met_stranger.swap(true, Ordering::Relaxed) {
            warn!(uid, "Another user was turned away at the Unix socket");
        }
        let service = service_fn(move |_: Request<Incoming>| async move {
            Ok::<_, Infallible>(RequestDenial::ForeignUser { uid }.response())
        });
        tokio::spawn(converse(stream, FOREIGNERS_HEAD_TIMEOUT, self.life.hang_up.subscribe(), stranger, service));
    }
}

async fn pause_accepting(error: &io::Error) {
    warn!(%error, "Cannot accept a connection");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

async fn connection<S>(front: Arc<DaemonService>, stream: S, stranger: Arc<UnverifiedConnection>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let hang_up = front.life.hang_up.subscribe();
    let who = stranger.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let server = front.current();
        if !who.is_known() && guard::shows_a_key(&server, request.headers()) {
            who.is_let_in();
        }
        let answering = route::route(&server, request);
        async move { Ok::<_, Infallible>(answering.await) }
    });
    converse(stream, HEAD_TIMEOUT, hang_up, stranger, service).await;
}

/// Serves a connection until its client leaves, or until it has answered what it is at when it is to hang up.
async fn converse<S, V>(
    stream: S,
    head_timeout: Duration,
    mut hang_up: watch::Receiver<()>,
    stranger: Arc<UnverifiedConnection>,
    service: V,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    V: hyper::service::Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible>,
{
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(head_timeout).max_buf_size(MAX_HEAD_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    // A connection that breaks is its client's affair; what it left behind is found by the streams' and calls' ends.
    tokio::select! {
        // First: a head that is there already counts.
        biased;
        _ = connection.as_mut() => return,
        () = stranger.has_to_go() => return,
        _ = hang_up.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
