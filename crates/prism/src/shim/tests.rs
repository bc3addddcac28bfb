//! Transcripts of the machine. What goes in: `client >` a line, `daemon >` what came of a flight, `started`, `~` time.
//! What must come out, in this order and nothing else: `client <`, `daemon <`, `start`, `look`, `close`. Flights are
//! numbered as they are made. `"jsonrpc":"2.0"` is left out everywhere.

mod channel;

use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::header::HeaderValue;
use prism_core::wire::{Frame, Message};

use super::machine::{ExchangeReport, MAX_IN_FLIGHT, ShimAction, ShimMachine, ShimRoute};

const VERSION: &str = r#""jsonrpc":"2.0","#;
const CLAIM: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

struct World {
    machine: ShimMachine,
    now: Instant,
}

fn check(script: &str) {
    check_at(ShimRoute::Hub, script);
}

fn check_at(route: ShimRoute, script: &str) {
    let mut world = World { machine: ShimMachine::new(route), now: Instant::now() };
    let mut said = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = line.replace("CLAIM", CLAIM);
        if line.starts_with("client >")
            || line.starts_with("daemon >")
            || line.starts_with("started")
            || line.starts_with('~')
        {
            said.extend(world.drain());
            assert_eq!(said, Vec::<String>::new(), "before {line}");
            world.input(&line);
        } else {
            said.extend(world.drain());
            assert!(!said.is_empty(), "nothing is said; expected {line}");
            assert_eq!(said.remove(0), line, "then {said:?}");
        }
    }
    said.extend(world.drain());
    assert_eq!(said, Vec::<String>::new(), "at the end");
}

fn message(text: &str) -> Message {
    let text = text.replacen('{', &format!("{{{VERSION}"), 1);
    Message::parse(Bytes::from(text.clone())).unwrap_or_else(|error| panic!("{error}: {text}"))
}

impl World {
    fn input(&mut self, line: &str) {
        if let Some(time) = line.strip_prefix("~ ") {
            self.now += Duration::from_millis(time.parse().unwrap());
            while self.machine.poll_timeout().is_some_and(|due| due <= self.now) {
                self.machine.handle_timeout(self.now);
            }
        } else if let Some(json) = line.strip_prefix("client > ") {
            let line = if json.starts_with('{') { message(json).bytes().clone() } else { json.to_owned().into() };
            self.machine.handle_line(Frame::Line(line), self.now);
        } else if let Some(says) = line.strip_prefix("daemon > ") {
            let (ticket, says) = says.split_once(' ').unwrap();
            self.machine.handle_report(ticket.parse().unwrap(), report(says), self.now);
        } else {
            let why = line.strip_prefix("started no: ").map(str::to_owned);
            self.machine.handle_started(why.map_or(Ok(()), Err), self.now);
        }
    }

    fn drain(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(action) = self.machine.poll_action() {
            let session =
                |session: Option<HeaderValue>| session.map(|s| format!(" {}", s.to_str().unwrap())).unwrap_or_default();
            said.push(match action {
                ShimAction::Write(line) => {
                    format!("client < {}", String::from_utf8_lossy(&line).replacen(VERSION, "", 1))
                }
                ShimAction::Post { ticket, path, message, lane, params } => {
                    let method = message
                        .method()
                        .map(|it| it.into_owned())
                        .unwrap_or_else(|| format!("answer {}", message.id().unwrap_or("-")));
                    let params: String = params.iter().map(|(name, value)| format!(" {name}={value}")).collect();
                    format!("daemon < {ticket} {path} {method}{}{params}", session(lane.session))
                }
                ShimAction::Get { ticket, path, lane, after, .. } => {
                    let after = after.map(|id| format!(" after {id}")).unwrap_or_default();
                    format!("daemon < {ticket} {path} GET{}{after}", session(lane.session))
                }
                ShimAction::Close(ticket) => format!("close {ticket}"),
                ShimAction::Start => "start".to_owned(),
                ShimAction::Attend => "attend".to_owned(),
                ShimAction::Look => "look".to_owned(),
                ShimAction::Say(_) => continue,
            });
        }
        said
    }
}

/// `accepted`, `unsent`, `ended [ID]`, `note JSON`, `STATUS [SESSION] [JSON]`.
fn report(says: &str) -> ExchangeReport {
    let (word, rest) = says.split_once(' ').unwrap_or((says, ""));
    match word {
        "accepted" => ExchangeReport::Accepted,
        "unsent" => ExchangeReport::Unsent { why: "refused".to_owned() },
        "ended" => ExchangeReport::Ended { after: Some(rest.to_owned()).filter(|id| !id.is_empty()), retry: None },
        "note" => ExchangeReport::Message(message(rest).bytes().clone()),
        status => {
            let status = status.parse().unwrap();
            let (session, json) = match rest.find('{') {
                Some(at) => (rest[..at].trim(), &rest[at..]),
                None => return ExchangeReport::Status { status },
            };
            let session = Some(session).filter(|s| !s.is_empty()).map(|s| HeaderValue::from_str(s).unwrap());
            ExchangeReport::Answer { status, message: message(json), session, retry: None }
        }
    }
}

