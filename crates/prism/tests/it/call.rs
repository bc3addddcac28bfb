//! `prism call`: one call from the command line, in both eras, with what it says on the way and how it ends.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Ended, Home, Launch, destination, lines, process, until,
    upstream::{Asked, Upstream, note, text},
};

/// The command line of `prism call`.
fn call(words: &[&str]) -> Launch {
    Launch::prism(["call"].iter().chain(words).map(|word| (*word).to_owned()).collect())
}

/// `prism call demo …`, with a demo server that only this command starts.
async fn demo(flags: &[&str], words: &[&str]) -> Ended {
    let nobody = Upstream::away();
    let port = nobody.at("").rsplit(':').next().unwrap().to_owned();
    let home = Home::new();
    let words: Vec<&str> = ["demo"].iter().chain(words).copied().collect();
    let launch = call(&words).home(&home).env("PRISM_PORT", &port).config(&destination("demo", flags, ""));
    let ended = launch.end().await;
    assert_eq!(process::marked(home.path()), [], "what it started has ended: {ended:?}");
    ended
}

/// Answers as a server of the legacy era does until a tool is called.
async fn greets(upstream: &mut Upstream) -> Asked {
    upstream.asked("server/discover").await.status(400).await;
    upstream.asked("initialize").await.welcome("s1").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let list = json!({"tools": [{"name": "t", "inputSchema": schema}]});
    upstream.asked("tools/list").await.result(list).await;
    asked_past_streams(upstream).await
}

/// The next request that is not for the session's own stream, which this server does not have.
async fn asked_past_streams(upstream: &mut Upstream) -> Asked {
    loop {
        let asked = upstream.next().await;
        match asked.what() {
            "GET" => asked.status(405).await,
            _ => return asked,
        }
    }
}

#[tokio::test]
async fn the_text_of_a_result_goes_to_stdout_in_both_eras() {
    for era in ["legacy", "modern", "both"] {
        let ended = demo(&["--era", era], &["echo", "text=hello, you"]).await;
        assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "hello, you\n", ""));
    }
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let ended = demo(&[], &["echo", "text=x", "--revision", revision]).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "x\n"), "{revision}: {}", ended.stderr);
    }
    let ended = demo(&[], &["echo", "text=x", "--revision", "2023-01-01"]).await;
    assert!(ended.stderr.contains("no revision") && ended.stderr.contains("2026-07-28"), "{}", ended.stderr);
}

// A pipe gets what the server said, byte for byte: only a terminal has to be protected.
#[tokio::test]
async fn a_pipe_gets_the_text_as_it_is() {
    let ended = demo(&[], &["echo", "text:=\"a\\u001b[1mb\\r\\n\""]).await;
    assert_eq!(ended.stdout, "a\u{1b}[1mb\r\n");
}

