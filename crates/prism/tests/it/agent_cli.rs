//! `prism agent`: a person at the shell as a sub-agent, with the real binary and the real daemon.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::{
    Ended, Launch,
    gate::{Gate, answer, text},
    terminal::Terminal,
    until,
};

/// Opens a session with these scopes, and approves it.
async fn open(gate: &Gate, scopes: &[&str], more: &[&str]) -> Ended {
    let root = gate.project();
    let mut words = vec!["agent", "open", "--root", &root];
    words.extend(scopes.iter().flat_map(|scope| ["--scope", scope]));
    words.extend(more);
    let opening = gate.prism(&words).begin();
    let asked = asked(gate).await;
    let (status, told) = gate.as_person("/mcp/approve", json!({"request_id": asked})).await;
    assert_eq!(status, 200, "{told}");
    let ended = opening.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    ended
}

/// The one request that waits.
async fn asked(gate: &Gate) -> String {
    let mut id = Value::Null;
    until("it is asked", async || {
        id = gate.seen("/mcp/requests?open=1").await["requests"][0]["request_id"].clone();
        id.is_string()
    })
    .await;
    text(&id)
}

async fn run(gate: &Gate, words: &[&str]) -> Ended {
    let words: Vec<&str> = ["agent"].into_iter().chain(words.iter().copied()).collect();
    gate.prism(&words).end().await
}

async fn ok(gate: &Gate, words: &[&str]) -> String {
    let ended = run(gate, words).await;
    assert_eq!(ended.code, Some(0), "{words:?}: {}", ended.stderr);
    ended.stdout
}

// opens a granted session and runs verbs from the shell.
#[tokio::test]
async fn a_person_opens_a_session_works_in_it_and_gives_it_back() {
    let gate = Gate::start().await;
    let scopes = ["read:files", "write:files", "edit:buffers", "read:buffers", "create:files", "search:files"];
    let opened = open(&gate, &scopes, &["--for", "5m", "--agent", "Me"]).await;
    assert!(
        opened.stdout.starts_with("open: me may work in ") && opened.stdout.contains("read:files"),
        "{}",
        opened.stdout
    );
    assert!(!opened.stdout.contains('\u{1b}') && !opened.stderr.contains('\u{1b}'), "no colour in a pipe");
    let folder = gate.daemon.home().path().join("agent");
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let kept: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(!opened.stdout.contains(&text(&kept["given"]["token"])), "the token is not shown");

    assert_eq!(ok(&gate, &["run", "open_file", "main.rs"]).await, "fn main() {}\n");
    let edit = ["run", "edit_buffer", "path=main.rs", "old_text=main", "new_text=mine", "--json"];
    let edited: Value = serde_json::from_str(&ok(&gate, &edit).await).unwrap();
    assert_eq!(edited["is_dirty"], true, "{edited}");
    ok(&gate, &["run", "save_buffer", "main.rs"]).await;
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn mine() {}\n");
    let piped =
        gate.prism(&["agent", "run", "create_file", "path=new.txt", "content=-"]).stdin("from\na pipe").end().await;
    assert_eq!(piped.code, Some(0), "{}", piped.stderr);
    fs::write(gate.path("source"), "from a file").unwrap();
    let from = format!("content=@{}", gate.path("source"));
    ok(&gate, &["run", "create_file", "path=other.txt", &from]).await;
    assert_eq!(fs::read_to_string(gate.path("new.txt")).unwrap(), "from\na pipe");
    assert_eq!(fs::read_to_string(gate.path("other.txt")).unwrap(), "from a file");
    assert!(ok(&gate, &["run", "search_files", "pattern=*.txt"]).await.contains("new.txt"));

    let verbs = ok(&gate, &["verbs"]).await;
    assert!(verbs.contains("edit_buffer") && !verbs.contains("delete_file"), "{verbs}");
    let one = ok(&gate, &["verbs", "edit_buffer"]).await;
    assert!(
        one.contains("(granted)") && one.contains("old_text") && one.contains("example: prism agent run edit_buffer")
    );
    let all: Value = serde_json::from_str(&ok(&gate, &["verbs", "--json"]).await).unwrap();
    let granted = all["verbs"].as_array().unwrap().iter().filter(|verb| verb["is_granted"] == true);
    let granted: Vec<String> = granted.map(|verb| text(&verb["verb"])).collect();
    let files = ["open_file", "create_file", "write_file", "search_files"];
    assert_eq!(granted, [&files[..], &["get_buffers", "edit_buffer", "save_buffer"]].concat());

    assert_eq!(ok(&gate, &["close"]).await, "closed\n");
    assert!(gate.seen("/mcp/sessions").await["sessions"].as_array().unwrap().is_empty());
    let none = run(&gate, &["run", "get_buffers"]).await;
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("no session is open") && none.stderr.contains("fix: prism agent open"),
        "{}",
        none.stderr
    );
}

