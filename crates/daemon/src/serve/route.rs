//! From a path and a verb to what answers them.

use std::{future::ready, pin::Pin, sync::Arc};

use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, HeaderMap, HeaderValue,
        ORIGIN, VARY,
    },
};

use super::{
    DaemonSnapshot, access,
    body::ResponseBody,
    console, editor,
    fault::RequestDenial,
    guard, mesh, plain, plugin,
    post::{self, PostHead},
    probes,
    quirks::IntendedStatus,
    status, streams,
};
use crate::own_server;
use prism_bridge::{
    access::TrackedRequest,
    drive::{Destination, ForwardedHeaders, Hub, hub::HubView},
};
use prism_config::SessionRequirement;
use prism_gate::Gate;
use prism_gate::grant_server;
use prism_mesh::MeshCaller;

/// Where a path leads.
enum HttpRoute {
    Mcp(Arc<Destination>),
    /// All of them (B-27).
    Hub(Arc<Hub>),
    /// The stream, and the place to post to, of 2024-11-05.
    Sse(Arc<Destination>),
    Message(Arc<Destination>),
    Healthz,
    Readyz,
    Metrics,
    Status,
    /// The mesh, and what is named below it.
    Mesh(Option<String>),
    /// The console, whose pages have sessions of their own, and the link that opens one.
    Console(console::ConsoleRoute),
    ConsoleLink,
    /// The gate, which has keys of its own.
    Gate(access::GateRoute),
    /// The editor, which grants open.
    Editor,
    /// An editor.
    Plugin(String),
    /// Where clients look for OAuth when they are asked for a token.
    Oauth,
}

/// An answer on its way. Boxed, so that an idle connection holds a pointer and not the room for the largest request.
pub(super) type Answering = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;

/// Finds who answers a request. All that the head says is read here, before anything is waited for: while it is held,
/// so is the connection's read buffer that it lies in.
pub(super) fn route(server: &Arc<DaemonSnapshot>, request: Request<Incoming>) -> Answering {
    let origin = request.headers().get(ORIGIN).cloned();
    let answering = begin(server, request).unwrap_or_else(|denial| {
        server.access.metrics.refused(denial.reason());
        at_once(denial.response())
    });
    match origin {
        None => answering,
        Some(origin) => Box::pin(async move { readable_for(origin, answering.await) }),
    }
}

fn begin(server: &Arc<DaemonSnapshot>, request: Request<Incoming>) -> Result<Answering, RequestDenial> {
    let headers = request.headers();
    guard::check_head(headers)?;
    let route = find(server, request.uri().path());
    if let Err(denial) = guard::check_origin(server, headers, request.uri()) {
        if let Ok(HttpRoute::Gate(way)) = &route {
            access::turned_away(server, *way, &denial);
        }
        return Err(denial);
    }
    if request.method() == Method::OPTIONS && headers.contains_key(ORIGIN) {
        return Ok(at_once(preflight(headers)));
    }
    match route {
        // Alive is alive: a probe needs no secret, and learns none.
        Ok(HttpRoute::Healthz) => return get_only(&request).map(|()| at_once(probes::healthz())),
        Ok(HttpRoute::Readyz) => {
            get_only(&request)?;
            // Names are for those who could list them anyway.
            let trusted = guard::check_token(server, headers).is_ok();
            let server = server.clone();
            return Ok(Box::pin(async move {
                let readiness = probes::readiness(&server).await;
                if trusted { readiness.in_detail() } else { readiness.in_short() }
            }));
        }
        Ok(HttpRoute::Console(way)) => return console::answer(server, way, request),
        Ok(HttpRoute::ConsoleLink) => return console_link(server, &request),
        Ok(HttpRoute::Gate(way)) => return access::answer(server, way, request),
        Ok(HttpRoute::Editor) => return editor::answer(server, request),
        Ok(HttpRoute::Plugin(name)) => return plugin::answer(server, name, request),
        // Whoever has the person's secret needs no other here.
        Ok(HttpRoute::Mesh(_)) if is_person(server, headers) => {}
        // To be asked for the token here, too, would send them round in circles.
        Ok(HttpRoute::Oauth) => return Err(RequestDenial::NoOauth { place: server.about().token_place().to_owned() }),
        _ => guard::check_token(server, headers)?,
    }
    if guard::names_secret(request.uri().query()) {
        return Err(RequestDenial::SecretInUrl);
    }
    let (destination, view) = match route? {
        HttpRoute::Mcp(destination) => (destination, None),
        HttpRoute::Hub(hub) => (hub.home().clone(), Some(hub.view(request.uri().query())?)),
        HttpRoute::Sse(destination) | HttpRoute::Message(destination) if !destination.config().legacy_sse => {
            return Err(RequestDenial::Gone { name: destination.config().name.clone() });
        }
        HttpRoute::Sse(destination) => return plain_stream(server, destination, &request),
        HttpRoute::Message(destination) => return plain_message(server, destination, request),
        HttpRoute::Metrics => {
            get_only(&request)?;
            let server = server.clone();
            return Ok(Box::pin(async move { probes::metrics(&server).await }));
        }
        HttpRoute::Status => {
            get_only(&request)?;
            let server = server.clone();
            return Ok(Box::pin(async move { status::respond(&server).await }));
        }
        HttpRoute::Mesh(below) => {
            let caller = if is_person(server, headers) { MeshCaller::Person } else { MeshCaller::Script };
            return mesh::answer(server, below.as_deref(), caller, request);
        }
        HttpRoute::Healthz
        | HttpRoute::Readyz
        | HttpRoute::Gate(_)
        | HttpRoute::Editor
        | HttpRoute::Plugin(_)
        | HttpRoute::Oauth
        | HttpRoute::Console(_)
        | HttpRoute::ConsoleLink => {
            return Err(RequestDenial::NoRoute);
        }
    };
    mcp(server, destination, view, request)
}

