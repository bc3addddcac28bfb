//! Prism's own server: what it knows of the servers behind it. It is the home of the hub's sessions, so it can do all
//! that the hub can: what it does not have itself, the hub has from its members.

pub mod access;

use std::sync::{Arc, OnceLock, Weak};

use prism_bridge::drive::Hub;
use prism_core::mesh::PENDING;
use prism_mcp::kit::{
    BuiltinServer, CallFailure, CompletionRequest, Completions, Prompts, Resources, ServerCall, ToolHints, ToolReply,
    TypedTool,
};
use prism_mesh::{Mesh, tools};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub const NAME: &str = "prism";

const INSTRUCTIONS: &str = "Prism stands between you and every MCP server that is configured on this machine. Tools, \
    prompts and resources of all of them are here, each under the name of its server: `files__read` is the tool `read` \
    of the server `files`. If one of them is missing, `prism_destinations` says why. Other agents on this machine reach you \
    once you have called `prism_start`. For access to folders that a person has to grant, call `prism_request_access`.";

const OVERVIEW: &str = "prism://destinations";

/// The hub, once there is one: it is made of servers, of which this is the first.
pub type Behind = Arc<OnceLock<Weak<Hub>>>;

pub fn server(behind: &Behind, mesh: Option<&Arc<Mesh>>, access: Option<&access::AccessContext>) -> BuiltinServer {
    let server = BuiltinServer::new(NAME, "Prism", INSTRUCTIONS).tool(DestinationsTool(behind.clone()));
    let server = match mesh {
        Some(mesh) => tools::add_to(server, mesh),
        None => server,
    };
    let server = match access {
        Some(access) => access::with(server, access),
        None => server,
    };
    server
        .tools_change()
        .resources(PrismResources(behind.clone(), mesh.cloned()))
        .prompts(NoPrompts)
        .completions(NoCompletions)
}

/// What the hub knows of its members.
fn overview(behind: &Behind) -> Value {
    let hub = behind.get().and_then(Weak::upgrade);
    let members = hub.iter().flat_map(|hub| hub.overview());
    let members: Vec<Value> = members
        .map(|member| {
            let (state, fix) = (member.health.state.name(), member.health.fix);
            json!({"name": member.name, "state": state, "tools": member.tools, "why": member.why, "fix": fix})
        })
        .collect();
    json!({"destinations": members})
}

/// `prism_destinations`.
struct DestinationsTool(Behind);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl TypedTool for DestinationsTool {
    type Arguments = Nothing;
    const NAME: &'static str = "prism_destinations";
    const TITLE: &'static str = "MCP servers behind Prism";
    const DESCRIPTION: &'static str = "Lists the MCP servers behind Prism: which of them answer, how many tools each has, \
                                       and why one is missing.";
    const HINTS: ToolHints = ToolHints::READS;

    async fn call(&self, Nothing {}: Nothing, _call: &ServerCall) -> Result<ToolReply, CallFailure> {
        Ok(ToolReply::structured(overview(&self.0)))
    }
}

struct PrismResources(Behind, Option<Arc<Mesh>>);

impl Resources for PrismResources {
    const LIST_CHANGES: bool = true;

    async fn list(&self, _call: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        let overview = json!({
            "uri": OVERVIEW,
            "name": "destinations",
            "title": "MCP servers behind Prism",
            "mimeType": "application/json",
        });
        let pending = json!({
            "uri": PENDING,
            "name": "signals",
            "title": "Signals that wait for you",
            "description": "How many there are. They are read with prism_signals_pending.",
            "mimeType": "application/json",
        });
        Ok([overview].into_iter().chain(self.1.as_ref().map(|_| pending)).collect())
    }

    fn can_watch(&self, uri: &str) -> bool {
        let of_one = |rest: &str| rest.strip_prefix('/').is_some_and(|id| Uuid::try_parse(id).is_ok());
        uri.strip_prefix(PENDING).is_some_and(|rest| rest.is_empty() || of_one(rest))
    }

    async fn read(&self, uri: &str, call: &ServerCall) -> Result<Vec<Value>, CallFailure> {
        match uri {
            _ if self.can_watch(uri) => {
                let session = uri.strip_prefix(PENDING).and_then(|rest| rest.strip_prefix('/'));
                let mesh = self.1.as_ref().ok_or_else(|| CallFailure::no_resource(uri))?;
                let text = json!(tools::waiting(mesh, session, call)?).to_string();
                Ok(vec![json!({"uri": uri, "mimeType": "application/json", "text": text})])
            }
            OVERVIEW => {
                let text = overview(&self.0).to_string();
                Ok(vec![json!({"uri": OVERVIEW, "mimeType": "application/json", "text": text})])
            }
            _ => Err(CallFailure::no_resource(uri)),
        }
    }
}

/// The prompts are all the members'.
struct NoPrompts;

impl Prompts for NoPrompts {
    const LIST_CHANGES: bool = true;

    fn list(&self) -> Vec<Value> {
        Vec::new()
    }

    async fn get(&self, name: &str, _arguments: Map<String, Value>, _call: &ServerCall) -> Result<Value, CallFailure> {
        Err(CallFailure::invalid(format!("unknown prompt: {name}")))
    }
}

struct NoCompletions;

impl Completions for NoCompletions {
    async fn complete(&self, _asked: &CompletionRequest) -> Result<Vec<String>, CallFailure> {
        Ok(Vec::new())
    }
}
