//! The gate over HTTP (A-01 … A-03): agents ask with the client's token, a person decides with the management secret,
//! holders come with their own. None of them is taken from a URL.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{AUTHORIZATION, HOST, HeaderValue, ORIGIN, USER_AGENT},
};
use prism_api::{
    gate::{
        AccessRequest, ApproveRequest, AskerView, AuditPage, ClaimRequest, ConfirmRequest, ConfirmationsPage,
        DecisionTaken, DenyRequest, GrantIssued, GrantsPage, NarrowRequest, PluginsPage, RequestsPage, RevokeRequest,
    },
    refusal::RefusedAnswer,
};
use prism_gate::{Gate, GateError, IssuedGrant, read_id};
use prism_store::audit::AuditQuery;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{self, RequestDenial},
    guard, onlooker,
    request::read,
    route::Answering,
    socket,
};

/// The largest body.
const MAX_BODY: usize = 256 << 10;
/// Audit lines that are shown at once.
const MAX_LINES: usize = 1000;

/// By what a person or an agent came, as the record says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessChannel {
    CommandLine,
    Http,
}

/// What can be asked of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateRoute {
    Request,
    Claim,
    Requests,
    Approve,
    Deny,
    Revoke,
    Narrow,
    Sessions,
    Confirmations,
    Confirm,
    Events,
    EventSocket,
    Logs,
    Plugins,
    Session(Uuid),
}

/// By what somebody is let in.
enum CredentialKind {
    /// The client's token: who has it may ask.
    Client,
    Management,
    /// A grant's own token.
    Grant,
}

impl GateRoute {
    /// What is below `/mcp/`.
    pub(super) fn named(below: &str, more: Option<&str>) -> Option<Self> {
        Some(match (below, more) {
            ("request_access", None) => Self::Request,
            ("claim", None) => Self::Claim,
            ("requests", None) => Self::Requests,
            ("approve", None) => Self::Approve,
            ("deny", None) => Self::Deny,
            ("revoke", None) => Self::Revoke,
            ("narrow", None) => Self::Narrow,
            ("sessions", None) => Self::Sessions,
            ("confirmations", None) => Self::Confirmations,
            ("confirm", None) => Self::Confirm,
            ("events", None) => Self::Events,
            ("events", Some("ws")) => Self::EventSocket,
            ("logs", None) => Self::Logs,
            ("plugins", None) => Self::Plugins,
            ("session", Some(id)) => Self::Session(Uuid::try_parse(id).ok()?),
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Request => "request_access",
            Self::Claim => "claim",
            Self::Requests => "requests",
            Self::Approve => "approve",
            Self::Deny => "deny",
            Self::Revoke => "revoke",
            Self::Narrow => "narrow",
            Self::Sessions => "sessions",
            Self::Confirmations => "confirmations",
            Self::Confirm => "confirm",
            Self::Events | Self::EventSocket => "events",
            Self::Logs => "logs",
            Self::Plugins => "plugins",
            Self::Session(_) => "session",
        }
    }

    fn is_read(self) -> bool {
        use GateRoute::*;
        matches!(self, Requests | Sessions | Confirmations | Events | EventSocket | Logs | Plugins | Session(_))
    }
}

// === impl AccessChannel ===

impl AccessChannel {
    /// Whoever has the management secret may call itself what it likes: this is for the reader of a record, and no proof. An
    /// agent has the clients' token, and what it calls itself is not passed on to the person who decides.
    fn of(gate: &Gate, headers: &HeaderMap) -> Self {
        let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let says_so = agent.is_some_and(|agent| agent.starts_with("prism-cli/"));
        if says_so && is_management(gate, headers) { Self::CommandLine } else { Self::Http }
    }

    /// Returns what stands in audit lines and tables: `person (command line)`.
    fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "command line",
            Self::Http => "http",
        }
    }

    /// Returns the way by which a request was made, as its view has it.
    fn via(self) -> &'static str {
        match self {
            Self::CommandLine => "cli",
            Self::Http => "http",
        }
    }
}

