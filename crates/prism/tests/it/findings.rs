//! What attacks found beside the large things (docs/findings.md), played again on a real daemon: one test for each finding
//! that no module about its subject plays. A finding that is as it should be is a test of what the page says about it.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, process::Command};

use serde_json::json;

use crate::support::{
    Daemon, Home, Launch,
    agents::{At, mesh},
    demo, destination,
    gate::{Gate, SETTINGS, text},
    result_text,
    seen::{NOTHING, line, logged, seen, told},
    until,
};

const SECRET: &str = "hunter2-hunter2";

// What the documentation says of what holds up to a point.
const EDITOR: &str = include_str!("../../../../docs/editor.md");
const RULES: &str = include_str!("../../../../docs/rules.md");
const SECURITY: &str = include_str!("../../../../docs/security.md");

/// Whether a page says this, wherever its lines break.
fn says(page: &str, words: &str) -> bool {
    page.split_whitespace().collect::<Vec<_>>().join(" ").contains(words)
}

/// A file that only its owner can read.
fn private(folder: &Home, name: &str, text: &str) -> String {
    let file = folder.file(name);
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    file
}

// H9: "Basic auth with the secret at my port"
#[tokio::test]
async fn no_secret_is_sent_to_where_an_agent_says() {
    let vault = Home::new();
    let file = private(&vault, "vault-token", SECRET);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let daemon = mesh("").await;
    let mut thief = daemon.window(At::Hub).await;
    let wake = json!({"opencode": {"url": url, "session": "ses_1", "password_file": file}});
    let refused = thief.refused("start", json!({"agent": "thief", "wake": wake})).await;
    assert!(refused.contains("does not list this secret") && !refused.contains(SECRET), "{refused}");
    thief.start(json!({"agent": "thief"})).await;
    let sable = daemon.agent(At::Own, "sable").await;
    sable.does("send", json!({"to": "thief", "type": "Question", "body": "b"})).await;
    assert_eq!(thief.drain().await.len(), 1);
    assert!(listener.accept().is_err(), "nobody came");
    seen(refused, NOTHING, daemon.logged("A wake contact was not taken").await);
}

// M1: "`MCP_TOKEN` reaches children with `inherit_env = \"all\"` and always with `prism run`"
#[tokio::test]
async fn no_server_is_given_the_secret_that_decides() {
    let config = [
        destination("run", &[], "inherit_env = \"all\""),
        destination("named", &[], "env = { TAKEN = \"env:MCP_TOKEN\" }"),
    ];
    for launch in [Launch::run(&[], &demo(&[])), Launch::serve(&config.concat())] {
        let daemon = launch.env("MCP_TOKEN", SECRET).env("OTHER", "inherited").start().await;
        let session = daemon.client_at("/run/mcp").initialize().await;
        let environment = fs::read_to_string(format!("/proc/{}/environ", session.child().await)).unwrap();
        assert!(environment.contains("OTHER=inherited") && !environment.contains(SECRET), "{environment}");
        let named = daemon.client_at("/named/mcp").say_hello().await;
        if named.status == 404 {
            continue;
        }
        assert_eq!(named.status, 503);
        let why = text(&named.json().await["error"]["message"]);
        assert!(why.contains("Prism's own") && !why.contains(SECRET), "{why}");
        seen(format!("503: {}", logged(&why, "MCP_TOKEN")), NOTHING, daemon.logged("MCP_TOKEN").await);
        assert!(!daemon.stop().await.contains(SECRET));
        return;
    }
    panic!("the second daemon has that server");
}

// M3: "a root named `pro<RLO>jtxt\nROOT /home/me/harmless` prints a forged line in the decision view"
#[tokio::test]
async fn no_folder_has_a_name_that_forges_a_line_where_the_person_decides() {
    let gate = Gate::start().await;
    let root = gate.path("pro\u{202e}jtxt\u{200b}\n  folders harmless");
    fs::create_dir(&root).unwrap();
    let ask = json!({"agent_id": "fixer", "scopes": ["read:files"], "roots": [root], "reason": "r"});
    let (status, asked) = gate.as_agent("/mcp/request_access", ask).await;
    assert_eq!(status, 200, "{asked}");
    let id = text(&asked["request_id"]);
    let listed = gate.prism(&["requests"]).output().await;
    let approving = gate.prism(&["approve", &id]).end().await;
    for shown in [&listed, &approving.stderr] {
        assert!(!shown.contains(['\u{202e}', '\u{200b}']), "{shown}");
        assert!(!shown.lines().any(|line| line.trim_start().starts_with("folders harmless")), "{shown}");
    }
    assert!(approving.stderr.contains("pro\\u{202e}jtxt\\u{200b}\\n  folders harmless"), "{}", approving.stderr);
    let person = logged(&approving.stderr, "pro\\u{202e}");
    seen(text(&asked["status"]), person, gate.last_line("request_access").await);
}

