//! The two ways in which a server streams: on the response to a POST, and on a stream of its own. Only the demo server
//! is made to say something; of any other it is seen what it says by itself.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use prism_mcp::{
    client::{
        ArrivalPath, ClientError, Foreign, McpClient, SeenCapabilities, SeenMessage, SseItem, SseStream, ToolResult,
        TrafficObserver, UnreadResponse, parse,
    },
    remote::reading::{self, ResponseContent},
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{
    check::{fail, ok, skipped},
    judge::{counted, is_answer_to, is_method, is_of_call, is_on_get, says},
    record::{ProbeTraffic, TimedMessage},
    run::ProbeRun,
};

/// How long a keep-alive may take: Prism sends one after 15 s.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Steps that the progress of a call takes, and notes that another logs.
const STEPS: usize = 3;
const NOTES: usize = 2;
/// The size of an answer that does not fit into one packet.
const BIG: usize = 200_000;

/// How long a call is let run that cannot say when it has begun: its server answers POSTs with plain JSON.
const UNDER_WAY: Duration = Duration::from_millis(200);

const PROGRESS: &str = "notifications/progress";
const LOG: &str = "notifications/message";
const NOT_OURS: &str = "not the demo server: its tools are not called; name one with --call TOOL key=value";

/// A stream that is read in the background. Dropped, it is closed.
struct ProbeListener {
    task: JoinHandle<()>,
    last_id: Arc<Mutex<Option<String>>>,
}

/// Makes the demo server talk while it works, and sees whether that comes before its answer (N-02).
pub(super) async fn post(run: &mut ProbeRun<'_>) {
    if !run.is_demo() {
        let why =
            if run.plan.call.is_empty() { NOT_OURS } else { "not the demo server: what --call brought is judged" };
        return run.add(skipped("post_stream", why));
    }
    let (id, outcome) = run.tool("progress", json!({"steps": STEPS, "ms": 20, "text": run.mark})).await;
    notes_before_answer(run, "post_progress", id, PROGRESS, STEPS, outcome.err());
    let mark = format!("{}-post", run.mark);
    let (id, outcome) = run.tool("log", json!({"level": "warning", "count": NOTES, "text": mark})).await;
    notes_before_answer(run, "post_log", id, LOG, NOTES, outcome.err());
    let (_, outcome) = run.tool("big", json!({"bytes": BIG})).await;
    let length = outcome.as_ref().map(|outcome| ToolResult::of(&outcome.result).first_text().len());
    let check = match length {
        Ok(BIG) => ok("big_answer", format!("{BIG} bytes came whole")),
        Ok(length) => fail("big_answer", format!("{length} of {BIG} bytes came"), "look for a proxy that cuts bodies"),
        Err(fault) => fail("big_answer", fault.to_string(), "raise the server's limit on messages, or its proxy's"),
    };
    run.add(check);
    // A server that answers POSTs with JSON asks on the GET stream, which is not open yet.
    if !(run.is_legacy() && answers_json(run)) {
        question(run).await;
    }
}

/// Whether a call that has something to say on the way was answered with plain JSON, as a server may choose to.
fn answers_json(run: &ProbeRun<'_>) -> bool {
    let talks = |what: &str| matches!(what, "tools/call progress" | "tools/call log");
    run.record.state().asked.iter().any(|asked| talks(&asked.what) && asked.content == "application/json")
}

