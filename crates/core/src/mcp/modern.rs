//! The modern era's messages (2026-07-28): what each must carry, and the same told in the other era's words.
//!
//! A modern request names its revision, its client's capabilities and its log level in `params._meta`. None of that
//! reaches a legacy server, which would not know it or, being of both eras, take it for a claim.

use std::{borrow::Cow, fmt::Write};

use super::{
    hello::{ClientClass, OWN_INFO, ServerGreeting},
    level::LogLevel,
};
use crate::wire::{Members, Message, Method, members::JsonString, text};

/// The one revision of this era.
pub const VERSION: &str = "2026-07-28";

const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The extension for tasks.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// How long a client may keep a list that is not a modern server's own. Few clients of this revision open a stream of
/// changes (docs/eras.md); all others look when they ask the next time, and asking a daemon costs nothing.
pub const LIST_TTL_MS: u32 = 0;
/// How long it may keep what the server is.
pub const DISCOVER_TTL_MS: u32 = 300_000;

pub const HEADER_MISMATCH: i32 = -32020;
pub const MISSING_CAPABILITY: i32 = -32021;
pub const UNSUPPORTED_VERSION: i32 = -32022;

/// The routing headers of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoutingHeaders<'a> {
    pub version: RoutingHeader<'a>,
    pub method: RoutingHeader<'a>,
    pub name: RoutingHeader<'a>,
}

/// One header: not there, there once, or there more than once, which is as good as a lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingHeader<'a> {
    #[default]
    Absent,
    Once(&'a str),
    Repeated,
}

/// What a request says of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientMeta {
    pub class: ClientClass,
    pub level: Option<LogLevel>,
    /// `clientInfo` as it was written; empty if it was left out.
    pub info: Box<str>,
    /// Whether it knows the extension for tasks.
    pub tasks: bool,
}

/// Why a request is not served (mcp-eras 1.4, in that order).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// `_meta` lacks a member, or has one of another type.
    Meta(String),
    /// The headers and the body say different things.
    Mismatch(String),
    /// A revision that is not served in this way.
    Version { requested: String },
    /// A method that the era does not have.
    Method,
}

/// Checks a request that claims to be of this era, or whose header does.
pub fn check(message: &Message, method: Method, headers: &RoutingHeaders) -> Result<ClientMeta, RequestFault> {
    let meta = message.params().meta.and_then(|span| Members::read(message.text(span))).unwrap_or_default();
    // Another reader would take the other one (invariant 6).
    for name in [PROTOCOL_VERSION, CAPABILITIES, CLIENT_INFO, LOG_LEVEL] {
        if meta.iter().filter(|(known, _)| *known == name).count() > 1 {
            return Err(RequestFault::Meta(format!("`params._meta` has {name:?} more than once")));
        }
    }
    let missing = |name: &str| RequestFault::Meta(format!("`params._meta` must have {name:?}"));
    let version = meta.string(PROTOCOL_VERSION).ok_or_else(|| missing(PROTOCOL_VERSION))?;
    let class = meta.get(CAPABILITIES).and_then(ClientClass::read).ok_or_else(|| missing(CAPABILITIES))?;
    let level = match meta.get(LOG_LEVEL) {
        None => None,
        Some(raw) => {
            let level = meta.string(LOG_LEVEL).and_then(|name| LogLevel::named(&name));
            Some(level.ok_or_else(|| RequestFault::Meta(format!("unknown log level {raw}")))?)
        }
    };
    let mismatch = |why: &str| Err(RequestFault::Mismatch(why.to_owned()));
    if headers.version != RoutingHeader::Once(&version) {
        return mismatch("MCP-Protocol-Version must be there, once, and name the revision of the body");
    }
    if version != VERSION {
        return Err(RequestFault::Version { requested: version.into_owned() });
    }
    if message.method().is_none_or(|name| headers.method != RoutingHeader::Once(&name)) {
        return mismatch("Mcp-Method must be there, once, and name the method of the body");
    }
    let named = match method {
        Method::ToolsCall | Method::PromptsGet => message.params().name,
        Method::ResourcesRead => message.params().uri,
        _ => None,
    };
    if let Some(wanted) = message.string(named) {
        let shown = match headers.name {
            RoutingHeader::Once(value) => decoded(value),
            RoutingHeader::Absent | RoutingHeader::Repeated => None,
        };
        if shown.is_none_or(|shown| shown != wanted) {
            return mismatch("Mcp-Name must be there, once, and name what the body names");
        }
    }
    if method.is_legacy_only() {
        return Err(RequestFault::Method);
    }
    let info = meta.get(CLIENT_INFO).unwrap_or_default().into();
    let tasks = meta.get(CAPABILITIES).is_some_and(|text| text.contains(TASKS) && declares_tasks(text));
    Ok(ClientMeta { class, level, info, tasks })
}

