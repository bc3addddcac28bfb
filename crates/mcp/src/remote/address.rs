//! Addresses that a server hands out: resolved against our own, and compared by origin. No request is made here.

use hyper::{
    Uri,
    http::uri::{PathAndQuery, Scheme},
};

/// Resolves a reference (RFC 3986, section 5.2) against the URL that it came from; `None` if it is no URL.
pub(super) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.trim().split('#').next().unwrap_or_default();
    let colon = reference.find(':').filter(|at| !reference[..*at].contains(['/', '?']));
    if colon.is_some() {
        return reference.parse().ok().filter(|uri: &Uri| uri.scheme().is_some() && uri.authority().is_some());
    }
    if reference.starts_with("//") {
        return format!("{}:{reference}", base.scheme_str()?).parse().ok();
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = if path.is_empty() {
        (base.path().to_owned(), query.or(base.query()))
    } else if path.starts_with('/') {
        (without_dots(path), query)
    } else {
        let folder = base.path().rfind('/').map_or("/", |end| &base.path()[..=end]);
        (without_dots(&format!("{folder}{path}")), query)
    };
    let path: PathAndQuery = query.map_or_else(|| path.clone(), |query| format!("{path}?{query}")).parse().ok()?;
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).ok()
}

fn without_dots(path: &str) -> String {
    let mut kept = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        kept.push("");
    }
    format!("/{}", kept.join("/"))
}

/// Whether two URLs have the same scheme, host and port.
pub(super) fn same_origin(a: &Uri, b: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    a.scheme() == b.scheme() && host(a) == host(b) && port(a) == port(b)
}

fn port(uri: &Uri) -> u16 {
    let default = if uri.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    uri.port_u16().unwrap_or(default)
}

/// A URL for people's eyes: without the parts that may hold a secret.
pub fn shown(uri: &Uri) -> String {
    let host = uri.host().unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{host}{port}{}", uri.scheme_str().unwrap_or_default(), uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(base: &str, reference: &str) -> Option<String> {
        resolve(&base.parse().unwrap(), reference).map(|uri| uri.to_string())
    }

    #[test]
    fn references_are_resolved_as_the_standard_says() {
        let base = "http://h:1/a/b?x=1";
        for (reference, expected) in [
            ("/m?s=2", "http://h:1/m?s=2"),
            ("c", "http://h:1/a/c"),
            ("./c/../d?y", "http://h:1/a/d?y"),
            ("../../..", "http://h:1/"),
            ("?z", "http://h:1/a/b?z"),
            ("", "http://h:1/a/b?x=1"),
            (" /m#f ", "http://h:1/m"),
            ("/m?next=http://x/", "http://h:1/m?next=http://x/"),
            ("//other/m", "http://other/m"),
            ("https://other:2/m", "https://other:2/m"),
        ] {
            assert_eq!(resolved(base, reference).as_deref(), Some(expected), "{reference:?}");
        }
        assert_eq!(resolved(base, "mailto:a"), None);
        assert_eq!(resolved(base, "/a b"), None);
        assert_eq!(resolved("http://h", "m").as_deref(), Some("http://h/m"));
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("http://h/a", "http://H:80/b?c"));
        assert!(same("https://[::1]/a", "https://[::1]:443/b"));
        assert!(!same("http://h/", "https://h/"));
        assert!(!same("http://h/", "http://h:8080/"));
        assert!(!same("http://h/", "http://h.evil/"));
        assert!(!same("http://h/", "http://evil@x/"));
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        assert_eq!(shown(&"https://u:p@h:1/a?token=x".parse().unwrap()), "https://h:1/a");
    }
}
