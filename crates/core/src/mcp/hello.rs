//! Both sides of the handshake: what a client said it can do, and what a server answered.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    era::{Era, Revision},
    modern,
};
use crate::wire::{self, Message};

/// Our own `clientInfo` towards a server that several clients share.
pub const OWN_INFO: &str = concat!(r#"{"name":"prism","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// What a client's `initialize` said.
#[derive(Clone, Debug)]
pub struct ClientHello {
    pub revision: Revision,
    pub class: ClientClass,
    capabilities: Box<RawValue>,
    pub info: Box<RawValue>,
}

/// The questions a client can answer, the part of its capabilities that decides who may share a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientClass {
    pub roots: bool,
    pub sampling: bool,
    pub sampling_tools: bool,
    pub form: bool,
    pub url: bool,
}

/// A server's answer to `initialize`, kept to answer every client's with.
#[derive(Clone, Debug)]
pub struct ServerGreeting {
    pub era: Era,
    members: BTreeMap<String, Box<RawValue>>,
    pub name: String,
    pub version: String,
    /// Whether it has tools.
    pub tools: bool,
    pub logging: bool,
    pub subscribe: bool,
    pub tools_changed: bool,
    pub prompts_changed: bool,
    pub resources_changed: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    #[error("the `initialize` message is malformed: {0}")]
    Malformed(serde_json::Error),
}

type Members = BTreeMap<String, Box<RawValue>>;

// === impl ClientHello ===

impl ClientHello {
    /// Reads a client's `initialize`.
    pub fn read(message: &Message) -> Result<Self, HelloError> {
        #[derive(Deserialize)]
        struct InitializeCall<'a> {
            #[serde(borrow)]
            params: &'a RawValue,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams {
            protocol_version: String,
            #[serde(default)]
            capabilities: Members,
            client_info: Option<Box<RawValue>>,
        }
        let call: InitializeCall = serde_json::from_slice(message.bytes()).map_err(HelloError::Malformed)?;
        // A derived struct would also accept an array, positionally (invariant 6).
        if !call.params.get().starts_with('{') {
            return Err(HelloError::Malformed(serde::de::Error::custom("`params` must be an object")));
        }
        let params = serde_json::from_str(call.params.get()).map_err(HelloError::Malformed)?;
        let InitializeParams { protocol_version, mut capabilities, client_info } = params;
        // Tasks hosted by the client are not bridged; a server that saw them declared would use them.
        capabilities.remove("tasks");
        let class = ClientClass::of(&capabilities);
        let raw = |value: &Members| to_raw_value(value).map_err(HelloError::Malformed);
        let info = match client_info {
            Some(info) => info,
            None => raw(&Members::new())?,
        };
        Ok(Self { revision: Revision::negotiated(&protocol_version), class, capabilities: raw(&capabilities)?, info })
    }

    /// `initialize` towards a server that only this client uses.
    pub fn as_request(&self, id: u64) -> String {
        request(id, self.capabilities.get(), self.info.get())
    }
}

/// `initialize` towards a server that clients of one class share.
pub fn shared_request(id: u64, class: ClientClass) -> String {
    request(id, &class.to_capabilities(), OWN_INFO)
}

/// The newest revision is always what we offer: what the client speaks is settled on its own side.
fn request(id: u64, capabilities: &str, info: &str) -> String {
    let version = Revision::NEWEST.name();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{capabilities},"clientInfo":{info}}}}}"#
    )
}

// === impl ClientClass ===

impl ClientClass {
    pub const NONE: Self = Self { roots: false, sampling: false, sampling_tools: false, form: false, url: false };

    /// Whether a server that sees these capabilities has anything to ask.
    pub fn answers_questions(self) -> bool {
        self != Self::NONE
    }

    /// Reads the text of a capabilities object; `None` if it is none.
    pub fn read(capabilities: &str) -> Option<Self> {
        serde_json::from_str(capabilities).ok().map(|members| Self::of(&members))
    }

    fn of(capabilities: &Members) -> Self {
        // `null` is how some clients write "no".
        let has = |members: &Members, name: &str| members.get(name).is_some_and(|value| value.get() != "null");
        let inner = |name: &str| -> Members {
            capabilities.get(name).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
        };
        let elicitation = inner("elicitation");
        Self {
            roots: has(capabilities, "roots"),
            sampling: has(capabilities, "sampling"),
            sampling_tools: has(&inner("sampling"), "tools"),
            // An empty object means forms (2025-11-25, and all there was before it).
            form: has(capabilities, "elicitation") && (elicitation.is_empty() || has(&elicitation, "form")),
            url: has(&elicitation, "url"),
        }
    }

