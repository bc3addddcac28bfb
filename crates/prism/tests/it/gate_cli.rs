//! The gate from the command line: what an agent asks for, what the person sees of it, and how they decide.

use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, text},
    seen::{logged, seen},
    terminal::Terminal,
    until,
};

async fn json_of(gate: &Gate, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let output = gate.prism(&words).output().await;
    serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
}

//
#[tokio::test]
async fn an_agent_asks_waits_and_is_given_what_the_person_approves() {
    let gate = Gate::start().await;
    let asking = ["access", "request", "--agent", "Fixer", "--preset", "basic", "--preset", "standard", "--wait"];
    let about = ["--root", &gate.project(), "--reason", "To see", "--ttl", "5m", "--json"];
    let asking = gate.prism(&[&asking[..], &about].concat()).begin();
    until("it is asked", async || !gate.seen("/mcp/requests").await["requests"].as_array().unwrap().is_empty()).await;
    let listed = json_of(&gate, &["requests"]).await;
    let request = &listed["requests"][0];
    assert_eq!((&request["agent_id"], &request["ttl_seconds"]), (&json!("fixer"), &json!(300)));
    let scopes = request["scopes"].as_array().unwrap();
    assert_eq!(request["asker"]["via"], "cli", "R-38");
    assert!(["read:buffers", "write:files"].iter().all(|scope| scopes.contains(&json!(scope))), "of both: {scopes:?}");
    let shown = gate.prism(&["requests"]).output().await;
    let short = text(&request["request_id"])[..8].to_owned();
    assert!(shown.contains(&short) && shown.contains("fixer") && shown.contains("To see"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "no colour in a pipe");

    let said = gate.prism(&["approve", &short, "--scope", "read:files", "--ttl", "90s"]).output().await;
    assert!(said.starts_with("approved: fixer has grant ") && said.contains("\ntake it back: prism revoke "), "{said}");
    assert!(!said.contains("token"), "the agent takes its own");
    assert_eq!(gate.audited("approve", "allowed").await["actor"], "person (command line)", "R-38");
    let ended = asking.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(told["allowed_scopes"], json!(["read:files"]));
    assert_eq!(text(&told["session_token"]).len(), 64);

    let grants = gate.prism(&["grants"]).output().await;
    assert!(grants.contains("fixer") && grants.contains("read:files") && grants.contains("approved"), "{grants}");
    let id = text(&told["session_id"]);
    assert_eq!(gate.prism(&["revoke", &id[..13]]).output().await, "revoked 1 grant\n");
    assert_eq!(gate.prism(&["grants"]).output().await, "nobody holds a grant; prism requests shows who asks\n");
    let all = json_of(&gate, &["grants", "--all"]).await;
    assert_eq!(all["sessions"][0]["status"], "REVOKED");
    assert_eq!(json_of(&gate, &["revoke", "--all"]).await, json!({"revoked": 0}));
}

//
#[tokio::test]
async fn a_denial_is_told_with_its_reason_and_a_slip_with_the_next_step() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files"]).await;
    let other = gate.ask("other", &["read:files"]).await;
    assert_eq!(
        gate.prism(&["deny", &asked.id, "--reason", "Not", "today"]).output().await,
        format!("denied {}\n", asked.id)
    );
    let told = gate.prism(&["access", "claim", &asked.id, "-"]).stdin(&asked.claim).end().await;
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), "denied: Not today\n"));
    let open = gate.prism(&["access", "claim", &other.id, &other.claim]).end().await;
    assert_eq!((open.code, open.stdout.as_str()), (Some(0), "nobody has decided yet; --wait waits\n"));

    let fails = async |words: &[&str]| {
        let ended = gate.prism(words).end().await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{words:?}");
        ended.stderr
    };
    let why = fails(&["approve", &asked.id, "--yes"]).await;
    assert!(
        why.contains("already denied (by you, from the command line, ") && why.contains("fix: prism requests --all"),
        "{why}"
    );
    let why = fails(&["approve", &other.id, "--scope", "delete:files"]).await;
    assert!(why.contains("has not asked for delete:files") && why.contains("fix: "), "{why}");
    let why = fails(&["approve", "zzzz", "--yes"]).await;
    assert!(why.contains("no request \"zzzz\"") && why.contains("fix: prism requests --all"), "{why}");
    let why = fails(&["revoke", "zzzz"]).await;
    assert!(why.contains("fix: prism grants"), "{why}");
    let why = fails(&["revoke", "--agent", "nobody"]).await;
    assert!(why.contains("holds no grant"), "{why}");
    let why =
        fails(&["access", "request", "--agent", "a", "--scope", "read:file", "--root", "/", "--reason", "x"]).await;
    assert!(why.contains("do you mean \"read:files\"?"), "{why}");
    let why = fails(&["access", "request", "--scope", "read:files", "--root", "/", "--reason", "x"]).await;
    assert!(why.contains("--agent NAME"), "{why}");
    // Of seventeen two begin with the same digit; then more has to be typed.
    let mut ids = vec![other.id.clone()];
    for number in 1..17 {
        ids.push(gate.ask(&format!("agent {number}"), &["read:files"]).await.id);
    }
    let begins = |digit: &str| ids.iter().filter(|id| id.starts_with(digit)).count();
    let digit = ids.iter().map(|id| &id[..1]).find(|digit| begins(digit) > 1).unwrap();
    let why = fails(&["deny", digit]).await;
    assert!(why.contains("requests begin with"), "{why}");
    // Without the secret nobody decides.
    let ended = gate.prism(&["approve", &other.id, "--yes"]).env("MCP_TOKEN", "guessed").end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("management secret") && ended.stderr.contains("fix: "), "{}", ended.stderr);
    assert_eq!(gate.request_seen(&other.id).await["status"], "PENDING");
}