#[tokio::test]
async fn every_slip_and_every_end_names_the_next_step() {
    let gate = Gate::start().await;
    let fails = async |words: &[&str], code: i32, why: &[&str]| {
        let ended = run(&gate, words).await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "{words:?}: {}", ended.stderr);
        for why in why {
            assert!(ended.stderr.contains(why), "{words:?}: {}", ended.stderr);
        }
    };
    fails(&["run", "get_buffers"], 1, &["no session is open", "fix: prism agent open"]).await;
    // Typed wrongly: found out without a session.
    fails(&["run", "opne_file"], 2, &["did you mean \"open_file\"?", "fix: prism agent verbs"]).await;
    fails(&["run", "open_file", "paht=a"], 2, &["did you mean \"path\"?", "fix: prism agent verbs open_file"]).await;
    fails(&["run", "open_file"], 2, &["missing: path"]).await;
    fails(&["run", "open_file", "a", "limit=many"], 2, &["limit must be a whole number"]).await;
    fails(&["verbs", "fly"], 1, &["there is no verb \"fly\""]).await;

    // Not granted yet: it is told, and once it is, the session is there.
    let opening = gate.prism(&["agent", "open", "--root", &gate.project(), "--scope", "read:files"]).begin();
    let id = asked(&gate).await;
    until("it waits", async || opening.stderr().contains("a person decides")).await;
    fails(&["run", "open_file", "main.rs"], 1, &["not granted yet", &format!("fix: prism approve {id}")]).await;
    gate.as_person("/mcp/approve", json!({"request_id": id, "ttl_seconds": 2})).await;
    assert_eq!(opening.end().await.code, Some(0));
    fails(&["run", "delete_file", "main.rs"], 1, &["(forbidden)", "fix: prism agent open --scope"]).await;
    fails(&["run", "open_file", "/etc/passwd"], 1, &["(outside_root)", "fix: prism agent open --root"]).await;
    until("it expires", async || gate.seen("/mcp/sessions").await["sessions"].as_array().unwrap().is_empty()).await;
    fails(&["run", "open_file", "main.rs"], 1, &["the grant has expired", "fix: prism agent open"]).await;
    fails(&["run", "open_file", "main.rs"], 1, &["no session is open"]).await;

    open(&gate, &["read:files"], &[]).await;
    let told = gate.prism(&["revoke", "--all"]).output().await;
    assert_eq!(told, "revoked 1 grant\n");
    fails(&["run", "open_file", "main.rs"], 1, &["the grant was revoked", "fix: prism agent open"]).await;

    let denied = gate.prism(&["agent", "open", "--root", &gate.project(), "--preset", "basic"]).begin();
    let id = asked(&gate).await;
    gate.as_person("/mcp/deny", json!({"request_id": id, "reason": "not today"})).await;
    let denied = denied.end().await;
    assert_eq!(denied.code, Some(1));
    assert!(denied.stderr.contains("the person said no: not today"), "{}", denied.stderr);

    open(&gate, &["read:files"], &[]).await;
    let home = gate.daemon.home().clone();
    gate.daemon.stop().await;
    let away =
        Launch::prism(["agent", "run", "open_file", "main.rs"].map(str::to_owned).to_vec()).home(&home).end().await;
    assert_eq!(away.code, Some(3), "{}", away.stderr);
    assert!(
        away.stderr.contains("Prism is not running") && away.stderr.contains("fix: prism serve"),
        "{}",
        away.stderr
    );
}

