//! From what went wrong to the response that says so: the one table of statuses (style 7).

use hyper::{
    Response, StatusCode,
    header::{
        ACCEPT_ENCODING, ALLOW, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
    },
};
use prism_core::{
    mcp::{
        CallFault, LinkRefusal, Revision,
        link::error_body,
        modern::{self, RequestFault},
    },
    wire::{EnvelopeError, depth::MAX_DEPTH},
};

use super::body::ResponseBody;
use prism_bridge::drive::{destination::SessionsFull, hub::UnknownViewError};
use prism_gate::GateError;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a request is refused at the door, before any link sees it.
#[derive(Debug)]
pub(super) enum RequestDenial {
    NoHost,
    ForeignHost(String),
    ForeignOrigin(String),
    /// Of two, it would not be known which one is meant.
    Twice {
        header: &'static str,
    },
    /// `Expect` with anything but `100-continue`.
    Expectation,
    /// Somebody else on this machine, at the Unix socket.
    ForeignUser {
        uid: u32,
    },
    /// Where the right one stands.
    NoToken {
        place: String,
    },
    WrongToken {
        place: String,
    },
    /// A token in the URL.
    SecretInUrl,
    /// It looks for a way to get a token by itself, and there is none.
    NoOauth {
        place: String,
    },
    /// What was shown opens no grant, or none that can be used.
    NotHeld(GateError),
    NoRoute,
    UnknownDestination {
        name: String,
        known: Vec<String>,
    },
    /// What a URL of the hub's asks to see is not there.
    UnknownView(UnknownViewError),
    Method {
        allowed: &'static str,
    },
    Gone {
        name: String,
    },
    ContentType,
    /// Its body is not as its message was written.
    Encoded {
        encoding: String,
    },
    Accept {
        wanted: &'static str,
    },
    NoSessionId,
    BadSessionId,
    UnknownSession,
    BadEventId,
    BadVersion {
        version: String,
        id: Option<String>,
    },
    Unfit {
        unfit: RequestFault,
        id: Option<String>,
    },
    /// A request of the modern era that needs an extension which its client does not declare.
    Lacks {
        capability: &'static str,
        id: Option<String>,
    },
    TooLarge {
        limit: usize,
    },
    /// Arrays and objects in each other, deeper than some server survives.
    TooDeep,
    Unread,
    Slow,
    Envelope(EnvelopeError),
    Invalid {
        code: i32,
        why: String,
        id: Option<String>,
    },
    Full {
        max_sessions: usize,
    },
    Stopping,
    LinkGone,
    /// It came where only a WebSocket is.
    NotAWebSocket,
}

/// Why a request is refused that shows a session which no Prism has given out.
pub(super) const FOREIGN_SESSION: &str = "foreign_session";

// Not `-32001` for anything else: clients know it as "Session not found" and re-initialize.
const SESSION_NOT_FOUND: i32 = -32001;