/// Answers a client that was let in to a destination, or to what it sees of the hub.
pub(super) fn mcp(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    view: Option<Arc<HubView>>,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    let headers = request.headers();
    let stateless = destination.config().sessions == SessionRequirement::Never;
    let (verb, allowed) = match (request.method(), stateless) {
        (&Method::POST, _) => ("POST", true),
        (&Method::GET, stateless) => ("GET", !stateless),
        (&Method::DELETE, stateless) => ("DELETE", !stateless),
        _ => ("", false),
    };
    if !allowed {
        return Err(RequestDenial::Method { allowed: if stateless { "POST" } else { "POST, GET, DELETE" } });
    }
    let of_hub = view.is_some();
    let asked = (verb == "POST").then(|| PostHead::read(server, &destination, view, headers, request.uri()));
    // Who hears it in a body hears it under the id that its own body has.
    if server.is_stopping() && !matches!(&asked, Some(Ok(asked)) if asked.hears_in_body()) {
        return Err(RequestDenial::Stopping);
    }
    let mut record = TrackedRequest::start(&server.access, verb);
    record.destination(destination.metrics());
    if asked.is_some() {
        let members = server.config.destinations.values().filter(|_| of_hub).filter_map(|member| member.http.as_ref());
        record.carries(ForwardedHeaders::gather(headers, destination.config().http.iter().chain(members)));
    }
    let server = server.clone();
    Ok(match asked {
        Some(Ok(asked)) => {
            let body = request.into_body();
            Box::pin(async move {
                let outcome = post::post(&server, destination, asked, body, &mut record).await;
                conclude(&server, outcome, record)
            })
        }
        Some(Err(denial)) => at_once(conclude(&server, Err(denial), record)),
        None if verb == "GET" => {
            let listener = streams::StreamRequest::read(&server, &destination, of_hub, headers, request.uri());
            Box::pin(async move {
                let outcome = match listener {
                    Ok(listener) => listener.open(&server).await,
                    Err(denial) => Err(denial),
                };
                conclude(&server, outcome, record)
            })
        }
        None => {
            let session = streams::existing_session(&server, &destination, of_hub, headers);
            Box::pin(async move {
                let outcome = match session {
                    Ok(session) => streams::delete(&server, &session).await,
                    Err(denial) => Err(denial),
                };
                conclude(&server, outcome, record)
            })
        }
    })
}

fn plain_stream(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    request: &Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    get_only(request)?;
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    let mut record = TrackedRequest::start(&server.access, "GET");
    record.destination(destination.metrics());
    let outcome = plain::open(server, destination, request.headers(), request.uri());
    Ok(at_once(conclude(server, outcome, record)))
}

fn plain_message(
    server: &Arc<DaemonSnapshot>,
    destination: Arc<Destination>,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    if request.method() != Method::POST {
        return Err(RequestDenial::Method { allowed: "POST" });
    }
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    let mut record = TrackedRequest::start(&server.access, "POST");
    record.destination(destination.metrics());
    record.carries(ForwardedHeaders::gather(request.headers(), destination.config().http.iter()));
    let posted = plain::LegacySsePost::read(server, &destination, request.headers(), request.uri());
    let server = server.clone();
    Ok(match posted {
        Ok(posted) => {
            let body = request.into_body();
            Box::pin(async move {
                let outcome = posted.take(&server, body, &mut record).await;
                conclude(&server, outcome, record)
            })
        }
        Err(denial) => at_once(conclude(&server, Err(denial), record)),
    })
}

