//! Against a daemon that is ours, over a real socket.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, time::timeout};
use uuid::Uuid;

use super::{BellPollOutcome, BellPoller, BellPollerState, ShimBell, heard, poll};
use prism_mcp::remote::RemoteTarget;

type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A daemon that answers each poll with this.
async fn daemon(status: u16, answer: Value) -> (Arc<RemoteTarget>, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let asked: Asked = Arc::default();
    let seen = asked.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (seen, answer) = (seen.clone(), answer.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                let (seen, answer) = (seen.clone(), answer.clone());
                async move {
                    let path = request.uri().path().to_owned();
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    seen.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
                    // Spaces keep a long poll alive.
                    let mut response = Response::new(Full::new(Bytes::from(format!("  {answer}"))));
                    *response.status_mut() = StatusCode::from_u16(status).unwrap();
                    Ok::<_, Infallible>(response)
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    (RemoteTarget::new(&url, Vec::new(), None, 1 << 20).unwrap(), asked)
}

#[tokio::test]
async fn a_bell_is_waited_for_by_instance_and_heard_once() {
    let answer = json!({ "bell": true, "agent": "bob", "text": "Signal from ana", "pending": 1 });
    let (target, asked) = daemon(200, answer).await;
    let (mut bells, instance) = (BellPoller::default(), Uuid::now_v7());
    bells.attend();
    let bell = timeout(Duration::from_secs(10), bells.next(Some(&target), instance)).await.unwrap();
    assert_eq!(bell, ShimBell { text: "Signal from ana".to_owned(), agent: "bob".to_owned() });
    assert_eq!(
        *asked.lock().unwrap(),
        [(
            "/prism/mesh/wait".to_owned(),
            json!({ "instance": instance.to_string(), "hook": "channel", "timeout_s": 300 })
        )]
    );
    // It rings on, and is not heard for a while.
    assert!(matches!(&bells.state, BellPollerState::Due(at) if at.elapsed().is_zero()));
}

#[tokio::test]
async fn a_daemon_without_a_mesh_is_not_asked_again() {
    for (status, answer, is_over) in [
        (404, json!({ "jsonrpc": "2.0", "error": { "code": -32601, "message": "no such destination" } }), true),
        (400, json!({ "error": { "code": "bad_request", "message": "unknown field `instance`" } }), true),
        (404, json!({ "error": { "code": "unknown_agent", "message": "not yet" } }), false),
        (503, json!({ "error": { "code": "stopping", "message": "later" } }), false),
    ] {
        let (target, _) = daemon(status, answer.clone()).await;
        let heard = poll(target, Uuid::now_v7()).await;
        assert_eq!(matches!(heard, BellPollOutcome::Never), is_over, "{answer}");
        assert!(is_over || matches!(heard, BellPollOutcome::Trouble), "{answer}");
    }
}

#[test]
fn a_poll_that_ended_in_vain_is_no_trouble() {
    assert!(matches!(heard(&json!({ "bell": false, "why": "timeout" })), BellPollOutcome::Nothing));
    assert!(matches!(heard(&json!({ "bell": false, "why": "wrapped" })), BellPollOutcome::Trouble));
}
