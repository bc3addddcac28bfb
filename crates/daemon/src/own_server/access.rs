//! The gate as tools: how an agent asks for access, hears what a person decided, hands a part of it on and gives it back.
//! What they do is in `prism_gate`; here is what a model reads of them. No tool decides: a person does, elsewhere.

use std::{sync::Arc, time::Duration};

use prism_api::gate::{AccessRequest, AccessRequested, AskerView, GrantUsage, NarrowRequest};
use prism_gate::{Gate, GateError};
use prism_mcp::kit::{BuiltinServer, CallFailure, ServerCall, ToolHints, ToolReply, TypedTool};
use prism_mesh::{Mesh, tools::caller};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;
use uuid::Uuid;

/// The longest that one call waits for a decision: less than most clients wait for an answer.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// How often a client that waits hears that it still does.
const PROGRESS: Duration = Duration::from_secs(5);

/// What the tools stand on.
#[derive(Clone)]
pub struct AccessContext {
    pub gate: Arc<Gate>,
    pub mesh: Option<Arc<Mesh>>,
    /// Where a holder connects to, as in `http://127.0.0.1:7420`.
    pub base: String,
}

/// Adds the tools to Prism's own server.
pub(super) fn with(server: BuiltinServer, access: &AccessContext) -> BuiltinServer {
    server
        .tool(RequestAccessTool(access.clone()))
        .tool(AccessStatusTool(access.clone()))
        .tool(AccessNarrowTool(access.clone()))
        .tool(AccessRevokeTool(access.clone()))
}

fn failed(trouble: GateError) -> CallFailure {
    CallFailure::trouble(format!("{} ({})", trouble.message, trouble.code))
}

fn id(text: &str) -> Result<Uuid, CallFailure> {
    Uuid::try_parse(text.trim()).map_err(|_| CallFailure::trouble(format!("{text:?} is no id: it is a UUID")))
}

/// How the holder of a grant goes on.
fn how_to_use(base: &str, session: &str) -> GrantUsage {
    let host = base.strip_prefix("http").unwrap_or(base);
    let note = "Keep the token to yourself: whoever has it can do what you may. Never put it in a URL. \
                What deletes or runs something waits until the person has seen it.";
    GrantUsage {
        url: format!("ws{host}/mcp/session/{session}"),
        mcp: format!("{base}/editor/mcp"),
        header: "Authorization: Bearer SESSION_TOKEN".to_owned(),
        send: json!({"type": "cmd", "id": "1", "action": "open_file", "args": {"path": "PATH BENEATH A ROOT"}}),
        note: note.to_owned(),
    }
}

/// `prism_request_access`.
struct RequestAccessTool(AccessContext);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RequestAccessArguments {
    /// What for, in words for the person who decides.
    reason: String,
    /// Absolute paths of the folders that you need; all beneath each is meant.
    roots: Vec<String>,
    /// What you need to do there, as in read:files, edit:buffers or git:*. Ask for no more than you need.
    #[serde(default)]
    scopes: Vec<String>,
    /// Scopes by kind: basic (read-only), standard (development), advanced (files come and go, commands, git) or
    /// restricted (neither writes nor runs).
    preset: Option<String>,
    /// Who asks. Leave it out if you have called prism_start.
    agent_id: Option<String>,
    /// How long you need it.
    ttl_seconds: Option<u64>,
}

impl TypedTool for RequestAccessTool {
    type Arguments = RequestAccessArguments;
    const NAME: &'static str = "prism_request_access";
    const TITLE: &'static str = "Ask a person for access";
    const DESCRIPTION: &'static str = "Asks the person for access to folders of this machine. A person decides, not you and \
        not this tool: nothing is granted when it returns. Keep `request_id` and `claim`, and call prism_access_status with \
        both. Ask once, with a reason a person understands.";
    const HINTS: ToolHints = ToolHints::ADDS;

    async fn call(&self, given: RequestAccessArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let AccessContext { gate, mesh, .. } = &self.0;
        let registered = mesh.as_ref().and_then(|mesh| mesh.agent_of(&caller(call)));
        let agent_id = match (given.agent_id, &registered) {
            (Some(named), _) if !named.trim().is_empty() => named,
            (_, Some(registered)) => registered.clone(),
            _ => {
                let why = "nobody knows who you are: give `agent_id`, or call prism_start first";
                return Err(CallFailure::trouble(why));
            }
        };
        let client = call.client();
        let word = |name: &str| client["clientInfo"][name].as_str().map(str::to_owned);
        let client = [word("name"), word("version")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        let client = Some(client).filter(|client| !client.is_empty());
        let asker = AskerView { via: "mcp".to_owned(), agent: registered, client };
        let RequestAccessArguments { reason, roots, scopes, preset, ttl_seconds, .. } = given;
        let ask = AccessRequest { agent_id, scopes, roots, reason, preset, ttl_seconds };
        let asked = gate.request(ask, asker).await.map_err(failed)?;
        let next = "A person decides, in the console (`prism console`) or with `prism approve`. Tell them if they are not at \
                    it, and call prism_access_status with request_id and claim; it can wait.";
        Ok(ToolReply::structured(AccessRequested { next: next.to_owned(), ..asked }))
    }
}

/// `prism_access_status`.
struct AccessStatusTool(AccessContext);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccessStatusArguments {
    /// What prism_request_access returned.
    request_id: String,
    /// What it returned with it.
    claim: String,
    /// How long to wait for a decision, 60 at most.
    #[serde(default)]
    wait_seconds: u64,
}

impl TypedTool for AccessStatusTool {
    type Arguments = AccessStatusArguments;
    const NAME: &'static str = "prism_access_status";
    const TITLE: &'static str = "What came of a request for access";
    const DESCRIPTION: &'static str = "Says whether a person has decided on your request. Once it is approved, it returns \
        the grant's `session_token`, once: keep it. A denial says why; do not ask for the same again.";
    const HINTS: ToolHints = ToolHints::ADDS;

