//! What of a server's head comes back to the client with the answer (B-22): what is about the call, and nothing about the
//! connection or who is at either end of it.

use hyper::{HeaderMap, header::HeaderName};

/// Headers that come back: the same ids, how long it took, and what a caller may do when.
const BACK: [&str; 8] = [
    "deprecation",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "server-timing",
    "traceresponse",
    "x-correlation-id",
    "x-request-id",
];
const BACK_PREFIXES: [&str; 2] = ["ratelimit-", "x-ratelimit-"];

/// The most headers that come back with one answer, and the longest of their values. The rest stays behind.
const MAX_RETURNED: usize = 32;
const MAX_VALUE: usize = 4096;

/// Returns what of a server's head comes back; `None` if there is nothing.
pub fn brought_back(head: &HeaderMap) -> Option<HeaderMap> {
    let is_back = |name: &HeaderName| {
        BACK.contains(&name.as_str()) || BACK_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
    };
    let back = head.iter().filter(|(name, value)| is_back(name) && value.len() <= MAX_VALUE).take(MAX_RETURNED);
    let back: HeaderMap = back.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!back.is_empty()).then_some(back)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    //
    #[test]
    fn of_a_servers_head_only_what_is_about_the_call_comes_back() {
        let names = ["x-request-id", "x-ratelimit-remaining", "set-cookie", "mcp-session-id", "server"];
        let value = HeaderValue::from_static("1");
        let head: HeaderMap = names.map(|name| (HeaderName::from_static(name), value.clone())).into_iter().collect();
        let back = brought_back(&head).unwrap();
        let mut names: Vec<&str> = back.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["x-ratelimit-remaining", "x-request-id"]);
        assert!(brought_back(&HeaderMap::new()).is_none());
    }
}
