//! What the pages show: gathered from whoever knows it, at the moment it is asked for.

use std::sync::{Arc, atomic::Ordering};

use hyper::{Response, StatusCode};
use maud::{Markup, html};
use prism_api::status::DestinationStatus;
use prism_store::audit::{self as store, AuditHead, AuditQuery, AuditVerifyError, VerifiedLog};
use uuid::Uuid;

use super::{acts::unshown, html as answer};
use crate::{
    console::{
        audit::{self, AuditView, ChainStatus},
        confirmations,
        destinations::{self, DestinationCard},
        grants,
        page::{self, ConsolePage, PendingCounts},
        requests, signals, untrusted,
        words::Moment,
    },
    serve::{
        DaemonSnapshot,
        access::{unescaped, value},
        body::ResponseBody,
        status,
    },
};
use prism_gate::{Gate, GateError};

/// Audit lines on a page.
const LINES: usize = 100;
/// The longest text that is searched for.
const MAX_QUERY: usize = 200;

/// What is inside the frame of a page.
pub(super) async fn part(server: &Arc<DaemonSnapshot>, page: ConsolePage, query: &str) -> Response<ResponseBody> {
    let now = Moment::now();
    let content = match content(server, page, query, now).await {
        Ok(content) => content,
        Err(trouble) => {
            html! { p.trouble role="alert" data-key="trouble" { b { "This cannot be shown: " } (trouble.message) } }
        }
    };
    let troubles = server.gate.as_ref().map(|gate| gate.record_troubles()).unwrap_or_default();
    let content = html! { (page::troubles(&troubles)) (content) };
    answer(StatusCode::OK, page::part(page, &content, waiting(server), now))
}

async fn content(
    server: &Arc<DaemonSnapshot>,
    page: ConsolePage,
    query: &str,
    now: Moment,
) -> Result<Markup, GateError> {
    let gate = || server.gate.as_deref().ok_or_else(without);
    let shown = match page {
        ConsolePage::Requests => requests::page(&gate()?.requests(false)?, now),
        ConsolePage::Grants => grants::page(&gate()?.grants(false)?, now),
        ConsolePage::Confirmations => confirmations::page(&gate()?.confirmations(false)?, now),
        ConsolePage::Audit => self::audit(server, gate()?, query, now).await?,
        ConsolePage::Destinations => destinations::page(&seen(server).await, now),
        ConsolePage::Signals => {
            let everything = server.mesh.as_ref().and_then(|mesh| mesh.everything().ok());
            signals::page(everything.as_ref(), now)
        }
    };
    let notices = untrusted::notices(&server.life.about.untrusted());
    Ok(html! { (notices) (shown) })
}

async fn audit(server: &Arc<DaemonSnapshot>, gate: &Gate, query: &str, now: Moment) -> Result<Markup, GateError> {
    let text: String = value(query, "q").map(unescaped).unwrap_or_default().chars().take(MAX_QUERY).collect();
    let text = text.trim();
    let before_seq = value(query, "before").and_then(|text| text.parse().ok());
    let wanted = Some(text.to_owned()).filter(|text| !text.is_empty());
    let mut lines =
        gate.lines(AuditQuery { text: wanted, before_seq, limit: LINES + 1, ..AuditQuery::default() }).await?;
    let more = lines.len() > LINES;
    lines.truncate(LINES);
    let before = lines.last().and_then(|line| line.seq).filter(|_| more);
    if server.console().chain.borrow().is_stale(now) {
        verify(server, gate);
    }
    let chain = server.console().chain.borrow().clone();
    Ok(audit::page(&AuditView { lines: &lines, query: text, chain: &chain, before }, now))
}

/// Has the chain checked, from its first line to its last. Pages hear of what was found.
pub(super) fn verify(server: &Arc<DaemonSnapshot>, gate: &Gate) {
    if server.console().checking.swap(true, Ordering::Relaxed) {
        return;
    }
    // Before the lines: they may become more meanwhile.
    let known: Vec<AuditHead> = gate.known_head().into_iter().collect();
    let (server, folder) = (server.clone(), gate.audit.folder().to_owned());
    tokio::task::spawn_blocking(move || {
        let found = store::verify_with_heads(&folder, &known, |_, _| ());
        let at = Moment::now();
        let chain = match found {
            Ok(VerifiedLog { lines, files, head, .. }) => {
                ChainStatus::Holds { lines, files: files as u64, head: head.hash, at }
            }
            Err(AuditVerifyError::Broken(broken)) => ChainStatus::Broken { why: broken.to_string(), at },
            Err(error) => ChainStatus::Broken { why: format!("{:#}", anyhow::Error::from(error)), at },
        };
        server.console().checking.store(false, Ordering::Relaxed);
        server.console().chain.send_replace(chain);
    });
}

/// One request's dialog.
pub(super) fn request(server: &Arc<DaemonSnapshot>, id: &str) -> Response<ResponseBody> {
    let shown = || {
        let gate = server.gate.as_deref().ok_or_else(without)?;
        let id = Uuid::try_parse(id).map_err(|_| GateError::unknown_request())?;
        let longest = gate.settings().gate.max_ttl.as_secs();
        Ok(requests::dialog(&gate.request_view(id)?, longest, Moment::now()))
    };
    match shown() {
        Ok(dialog) => answer(StatusCode::OK, dialog),
        Err(trouble) => unshown(&trouble),
    }
}

/// What waits for the person.
pub(super) fn waiting(server: &DaemonSnapshot) -> PendingCounts {
    let (requests, confirmations) = server.gate.as_ref().and_then(|gate| gate.waiting().ok()).unwrap_or_default();
    let overdue = server.mesh.as_ref().map_or(0, |mesh| mesh.overdue());
    PendingCounts { requests, confirmations, overdue }
}

async fn seen(server: &Arc<DaemonSnapshot>) -> Vec<DestinationCard> {
    let status = status::status(server).await;
    let of = |report: DestinationStatus| DestinationCard {
        stderr: server.destinations.get(&report.name).map(|one| one.stderr()).unwrap_or_default(),
        trend: server.console().trend.of(&report.name),
        report,
    };
    status.destinations.into_iter().map(of).collect()
}

fn without() -> GateError {
    GateError::new("failed", 503, "this daemon has no gate, as it has no database; type `prism doctor` in a terminal")
}
