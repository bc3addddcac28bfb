//! The console over HTTP: `/console` and what is below it, for a browser with a session, and the link that opens one,
//! for whoever has the management secret. What the pages look like is in `crate::console`.
//!
//! Cookies know no ports: a page of another local server is the same site, and our cookie goes along with what it sends
//! here. So everything needs the very origin that it is served from, and every change the token that only our own pages
//! can read.

mod acts;
mod pages;
mod watch;

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::Incoming,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN,
        REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use maud::Markup;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Server,
    body::Body,
    fault::{self, Denial},
    request::{is_json, read},
    route::Answering,
};
use crate::console::{
    assets::Asset,
    door::{SESSION_LASTS, Session},
    login,
    page::Page,
};

/// Who decides, as the audit has it.
const BY: &str = "console";
/// The largest body that a page sends.
const MAX_BODY: usize = 64 << 10;
const COOKIE_NAME: &str = "prism_console";
const CSRF: HeaderName = HeaderName::from_static("x-prism-csrf");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Nothing but what comes from here, and nothing that is written into a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What is asked for, below `/console`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// `/console` itself.
    Front,
    Login,
    Logout,
    Events,
    Page(Page),
    /// One request's dialog.
    Request(String),
    Asset(String),
    Act(acts::Act),
}

impl Way {
    pub(super) fn named(below: Option<&str>, more: Option<&str>) -> Option<Self> {
        Some(match (below, more) {
            (None | Some(""), None) => Self::Front,
            (Some("login"), None) => Self::Login,
            (Some("logout"), None) => Self::Logout,
            (Some("events"), None) => Self::Events,
            (Some("assets"), Some(name)) => Self::Asset(name.to_owned()),
            (Some("act"), Some(name)) => Self::Act(acts::Act::named(name)?),
            (Some("requests"), Some(id)) => Self::Request(id.to_owned()),
            (Some(name), None) => Self::Page(Page::named(name)?),
            _ => return None,
        })
    }
}

/// Answers what came to the console. The head is read here, before anything is waited for.
pub(super) fn answer(server: &Arc<Server>, way: Way, request: Request<Incoming>) -> Result<Answering, Denial> {
    if server.is_stopping() {
        return Err(Denial::Stopping);
    }
    let (method, headers) = (request.method().clone(), request.headers());
    let is_change = matches!(way, Way::Act(_) | Way::Logout) || (way == Way::Login && method == Method::POST);
    match (is_change, &method) {
        (true, &Method::POST) | (false, &Method::GET | &Method::HEAD) => {}
        _ => return Err(Denial::Method { allowed: if is_change { "POST" } else { "GET, HEAD" } }),
    }
    if !comes_from_here(headers, is_change) {
        turned_away(server, "origin");
        return Ok(now(told(StatusCode::FORBIDDEN, "forbidden", "only the console's own pages may do that")));
    }
    let session = cookie(headers).and_then(|shown| server.console().door.session(shown, Instant::now()));
    let session = match (way, session) {
        (Way::Asset(name), _) => return Ok(now(asset(&name))),
        (Way::Login, session) if !is_change => {
            return Ok(now(if session.is_some() {
                moved("/console/requests")
            } else {
                html(StatusCode::OK, login::login())
            }));
        }
        (Way::Login, _) => return enter(server, request),
        (way, Some(session)) => (way, session),
        (Way::Events | Way::Act(_) | Way::Logout | Way::Request(_), None) => {
            let why = "your session is over; type `prism console` in a terminal";
            return Ok(now(told(StatusCode::UNAUTHORIZED, "unauthorized", why)));
        }
        (Way::Front | Way::Page(_), None) => return Ok(now(html(StatusCode::UNAUTHORIZED, login::closed()))),
    };
    inside(server, session, request)
}

/// Answers somebody who has a session.
fn inside(
    server: &Arc<Server>,
    (way, session): (Way, Session),
    request: Request<Incoming>,
) -> Result<Answering, Denial> {
    let shows_csrf = request.headers().get(CSRF).is_some_and(|shown| session.csrf.matches(shown.as_bytes()));
    if matches!(way, Way::Act(_) | Way::Logout) && !shows_csrf {
        turned_away(server, "csrf");
        let why = "the page is not of this session; load it again";
        return Ok(now(told(StatusCode::FORBIDDEN, "forbidden", why)));
    }
    let server = server.clone();
    Ok(match way {
        Way::Logout => {
            server.console().door.leave(&session);
            let mut response = fault::json(StatusCode::OK, "{}".to_owned());
            response.headers_mut().insert(SET_COOKIE, gone());
            now(guarded(response))
        }
        Way::Events => now(guarded(watch::watch(&server, session))),
        Way::Page(page) => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            Box::pin(async move { pages::page(&server, page, &session, &query).await })
        }
        Way::Request(id) => Box::pin(async move { pages::request(&server, &id) }),
        Way::Act(act) => {
            let body = request.into_body();
            Box::pin(async move {
                match read(body, MAX_BODY).await {
                    Ok(body) => guarded(acts::run(server, act, body).await),
                    Err(denial) => denial.response(),
                }
            })
        }
        Way::Front | Way::Login | Way::Asset(_) => now(moved("/console/requests")),
    })
}