    async fn call(&self, given: AccessStatusArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let AccessContext { gate, base, .. } = &self.0;
        let request = id(&given.request_id)?;
        let begun = Instant::now();
        let within = Duration::from_secs(given.wait_seconds).min(MAX_WAIT);
        let mut told = loop {
            let left = within.saturating_sub(begun.elapsed());
            // To its end, though the client may have left meanwhile: a token that was made must not be lost half way.
            let (asked, claim) = (gate.clone(), given.claim.clone());
            let asking = tokio::spawn(async move { asked.claim(request, &claim, left.min(PROGRESS)).await });
            let told = asking.await.map_err(|_| CallFailure::trouble("Prism has a bug there; its log has more"))?;
            let told = told.map_err(failed)?;
            if !told.status.is_open() || left.is_zero() || call.is_cancelled() {
                break told;
            }
            call.progress(begun.elapsed().as_secs(), Some(within.as_secs()), "waiting for the person's decision");
        };
        if told.status.is_open() {
            let next = "Nobody has decided yet. Do something else, or call this again with wait_seconds.";
            told.next = Some(next.to_owned());
        } else if let (Some(session), Some(_)) = (&told.session_id, &told.session_token) {
            told.usage = Some(how_to_use(base, session));
        }
        Ok(ToolReply::structured(told))
    }
}

/// `prism_access_narrow`.
struct AccessNarrowTool(AccessContext);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccessNarrowArguments {
    /// The token of your own grant.
    session_token: String,
    /// The helper's name.
    agent_id: String,
    /// Some of your scopes; all, if left out.
    scopes: Option<Vec<String>>,
    /// Folders beneath yours; all of yours, if left out.
    roots: Option<Vec<String>>,
    /// No longer than your own grant lasts.
    ttl_seconds: Option<u64>,
    /// Actions a second, no more than yours.
    rate_limit: Option<u32>,
    /// The largest edit, no larger than yours.
    max_edit_bytes: Option<u64>,
}

impl TypedTool for AccessNarrowTool {
    type Arguments = AccessNarrowArguments;
    const NAME: &'static str = "prism_access_narrow";
    const TITLE: &'static str = "Hand a part of your grant to a helper";
    const DESCRIPTION: &'static str = "Makes a smaller grant out of yours, for a helper of your own: fewer scopes, folders, \
        less time. Give the helper its `session_token`, never yours. It ends with your grant at the latest.";
    const HINTS: ToolHints = ToolHints::ADDS;

    async fn call(&self, given: AccessNarrowArguments, _call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let AccessContext { gate, base, .. } = &self.0;
        let held = gate.hold(None, given.session_token.trim().as_bytes()).map_err(failed)?;
        let AccessNarrowArguments { agent_id, scopes, roots, ttl_seconds, rate_limit, max_edit_bytes, .. } = given;
        let narrow = NarrowRequest { agent_id, scopes, roots, ttl_seconds, rate_limit, max_edit_bytes };
        let made = gate.narrow(&held, narrow).await.map_err(failed)?;
        let session = made.id.to_string();
        let token = made.token.as_ref().map(prism_config::home::Token::expose);
        Ok(ToolReply::structured(json!({
            "session_id": session, "session_token": token, "expires_at": prism_core::time::rfc3339(made.expires_at),
            "use": how_to_use(base, &session),
        })))
    }
}

/// `prism_access_revoke`.
struct AccessRevokeTool(AccessContext);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AccessRevokeArguments {
    /// The token of your own grant.
    session_token: String,
    /// The grant of a helper of yours to end instead of your own.
    session_id: Option<String>,
}

impl TypedTool for AccessRevokeTool {
    type Arguments = AccessRevokeArguments;
    const NAME: &'static str = "prism_access_revoke";
    const TITLE: &'static str = "Give a grant back";
    const DESCRIPTION: &'static str = "Ends your own grant, with all that came from it, when your work is done; or the grant \
        of a helper of yours.";
    const HINTS: ToolHints = ToolHints::ADDS;

    async fn call(&self, given: AccessRevokeArguments, _call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let gate = &self.0.gate;
        let held = gate.hold(None, given.session_token.trim().as_bytes()).map_err(failed)?;
        let ended = match given.session_id {
            Some(text) => id(&text)?,
            None => Uuid::from_u128(held.id()),
        };
        let taken = gate.give_up(&held, ended).await.map_err(failed)?;
        Ok(ToolReply::structured(json!(taken)))
    }
}