fn declares_tasks(capabilities: &str) -> bool {
    let capabilities = Members::read(capabilities);
    capabilities.is_some_and(|all| all.object("extensions").is_some_and(|known| known.get(TASKS).is_some()))
}

/// The text that a header's value stands for; `None` if it is broken (mcp-eras 1.8).
pub fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let value = value.trim();
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(coded) => String::from_utf8(from_base64(coded)?).ok().map(Cow::Owned),
        None => Some(Cow::Borrowed(value)),
    }
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > 2 {
        return None;
    }
    let (mut out, mut bits, mut count) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for byte in digits.bytes() {
        let value = ALPHABET.iter().position(|known| *known == byte)?;
        bits = (bits << 6) | u32::try_from(value).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from((bits >> count) & 0xFF).ok()?);
        }
    }
    // What is left over must be empty: two texts for one value would be two names for one thing.
    (bits & ((1 << count) - 1) == 0).then_some(out)
}

// === Towards a legacy server ===

/// The `_meta` of a request as a legacy server may see it, with our progress token if the client had one.
pub fn meta_to_legacy(meta: &str, number: u64) -> String {
    let Some(mut members) = Members::read(meta) else { return "{}".to_owned() };
    for name in [PROTOCOL_VERSION, CAPABILITIES, CLIENT_INFO, LOG_LEVEL] {
        members.remove(name);
    }
    if members.get("progressToken").is_some() {
        members.set("progressToken", number.to_string());
    }
    members.to_string()
}

