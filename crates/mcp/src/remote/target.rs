//! Where a server is: its address, the headers that go with every request to it, and one pool of connections. What is
//! sent, and what an answer means, is decided elsewhere; redirects are followed here.

use std::{
    error::Error,
    io, iter,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    HeaderMap, Method, Request, Response, Uri,
    header::{HOST, HeaderName, HeaderValue, LOCATION},
    http::uri::{PathAndQuery, Scheme},
};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use tokio::{net::UnixStream, time::timeout};
use tower_service::Service;
use tracing::debug;

use super::{
    RemoteFailure, Transport, address,
    credentials::{AfterRefusal, Credentials, CredentialsRefusal},
    headers,
    pool::{ConnectionPool, PooledBody, RemoteSendError},
    socket::RemoteSocket,
};

/// How long it may take until there is a connection: name, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A stream may be silent for hours. This is how a peer that vanished is noticed: asked after so long a silence, so
/// often, and so many times.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_TRIES: u32 = 4;
const MAX_REDIRECTS: usize = 3;

/// Where a server is, shared by all links of a destination.
pub struct RemoteTarget {
    pub url: Uri,
    /// What was configured, and may be. It can change from one connection to the next: secrets do.
    headers: RwLock<HeaderMap>,
    /// What opens the server, where that is more than what was configured.
    credentials: OnceLock<Arc<dyn Credentials>>,
    max_message_bytes: AtomicUsize,
    pub(super) patience: RemotePatience,
    configured: Option<Transport>,
    found: AtomicU8,
    host: HeaderValue,
    pool: Arc<ConnectionPool>,
}

/// How long we wait for what no link has a deadline for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RemotePatience {
    /// For a cancelled request of the legacy era to end by itself.
    pub(super) fade: Duration,
    /// For `notifications/initialized` to be accepted, before what came after it leaves all the same.
    pub(super) greeting: Duration,
    /// For the older transport's `endpoint` event.
    pub(super) endpoint: Duration,
}

