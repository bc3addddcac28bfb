//! The tools that answer, fail and change things. Those that speak on the way or ask are in `talk.rs`.

use std::{
    io::{self, Write},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{State, shelf};
use prism_mcp::kit::{Call, Failure, Reply, Server, Tool};

/// Declares a tool: its type and that of its arguments, its name, what it is called and does, and how.
macro_rules! tool {
    (
        $tool:ty: $type:ty, $name:literal, $title:literal, $about:literal,
        |$self:ident, $arguments:pat_param, $call:pat_param| $body:block
    ) => {
        impl Tool for $tool {
            type Arguments = $type;
            const NAME: &'static str = $name;
            const TITLE: &'static str = $title;
            const DESCRIPTION: &'static str = $about;

            async fn call(&$self, $arguments: $type, $call: &Call) -> Result<Reply, Failure> $body
        }
    };
}
pub(super) use tool;

pub(super) fn add(server: Server, state: &Arc<State>) -> Server {
    server
        .tool(Echo)
        .tool(Slow)
        .tool(Route)
        .tool(Show)
        .tool(Fail)
        .tool(Trouble)
        .tool(Touch(state.clone()))
        .tool(Change(state.clone()))
        .tool(Later(state.clone()))
        .tool(WhoAmI)
        .tool(Crash)
        .tool(Stderr)
        .tool(Big)
        .tool(Caps)
        .tool(Subscriptions)
}

/// The longest text made to order. Beyond it the call fails: a typing error must not eat the machine.
pub(super) const MAX_TEXT_BYTES: u64 = 256 << 20;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Nothing {}

struct Echo;

#[derive(Deserialize, JsonSchema)]
struct EchoArguments {
    /// What to say back.
    text: String,
    /// That many bytes instead.
    size: Option<u64>,
}

tool!(Echo: EchoArguments, "echo", "Echo", "Says it back; with `size`, that many bytes instead.", |self, it, _| {
    match it.size {
        Some(bytes) => filler(bytes).map(Reply::text),
        None => Ok(Reply::text(it.text)),
    }
});

struct Slow;

#[derive(Deserialize, JsonSchema)]
struct SlowArguments {
    /// How long to wait, in milliseconds.
    ms: u64,
    /// What to say back.
    text: String,
}

tool!(Slow: SlowArguments, "slow", "Wait", "Says it back after `ms` milliseconds.", |self, it, _| {
    pause(it.ms).await;
    Ok(Reply::text(it.text))
});

struct Route;

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
    Route: RouteArguments, "route", "Route",
    "Answers where to; HTTP clients of the modern era say it in headers, too.",
    |self, it, _| {
        Ok(Reply::text(format!("to {} with {}", it.region, json!(it.priority))))
    }
);

struct Show;

