//! The tools that answer, fail and change things. Those that speak on the way or ask are in `talk.rs`.

use std::{
    io::{self, Write},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{DemoState, shelf};
use prism_mcp::kit::{BuiltinServer, CallFailure, ServerCall, ToolReply, TypedTool};

/// Declares a tool: its type and that of its arguments, its name, what it is called and does, and how.
macro_rules! tool {
    (
        $tool:ty: $type:ty, $name:literal, $title:literal, $about:literal,
        |$self:ident, $arguments:pat_param, $call:pat_param| $body:block
    ) => {
        impl TypedTool for $tool {
            type Arguments = $type;
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const DESCRIPTION: &'static str = $about;

            async fn call(&$self, $arguments: $type, $call: &ServerCall) -> Result<ToolReply, CallFailure> $body
        }
    };
}
pub(super) use tool;

pub(super) fn add(server: BuiltinServer, state: &Arc<DemoState>) -> BuiltinServer {
    server
        .tool(EchoTool)
        .tool(SlowTool)
        .tool(RouteTool)
        .tool(ShowTool)
        .tool(FailTool)
        .tool(TroubleTool)
        .tool(TouchTool(state.clone()))
        .tool(ChangeTool(state.clone()))
        .tool(LaterTool(state.clone()))
        .tool(WhoAmITool)
        .tool(CrashTool)
        .tool(StderrTool)
        .tool(BigTool)
        .tool(CapsTool)
        .tool(SubscriptionsTool)
}

/// The longest text made to order. Beyond it the call fails: a typing error must not eat the machine.
pub(super) const MAX_TEXT_BYTES: u64 = 256 << 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct IgnoredArguments {}

struct EchoTool;

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// What to say back.
    text: String,
    /// That many bytes instead.
    size: Option<u64>,
}

tool!(EchoTool: EchoArguments, "echo", "Echo", "Says it back; with `size`, that many bytes instead.", |self, it, _| {
    match it.size {
        Some(bytes) => filler(bytes).map(ToolReply::text),
        None => Ok(ToolReply::text(it.text)),
    }
});

struct SlowTool;

#[derive(Deserialize, JsonSchema)]
struct SlowArguments {
    /// How long to wait, in milliseconds.
    ms: u64,
    /// What to say back.
    text: String,
}

tool!(SlowTool: SlowArguments, "slow", "Wait", "Says it back after `ms` milliseconds.", |self, it, _| {
    pause(it.ms).await;
    Ok(ToolReply::text(it.text))
});

struct RouteTool;

#[derive(Deserialize, JsonSchema)]
struct RouteArguments {
    /// Where to.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
    /// How urgent.
    #[schemars(extend("x-mcp-header" = "Priority"))]
    priority: Option<u64>,
}

tool!(
    RouteTool: RouteArguments, "route", "Route",
    "Answers where to; HTTP clients of the modern era say it in headers, too.",
    |self, it, _| {
        Ok(ToolReply::text(format!("to {} with {}", it.region, json!(it.priority))))
    }
);

struct ShowTool;

#[derive(Deserialize, JsonSchema)]
struct ShowArguments {
    /// Which kind of block.
    kind: ShowKind,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ShowKind {
    Audio,
    ResourceLink,
    Structured,
    List,
}

tool!(ShowTool: ShowArguments, "show", "Show", "Answers a block of that kind.", |self, it, _| {
    let blocks = |block| ToolReply::blocks(vec![block]);
    Ok(match it.kind {
        ShowKind::Audio => blocks(json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})),
        ShowKind::ResourceLink => blocks(json!({"type": "resource_link", "uri": "demo://hello", "name": "hello"})),
        ShowKind::Structured => ToolReply::blocks(Vec::new()).with_structured(json!({"sum": 3})),
        ShowKind::List => ToolReply::blocks(Vec::new()).with_structured(json!([1, 2])),
    })
});

struct FailTool;

#[derive(Deserialize, JsonSchema)]
struct FailArguments {
    /// The code of the error.
    code: i32,
}

tool!(FailTool: FailArguments, "fail", "Fail", "Fails with `code`, as an error of the protocol.", |self, it, _| {
    Err(CallFailure::error(it.code, "as you wish"))
});

struct TroubleTool;

#[derive(Deserialize, JsonSchema)]
struct TextArguments {
    /// What to say.
    text: String,
}

tool!(TroubleTool: TextArguments, "trouble", "Trouble", "Fails with `text`, as an error of the tool.", |self, it, _| {
    Err(CallFailure::trouble(it.text))
});

