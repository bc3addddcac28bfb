//! Connections to one server, kept for the next request. One is driven by whoever uses it, and by nobody while it is
//! kept: a task for each would cost every call two hops between threads, there and back.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Request, Response, Uri,
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::http1::{self, SendRequest},
};
use tower_service::Service;

use super::{socket::RemoteSocket, target::RemoteConnector};

/// Connections that are kept for the next request. Beyond it one is closed when its response ends.
const MAX_IDLE_CONNECTIONS: usize = 256;
/// How long a connection is kept for the next request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct ConnectionPool {
    connector: RemoteConnector,
    idle: Mutex<Vec<(PooledConnection, Instant)>>,
}

/// The body of a response, with the connection that it comes on.
pub struct PooledBody {
    body: Incoming,
    wire: Option<PooledConnection>,
    pool: Arc<ConnectionPool>,
}

/// Why there is no response.
pub(super) enum RemoteSendError {
    /// There was no connection: it was certainly not sent.
    Connect(Box<dyn std::error::Error + Send + Sync>),
    /// It was sent, and whether it was processed is not known.
    Sent(hyper::Error),
}

/// One connection.
struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
    /// What moves its bytes; gone when it has ended, so that whoever waits for it hears of that.
    driver: Option<Driver>,
    /// What it ended with.
    error: Option<hyper::Error>,
}

type Driver = Pin<Box<http1::Connection<RemoteSocket, Full<Bytes>>>>;

// === impl ConnectionPool ===

impl ConnectionPool {
    pub(super) fn new(connector: RemoteConnector) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::default() })
    }

    /// Sends a request, in origin form, and waits for the head of the response. One that a kept connection did not
    /// take, because the server had closed it, is sent on another.
    pub(super) async fn send(
        self: &Arc<Self>,
        to: &Uri,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<PooledBody>, RemoteSendError> {
        loop {
            let (mut wire, kept) = match self.take() {
                Some(wire) => (wire, true),
                None => (self.connect(to).await?, false),
            };
            let error = match wire.exchange(request).await {
                Ok(response) => {
                    let pool = self.clone();
                    return Ok(response.map(|body| PooledBody { body, wire: Some(wire), pool }));
                }
                Err(error) => error,
            };
            let (error, unsent) = error;
            match unsent.filter(|_| kept) {
                Some(unsent) => request = unsent,
                None => return Err(RemoteSendError::Sent(error)),
            }
        }
    }

    async fn connect(&self, to: &Uri) -> Result<PooledConnection, RemoteSendError> {
        let mut connector = self.connector.clone();
        poll_fn(|context| connector.poll_ready(context)).await.map_err(RemoteSendError::Connect)?;
        let stream = connector.call(to.clone()).await.map_err(RemoteSendError::Connect)?;
        let (sender, driver) = http1::handshake(stream).await.map_err(RemoteSendError::Sent)?;
        Ok(PooledConnection { sender, driver: Some(Box::pin(driver)), error: None })
    }

    /// The connection that was kept last, unless it has been for too long. The server may have closed it meanwhile:
    /// then it does not take the request, and that is told.
    fn take(&self) -> Option<PooledConnection> {
        loop {
            let (wire, since) = self.idle().pop()?;
            if since.elapsed() < IDLE_TIMEOUT && wire.sender.is_ready() {
                return Some(wire);
            }
        }
    }

    fn keep(&self, wire: PooledConnection) {
        let mut idle = self.idle();
        if idle.len() >= MAX_IDLE_CONNECTIONS || idle.first().is_some_and(|(_, since)| since.elapsed() >= IDLE_TIMEOUT)
        {
            idle.remove(0);
        }
        idle.push((wire, Instant::now()));
    }

    fn idle(&self) -> MutexGuard<'_, Vec<(PooledConnection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl PooledConnection ===

impl PooledConnection {
    /// Moves bytes, both ways.
    fn drive(&mut self, context: &mut Context<'_>) {
        drive(&mut self.driver, &mut self.error, context);
    }

    /// Sends a request and reads the head of the response. Gives back one that was not sent.
    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, (hyper::Error, Option<Request<Full<Bytes>>>)> {
        let Self { sender, driver, error } = self;
        let mut response = pin!(sender.try_send_request(request));
        let response = poll_fn(|context| {
            drive(driver, error, context);
            response.as_mut().poll(context)
        });
        response.await.map_err(|mut failed| match error.take() {
            // The server spoke before it was asked, and not as servers do: that says more.
            Some(error) => (error, None),
            None => {
                let unsent = failed.take_message();
                (failed.into_error(), unsent)
            }
        })
    }
}

fn drive(driver: &mut Option<Driver>, error: &mut Option<hyper::Error>, context: &mut Context<'_>) {
    if let Some(running) = driver
        && let Poll::Ready(ended) = running.as_mut().poll(context)
    {
        *driver = None;
        *error = ended.err();
    }
}

// === impl PooledBody ===

impl Body for PooledBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(wire) = &mut self.wire {
            wire.drive(context);
        }
        let polled = Pin::new(&mut self.body).poll_frame(context);
        let over = matches!(polled, Poll::Ready(None)) || (polled.is_ready() && self.body.is_end_stream());
        if over && let Some(mut wire) = self.wire.take() {
            wire.drive(context);
            if wire.driver.is_some() {
                self.pool.keep(wire);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