#[tokio::test]
async fn values_are_typed_by_the_schema_of_the_tool() {
    let ended = demo(&[], &["slow", "ms=1", "text=12"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "12\n"), "{}", ended.stderr);
    // What the schema puts into headers is there, too, or a modern server would refuse it.
    let ended = demo(&["--era", "modern"], &["route", "region=größe", "priority=3"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "to größe with 3\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn arguments_come_from_files_and_from_stdin_too() {
    let nobody = Upstream::away();
    let port = nobody.at("").rsplit(':').next().unwrap().to_owned();
    let home = Home::new();
    std::fs::write(home.file("draft.txt"), "from a file\n").unwrap();
    let config = destination("demo", &[], "");
    let launch = |words: &[&str]| call(words).home(&home).env("PRISM_PORT", &port).config(&config);
    let ended = launch(&["demo", "echo", "text=@draft.txt"]).end().await;
    assert_eq!(ended.stdout, "from a file\n", "{ended:?}");
    let ended = launch(&["demo", "echo", "-"]).stdin(r#"{"text": "from stdin"}"#).end().await;
    assert_eq!(ended.stdout, "from stdin\n", "{ended:?}");
    let ended = launch(&["demo", "echo", "-"]).stdin("nonsense").end().await;
    assert!(ended.code == Some(1) && ended.stderr.contains("no JSON object"), "{ended:?}");
}

// What is wrong is said before anything is sent.
#[tokio::test]
async fn wrong_arguments_never_reach_the_server() {
    let home = Home::new();
    let record = home.file("record");
    let flags = ["--record", record.as_str()];
    for (words, why) in [
        (&["slow", "text=x"][..], "missing: ms"),
        (&["slow", "ms=soon", "text=x"], "ms must be a whole number, not \"soon\""),
        (&["slow", "ms=1", "txet=x"], "did you mean \"text\"?"),
        (&["slow", "ms"], "write it as key=value"),
        (&["solw", "ms=1"], "no tool \"solw\"; did you mean \"slow\"?"),
        (&["log", "level=loud"], "level must be one of debug, info"),
    ] {
        let ended = demo(&flags, words).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(ended.stdout, "");
        assert!(!lines(&record).iter().any(|line| line.contains("tools/call")), "{words:?}");
    }
    let ended = demo(&[], &["slow", "text=x"]).await;
    assert!(ended.stderr.contains("usage: prism call demo slow ms=… text=…"), "{}", ended.stderr);
    assert!(ended.stderr.contains("ms*    integer"), "{}", ended.stderr);
}

#[tokio::test]
async fn failures_are_told_apart_and_go_to_stderr() {
    // An error of the protocol.
    let ended = demo(&[], &["fail", "code=-32099"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("as you wish"), "{}", ended.stderr);
    let ended = demo(&[], &["fail", "code=7"]).await;
    assert!(ended.stderr.contains("as you wish (error 7)"), "{}", ended.stderr);
    // A failure of the tool.
    let ended = demo(&["--era", "modern"], &["ping_client"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""));
    assert!(ended.stderr.contains("error: 2026-07-28 has no ping"), "{}", ended.stderr);
    let ended = demo(&["--era", "modern"], &["ping_client", "--json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &json["isError"]), (Some(1), &json!(true)));
    // A server that does not run.
    let ended = demo(&["--fault", "die-at-start"], &["echo", "text=x"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("keeps exiting (status 1, ") && ended.stderr.contains("see what it says: "),
        "{}",
        ended.stderr
    );
}

// A client is asked, too: a ping is answered, a question that nobody is there for is not.
#[tokio::test]
async fn what_the_server_asks_is_answered() {
    let ended = demo(&[], &["ping_client", "--revision", "2025-11-25"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "pong\n"), "{}", ended.stderr);
    let mut upstream = Upstream::start().await;
    let url = upstream.url();
    let command = call(&[&url, "t"]).begin();
    let called = greets(&mut upstream).await;
    let (id, stream) = (called.id(), called.events());
    for (question, params) in [("elicitation/create", json!({"message": "?"})), ("sampling/createMessage", json!({}))] {
        stream.event(&json!({"jsonrpc": "2.0", "id": question, "method": question, "params": params})).await;
        let answer = asked_past_streams(&mut upstream).await;
        assert_eq!((answer.header("mcp-session-id"), &answer.body["id"]), (Some("s1"), &json!(question)));
        let declined = answer.body["result"]["action"] == "decline" || answer.body["error"]["code"] == -1;
        assert!(declined, "{}", answer.body);
        answer.status(202).await;
    }
    stream.result(id, text("done")).await;
    asked_past_streams(&mut upstream).await.status(204).await;
    let ended = command.end().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "done\n"), "{}", ended.stderr);
}

#[tokio::test]
async fn notes_go_to_stderr_and_progress_to_no_pipe() {
    for era in ["legacy", "modern"] {
        let ended = demo(&["--era", era], &["log", "level=error", "count=2", "text=careful"]).await;
        assert_eq!(ended.stdout, "2 notes sent\n");
        assert_eq!(ended.stderr, "[error prism-demo] careful\n".repeat(2));
        let ended = demo(&["--era", era], &["progress", "steps=3", "ms=1"]).await;
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("3 steps done\n", ""));
    }
}

#[tokio::test]
async fn what_is_no_text_is_summed_up_or_saved() {
    let ended = demo(&[], &["show", "kind=audio"]).await;
    assert_eq!(ended.stdout, "[audio/wav, 4 bytes; --save DIR keeps it]\n");
    let folder = Home::new();
    let ended = demo(&[], &["show", "kind=audio", "--save", &folder.file("sounds")]).await;
    assert!(ended.stdout.contains("saved as "), "{ended:?}");
    assert_eq!(std::fs::read(folder.file("sounds/audio.wav")).unwrap(), b"RIFF");
    let ended = demo(&[], &["show", "kind=structured"]).await;
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap(), json!({"sum": 3}));
    let ended = demo(&[], &["show", "kind=resource_link", "--json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["content"][0]["uri"], "demo://hello");
}

// Ctrl-C is heard by the server, in the way of its era.
#[tokio::test]
async fn ctrl_c_cancels_the_call_of_a_legacy_server() {
    let mut upstream = Upstream::start().await;
    let command = call(&[&upstream.url(), "t"]).begin();
    let called = greets(&mut upstream).await;
    let (id, stream) = (called.id(), called.events());
    stream.progress(&json!(id), 1).await;
    command.signal(Signal::INT);
    let cancelled = asked_past_streams(&mut upstream).await;
    assert_eq!((cancelled.what(), &cancelled.body["params"]["requestId"]), ("notifications/cancelled", &json!(id)));
    cancelled.status(202).await;
    let deleted = asked_past_streams(&mut upstream).await;
    assert_eq!((deleted.what(), deleted.header("mcp-session-id")), ("DELETE", Some("s1")));
    deleted.status(204).await;
    let ended = command.end().await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(130), "", "interrupted\n"));
    stream.hung_up().await;
}

#[tokio::test]
async fn ctrl_c_closes_the_call_of_a_modern_server() {
    let mut upstream = Upstream::start().await;
    let command = call(&[&upstream.url(), "t"]).begin();
    upstream.greet_modern().await;
    let listing = upstream.asked("tools/list").await;
    assert_eq!(listing.header("mcp-method"), Some("tools/list"));
    listing.result(json!({"tools": [{"name": "t"}], "resultType": "complete"})).await;
    let mut called = upstream.asked("tools/call").await;
    assert_eq!((called.header("mcp-name"), called.header("mcp-session-id")), (Some("t"), None));
    command.signal(Signal::INT);
    called.hung_up().await;
    assert_eq!(command.end().await.code, Some(130));
    upstream.asked_nothing_more();
}

#[tokio::test]
async fn ctrl_c_leaves_no_child_behind() {
    let nobody = Upstream::away();
    let port = nobody.at("").rsplit(':').next().unwrap().to_owned();
    let home = Home::new();
    let record = home.file("record");
    let config = destination("demo", &["--record", &record], "");
    let command =
        call(&["demo", "slow", "ms=600000", "text=x"]).home(&home).env("PRISM_PORT", &port).config(&config).begin();
    until("it is called", async || lines(&record).iter().any(|line| line.contains("600000"))).await;
    command.signal(Signal::INT);
    assert_eq!(command.end().await.code, Some(130));
    assert_eq!(process::marked(home.path()), []);
}

// Every wait has an end, and the server is told of it. Comments are no sign of work.
#[tokio::test]
async fn a_call_that_says_nothing_is_given_up_and_cancelled() {
    let mut upstream = Upstream::start().await;
    let command = call(&[&upstream.url(), "t", "--timeout", "400ms"]).begin();
    let called = greets(&mut upstream).await;
    let (id, stream) = (called.id(), called.events());
    let chatter = tokio::spawn(async move { while stream.push(": still here\n\n").await {} });
    let cancelled = asked_past_streams(&mut upstream).await;
    assert_eq!((cancelled.what(), &cancelled.body["params"]["requestId"]), ("notifications/cancelled", &json!(id)));
    cancelled.status(202).await;
    asked_past_streams(&mut upstream).await.status(204).await;
    let ended = command.end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("no answer on the event stream within 0.4 s") && ended.stderr.contains("--timeout"));
    chatter.await.unwrap();
}

// A stream that breaks off is resumed where it was left (2025-03-26 and later).
#[tokio::test]
async fn a_broken_stream_is_resumed() {
    let mut upstream = Upstream::start().await;
    let command = call(&[&upstream.url(), "t", "n=7"]).begin();
    let called = greets(&mut upstream).await;
    assert_eq!(called.body["params"]["arguments"], json!({"n": 7}));
    let (id, stream) = (called.id(), called.events());
    stream.push("retry: 10\n").await;
    stream.numbered("e1", &note("notifications/message", json!({"level": "info", "data": "first"}))).await;
    until("it is read", async || command.stderr().contains("first")).await;
    stream.cut().await;
    let resumed = loop {
        let asked = upstream.asked("GET").await;
        match asked.header("last-event-id") {
            Some(id) => {
                assert_eq!(id, "e1");
                break asked;
            }
            None => asked.status(405).await,
        }
    };
    resumed.events().result(id, text("resumed")).await;
    asked_past_streams(&mut upstream).await.status(204).await;
    let ended = command.end().await;
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "resumed\n", "[info] first\n"));
}

