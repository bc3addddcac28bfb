//! The console over HTTP: `/console` and what is below it, for a browser with a session, and the link that opens one,
//! for whoever has the management secret. What the pages look like is in `crate::console`.
//!
//! There is no cookie. Cookies know no ports: a browser sends them to every server of 127.0.0.1, and whoever runs one there
//! can show them here, with any `Origin` it likes (H3). So what is served to everybody is a shell with nothing in it. All
//! that can be read or done needs a secret in a header, which the script of our own origin keeps for it: storage knows
//! ports, and what is in it goes to nobody by itself.

mod acts;
mod pages;
mod watch;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN,
        REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use maud::Markup;
use prism_api::gate::ConsoleLink;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    DaemonSnapshot,
    body::ResponseBody,
    fault::{self, RequestDenial},
    request::{is_json, read},
    route::Answering,
};
use crate::console::{
    assets::Asset,
    door::ConsoleSession,
    login,
    page::{self, ConsolePage},
};

/// Who decides, as the audit has it.
const BY: &str = "console";
/// The largest body that a page sends.
const MAX_BODY: usize = 64 << 10;
/// What our own pages show with every request, reads included, and no browser sends by itself.
const SECRET: HeaderName = HeaderName::from_static("x-prism-console");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Nothing but what comes from here, and nothing that is written into a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What is asked for, below `/console`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConsoleRoute {
    /// `/console` itself.
    Front,
    Login,
    Logout,
    Events,
    Page(ConsolePage),
    /// One request's dialog.
    Request(String),
    Asset(String),
    Act(acts::ConsoleAction),
}

impl ConsoleRoute {
    /// Whether there is something to see without a session: what everybody is shown, and says nothing.
    fn has_shell(&self, query: &str) -> bool {
        match self {
            Self::Front | Self::Login | Self::Asset(_) => true,
            Self::Page(_) => !query.split('&').any(|pair| pair == "part"),
            Self::Logout | Self::Events | Self::Request(_) | Self::Act(_) => false,
        }
    }

    pub(super) fn named(below: Option<&str>, more: Option<&str>) -> Option<Self> {
        Some(match (below, more) {
            (None | Some(""), None) => Self::Front,
            (Some("login"), None) => Self::Login,
            (Some("logout"), None) => Self::Logout,
            (Some("events"), None) => Self::Events,
            (Some("assets"), Some(name)) => Self::Asset(name.to_owned()),
            (Some("act"), Some(name)) => Self::Act(acts::ConsoleAction::named(name)?),
            (Some("requests"), Some(id)) => Self::Request(id.to_owned()),
            (Some(name), None) => Self::Page(ConsolePage::named(name)?),
            _ => return None,
        })
    }
}

/// Answers what came to the console. The head is read here, before anything is waited for.
pub(super) fn answer(
    server: &Arc<DaemonSnapshot>,
    way: ConsoleRoute,
    request: Request<Incoming>,
) -> Result<Answering, RequestDenial> {
    if server.is_stopping() {
        return Err(RequestDenial::Stopping);
    }
    let (method, headers) = (request.method().clone(), request.headers());
    let is_change = matches!(way, ConsoleRoute::Act(_) | ConsoleRoute::Logout)
        || (way == ConsoleRoute::Login && method == Method::POST);
    let is_shell = !is_change && way.has_shell(request.uri().query().unwrap_or_default());
    match (is_change, &method) {
        (true, &Method::POST) | (false, &Method::GET | &Method::HEAD) => {}
        _ => return Err(RequestDenial::Method { allowed: if is_change { "POST" } else { "GET, HEAD" } }),
    }
    if !comes_from_here(headers, is_change, is_shell) {
        turned_away(server, "origin");
        return Ok(now(told(StatusCode::FORBIDDEN, "forbidden", "only the console's own pages may do that")));
    }
    match way {
        ConsoleRoute::Asset(name) => return Ok(now(asset(&name))),
        ConsoleRoute::Front => return Ok(now(moved("/console/requests"))),
        ConsoleRoute::Login if is_shell => return Ok(now(html(StatusCode::OK, login::login()))),
        ConsoleRoute::Page(page) if is_shell => return Ok(now(html(StatusCode::OK, page::shell(page)))),
        ConsoleRoute::Login => return enter(server, request),
        _ => {}
    }
    match session(server, headers, Instant::now()) {
        Some(session) => Ok(inside(server, (way, session), request)),
        None => {
            if is_change {
                turned_away(server, "no session");
            }
            let why = "your session is over; type `prism console` in a terminal";
            Ok(now(told(StatusCode::UNAUTHORIZED, "unauthorized", why)))
        }
    }
}

