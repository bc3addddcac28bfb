//! Transcripts: `host >` and `agent >` go in, as does `bell [SESSION]`; what must come out, in this order and nothing else, is
//! `agent <`, `host <` and `opened`. `"jsonrpc":"2.0"` is left out everywhere.

use bytes::Bytes;
use prism_core::wire::Frame;

use super::{AcpAction, AcpMachine};
use crate::acp::AcpBell;

const VERSION: &str = r#""jsonrpc":"2.0","#;

fn check(script: &str) {
    let mut machine = AcpMachine::default();
    let mut said: Vec<String> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let frame = |json: &str| {
            Frame::Line(Bytes::from(if json.starts_with('{') {
                json.replacen('{', &format!("{{{VERSION}"), 1)
            } else {
                json.to_owned()
            }))
        };
        let goes_in = line.split_once(" > ").filter(|(who, _)| matches!(*who, "host" | "agent"));
        if goes_in.is_some() || line.starts_with("bell") {
            assert_eq!(said, Vec::<String>::new(), "before {line}");
        }
        match goes_in {
            Some(("host", json)) => machine.handle_host(frame(json)),
            Some((_, json)) => machine.handle_agent(frame(json)),
            None if line.starts_with("bell") => {
                let session = line.strip_prefix("bell ").map(str::to_owned);
                machine.handle_bell(AcpBell { session, text: "RING".to_owned() });
            }
            None => {
                assert!(!said.is_empty(), "nothing is said; expected {line}");
                assert_eq!(said.remove(0), line, "then {said:?}");
            }
        }
        while let Some(action) = machine.poll_action() {
            let plain = |line: &Bytes| String::from_utf8_lossy(line).replacen(VERSION, "", 1);
            said.push(match action {
                AcpAction::ToAgent(line) => format!("agent < {}", plain(&line)),
                AcpAction::ToHost(line) => format!("host < {}", plain(&line)),
                AcpAction::Opened { session, folder } => format!("opened {session} {folder}"),
                AcpAction::Say(text) => format!("says {text}"),
            });
        }
    }
    assert_eq!(said, Vec::<String>::new(), "at the end");
}

/// With a session that has been opened.
fn opened(script: &str) {
    check(&format!(
        r#"
        host > {{"id":0,"method":"session/new","params":{{"cwd":"/w","mcpServers":[]}}}}
        agent < {{"id":0,"method":"session/new","params":{{"cwd":"/w","mcpServers":[]}}}}
        agent > {{"id":0,"result":{{"sessionId":"s1"}}}}
        host < {{"id":0,"result":{{"sessionId":"s1"}}}}
        opened s1 /w
        {script}"#
    ));
}

const NOTE: &str = r#"host < {"method":"session/update","params":{"sessionId":"s1","update":{"content":{"text":"RING","type":"text"},"sessionUpdate":"user_message_chunk"}}}"#;
const PROMPT: &str =
    r#""method":"session/prompt","params":{"prompt":[{"text":"RING","type":"text"}],"sessionId":"s1"}}"#;

#[test]
fn what_is_not_ours_passes_byte_for_byte() {
    check(
        r#"
        host > {"id":1, "method":"initialize","params":{"a": 1.0}}
        agent < {"id":1, "method":"initialize","params":{"a": 1.0}}
        agent > {"id":1,"result":{ }}
        host < {"id":1,"result":{ }}
        agent > {"id":1,"method":"fs/read_text_file","params":{}}
        host < {"id":1,"method":"fs/read_text_file","params":{}}
        host > {"id":1,"result":{"content":"x"}}
        agent < {"id":1,"result":{"content":"x"}}
        agent > this is no JSON
        host < this is no JSON
        bell
        bell s9
        "#,
    );
}

#[test]
fn an_idle_agent_is_prompted_and_the_editor_sees_what_comes_but_no_answer() {
    opened(&format!(
        r#"
        bell
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        agent > {{"method":"session/update","params":{{"sessionId":"s1"}}}}
        host < {{"method":"session/update","params":{{"sessionId":"s1"}}}}
        agent > {{"id":"prism-bell-1","result":{{"stopReason":"end_turn"}}}}
        bell s1
        {NOTE}
        agent < {{"id":"prism-bell-2",{PROMPT}
        "#
    ));
}

#[test]
fn a_bell_waits_for_the_end_of_a_turn_and_rings_once() {
    opened(&format!(
        r#"
        host > {{"id":"p","method":"session/prompt","params":{{"sessionId":"s1","prompt":[]}}}}
        agent < {{"id":"p","method":"session/prompt","params":{{"sessionId":"s1","prompt":[]}}}}
        bell
        bell
        agent > {{"id":"p","result":{{"stopReason":"end_turn"}}}}
        host < {{"id":"p","result":{{"stopReason":"end_turn"}}}}
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        agent > {{"id":"prism-bell-1","result":{{"stopReason":"end_turn"}}}}
        "#
    ));
}

#[test]
fn what_the_person_says_during_a_bell_comes_after_it() {
    opened(&format!(
        r#"
        bell
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        host > {{"id":5,"method":"session/prompt","params":{{"sessionId":"s1","prompt":[]}}}}
        bell
        agent > {{"id":"prism-bell-1","result":{{"stopReason":"end_turn"}}}}
        agent < {{"id":5,"method":"session/prompt","params":{{"sessionId":"s1","prompt":[]}}}}
        agent > {{"id":5,"result":{{"stopReason":"end_turn"}}}}
        host < {{"id":5,"result":{{"stopReason":"end_turn"}}}}
        {NOTE}
        agent < {{"id":"prism-bell-2",{PROMPT}
        "#
    ));
}

#[test]
fn who_cancels_has_cancelled_both() {
    opened(&format!(
        r#"
        bell
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        host > {{"id":5,"method":"session/prompt","params":{{"sessionId":"s1","prompt":[]}}}}
        host > {{"method":"session/cancel","params":{{"sessionId":"s1"}}}}
        host < {{"id":5,"result":{{"stopReason":"cancelled"}}}}
        agent < {{"method":"session/cancel","params":{{"sessionId":"s1"}}}}
        agent > {{"id":"prism-bell-1","result":{{"stopReason":"cancelled"}}}}
        "#
    ));
}

#[test]
fn an_old_session_and_another_one_have_bells_of_their_own() {
    opened(&format!(
        r#"
        host > {{"id":2,"method":"session/load","params":{{"sessionId":"old","cwd":"/v","mcpServers":[]}}}}
        agent < {{"id":2,"method":"session/load","params":{{"sessionId":"old","cwd":"/v","mcpServers":[]}}}}
        agent > {{"id":2,"result":null}}
        host < {{"id":2,"result":null}}
        opened old /v
        host > {{"id":3,"method":"session/prompt","params":{{"sessionId":"old","prompt":[]}}}}
        agent < {{"id":3,"method":"session/prompt","params":{{"sessionId":"old","prompt":[]}}}}
        bell s1
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        "#
    ));
}

#[test]
fn an_agent_that_refuses_the_bell_is_told_of_and_goes_on() {
    opened(&format!(
        r#"
        bell
        {NOTE}
        agent < {{"id":"prism-bell-1",{PROMPT}
        agent > {{"id":"prism-bell-1","error":{{"code":-32603,"message":"no"}}}}
        says the agent refused the prompt that its bell is
        bell
        {NOTE}
        agent < {{"id":"prism-bell-2",{PROMPT}
        "#
    ));
}
