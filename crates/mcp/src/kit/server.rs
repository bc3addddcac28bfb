//! A built-in server: what it is called and what it offers, and the answers that need no more than that.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hash},
};

use prism_core::mcp::{Method, modern};
use serde_json::{Map, Value, json};

use super::{
    CallFailure, ChangeNotifier, CompletionRequest, Completions, DataTool, Prompts, Resources, ServerCall, TypedTool,
    offer::{AnyCompletions, AnyPrompts, AnyResources},
    params::RequestParams,
    reply::ToolReply,
    tool::{AnyTool, listed, registered},
};

/// What a server is called and what it offers. Built once, shared by all connections.
pub struct BuiltinServer {
    name: String,
    title: String,
    instructions: String,
    tools: Vec<Box<dyn AnyTool>>,
    tools_change: bool,
    resources: Option<Box<dyn AnyResources>>,
    prompts: Option<Box<dyn AnyPrompts>>,
    completions: Option<Box<dyn AnyCompletions>>,
    pub(super) notifier: ChangeNotifier,
    /// What marks a state that a client brings back as ours.
    seal: RandomState,
}

/// How long a client may keep a list. They change rarely, and changes are told.
const LIST_TTL_MS: u32 = 60_000;

impl BuiltinServer {
    pub fn new(name: impl Into<String>, title: impl Into<String>, instructions: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            instructions: instructions.into(),
            tools: Vec::new(),
            tools_change: false,
            resources: None,
            prompts: None,
            completions: None,
            notifier: ChangeNotifier::default(),
            seal: RandomState::new(),
        }
    }

    /// Adds a tool. The list of tools has the order in which they were added.
    #[must_use]
    pub fn tool(self, tool: impl TypedTool) -> Self {
        self.with(registered(tool))
    }

    /// Adds a tool that is made of data.
    #[must_use]
    pub fn data_tool(self, tool: impl DataTool) -> Self {
        self.with(listed(tool))
    }

    fn with(mut self, tool: Box<dyn AnyTool>) -> Self {
        debug_assert!(self.tool_named(tool.name()).is_none(), "two tools are called {}", tool.name());
        self.tools.push(tool);
        self
    }

    /// Says that changes of the list of tools are told, through the notifier.
    #[must_use]
    pub fn tools_change(mut self) -> Self {
        self.tools_change = true;
        self
    }

    #[must_use]
    pub fn resources(mut self, resources: impl Resources) -> Self {
        self.resources = Some(Box::new(resources));
        self
    }

    #[must_use]
    pub fn prompts(mut self, prompts: impl Prompts) -> Self {
        self.prompts = Some(Box::new(prompts));
        self
    }

    #[must_use]
    pub fn completions(mut self, completions: impl Completions) -> Self {
        self.completions = Some(Box::new(completions));
        self
    }

    /// Takes a notifier that tools already hold, in the place of its own.
    #[must_use]
    pub fn with_notifier(mut self, notifier: ChangeNotifier) -> Self {
        self.notifier = notifier;
        self
    }

    pub fn notifier(&self) -> ChangeNotifier {
        self.notifier.clone()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The entries of `tools/list`.
    pub fn tool_entries(&self) -> Vec<Value> {
        self.tools.iter().filter_map(|tool| tool.entry().cloned()).collect()
    }

    pub(super) fn info(&self) -> Value {
        json!({"name": self.name, "title": self.title, "version": env!("CARGO_PKG_VERSION")})
    }

    /// What is said of the server to a client of the legacy era.
    pub(super) fn introduction(&self, version: &str) -> Value {
        json!({
            "protocolVersion": version,
            "capabilities": self.capabilities(),
            "serverInfo": self.info(),
            "instructions": self.instructions,
        })
    }

    fn discovery(&self) -> Value {
        json!({
            "supportedVersions": [modern::VERSION],
            "capabilities": self.capabilities(),
            "instructions": self.instructions,
        })
    }

    /// Only what is there.
    fn capabilities(&self) -> Value {
        let mut all = json!({"logging": {}});
        let changes = |told: bool| if told { json!({"listChanged": true}) } else { json!({}) };
        if !self.tools.is_empty() {
            all["tools"] = changes(self.tools_change);
        }
        if let Some(resources) = &self.resources {
            all["resources"] = changes(resources.list_changes());
            all["resources"]["subscribe"] = true.into();
        }
        if let Some(prompts) = &self.prompts {
            all["prompts"] = changes(prompts.list_changes());
        }
        if self.completions.is_some() {
            all["completions"] = json!({});
        }
        all
    }

    /// Whether changes of a list are told.
    pub(super) fn tells_of(&self, list: &str) -> bool {
        match list {
            "tools" => self.tools_change,
            "resources" => self.resources.as_ref().is_some_and(|it| it.list_changes()),
            _ => self.prompts.as_ref().is_some_and(|it| it.list_changes()),
        }
    }

    pub(super) fn can_watch(&self, uri: &str) -> bool {
        self.resources.as_ref().is_some_and(|it| it.can_watch(uri))
    }

    pub(super) fn has_resources(&self) -> bool {
        self.resources.is_some()
    }

    /// The seal of what a client will bring back.
    pub(super) fn seal(&self, of: impl Hash) -> u64 {
        self.seal.hash_one(of)
    }

    /// How long the result of a method may be kept; `None` if the era has no such hint on it.
    pub(super) fn keep_ms(&self, method: Method) -> Option<u32> {
        match method {
            Method::ResourcesRead => self.resources.as_ref().map(|it| it.keep_ms()),
            Method::Discover | Method::ToolsList | Method::PromptsList => Some(LIST_TTL_MS),
            Method::ResourcesTemplatesList => Some(LIST_TTL_MS),
            Method::ResourcesList => Some(if self.tells_of("resources") { LIST_TTL_MS } else { 0 }),
            _ => None,
        }
    }

    /// Serves a request that is a call: it may wait, and can be cancelled.
    pub(super) async fn serve(&self, method: Method, name: &str, call: &ServerCall) -> Result<Value, CallFailure> {
        let params = &call.params;
        let unknown = || CallFailure::unknown_method(name);
        let is_list = matches!(
            method,
            Method::ToolsList | Method::ResourcesList | Method::ResourcesTemplatesList | Method::PromptsList
        );
        if is_list && params.cursor.is_some() {
            // Every list fits on one page, so no cursor can be one of ours; the empty string is a cursor too.
            return Err(CallFailure::invalid("unknown cursor"));
        }
        let resources = || self.resources.as_deref().ok_or_else(unknown);
        let prompts = || self.prompts.as_deref().ok_or_else(unknown);
        match method {
            Method::Discover if call.is_modern() => Ok(self.discovery()),
            Method::ToolsList if !self.tools.is_empty() => Ok(json!({"tools": self.tool_entries()})),
            Method::ToolsCall if !self.tools.is_empty() => self.call_tool(call).await.map(ToolReply::into_result),
            Method::ResourcesList => Ok(json!({"resources": resources()?.list(call).await?})),
            Method::ResourcesTemplatesList => Ok(json!({"resourceTemplates": resources()?.templates()})),
            Method::ResourcesRead => {
                let uri = RequestParams::string(&params.uri, "uri")?;
                Ok(json!({"contents": resources()?.read(uri, call).await?}))
            }
            Method::PromptsList => Ok(json!({"prompts": prompts()?.list()})),
            Method::PromptsGet => {
                let name = RequestParams::string(&params.name, "name")?;
                let arguments: Map<String, Value> = serde_json::from_str(params.arguments())
                    .map_err(|_| CallFailure::invalid("arguments must be an object"))?;
                prompts()?.get(name, arguments, call).await
            }
            Method::Complete => {
                let completions = self.completions.as_deref().ok_or_else(unknown)?;
                let values = completions.complete(&CompletionRequest::read(params)?).await?;
                Ok(CompletionRequest::result(values))
            }
            _ => Err(unknown()),
        }
    }

    async fn call_tool(&self, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let params = &call.params;
        let name = RequestParams::string(&params.name, "name")?;
        let Some(tool) = self.tool_named(name) else {
            return Err(CallFailure::invalid(format!("unknown tool: {name:?}")));
        };
        tool.run(params.arguments(), call).await.or_else(CallFailure::or_reply)
    }

    fn tool_named(&self, name: &str) -> Option<&dyn AnyTool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// The name of a tool as the record may have it: never what a client made up.
    pub(super) fn known_tool(&self, params: &RequestParams) -> Option<&'static str> {
        let name = params.name.as_ref().and_then(Value::as_str)?;
        self.tool_named(name).map(AnyTool::name)
    }
}
