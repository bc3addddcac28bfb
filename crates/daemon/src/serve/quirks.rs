//! Clients that do not survive what the protocol allows, and what they get instead: one table, with the reason and the
//! versions for each row. What a failure's status is, is next door, in `fault`; here is only who hears of it in which way.

use hyper::{
    HeaderMap, Response, StatusCode,
    header::{HeaderValue, USER_AGENT},
};
use tracing::debug;

use super::{DaemonSnapshot, body::ResponseBody, fault::RequestDenial, post::accepted};
use prism_bridge::drive::{Destination, SessionEntry};
use prism_config::ErrorStatuses;

/// A kind of client that a failed call's status would end the whole session of.
struct ClientQuirk {
    client: &'static str,
    /// Which of its versions do it. Those that do not are told apart only where they can be, and lose nothing: a
    /// JSON-RPC error with status 200 is one to everybody.
    versions: &'static str,
    /// What its `User-Agent` begins with.
    user_agent: &'static str,
    /// What it calls itself in `initialize` if its user names it nothing else, where that says enough.
    info: Option<(&'static str, &'static str)>,
    why: &'static str,
}

/// All of them. Read, or seen, to survive it, with the reason shown: the TypeScript SDK 1 and 2, rmcp, the C# SDK and the
/// Python SDK 2 (`python-httpx2/`), with all that is built on them.
const QUIRKS: [ClientQuirk; 2] = [
    ClientQuirk {
        client: "the Python SDK, and what is built on it (FastMCP 2 and 3, older openai-agents and strands)",
        versions: "1.8 (the first with this transport) to 1.30",
        user_agent: "python-httpx/",
        info: Some(("mcp", "0.1.0")),
        // modelcontextprotocol/python-sdk issues 1010 and 3091; FastMCP 2 had to watch for it (its pull request 2803).
        why: "`raise_for_status` ends the task group that all calls of the session run in, and the reason is never shown",
    },
    ClientQuirk {
        client: "the Go SDK",
        versions: "before 1.2; later ones survive it, without the reason",
        user_agent: "Go-http-client/",
        info: None,
        why: "a status that is not of the 200s breaks the connection, and every later call fails",
    },
];

/// How one request is told that it has failed.
#[derive(Clone, Copy)]
pub(super) enum FailureStyle {
    ByStatus,
    /// In the body of a 200; of a message that wants no answer, not at all.
    InBody,
}

/// The status that an answer would have had, for the log and the metrics.
#[derive(Clone, Copy)]
pub(super) struct IntendedStatus(pub(super) StatusCode);

impl FailureStyle {
    /// Finds out how whoever sent this head is to be told.
    pub(super) fn to(
        server: &DaemonSnapshot,
        destination: &Destination,
        entry: Option<&SessionEntry>,
        headers: &HeaderMap,
    ) -> Self {
        match destination.config().error_statuses.unwrap_or(server.config.error_statuses) {
            ErrorStatuses::Http => Self::ByStatus,
            ErrorStatuses::Ok => Self::InBody,
            ErrorStatuses::Auto => {
                let info = entry.and_then(|entry| entry.visit.who()?.client.as_ref());
                let info = info.map(|(name, version)| (name.as_str(), version.as_str()));
                let Some(quirk) = of(headers.get(USER_AGENT), info) else { return Self::ByStatus };
                debug!(client = quirk.client, versions = quirk.versions, why = quirk.why, "Tells failures in the body");
                Self::InBody
            }
        }
    }

    /// Tells a client what came of its message in the way that it survives. `id` is a request's.
    pub(super) fn tell(
        self,
        server: &DaemonSnapshot,
        outcome: Result<Response<ResponseBody>, RequestDenial>,
        id: Option<&str>,
    ) -> Result<Response<ResponseBody>, RequestDenial> {
        if matches!(self, Self::ByStatus) {
            return outcome;
        }
        let mut response = match outcome {
            Ok(response) => response,
            Err(denial) => {
                let response = denial.answer_to(id);
                if !passes(response.status()) {
                    return Err(denial);
                }
                server.access.metrics.refused(denial.reason());
                response
            }
        };
        let meant = response.status();
        if passes(meant) {
            match id {
                Some(_) => *response.status_mut() = StatusCode::OK,
                None => response = accepted(),
            }
            response.extensions_mut().insert(IntendedStatus(meant));
        }
        Ok(response)
    }
}

/// Whether nothing is wrong with the request: the same again may do. What is wrong with one has to be told by its status,
/// which clients go by (404: initialize again; 400: another revision).
pub(super) fn passes(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

fn of(user_agent: Option<&HeaderValue>, info: Option<(&str, &str)>) -> Option<&'static ClientQuirk> {
    let begins = |quirk: &ClientQuirk| {
        user_agent.is_some_and(|shown| {
            let begin = shown.as_bytes().get(..quirk.user_agent.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(quirk.user_agent.as_bytes()))
        })
    };
    QUIRKS.iter().find(|quirk| begins(quirk) || (quirk.info.is_some() && quirk.info == info))
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn clients_are_known_by_how_their_requests_or_their_sessions_begin() {
        let known =
            |agent: &'static str| of(Some(&HeaderValue::from_static(agent)), None).map(|quirk| quirk.user_agent);
        assert_eq!(known("python-httpx/0.28.1"), Some("python-httpx/"));
        assert_eq!(known("Go-http-client/1.1"), Some("Go-http-client/"));
        for survivor in ["python-httpx2/2.16.0", "node", "Cursor/1.2", "python-httpx", ""] {
            assert_eq!(known(survivor), None, "{survivor}");
        }
        let own = HeaderValue::from_static("my-agent/1");
        assert!(of(Some(&own), Some(("mcp", "0.1.0"))).is_some(), "the SDK's own name, under another User-Agent");
        assert!(of(Some(&own), Some(("claude-code", "2.0"))).is_none());
        assert!(of(None, None).is_none());
    }

    #[test]
    fn only_what_the_same_request_may_pass_with_later_is_told_in_another_way() {
        assert!([429, 500, 502, 503, 504].iter().all(|status| passes(StatusCode::from_u16(*status).unwrap())));
        assert!(
            ![200, 202, 400, 401, 403, 404, 413].iter().any(|status| passes(StatusCode::from_u16(*status).unwrap()))
        );
    }
}
