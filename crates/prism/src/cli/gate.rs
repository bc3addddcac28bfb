//! The gate, as the commands ask it of the daemon: with the management secret, which is the person's. What is asked, and
//! what is made of the answer, is each command's own affair.

use std::{process::ExitCode, time::Duration};

use anyhow::{anyhow, bail};
use prism_api::gate::{ConfirmationView, ConfirmationsPage, GrantView, GrantsPage, RequestView, RequestsPage};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    columns::width,
    moments::now_ms,
    say::{self, Line},
    verbs::{Answered, DaemonCallError, EventFeed, MeshClient, PATIENCE, say_not_running},
};
use prism_config::{Env, home};

/// Letters of an id that are shown at least, so that it looks like one.
const SHORTEST: usize = 8;

/// The gate of a daemon, and the right to decide there.
pub(super) struct GateClient(MeshClient);

/// Something of the gate that has an id.
pub(super) trait Identified: Serialize {
    const KIND: GateRowKind;

    fn id(&self) -> &str;
}

/// Things of the gate that have an id each.
pub(super) struct GateRows<V> {
    pub(super) rows: Vec<Answered<V>>,
}

pub(super) struct GateRowKind {
    /// What one of them is called.
    what: &'static str,
    /// Which member of an answer has them.
    page: &'static str,
    /// What shows them all.
    shown_by: &'static str,
}

impl Identified for RequestView {
    const KIND: GateRowKind = GateRowKind { what: "request", page: "requests", shown_by: "prism requests --all" };

    fn id(&self) -> &str {
        &self.request_id
    }
}

impl Identified for GrantView {
    const KIND: GateRowKind = GateRowKind { what: "grant", page: "sessions", shown_by: "prism grants" };

    fn id(&self) -> &str {
        &self.session_id
    }
}

impl Identified for ConfirmationView {
    const KIND: GateRowKind =
        GateRowKind { what: "confirmation", page: "confirmations", shown_by: "prism confirmations" };

    fn id(&self) -> &str {
        &self.confirmation_id
    }
}

/// Shows what was asked for: as JSON, in lines, or that there is none.
pub(super) fn show<V: Identified>(
    listed: Result<GateRows<V>, DaemonCallError>,
    as_json: bool,
    none: &str,
    lines: impl FnOnce(&GateRows<V>, usize, i64) -> Vec<Line>,
) -> anyhow::Result<ExitCode> {
    let listed = match listed {
        Err(DaemonCallError::Away(_)) => return Ok(say_not_running()),
        listed => listed?,
    };
    match as_json {
        true => {
            say::text(&serde_json::to_string_pretty(&json!({ V::KIND.page: listed.rows }))?);
        }
        false if listed.rows.is_empty() => say::line(none),
        false => lines(&listed, width(), now_ms()).iter().for_each(say::coloured),
    }
    Ok(ExitCode::SUCCESS)
}

// === impl GateClient ===

