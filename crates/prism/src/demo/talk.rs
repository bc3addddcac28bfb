//! The tools that speak on the way: progress, notes, much content, and questions to the client.

use std::sync::{Arc, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    DemoFault, DemoState,
    tools::{IgnoredArguments, MAX_TEXT_BYTES, filler, pause, tool},
};
use prism_mcp::kit::{BuiltinServer, CallFailure, ClientQuestion, LogLevel, ServerCall, ToolReply, TypedTool};

pub(super) fn add(server: BuiltinServer, state: &Arc<DemoState>) -> BuiltinServer {
    server
        .tool(ProgressTool)
        .tool(LogTool)
        .tool(StreamTool)
        .tool(AskTool(state.clone()))
        .tool(SampleTool)
        .tool(VisitTool(state.clone()))
        .tool(PingClientTool)
}

const LOGGER: &str = "prism-demo";

/// Blocks of one answer. Beyond it the call fails.
const MAX_CHUNKS: u64 = 10_000;

struct ProgressTool;

#[derive(Deserialize, JsonSchema)]
struct ProgressArguments {
    /// How many steps.
    steps: u64,
    /// How long each takes, in milliseconds.
    ms: u64,
    /// The message of each step, and the answer.
    text: Option<String>,
}

tool!(
    ProgressTool: ProgressArguments, "progress", "Progress",
    "Reports `steps` steps of `ms` milliseconds, with `text` as their message, and says it back.",
    |self, it, call| {
        let text = it.text.unwrap_or_default();
        for step in 1..=it.steps {
            pause(it.ms).await;
            call.room().await;
            call.progress(step, Some(it.steps), &text);
        }
        Ok(ToolReply::text(if text.is_empty() { format!("{} steps done", it.steps) } else { text }))
    }
);

struct LogTool;

#[derive(Deserialize, JsonSchema)]
struct LogArguments {
    /// How grave; info if left out.
    level: Option<DemoLogLevel>,
    /// How many notes; 1 if left out.
    count: Option<u64>,
    /// What each says.
    text: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DemoLogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl DemoLogLevel {
    fn level(self) -> LogLevel {
        match self {
            Self::Debug => LogLevel::Debug,
            Self::Info => LogLevel::Info,
            Self::Notice => LogLevel::Notice,
            Self::Warning => LogLevel::Warning,
            Self::Error => LogLevel::Error,
            Self::Critical => LogLevel::Critical,
            Self::Alert => LogLevel::Alert,
            Self::Emergency => LogLevel::Emergency,
        }
    }
}

tool!(LogTool: LogArguments, "log", "Log", "Logs `count` notes, if the level is not below the one set.", |self, it, call| {
    let level = it.level.unwrap_or(DemoLogLevel::Info).level();
    if !call.wants(level) {
        return Ok(ToolReply::text("0 notes sent"));
    }
    let count = it.count.unwrap_or(1);
    for i in 1..=count {
        let data = it.text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| format!("note {i}"));
        call.room().await;
        call.log(level, Some(LOGGER), data.into(), None);
    }
    Ok(ToolReply::text(format!("{count} notes sent")))
});

struct StreamTool;

#[derive(Deserialize, JsonSchema)]
struct StreamArguments {
    /// How many blocks of text.
    chunks: u64,
    /// The bytes of each.
    bytes: u64,
    /// How long each takes, in milliseconds.
    ms: Option<u64>,
}

tool!(
    StreamTool: StreamArguments, "stream", "Large answer",
    "Answers `chunks` blocks of `bytes` bytes, and reports each as it is made.",
    |self, it, call| {
        if it.chunks > MAX_CHUNKS || it.chunks.saturating_mul(it.bytes) > MAX_TEXT_BYTES {
            return Err(CallFailure::trouble(format!("at most {MAX_CHUNKS} chunks, and {MAX_TEXT_BYTES} bytes in all")));
        }
        let mut blocks = Vec::new();
        for chunk in 1..=it.chunks {
            pause(it.ms.unwrap_or_default()).await;
            blocks.push(json!({"type": "text", "text": filler(it.bytes)?}));
            call.room().await;
            call.progress(chunk, Some(it.chunks), &format!("chunk {chunk} of {}", it.chunks));
        }
        Ok(ToolReply::blocks(blocks))
    }
);