fn notes_before_answer(
    run: &mut ProbeRun<'_>,
    name: &'static str,
    id: u64,
    method: &str,
    wanted: usize,
    fault: Option<ClientError>,
) {
    if let Some(fault) = fault {
        return run.add(fail(name, fault.to_string(), "look into the server's log"));
    }
    let state = run.record.state();
    let answer = state.arrivals.iter().position(|one| is_answer_to(&one.arrival, id)).unwrap_or(state.arrivals.len());
    let is_note = |path: ArrivalPath| path == ArrivalPath::Post(id);
    let notes = |part: &[TimedMessage]| {
        part.iter().filter(|one| is_note(one.arrival.path) && is_method(&one.arrival, method)).count()
    };
    let (before, after) = (notes(&state.arrivals[..answer]), notes(&state.arrivals[answer..]));
    let first = state.arrivals.iter().find(|one| is_of_call(&one.arrival, id)).map(|one| one.at);
    let asked = state.asked.iter().find(|asked| asked.id == id).map(|asked| asked.at);
    let streamed = state.asked.iter().any(|asked| asked.id == id && asked.content == "text/event-stream");
    drop(state);
    let check = if before == wanted && after == 0 {
        let first = first.zip(asked).map_or(0.0, |(first, asked)| first.saturating_sub(asked).as_secs_f64() * 1000.0);
        ok(name, format!("{wanted} notes on the stream of call {id}, before its result; the first after {first:.1} ms"))
    } else if !streamed && run.plan.insists {
        let fix =
            "answer a call that talks with text/event-stream; look for a proxy that buffers or turns streams into JSON";
        fail(name, format!("call {id} was answered with JSON, so its {wanted} notes had no way to come"), fix)
    } else if !streamed {
        let why = "was answered with JSON, as a server may choose to; --test-post-sse makes that a failure";
        skipped(name, format!("call {id} {why}"))
    } else {
        let why = format!("of {wanted} notes {before} came before the result of call {id} and {after} after it");
        fail(name, why, "send what belongs to a call on its own stream, before the result")
    };
    run.add(check);
}

/// Lets the demo server ask something, and declines.
async fn question(run: &mut ProbeRun<'_>) {
    let (_, outcome) = run.tool("ask", json!({"kind": "elicitation", "text": run.mark})).await;
    let check = match outcome {
        Ok(outcome) if outcome.result.to_string().contains("decline") => {
            ok("question", "the server asked, was declined, and heard of it")
        }
        Err(ClientError::Rpc { code: -32021, .. }) => skipped("question", "the server cannot ask on this connection"),
        // The revision had no such question yet.
        Ok(_) if run.client.greeting.revision.as_str() < "2025-06-18" => {
            skipped("question", format!("{} has no elicitation", run.client.greeting.revision))
        }
        Ok(outcome) => {
            let said = ToolResult::of(&outcome.result).first_text();
            fail(
                "question",
                format!("the answer did not reach the server: {said}"),
                "look at how questions are passed on",
            )
        }
        Err(fault) => fail("question", fault.to_string(), "look at how questions are passed on"),
    };
    run.add(check);
}

/// Opens the server's own stream, and sees what comes there (N-01, N-04).
pub(super) async fn listen(run: &mut ProbeRun<'_>) {
    if !run.is_legacy() {
        return subscribe(run).await;
    }
    let reply = match run.client.listen(None).await {
        Ok(reply) => reply,
        Err(fault) => {
            return run.add(fail("get_opens", fault.to_string(), "answer GET at once: with a stream, or with 405"));
        }
    };
    match (reply.status, &reply.content) {
        (200, ResponseContent::Events) => run.add(ok("get_opens", "200, text/event-stream")),
        (405, _) => return run.add(skipped("get_opens", "405: the server has no stream of its own, as it may")),
        (200, _) => {
            let why = format!("200 with {:?}", reply.kind());
            return run.add(fail("get_opens", why, "send Content-Type: text/event-stream"));
        }
        (status, _) => {
            return run.add(fail("get_opens", format!("HTTP {status}"), "answer with a stream, or with 405"));
        }
    }
    let listening = ProbeListener::start(run.client.clone(), reply);
    if run.is_demo() {
        if answers_json(run) {
            logs_on_get(run).await;
            question(run).await;
        }
        note_on_get(run).await;
        log_beside_another(run).await;
    } else {
        run.add(skipped("get_note", NOT_OURS));
    }
    keep_alive(run).await;
    let last_id = listening.last_id();
    drop(listening);
    resume(run, last_id).await;
}

/// Where POSTs are answered with JSON, the notes of a call that is over wait for the GET stream.
async fn logs_on_get(run: &mut ProbeRun<'_>) {
    let mark = format!("{}-post", run.mark);
    let is_it = |one: &prism_mcp::client::ReceivedMessage| is_on_get(one) && says(one, &mark);
    run.record.until(run.plan.patience, |state| state.count(is_it) >= NOTES).await;
    let came = run.record.state().count(is_it);
    run.add(match came {
        NOTES => ok("get_log", format!("{NOTES} notes of a call that was answered with JSON came on the GET stream")),
        _ => fail(
            "get_log",
            format!("of {NOTES} notes of a call that was answered with JSON {came} came on the GET stream"),
            "send on the GET stream what has no other way",
        ),
    });
}

