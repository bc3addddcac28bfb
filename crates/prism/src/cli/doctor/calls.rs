//! A real call to every destination: the handshake and `tools/list`, side by side, by way of the daemon or, where none
//! runs, of a server in this process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use prism_api::status::{DestinationStatus, StatusReport};
use prism_bridge::drive::health::{self, ServerState};
use prism_config::HttpConfig;
use prism_mcp::client::{ClientError, QuestionHandler, ReceivedMessage, RevisionChoice, TrafficObserver};
use tokio::time::timeout;

use super::{DoctorArgs, DoctorContext, Finding};
use crate::cli::{
    reach::{self, ConnectArgs, Interrupts},
    say,
    status::words::{ago, took},
};

/// Nobody looks at what arrives.
struct SilentObserver;

impl TrafficObserver for SilentObserver {
    fn message(&self, _: &ReceivedMessage) {}
}

pub(super) async fn check(doctor: &DoctorArgs, patient: &DoctorContext<'_>) -> Vec<Finding> {
    const WHAT: &str = "calls";
    let Some(config) = &patient.config else {
        return vec![Finding::skipped(WHAT, "there is no config to call the servers of")];
    };
    if config.destinations.is_empty() {
        return Vec::new();
    }
    if doctor.no_calls {
        let known = patient.status.iter().flat_map(|status| &status.destinations);
        let known = known.filter(|one| config.destinations.contains_key(&one.name)).map(known_of);
        return known.chain([Finding::skipped(WHAT, "--no-calls")]).collect();
    }
    let toward =
        ConnectArgs { config: doctor.config.clone(), token: None, headers: Vec::new(), revision: "auto".to_owned() };
    let (mut stop, reach) = match (Interrupts::new(), toward.reach(None, patient.env).await) {
        (Ok(stop), Ok(reach)) => (stop, reach),
        (Err(error), _) => return vec![Finding::error(WHAT, &error.into())],
        (_, Err(error)) => return vec![Finding::error(WHAT, &error)],
    };
    let names: Vec<String> = config.destinations.keys().cloned().collect();
    let (done, total) = (AtomicUsize::new(0), names.len());
    let progress = || say::status(Some(&format!("calling every server: {} of {total}", done.load(Ordering::Relaxed))));
    progress();
    let asking = names.into_iter().map(|name| {
        let (http, advice) = (reach.http(&name), reach.advice(&name));
        let progress = &progress;
        let done = &done;
        async move {
            let finding = call(&name, http, doctor.timeout, advice).await;
            done.fetch_add(1, Ordering::Relaxed);
            progress();
            finding
        }
    });
    let findings = tokio::select! {
        findings = join_all(asking) => findings,
        _ = stop.next() => vec![Finding::skipped(WHAT, "interrupted")],
    };
    say::status(None);
    let status = reach.status().await;
    reach.close(&mut stop).await;
    let has_log = patient.status.is_some();
    findings.into_iter().map(|finding| reasoned(finding, status.as_ref(), has_log)).collect()
}

/// A server that did not answer, with the reason that everybody else is told. Where there is no daemon there is no log to
/// look into, and what to type is another thing.
fn reasoned(finding: Finding, status: Option<&StatusReport>, has_log: bool) -> Finding {
    let known = status.iter().flat_map(|status| &status.destinations);
    match known.filter(|_| finding.is_wrong()).find(|one| one.name == finding.what) {
        Some(one) if one.is_ill() || one.state == ServerState::Starting.name() => {
            let known = known_of(one);
            let fix = if has_log || one.kind != "stdio" { known.fix } else { finding.fix };
            Finding { took_ms: finding.took_ms, fix, ..known }
        }
        known if finding.is_wrong() && finding.fix.is_none() => unexplained(finding, known, has_log),
        _ => finding,
    }
}

/// A server that is well, as far as is known, and did not answer. What went wrong there last is at hand, so it is shown.
fn unexplained(finding: Finding, known: Option<&DestinationStatus>, has_log: bool) -> Finding {
    let last = known.and_then(|one| one.last_error.as_ref());
    let last = last.map(|last| format!("\n{}: {}", ago(last.ago_s), last.text)).unwrap_or_default();
    let fix = if has_log { "prism logs has the rest" } else { "prism list, and look at its command or URL" };
    Finding { said: format!("{}{last}", finding.said), fix: Some(fix.to_owned()), ..finding }
}

/// How a server is, as far as the daemon knows.
fn known_of(one: &DestinationStatus) -> Finding {
    let said = format!("{}: {}", health::word(&one.state), one.why);
    match &one.fix {
        Some(fix) if one.is_ill() => Finding::wrong(&one.name, said, fix.clone()),
        _ if one.state == ServerState::Starting.name() => Finding::note(&one.name, said, "prism doctor, in a while"),
        _ => Finding::ok(&one.name, said),
    }
}

async fn call(name: &str, http: HttpConfig, patience: Duration, advice: Option<String>) -> Finding {
    let (url, begun) = (http.shown_url().to_owned(), Instant::now());
    let asking = async {
        let client =
            reach::open(http, RevisionChoice::Auto, patience, QuestionHandler::Decline, Arc::new(SilentObserver))
                .await?;
        let tools = if client.has("tools") { client.tools().await.map(|tools| tools.len()) } else { Ok(0) };
        client.close().await;
        Ok((client.greeting.clone(), tools?))
    };
    let late = |_| Err(ClientError::Timeout { what: "answer".to_owned(), after: patience });
    let outcome = timeout(patience, asking).await.unwrap_or_else(late);
    let milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let finding = match outcome {
        Ok((greeting, tools)) => {
            #[expect(clippy::cast_precision_loss, reason = "a time to be shown")]
            let time = took(milliseconds as f64);
            let server = format!("{} {}", greeting.name, greeting.version);
            let tools = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
            Finding::ok(name, format!("up: answers in {time}: {}, {}, {tools}", server.trim(), greeting.revision))
        }
        Err(fault) => {
            let finding = Finding::error(name, &fault.explained(&url, advice.as_deref()));
            Finding { fix: finding.fix.clone().or(advice), ..finding }
        }
    };
    Finding { took_ms: Some(milliseconds), ..finding }
}

#[cfg(test)]
mod tests {
    use prism_api::status::LastTrouble;

    use super::*;

    #[test]
    fn who_does_not_say_why_is_shown_with_what_went_wrong_last() {
        let mut status = StatusReport::default();
        let last = LastTrouble { text: "its process ended: exit status: 1".to_owned(), ago_s: 125.0 };
        status.destinations.push(DestinationStatus {
            name: "files".to_owned(),
            ready: true,
            last_error: Some(last),
            ..DestinationStatus::default()
        });
        let finding = Finding::error("files", &anyhow::anyhow!("the response ended before the answer"));
        let told = reasoned(finding.clone(), Some(&status), true);
        assert_eq!(told.said, "the response ended before the answer\n2 min ago: its process ended: exit status: 1");
        assert_eq!(told.fix.as_deref(), Some("prism logs has the rest"));
        let alone = reasoned(finding, None, false);
        assert!(!alone.said.contains("ago") && alone.fix.is_some(), "{alone:?}");
    }
}