#[derive(Deserialize, JsonSchema)]
struct ShowArguments {
    /// Which kind of block.
    kind: Block,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Block {
    Audio,
    ResourceLink,
    Structured,
    List,
}

tool!(Show: ShowArguments, "show", "Show", "Answers a block of that kind.", |self, it, _| {
    let blocks = |block| Reply::blocks(vec![block]);
    Ok(match it.kind {
        Block::Audio => blocks(json!({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"})),
        Block::ResourceLink => blocks(json!({"type": "resource_link", "uri": "demo://hello", "name": "hello"})),
        Block::Structured => Reply::blocks(Vec::new()).with_structured(json!({"sum": 3})),
        Block::List => Reply::blocks(Vec::new()).with_structured(json!([1, 2])),
    })
});

struct Fail;

#[derive(Deserialize, JsonSchema)]
struct FailArguments {
    /// The code of the error.
    code: i32,
}

tool!(Fail: FailArguments, "fail", "Fail", "Fails with `code`, as an error of the protocol.", |self, it, _| {
    Err(Failure::error(it.code, "as you wish"))
});

struct Trouble;

#[derive(Deserialize, JsonSchema)]
struct TextArguments {
    /// What to say.
    text: String,
}

tool!(Trouble: TextArguments, "trouble", "Trouble", "Fails with `text`, as an error of the tool.", |self, it, _| {
    Err(Failure::trouble(it.text))
});

struct Touch(Arc<State>);

#[derive(Deserialize, JsonSchema)]
struct TouchArguments {
    /// Which resource, such as demo://counter.
    uri: String,
}

tool!(Touch: TouchArguments, "touch", "Touch", "Reports an update of `uri`, if it is subscribed to.", |self, it, _| {
    self.0.counter.fetch_add(u64::from(it.uri == shelf::COUNTER), Ordering::Relaxed);
    let told = self.0.notifier.updated(&it.uri);
    Ok(Reply::text(if told > 0 { "update sent" } else { "not subscribed" }))
});

struct Change(Arc<State>);

#[derive(Deserialize, JsonSchema)]
struct ChangeArguments {
    /// Which list.
    what: List,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum List {
    Tools,
    Prompts,
    Resources,
}

tool!(Change: ChangeArguments, "change", "Change", "Reports that a list changed.", |self, it, _| {
    self.0.report_change(it.what);
    Ok(Reply::text("change sent"))
});

struct Later(Arc<State>);

#[derive(Deserialize, JsonSchema)]
struct LaterArguments {
    /// How long to wait, in milliseconds.
    ms: u64,
    /// Which list.
    what: List,
}

tool!(
    Later: LaterArguments, "later", "Change later",
    "Answers at once, and reports that a list changed after `ms` milliseconds.",
    |self, it, _| {
        let state = self.0.clone();
        tokio::spawn(async move {
            pause(it.ms).await;
            state.report_change(it.what);
        });
        Ok(Reply::text("the change comes later"))
    }
);

struct WhoAmI;

tool!(WhoAmI: Nothing, "whoami", "Who am I", "Answers the process id.", |self, _, _| {
    Ok(Reply::text(std::process::id().to_string()))
});

struct Crash;

#[derive(Deserialize, JsonSchema)]
struct CrashArguments {
    /// The exit code; 1 if left out.
    code: Option<u64>,
}

tool!(Crash: CrashArguments, "crash", "Crash", "Exits with `code`, or 1, without an answer.", |self, it, call| {
    // What was answered before it is not lost with it.
    call.drained().await;
    let code = it.code.and_then(|code| i32::try_from(code).ok());
    std::process::exit(code.unwrap_or(1))
});

struct Stderr;

tool!(Stderr: TextArguments, "stderr", "Write to stderr", "Writes a line to stderr.", |self, it, _| {
    // One write, so that the line arrives whole. A closed stderr is the tool's trouble, not the server's end.
    let written = io::stderr().write_all(format!("{}\n", it.text).as_bytes());
    written.map(|()| Reply::text("written")).map_err(|error| Failure::trouble(error.to_string()))
});

struct Big;

#[derive(Deserialize, JsonSchema)]
struct BigArguments {
    /// How many.
    bytes: u64,
}

tool!(Big: BigArguments, "big", "Big answer", "Answers a text of that many bytes.", |self, it, _| {
    filler(it.bytes).map(Reply::text)
});

struct Caps;

tool!(Caps: Nothing, "caps", "Capabilities", "Answers what the client said of itself, as JSON.", |self, _, call| {
    Ok(Reply::text(call.client().to_string()))
});

struct Subscriptions;

tool!(
    Subscriptions: Nothing, "subscriptions", "Subscriptions",
    "Answers the subscribed URIs and the log level, as JSON.",
    |self, _, call| {
        let level = call.level().map(|level| level.name());
        Ok(Reply::text(json!({"subscriptions": call.watched(), "level": level}).to_string()))
    }
);

impl State {
    fn report_change(&self, list: List) {
        match list {
            List::Tools => self.notifier.tools_changed(),
            List::Prompts => self.notifier.prompts_changed(),
            List::Resources => self.notifier.resources_changed(),
        };
    }
}

/// Waits. A call that is cancelled meanwhile has no answer, and is dropped.
pub(super) async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

pub(super) fn filler(bytes: u64) -> Result<String, Failure> {
    match usize::try_from(bytes) {
        Ok(length) if bytes <= MAX_TEXT_BYTES => Ok("x".repeat(length)),
        _ => Err(Failure::trouble(format!("at most {MAX_TEXT_BYTES} bytes"))),
    }
}