async fn note_on_get(run: &mut ProbeRun<'_>) {
    let (_, outcome) = run.tool("change", json!({"what": "tools"})).await;
    let method = "notifications/tools/list_changed";
    let came = run.record.until(run.plan.patience, |state| state.count(|one| is_method(one, method)) > 0).await;
    let on_get = run.record.state().count(|one| is_method(one, method) && is_on_get(one));
    let check = match (outcome, came, on_get) {
        (Err(fault), ..) => fail("get_note", fault.to_string(), "look into the server's log"),
        (_, _, 1..) => ok("get_note", "a change that belongs to no call came on the GET stream"),
        (_, true, _) => {
            fail("get_note", "it came on the stream of a POST", "send what belongs to no call on the GET stream")
        }
        (_, false, _) => fail(
            "get_note",
            "it did not come",
            "look for a proxy that buffers streams, or a stream that is not flushed",
        ),
    };
    run.add(check);
}

/// Two calls at a time: whose note it is nobody can tell on a pipe, so it goes to the session's stream.
async fn log_beside_another(run: &mut ProbeRun<'_>) {
    let mark = format!("{}-get", run.mark);
    let (client, other) = (run.client.clone(), run.client.next_id());
    let beside = tokio::spawn(async move { client.call(other, "progress", &json!({"steps": 500, "ms": 20})).await });
    let begun = |state: &ProbeTraffic| state.count(|one| is_of_call(one, other)) > 0;
    let patience = if answers_json(run) { UNDER_WAY } else { run.plan.patience };
    run.record.until(patience, begun).await;
    let (_, log) = run.tool("log", json!({"level": "warning", "count": 1, "text": mark})).await;
    run.client.cancel(other, "it has served its purpose").await;
    beside.abort();
    run.record.ends(other);
    let is_it = |one: &prism_mcp::client::ReceivedMessage| says(one, &mark);
    run.record.until(Duration::from_secs(1).min(run.plan.patience), |state| state.count(is_it) > 0).await;
    let (all, on_get) = {
        let state = run.record.state();
        (state.count(is_it), state.count(|one| is_it(one) && is_on_get(one)))
    };
    let check = match (log, all) {
        (Err(fault), _) => fail("log_of_two", fault.to_string(), "look into the server's log"),
        (_, 0) => {
            skipped("log_of_two", "the note of one of two calls at a time came nowhere: other clients are busy there")
        }
        // That it comes once is judged in the end: a second one may still be on its way.
        (_, _) => {
            let path = if on_get > 0 { "the GET stream" } else { "the stream of its POST" };
            ok("log_of_two", format!("the note of one of two calls at a time came on {path}"))
        }
    };
    run.add(check);
}

async fn keep_alive(run: &mut ProbeRun<'_>) {
    if run.plan.keep_alive {
        run.record.until(KEEP_ALIVE, |state| state.comments > 0).await;
    }
    let comments = run.record.state().comments;
    let check = match (comments, run.plan.keep_alive) {
        (1.., _) => ok("keep_alive", counted("comment_lines", comments)),
        (0, false) => skipped("keep_alive", "none yet: wait for one with --keep-alive"),
        (0, true) => fail(
            "keep_alive",
            format!("no comment within {} s", KEEP_ALIVE.as_secs()),
            "send a comment line every 15 s: clients and proxies cut a silent stream",
        ),
    };
    run.add(check);
}