/// A legacy server's result as a modern client wants it: with its kind, its hints, and the server's name.
pub fn result_to_modern(method: Method, result: &str, greeting: Option<&ServerGreeting>) -> String {
    let mut out = String::with_capacity(result.len() + 160);
    out.push_str(r#"{"resultType":"complete""#);
    if method.is_cacheable() {
        let _ = write!(out, r#","ttlMs":{LIST_TTL_MS},"cacheScope":"private""#);
    }
    let members = Members::read(result).unwrap_or_default();
    let ours = ["resultType", "_meta"];
    let hints = ["ttlMs", "cacheScope"];
    for (name, raw) in members.iter() {
        if !(ours.contains(&name) || method.is_cacheable() && hints.contains(&name)) {
            let _ = write!(out, ",{}:{raw}", JsonString(name));
        }
    }
    let mut meta = members.object("_meta").unwrap_or_default();
    if let Some(info) = greeting.and_then(ServerGreeting::info) {
        meta.set(SERVER_INFO, info);
    }
    if !meta.is_empty() {
        let _ = write!(out, r#","_meta":{meta}"#);
    }
    out.push('}');
    out
}

/// Whether a server says that it tells when this list has changed.
pub fn tells_of_changes(method: Method, greeting: &ServerGreeting) -> bool {
    match method {
        Method::ToolsList => greeting.tools_changed,
        Method::PromptsList => greeting.prompts_changed,
        Method::ResourcesList | Method::ResourcesTemplatesList => greeting.resources_changed,
        _ => false,
    }
}

/// What a legacy tool's failure says its client lacks, in the words that SDKs have for it: the modern era has a code.
pub fn missing_capability(result: &str, class: ClientClass) -> Option<(String, &'static str)> {
    if !result.contains("Client does not support ") && !result.contains("did not declare the required capability") {
        return None;
    }
    let result = Members::read(result)?;
    let content: Vec<Members> = serde_json::from_str(result.get("content")?).ok()?;
    let (Some("true"), [block]) = (result.get("isError"), &content[..]) else { return None };
    let text = block.string("text")?;
    let lacks = [
        ("sampling/createMessage", class.sampling, r#"{"sampling":{}}"#),
        ("elicitation/create", class.form || class.url, r#"{"elicitation":{}}"#),
        ("roots/list", class.roots, r#"{"roots":{}}"#),
    ];
    let (_, _, required) = lacks.into_iter().find(|(method, has, _)| !has && text.contains(method))?;
    Some((text.into_owned(), required))
}

// === Towards a modern server ===

/// Who asks, and what it can do: the part of `_meta` that every modern request has.
#[derive(Clone, Copy, Debug)]
pub struct OwnClientMeta<'a> {
    pub class: ClientClass,
    pub level: Option<LogLevel>,
    pub info: &'a str,
}

impl OwnClientMeta<'_> {
    /// The bridge itself.
    pub const OWN: OwnClientMeta<'static> = OwnClientMeta { class: ClientClass::NONE, level: None, info: OWN_INFO };

    /// Writes the envelope into the members of a `_meta`.
    fn seal(&self, meta: &mut Members) {
        meta.set(PROTOCOL_VERSION, JsonString(VERSION).to_string());
        meta.set(CAPABILITIES, self.class.to_capabilities());
        meta.set(CLIENT_INFO, self.info.to_owned());
        if let Some(level) = self.level {
            meta.set(LOG_LEVEL, JsonString(level.name()).to_string());
        }
    }
}

/// What a client has answered so far, and the server's own note of where the call stands.
#[derive(Clone, Debug, Default)]
pub struct InputRound {
    /// `inputResponses`: each key with its raw result.
    pub responses: Vec<(String, String)>,
    /// `requestState` as the server wrote it.
    pub state: Option<Box<str>>,
}

/// A legacy client's request as a modern server wants it.
pub fn to_modern(message: &Message, number: u64, caller: OwnClientMeta, round: Option<&InputRound>) -> String {
    let method = message.method_text().unwrap_or_default();
    let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
    let top = Members::read(whole).unwrap_or_default();
    let mut params = top.object("params").unwrap_or_default();
    let mut meta = params.object("_meta").unwrap_or_default();
    if meta.get("progressToken").is_some() {
        meta.set("progressToken", number.to_string());
    }
    caller.seal(&mut meta);
    let meta = meta.to_string();
    params.set("_meta", meta);
    // Tasks of the older kind are not known there.
    params.remove("task");
    if let Some(round) = round {
        if !round.responses.is_empty() {
            let all = round.responses.iter().map(|(key, raw)| format!("{}:{raw}", JsonString(key)));
            params.set("inputResponses", format!("{{{}}}", all.collect::<Vec<_>>().join(",")));
        }
        if let Some(state) = &round.state {
            params.set("requestState", state.clone().into_string());
        }
    }
    format!(r#"{{"jsonrpc":"2.0","id":{number},"method":{method},"params":{params}}}"#)
}

/// A request of our own to a modern server; `params` without its `_meta`.
pub fn own_request(number: u64, method: Method, params: &str, caller: OwnClientMeta) -> String {
    let mut params = Members::read(params).unwrap_or_default();
    let mut meta = Members::default();
    caller.seal(&mut meta);
    let meta = meta.to_string();
    params.set("_meta", meta);
    text::request(number, method, params)
}

/// A modern client's request as it goes to a modern server, less the log level, which is another call's for now.
pub fn meta_without_level(meta: &str, number: u64) -> String {
    let mut members = Members::read(meta).unwrap_or_default();
    members.remove(LOG_LEVEL);
    if members.get("progressToken").is_some() {
        members.set("progressToken", number.to_string());
    }
    members.to_string()
}

// === Asking in the answer ===

/// Questions in the place of a result: keys with their method and parameters, and the server's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequired {
    pub requests: Vec<InputRequest>,
    pub state: Option<Box<str>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputRequest {
    pub key: String,
    pub method: Method,
    pub params: String,
}

impl InputRequired {
    /// Reads a modern server's result; `None` if it is another kind of result.
    pub fn read(result: &str) -> Option<Self> {
        // Nearly all results are of another kind: a look at the text is cheaper than a parse.
        if !result.contains("input_required") {
            return None;
        }
        let members = Members::read(result)?;
        if members.string("resultType")? != "input_required" {
            return None;
        }
        let requests = members.object("inputRequests").unwrap_or_default();
        let requests = requests.iter().map(|(key, raw)| {
            let request = Members::read(raw).unwrap_or_default();
            InputRequest {
                key: key.to_owned(),
                method: request.string("method").map_or(Method::Other, |name| Method::named(&name)),
                params: request.get("params").unwrap_or("{}").to_owned(),
            }
        });
        Some(Self { requests: requests.collect(), state: members.get("requestState").map(Into::into) })
    }

    /// The result that asks a modern client.
    pub fn write(&self, id: &str, greeting: Option<&ServerGreeting>) -> String {
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required""#);
        if !self.requests.is_empty() {
            out.push_str(r#","inputRequests":{"#);
            for (at, InputRequest { key, method, params }) in self.requests.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                let _ = write!(out, r#"{comma}{}:{{"method":"{}","params":{params}}}"#, JsonString(key), method.name());
            }
            out.push('}');
        }
        if let Some(state) = &self.state {
            let _ = write!(out, r#","requestState":{state}"#);
        }
        if let Some(info) = greeting.and_then(ServerGreeting::info) {
            let _ = write!(out, r#","_meta":{{"{SERVER_INFO}":{info}}}"#);
        }
        out.push_str("}}");
        out
    }
}

// === Listening ===

/// What a `subscriptions/listen` wants to hear of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListenFilter {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub uris: Vec<String>,
}

impl ListenFilter {
    /// Reads the parameters of `subscriptions/listen`, or of its acknowledgement; `None` if they have no `notifications`, or wrong ones.
    pub fn read(message: &Message) -> Option<Self> {
        let whole = std::str::from_utf8(message.bytes()).ok()?;
        let top = Members::read(whole)?;
        let params = top.object("params")?;
        Self::of(&params.object("notifications")?)
    }

    /// Whether a listen asks for tasks, which only who knows that extension may.
    pub fn names_tasks(message: &Message) -> bool {
        let params = message.params_text().and_then(Members::read);
        params.is_some_and(|params| params.object("notifications").is_some_and(|n| n.get("taskIds").is_some()))
    }

    fn of(members: &Members) -> Option<Self> {
        let flag = |name: &str| match members.get(name) {
            None | Some("false" | "null") => Some(false),
            Some("true") => Some(true),
            Some(_) => None,
        };
        let uris = match members.get("resourceSubscriptions") {
            None | Some("null") => Vec::new(),
            Some(raw) => serde_json::from_str(raw).ok()?,
        };
        Some(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris,
        })
    }

    /// Whether there is anything in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What of it the server has announced that it tells of.
    pub fn announced_by(mut self, greeting: &ServerGreeting) -> Self {
        self.tools &= greeting.tools_changed;
        self.prompts &= greeting.prompts_changed;
        self.resources &= greeting.resources_changed;
        self.within(greeting)
    }

    /// What this one and the server both have, or may have.
    pub fn within(mut self, greeting: &ServerGreeting) -> Self {
        self.tools &= greeting.tools_changed || greeting.may_tell_unannounced("tools");
        self.prompts &= greeting.prompts_changed || greeting.may_tell_unannounced("prompts");
        self.resources &= greeting.resources_changed || greeting.may_tell_unannounced("resources");
        if !greeting.subscribe {
            self.uris.clear();
        }
        self
    }

    pub fn wants(&self, method: Method) -> bool {
        match method {
            Method::ToolsChanged => self.tools,
            Method::PromptsChanged => self.prompts,
            Method::ResourcesChanged => self.resources,
            _ => false,
        }
    }

    /// As it is written, in a request or an acknowledgement.
    pub fn to_json(&self) -> String {
        let flags = [
            (self.tools, "toolsListChanged"),
            (self.prompts, "promptsListChanged"),
            (self.resources, "resourcesListChanged"),
        ];
        let mut parts: Vec<String> =
            flags.iter().filter(|(set, _)| *set).map(|(_, name)| format!(r#""{name}":true"#)).collect();
        if !self.uris.is_empty() {
            let uris: Vec<String> = self.uris.iter().map(|uri| JsonString(uri).to_string()).collect();
            parts.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
        }
        format!("{{{}}}", parts.join(","))
    }
}

/// The first message of a listen's stream: what it will hear of.
pub fn acknowledgement(id: &str, filter: &ListenFilter) -> String {
    let (name, filter) = (Method::Acknowledged.name(), filter.to_json());
    format!(
        r#"{{"jsonrpc":"2.0","method":"{name}","params":{{"notifications":{filter},"_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}}}"#
    )
}

/// The last message of a listen's stream.
pub fn listen_over(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"{SUBSCRIPTION_ID}":{id}}}}}}}"#
    )
}

/// A change as one listen hears it, under its own id.
pub fn tagged(message: &Message, id: &str) -> String {
    let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
    let mut top = Members::read(whole).unwrap_or_default();
    let params = {
        let mut params = top.object("params").unwrap_or_default();
        let mut meta = params.object("_meta").unwrap_or_default();
        meta.set(SUBSCRIPTION_ID, id.to_owned());
        let meta = meta.to_string();
        params.set("_meta", meta);
        params.to_string()
    };
    top.set("params", params);
    top.to_string()
}

/// A change as a legacy session hears it: without the listen it came on.
pub fn untagged(message: &Message) -> String {
    let whole = std::str::from_utf8(message.bytes()).unwrap_or_default();
    let mut top = Members::read(whole).unwrap_or_default();
    let params = top.object("params").map(|mut params| {
        let mut meta = params.object("_meta").unwrap_or_default();
        meta.remove(SUBSCRIPTION_ID);
        let meta = (!meta.is_empty()).then(|| meta.to_string());
        match meta {
            Some(meta) => params.set("_meta", meta),
            None => params.remove("_meta"),
        }
        params.to_string()
    });
    match params.as_deref() {
        Some("{}") | None => top.remove("params"),
        Some(_) => top.set("params", params.unwrap_or_default()),
    }
    top.to_string()
}

/// The listen of ours that a change came on.
pub fn subscription(message: &Message) -> Option<u64> {
    let meta = Members::read(message.text(message.params().meta?))?;
    crate::wire::envelope::own_number(meta.get(SUBSCRIPTION_ID)?)
}

#[cfg(test)]
mod tests;