// L1: acknowledged, and lost at `kill -9`: docs/editor.md says for how long, and that whoever goes on is told.
#[tokio::test]
async fn what_a_kill_loses_is_what_the_page_says() {
    let promised = "a daemon that is *killed* (`kill -9`, a power cut) loses the edits of its last third of a second";
    assert!(says(EDITOR, promised));
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files", "read:buffers", "edit:buffers"]).await;
    let mut holder = gate.hold(&granted).await;
    let edit = |old: &str, new: &str| json!({"path": "main.rs", "old_text": old, "new_text": new});
    assert_eq!(holder.does("edit_buffer", edit("main", "first")).await["status"], "ok");
    let kept = gate.daemon.home().path().join("unsaved");
    let holds = |words: &str| {
        let files = fs::read_dir(&kept).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read(file.path()).ok()).any(|text| String::from_utf8_lossy(&text).contains(words))
    };
    until("the first is written down", async || holds("fn first()")).await;
    let second = holder.does("edit_buffer", edit("first", "second")).await;
    assert_eq!(second["status"], "ok", "{second}");
    let gate = gate.killed_and_started(SETTINGS).await;
    let mut holder = gate.hold(&granted).await;
    let opened = holder.does("open_file", json!({"path": "main.rs"})).await;
    let content = text(&opened["data"]["content"]);
    assert!(["fn first() {}\n", "fn second() {}\n"].contains(&content.as_str()), "what is older is there: {opened}");
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n");
    // Whoever goes on from what is lost is told so; it may have been written in time.
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}});
    let next = json!({"path": "main.rs", "version": second["data"]["version"],
        "edits": [{"range": range, "new_text": "fn third() {}\n"}]});
    let next = holder.does("edit_buffer", next).await;
    let is_lost = content.contains("first");
    assert_eq!(next["data"]["code"] == "changed", is_lost, "{content}: {next}");
    let result = if is_lost { "refused: changed" } else { "ok" };
    seen(told(&next), gate.person_saw().await, line(&gate.audited("edit_buffer", result).await));
}

// L2: "the agent sees \"bad config line 1 in file …\": tells what is there, no content seen"
#[tokio::test]
async fn git_does_not_say_what_is_wrong_with_a_file_that_a_repository_includes() {
    assert!(says(
        SECURITY,
        "git fails over a config that includes a file that is none. What is in a file nobody is told."
    ));
    let (gate, outside) = (Gate::start().await, Home::new());
    let key = private(&outside, "id_rsa", &format!("-----BEGIN {SECRET}\n"));
    let git = |words: &[&str]| {
        let ran = Command::new("git").args(words).current_dir(gate.project()).output();
        assert!(ran.as_ref().is_ok_and(|ran| ran.status.success()), "{ran:?}");
    };
    git(&["init", "-q"]);
    git(&["config", "include.path", &key]);
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let refused = holder.does("git_status", json!({})).await;
    assert_eq!(refused["status"], "error", "{refused}");
    for word in ["id_rsa", "line 1", SECRET] {
        assert!(!refused.to_string().contains(word), "{word}: {refused}");
    }
    seen(told(&refused), gate.person_saw().await, gate.last_line("git_status").await);
}

// L3: whoever asks is told, as one that has mistyped should know (docs/security.md), and it is on record.
#[tokio::test]
async fn whoever_asks_for_folders_that_are_not_there_is_on_record() {
    assert!(says(SECURITY, "A request for a folder that does not exist is told so (and is in the audit log)"));
    let gate = Gate::start().await;
    let ask = json!({"agent_id": "a", "scopes": ["read:files"], "roots": [gate.path("none")], "reason": "r"});
    let (status, told) = gate.as_agent("/mcp/request_access", ask).await;
    assert_eq!((status, &told["error"]["code"]), (400, &json!("bad_arguments")), "{told}");
    let line = line(&gate.audited("request_access", "refused: bad_arguments").await);
    assert!(gate.seen("/mcp/requests").await["requests"].as_array().unwrap().is_empty());
    seen(format!("400: {}", text(&told["error"]["message"])), "no request", line);
}

// L6: "`path = \"/home/me/project*\"` would let `..` through"; and what docs/rules.md says of a language in a pattern.
#[tokio::test]
async fn a_path_does_not_climb_out_of_its_rule_and_sql_is_told_to_need_more_than_a_pattern() {
    assert!(says(RULES, "`sql = \"select *\"` also lets `select 1; drop table x` through"));
    let rules = "[destination.demo.tools]\npin = \"off\"\nallow = [\n\
        { tool = \"echo\", arguments = { text = \"/project/*\" } },\n\
        { tool = \"echo\", arguments = { text = \"select *\" } } ]\n";
    let daemon = Launch::serve(&destination("demo", &[], rules)).start().await;
    let session = daemon.client_at("/demo/mcp").initialize().await;
    for (text, is_refused) in [
        ("/project/a", false),
        ("/project/../etc/passwd", true),
        ("/project/a/../../etc/passwd", true),
        ("select 1; drop table x", false),
        ("drop table x", true),
    ] {
        let answer = session.call("echo", json!({"text": text})).await.answer().await;
        assert_eq!(answer["result"]["isError"] == true, is_refused, "{text}: {answer}");
        if text.contains("..") {
            let refused = daemon.audited(&json!({"action": "tools/call", "result": "refused: denied"})).await;
            seen(result_text(&answer), NOTHING, line(&refused));
        }
    }
}

