//! One run of a probe, at one revision: opens, looks around, goes through the stages, and ends what it opened.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use prism_core::mcp::Era;
use prism_mcp::client::{
    ClientError, ClientOptions, Foreign, ListedTool, McpClient, QuestionHandler, RevisionChoice, RpcResult,
    ServerDescription, ToolResult,
};
use serde_json::{Value, json};

use super::{
    ProbePlan,
    check::{ProbeCheck, fail, ok, skipped},
    door, judge,
    record::{ProbeRecord, ProbeRequest, TimedMessage},
    streams,
};
use crate::cli::call::arguments;

/// What a run found.
pub(super) struct ProbeReport {
    pub(super) wanted: RevisionChoice,
    /// Why there is nothing to report.
    pub(super) fault: Option<ClientError>,
    pub(super) greeting: ServerDescription,
    pub(super) counts: Vec<(&'static str, usize)>,
    pub(super) open: Duration,
    pub(super) ping: Option<Duration>,
    pub(super) asked: Vec<ProbeRequest>,
    pub(super) arrivals: Vec<TimedMessage>,
    pub(super) dropped: usize,
    pub(super) comments: usize,
    pub(super) checks: Vec<ProbeCheck>,
}

/// A run while it lasts.
pub(super) struct ProbeRun<'a> {
    pub(super) plan: &'a ProbePlan,
    pub(super) client: Arc<McpClient>,
    pub(super) record: Arc<ProbeRecord>,
    pub(super) tools: Vec<ListedTool>,
    /// Text that marks what this run makes the demo server say.
    pub(super) mark: String,
    pub(super) checks: Vec<ProbeCheck>,
}

/// The demo server's name, and the tools of its that are used.
pub(super) const DEMO: &str = "prism-demo";
const DEMO_TOOLS: [&str; 6] = ["log", "progress", "slow", "ask", "change", "big"];

/// The lists that a server may have: the capability, the method, the member, and what is counted.
const LISTS: [(&str, &str, &str, &str); 4] = [
    ("tools", "tools/list", "tools", "tools"),
    ("prompts", "prompts/list", "prompts", "prompts"),
    ("resources", "resources/list", "resources", "resources"),
    ("resources", "resources/templates/list", "resourceTemplates", "resource_templates"),
];

/// Probes a server at one revision.
pub(super) async fn run(plan: &ProbePlan, wanted: RevisionChoice) -> ProbeReport {
    let record = Arc::new(ProbeRecord::new());
    let began = Instant::now();
    let options = ClientOptions {
        url: plan.http.url.clone(),
        headers: plan.http.headers.clone().into_iter().collect(),
        wanted,
        patience: plan.patience,
        manners: QuestionHandler::Decline,
        // So that questions can be seen to arrive; they are declined.
        capabilities: Some(json!({"elicitation": {}})),
        level: Some("info"),
        watch: record.clone(),
    };
    let mut report = ProbeReport {
        wanted,
        fault: None,
        greeting: ServerDescription::default(),
        counts: Vec::new(),
        open: Duration::ZERO,
        ping: None,
        asked: Vec::new(),
        arrivals: Vec::new(),
        dropped: 0,
        comments: 0,
        checks: Vec::new(),
    };
    match McpClient::open(options).await {
        Ok(client) => {
            report.open = began.elapsed();
            report.greeting = client.greeting.clone();
            let mark = format!("probe-{:08x}", std::process::id() ^ began.elapsed().subsec_nanos());
            let run = ProbeRun { plan, client, record: record.clone(), tools: Vec::new(), mark, checks: Vec::new() };
            run.go(&mut report).await;
        }
        Err(fault) => report.fault = Some(fault),
    }
    let mut state = record.state();
    report.arrivals = std::mem::take(&mut state.arrivals);
    report.asked = std::mem::take(&mut state.asked);
    (report.dropped, report.comments) = (state.dropped, state.comments);
    drop(state);
    report
}