/// Why there is no such target. The address is not repeated: it may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum RemoteTargetError {
    #[error("the URL is not valid")]
    Url(#[source] hyper::http::uri::InvalidUri),
    #[error("the URL must begin with http:// or https:// and name a host")]
    Scheme,
    #[error("the URL holds a user name or password; put credentials into a header")]
    Credentials,
    #[error("the header {name:?} is not valid")]
    Header { name: String },
    #[error("cannot load the certificates that this machine trusts")]
    Trust(#[source] io::Error),
}

/// Connects within [`CONNECT_TIMEOUT`]. The inner connectors know a limit for TCP only.
#[derive(Clone)]
pub(super) enum RemoteConnector {
    Net(HttpsConnector<HttpConnector>),
    /// Whatever the URL says: its host is only what the server is told.
    Unix(Arc<Path>),
}

type BoxError = Box<dyn Error + Send + Sync>;

/// Turns configured headers into what goes with every request.
fn checked(configured: Vec<(String, String)>) -> Result<HeaderMap, RemoteTargetError> {
    let mut headers = HeaderMap::new();
    for (name, value) in configured {
        let key = HeaderName::from_bytes(name.as_bytes());
        let (Ok(key), Ok(mut value)) = (key, HeaderValue::from_str(&value)) else {
            return Err(RemoteTargetError::Header { name });
        };
        if headers::is_reserved(&key) {
            debug!(name, "A configured header is the protocol's own and is left out");
            continue;
        }
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

// === impl RemoteTarget ===

impl RemoteTarget {
    /// The longest message that the server may send.
    pub fn max_message_bytes(&self) -> usize {
        self.max_message_bytes.load(Ordering::Relaxed)
    }

    pub fn limit(&self, max_message_bytes: usize) {
        self.max_message_bytes.store(max_message_bytes, Ordering::Relaxed);
    }

    pub fn new(
        url: &str,
        headers: Vec<(String, String)>,
        transport: Option<Transport>,
        max_message_bytes: usize,
    ) -> Result<Arc<Self>, RemoteTargetError> {
        let url = parse(url)?;
        let tls = if url.scheme() == Some(&Scheme::HTTPS) { trusted() } else { untrusting() };
        let tls = tls.map_err(RemoteTargetError::Trust)?;
        let target = Self::with_tls(url, headers, transport, max_message_bytes, tls)?;
        Ok(Arc::new(target))
    }

    /// A server of Streamable HTTP behind a Unix socket.
    pub fn over_socket(
        socket: PathBuf,
        url: &str,
        headers: Vec<(String, String)>,
        max_message_bytes: usize,
    ) -> Result<Arc<Self>, RemoteTargetError> {
        let connector = RemoteConnector::Unix(socket.into());
        let transport = Some(Transport::StreamableHttp);
        Ok(Arc::new(Self::with_connector(parse(url)?, headers, transport, max_message_bytes, connector)?))
    }

    pub(super) fn with_tls(
        url: Uri,
        configured: Vec<(String, String)>,
        transport: Option<Transport>,
        max_message_bytes: usize,
        tls: Arc<ClientConfig>,
    ) -> Result<Self, RemoteTargetError> {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_keepalive(Some(KEEP_ALIVE));
        http.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
        http.set_keepalive_retries(Some(KEEP_ALIVE_TRIES));
        let connector = RemoteConnector::Net(HttpsConnector::from((http, tls)));
        Self::with_connector(url, configured, transport, max_message_bytes, connector)
    }

    fn with_connector(
        url: Uri,
        configured: Vec<(String, String)>,
        transport: Option<Transport>,
        max_message_bytes: usize,
        connector: RemoteConnector,
    ) -> Result<Self, RemoteTargetError> {
        let pool = ConnectionPool::new(connector);
        let host = url.authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
        let host = host.ok_or(RemoteTargetError::Scheme)?;
        Ok(Self {
            url,
            headers: RwLock::new(checked(configured)?),
            credentials: OnceLock::new(),
            max_message_bytes: AtomicUsize::new(max_message_bytes),
            patience: RemotePatience::default(),
            configured: transport,
            found: AtomicU8::new(0),
            host,
            pool,
        })
    }

    /// Replaces what was configured, for the requests from now on.
    pub fn set_headers(&self, configured: Vec<(String, String)>) -> Result<(), RemoteTargetError> {
        *self.headers.write().unwrap_or_else(PoisonError::into_inner) = checked(configured)?;
        Ok(())
    }

    /// Says what opens the server, beside what was configured. Only the first time counts.
    pub fn opened_by(&self, credentials: Arc<dyn Credentials>) {
        let _ = self.credentials.set(credentials);
    }

    pub(super) fn headers(&self) -> HeaderMap {
        let mut headers = self.headers.read().unwrap_or_else(PoisonError::into_inner).clone();
        // What is there under the same name is replaced.
        headers.extend(self.offered());
        headers
    }

    /// What credentials say, if there are any.
    fn offered(&self) -> HeaderMap {
        self.credentials.get().map(|credentials| credentials.headers()).unwrap_or_default()
    }

    /// Whether a response that says no is worth another try.
    async fn has_better(&self, offered: HeaderMap, response: &Response<PooledBody>) -> bool {
        let Some(credentials) = self.credentials.get() else { return false };
        match CredentialsRefusal::read(response.status().as_u16(), response.headers(), offered) {
            Some(refusal) => credentials.refused(&refusal).await == AfterRefusal::TryAgain,
            None => false,
        }
    }

    /// What is known by now: configured, or found out.
    pub fn transport(&self) -> Option<Transport> {
        let found = match self.found.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Transport::StreamableHttp),
            _ => Some(Transport::Sse),
        };
        self.configured.or(found)
    }

    /// Whether a server that refuses Streamable HTTP may be asked for the older transport.
    pub(super) fn may_probe(&self) -> bool {
        self.configured.is_none()
    }

    pub(super) fn found(&self, transport: Transport) {
        let number = match transport {
            Transport::StreamableHttp => 1,
            Transport::Sse => 2,
        };
        self.found.store(number, Ordering::Relaxed);
    }

    pub(super) fn forget(&self) {
        self.found.store(0, Ordering::Relaxed);
    }

    /// Sends a request and waits for the head of the response; redirects within the origin are followed, and one that was
    /// refused is sent once more if there are better credentials. Returns the response and the URL that gave it. Has no
    /// deadline, but for connecting.
    pub async fn send(
        &self,
        method: Method,
        url: &Uri,
        headers: impl Fn() -> HeaderMap,
        body: Bytes,
    ) -> Result<(Uri, Response<PooledBody>), RemoteFailure> {
        let mut url = url.clone();
        let (mut redirects, mut retried) = (0, false);
        loop {
            let offered = self.offered();
            let mut request = Request::new(Full::new(body.clone()));
            *request.method_mut() = method.clone();
            // What is asked is the path; the rest of the URL is where, and never another origin.
            let path = url.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
            *request.uri_mut() = Uri::from(path);
            *request.headers_mut() = headers();
            request.headers_mut().insert(HOST, self.host.clone());
            let response = self.pool.send(&url, request).await.map_err(|error| failure(&error))?;
            if !retried && self.has_better(offered, &response).await {
                retried = true;
                continue;
            }
            let status = response.status().as_u16();
            let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let Some(location) = location.filter(|_| matches!(status, 300..=399)) else {
                return Ok((url, response));
            };
            let Some(next) = address::resolve(&url, location) else {
                return Err(RemoteFailure::Redirected { to: "what is no URL".to_owned() });
            };
            // Only these two keep method and body. Another origin must not see our credentials, nor the message.
            let keeps = matches!(status, 307 | 308) && address::same_origin(&url, &next);
            if !keeps || redirects == MAX_REDIRECTS {
                return Err(RemoteFailure::Redirected { to: address::shown(&next) });
            }
            redirects += 1;
            url = next;
        }
    }
}

fn parse(url: &str) -> Result<Uri, RemoteTargetError> {
    let url: Uri = url.parse().map_err(RemoteTargetError::Url)?;
    let known = [Scheme::HTTP, Scheme::HTTPS].iter().any(|scheme| url.scheme() == Some(scheme));
    if !known || url.host().is_none_or(str::is_empty) {
        return Err(RemoteTargetError::Scheme);
    }
    if url.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(RemoteTargetError::Credentials);
    }
    Ok(url)
}