//
#[tokio::test]
async fn without_a_person_at_a_terminal_nothing_is_approved_unless_it_is_said() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files", "delete:files"]).await;
    for more in [&[][..], &["--json"], &["--ttl", "5m"], &["--confirm-changes"]] {
        let ended = gate.prism(&[&["approve", &asked.id], more].concat()).end().await;
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{more:?}");
        assert!(
            ended.stderr.contains("nobody is at a terminal") && ended.stderr.contains("fix: --yes"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("delete:files"), "it says what it would have been: {}", ended.stderr);
        let agent = text(&gate.request_seen(&asked.id).await["status"]);
        seen(agent, logged(&ended.stderr, "nobody is at a terminal"), gate.last_line("request_access").await);
    }
    assert_eq!(gate.request_seen(&asked.id).await["status"], "PENDING");
    assert!(gate.audit().iter().all(|line| line["action"] != "approve"));
    let given = gate.prism(&["approve", &asked.id, "--yes", "--json"]).end().await;
    assert_eq!(given.code, Some(0), "{}", given.stderr);
}

// A-13, for who has no browser at hand: the same dialog.
#[tokio::test]
async fn on_a_terminal_the_person_sees_what_is_asked_and_approves_a_part() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["read:files", "delete:files"]).await;
    let mut terminal = Terminal::run(gate.daemon.home(), &["approve", &asked.id], (100, 40));
    until("it asks", async || terminal.shown().contains("Approve?")).await;
    let shown = terminal.shown();
    for words in ["fixer", "a test", &gate.project(), "delete files; each time you are asked", "new"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    terminal.press("some\n");
    until("it goes on", async || terminal.shown().contains("read files?")).await;
    terminal.press("y\n");
    until("it goes on", async || terminal.shown().contains("asked? yes, no:")).await;
    terminal.press("n\n");
    assert_eq!(terminal.ended().await.code(), Some(0));
    let page = gate.seen("/mcp/sessions").await;
    assert_eq!(page["sessions"][0]["allowed_scopes"], json!(["read:files"]));
    // Whoever leaves has decided nothing.
    let other = gate.ask("other", &["read:files"]).await;
    let mut terminal = Terminal::run(gate.daemon.home(), &["approve", &other.id], (100, 40));
    until("it asks", async || terminal.shown().contains("Approve?")).await;
    terminal.press("no\n");
    assert_eq!(terminal.ended().await.code(), Some(1));
    assert_eq!(gate.request_seen(&other.id).await["status"], "PENDING");
}

