//! What a server does with requests that it should not serve: each has a status of its own, and clients rely on it.

use bytes::Bytes;
use hyper::{
    HeaderMap, Method as Verb,
    header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue, ORIGIN},
};
use prism_core::mcp::modern;
use prism_mcp::{
    client::{ClientError, Foreign, MODERN, SeenMessage, parse},
    remote::headers::ProtocolHeaders,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    check::{ProbeCheck, fail, ok, skipped},
    run::ProbeRun,
};

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");

/// An origin that no server has reason to trust.
const FOREIGN: HeaderValue = HeaderValue::from_static("https://prism-probe.invalid");

/// Tries what must be refused.
pub(super) async fn knock(run: &mut ProbeRun<'_>) {
    let checks = [
        wrong_session(run).await,
        missing_session(run).await,
        accept(run).await,
        bad_json(run).await,
        origin(run).await,
        token(run).await,
        version(run).await,
    ];
    run.checks.extend(checks);
    if !run.is_legacy() {
        let checks = [
            mismatch(run).await,
            verb(run, "get_refused", Verb::GET).await,
            verb(run, "delete_refused", Verb::DELETE).await,
        ];
        run.checks.extend(checks);
    }
}

/// Ends the session, and sees that it has ended.
pub(super) async fn leave(run: &mut ProbeRun<'_>) {
    if run.client.lane.session.is_none() {
        return run.add(skipped("delete", "there is no session to end"));
    }
    let check = match run.client.close().await {
        None => fail("delete", "no answer to DELETE", "answer DELETE with 204, or with 405 where clients may not"),
        Some(405) => skipped("delete", "405: clients may not end sessions, as the server may choose"),
        Some(status @ 200..300) => match asks(run, &run.client.lane.clone(), |_| {}).await {
            Ok((404, _)) => ok("delete", format!("{status}, and 404 after it")),
            Ok((after, _)) => {
                fail("delete", format!("{status}, but {after} after it"), "answer 404 to a session that has ended")
            }
            Err(fault) => {
                fail("delete", format!("{status}, and then: {fault}"), "answer 404 to a session that has ended")
            }
        },
        Some(status) => {
            fail("delete", format!("HTTP {status}"), "answer DELETE with 204, or with 405 where clients may not")
        }
    };
    run.add(check);
}

/// Asks for something that costs nothing, with the headers changed. Returns the status and the code of an error.
async fn asks(
    run: &ProbeRun<'_>,
    lane: &ProtocolHeaders,
    change: impl FnOnce(&mut HeaderMap),
) -> Result<(u16, Option<i64>), ClientError> {
    let method = if run.is_legacy() { "ping" } else { "server/discover" };
    let message = parse(&run.client.message(run.client.next_id(), method, json!({})))?;
    let mut headers = run.client.wire.post_headers(&message, lane);
    change(&mut headers);
    sends(run, Verb::POST, headers, message.bytes().clone()).await
}