/// A TLS client that trusts what this machine trusts, or `SSL_CERT_FILE` if that is set. Read once: it is work.
fn trusted() -> Result<Arc<ClientConfig>, io::Error> {
    static TRUSTED: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = TRUSTED.get() {
        return Ok(config.clone());
    }
    let config = Arc::new(tls()?.with_native_roots()?.with_no_client_auth());
    Ok(TRUSTED.get_or_init(|| config).clone())
}

/// A TLS client that trusts nobody. Nothing is ever asked of another origin, so one that speaks plain HTTP never uses
/// it; loading what it would trust is work.
fn untrusting() -> Result<Arc<ClientConfig>, io::Error> {
    Ok(Arc::new(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
}

/// The provider is named because a process-wide default could be anything.
pub(super) fn tls() -> io::Result<ConfigBuilder<ClientConfig, WantsVerifier>> {
    let provider = Arc::new(ring::default_provider());
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(io::Error::other)
}

/// What an error of the pool means to a request.
fn failure(error: &RemoteSendError) -> RemoteFailure {
    match error {
        RemoteSendError::Connect(error) => RemoteFailure::Unreachable { why: causes(error.as_ref()) },
        RemoteSendError::Sent(error) if error.is_parse() => {
            RemoteFailure::NotMcp { why: "the server's answer is not HTTP".to_owned() }
        }
        // It may have been processed: nobody knows.
        RemoteSendError::Sent(_) => RemoteFailure::Cut,
    }
}

/// An error and its causes, outermost first.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    for cause in iter::successors(Some(error), |&cause| cause.source()) {
        let next = cause.to_string();
        // Wrappers repeat what they wrap.
        if !text.ends_with(&next) {
            text += if text.is_empty() { "" } else { ": " };
            text += &next;
        }
    }
    text
}

impl Default for RemotePatience {
    fn default() -> Self {
        Self { fade: Duration::from_secs(30), greeting: Duration::from_secs(10), endpoint: Duration::from_secs(10) }
    }
}

// === impl RemoteConnector ===

impl Service<Uri> for RemoteConnector {
    type Response = RemoteSocket;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Net(connector) => connector.poll_ready(context),
            Self::Unix(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut connector = self.clone();
        let connecting = async move {
            match &mut connector {
                Self::Net(connector) => connector.call(uri).await.map(RemoteSocket::Net),
                Self::Unix(path) => Ok(RemoteSocket::Unix(TokioIo::new(UnixStream::connect(path).await?))),
            }
        };
        Box::pin(async move {
            let late = |_| Err(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()).into());
            timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(late)
        })
    }
}
