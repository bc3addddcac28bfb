//! What a person does on a page: each is a POST with the secret of the session.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Response, StatusCode};
use prism_api::gate::{ApproveRequest, ConfirmRequest, DenyRequest, RevokeRequest};
use prism_gate::{Gate, GateError, read_id};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{BY, told};
use crate::serve::{
    DaemonSnapshot,
    access::{outcome, parsed, refused},
    body::ResponseBody,
    fault,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConsoleAction {
    Approve,
    Deny,
    Revoke,
    Confirm,
    Restart,
    Verify,
}

impl ConsoleAction {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "approve" => Self::Approve,
            "deny" => Self::Deny,
            "revoke" => Self::Revoke,
            "confirm" => Self::Confirm,
            "restart" => Self::Restart,
            "verify" => Self::Verify,
            _ => return None,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RestartForm {
    destination: String,
}

pub(super) async fn run(server: Arc<DaemonSnapshot>, act: ConsoleAction, body: Bytes) -> Response<ResponseBody> {
    // In a task of its own: a browser that leaves must not leave half a thing done.
    let work = tokio::spawn(async move { done(&server, act, &body).await });
    let bug = |_| Err(GateError::new("failed", 500, "Prism has a bug there; its log has more"));
    match work.await.unwrap_or_else(bug) {
        Ok(result) => fault::json(StatusCode::OK, result.to_string()),
        Err(trouble) => refused(&trouble),
    }
}

async fn done(server: &Arc<DaemonSnapshot>, act: ConsoleAction, body: &Bytes) -> Result<Value, GateError> {
    let gate = || server.gate.as_deref().ok_or_else(no_gate);
    Ok(match act {
        ConsoleAction::Approve => {
            // The token is the agent's: it claims it, and nobody at a browser needs to see it.
            let given = gate()?.approve(parsed::<ApproveRequest>(body)?, BY, false).await?;
            json!({"session_id": given.id})
        }
        ConsoleAction::Deny => {
            let DenyRequest { request_id, reason } = parsed(body)?;
            json!(outcome(gate()?.deny(read_id(&request_id)?, reason, BY).await?))
        }
        ConsoleAction::Revoke => {
            let RevokeRequest { session_id } = parsed(body)?;
            json!(gate()?.revoke(read_id(&session_id)?, BY).await?)
        }
        ConsoleAction::Confirm => json!(outcome(gate()?.confirm(parsed::<ConfirmRequest>(body)?, BY).await?)),
        ConsoleAction::Restart => restart(server, parsed(body)?).await?,
        ConsoleAction::Verify => {
            super::pages::verify(server, gate()?);
            json!({})
        }
    })
}

async fn restart(server: &DaemonSnapshot, RestartForm { destination }: RestartForm) -> Result<Value, GateError> {
    let known = server.destinations.get(&destination).filter(|known| !known.is_built_in());
    let gone = || GateError::new("unknown_destination", 404, "there is no such server any more");
    let restarted = known.ok_or_else(gone)?.restart().await;
    if let Some(gate) = &server.gate {
        gate.record_person(BY, "restart_destination", &json!({"destination": destination}), "ok");
    }
    Ok(json!({"restarted": restarted}))
}

/// Writes down who came in, and who could not.
pub(super) fn record_login(gate: Option<&Gate>, entered: bool) {
    let Some(gate) = gate else { return };
    if entered {
        gate.record_person(BY, "console_login", &json!({}), "ok");
    } else {
        gate.metrics.failed_auth("console_login");
        gate.record_refusal("?", "console_login", &json!({}), "a link that opens nothing");
    }
}

fn no_gate() -> GateError {
    GateError::new("failed", 503, "this daemon has no gate, as it has no database; `prism doctor` says why")
}

/// The same for what is no JSON: a page that cannot be shown.
pub(super) fn unshown(trouble: &GateError) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(trouble.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    told(status, trouble.code, &trouble.message)
}