struct AskTool(Arc<DemoState>);

#[derive(Deserialize, JsonSchema)]
struct AskArguments {
    /// Which kind of question.
    kind: AskKind,
    /// The question.
    text: String,
    /// A second question, put at the same time.
    also: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum AskKind {
    Sampling,
    Elicitation,
    Roots,
}

tool!(
    AskTool: AskArguments, "ask", "Ask",
    "Asks the client, with `also` two things at once, and answers what it replied.",
    |self, it, call| {
        if self.0.fault == DemoFault::LateAsk {
            return Ok(ToolReply::text("the question comes later"));
        }
        let mut questions = vec![question("first", it.kind, &it.text)];
        questions.extend(it.also.map(|also| question("second", it.kind, &also)));
        // In the legacy era whatever the client said it can do: a well-bred server would look first, but then nobody
        // would see how a question out of turn is refused.
        let results = call.insist(questions).await?;
        Ok(ToolReply::text(match &results[..] {
            [result] => match result["content"]["text"].as_str() {
                Some(text) if it.kind == AskKind::Sampling => text.to_owned(),
                // The other kinds give objects, which are shown as they came.
                _ => result.to_string(),
            },
            results => json!(results).to_string(),
        }))
    }
);

fn question(key: &'static str, kind: AskKind, text: &str) -> ClientQuestion {
    let (method, params) = match kind {
        AskKind::Sampling => {
            let content = json!({"type": "text", "text": text});
            let messages = json!([{"role": "user", "content": content}]);
            ("sampling/createMessage", json!({"messages": messages, "maxTokens": 100}))
        }
        AskKind::Elicitation => {
            let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
            ("elicitation/create", json!({"message": text, "requestedSchema": schema}))
        }
        AskKind::Roots => ("roots/list", Value::Null),
    };
    ClientQuestion { key, method, params }
}

/// The request that follows the answer to a call of `ask` with these arguments.
pub(super) fn late_question(arguments: &Value) -> Value {
    let kind = AskKind::deserialize(&arguments["kind"]).unwrap_or(AskKind::Roots);
    let ClientQuestion { method, params, .. } = question("first", kind, arguments["text"].as_str().unwrap_or_default());
    let mut request = json!({"jsonrpc": "2.0", "id": 0, "method": method});
    if !params.is_null() {
        request["params"] = params;
    }
    request
}

struct SampleTool;

#[derive(Deserialize, JsonSchema)]
struct SampleArguments {
    /// What to say to the model.
    prompt: String,
}

tool!(SampleTool: SampleArguments, "sample", "Sample", "Asks the client's model, and answers its text.", |self, it, call| {
    let ClientQuestion { key, method, params } = question("sample", AskKind::Sampling, &it.prompt);
    let result = call.ask(key, method, params).await?;
    Ok(ToolReply::text(result["content"]["text"].as_str().map_or_else(|| result.to_string(), str::to_owned)))
});

struct VisitTool(Arc<DemoState>);

#[derive(Deserialize, JsonSchema)]
struct VisitArguments {
    /// Which page.
    url: String,
}

tool!(
    VisitTool: VisitArguments, "visit", "Visit",
    "Wants a page opened, and is content when it is called again for it.",
    |self, it, call| {
        let mut page = json!({"mode": "url", "url": it.url, "message": "Please open this page."});
        if call.is_modern() {
            return Ok(ToolReply::text(call.ask("page", "elicitation/create", page).await?.to_string()));
        }
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.remove(&it.url) {
            return Ok(ToolReply::text(format!("{} was opened", it.url)));
        }
        opened.insert(it.url);
        page["elicitationId"] = "visit-1".into();
        let data = json!({"elicitations": [page]});
        Err(CallFailure::error(-32042, "a page must be opened first").with_data(data))
    }
);

struct PingClientTool;

tool!(PingClientTool: IgnoredArguments, "ping_client", "Ping", "Pings the client, and answers when it did.", |self, _, call| {
    if call.is_modern() {
        return Err(CallFailure::trouble("2026-07-28 has no ping"));
    }
    call.ask("ping", "ping", Value::Null).await?;
    Ok(ToolReply::text("pong"))
});