/// Completes the record of a request with what came of it. A stream is over, and so recorded, when it ends.
fn conclude(
    server: &DaemonSnapshot,
    outcome: Result<Response<ResponseBody>, RequestDenial>,
    mut record: TrackedRequest,
) -> Response<ResponseBody> {
    let mut response = outcome.unwrap_or_else(|denial| {
        server.access.metrics.refused(denial.reason());
        denial.response()
    });
    let status = response.extensions().get::<IntendedStatus>().map_or(response.status(), |meant| meant.0);
    record.status(status.as_u16());
    if let Some(back) = record.carried().as_ref().and_then(|carried| carried.back()) {
        response.headers_mut().extend(back.clone());
    }
    match response.body_mut() {
        ResponseBody::Stream(stream) => stream.record_at_end(record),
        ResponseBody::Plain(stream) => stream.record = Some(record),
        ResponseBody::Merged(merged) => merged.record_at_end(record),
        ResponseBody::Empty | ResponseBody::Whole(_) | ResponseBody::Fed(_) => {}
    }
    response
}

fn at_once(response: Response<ResponseBody>) -> Answering {
    Box::pin(ready(response))
}

/// Lets a page read the answer, if it was let in; the foreign ones were not.
fn readable_for(origin: HeaderValue, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if response.status() != StatusCode::FORBIDDEN {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"));
        headers.insert(VARY, HeaderValue::from_static("Origin"));
    }
    response
}

fn find(server: &DaemonSnapshot, path: &str) -> Result<HttpRoute, RequestDenial> {
    if path.split('/').any(|part| part == ".well-known") || matches!(path, "/register" | "/authorize" | "/token") {
        return Ok(HttpRoute::Oauth);
    }
    // Clients that join paths put a slash there.
    let path = path.strip_suffix('/').filter(|path| path.ends_with("/mcp") || path.ends_with("/sse")).unwrap_or(path);
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    let (first, second, more) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let by_name = |name: &str| {
        server.destinations.get(name).cloned().ok_or_else(|| RequestDenial::UnknownDestination {
            name: name.to_owned(),
            known: server.configured().map(|known| known.config().name.clone()).collect(),
        })
    };
    match (first, second, more) {
        ("mcp", None, None) => match &server.root {
            Some(root) => Ok(HttpRoute::Mcp(root.clone())),
            None => Ok(HttpRoute::Hub(server.hub.clone())),
        },
        ("mcp", Some(below), more) if let Some(way) = access::GateRoute::named(below, more) => {
            parts.next().map_or(Ok(HttpRoute::Gate(way)), |_| Err(RequestDenial::NoRoute))
        }
        (grant_server::NAME, Some("mcp"), None) => Ok(HttpRoute::Editor),
        (name, Some("mcp"), None) => by_name(name).map(HttpRoute::Mcp),
        ("sse" | "message", None, None) => {
            let root = server.root.clone().ok_or(RequestDenial::NoRoute)?;
            Ok(if first == "sse" { HttpRoute::Sse(root) } else { HttpRoute::Message(root) })
        }
        (name, Some("sse"), None) => by_name(name).map(HttpRoute::Sse),
        (name, Some("message"), None) => by_name(name).map(HttpRoute::Message),
        ("plugin", Some(name), None) => Ok(HttpRoute::Plugin(name.to_owned())),
        ("healthz", None, None) => Ok(HttpRoute::Healthz),
        ("readyz", None, None) => Ok(HttpRoute::Readyz),
        ("metrics", None, None) => Ok(HttpRoute::Metrics),
        ("status", None, None) => Ok(HttpRoute::Status),
        (own_server::NAME, Some("mesh"), below) if parts.next().is_none() => {
            Ok(HttpRoute::Mesh(below.map(str::to_owned)))
        }
        (own_server::NAME, Some("console"), Some("link")) if parts.next().is_none() => Ok(HttpRoute::ConsoleLink),
        ("console", below, more) if parts.next().is_none() => {
            console::ConsoleRoute::named(below, more).map(HttpRoute::Console).ok_or(RequestDenial::NoRoute)
        }
        _ => Err(RequestDenial::NoRoute),
    }
}

/// Whether a request shows the management secret, and is of no other page.
fn is_person(server: &DaemonSnapshot, headers: &HeaderMap) -> bool {
    let shows = |gate: &Arc<Gate>| access::is_same_origin(headers) && access::is_management(gate, headers);
    server.gate.as_ref().is_some_and(shows)
}

/// A link is for whoever has the management secret.
fn console_link(server: &Arc<DaemonSnapshot>, request: &Request<Incoming>) -> Result<Answering, RequestDenial> {
    if request.method() != Method::POST {
        return Err(RequestDenial::Method { allowed: "POST" });
    }
    let gate = server.gate.as_ref().ok_or(RequestDenial::NoRoute)?;
    let refused = access::not_management(server, gate, "console_link", request.headers());
    Ok(at_once(refused.unwrap_or_else(|| console::link(server))))
}

fn get_only(request: &Request<Incoming>) -> Result<(), RequestDenial> {
    let fits = matches!(*request.method(), Method::GET | Method::HEAD);
    fits.then_some(()).ok_or(RequestDenial::Method { allowed: "GET, HEAD" })
}

/// A browser asks first. Header names cannot be listed beforehand: `Mcp-Param-*` has no end.
fn preflight(asked: &HeaderMap) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
    if let Some(names) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
