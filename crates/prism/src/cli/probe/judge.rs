//! What can be said of all that arrived, taken together: each message once and on one path, under the right name, with
//! the ids that tie it to its call.

use std::collections::{BTreeMap, BTreeSet};

use prism_config::EventNames;
use prism_mcp::client::{ArrivalPath, Foreign, ReceivedMessage, SeenMessage};
use serde_json::Value;
use uuid::{Uuid, Version};

use super::{
    check::{ProbeCheck, fail, ok, skipped},
    run::ProbeRun,
};

/// Judges the record of a run.
pub(super) fn all(run: &mut ProbeRun<'_>) {
    let arrivals: Vec<ReceivedMessage> = run.record.state().arrivals.iter().map(|one| one.arrival.clone()).collect();
    let mark = run.mark.clone();
    let checks = [one_path(&arrivals, &mark), event_names(&arrivals, run.plan.events), correlation(&arrivals)];
    run.checks.extend(checks);
}

// What is asked of every message whenever another arrives is looked up in it as it came; the rest is asked of a `SeenMessage`.

pub(super) fn is_method(arrival: &ReceivedMessage, method: &str) -> bool {
    arrival.message.get("method").is_some_and(|own| own == method)
}

/// Whether it is a log note that says this.
pub(super) fn says(arrival: &ReceivedMessage, text: &str) -> bool {
    arrival.message.pointer("/params/data").is_some_and(|data| data == text)
}

pub(super) fn is_on_get(arrival: &ReceivedMessage) -> bool {
    arrival.path == ArrivalPath::Get
}

pub(super) fn is_of_call(arrival: &ReceivedMessage, id: u64) -> bool {
    matches!(arrival.path, ArrivalPath::Post(call) | ArrivalPath::Json(call) if call == id)
}

pub(super) fn is_note(arrival: &ReceivedMessage) -> bool {
    arrival.message.get("method").is_some() && arrival.message.get("id").is_none()
}

pub(super) fn is_answer_to(arrival: &ReceivedMessage, id: u64) -> bool {
    arrival.message.get("method").is_none() && arrival.message.get("id").is_some_and(|own| *own == id)
}

/// The correlation id of a message (N-05, N-06).
pub(super) fn correlation_of(message: &Value) -> Option<&str> {
    message.pointer("/params/_meta/correlation_id")?.as_str()
}

/// What kind of id that is, without the id: it opens the session to whoever has it.
pub(super) fn format_of(id: &str) -> String {
    match Uuid::try_parse(id).ok().and_then(|id| id.get_version()) {
        Some(Version::Random) => "UUID v4".to_owned(),
        Some(Version::SortRand) => "UUID v7".to_owned(),
        Some(_) => "UUID".to_owned(),
        None if id.bytes().all(|byte| byte.is_ascii_hexdigit()) => format!("{} hex digits", id.len()),
        None => format!("{} characters", id.len()),
    }
}

/// So many of these: `1 tool`, `2 resource templates`.
pub(super) fn counted(what: &str, count: usize) -> String {
    let what = what.replace('_', " ");
    format!("{count} {}", if count == 1 { what.trim_end_matches('s') } else { &what })
}

/// N-01: what can be told from everything else must not come twice, be it on two paths or on one.
fn one_path(arrivals: &[ReceivedMessage], mark: &str) -> ProbeCheck {
    let mut seen: BTreeMap<String, Vec<ArrivalPath>> = BTreeMap::new();
    let (on_get, on_post) = (format!("{mark}-get"), format!("{mark}-post"));
    for arrival @ ReceivedMessage { message, path, .. } in arrivals {
        let SeenMessage { id, method, params, .. } = SeenMessage::of(message);
        let key = match (method.as_deref(), id) {
            (None, Some(id)) if !id.is_null() => format!("the answer to {id}"),
            (Some("notifications/progress"), _) => {
                format!("progress {} of {}", params.progress.unwrap_or_default(), params.progress_token)
            }
            // Two notes of one text are sent on purpose, on one path; this one once.
            (Some("notifications/message"), _) if says(arrival, &on_get) => "a log note".to_owned(),
            (Some("notifications/message"), _) if says(arrival, &on_post) => {
                format!("a log note of the call on {path:?}, number {}", count_on(&seen, *path))
            }
            _ => continue,
        };
        seen.entry(key).or_default().push(*path);
    }
    let notes = arrivals.iter().filter(|arrival| is_note(arrival)).count();
    let posts: BTreeSet<String> =
        arrivals.iter().filter(|one| says(one, &on_post)).map(|one| format!("{:?}", one.path)).collect();
    let twice: Vec<String> = seen.iter().filter(|(_, paths)| paths.len() > 1).map(|(what, _)| what.clone()).collect();
    if let Some(first) = twice.first() {
        let why = format!("{} messages came twice: {first}", twice.len());
        return fail(
            "one_path",
            why,
            "send each message down exactly one path: its POST stream, or the GET stream (N-01)",
        );
    }
    if posts.len() > 1 {
        return fail(
            "one_path",
            "log notes of one call came on several paths",
            "send each message down exactly one path (N-01)",
        );
    }
    ok("one_path", format!("{} messages, {notes} of them notes, none twice", arrivals.len()))
}

