//! The tools that speak on the way: progress, notes, much content, and questions to the client.

use std::sync::{Arc, PoisonError};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Fault, State,
    tools::{MAX_TEXT_BYTES, Nothing, filler, pause, tool},
};
use prism_mcp::kit::{Call, Failure, Level, Question, Reply, Server, Tool};

pub(super) fn add(server: Server, state: &Arc<State>) -> Server {
    server
        .tool(Progress)
        .tool(Log)
        .tool(Stream)
        .tool(Ask(state.clone()))
        .tool(Sample)
        .tool(Visit(state.clone()))
        .tool(PingClient)
}

const LOGGER: &str = "prism-demo";

/// Blocks of one answer. Beyond it the call fails.
const MAX_CHUNKS: u64 = 10_000;

struct Progress;

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
    Progress: ProgressArguments, "progress", "Progress",
    "Reports `steps` steps of `ms` milliseconds, with `text` as their message, and says it back.",
    |self, it, call| {
        let text = it.text.unwrap_or_default();
        for step in 1..=it.steps {
            pause(it.ms).await;
            call.room().await;
            call.progress(step, Some(it.steps), &text);
        }
        Ok(Reply::text(if text.is_empty() { format!("{} steps done", it.steps) } else { text }))
    }
);

struct Log;

#[derive(Deserialize, JsonSchema)]
struct LogArguments {
    /// How grave; info if left out.
    level: Option<Grade>,
    /// How many notes; 1 if left out.
    count: Option<u64>,
    /// What each says.
    text: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Grade {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Grade {
    fn level(self) -> Level {
        match self {
            Self::Debug => Level::Debug,
            Self::Info => Level::Info,
            Self::Notice => Level::Notice,
            Self::Warning => Level::Warning,
            Self::Error => Level::Error,
            Self::Critical => Level::Critical,
            Self::Alert => Level::Alert,
            Self::Emergency => Level::Emergency,
        }
    }
}

tool!(Log: LogArguments, "log", "Log", "Logs `count` notes, if the level is not below the one set.", |self, it, call| {
    let level = it.level.unwrap_or(Grade::Info).level();
    if !call.wants(level) {
        return Ok(Reply::text("0 notes sent"));
    }
    let count = it.count.unwrap_or(1);
    for i in 1..=count {
        let data = it.text.clone().filter(|text| !text.is_empty()).unwrap_or_else(|| format!("note {i}"));
        call.room().await;
        call.log(level, Some(LOGGER), data.into(), None);
    }
    Ok(Reply::text(format!("{count} notes sent")))
});

struct Stream;

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
    Stream: StreamArguments, "stream", "Large answer",
    "Answers `chunks` blocks of `bytes` bytes, and reports each as it is made.",
    |self, it, call| {
        if it.chunks > MAX_CHUNKS || it.chunks.saturating_mul(it.bytes) > MAX_TEXT_BYTES {
            return Err(Failure::trouble(format!("at most {MAX_CHUNKS} chunks, and {MAX_TEXT_BYTES} bytes in all")));
        }
        let mut blocks = Vec::new();
        for chunk in 1..=it.chunks {
            pause(it.ms.unwrap_or_default()).await;
            blocks.push(json!({"type": "text", "text": filler(it.bytes)?}));
            call.room().await;
            call.progress(chunk, Some(it.chunks), &format!("chunk {chunk} of {}", it.chunks));
        }
        Ok(Reply::blocks(blocks))
    }
);

struct Ask(Arc<State>);

#[derive(Deserialize, JsonSchema)]
struct AskArguments {
    /// Which kind of question.
    kind: Kind,
    /// The question.
    text: String,
    /// A second question, put at the same time.
    also: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Sampling,
    Elicitation,
    Roots,
}

tool!(
    Ask: AskArguments, "ask", "Ask",
    "Asks the client, with `also` two things at once, and answers what it replied.",
    |self, it, call| {
        if self.0.fault == Fault::LateAsk {
            return Ok(Reply::text("the question comes later"));
        }
        let mut questions = vec![question("first", it.kind, &it.text)];
        questions.extend(it.also.map(|also| question("second", it.kind, &also)));
        // In the legacy era whatever the client said it can do: a well-bred server would look first, but then nobody
        // would see how a question out of turn is refused.
        let results = call.insist(questions).await?;
        Ok(Reply::text(match &results[..] {
            [result] => match result["content"]["text"].as_str() {
                Some(text) if it.kind == Kind::Sampling => text.to_owned(),
                // The other kinds give objects, which are shown as they came.
                _ => result.to_string(),
            },
            results => json!(results).to_string(),
        }))
    }
);

fn question(key: &'static str, kind: Kind, text: &str) -> Question {
    let (method, params) = match kind {
        Kind::Sampling => {
            let content = json!({"type": "text", "text": text});
            let messages = json!([{"role": "user", "content": content}]);
            ("sampling/createMessage", json!({"messages": messages, "maxTokens": 100}))
        }
        Kind::Elicitation => {
            let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
            ("elicitation/create", json!({"message": text, "requestedSchema": schema}))
        }
        Kind::Roots => ("roots/list", Value::Null),
    };
    Question { key, method, params }
}

/// The request that follows the answer to a call of `ask` with these arguments.
pub(super) fn late_question(arguments: &Value) -> Value {
    let kind = Kind::deserialize(&arguments["kind"]).unwrap_or(Kind::Roots);
    let Question { method, params, .. } = question("first", kind, arguments["text"].as_str().unwrap_or_default());
    let mut request = json!({"jsonrpc": "2.0", "id": 0, "method": method});
    if !params.is_null() {
        request["params"] = params;
    }
    request
}

struct Sample;

#[derive(Deserialize, JsonSchema)]
struct SampleArguments {
    /// What to say to the model.
    prompt: String,
}

tool!(Sample: SampleArguments, "sample", "Sample", "Asks the client's model, and answers its text.", |self, it, call| {
    let Question { key, method, params } = question("sample", Kind::Sampling, &it.prompt);
    let result = call.ask(key, method, params).await?;
    Ok(Reply::text(result["content"]["text"].as_str().map_or_else(|| result.to_string(), str::to_owned)))
});

struct Visit(Arc<State>);

#[derive(Deserialize, JsonSchema)]
struct VisitArguments {
    /// Which page.
    url: String,
}

tool!(
    Visit: VisitArguments, "visit", "Visit",
    "Wants a page opened, and is content when it is called again for it.",
    |self, it, call| {
        let mut page = json!({"mode": "url", "url": it.url, "message": "Please open this page."});
        if call.is_modern() {
            return Ok(Reply::text(call.ask("page", "elicitation/create", page).await?.to_string()));
        }
        let mut opened = self.0.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.remove(&it.url) {
            return Ok(Reply::text(format!("{} was opened", it.url)));
        }
        opened.insert(it.url);
        page["elicitationId"] = "visit-1".into();
        let data = json!({"elicitations": [page]});
        Err(Failure::error(-32042, "a page must be opened first").with_data(data))
    }
);

struct PingClient;

tool!(PingClient: Nothing, "ping_client", "Ping", "Pings the client, and answers when it did.", |self, _, call| {
    if call.is_modern() {
        return Err(Failure::trouble("2026-07-28 has no ping"));
    }
    call.ask("ping", "ping", Value::Null).await?;
    Ok(Reply::text("pong"))
});