impl RequestDenial {
    /// A short name for the metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoHost | Self::ForeignHost(_) => "host",
            Self::Twice { .. } | Self::Expectation => "head",
            Self::ForeignOrigin(_) => "origin",
            Self::ForeignUser { .. } => "user",
            Self::NoToken { .. } | Self::WrongToken { .. } | Self::SecretInUrl | Self::NotHeld(_) => "token",
            Self::NoRoute
            | Self::NoOauth { .. }
            | Self::UnknownDestination { .. }
            | Self::UnknownView(_)
            | Self::Gone { .. } => "route",
            Self::Method { .. } => "method",
            Self::ContentType | Self::Encoded { .. } => "content_type",
            Self::Accept { .. } => "accept",
            Self::NoSessionId | Self::UnknownSession => "session",
            Self::BadSessionId => FOREIGN_SESSION,
            Self::BadEventId => "event_id",
            Self::BadVersion { .. } => "version",
            Self::Unfit { .. } | Self::Lacks { .. } => "modern",
            Self::TooLarge { .. } => "too_large",
            Self::TooDeep => "too_deep",
            Self::Unread | Self::Slow => "body",
            Self::Envelope(_) | Self::Invalid { .. } => "message",
            Self::Full { .. } => "full",
            Self::Stopping | Self::LinkGone => "stopping",
            Self::NotAWebSocket => "websocket",
        }
    }

    pub(super) fn response(self) -> Response<ResponseBody> {
        self.answer_to(None)
    }

    /// The response to a request with this id.
    pub(super) fn answer_to(&self, request: Option<&str>) -> Response<ResponseBody> {
        use StatusCode as S;
        let (status, code, message) = match self {
            Self::NoHost => (S::BAD_REQUEST, -32600, "the request has no Host header".to_owned()),
            Self::ForeignHost(host) => {
                let why =
                    format!("Host {host:?} is not this machine (DNS rebinding?); add it to `allowed_hosts` if it is");
                (S::FORBIDDEN, -32600, why)
            }
            Self::ForeignOrigin(origin) => {
                let why = format!("pages of {origin:?} may not use Prism; add it to `allowed_origins` if they should");
                (S::FORBIDDEN, -32600, why)
            }
            Self::Twice { header } => {
                (S::BAD_REQUEST, -32600, format!("the request has more than one {header} header; send one"))
            }
            Self::Expectation => {
                let why = "Prism knows no `Expect` but `100-continue`; leave the header out".to_owned();
                (S::EXPECTATION_FAILED, -32600, why)
            }
            Self::ForeignUser { uid } => {
                let why = format!("this Prism belongs to another user than you (uid {uid}); start one of your own");
                (S::FORBIDDEN, -32600, why)
            }
            Self::NoToken { place } => {
                let why = format!(
                    "no token: send `Authorization: Bearer TOKEN`, with the token in {place} (see: prism doctor)"
                );
                (S::UNAUTHORIZED, -32600, why)
            }
            Self::WrongToken { place } => {
                (S::UNAUTHORIZED, -32600, format!("wrong token: the right one is in {place} (see: prism doctor)"))
            }
            Self::SecretInUrl => {
                let why = "a secret has no place in a URL, where logs and histories keep it; send it as `Authorization: \
                           Bearer …` only, and take it out of the URL";
                (S::BAD_REQUEST, -32600, why.to_owned())
            }
            Self::NoOauth { place } => {
                let why = format!(
                    "Prism has no OAuth: send `Authorization: Bearer TOKEN`, with the token in {place} (see: prism doctor)"
                );
                (S::NOT_FOUND, -32600, why)
            }
            Self::NotHeld(trouble) => {
                let status = S::from_u16(trouble.status).unwrap_or(S::INTERNAL_SERVER_ERROR);
                (status, -32600, trouble.message.clone())
            }
            Self::NoRoute => (S::NOT_FOUND, -32600, "nothing is here; servers are at /NAME/mcp".to_owned()),
            Self::UnknownDestination { name, known } => {
                let known = match known.is_empty() {
                    true => "none is configured; add one with `prism add NAME -- COMMAND`".to_owned(),
                    false => format!("known: {}", known.join(", ")),
                };
                (S::NOT_FOUND, -32600, format!("no server {name:?}; {known}"))
            }
            Self::UnknownView(UnknownViewError { why }) => (S::NOT_FOUND, -32600, why.clone()),
            Self::Method { allowed } => (S::METHOD_NOT_ALLOWED, -32600, format!("allowed here: {allowed}")),
            Self::Gone { name } => {
                let why = format!(
                    "the SSE transport of {name:?} is gone; use Streamable HTTP at /{name}/mcp, or set `legacy_sse = true`"
                );
                (S::GONE, -32600, why)
            }
            Self::ContentType => {
                (S::UNSUPPORTED_MEDIA_TYPE, -32600, "Content-Type must be application/json".to_owned())
            }
            Self::Encoded { encoding } => {
                let why = format!("the body is encoded ({encoding}); send it as it is, without Content-Encoding");
                (S::UNSUPPORTED_MEDIA_TYPE, -32600, why)
            }
            Self::Accept { wanted } => (S::NOT_ACCEPTABLE, -32600, format!("Accept must allow {wanted}")),
            Self::NoSessionId => (S::BAD_REQUEST, -32600, "no Mcp-Session-Id header; initialize first".to_owned()),
            Self::BadSessionId => {
                let why = "Mcp-Session-Id is not a UUID v4, so it is not of Prism's making: another server was at this URL \
                           before, and the client still has its session; initialize again without the header, or restart \
                           the client";
                (S::BAD_REQUEST, -32600, why.to_owned())
            }
            Self::UnknownSession => (
                S::NOT_FOUND,
                SESSION_NOT_FOUND,
                "Session not found: it ended or never was; initialize again".to_owned(),
            ),
            Self::BadEventId => {
                let why = "Last-Event-ID names no event of this session, or one that is forgotten; open a new stream";
                (S::BAD_REQUEST, -32600, why.to_owned())
            }
            Self::BadVersion { version, .. } => {
                let known: Vec<&str> = Revision::ALL.iter().map(|r| r.name()).chain([modern::VERSION]).collect();
                let why = format!("unsupported MCP-Protocol-Version {version:?}; supported: {}", known.join(", "));
                (S::BAD_REQUEST, modern::UNSUPPORTED_VERSION, why)
            }
            Self::Lacks { capability, .. } => {
                (S::BAD_REQUEST, modern::MISSING_CAPABILITY, format!("the client must declare {capability:?}"))
            }
            Self::Unfit { unfit: RequestFault::Meta(why), .. } => (S::BAD_REQUEST, -32602, why.clone()),
            Self::Unfit { unfit: RequestFault::Mismatch(why), .. } => {
                (S::BAD_REQUEST, modern::HEADER_MISMATCH, why.clone())
            }
            Self::Unfit { unfit: RequestFault::Version { requested }, .. } => {
                let why = format!("the revision {requested:?} is not served in this way");
                (S::BAD_REQUEST, modern::UNSUPPORTED_VERSION, why)
            }
            Self::Unfit { unfit: RequestFault::Method, .. } => {
                (S::NOT_FOUND, -32601, "2026-07-28 has no such method".to_owned())
            }
            Self::TooLarge { limit } => {
                let why =
                    format!("the message is over `max_message_bytes` ({limit} bytes); raise the setting or send less");
                (S::PAYLOAD_TOO_LARGE, -32600, why)
            }
            Self::TooDeep => {
                let why = format!("the message is nested more than {MAX_DEPTH} deep, which not every server survives");
                (S::BAD_REQUEST, -32600, why)
            }
            Self::Unread => (S::BAD_REQUEST, -32600, "the body ended early".to_owned()),
            Self::Slow => (S::REQUEST_TIMEOUT, -32600, "the body did not come in time".to_owned()),
            Self::Envelope(error @ (EnvelopeError::NotUtf8 | EnvelopeError::Syntax(_))) => {
                let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
                (S::BAD_REQUEST, -32700, format!("{error}{cause}"))
            }
            Self::Envelope(EnvelopeError::Batch) => {
                let why = "batches (JSON arrays) are only for sessions at 2025-03-26; send one message per request";
                (S::BAD_REQUEST, -32600, why.to_owned())
            }
            Self::Envelope(error) => (S::BAD_REQUEST, -32600, error.to_string()),
            Self::Invalid { code, why, .. } => (S::BAD_REQUEST, *code, why.clone()),
            Self::Full { max_sessions } => {
                let why = format!(
                    "all {max_sessions} sessions of this server are in use (`max_sessions`); close one or raise it"
                );
                (S::SERVICE_UNAVAILABLE, -32603, why)
            }
            Self::Stopping => (S::SERVICE_UNAVAILABLE, -32603, "Prism is stopping".to_owned()),
            Self::NotAWebSocket => (S::UPGRADE_REQUIRED, -32600, "this is a WebSocket; connect with one".to_owned()),
            Self::LinkGone => {
                (S::SERVICE_UNAVAILABLE, -32603, "the server was stopped meanwhile; call again".to_owned())
            }
        };
        let id = match self {
            Self::Invalid { id, .. }
            | Self::BadVersion { id, .. }
            | Self::Unfit { id, .. }
            | Self::Lacks { id, .. } => id.as_deref(),
            _ => request,
        };
        let body = match self {
            Self::BadVersion { version: requested, .. }
            | Self::Unfit { unfit: RequestFault::Version { requested }, .. } => {
                let data = serde_json::json!({"supported": [modern::VERSION], "requested": requested});
                with_data(id, code, &message, &data)
            }
            Self::Lacks { capability, .. } => {
                let mut extensions = serde_json::Map::new();
                extensions.insert((*capability).to_owned(), serde_json::json!({}));
                let data = serde_json::json!({"requiredCapabilities": {"extensions": extensions}});
                with_data(id, code, &message, &data)
            }
            Self::NotHeld(trouble) => with_data(id, code, &message, &serde_json::json!(trouble.told())),
            // In the shape that those who look for it can read, and show.
            Self::NoOauth { .. } => {
                serde_json::json!({"error": "invalid_request", "error_description": message}).to_string()
            }
            // Nothing was done yet, so it is safe to ask again: whoever sees this word may.
            Self::Stopping => error_body(id, code, &message, Some("stopping")),
            _ => error_body(id, code, &message, None),
        };
        let mut response = json(status, body);
        let extra: Option<(HeaderName, &'static str)> = match self {
            // Without `resource_metadata`: it would send clients on to OAuth, which there is none of.
            Self::NoToken { .. } => Some((WWW_AUTHENTICATE, r#"Bearer realm="prism""#)),
            Self::NotHeld(trouble) if trouble.status != 401 => None,
            Self::WrongToken { .. } | Self::NotHeld(_) => {
                Some((WWW_AUTHENTICATE, r#"Bearer realm="prism", error="invalid_token""#))
            }
            Self::Method { allowed } => Some((ALLOW, allowed)),
            Self::Encoded { .. } => Some((ACCEPT_ENCODING, "identity")),
            Self::Full { .. } => Some((RETRY_AFTER, "5")),
            Self::Stopping | Self::LinkGone => Some((RETRY_AFTER, "1")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        // Whoever comes again comes to the next daemon, or not at all.
        if matches!(self, Self::Stopping | Self::ForeignUser { .. }) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// An error with data. What is served is only the modern revision, there: the others are opened by `initialize`, which
/// tells.
fn with_data(id: Option<&str>, code: i32, message: &str, data: &serde_json::Value) -> String {
    let (id, message) = (id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default(), serde_json::Value::from(message));
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":{code},"message":{message},"data":{data}}}}}"#)
}

/// A call that failed after it was taken.
pub(super) fn failed(fault: &CallFault, id: &str) -> Response<ResponseBody> {
    let status = match fault {
        CallFault::Exited
        | CallFault::Ended { .. }
        | CallFault::Unavailable { .. }
        | CallFault::DoesNotStart { .. }
        | CallFault::Stuck
        | CallFault::Stopping
        | CallFault::Replaced => StatusCode::SERVICE_UNAVAILABLE,
        CallFault::Cut | CallFault::Refused { .. } => StatusCode::BAD_GATEWAY,
        CallFault::Timeout { .. } | CallFault::Deserted => StatusCode::GATEWAY_TIMEOUT,
        CallFault::TooLarge { .. } => StatusCode::BAD_GATEWAY,
        CallFault::SessionEnded => StatusCode::NOT_FOUND,
    };
    let body = match fault {
        CallFault::SessionEnded => {
            error_body(Some(id), SESSION_NOT_FOUND, "Session not found: it has ended; initialize again", None)
        }
        _ => fault.body(Some(id)),
    };
    let mut response = json(status, body);
    if matches!(
        fault,
        CallFault::Exited | CallFault::Ended { .. } | CallFault::Stuck | CallFault::Stopping | CallFault::Replaced
    ) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

impl From<SessionsFull> for RequestDenial {
    fn from(SessionsFull { max_sessions }: SessionsFull) -> Self {
        Self::Full { max_sessions }
    }
}

impl From<UnknownViewError> for RequestDenial {
    fn from(unknown: UnknownViewError) -> Self {
        Self::UnknownView(unknown)
    }
}

/// What a link did not take.
pub(super) fn refused(refusal: LinkRefusal, id: Option<&str>) -> Response<ResponseBody> {
    let busy = |status, why| {
        let mut response = json(status, error_body(id, -32603, why, None));
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    };
    match refusal {
        LinkRefusal::UnknownSession => RequestDenial::UnknownSession.response(),
        LinkRefusal::UnknownEvent => RequestDenial::BadEventId.response(),
        LinkRefusal::Busy => busy(StatusCode::TOO_MANY_REQUESTS, "too many calls are waiting; let some finish first"),
        LinkRefusal::Stuck => {
            let why = "the MCP server does not read its input; restart it, or look at its stderr in Prism's log";
            busy(StatusCode::SERVICE_UNAVAILABLE, why)
        }
        LinkRefusal::Closed => RequestDenial::Stopping.response(),
    }
}

pub(super) fn json(status: StatusCode, body: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}