// What belongs to no stream of a call is heard on the session's own.
#[tokio::test]
async fn the_sessions_own_stream_is_listened_to() {
    let mut upstream = Upstream::start().await;
    let command = call(&[&upstream.url(), "t"]).begin();
    upstream.asked("server/discover").await.status(404).await;
    upstream.asked("initialize").await.welcome("s1").await;
    upstream.asked("notifications/initialized").await.status(202).await;
    upstream.asked("tools/list").await.result(json!({"tools": [{"name": "t"}]})).await;
    let (mut get, mut called) = (None, None);
    while get.is_none() || called.is_none() {
        let asked = upstream.next().await;
        match asked.what() {
            "GET" => get = Some(asked.events()),
            "tools/call" => called = Some(asked),
            what => panic!("{what}"),
        }
    }
    let (get, called) = (get.unwrap(), called.unwrap());
    get.event(&json!({"jsonrpc": "2.0", "id": 0, "method": "ping"})).await;
    let answer = upstream.next().await;
    assert_eq!((&answer.body["id"], &answer.body["result"]), (&json!(0), &json!({})));
    answer.status(202).await;
    called.result(text("done")).await;
    upstream.asked("DELETE").await.status(204).await;
    assert_eq!(command.end().await.stdout, "done\n");
}

#[tokio::test]
async fn prisms_own_servers_are_called_without_a_config() {
    let (home, nobody) = (Home::new(), Upstream::away());
    let port = nobody.at("").rsplit(':').next().unwrap().to_owned();
    let ended = call(&["prism", "prism_destinations"]).home(&home).env("PRISM_PORT", &port).end().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = call(&["pirsm", "prism_destinations"]).home(&home).env("PRISM_PORT", &port).end().await;
    assert!(ended.code == Some(1) && ended.stderr.contains("no servers yet"), "{ended:?}");
}