fn count_on(seen: &BTreeMap<String, Vec<ArrivalPath>>, path: ArrivalPath) -> usize {
    let prefix = format!("a log note of the call on {path:?}, number");
    seen.keys().filter(|key| key.starts_with(&prefix)).count()
}

/// N-03: most clients drop every event whose name is not `message`.
fn event_names(arrivals: &[ReceivedMessage], wanted: EventNames) -> ProbeCheck {
    let events: Vec<&ReceivedMessage> =
        arrivals.iter().filter(|one| !matches!(one.path, ArrivalPath::Json(_))).collect();
    if events.is_empty() {
        return skipped("event_names", "no event came on any stream");
    }
    let wrong: BTreeSet<String> = events
        .iter()
        .filter_map(|one| {
            let name = one.event.as_deref().unwrap_or("message");
            let method = one.message.get("method").and_then(Value::as_str).unwrap_or("result");
            let right = match wanted {
                EventNames::Message => name == "message",
                EventNames::Method => name == method,
            };
            (!right).then(|| name.to_owned())
        })
        .collect();
    if wrong.is_empty() {
        let what = match wanted {
            EventNames::Message => "called message",
            EventNames::Method => "named after their methods",
        };
        return ok("event_names", format!("{} events, all {what}", events.len()));
    }
    let names: Vec<&str> = wrong.iter().map(String::as_str).collect();
    let fix = match wanted {
        EventNames::Message => {
            "write `event: message`: the SDKs of TypeScript, Python, Rust, Go and Kotlin drop all else"
        }
        EventNames::Method => "add ?events=method to the URL, or set sse_event_names = \"method\" for the server",
    };
    fail("event_names", format!("events are called {}", names.join(", ")), fix)
}