/// Answers what came to the gate. The head is read here, before anything is waited for.
pub(super) fn answer(
    server: &Arc<DaemonSnapshot>,
    way: GateRoute,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let gate = server.gate.clone().ok_or(RequestDenial::NoRoute)?;
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    let method = if way.is_read() { Method::GET } else { Method::POST };
    if *request.method() != method {
        return Err(RequestDenial::Method { allowed: if way.is_read() { "GET" } else { "POST" } });
    }
    let told = |trouble: GateError| -> Result<Answering, RequestDenial> {
        Ok(Box::pin(std::future::ready(refused(&trouble))))
    };
    if let Err(trouble) = check_url(&gate, way.name(), request.uri().query()) {
        return told(trouble);
    }
    let key = match way {
        GateRoute::Session(id) => return socket::session(server, gate, id, request),
        GateRoute::Request | GateRoute::Claim => CredentialKind::Client,
        GateRoute::Narrow => CredentialKind::Grant,
        // A holder may give up what is its own.
        GateRoute::Revoke if !is_management(&gate, request.headers()) && bearer(request.headers()).is_some() => {
            CredentialKind::Grant
        }
        _ => CredentialKind::Management,
    };
    if let Err(trouble) = check_key(server, &gate, &key, way.name(), request.headers()) {
        return told(trouble);
    }
    match way {
        GateRoute::EventSocket => return socket::events(server, &gate, request),
        GateRoute::Events => return Ok(Box::pin(async move { onlooker::stream(gate.events.listen()) })),
        _ => {}
    }
    let token = bearer(request.headers()).map(<[u8]>::to_vec);
    let caller = AccessChannel::of(&gate, request.headers());
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = request.into_body();
    Ok(Box::pin(async move {
        let body = match read(body, MAX_BODY).await {
            Ok(body) => body,
            Err(denial) => return denial.response(),
        };
        // In a task of its own: a client that leaves must not leave half a thing done.
        let work = tokio::spawn(async move { done(&gate, (way, caller), &key, token, &query, &body).await });
        let bug = |_| Err(GateError::new("failed", 500, "Prism has a bug there; its log has more"));
        match work.await.unwrap_or_else(bug) {
            Ok(result) => fault::json(StatusCode::OK, result.to_string()),
            Err(trouble) => refused(&trouble),
        }
    }))
}

async fn done(
    gate: &Gate,
    (way, caller): (GateRoute, AccessChannel),
    key: &CredentialKind,
    token: Option<Vec<u8>>,
    query: &str,
    body: &Bytes,
) -> Result<Value, GateError> {
    let token = token.unwrap_or_default();
    Ok(match way {
        GateRoute::Request => {
            let asker = AskerView { via: caller.via().to_owned(), ..AskerView::default() };
            json!(gate.request(parsed::<AccessRequest>(body)?, asker).await?)
        }
        GateRoute::Claim => {
            let ClaimRequest { request_id, claim, wait_seconds } = parsed(body)?;
            json!(gate.claim(read_id(&request_id)?, &claim, Duration::from_secs(wait_seconds)).await?)
        }
        GateRoute::Approve => json!(issued(&gate.approve(parsed::<ApproveRequest>(body)?, caller.name(), true).await?)),
        GateRoute::Deny => {
            let DenyRequest { request_id, reason } = parsed(body)?;
            json!(outcome(gate.deny(read_id(&request_id)?, reason, caller.name()).await?))
        }
        GateRoute::Revoke => {
            let RevokeRequest { session_id } = parsed(body)?;
            let session_id = read_id(&session_id)?;
            let taken = match key {
                CredentialKind::Grant => gate.give_up(&gate.hold(None, &token)?, session_id).await?,
                CredentialKind::Client | CredentialKind::Management => gate.revoke(session_id, caller.name()).await?,
            };
            json!(taken)
        }
        GateRoute::Narrow => {
            json!(issued(&gate.narrow(&gate.hold(None, &token)?, parsed::<NarrowRequest>(body)?).await?))
        }
        GateRoute::Confirm => json!(outcome(gate.confirm(parsed::<ConfirmRequest>(body)?, caller.name()).await?)),
        GateRoute::Requests => {
            let status = value(query, "status").map(str::to_ascii_uppercase);
            let mut requests = gate.requests(flag(query, "open"))?;
            requests.retain(|view| status.as_deref().is_none_or(|status| view.status.name() == status));
            json!(RequestsPage { requests })
        }
        GateRoute::Sessions => json!(GrantsPage { sessions: gate.grants(!flag(query, "all"))? }),
        GateRoute::Confirmations => {
            json!(ConfirmationsPage { confirmations: gate.confirmations(!flag(query, "all"))? })
        }
        GateRoute::Logs => json!(logs(gate, query).await?),
        GateRoute::Plugins => json!(PluginsPage { plugins: gate.router().plugins() }),
        GateRoute::Events | GateRoute::EventSocket | GateRoute::Session(_) => json!({}),
    })
}

/// What is told of something that is done, whether or not it is written down.
pub(super) fn outcome(unwritten: Option<String>) -> DecisionTaken {
    DecisionTaken { unwritten }
}

/// The log, the newest line first.
async fn logs(gate: &Gate, query: &str) -> Result<AuditPage, GateError> {
    let text = |name: &str| value(query, name).filter(|text| !text.is_empty()).map(unescaped);
    let number = |name: &str| value(query, name).and_then(|text| text.parse::<u64>().ok());
    let limit = number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100).min(MAX_LINES);
    let query = AuditQuery {
        actor: text("actor"),
        action: text("action"),
        session: text("session"),
        text: text("q"),
        before_seq: number("before"),
        limit,
        ..AuditQuery::default()
    };
    Ok(AuditPage { logs: gate.lines(query).await? })
}

