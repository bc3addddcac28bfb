//! `prism agent close`: gives the grant back.

use std::process::ExitCode;

use anyhow::bail;
use prism_api::gate::{GrantsRevoked, RevokeRequest};
use serde_json::json;

use super::{
    AgentContext,
    kept::{NONE, SavedSession},
};
use crate::cli::{
    gate::understood,
    reach, say,
    verbs::{DaemonCallError, MeshClient, PATIENCE, say_not_running},
};

#[derive(Debug, clap::Args)]
pub(super) struct AgentCloseArgs {}

impl AgentCloseArgs {
    pub(super) fn run(self, around: &AgentContext<'_>) -> anyhow::Result<ExitCode> {
        reach::run(async move {
            let Some(kept) = SavedSession::find(around)? else { bail!(NONE) };
            let Some(given) = &kept.given else {
                kept.forget(around.env)?;
                said(around, 0, &format!("nothing was granted yet; to withdraw it: prism deny {}", kept.request_id))?;
                return Ok(ExitCode::SUCCESS);
            };
            let Some(mesh) = MeshClient::shown(around.env, given.token()?)? else { return Ok(say_not_running()) };
            let told =
                mesh.post("/mcp/revoke", &RevokeRequest { session_id: given.session_id.clone() }, PATIENCE).await;
            let revoked = match told.map_err(understood) {
                Ok(GrantsRevoked { revoked, .. }) => revoked,
                // It is over already, which is what was wanted.
                Err(DaemonCallError::Refused { code, .. })
                    if ["expired", "revoked", "unauthorized"].contains(&code.as_str()) =>
                {
                    0
                }
                Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
                Err(trouble) => return Err(trouble.into()),
            };
            kept.forget(around.env)?;
            said(around, revoked, if revoked == 0 { "it was over already" } else { "closed" })?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

fn said(around: &AgentContext<'_>, revoked: usize, words: &str) -> anyhow::Result<()> {
    match around.json {
        true => say::text(&serde_json::to_string_pretty(&json!({"revoked": revoked, "message": words}))?),
        false => say::line(words),
    }
    Ok(())
}
