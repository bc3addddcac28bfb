//! What a request says: the parameters of every method we serve, and in the modern era who sent it.

use std::path::PathBuf;

use prism_core::mcp::{level::LogLevel, modern};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use uuid::Uuid;

use super::CallFailure;
use crate::folder;

/// The members of `params` that any of our methods reads. Their types are loose: each method says what it misses.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct RequestParams {
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
    pub(super) name: Option<Value>,
    pub(super) arguments: Option<Box<RawValue>>,
    pub(super) cursor: Option<Value>,
    pub(super) uri: Option<Value>,
    pub(super) level: Option<Value>,
    pub(super) notifications: Option<Value>,
    pub(super) input_responses: Map<String, Value>,
    pub(super) request_state: Option<Value>,
    pub(super) protocol_version: Option<Value>,
    #[serde(rename = "ref")]
    pub(super) reference: Option<Value>,
    pub(super) argument: Option<Value>,
    pub(super) context: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    #[serde(rename = "progressToken")]
    pub(super) token: Option<Value>,
    pub(super) correlation_id: Option<Value>,
    /// Put there at the door, and only for the servers `prism` and `workspace`: see [`CallerMark`].
    #[serde(rename = "prism/caller")]
    pub(super) caller: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo")]
    info: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/logLevel")]
    level: Option<Value>,
}

/// Where the door says who calls; what a client says there does not get past it.
pub const CALLER: &str = "prism/caller";

/// Who calls, as Prism's door has it. It is on calls, prompts and resources that are read, not on lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerMark {
    /// The MCP session that the call was made in; at the hub, the hub's own.
    pub session: Option<Uuid>,
    /// The run of `prism stdio` that it came through.
    pub instance: Option<Uuid>,
    /// `http`, `sse` or `stdio`.
    pub transport: String,
    /// What the client calls itself.
    pub client: Option<String>,
    /// The pane of the user's own tmux that it runs in, as in `%3`.
    pub tmux_pane: Option<String>,
    /// The folder that its run of `prism stdio` was started in.
    pub folder: Option<PathBuf>,
}

impl CallerMark {
    pub(super) fn read(mark: &Value) -> Option<Self> {
        let text = |name: &str| mark.get(name)?.as_str().map(str::to_owned);
        let id = |name: &str| Uuid::try_parse(mark.get(name)?.as_str()?).ok();
        Some(Self {
            session: id("session"),
            instance: id("instance"),
            transport: text("transport")?,
            client: text("client"),
            tmux_pane: text("tmux_pane"),
            folder: text("folder").and_then(|folder| folder::unescaped(&folder)),
        })
    }
}

/// Who sent a request of the modern era.
#[derive(Debug)]
pub(super) struct CallingClient {
    pub(super) capabilities: Value,
    info: Value,
    /// Without one it wants no notes.
    pub(super) level: Option<LogLevel>,
}

impl RequestParams {
    pub(super) fn read(text: Option<&str>) -> Result<Self, CallFailure> {
        let Some(text) = text else { return Ok(Self::default()) };
        // A derived struct would take an array, member by member.
        if !text.starts_with('{') {
            return Err(CallFailure::invalid("params must be an object"));
        }
        serde_json::from_str(text).map_err(|error| {
            let why = error.to_string();
            CallFailure::invalid(format!("params: {}", why.split(" at line ").next().unwrap_or_default()))
        })
    }

    /// Whether the request says that it is of the modern era.
    pub(super) fn claims_modern(&self) -> bool {
        self.meta.version.is_some()
    }

    pub(super) fn string<'a>(value: &'a Option<Value>, name: &str) -> Result<&'a str, CallFailure> {
        let text = value.as_ref().and_then(Value::as_str);
        text.ok_or_else(|| CallFailure::invalid(format!("{name} is missing, or no string")))
    }

    pub(super) fn arguments(&self) -> &str {
        self.arguments.as_deref().map_or("{}", RawValue::get)
    }
}

impl CallingClient {
    /// Reads what a request must say, and says what is missing (mcp-eras 1.4).
    pub(super) fn read(meta: &Meta) -> Result<Self, CallFailure> {
        let missing =
            |name: &str| CallFailure::invalid(format!("params._meta must have \"io.modelcontextprotocol/{name}\""));
        let version = meta.version.as_ref().and_then(Value::as_str).ok_or_else(|| missing("protocolVersion"))?;
        let capabilities = meta.capabilities.as_ref().filter(|it| it.is_object());
        let capabilities = capabilities.ok_or_else(|| missing("clientCapabilities"))?.clone();
        let level = match &meta.level {
            None => None,
            Some(name) => Some(level(name)?),
        };
        if version != modern::VERSION {
            return Err(wrong_version(version.into()));
        }
        Ok(Self { capabilities, info: meta.info.clone().unwrap_or_default(), level })
    }

    /// The client in the words of an `initialize`.
    pub(super) fn introduction(&self) -> Value {
        json!({"protocolVersion": modern::VERSION, "capabilities": self.capabilities, "clientInfo": self.info})
    }
}

/// Refuses what is of another revision, and says which is spoken here.
pub(super) fn wrong_version(requested: Value) -> CallFailure {
    let data = json!({"supported": [modern::VERSION], "requested": requested});
    CallFailure::error(modern::UNSUPPORTED_VERSION, "unsupported protocol version").with_data(data)
}

pub(super) fn level(name: &Value) -> Result<LogLevel, CallFailure> {
    let level = name.as_str().and_then(LogLevel::named);
    level.ok_or_else(|| {
        CallFailure::invalid(
            "unknown log level; one of debug, info, notice, warning, error, critical, alert, emergency",
        )
    })
}