/// N-06: what belongs to one call has one correlation id, whichever path it takes.
fn correlation(arrivals: &[ReceivedMessage]) -> ProbeCheck {
    let with_id = |one: &&ReceivedMessage| correlation_of(&one.message).is_some();
    let told: Vec<&ReceivedMessage> = arrivals.iter().filter(with_id).collect();
    if told.is_empty() {
        return skipped("correlation", "no message carries a correlation id");
    }
    let mut calls: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
    let mut by_text: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for one in &told {
        let Some(id) = correlation_of(&one.message) else { continue };
        if Uuid::try_parse(id).is_err() {
            return fail("correlation", "a correlation id is no UUID", "use a UUID v7 (N-05)");
        }
        if let ArrivalPath::Post(call) = one.path {
            calls.entry(call).or_default().insert(id);
        }
        let SeenMessage { params, .. } = SeenMessage::of(&one.message);
        by_text.entry(params.data.to_string()).or_default().insert(id);
    }
    let on_get = told.iter().filter(|one| is_on_get(one)).count();
    match calls.iter().find(|(_, ids)| ids.len() > 1) {
        Some((call, ids)) => {
            let why = format!("the messages of call {call} carry {} correlation ids", ids.len());
            fail("correlation", why, "give everything that belongs to one call the same correlation id (N-06)")
        }
        None => ok(
            "correlation",
            format!("{} messages carry one, {on_get} of them on the GET stream; one id a call", told.len()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::probe::check::ProbeVerdict;

    fn arrival(path: ArrivalPath, event: Option<&str>, message: Value) -> ReceivedMessage {
        ReceivedMessage { path, event: event.map(str::to_owned), event_id: None, message, bytes: 0 }
    }

    fn progress(path: ArrivalPath, progress: u32) -> ReceivedMessage {
        let params = json!({"progressToken": 3, "progress": progress});
        arrival(path, Some("message"), json!({"method": "notifications/progress", "params": params}))
    }

    fn log(path: ArrivalPath, text: &str, correlation: &str) -> ReceivedMessage {
        let params = json!({"data": text, "_meta": {"correlation_id": correlation}});
        arrival(path, None, json!({"method": "notifications/message", "params": params}))
    }

    const ID: &str = "0190163d-8694-739b-aea5-966c26f8ad91";
    const OTHER: &str = "0190163d-8694-739b-aea5-966c26f8ad92";

    // N-01
    #[test]
    fn a_message_that_comes_on_both_paths_is_found() {
        let (post, get) = (ArrivalPath::Post(3), ArrivalPath::Get);
        let verdict = |arrivals: &[ReceivedMessage]| one_path(arrivals, "m").verdict;
        let answer = |path| arrival(path, None, json!({"id": 3, "result": {}}));
        let good =
            [progress(post, 1), progress(post, 2), log(post, "m-post", ID), log(post, "m-post", ID), answer(post)];
        assert_eq!(verdict(&good), ProbeVerdict::Ok);
        assert_eq!(verdict(&[progress(post, 1), progress(get, 1)]), ProbeVerdict::Fail);
        assert_eq!(verdict(&[progress(post, 1), progress(post, 1)]), ProbeVerdict::Fail);
        assert_eq!(verdict(&[log(post, "m-post", ID), log(get, "m-post", ID)]), ProbeVerdict::Fail);
        assert_eq!(verdict(&[log(get, "m-get", ID), log(get, "m-get", ID)]), ProbeVerdict::Fail);
        assert_eq!(verdict(&[answer(post), answer(get)]), ProbeVerdict::Fail);
    }

    // N-03
    #[test]
    fn names_of_events_are_compared_with_those_that_are_wanted() {
        let event = |name: Option<&str>| arrival(ArrivalPath::Get, name, json!({"method": "notifications/x"}));
        let verdict = |arrivals: &[ReceivedMessage], wanted| event_names(arrivals, wanted).verdict;
        assert_eq!(verdict(&[event(None), event(Some("message"))], EventNames::Message), ProbeVerdict::Ok);
        assert_eq!(verdict(&[event(Some("data"))], EventNames::Message), ProbeVerdict::Fail);
        assert_eq!(verdict(&[event(Some("notifications/x"))], EventNames::Method), ProbeVerdict::Ok);
        let answer = arrival(ArrivalPath::Post(1), Some("result"), json!({"id": 1, "result": {}}));
        assert_eq!(verdict(std::slice::from_ref(&answer), EventNames::Method), ProbeVerdict::Ok);
        assert_eq!(verdict(&[event(None)], EventNames::Method), ProbeVerdict::Fail);
        let body = arrival(ArrivalPath::Json(1), None, json!({"id": 1, "result": {}}));
        assert_eq!(verdict(&[body], EventNames::Method), ProbeVerdict::Skipped);
    }

    // N-06
    #[test]
    fn one_call_has_one_correlation_id() {
        let verdict = |arrivals: &[ReceivedMessage]| correlation(arrivals).verdict;
        assert_eq!(verdict(&[progress(ArrivalPath::Get, 1)]), ProbeVerdict::Skipped);
        assert_eq!(
            verdict(&[
                log(ArrivalPath::Post(1), "a", ID),
                log(ArrivalPath::Post(1), "b", ID),
                log(ArrivalPath::Get, "c", ID)
            ]),
            ProbeVerdict::Ok
        );
        assert_eq!(
            verdict(&[log(ArrivalPath::Post(1), "a", ID), log(ArrivalPath::Post(1), "b", OTHER)]),
            ProbeVerdict::Fail
        );
        assert_eq!(verdict(&[log(ArrivalPath::Post(1), "a", "x")]), ProbeVerdict::Fail);
    }

    #[test]
    fn the_format_of_an_id_is_told_without_the_id() {
        assert_eq!(format_of("0b81c5a5-7d4c-4a5e-9a36-52d3d5a8e7f1"), "UUID v4");
        assert_eq!(format_of(ID), "UUID v7");
        assert_eq!(format_of("00ff"), "4 hex digits");
        assert_eq!(format_of("session one"), "11 characters");
    }
}