/// The session that a request shows.
pub(super) fn session(server: &DaemonSnapshot, headers: &HeaderMap, now: Instant) -> Option<ConsoleSession> {
    server.console().door.session(headers.get(SECRET)?.as_bytes(), now)
}

/// Answers somebody who has a session.
fn inside(
    server: &Arc<DaemonSnapshot>,
    (way, session): (ConsoleRoute, ConsoleSession),
    request: Request<Incoming>,
) -> Answering {
    let server = server.clone();
    match way {
        ConsoleRoute::Logout => {
            server.console().door.leave(&session);
            now(guarded(fault::json(StatusCode::OK, "{}".to_owned())))
        }
        ConsoleRoute::Events => now(guarded(watch::watch(&server, session))),
        ConsoleRoute::Page(page) => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            Box::pin(async move { pages::part(&server, page, &query).await })
        }
        ConsoleRoute::Request(id) => Box::pin(async move { pages::request(&server, &id) }),
        ConsoleRoute::Act(act) => {
            let body = request.into_body();
            Box::pin(async move {
                match read(body, MAX_BODY).await {
                    Ok(body) => guarded(acts::run(server, act, body).await),
                    Err(denial) => denial.response(),
                }
            })
        }
        ConsoleRoute::Front | ConsoleRoute::Login | ConsoleRoute::Asset(_) => now(moved("/console/requests")),
    }
}