/// Puts on record that another page has tried something here.
fn turned_away(server: &Server, why: &'static str) {
    if let Some(gate) = &server.gate {
        gate.metrics.failed_auth("console");
        gate.record_refusal("?", "console", &json!({}), why);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    code: String,
}

/// Opens a session with the code of a link.
fn enter(server: &Arc<Server>, request: Request<Incoming>) -> Result<Answering, Denial> {
    if !is_json(request.headers()) {
        return Err(Denial::ContentType);
    }
    let (server, body) = (server.clone(), request.into_body());
    Ok(Box::pin(async move {
        let body = match read(body, MAX_BODY).await {
            Ok(body) => body,
            Err(denial) => return denial.response(),
        };
        let code = serde_json::from_slice::<Code>(&body).map(|code| code.code).unwrap_or_default();
        let entered = server.console().door.enter(code.as_bytes(), Instant::now());
        acts::record_login(server.gate.as_deref(), matches!(entered, Ok(Some(_))));
        match entered {
            Ok(Some(session)) => {
                let mut response = fault::json(StatusCode::OK, json!({"to": "/console/requests"}).to_string());
                response.headers_mut().insert(SET_COOKIE, given(&session));
                guarded(response)
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
pub(super) fn link(server: &Server) -> Response<Body> {
    match server.console().door.link(Instant::now()) {
        // Behind the `#`, so that it is in no log, and no proxy sees it.
        Ok(code) => {
            let url = format!("{}/console/login#{}", server.config.base_url(), code.expose());
            guarded(fault::json(StatusCode::OK, json!({"url": url, "expires_in_seconds": 60}).to_string()))
        }
        Err(error) => told(StatusCode::SERVICE_UNAVAILABLE, "failed", &error.to_string()),
    }
}

/// Whether a request comes from a page of ours, or from a person who typed it. A change says from where.
fn comes_from_here(headers: &HeaderMap, is_change: bool) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let from_here = match headers.get(ORIGIN) {
        Some(origin) => origin.to_str().is_ok_and(|origin| origin.strip_prefix("http://") == Some(host)),
        None => !is_change,
    };
    // What another page has a browser fetch. That another page leads here is no harm: pages change nothing by being seen.
    let fetched = headers.get(FETCH_SITE).is_none_or(|site| !is_change || site.as_bytes() == b"same-origin");
    from_here && fetched
}

fn cookie(headers: &HeaderMap) -> Option<&[u8]> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';'));
    pairs.map(<[u8]>::trim_ascii).find_map(|pair| pair.strip_prefix(COOKIE_NAME.as_bytes())?.strip_prefix(b"="))
}

fn given(session: &Session) -> HeaderValue {
    let (value, seconds) = (session.cookie.expose(), SESSION_LASTS.as_secs());
    let cookie = format!("{COOKIE_NAME}={value}; Path=/console; HttpOnly; SameSite=Strict; Max-Age={seconds}");
    let mut cookie = HeaderValue::from_str(&cookie).unwrap_or_else(|_| gone());
    cookie.set_sensitive(true);
    cookie
}

fn gone() -> HeaderValue {
    HeaderValue::from_static("prism_console=; Path=/console; HttpOnly; SameSite=Strict; Max-Age=0")
}

fn asset(name: &str) -> Response<Body> {
    let Some(asset) = Asset::named(name) else {
        return told(StatusCode::NOT_FOUND, "unknown", "there is no such file; load the page again");
    };
    let mut response = Response::new(Body::Whole(Bytes::from_static(asset.text.as_bytes()).into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    let mut response = guarded(response);
    let for_ever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, for_ever);
    response
}

fn html(status: StatusCode, page: Markup) -> Response<Body> {
    let mut response = Response::new(Body::from(page.into_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    guarded(response)
}

fn moved(to: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::SEE_OTHER;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    guarded(response)
}

fn told(status: StatusCode, code: &str, message: &str) -> Response<Body> {
    let error: Value = json!({"code": code, "message": message, "details": {"status": status.as_u16()}});
    guarded(fault::json(status, json!({"error": error}).to_string()))
}

/// With what keeps other pages, and caches, away from it.
fn guarded(mut response: Response<Body>) -> Response<Body> {
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

fn now(response: Response<Body>) -> Answering {
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
        assert!(comes_from_here(&headers(&here), true));
        assert!(!comes_from_here(&headers(&here[..1]), true), "a change without an origin");
        assert!(comes_from_here(&headers(&here[..1]), false));
        for origin in ["http://127.0.0.1:3000", "https://127.0.0.1:7420", "http://localhost:7420", "null"] {
            assert!(!comes_from_here(&headers(&[here[0].clone(), (ORIGIN, origin)]), true), "{origin}");
            assert!(!comes_from_here(&headers(&[here[0].clone(), (ORIGIN, origin)]), false), "{origin}");
        }
        let site = [here[0].clone(), here[1].clone(), (FETCH_SITE, "same-site")];
        assert!(!comes_from_here(&headers(&site), true));
    }

    #[test]
    fn our_cookie_is_found_among_others() {
        let found = |value| cookie(&headers(&[(COOKIE, value)])).map(<[u8]>::to_vec);
        assert_eq!(found("a=b; prism_console=xyz; c=d"), Some(b"xyz".to_vec()));
        assert_eq!(found("prism_console2=xyz"), None);
        assert_eq!(found("x_prism_console=xyz"), None);
    }

    #[test]
    fn a_path_leads_to_one_thing() {
        assert_eq!(Way::named(None, None), Some(Way::Front));
        assert_eq!(Way::named(Some("grants"), None), Some(Way::Page(Page::Grants)));
        assert_eq!(Way::named(Some("requests"), Some("7")), Some(Way::Request("7".into())));
        assert_eq!(Way::named(Some("grants"), Some("7")), None);
        assert_eq!(Way::named(Some("act"), Some("explode")), None);
    }
}
