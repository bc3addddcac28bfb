//! A tool: its name, its arguments, and what it does. Most are types; some are rows of a table that is not the kit's.

use std::{future::Future, pin::Pin};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{CallFailure, ServerCall, ToolReply, schema};

/// A tool. The type of its arguments is its schema, and the doc comments of the fields are the descriptions in it.
pub trait TypedTool: Send + Sync + 'static {
    type Arguments: DeserializeOwned + JsonSchema + Send;
    const NAME: &'static str;
    const TITLE: &'static str;
    const DESCRIPTION: &'static str;
    const HINTS: ToolHints = ToolHints::NONE;

    /// Runs one call. When it was cancelled the future is dropped after a moment; what must be tidied up before that
    /// waits for [`ServerCall::cancelled`].
    fn call(
        &self,
        arguments: Self::Arguments,
        call: &ServerCall,
    ) -> impl Future<Output = Result<ToolReply, CallFailure>> + Send;
}

/// A tool that is made of data: what it is called and what it takes are values.
pub trait DataTool: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    /// Its entry in the list of tools; `None` if it is not shown there. It can be called even so, and says why not.
    fn entry(&self) -> Option<Value>;

    /// Runs one call, as [`TypedTool::call`] does. What the arguments must be is its own affair.
    fn call(
        &self,
        arguments: Map<String, Value>,
        call: &ServerCall,
    ) -> impl Future<Output = Result<ToolReply, CallFailure>> + Send;
}

/// What a client may expect of a tool (`annotations`). What is not said is left to the protocol's own guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

impl ToolHints {
    pub const NONE: Self = Self { read_only: None, destructive: None, idempotent: None, open_world: None };
    /// It looks at what Prism itself knows, and changes nothing.
    pub const READS: Self = Self { read_only: Some(true), open_world: Some(false), ..Self::NONE };
    /// It adds to what Prism itself knows, and destroys nothing.
    pub const ADDS: Self =
        Self { read_only: Some(false), destructive: Some(false), open_world: Some(false), ..Self::NONE };

    pub fn annotations(self) -> Option<Value> {
        let all = [
            ("readOnlyHint", self.read_only),
            ("destructiveHint", self.destructive),
            ("idempotentHint", self.idempotent),
            ("openWorldHint", self.open_world),
        ];
        let said: serde_json::Map<_, _> =
            all.into_iter().filter_map(|(name, hint)| Some((name.to_owned(), hint?.into()))).collect();
        (!said.is_empty()).then_some(Value::Object(said))
    }
}

pub(super) type Running<'a> = Pin<Box<dyn Future<Output = Result<ToolReply, CallFailure>> + Send + 'a>>;

/// A tool whose type is forgotten.
pub(super) trait AnyTool: Send + Sync {
    fn name(&self) -> &'static str;
    /// Its entry in the list of tools, if it is there.
    fn entry(&self) -> Option<&Value>;
    fn run<'a>(&'a self, arguments: &'a str, call: &'a ServerCall) -> Running<'a>;
}

struct TypedToolEntry<T> {
    tool: T,
    entry: Value,
}

pub(super) fn registered<T: TypedTool>(tool: T) -> Box<dyn AnyTool> {
    let mut entry = json!({
        "name": T::NAME,
        "title": T::TITLE,
        "description": T::DESCRIPTION,
        "inputSchema": schema::of::<T::Arguments>(),
    });
    if let Some(annotations) = T::HINTS.annotations() {
        entry["annotations"] = annotations;
    }
    Box::new(TypedToolEntry { tool, entry })
}

impl<T: TypedTool> AnyTool for TypedToolEntry<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn entry(&self) -> Option<&Value> {
        Some(&self.entry)
    }

    fn run<'a>(&'a self, arguments: &'a str, call: &'a ServerCall) -> Running<'a> {
        Box::pin(async move {
            // 2025-11-25, Tools: bad arguments too are an error of the tool, which the model sees and can mend.
            let arguments = schema::read(arguments).map_err(CallFailure::trouble)?;
            self.tool.call(arguments, call).await
        })
    }
}

struct DataToolEntry<T> {
    tool: T,
    entry: Option<Value>,
}

pub(super) fn listed<T: DataTool>(tool: T) -> Box<dyn AnyTool> {
    let entry = tool.entry();
    Box::new(DataToolEntry { tool, entry })
}

impl<T: DataTool> AnyTool for DataToolEntry<T> {
    fn name(&self) -> &'static str {
        self.tool.name()
    }

    fn entry(&self) -> Option<&Value> {
        self.entry.as_ref()
    }

    fn run<'a>(&'a self, arguments: &'a str, call: &'a ServerCall) -> Running<'a> {
        Box::pin(async move {
            let arguments = schema::read(arguments).map_err(CallFailure::trouble)?;
            self.tool.call(arguments, call).await
        })
    }
}