struct TouchTool(Arc<DemoState>);

#[derive(Deserialize, JsonSchema)]
struct TouchArguments {
    /// Which resource, such as demo://counter.
    uri: String,
}

tool!(TouchTool: TouchArguments, "touch", "Touch", "Reports an update of `uri`, if it is subscribed to.", |self, it, _| {
    self.0.counter.fetch_add(u64::from(it.uri == shelf::COUNTER), Ordering::Relaxed);
    let told = self.0.notifier.updated(&it.uri);
    Ok(ToolReply::text(if told > 0 { "update sent" } else { "not subscribed" }))
});

struct ChangeTool(Arc<DemoState>);

#[derive(Deserialize, JsonSchema)]
struct ChangeArguments {
    /// Which list.
    what: ChangeableList,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChangeableList {
    Tools,
    Prompts,
    Resources,
}

tool!(ChangeTool: ChangeArguments, "change", "Change", "Reports that a list changed.", |self, it, _| {
    self.0.report_change(it.what);
    Ok(ToolReply::text("change sent"))
});

struct LaterTool(Arc<DemoState>);

#[derive(Deserialize, JsonSchema)]
struct LaterArguments {
    /// How long to wait, in milliseconds.
    ms: u64,
    /// Which list.
    what: ChangeableList,
}

tool!(
    LaterTool: LaterArguments, "later", "Change later",
    "Answers at once, and reports that a list changed after `ms` milliseconds.",
    |self, it, _| {
        let state = self.0.clone();
        tokio::spawn(async move {
            pause(it.ms).await;
            state.report_change(it.what);
        });
        Ok(ToolReply::text("the change comes later"))
    }
);

struct WhoAmITool;

tool!(WhoAmITool: IgnoredArguments, "whoami", "Who am I", "Answers the process id.", |self, _, _| {
    Ok(ToolReply::text(std::process::id().to_string()))
});

struct CrashTool;

#[derive(Deserialize, JsonSchema)]
struct CrashArguments {
    /// The exit code; 1 if left out.
    code: Option<u64>,
}

tool!(CrashTool: CrashArguments, "crash", "Crash", "Exits with `code`, or 1, without an answer.", |self, it, call| {
    // What was answered before it is not lost with it.
    call.drained().await;
    let code = it.code.and_then(|code| i32::try_from(code).ok());
    std::process::exit(code.unwrap_or(1))
});

struct StderrTool;

tool!(StderrTool: TextArguments, "stderr", "Write to stderr", "Writes a line to stderr.", |self, it, _| {
    // One write, so that the line arrives whole. A closed stderr is the tool's trouble, not the server's end.
    let written = io::stderr().write_all(format!("{}\n", it.text).as_bytes());
    written.map(|()| ToolReply::text("written")).map_err(|error| CallFailure::trouble(error.to_string()))
});

struct BigTool;

#[derive(Deserialize, JsonSchema)]
struct BigArguments {
    /// How many.
    bytes: u64,
}

tool!(BigTool: BigArguments, "big", "Big answer", "Answers a text of that many bytes.", |self, it, _| {
    filler(it.bytes).map(ToolReply::text)
});

struct CapsTool;

tool!(CapsTool: IgnoredArguments, "caps", "Capabilities", "Answers what the client said of itself, as JSON.", |self, _, call| {
    Ok(ToolReply::text(call.client().to_string()))
});

struct SubscriptionsTool;

tool!(
    SubscriptionsTool: IgnoredArguments, "subscriptions", "Subscriptions",
    "Answers the subscribed URIs and the log level, as JSON.",
    |self, _, call| {
        let level = call.level().map(|level| level.name());
        Ok(ToolReply::text(json!({"subscriptions": call.watched(), "level": level}).to_string()))
    }
);

impl DemoState {
    fn report_change(&self, list: ChangeableList) {
        match list {
            ChangeableList::Tools => self.notifier.tools_changed(),
            ChangeableList::Prompts => self.notifier.prompts_changed(),
            ChangeableList::Resources => self.notifier.resources_changed(),
        };
    }
}

/// Waits. A call that is cancelled meanwhile has no answer, and is dropped.
pub(super) async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

pub(super) fn filler(bytes: u64) -> Result<String, CallFailure> {
    match usize::try_from(bytes) {
        Ok(length) if bytes <= MAX_TEXT_BYTES => Ok("x".repeat(length)),
        _ => Err(CallFailure::trouble(format!("at most {MAX_TEXT_BYTES} bytes"))),
    }
}