/// A session of the legacy era that has been opened, up to its stream, which is flight 3.
const OPENED: &str = r#"
    start
    started
    client > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    daemon < 1 /mcp initialize
    daemon > 1 200 s1 {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}
    client < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}
    client > {"method":"notifications/initialized"}
    daemon < 2 /mcp notifications/initialized s1
    daemon > 2 accepted
    daemon < 3 /mcp GET s1
"#;

fn opened(script: &str) {
    check(&format!("{OPENED}{script}"));
}

#[test]
fn what_a_client_says_in_one_breath_leaves_in_its_order() {
    check(
        r#"
        start
        client > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        client > {"method":"notifications/initialized"}
        client > {"id":2,"method":"tools/list"}
        started
        daemon < 1 /mcp initialize
        daemon > 1 200 s1 {"id":1,"result":{"protocolVersion":"2025-11-25"}}
        client < {"id":1,"result":{"protocolVersion":"2025-11-25"}}
        daemon < 2 /mcp notifications/initialized s1
        daemon > 2 accepted
        daemon < 4 /mcp GET s1
        daemon < 3 /mcp tools/list s1
    "#,
    );
}

#[test]
fn requests_are_answered_in_any_order_under_their_own_ids() {
    opened(
        r#"
        client > {"id":7,"method":"tools/call","params":{"name":"a"}}
        daemon < 4 /mcp tools/call s1
        client > {"id":7,"method":"tools/call","params":{"name":"b"}}
        daemon < 5 /mcp tools/call s1
        daemon > 5 note {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        client < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        daemon > 5 200 {"id":7,"result":{"of":"b"}}
        client < {"id":7,"result":{"of":"b"}}
        daemon > 4 200 {"id":7,"result":{"of":"a"}}
        client < {"id":7,"result":{"of":"a"}}
        daemon > 4 200 {"id":7,"result":{"of":"nobody"}}
    "#,
    );
}

#[test]
fn an_error_of_the_door_gets_the_id_that_it_lacks() {
    opened(
        r#"
        client > {"id":"x","method":"tools/call","params":{"name":"a"}}
        daemon < 4 /mcp tools/call s1
        daemon > 4 413 {"error":{"code":-32600,"message":"too large"}}
        client < {"id":"x","error":{"code":-32600,"message":"too large"}}
    "#,
    );
}

#[test]
fn what_was_not_sent_waits_for_the_daemon_and_what_was_is_not_repeated() {
    opened(
        r#"
        client > {"id":2,"method":"tools/call","params":{"name":"ran"}}
        daemon < 4 /mcp tools/call s1
        client > {"id":3,"method":"tools/list"}
        daemon < 5 /mcp tools/list s1
        daemon > 4 ended
        client < {"id":2,"error":{"code":-32603,"message":"the Prism daemon was restarted while this call ran; it may or may not have been done: look before you call again","data":{"reason":"daemon_restarted"}}}
        close 4
        daemon > 5 ended
        start
        client > {"id":4,"method":"tools/call","params":{"name":"new"}}
        started
        daemon < 5 /mcp tools/list s1
        daemon < 6 /mcp tools/call s1
        daemon > 6 unsent
        daemon > 5 unsent
        ~ 50
        ~ 50
        start
        started
        daemon < 6 /mcp tools/call s1
        daemon < 5 /mcp tools/list s1
        daemon > 6 200 {"id":4,"result":{}}
        client < {"id":4,"result":{}}
        daemon > 5 200 {"id":3,"result":{}}
        client < {"id":3,"result":{}}
    "#,
    );
}

#[test]
fn a_daemon_that_does_not_come_is_told_after_a_while() {
    check(
        r#"
        start
        client > {"id":1,"method":"tools/list"}
        started no: port taken
        ~ 100
        start
        started no: port taken
        ~ 200
        start
        started no: port taken
        ~ 400
        start
        started no: port taken
        client < {"id":1,"error":{"code":-32603,"message":"the Prism daemon cannot be reached: port taken; to see what is wrong, type: prism serve","data":{"reason":"daemon_unreachable"}}}
        client > {"id":2,"method":"tools/list"}
        daemon < 2 /mcp tools/list
        daemon > 2 unsent
        start
        started
        daemon < 2 /mcp tools/list
        daemon > 2 200 {"id":2,"result":{}}
        client < {"id":2,"result":{}}
    "#,
    );
}

#[test]
fn nobody_waits_longer_than_half_a_minute_for_a_start_that_hangs() {
    check(
        r#"
        start
        client > {"id":1,"method":"tools/list"}
        ~ 29000
        ~ 1000
        client < {"id":1,"error":{"code":-32603,"message":"the Prism daemon cannot be reached: it does not answer; to see what is wrong, type: prism serve","data":{"reason":"daemon_unreachable"}}}
    "#,
    );
}

#[test]
fn a_session_that_is_lost_is_opened_again_once_for_all() {
    opened(
        r#"
        client > {"id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        daemon < 4 /mcp logging/setLevel s1
        daemon > 4 200 {"id":2,"result":{}}
        client < {"id":2,"result":{}}
        client > {"id":3,"method":"tools/call","params":{"name":"a"}}
        daemon < 5 /mcp tools/call s1
        client > {"id":4,"method":"tools/call","params":{"name":"b"}}
        daemon < 6 /mcp tools/call s1
        daemon > 5 404 {"error":{"code":-32001,"message":"Session not found"}}
        close 3
        daemon < 7 /mcp initialize
        daemon > 6 404 {"error":{"code":-32001,"message":"Session not found"}}
        client > {"id":5,"method":"ping"}
        daemon > 7 200 s2 {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}
        daemon < 9 /mcp notifications/initialized s2
        daemon > 9 accepted
        client < {"method":"notifications/tools/list_changed"}
        daemon < 11 /mcp logging/setLevel s2
        daemon < 10 /mcp GET s2
        daemon < 5 /mcp tools/call s2
        daemon < 6 /mcp tools/call s2
        daemon < 8 /mcp ping s2
        daemon > 11 200 {"id":2,"result":{}}
        daemon > 5 200 {"id":3,"result":{}}
        client < {"id":3,"result":{}}
    "#,
    );
}

#[test]
fn a_call_that_its_session_died_under_is_not_repeated() {
    opened(
        r#"
        client > {"id":3,"method":"tools/call","params":{"name":"a"}}
        daemon < 4 /mcp tools/call s1
        daemon > 4 404 {"id":3,"error":{"code":-32001,"message":"Session not found: it has ended"}}
        close 3
        client < {"id":3,"error":{"code":-32603,"message":"the Prism daemon was restarted while this call ran; it may or may not have been done: look before you call again","data":{"reason":"daemon_restarted"}}}
        daemon < 5 /mcp initialize
    "#,
    );
}

// The questions of the new session are numbered from the beginning.
#[test]
fn an_answer_to_a_question_of_a_lost_session_answers_no_other() {
    opened(
        r#"
        daemon > 3 note {"id":1,"method":"roots/list"}
        client < {"id":1,"method":"roots/list"}
        client > {"id":2,"method":"ping"}
        daemon < 4 /mcp ping s1
        daemon > 4 404 {"error":{"code":-32001,"message":"Session not found"}}
        close 3
        daemon < 5 /mcp initialize
        daemon > 5 200 s2 {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        daemon < 6 /mcp notifications/initialized s2
        daemon > 6 accepted
        daemon < 7 /mcp GET s2
        daemon < 4 /mcp ping s2
        daemon > 7 note {"id":1,"method":"roots/list"}
        client < {"id":"prism-1-1","method":"roots/list"}
        client > {"id":1,"result":{"roots":[]}}
        client > {"id":"prism-1-1","result":{"roots":[]}}
        daemon < 8 /mcp answer 1 s2
    "#,
    );
}

#[test]
fn a_broken_stream_is_gone_on_with_and_starts_no_daemon() {
    opened(
        r#"
        daemon > 3 ended 0-5
        ~ 100
        look
        daemon < 3 /mcp GET s1 after 0-5
        daemon > 3 unsent
        ~ 199
        ~ 1
        look
        daemon < 3 /mcp GET s1 after 0-5
        daemon > 3 400
        ~ 400
        look
        daemon < 3 /mcp GET s1
        daemon > 3 405
    "#,
    );
}

#[test]
fn the_stream_of_a_call_is_resumed_and_the_call_lost_if_it_cannot_be() {
    opened(
        r#"
        client > {"id":2,"method":"tools/call","params":{"name":"a"}}
        daemon < 4 /mcp tools/call s1
        daemon > 4 ended 9-1
        ~ 100
        daemon < 4 /mcp GET s1 after 9-1
        daemon > 4 unsent
        start
        started
        daemon < 4 /mcp GET s1 after 9-1
        daemon > 4 400 {"error":{"code":-32600,"message":"no such event"}}
        client < {"id":2,"error":{"code":-32603,"message":"the Prism daemon was restarted while this call ran; it may or may not have been done: look before you call again","data":{"reason":"daemon_restarted"}}}
        close 4
    "#,
    );
}

#[test]
fn a_legacy_cancellation_is_passed_on_and_the_call_needs_no_answer() {
    opened(
        r#"
        client > {"id":2,"method":"tools/call","params":{"name":"a"}}
        daemon < 4 /mcp tools/call s1
        client > {"method":"notifications/cancelled","params":{"requestId":2}}
        daemon < 5 /mcp notifications/cancelled s1
        daemon > 5 accepted
        daemon > 4 ended
    "#,
    );
}

// 2026-07-28 over HTTP: closing is cancelling.
#[test]
fn a_modern_cancellation_closes_the_request() {
    check(
        r#"
        start
        started
        client > {"id":2,"method":"tools/call","params":{"name":"a","_meta":CLAIM}}
        daemon < 1 /mcp tools/call
        client > {"method":"notifications/cancelled","params":{"requestId":2}}
        close 1
        client > {"method":"notifications/cancelled","params":{"requestId":2}}
    "#,
    );
}

#[test]
fn a_listen_is_opened_again_and_tells_what_may_have_been_missed() {
    check(
        r#"
        start
        started
        client > {"id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":CLAIM}}
        daemon < 1 /mcp subscriptions/listen
        daemon > 1 note {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}
        client < {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}
        ~ 5000
        daemon > 1 200 {"id":"l","result":{"resultType":"complete"}}
        ~ 100
        look
        daemon < 1 /mcp subscriptions/listen
        daemon > 1 note {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}
        client < {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
        ~ 500
        daemon > 1 200 {"id":"l","result":{"resultType":"complete"}}
        client < {"id":"l","result":{"resultType":"complete"}}
    "#,
    );
}

#[test]
fn headers_that_a_call_lacks_are_learned_once() {
    check(
        r#"
        start
        started
        client > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{"r":"north"},"_meta":CLAIM}}
        daemon < 1 /mcp tools/call
        daemon > 1 400 {"id":2,"error":{"code":-32020,"message":"no header"}}
        daemon < 2 /mcp tools/list
        daemon > 2 200 {"id":0,"result":{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}}
        daemon < 1 /mcp tools/call Region=north
        daemon > 1 400 {"id":2,"error":{"code":-32020,"message":"still not"}}
        client < {"id":2,"error":{"code":-32020,"message":"still not"}}
    "#,
    );
}

// R-49: it greeted as Prism itself after two seconds, with tools that were not the server's.
#[test]
fn a_server_that_is_slow_to_greet_is_waited_for_and_nobody_greets_in_its_place() {
    for greeting in [
        r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
        r#"{"id":1,"method":"server/discover","params":{"_meta":CLAIM}}"#,
    ] {
        let method = if greeting.contains("initialize") { "initialize" } else { "server/discover" };
        let script = format!(
            r#"
            start
            started
            client > {greeting}
            daemon < 1 /slow/mcp {method}
            ~ 119999
            daemon > 1 503 {{"id":1,"error":{{"code":-32603,"message":"it did not answer"}}}}
            client < {{"id":1,"error":{{"code":-32603,"message":"it did not answer"}}}}
        "#
        );
        check_at(ShimRoute::Direct("slow".to_owned()), &script);
    }
}

#[test]
fn a_token_that_changed_is_looked_up_once() {
    opened(
        r#"
        client > {"id":2,"method":"ping"}
        daemon < 4 /mcp ping s1
        daemon > 4 401 {"error":{"code":-32600,"message":"wrong token"}}
        start
        started
        daemon < 4 /mcp ping s1
        daemon > 4 401 {"error":{"code":-32600,"message":"wrong token"}}
        client < {"id":2,"error":{"code":-32600,"message":"wrong token"}}
    "#,
    );
}

#[test]
fn no_more_lines_are_taken_than_can_be_under_way() {
    let mut world = World { machine: ShimMachine::new(ShimRoute::Hub), now: Instant::now() };
    world.input("started");
    for id in 0..MAX_IN_FLIGHT {
        assert!(!world.machine.is_full());
        world.input(&format!(r#"client > {{"id":{id},"method":"ping"}}"#));
    }
    assert!(world.machine.is_full());
    world.input(r#"daemon > 1 200 {"id":0,"result":{}}"#);
    assert!(!world.machine.is_full());
}

#[test]
fn the_end_waits_for_answers_and_then_says_that_there_are_none() {
    let mut world = World { machine: ShimMachine::new(ShimRoute::Hub), now: Instant::now() };
    world.input("started");
    world.input(r#"client > {"id":1,"method":"ping"}"#);
    world.drain();
    let until = world.now + Duration::from_secs(10);
    assert!(!world.machine.is_over(world.now));
    world.machine.handle_end(until);
    assert!(!world.machine.is_over(world.now));
    assert!(world.machine.is_over(until));
    assert!(world.drain().iter().any(|said| said.starts_with(r#"client < {"id":1,"error""#)));
}