// L9: "FIFO as token file hangs the start"
#[tokio::test]
async fn a_pipe_in_the_place_of_a_token_holds_up_no_start() {
    let home = Home::new();
    assert!(Command::new("mkfifo").arg(home.file("http-mcp-token")).status().unwrap().success());
    let (status, said) = Launch::serve("").home(&home).fail().await;
    assert_eq!(status.code(), Some(1));
    assert!(said.contains("holds no token") && said.contains("fix: rm "), "{said}");
    seen(NOTHING, logged(&said, "holds no token"), NOTHING);
}

// L9: "`prism list` prints argv"
#[tokio::test]
async fn no_list_shows_a_secret_in_a_command() {
    let config = format!("[destination.a]\ncommand = [\"npx\", \"some-server\", \"--api-key\", \"{SECRET}\"]\n");
    let shown = Launch::prism(vec!["list".to_owned()]).config(&config).output().await;
    assert!(shown.contains("some-server --api-key '…'") && !shown.contains(SECRET), "{shown}");
    seen(NOTHING, logged(&shown, "npx"), NOTHING);
}

// L9: "200 sockets of one grant"
#[tokio::test]
async fn a_grant_has_so_many_sockets_and_no_more() {
    let gate = Gate::start().await;
    let granted = gate.granted(&["read:files"]).await;
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..200 {
        let mut holder =
            gate.knock(&granted.id, Some(&granted.token), &[]).await.expect("it is told by the close code");
        match holder.next().await {
            Ok(_) => open.push(holder),
            Err(code) => {
                assert_eq!(code, 1013);
                refused += 1;
            }
        }
    }
    assert_eq!((open.len(), refused), (32, 168));
    let sockets = gate.grant_seen(&granted.id).await["sockets"].clone();
    assert_eq!(sockets, 32);
    let line = line(&gate.audited("connect", "refused: too_many").await);
    assert_eq!(open[0].does("open_file", json!({"path": "main.rs"})).await["status"], "ok");
    seen(format!("closed: 1013, {refused} of 200 times"), format!("a grant with {sockets} sockets"), line);
    // Whoever closes one has a place again.
    open.pop();
    until("there is a place", async || {
        let holder = gate.knock(&granted.id, Some(&granted.token), &[]).await;
        holder.expect("it is told by the close code").next().await.is_ok()
    })
    .await;
}

// L9: "1,000-deep JSON is passed on and kills a Python child that others share"
#[tokio::test]
async fn what_is_nested_a_thousand_deep_reaches_no_server() {
    let record = Home::new();
    let daemon = Daemon::run(&[], &["--record", &record.file("heard")]).await;
    let session = daemon.client().initialize().await;
    let child = session.child().await;
    let call = |levels: usize| {
        let deep = format!("{}\"tell-tale\"{}", "[".repeat(levels), "]".repeat(levels));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"x","deep":{deep}}}}}}}"#
        )
    };
    let refused = session.post_text(&call(1000)).await;
    assert_eq!(refused.status, 400);
    let why = text(&refused.json().await["error"]["message"]);
    assert!(why.contains("more than 128 deep"), "{why}");
    assert!(!fs::read_to_string(record.file("heard")).unwrap().contains("tell-tale"));
    assert_eq!(session.post_text(&call(100)).await.status, 200);
    assert_eq!(session.child().await, child);
    seen(format!("400: {why}"), NOTHING, daemon.logged("status_code=400").await);
}

// L9: "long blanks in `prism confirm` are not marked"
#[tokio::test]
async fn many_blanks_are_counted_where_the_person_decides() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["run:commands"]).await).await;
    let command = format!("echo fine{}; touch ran", " ".repeat(300));
    let id = holder.begins("exec_command", json!({"command": command, "cwd": gate.project()})).await;
    let waiting = text(&gate.confirmation().await["confirmation_id"]);
    let shown = gate.prism(&["confirm", &waiting]).end().await.stderr;
    assert!(shown.contains("echo fine [300 blanks] ; touch ran"), "{shown}");
    gate.prism(&["confirm", &waiting, "--deny"]).output().await;
    let refused = holder.result(&id).await;
    assert!(!fs::exists(gate.path("ran")).unwrap());
    let line = line(&gate.audited("exec_command", "refused: denied").await);
    seen(told(&refused), logged(&shown, "echo fine"), line);
}