/// Goes away, lets things happen, and comes back where it was.
async fn resume(run: &mut ProbeRun<'_>, last_id: Option<String>) {
    let events = run.record.state().count(is_on_get);
    let named = run.record.state().count(|one| is_on_get(one) && one.event_id.is_some());
    let Some(last_id) = last_id else {
        let why = if events == 0 {
            "no event came on the GET stream"
        } else {
            "events have no ids, so nothing can be resumed"
        };
        run.add(skipped("get_ids", why));
        return run.add(skipped("resume", why));
    };
    run.add(if events == 0 {
        ok("get_ids", "an id came before any event, to resume from")
    } else if named == events {
        ok("get_ids", format!("{} with ids", counted("events", named)))
    } else {
        fail("get_ids", format!("{named} of {events} events have ids"), "give every event of a resumable stream an id")
    });
    let missed = ["notifications/prompts/list_changed", "notifications/resources/list_changed"];
    if run.is_demo() {
        for what in ["prompts", "resources"] {
            if let (_, Err(fault)) = run.tool("change", json!({"what": what})).await {
                return run.add(fail("resume", fault.to_string(), "look into the server's log"));
            }
        }
    }
    let reply = match run.client.listen(Some(&last_id)).await {
        Ok(reply) if reply.status == 200 && reply.content == ResponseContent::Events => reply,
        Ok(reply) => {
            let why = format!("HTTP {} to Last-Event-ID", reply.status);
            return run.add(fail("resume", why, "take the ids back that were given out, within a window"));
        }
        Err(fault) => return run.add(fail("resume", fault.to_string(), "answer a GET with Last-Event-ID at once")),
    };
    let _listening = ProbeListener::start(run.client.clone(), reply);
    if !run.is_demo() {
        return run.add(ok("resume", "the stream opens again after its last event"));
    }
    let all = |state: &ProbeTraffic| missed.iter().all(|method| state.count(|one| is_method(one, method)) > 0);
    let came = run.record.until(run.plan.patience, all).await;
    let state = run.record.state();
    let on_get = |method: &str| state.count(|one| is_method(one, method) && is_on_get(one));
    let counts = [on_get("notifications/tools/list_changed"), on_get(missed[0]), on_get(missed[1])];
    drop(state);
    let check = match (came, counts) {
        (true, [1, 1, 1]) => ok("resume", "two events that were missed came after the reconnect, none twice"),
        (true, _) => fail(
            "resume",
            format!("events came {counts:?} times"),
            "replay what comes after Last-Event-ID, and nothing else",
        ),
        (false, _) => fail("resume", "events that were missed did not come", "keep a window of events, and replay it"),
    };
    run.add(check);
}

/// The modern way: a request whose response is the stream (2026-07-28).
async fn subscribe(run: &mut ProbeRun<'_>) {
    let SeenCapabilities { tools, prompts, resources } = SeenCapabilities::of(&run.client.greeting.capabilities);
    let mut wanted = serde_json::Map::new();
    for (what, list) in [("tools", tools), ("prompts", prompts), ("resources", resources)] {
        if list.tells_changes {
            wanted.insert(format!("{what}ListChanged"), true.into());
        }
    }
    if wanted.is_empty() {
        return run.add(skipped("listen", "the server says that it tells of no changes"));
    }
    let id = run.client.next_id();
    run.record.asks(id, "subscriptions/listen");
    let message = parse(&run.client.message(id, "subscriptions/listen", json!({"notifications": wanted})));
    let opened = match message {
        Ok(message) => run.client.wire.post(&message, &[], &run.client.lane).await,
        Err(fault) => Err(fault),
    };
    let reply = match opened {
        Ok(reply) if reply.status == 200 && reply.content == ResponseContent::Events => reply,
        Ok(reply) => {
            let why = format!("HTTP {} with {:?}", reply.status, reply.kind());
            return run.add(fail("listen", why, "answer subscriptions/listen with an event stream"));
        }
        Err(fault) => return run.add(fail("listen", fault.to_string(), "acknowledge subscriptions/listen at once")),
    };
    run.record.head(id, reply.status, reply.kind());
    let _listening = ProbeListener::start_on(run.client.clone(), reply, ArrivalPath::Post(id));
    let acknowledged = "notifications/subscriptions/acknowledged";
    let patience = run.plan.patience;
    if !run.record.until(patience, |state| state.count(|one| is_method(one, acknowledged)) > 0).await {
        return run.add(fail(
            "listen",
            "no acknowledgement came",
            "send notifications/subscriptions/acknowledged first",
        ));
    }
    run.record.ends(id);
    run.add(ok("listen", "the stream opens with its acknowledgement"));
    if run.is_demo() && wanted_tools(run) {
        let (_, outcome) = run.tool("change", json!({"what": "tools"})).await;
        let tagged = |one: &prism_mcp::client::ReceivedMessage| {
            let is_tagged = || SeenMessage::of(&one.message).params.meta.subscription == id;
            is_method(one, "notifications/tools/list_changed") && one.path == ArrivalPath::Post(id) && is_tagged()
        };
        let came = run.record.until(patience, |state| state.count(tagged) > 0).await;
        let check = match (outcome, came) {
            (Err(fault), _) => fail("listen_note", fault.to_string(), "look into the server's log"),
            (_, true) => ok("listen_note", "a change came there, with the subscription's id"),
            (_, false) => {
                fail("listen_note", "a change did not come there", "tell of changes on the stream that asked for them")
            }
        };
        run.add(check);
    } else {
        run.add(skipped("listen_note", NOT_OURS));
    }
    keep_alive(run).await;
    run.add(skipped("resume", "2026-07-28 resumes nothing"));
}