    pub fn to_capabilities(self) -> String {
        let mut parts = Vec::new();
        if self.roots {
            parts.push(r#""roots":{}"#);
        }
        match (self.sampling, self.sampling_tools) {
            (true, true) => parts.push(r#""sampling":{"tools":{}}"#),
            (true, false) => parts.push(r#""sampling":{}"#),
            _ => {}
        }
        match (self.form, self.url) {
            (true, true) => parts.push(r#""elicitation":{"form":{},"url":{}}"#),
            (true, false) => parts.push(r#""elicitation":{}"#),
            (false, true) => parts.push(r#""elicitation":{"url":{}}"#),
            _ => {}
        }
        format!("{{{}}}", parts.join(","))
    }
}

// === impl ServerGreeting ===

impl ServerGreeting {
    /// Reads a server's answer to `initialize`.
    pub fn read(message: &Message) -> Result<Self, HelloError> {
        #[derive(Deserialize)]
        struct InitializeAnswer {
            result: Members,
        }
        let answer: InitializeAnswer = serde_json::from_slice(message.bytes()).map_err(HelloError::Malformed)?;
        Self::of(Era::Legacy, answer.result)
    }

    /// Reads a server's answer to `server/discover`. `None` if it does not speak our modern revision.
    pub fn discovered(message: &Message) -> Option<Self> {
        let result = message.result_span().map(|span| message.text(span))?;
        let mut members: Members = serde_json::from_str(result).ok()?;
        let versions: Vec<String> = serde_json::from_str(members.remove("supportedVersions")?.get()).ok()?;
        if !versions.iter().any(|version| version == modern::VERSION) {
            return None;
        }
        // Told as a handshake would have told it; the rest belongs to the one answer.
        let meta = members.remove("_meta").and_then(|raw| serde_json::from_str::<Members>(raw.get()).ok());
        if let Some(info) = meta.unwrap_or_default().remove(modern::SERVER_INFO) {
            members.insert("serverInfo".to_owned(), info);
        }
        for name in ["resultType", "ttlMs", "cacheScope"] {
            members.remove(name);
        }
        Self::of(Era::Modern, members).ok()
    }

    fn of(era: Era, mut members: Members) -> Result<Self, HelloError> {
        let inner = |raw: Option<&Box<RawValue>>| -> Members {
            raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
        };
        let mut capabilities = inner(members.get("capabilities"));
        // Task ids would need an owner each; what is not bridged is not advertised.
        capabilities.remove("tasks");
        let says =
            |member: &str, flag: &str| inner(capabilities.get(member)).get(flag).is_some_and(|v| v.get() == "true");
        let (subscribe, resources_changed) = (says("resources", "subscribe"), says("resources", "listChanged"));
        let (tools_changed, prompts_changed) = (says("tools", "listChanged"), says("prompts", "listChanged"));
        let (tools, logging) = (capabilities.contains_key("tools"), capabilities.contains_key("logging"));
        members.insert("capabilities".to_owned(), to_raw_value(&capabilities).map_err(HelloError::Malformed)?);
        let info = inner(members.get("serverInfo"));
        let text = |name: &str| {
            info.get(name).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok()).unwrap_or_default()
        };
        let (name, version) = (text("name"), text("version"));
        Ok(Self {
            era,
            members,
            name,
            version,
            tools,
            logging,
            subscribe,
            tools_changed,
            prompts_changed,
            resources_changed,
        })
    }

    /// What the server calls itself, as it wrote it.
    pub fn info(&self) -> Option<&str> {
        self.members.get("serverInfo").map(|raw| raw.get())
    }

    /// Whether it may tell that this list has changed without having announced it. Servers do: those on the Python SDK 1.x and on
    /// FastMCP 4 announce `"listChanged": false` and tell, and every client that reads what comes hears it (R-56).
    pub fn may_tell_unannounced(&self, list: &str) -> bool {
        let capabilities =
            self.members.get("capabilities").and_then(|raw| serde_json::from_str::<Members>(raw.get()).ok());
        capabilities.is_some_and(|capabilities| capabilities.contains_key(list))
    }

    /// The answer to a client's `server/discover`.
    pub fn discovery(&self, id: &str) -> String {
        let capabilities = self.capabilities(Era::Modern);
        let instructions = self.members.get("instructions").map(|raw| format!(r#","instructions":{}"#, raw.get()));
        let (version, ttl, instructions) = (modern::VERSION, modern::DISCOVER_TTL_MS, instructions.unwrap_or_default());
        let meta = self.info().map(|info| format!(r#","_meta":{{"{}":{info}}}"#, modern::SERVER_INFO));
        let meta = meta.unwrap_or_default();
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","supportedVersions":["{version}"],"capabilities":{capabilities}{instructions},"ttlMs":{ttl},"cacheScope":"public"{meta}}}}}"#
        )
    }

    /// The answer to a client's own `initialize`: the server's, at the client's revision.
    pub fn answer(&self, id: &str, revision: Revision) -> Bytes {
        // The handshake of a legacy client needs a name, which a modern server may leave out.
        let nameless =
            if self.members.contains_key("serverInfo") { "" } else { r#","serverInfo":{"name":"","version":""}"# };
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{}""#, revision.name());
        for (name, value) in self.members.iter().filter(|(name, _)| *name != "protocolVersion") {
            out.push(',');
            out.push_str(&serde_json::Value::from(name.as_str()).to_string());
            out.push(':');
            match name.as_str() {
                "capabilities" => out.push_str(&self.capabilities(Era::Legacy)),
                _ => out.push_str(value.get()),
            }
        }
        out.push_str(nameless);
        out.push_str("}}");
        Bytes::from(out)
    }

    /// What a client of that era is told that the server can do. Extensions are between two of the same era.
    fn capabilities(&self, told: Era) -> Cow<'_, str> {
        let Some(raw) = self.members.get("capabilities").map(|raw| raw.get()) else { return "{}".into() };
        match wire::Members::read(raw) {
            Some(mut members) if told != self.era && members.get("extensions").is_some() => {
                members.remove("extensions");
                members.to_string().into()
            }
            _ => raw.into(),
        }
    }

    /// Whether a client that was told the other's capabilities would be misled by this one.
    pub fn promises_the_same_as(&self, other: &Self) -> bool {
        let promise = |greeting: &Self| greeting.members.get("capabilities").map(|raw| raw.get().to_owned());
        promise(self) == promise(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(capabilities: &str) -> ClientHello {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{{"name":"t"}}}}}}"#
        );
        ClientHello::read(&Message::parse(Bytes::from(text)).unwrap()).unwrap()
    }

    #[test]
    fn the_class_is_what_a_client_can_answer() {
        assert_eq!(hello("{}").class, ClientClass::NONE);
        assert_eq!(hello(r#"{"experimental":{"x":{}},"tasks":{}}"#).class, ClientClass::NONE);
        assert!(hello(r#"{"elicitation":{}}"#).class.form);
        assert!(!hello(r#"{"elicitation":{"url":{}}}"#).class.form);
        assert!(hello(r#"{"elicitation":{"url":{}}}"#).class.url);
        assert!(hello(r#"{"sampling":{"tools":{}}}"#).class.sampling_tools);
        assert!(hello(r#"{"roots":{"listChanged":true}}"#).class.roots);
    }

    #[test]
    fn a_hello_that_is_no_object_or_says_something_twice_is_refused() {
        for params in [
            r#"["2025-06-18",{},{}]"#,
            "{}",
            r#"{"protocolVersion":1,"capabilities":{}}"#,
            r#"{"protocolVersion":"2025-06-18","capabilities":[]}"#,
            r#"{"protocolVersion":"2025-06-18","protocolVersion":"2025-03-26","capabilities":{}}"#,
            r#"{"protocolVersion":"2025-06-18","capabilities":{},"capabilities":{"roots":{}}}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
            assert!(ClientHello::read(&Message::parse(Bytes::from(text)).unwrap()).is_err(), "{params}");
        }
    }

    #[test]
    fn a_class_survives_the_way_to_the_server() {
        let all = [r#"{}"#, r#"{"roots":{}}"#, r#"{"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}"#];
        for capabilities in all {
            let class = hello(capabilities).class;
            assert_eq!(hello(&class.to_capabilities()).class, class);
        }
    }

    #[test]
    fn a_lone_client_reaches_its_server_with_its_own_words() {
        let request = hello(r#"{"roots":{"listChanged":true},"tasks":{"list":{}}}"#).as_request(7);
        assert!(request.contains(r#""roots":{"listChanged":true}"#), "{request}");
        assert!(request.contains(r#""clientInfo":{"name":"t"}"#), "{request}");
        assert!(!request.contains("tasks"), "{request}");
    }

    #[test]
    fn an_answer_keeps_what_the_server_said_and_changes_the_revision() {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"tasks":{}},"serverInfo":{"name":"s","version":"2"},"instructions":"do","x":1.0}}"#;
        let greeting = ServerGreeting::read(&Message::parse(Bytes::from(text)).unwrap()).unwrap();
        assert!(greeting.tools_changed && !greeting.logging && !greeting.subscribe);
        let answer = greeting.answer(r#""a""#, Revision::V2025_03_26);
        let answer = std::str::from_utf8(&answer).unwrap();
        assert!(
            answer.starts_with(r#"{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":"2025-03-26","#),
            "{answer}"
        );
        assert!(answer.contains(r#""instructions":"do""#) && answer.contains(r#""x":1.0"#), "{answer}");
        assert!(!answer.contains("tasks"), "{answer}");
    }
}