impl GateClient {
    /// Returns the gate of the daemon that runs; `None` if none does.
    pub(super) fn running(env: &Env) -> anyhow::Result<Option<Self>> {
        let client = MeshClient::running(env)?;
        match (home::existing_management(env)?, client) {
            (Some(secret), _) => Ok(MeshClient::shown(env, secret)?.map(Self)),
            (None, None) => Ok(None),
            (None, Some(_)) => bail!(
                "the daemon that runs has no management secret, so it is older than the gate\n  fix: prism restart"
            ),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, DaemonCallError> {
        self.0.get(path).await.map_err(understood)
    }

    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, DaemonCallError> {
        self.0.post(path, body, PATIENCE).await.map_err(understood)
    }

    /// What happens there, as it happens.
    pub(super) async fn events(&self) -> Result<EventFeed, DaemonCallError> {
        self.0.events_at("/mcp/events").await.map_err(understood)
    }

    pub(super) async fn requests(&self, all: bool) -> Result<GateRows<RequestView>, DaemonCallError> {
        let path = if all { "/mcp/requests" } else { "/mcp/requests?open=1" };
        self.list(path, |RequestsPage { requests }| requests).await
    }

    pub(super) async fn grants(&self, all: bool) -> Result<GateRows<GrantView>, DaemonCallError> {
        let path = if all { "/mcp/sessions?all=1" } else { "/mcp/sessions" };
        self.list(path, |GrantsPage { sessions }| sessions).await
    }

    pub(super) async fn confirmations(&self, all: bool) -> Result<GateRows<ConfirmationView>, DaemonCallError> {
        let path = if all { "/mcp/confirmations?all=1" } else { "/mcp/confirmations" };
        self.list(path, |ConfirmationsPage { confirmations }| confirmations).await
    }

    async fn list<P: DeserializeOwned, V: Identified>(
        &self,
        path: &str,
        rows: impl FnOnce(P) -> Vec<V>,
    ) -> Result<GateRows<V>, DaemonCallError> {
        let raw: Value = self.get(path).await?;
        let page = P::deserialize(&raw).map_err(|error| DaemonCallError::Strange(error.to_string()))?;
        let as_came = raw.get(V::KIND.page).and_then(Value::as_array).cloned().unwrap_or_default();
        let rows = rows(page).into_iter().zip(as_came).map(|(row, raw)| Answered::new(row, raw)).collect();
        Ok(GateRows { rows })
    }
}

/// Says what a refusal means here.
pub(super) fn understood(trouble: DaemonCallError) -> DaemonCallError {
    let DaemonCallError::Refused { code, message } = trouble else { return trouble };
    let message = match code.as_str() {
        "no_mesh" => "the daemon that runs has no gate".to_owned(),
        "not_pending" => format!("{message}\n  fix: prism requests --all shows what came of it"),
        "forbidden" => format!("{message}\n  fix: leave it out; the agent can ask for more"),
        "changed" => format!("{message}\n  fix: prism confirmations"),
        "unauthorized" => {
            format!("{message}\n  fix: unset MCP_TOKEN, or set it as it was where the daemon was started")
        }
        _ => message,
    };
    // The other hints are those of the mesh.
    let code = if matches!(code.as_str(), "no_mesh") { code } else { "refused".to_owned() };
    DaemonCallError::Refused { code, message }
}

/// A duration as the gate takes it. A part of a second is better rounded up than taken for nothing.
pub(super) fn seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

// === impl GateRows ===

impl<V: Identified> GateRows<V> {
    /// Finds one by its id, or by as much of it as is needed.
    pub(super) fn find(&self, typed: &str) -> anyhow::Result<&Answered<V>> {
        let (wanted, kind) = (plain(typed), V::KIND);
        let found: Vec<&Answered<V>> = self.rows.iter().filter(|row| plain(row.id()).starts_with(&wanted)).collect();
        match found.as_slice() {
            _ if wanted.is_empty() => Err(anyhow!("an empty word names no {}", kind.what)),
            [] => Err(anyhow!("no {} {typed:?}\n  fix: {} shows them", kind.what, kind.shown_by)),
            [one] => Ok(one),
            several => {
                let ids: Vec<&str> = several.iter().take(5).map(|row| row.id()).collect();
                Err(anyhow!(
                    "{} {}s begin with {typed:?}: {}\n  fix: type more of the id",
                    several.len(),
                    kind.what,
                    ids.join(", ")
                ))
            }
        }
    }

    /// As much of an id as tells it from the others.
    pub(super) fn short<'a>(&self, row: &'a V) -> &'a str {
        let own = row.id();
        let shared = |other: &str| own.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let others = self.rows.iter().map(|other| other.id()).filter(|other| *other != own);
        let needed = others.map(|other| shared(other) + 1).max().unwrap_or_default().max(SHORTEST);
        own.get(..needed.min(own.len())).unwrap_or(own).trim_end_matches('-')
    }
}

/// An id without its dashes, which nobody has to type.
fn plain(id: &str) -> String {
    id.chars().filter(|c| *c != '-').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(ids: &[&str]) -> GateRows<RequestView> {
        let view = |id: &str| RequestView { request_id: id.to_owned(), ..RequestView::default() };
        let rows = ids.iter().map(|id| Answered::new(view(id), Value::Null)).collect();
        GateRows { rows }
    }

    #[test]
    fn one_is_found_by_as_much_of_its_id_as_is_needed() {
        let two = listed(&["0199aaaa-0001-7000-8000-000000000001", "0199aaaa-0002-7000-8000-000000000002"]);
        for typed in ["0199aaaa-0001", "0199AAAA0001", "0199aaaa-0001-7000-8000-000000000001"] {
            assert_eq!(two.find(typed).unwrap().id(), "0199aaaa-0001-7000-8000-000000000001");
        }
        let why = |typed: &str| two.find(typed).unwrap_err().to_string();
        assert!(why("0199").starts_with("2 requests begin with \"0199\": 0199aaaa-0001-7000"), "{}", why("0199"));
        assert_eq!(why("7"), "no request \"7\"\n  fix: prism requests --all shows them");
        assert!(two.find("-").is_err() && two.find("").is_err());
        for row in &two.rows {
            assert_eq!(two.short(row).len(), "0199aaaa-0001".len());
            assert!(two.find(two.short(row)).is_ok());
        }
        let one = listed(&["0199aaaa-0001-7000-8000-000000000001"]);
        assert_eq!(one.short(&one.rows[0]), "0199aaaa");
    }
}