impl ProbeRun<'_> {
    async fn go(mut self, report: &mut ProbeReport) {
        self.revision(report.wanted);
        self.session();
        self.lists(report).await;
        self.ping(report).await;
        if self.plan.post {
            streams::post(&mut self).await;
        }
        if self.plan.get {
            streams::listen(&mut self).await;
        }
        self.call().await;
        self.unknown_tool().await;
        streams::cancel(&mut self).await;
        door::knock(&mut self).await;
        door::leave(&mut self).await;
        judge::all(&mut self);
        report.checks = self.checks;
    }

    pub(super) fn is_legacy(&self) -> bool {
        self.client.era() == Era::Legacy
    }

    /// Whether this is our own demo server, whose tools are known to be harmless.
    pub(super) fn is_demo(&self) -> bool {
        let has = |name: &&str| self.tools.iter().any(|tool| tool.name == **name);
        self.client.greeting.name == DEMO && DEMO_TOOLS.iter().all(has)
    }

    pub(super) fn add(&mut self, check: ProbeCheck) {
        self.checks.push(check);
    }

    /// Calls a tool. Returns the number of the call, too.
    pub(super) async fn tool(&self, name: &str, arguments: Value) -> (u64, Result<RpcResult, ClientError>) {
        let id = self.client.next_id();
        (id, self.client.call(id, name, &arguments).await)
    }

    fn revision(&mut self, wanted: RevisionChoice) {
        let got = self.client.greeting.revision.clone();
        let check = match wanted {
            RevisionChoice::Auto => ok("revision", format!("{got} was agreed on")),
            _ if wanted.name() == got => ok("revision", format!("{got}, as asked for")),
            _ => skipped("revision", format!("{} was asked for, the server chose {got}, as it may", wanted.name())),
        };
        self.add(check);
    }

    fn session(&mut self) {
        let check = match (self.is_legacy(), self.client.greeting.session.as_deref()) {
            (false, _) => skipped("session", "2026-07-28 has no sessions"),
            (true, None) => skipped("session", "no session id: the server keeps no state, as it may"),
            (true, Some(id)) if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_graphic()) => fail(
                "session",
                "the session id is not visible ASCII",
                "mint ids of the characters 0x21 to 0x7E, a UUID v4 for example",
            ),
            (true, Some(id)) => ok("session", format!("issued: {}", judge::format_of(id))),
        };
        self.add(check);
    }

    async fn lists(&mut self, report: &mut ProbeReport) {
        let mut wrong = Vec::new();
        for (capability, method, member, counted) in LISTS {
            if !self.client.has(capability) {
                continue;
            }
            match self.client.list(method, member).await {
                Ok(all) => {
                    report.counts.push((counted, all.len()));
                    if member == "tools" {
                        self.tools = all.iter().map(ListedTool::of).collect();
                    }
                }
                // Servers have resources without templates.
                Err(ClientError::Rpc { code: -32601, .. }) if member == "resourceTemplates" => {}
                Err(fault) => wrong.push(format!("{method}: {fault}")),
            }
        }
        let all: Vec<String> = report.counts.iter().map(|(what, count)| judge::counted(what, *count)).collect();
        let check = match (wrong.is_empty(), all.is_empty()) {
            (true, true) => skipped("lists", "the server says that it has neither tools nor prompts nor resources"),
            (true, false) => ok("lists", all.join(", ")),
            (false, _) => fail("lists", wrong.join("; "), "answer the lists of the capabilities that are declared"),
        };
        self.add(check);
    }

    async fn ping(&mut self, report: &mut ProbeReport) {
        if !self.is_legacy() {
            return self.add(skipped("ping", "2026-07-28 has no ping"));
        }
        let began = Instant::now();
        let check = match self.client.ask("ping", json!({})).await {
            Ok(_) => {
                report.ping = Some(began.elapsed());
                ok("ping", format!("answered in {:.1} ms", began.elapsed().as_secs_f64() * 1000.0))
            }
            Err(fault) => fail("ping", fault.to_string(), "answer `ping` with an empty result, promptly"),
        };
        self.add(check);
    }

    /// What `--call` asks for.
    async fn call(&mut self) {
        let Some((name, words)) = self.plan.call.split_first() else { return };
        let Some(tool) = self.tools.iter().find(|tool| tool.name == *name) else {
            let known: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
            let why = format!("there is no tool {name:?}; known: {}", known.join(", "));
            return self.add(fail("call", why, "prism tools lists them with their arguments"));
        };
        let arguments = match arguments::read(&tool.input_schema, words, None) {
            Ok(arguments) => arguments,
            Err(wrong) => return self.add(fail("call", wrong, "prism tools lists the arguments of each tool")),
        };
        let (id, outcome) = self.tool(name, arguments).await;
        let notes = self.record.state().count(|arrival| judge::is_note(arrival) && judge::is_of_call(arrival, id));
        let check = match outcome {
            Ok(outcome) if ToolResult::of(&outcome.result).is_error => {
                ok("call", format!("{name} failed, and said so, after {notes} notes"))
            }
            Ok(_) => ok("call", format!("{name} answered after {notes} notes")),
            Err(fault) => fail("call", format!("{name}: {fault}"), "look into the server's log"),
        };
        self.add(check);
    }

    async fn unknown_tool(&mut self) {
        if !self.client.has("tools") {
            return self.add(skipped("unknown_tool", "the server has no tools"));
        }
        let (_, outcome) = self.tool("prism-probe-no-such-tool", json!({})).await;
        let check = match outcome {
            Err(ClientError::Rpc { code, .. }) => ok("unknown_tool", format!("error {code}")),
            Ok(outcome) if ToolResult::of(&outcome.result).is_error => ok("unknown_tool", "a result that says isError"),
            Ok(_) => fail("unknown_tool", "a tool that does not exist was called with success", "answer error -32602"),
            Err(fault) => fail("unknown_tool", fault.to_string(), "answer error -32602, at once"),
        };
        self.add(check);
    }
}