//
#[tokio::test]
async fn what_would_run_is_shown_exactly_and_then_confirmed_or_denied() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["run:commands"]).await).await;
    let id = holder.begins("exec_command", json!({"command": "echo one; echo two", "cwd": gate.project()})).await;
    let waiting = gate.confirmation().await;
    let listed = gate.prism(&["confirmations"]).output().await;
    assert!(listed.contains("run echo one; echo two"), "{listed}");
    let short = &text(&waiting["confirmation_id"])[..8];
    // Where nobody can see it, nothing is allowed by itself.
    let unseen = gate.prism(&["confirm", short]).end().await;
    assert_eq!(unseen.code, Some(1));
    assert!(
        unseen.stderr.contains("command  echo one; echo two   (run with sh -c)") && unseen.stderr.contains("--yes"),
        "{}",
        unseen.stderr
    );
    let mut terminal = Terminal::run(gate.daemon.home(), &["confirm", short], (100, 40));
    until("it asks", async || terminal.shown().contains("Let it happen?")).await;
    assert!(terminal.shown().contains("echo one; echo two"), "{}", terminal.shown());
    terminal.press("yes\n");
    assert_eq!(terminal.ended().await.code(), Some(0));
    let result = holder.result(&id).await;
    assert!(result["data"].to_string().contains("one\\ntwo"), "{result}");

    let id = holder.begins("exec_command", json!({"command": ["false"], "cwd": gate.project()})).await;
    let waiting = text(&gate.confirmation().await["confirmation_id"]);
    let denied = gate.prism(&["confirm", &waiting, "--deny", "--reason", "Not", "this"]).output().await;
    assert_eq!(denied, "denied\n");
    let result = holder.result(&id).await;
    assert!(text(&result["data"]["message"]).contains("Not this"), "{result}");
    // What is allowed more than once is the very same.
    for at in 0..3 {
        let id = holder.begins("exec_command", json!({"command": ["true"], "cwd": gate.project()})).await;
        if at == 0 {
            let waiting = text(&gate.confirmation().await["confirmation_id"]);
            assert_eq!(gate.prism(&["confirm", &waiting, "--uses", "3", "--for", "10m"]).output().await, "allowed\n");
        }
        assert_eq!(holder.result(&id).await["status"], "ok", "{at}");
    }
}

#[tokio::test]
async fn requests_are_watched_as_they_come_and_change() {
    let gate = Gate::start().await;
    let first = gate.ask("first", &["read:files"]).await;
    let watching = gate.prism(&["requests", "--watch", "--json"]).begin();
    let seen = |id: &str, status: &str| {
        let rows: Vec<Value> = watching.stdout().lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        rows.iter().any(|row| row["request_id"] == id && row["status"] == status)
    };
    until("what waits is shown", async || seen(&first.id, "PENDING")).await;
    let second = gate.ask("second", &["read:files"]).await;
    until("what comes is shown", async || seen(&second.id, "PENDING")).await;
    gate.approve(&first, json!({})).await;
    until("what changes is shown", async || seen(&first.id, "APPROVED")).await;
}

#[tokio::test]
async fn scopes_and_actions_are_listed_with_what_they_mean() {
    let gate = Gate::start().await;
    let scopes = gate.prism(&["access", "scopes"]).output().await;
    assert!(scopes.contains("delete:files") && scopes.contains("delete files; each time you are asked"), "{scopes}");
    let actions = json_of(&gate, &["access", "actions"]).await;
    let all = actions["actions"].as_array().unwrap();
    assert_eq!(all.len(), 43);
    assert!(all.iter().any(|row| row["action"] == "exec_command" && row["risk"] == "destroys"));
    assert_eq!(json_of(&gate, &["access", "scopes"]).await["scopes"].as_array().unwrap().len(), 41);
}

#[tokio::test]
async fn without_a_daemon_there_is_nothing_to_decide() {
    let home = crate::support::Home::new();
    for words in [&["requests"][..], &["grants"], &["confirmations"], &["approve", "x"], &["revoke", "--all"]] {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let ended = crate::support::Launch::prism(words).home(&home).end().await;
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("fix: prism serve --detach"), "{}", ended.stderr);
    }
}
