//! The floor: the least a Rust HTTP-to-stdio bridge can do and still answer.
//! No sessions, no auth, no validation, no translation, no logging: hyper in
//! front, one shared child behind, replies matched by integer id, every other
//! line of the child sent to every open GET stream. What a real bridge costs
//! is measured as a ratio to this, in the same run.
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Method, Response,
    body::{Body, Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpListener,
        unix::pipe::{Receiver, Sender},
    },
    sync::{mpsc, oneshot},
};

#[derive(Deserialize)]
struct Id {
    id: Option<u64>,
}

/// A whole answer, or the open stream of a GET.
enum Answer {
    Whole(Option<Bytes>),
    Stream(mpsc::UnboundedReceiver<Bytes>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Answer::Whole(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            Answer::Stream(events) => events.poll_recv(cx).map(|b| b.map(|b| Ok(Frame::data(b)))),
        }
    }
    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Answer::Whole(bytes) => hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64)),
            Answer::Stream(_) => Default::default(),
        }
    }
}

#[derive(Default)]
struct Shared {
    pending: Mutex<HashMap<u64, oneshot::Sender<Bytes>>>,
    streams: Mutex<Vec<mpsc::UnboundedSender<Bytes>>>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let port: u16 = args.next().expect("usage: floor PORT COMMAND [ARGS]").parse()?;
    let mut child = Command::new(args.next().expect("a command"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    // It ends with its stdin.
    let mut stdin = Sender::from_owned_fd(child.stdin.take().unwrap().into())?;
    let stdout = Receiver::from_owned_fd(child.stdout.take().unwrap().into())?;
    let shared = Arc::new(Shared::default());
    let (to_child, mut lines) = mpsc::channel::<Bytes>(1024);
    tokio::spawn(async move {
        let mut batch = Vec::with_capacity(1 << 16);
        while let Some(line) = lines.recv().await {
            batch.clear();
            batch.extend_from_slice(&line);
            batch.push(b'\n');
            while let Ok(line) = lines.try_recv() {
                batch.extend_from_slice(&line);
                batch.push(b'\n');
            }
            if stdin.write_all(&batch).await.is_err() {
                break;
            }
        }
    });
    let reader = shared.clone();
    tokio::spawn(async move {
        let mut lines = BufReader::with_capacity(1 << 16, stdout);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).await.unwrap_or(0) > 0 {
            if let Ok(Id { id: Some(id) }) = serde_json::from_slice(&line) {
                if let Some(reply) = reader.pending.lock().unwrap().remove(&id) {
                    let _ = reply.send(Bytes::copy_from_slice(&line));
                }
            } else {
                let event = Bytes::from([b"data: ", line.as_slice(), b"\n"].concat());
                reader.streams.lock().unwrap().retain(|s| s.send(event.clone()).is_ok());
            }
            line.clear();
        }
    });
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (shared, to_child) = (shared.clone(), to_child.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request: hyper::Request<Incoming>| {
                let (shared, to_child) = (shared.clone(), to_child.clone());
                async move {
                    if request.method() == Method::GET {
                        #[expect(
                            clippy::disallowed_methods,
                            reason = "the floor guards against nothing; that is what makes it the floor"
                        )]
                        let (sender, events) = mpsc::unbounded_channel();
                        shared.streams.lock().unwrap().push(sender);
                        return Ok(Response::builder()
                            .header("content-type", "text/event-stream")
                            .body(Answer::Stream(events))
                            .unwrap());
                    }
                    let body = request.into_body().collect().await?.to_bytes();
                    let Ok(Id { id: Some(id) }) = serde_json::from_slice(&body) else {
                        let _ = to_child.send(body).await;
                        return Ok(Response::builder().status(202).body(Answer::Whole(None)).unwrap());
                    };
                    let (reply, answer) = oneshot::channel();
                    shared.pending.lock().unwrap().insert(id, reply);
                    let _ = to_child.send(body).await;
                    let line = answer.await.unwrap_or_default();
                    Ok::<_, hyper::Error>(
                        Response::builder()
                            .header("content-type", "application/json")
                            .header("mcp-session-id", "00000000-0000-4000-8000-000000000000")
                            .body(Answer::Whole(Some(line)))
                            .unwrap(),
                    )
                }
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
