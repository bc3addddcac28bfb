//! The echo server over plain Streamable HTTP, both eras, or one of them: `echo-http PORT [legacy|modern]`.
//! What a reverse proxy and Prism are put in front of, to be compared. `delay_ms` and `broadcast` are for a pipe.
use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming},
    header::HeaderValue,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use perf::echo::{Envelope, Era, answer, tools};
use std::{
    convert::Infallible,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::{Context, Poll},
};
use tokio::net::TcpListener;

/// The stream of a GET: open, and silent.
struct Silence;

impl Body for Silence {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, _: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

type Answer = Either<Full<Bytes>, Silence>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().expect("usage: echo-http PORT [legacy|modern]").parse()?;
    let only = match args.next().as_deref() {
        Some("legacy") => Some(Era::Legacy),
        Some("modern") => Some(Era::Modern),
        _ => None,
    };
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(move |request| serve(request, only));
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn serve(request: Request<Incoming>, only: Option<Era>) -> Result<Response<Answer>, hyper::Error> {
    let header = |name: &str| request.headers().get(name).and_then(|v| v.to_str().ok());
    let era = if header("mcp-protocol-version").is_some_and(|v| v >= "2026") { Era::Modern } else { Era::Legacy };
    let session = header("mcp-session-id").is_some();
    match *request.method() {
        Method::POST => {}
        Method::GET if session && only != Some(Era::Modern) => {
            return Ok(of_kind("text/event-stream", Either::Right(Silence)));
        }
        Method::DELETE if session => return Ok(empty(StatusCode::OK)),
        _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
    let body = request.into_body().collect().await?.to_bytes();
    let Ok(message) = serde_json::from_slice::<Envelope>(&body) else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    let initialize = message.method.as_deref() == Some("initialize");
    let known = only.is_none_or(|only| only == era || initialize && only == Era::Legacy);
    if !known || era == Era::Legacy && !session && !initialize {
        return Ok(empty(StatusCode::BAD_REQUEST));
    }
    if message.id.is_none() || message.method.is_none() {
        return Ok(empty(StatusCode::ACCEPTED));
    }
    let era = if initialize { Era::Legacy } else { era };
    let mut lines = Vec::with_capacity(512);
    answer(&message, era, &tools(1), &mut lines, |_, _| Ok(())).expect("a vector takes everything");
    // One line is the answer; with notes before it, it is a stream.
    let single = lines.iter().filter(|byte| **byte == b'\n').count() == 1;
    let (kind, bytes) = if single {
        lines.pop();
        ("application/json", lines)
    } else {
        let events = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        ("text/event-stream", events.flat_map(|line| [b"event: message\ndata: ", line, b"\n\n"].concat()).collect())
    };
    let mut response = of_kind(kind, Either::Left(Full::new(bytes.into())));
    if initialize {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        let session = format!("echo-session-{:032}", SESSIONS.fetch_add(1, Relaxed));
        let session = HeaderValue::try_from(session).expect("letters and digits");
        response.headers_mut().insert("mcp-session-id", session);
    }
    Ok(response)
}

fn of_kind(kind: &'static str, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response
}

fn empty(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = status;
    response
}