pub(super) fn parsed<T: DeserializeOwned>(body: &Bytes) -> Result<T, GateError> {
    serde_json::from_slice(body).map_err(|error| GateError::bad(format!("the body is not what this takes: {error}")))
}

/// The answer to an approval: its time is in seconds since 1970.
fn issued(given: &IssuedGrant) -> GrantIssued {
    GrantIssued {
        session_id: given.id.to_string(),
        session_token: given.token.as_ref().map(|token| token.expose().to_owned()),
        expires_at: given.expires_at.0 / 1_000_000,
    }
}

// --- Who may come in ---

/// Secrets in a URL end in logs, histories and referrers.
pub(super) fn check_url(gate: &Gate, what: &'static str, query: Option<&str>) -> Result<(), GateError> {
    if guard::names_secret(query) {
        gate.metrics.failed_auth("url");
        gate.record_refusal("?", what, &json!({}), "a secret in a URL");
        return Err(GateError::bad("a secret has no place in a URL; send it as `Authorization: Bearer …`"));
    }
    Ok(())
}

/// Puts on record whom the first door has turned away already.
pub(super) fn turned_away(server: &DaemonSnapshot, way: GateRoute, denial: &RequestDenial) {
    if let Some(gate) = &server.gate {
        gate.metrics.failed_auth("origin");
        gate.record_refusal("?", way.name(), &json!({}), denial.reason());
    }
}

/// The answer to whoever asks for what needs the management secret and does not show it, or comes from another page.
pub(super) fn not_management(
    server: &DaemonSnapshot,
    gate: &Gate,
    what: &'static str,
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    check_key(server, gate, &CredentialKind::Management, what, headers).err().map(|trouble| refused(&trouble))
}

fn check_key(
    server: &DaemonSnapshot,
    gate: &Gate,
    key: &CredentialKind,
    what: &'static str,
    headers: &HeaderMap,
) -> Result<(), GateError> {
    let turned_away = |trouble: GateError| {
        gate.metrics.failed_auth(what);
        gate.record_refusal("?", what, &json!({}), trouble.code);
        trouble
    };
    if !is_same_origin(headers) {
        return Err(turned_away(GateError::forbidden("a page of another origin has no business here")));
    }
    let is_let_in = match key {
        CredentialKind::Client => guard::check_token(server, headers).is_ok() || is_management(gate, headers),
        CredentialKind::Management => is_management(gate, headers),
        CredentialKind::Grant => bearer(headers).is_some(),
    };
    if is_let_in {
        return Ok(());
    }
    Err(turned_away(match key {
        CredentialKind::Management => GateError::unauthorized(
            "this needs the management secret, which agents do not have: `Authorization: Bearer` and what is in \
             management-token in Prism's folder (or MCP_TOKEN)",
        ),
        CredentialKind::Client | CredentialKind::Grant => {
            GateError::unauthorized("this needs a token: `Authorization: Bearer …`")
        }
    }))
}

/// Whether a request comes from no page, or from one of our own.
pub(super) fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(|origin| origin == host)
}

/// Whether a request shows the management secret: as it is, or as a bearer.
pub(super) fn is_management(gate: &Gate, headers: &HeaderMap) -> bool {
    let shown = headers.get(AUTHORIZATION).map(|value| value.as_bytes().trim_ascii());
    shown.is_some_and(|shown| gate.is_management(shown))
        || bearer(headers).is_some_and(|shown| gate.is_management(shown))
}

pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(AUTHORIZATION).and_then(guard::bearer)
}

// --- Answers ---

pub(super) fn refused(trouble: &GateError) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = fault::json(status, json!(RefusedAnswer { error: trouble.told() }).to_string());
    if let Some(ms) = trouble.retry_after_ms {
        response.headers_mut().insert("retry-after", HeaderValue::from(ms.div_ceil(1000)));
    }
    response
}

pub(super) fn value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}

/// A value of a query as it was meant.
pub(super) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = || u8::from_str_radix(std::str::from_utf8(after.get(..2)?).ok()?, 16).ok();
        match (byte, code()) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = &after[2..];
                continue;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn flag(query: &str, name: &str) -> bool {
    query.split('&').any(|pair| pair == name) || value(query, name).is_some_and(|value| matches!(value, "1" | "true"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_as_it_was_meant() {
        assert_eq!(unescaped("a+b%20c%C3%A9%zz%"), "a b cé%zz%");
    }

    #[test]
    fn only_our_own_pages_count_as_ours() {
        let headers = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_static(origin));
            }
            headers
        };
        assert!(is_same_origin(&headers("127.0.0.1:7420", None)));
        assert!(is_same_origin(&headers("127.0.0.1:7420", Some("http://127.0.0.1:7420"))));
        for foreign in [
            "http://127.0.0.1:3000",
            "http://localhost:7420",
            "https://127.0.0.1:7420",
            "null",
            "http://127.0.0.1:7420.evil",
        ] {
            assert!(!is_same_origin(&headers("127.0.0.1:7420", Some(foreign))), "{foreign}");
        }
    }
}