async fn sends(
    run: &ProbeRun<'_>,
    verb: Verb,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(u16, Option<i64>), ClientError> {
    let reply = run.client.wire.send(verb, headers, body).await?;
    let status = reply.status;
    // A stream that should not have been opened has no end to wait for.
    if reply.kind() != "application/json" {
        return Ok((status, None));
    }
    let body = reply.whole(run.plan.patience).await.unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    Ok((status, SeenMessage::of(&body).error.and_then(|error| error.code?.as_i64())))
}

/// Compares a status with the one that it should be.
fn judged(name: &'static str, seen: Result<(u16, Option<i64>), ClientError>, wanted: &[u16], fix: &str) -> ProbeCheck {
    match seen {
        Ok((status, _)) if wanted.contains(&status) => ok(name, status.to_string()),
        Ok((status, _)) => {
            let wanted: Vec<String> = wanted.iter().map(u16::to_string).collect();
            fail(name, format!("HTTP {status}, not {}", wanted.join(" or ")), fix)
        }
        Err(fault) => fail(name, fault.to_string(), fix),
    }
}

async fn wrong_session(run: &ProbeRun<'_>) -> ProbeCheck {
    let name = "wrong_session";
    let lane = &run.client.lane;
    if lane.session.is_none() {
        return skipped(name, "there are no sessions");
    }
    let Some(stranger) = new_id() else { return skipped(name, "this system has no randomness") };
    let lane = ProtocolHeaders { session: HeaderValue::from_str(&stranger).ok(), version: lane.version.clone() };
    let seen = asks(run, &lane, |_| {}).await;
    judged(name, seen, &[404], "answer 404 to a session id that is not known: clients then initialize again")
}

async fn missing_session(run: &ProbeRun<'_>) -> ProbeCheck {
    let name = "missing_session";
    let lane = &run.client.lane;
    if lane.session.is_none() {
        return skipped(name, "there are no sessions");
    }
    let lane = ProtocolHeaders { session: None, version: lane.version.clone() };
    let headers = run.client.wire.headers(&lane, None);
    let fix = "answer 400 to what needs a session and names none";
    match sends(run, Verb::GET, headers, Bytes::new()).await {
        Ok((405, _)) => match asks(run, &lane, |_| {}).await {
            Ok((200, _)) => skipped(name, "the server serves calls without a session, too"),
            seen => judged(name, seen, &[400], fix),
        },
        seen => judged(name, seen, &[400], fix),
    }
}

async fn accept(run: &ProbeRun<'_>) -> ProbeCheck {
    let seen = asks(run, &run.client.lane, |headers| {
        headers.insert(ACCEPT, HeaderValue::from_static("text/plain"));
    });
    // Some SDKs say 400.
    judged("accept", seen.await, &[406, 400], "answer 406 to a client that accepts neither JSON nor events")
}

async fn bad_json(run: &ProbeRun<'_>) -> ProbeCheck {
    let mut headers = run.client.wire.raw_headers(&run.client.lane);
    if !run.is_legacy() {
        headers.insert(VERSION, HeaderValue::from_static(MODERN));
    }
    let seen = sends(run, Verb::POST, headers, Bytes::from_static(b"{\"jsonrpc\":")).await;
    judged("bad_json", seen, &[400], "answer 400 and error -32700 to what is no JSON")
}

async fn origin(run: &ProbeRun<'_>) -> ProbeCheck {
    let seen = asks(run, &run.client.lane, |headers| {
        headers.insert(ORIGIN, FOREIGN);
    });
    let seen = seen.await;
    let host = run.client.wire.target.url.host().unwrap_or_default().to_owned();
    let here = matches!(host.as_str(), "127.0.0.1" | "localhost" | "[::1]");
    match seen {
        Ok((status, _)) if status != 403 && !here => skipped(
            "origin",
            format!("HTTP {status} to a foreign Origin: that matters on the machine of a browser only"),
        ),
        seen => judged(
            "origin",
            seen,
            &[403],
            "answer 403 to a foreign Origin: any web page could use this server (DNS rebinding)",
        ),
    }
}

async fn token(run: &ProbeRun<'_>) -> ProbeCheck {
    let given = run.plan.http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    if !given {
        return skipped("token", "no --token was given");
    }
    let seen = asks(run, &run.client.lane, |headers| {
        headers.remove(AUTHORIZATION);
    });
    judged("token", seen.await, &[401], "ask every request for the token, not only the first")
}

async fn version(run: &ProbeRun<'_>) -> ProbeCheck {
    let name = "wrong_version";
    if run.is_legacy() && run.client.lane.version.is_none() {
        return skipped(name, format!("{} has no such header", run.client.greeting.revision));
    }
    let seen = asks(run, &run.client.lane, |headers| {
        headers.insert(VERSION, HeaderValue::from_static("1999-12-31"));
    });
    judged(name, seen.await, &[400], "answer 400 to an MCP-Protocol-Version that is not spoken")
}

/// A header that contradicts its body: whoever routes by the one would be deceived by the other.
async fn mismatch(run: &ProbeRun<'_>) -> ProbeCheck {
    let seen = asks(run, &run.client.lane, |headers| {
        headers.insert(METHOD, HeaderValue::from_static("tools/list"));
    });
    let code = i64::from(modern::HEADER_MISMATCH);
    match seen.await {
        Ok((400, Some(found))) if found == code => ok("header_mismatch", format!("400, error {code}")),
        Ok((status, found)) => {
            let found = found.map(|code| format!(", error {code}")).unwrap_or_default();
            fail(
                "header_mismatch",
                format!("HTTP {status}{found}"),
                "answer 400 and error -32020 to headers that contradict the body",
            )
        }
        Err(fault) => fail("header_mismatch", fault.to_string(), "answer 400 and error -32020"),
    }
}

async fn verb(run: &ProbeRun<'_>, name: &'static str, verb: Verb) -> ProbeCheck {
    let mut headers = run.client.wire.headers(&ProtocolHeaders::default(), None);
    headers.insert(VERSION, HeaderValue::from_static(MODERN));
    judged(name, sends(run, verb, headers, Bytes::new()).await, &[405], "answer 405: 2026-07-28 knows POST only")
}

fn new_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let id: Uuid = uuid::Builder::from_random_bytes(bytes).into_uuid();
    Some(id.to_string())
}