fn wanted_tools(run: &ProbeRun<'_>) -> bool {
    SeenCapabilities::of(&run.client.greeting.capabilities).tools.tells_changes
}

/// Takes a call back while it works.
pub(super) async fn cancel(run: &mut ProbeRun<'_>) {
    if !run.is_demo() {
        return run.add(skipped("cancel", NOT_OURS));
    }
    let id = run.client.next_id();
    let (client, patience) = (run.client.clone(), run.plan.patience);
    let arguments = json!({"steps": 100_000, "ms": 20});
    let call = tokio::spawn(async move { client.call(id, "progress", &arguments).await });
    let of_call = |state: &ProbeTraffic| state.count(|one| is_of_call(one, id) && is_method(one, PROGRESS));
    let silent = answers_json(run);
    let begun = run.record.until(if silent { UNDER_WAY } else { patience }, |state| of_call(state) > 0).await;
    if !begun && !silent {
        call.abort();
        return run.add(fail("cancel", "the call that was to be cancelled said nothing", "look into the server's log"));
    }
    let ended = if run.is_legacy() {
        run.client.cancel(id, "the probe tries it out").await;
        tokio::time::timeout(patience, call).await.is_ok()
    } else {
        // Here closing is cancelling.
        call.abort();
        let _ = call.await;
        true
    };
    run.record.ends(id);
    let before = of_call(&run.record.state());
    let (_, next) = run.tool("slow", json!({"ms": 100, "text": run.mark})).await;
    let after = of_call(&run.record.state());
    let fix = "end a call on notifications/cancelled (2026-07-28: when its response is closed)";
    let check = match (ended, after == before, next) {
        (true, true, Ok(_)) => ok("cancel", format!("call {id} ended, and what was asked next was answered")),
        (false, ..) => fail("cancel", format!("call {id} goes on after it was cancelled"), fix),
        (_, false, _) => fail("cancel", format!("call {id} still reports after it was cancelled"), fix),
        (_, _, Err(fault)) => fail("cancel", format!("what was asked next: {fault}"), fix),
    };
    run.add(check);
}

// === impl ProbeListener ===

impl ProbeListener {
    fn start(client: Arc<McpClient>, reply: UnreadResponse) -> Self {
        Self::start_on(client, reply, ArrivalPath::Get)
    }

    fn start_on(client: Arc<McpClient>, reply: UnreadResponse, path: ArrivalPath) -> Self {
        let last_id = Arc::new(Mutex::new(None));
        let shared = last_id.clone();
        let mut stream = reply.into_stream();
        let task = tokio::spawn(async move {
            loop {
                let over = match path {
                    ArrivalPath::Get => matches!(client.hear(&mut stream).await, SseItem::End),
                    path => hear_on(&client, &mut stream, path).await,
                };
                *shared.lock().unwrap_or_else(PoisonError::into_inner) = stream.last_id().map(str::to_owned);
                if over {
                    return;
                }
            }
        });
        Self { task, last_id }
    }

    /// Where the stream was left.
    fn last_id(&self) -> Option<String> {
        self.last_id.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads the next thing from a stream that a request opened; `true` at its end.
async fn hear_on(client: &McpClient, stream: &mut SseStream, path: ArrivalPath) -> bool {
    match stream.next().await {
        SseItem::Event { name, id, data } => {
            for part in reading::messages(data) {
                let _: Option<Value> = client.wire.arrived(path, name.as_deref(), id.as_deref(), &part);
            }
            false
        }
        SseItem::Comments(count) => {
            client.wire.watch.comments(path, count);
            false
        }
        SseItem::TooLong => false,
        SseItem::End => true,
    }
}

impl Drop for ProbeListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}