/// Puts on record that another page has tried something here.
fn turned_away(server: &DaemonSnapshot, why: &'static str) {
    if let Some(gate) = &server.gate {
        gate.metrics.failed_auth("console");
        gate.record_refusal("?", "console", &json!({}), why);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LoginCode {
    code: String,
}

/// Opens a session with the code of a link.
fn enter(server: &Arc<DaemonSnapshot>, request: Request<Incoming>) -> Result<Answering, RequestDenial> {
    if !is_json(request.headers()) {
        return Err(RequestDenial::ContentType);
    }
    let (server, body) = (server.clone(), request.into_body());
    Ok(Box::pin(async move {
        let body = match read(body, MAX_BODY).await {
            Ok(body) => body,
            Err(denial) => return denial.response(),
        };
        let code = serde_json::from_slice::<LoginCode>(&body).map(|code| code.code).unwrap_or_default();
        let entered = server.console().door.enter(code.as_bytes(), Instant::now());
        acts::record_login(server.gate.as_deref(), matches!(entered, Ok(Some(_))));
        match entered {
            // In the answer's body, which pages of other origins cannot read, and nowhere else.
            Ok(Some(session)) => {
                let entered = json!({"to": "/console/requests", "secret": session.secret.expose()});
                guarded(fault::json(StatusCode::OK, entered.to_string()))
            }
            Ok(None) => {
                let why = "this link was used already, or is more than a minute old; `prism console` gives another";
                told(StatusCode::FORBIDDEN, "forbidden", why)
            }
            Err(error) => told(StatusCode::SERVICE_UNAVAILABLE, "failed", &error.to_string()),
        }
    }))
}

/// `POST /prism/console/link`: makes a link. The caller has seen to the management secret.
pub(super) fn link(server: &DaemonSnapshot) -> Response<ResponseBody> {
    match server.console().door.link(Instant::now()) {
        // Behind the `#`, so that it is in no log, and no proxy sees it.
        Ok(code) => {
            let url = format!("{}/console/login#{}", server.config.base_url(), code.expose());
            guarded(fault::json(StatusCode::OK, json!(ConsoleLink { url, expires_in_seconds: 60 }).to_string()))
        }
        Err(error) => told(StatusCode::SERVICE_UNAVAILABLE, "failed", &error.to_string()),
    }
}

/// Whether a request comes from a page of ours, or from a person who typed it. A change says from where.
fn comes_from_here(headers: &HeaderMap, is_change: bool, is_shell: bool) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let from_here = match headers.get(ORIGIN) {
        Some(origin) => origin.to_str().is_ok_and(|origin| origin.strip_prefix("http://") == Some(host)),
        None => !is_change,
    };
    // What another page has a browser fetch. That another page leads here is no harm: a shell has nothing in it.
    let fetched = headers.get(FETCH_SITE).is_none_or(|site| is_shell || site.as_bytes() == b"same-origin");
    from_here && fetched
}

fn asset(name: &str) -> Response<ResponseBody> {
    let Some(asset) = Asset::named(name) else {
        return told(StatusCode::NOT_FOUND, "unknown", "there is no such file; load the page again");
    };
    let mut response = Response::new(ResponseBody::Whole(Bytes::from_static(asset.text.as_bytes()).into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    let mut response = guarded(response);
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, for_ever);
    response
}

fn html(status: StatusCode, page: Markup) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(page.into_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    guarded(response)
}

fn moved(to: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Empty);
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    guarded(response)
}

fn told(status: StatusCode, code: &str, message: &str) -> Response<ResponseBody> {
    let error: Value = json!({"code": code, "message": message, "details": {"status": status.as_u16()}});
    guarded(fault::json(status, json!({"error": error}).to_string()))
}

/// With what keeps other pages, and caches, away from it.
fn guarded(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn now(response: Response<ResponseBody>) -> Answering {
    Box::pin(std::future::ready(response))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    //
    #[test]
    fn a_change_comes_from_our_own_pages_only() {
        let here = [(HOST, "127.0.0.1:7420"), (ORIGIN, "http://127.0.0.1:7420")];
        let changes = |pairs: &[_]| comes_from_here(&headers(pairs), true, false);
        let reads = |pairs: &[_]| comes_from_here(&headers(pairs), false, false);
        assert!(changes(&here));
        assert!(!changes(&here[..1]), "a change without an origin");
        assert!(reads(&here[..1]));
        for origin in ["http://127.0.0.1:3000", "https://127.0.0.1:7420", "http://localhost:7420", "null"] {
            assert!(!changes(&[here[0].clone(), (ORIGIN, origin)]), "{origin}");
            assert!(!reads(&[here[0].clone(), (ORIGIN, origin)]), "{origin}");
        }
        let site = [here[0].clone(), here[1].clone(), (FETCH_SITE, "same-site")];
        assert!(!changes(&site));
        // H3: a page of another port is the same site. A link that leads here is followed all the same.
        let fetched = [here[0].clone(), (FETCH_SITE, "same-site")];
        assert!(!reads(&fetched) && comes_from_here(&headers(&fetched), false, true));
    }

    // H3
    #[test]
    fn without_a_session_there_are_shells_and_files_to_see() {
        for (way, query, has) in [
            (ConsoleRoute::Front, "", true),
            (ConsoleRoute::Login, "", true),
            (ConsoleRoute::Page(ConsolePage::Audit), "q=a&before=3", true),
            (ConsoleRoute::Page(ConsolePage::Audit), "q=a&part", false),
            (ConsoleRoute::Request("7".into()), "", false),
            (ConsoleRoute::Events, "", false),
            (ConsoleRoute::Logout, "", false),
        ] {
            assert_eq!(way.has_shell(query), has, "{way:?}?{query}");
        }
    }

    #[test]
    fn a_path_leads_to_one_thing() {
        assert_eq!(ConsoleRoute::named(None, None), Some(ConsoleRoute::Front));
        assert_eq!(ConsoleRoute::named(Some("grants"), None), Some(ConsoleRoute::Page(ConsolePage::Grants)));
        assert_eq!(ConsoleRoute::named(Some("requests"), Some("7")), Some(ConsoleRoute::Request("7".into())));
        assert_eq!(ConsoleRoute::named(Some("grants"), Some("7")), None);
        assert_eq!(ConsoleRoute::named(Some("act"), Some("explode")), None);
    }
}