#[tokio::test]
async fn a_shell_takes_lines_from_a_pipe_over_one_connection() {
    let gate = Gate::start().await;
    open(&gate, &["read:files", "edit:buffers", "write:files", "read:buffers"], &[]).await;
    let lines = "# a comment, and an empty line\n\nopen_file main.rs\n\
                 edit_buffer path=main.rs old_text='main()' new_text=\"two()\"\nsave_buffer main.rs\n\
                 opne_file main.rs\nopen_file none\nget_buffers\nexit\nget_buffers\n";
    let ended = gate.prism(&["agent", "shell", "--json"]).stdin(lines).end().await;
    assert_eq!(ended.code, Some(1), "two lines failed: {}", ended.stderr);
    let told: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(String, String)> = told.iter().map(|line| (text(&line["verb"]), text(&line["status"]))).collect();
    let told: Vec<(&str, &str)> = told.iter().map(|(verb, status)| (verb.as_str(), status.as_str())).collect();
    let expected = [
        ("open_file", "ok"),
        ("edit_buffer", "ok"),
        ("save_buffer", "ok"),
        ("open_file", "error"),
        ("get_buffers", "ok"),
    ];
    assert_eq!(told, expected);
    assert!(ended.stderr.contains("did you mean \"open_file\"?"), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn two() {}\n");
    let strict = gate.prism(&["agent", "shell", "--strict"]).stdin("open_file none\nopen_file main.rs\n").end().await;
    assert_eq!((strict.code, strict.stdout.as_str()), (Some(1), ""));
}

#[tokio::test]
async fn events_are_followed_as_they_happen() {
    let gate = Gate::start().await;
    open(&gate, &["read:files", "read:buffers", "edit:buffers"], &[]).await;
    let wrong = gate.prism(&["agent", "events", "bufer_changed"]).end().await;
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("did you mean \"buffer_changed\"?"), "{}", wrong.stderr);
    let following = gate.prism(&["agent", "events", "buffer_changed", "git_state", "--json"]).begin();
    until("it follows", async || following.stderr().contains("following, as shell")).await;
    let unheard = "does not hear of branch_changed, commit_made";
    assert!(following.stderr().contains(unheard) && !following.stderr().contains("of buffer_changed"));
    ok(&gate, &["run", "edit_buffer", "path=main.rs", "old_text=main", "new_text=two"]).await;
    until("it is told", async || following.stdout().contains("buffer_changed")).await;
    let event: Value = serde_json::from_str(following.stdout().lines().next().unwrap()).unwrap();
    assert_eq!((&event["event"], &event["data"]["path"]), (&json!("editor_state"), &json!(gate.path("main.rs"))));
    gate.prism(&["revoke", "--all"]).output().await;
    let ended = following.end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("the grant was revoked"), "{}", ended.stderr);
}

#[tokio::test]
async fn on_a_terminal_one_is_kept_waiting_with_a_spinner_and_has_a_prompt_and_colour() {
    let gate = Gate::start().await;
    let root = gate.project();
    let opening = ["agent", "open", "--root", &root, "--scope", "read:files", "--scope", "delete:files"];
    let mut terminal = Terminal::run(gate.daemon.home(), &opening, (100, 40));
    until("it waits", async || terminal.shown().contains("waiting for the person")).await;
    gate.as_person("/mcp/approve", json!({"request_id": asked(&gate).await})).await;
    assert_eq!(terminal.ended().await.code(), Some(0));
    let mut shell = Terminal::run(gate.daemon.home(), &["agent", "shell"], (100, 40));
    until("it is ready", async || shell.shown().contains("prism> ")).await;
    shell.press("open_file main.rs\n");
    until("it answers", async || shell.shown().contains("fn main() {}")).await;
    shell.press("opne_file\n");
    until("it helps", async || shell.shown().contains("did you mean")).await;
    assert!(shell.shown().contains("\u{1b}[1;31merror:"), "{:?}", shell.shown());
    shell.press("delete_file main.rs\n");
    let waiting = gate.confirmation().await;
    answer(&gate, &waiting, &waiting["digest"], true).await;
    until("it is gone", async || !fs::exists(gate.path("main.rs")).unwrap()).await;
    shell.press("exit\n");
    assert_eq!(shell.ended().await.code(), Some(0));
}
