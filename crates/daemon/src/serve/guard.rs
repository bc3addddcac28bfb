//! Who may come in: Host and Origin against DNS rebinding, then the token (D-04).

use std::time::Instant;

use hyper::{
    HeaderMap, Uri,
    header::{AUTHORIZATION, EXPECT, HOST, HeaderValue, ORIGIN},
};

use super::{DaemonSnapshot, access, console, fault::RequestDenial};

/// What is sent once or not at all: of two, one would be checked, and whoever is behind us or before us could mean the other.
const ONCE: [(hyper::header::HeaderName, &str); 3] =
    [(HOST, "Host"), (ORIGIN, "Origin"), (AUTHORIZATION, "Authorization")];

/// Checks that a head says one thing (L4).
pub(super) fn check_head(headers: &HeaderMap) -> Result<(), RequestDenial> {
    if let Some((_, header)) = ONCE.iter().find(|(name, _)| headers.get_all(name).iter().nth(1).is_some()) {
        return Err(RequestDenial::Twice { header });
    }
    match headers.get(EXPECT) {
        Some(expected) if !expected.as_bytes().eq_ignore_ascii_case(b"100-continue") => Err(RequestDenial::Expectation),
        _ => Ok(()),
    }
}

/// Checks a request before anything of it is read or answered.
pub(super) fn check_origin(server: &DaemonSnapshot, headers: &HeaderMap, uri: &Uri) -> Result<(), RequestDenial> {
    let host = headers.get(HOST).map(|host| host.to_str().map_err(|_| RequestDenial::ForeignHost("?".to_owned())));
    // Where both are there, either could be the one that counts.
    let hosts = [host.transpose()?, uri.authority().map(|authority| authority.as_str())];
    if hosts == [None, None] {
        return Err(RequestDenial::NoHost);
    }
    for host in hosts.into_iter().flatten() {
        let name = without_port(host);
        if !is_loopback(name)
            && !allowed(&server.config.allowed_hosts, name)
            && !allowed(&server.config.allowed_hosts, host)
        {
            return Err(RequestDenial::ForeignHost(host.to_owned()));
        }
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let origin = origin.to_str().map_err(|_| RequestDenial::ForeignOrigin("?".to_owned()))?;
        let local = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|authority| is_loopback(without_port(authority)));
        if !local && !allowed(&server.config.allowed_origins, origin) {
            return Err(RequestDenial::ForeignOrigin(origin.to_owned()));
        }
    }
    Ok(())
}

pub(super) fn check_token(server: &DaemonSnapshot, headers: &HeaderMap) -> Result<(), RequestDenial> {
    let Some(token) = &server.token else { return Ok(()) };
    let place = || server.about().token_place().to_owned();
    let shown = headers.get(AUTHORIZATION).ok_or_else(|| RequestDenial::NoToken { place: place() })?;
    let fits = bearer(shown).is_some_and(|shown| token.matches(shown));
    if fits { Ok(()) } else { Err(RequestDenial::WrongToken { place: place() }) }
}

/// Whether a query has a secret in it, by its name. Whatever comes of it, it ends in logs, histories and referrers; so it is
/// not taken beside a right header either, or nobody would notice.
pub(super) fn names_secret(query: Option<&str>) -> bool {
    let secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        ["token", "secret", "authorization", "bearer", "api_key", "claim"].iter().any(|word| name.contains(word))
    };
    query.unwrap_or_default().split('&').map(|pair| pair.split('=').next().unwrap_or_default()).any(secret)
}

/// Whether a request shows something that opens anything here, whatever it asks for. Where no token is wanted, any request does.
pub(super) fn shows_a_key(server: &DaemonSnapshot, headers: &HeaderMap) -> bool {
    let opens_gate = |shown| server.gate.as_ref().is_some_and(|gate| gate.knows(shown));
    check_token(server, headers).is_ok()
        || access::bearer(headers).is_some_and(opens_gate)
        || console::session(server, headers, Instant::now()).is_some()
}

pub(super) fn bearer(value: &HeaderValue) -> Option<&[u8]> {
    let (scheme, token) = value.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

fn allowed(list: &[String], name: &str) -> bool {
    list.iter().any(|one| one.eq_ignore_ascii_case(name))
}

fn is_loopback(name: &str) -> bool {
    matches!(name, "127.0.0.1" | "[::1]") || name.eq_ignore_ascii_case("localhost")
}

/// `localhost:7420` to `localhost`, `[::1]:7420` to `[::1]`.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.is_empty() => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_taken_off_a_name_and_a_bracketed_address() {
        assert_eq!(without_port("localhost:7420"), "localhost");
        assert_eq!(without_port("[::1]:7420"), "[::1]");
        assert_eq!(without_port("[::1]"), "[::1]");
        assert_eq!(without_port("localhost"), "localhost");
    }

    #[test]
    fn names_that_only_look_local_are_not() {
        for name in ["localhost.evil.example", "127.0.0.1.nip.io", "127.0.0.2", "evil", ""] {
            assert!(!is_loopback(name), "{name}");
        }
        assert!(is_loopback("LOCALHOST"));
    }

    #[test]
    fn a_bearer_is_found_whatever_the_case_of_its_scheme() {
        assert_eq!(bearer(&HeaderValue::from_static("bearer  abc ")), Some(&b"abc"[..]));
        assert_eq!(bearer(&HeaderValue::from_static("Basic abc")), None);
        assert_eq!(bearer(&HeaderValue::from_static("B")), None);
    }
}
