//! The mesh over HTTP, for scripts, hooks and the command line: `POST /prism/mesh/{verb}`, `GET /prism/mesh` and its events.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderValue},
};
use prism_api::{
    mesh::MeshVerb,
    refusal::{RefusedAnswer, ToldRefusal},
};
use prism_mesh::{Mesh, MeshCaller, MeshError, MeshErrorCode, run};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{interval, timeout},
};

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{self, JSON, RequestDenial},
    onlooker,
    request::read,
    route::Answering,
};

/// The largest arguments of a verb.
const MAX_ARGUMENTS: usize = 1 << 20;
/// How long an answer may take before its client is shown that we are at it.
const AT_ONCE: Duration = Duration::from_secs(5);
/// How often it is shown that again.
const BEAT: Duration = Duration::from_secs(10);
/// Pieces of an answer that may wait for its client. Beyond it whoever makes them waits.
const MAX_PIECES: usize = 16;

/// Answers what came to `/prism/mesh` and below.
pub(super) fn answer(
    server: &Arc<DaemonSnapshot>,
    below: Option<&str>,
    caller: MeshCaller,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let mesh = server.mesh.clone().ok_or(RequestDenial::NoRoute)?;
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    let is_post = request.method() == Method::POST;
    match below {
        None | Some("events") if request.method() != Method::GET => Err(RequestDenial::Method { allowed: "GET" }),
        None => Ok(Box::pin(async move { told(mesh.everything().map(|all| json!(all))) })),
        Some("events") => Ok(Box::pin(async move { onlooker::stream(mesh.events.listen()) })),
        Some(verb) => {
            let verb = MeshVerb::named(verb).ok_or(RequestDenial::NoRoute)?;
            if !is_post {
                return Err(RequestDenial::Method { allowed: "POST" });
            }
            let body = request.into_body();
            Ok(Box::pin(async move {
                match read(body, MAX_ARGUMENTS).await {
                    Ok(arguments) => done(mesh, verb, arguments, caller).await,
                    Err(denial) => denial.response(),
                }
            }))
        }
    }
}

async fn done(mesh: Arc<Mesh>, verb: MeshVerb, arguments: Bytes, caller: MeshCaller) -> Response<ResponseBody> {
    let Ok(arguments) = String::from_utf8(arguments.into()) else {
        return told(Err(MeshError::bad("the arguments are no UTF-8")));
    };
    let (feed, fed) = mpsc::channel::<Bytes>(MAX_PIECES);
    if verb != MeshVerb::Wait {
        // In a task of its own: a client that leaves must not leave half a thing done. What it was given then waits again.
        let work = tokio::spawn(async move { run(&mesh, verb, &arguments, &caller).await });
        let bug = |_| Err(MeshError::new(MeshErrorCode::Store, "Prism has a bug there; its log has more"));
        return told(work.await.unwrap_or_else(bug).map(|(result, given)| {
            if let Some(given) = given {
                given.arrives();
            }
            result
        }));
    }
    let mut waiting = Box::pin(async move { run(&mesh, verb, &arguments, &caller).await.map(|(result, _)| result) });
    if let Ok(outcome) = timeout(AT_ONCE, &mut waiting).await {
        return told(outcome);
    }
    tokio::spawn(async move {
        let mut beat = interval(BEAT);
        loop {
            tokio::select! {
                outcome = &mut waiting => {
                    let (_, told) = words(outcome);
                    let _ = feed.send(Bytes::from(told)).await;
                    return;
                }
                _ = beat.tick() => {
                    // White space before a JSON text is none of it; and shows whether anybody is there.
                    if feed.send(Bytes::from_static(b" ")).await.is_err() {
                        return;
                    }
                }
                () = feed.closed() => return,
            }
        }
    });
    let mut response = Response::new(ResponseBody::Fed(Box::new(fed)));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn told(outcome: Result<Value, MeshError>) -> Response<ResponseBody> {
    let (status, words) = words(outcome);
    let mut response = fault::json(status, words);
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert("retry-after", HeaderValue::from_static("1"));
    }
    response
}

fn words(outcome: Result<Value, MeshError>) -> (StatusCode, String) {
    match outcome {
        Ok(result) => (StatusCode::OK, result.to_string()),
        Err(MeshError { code, message }) => {
            let error = ToldRefusal { code: code.name().to_owned(), message, details: None };
            (status(code), json!(RefusedAnswer { error }).to_string())
        }
    }
}

fn status(code: MeshErrorCode) -> StatusCode {
    match code {
        MeshErrorCode::BadArguments | MeshErrorCode::NotStarted | MeshErrorCode::CursorAhead => StatusCode::BAD_REQUEST,
        MeshErrorCode::NotYours => StatusCode::FORBIDDEN,
        MeshErrorCode::UnknownSession | MeshErrorCode::UnknownAgent | MeshErrorCode::UnknownSignal => {
            StatusCode::NOT_FOUND
        }
        MeshErrorCode::AlreadyDrained
        | MeshErrorCode::AlreadyGone
        | MeshErrorCode::Conflict
        | MeshErrorCode::Unreachable => StatusCode::CONFLICT,
        MeshErrorCode::CursorExpired => StatusCode::GONE,
        MeshErrorCode::MailboxFull | MeshErrorCode::Busy => StatusCode::TOO_MANY_REQUESTS,
        MeshErrorCode::Store => StatusCode::SERVICE_UNAVAILABLE,
    }
}
