//! What a grant may do to files without a question, and what not: what the person's own tools run, what is destroyed, and what
//! somebody else has not saved.

use std::fs;

use prism_editor::digest_of;
use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder, answer, text},
    plugin::{Editor, VERBS},
    seen::{NOTHING, line, seen, told},
};

/// What the preset `standard` has, and what else changes files.
const SCOPES: &[&str] =
    &["read:files", "create:files", "write:files", "rename:files", "edit:buffers", "manage:buffers", "replace:text"];

async fn holder(gate: &Gate, agent: &str) -> Holder {
    let granted = gate.approve(&gate.ask(agent, SCOPES).await, json!({})).await;
    gate.hold(&granted).await
}

fn data(result: Value) -> Value {
    assert_eq!(result["status"], "ok", "{result}");
    result["data"].clone()
}

/// Does what has to be asked about. Returns why it was, and what came of it.
async fn asked(gate: &Gate, holder: &mut Holder, verb: &str, args: Value, allow: bool) -> (String, Value) {
    let id = holder.begins(verb, args).await;
    let question = gate.confirmation().await;
    assert_eq!(question["shown"]["action"], verb, "{question}");
    let because = question["shown"]["because"].as_array().map(|all| all.iter().map(text).collect::<Vec<_>>());
    answer(gate, &question, &question["digest"], allow).await;
    (because.unwrap_or_default().join("\n"), holder.result(&id).await)
}

// R-05, S-09
#[tokio::test]
async fn file_verbs_are_closed_to_a_repository_however_it_is_spelled() {
    let gate = Gate::start().await;
    fs::create_dir_all(gate.path(".git/hooks")).unwrap();
    fs::write(gate.path(".git/config"), "[core]\n").unwrap();
    fs::create_dir(gate.path("hooks")).unwrap();
    std::os::unix::fs::symlink(".git", gate.path("innocent")).unwrap();
    let mut holder = holder(&gate, "fixer").await;
    let edit = |path: &str| json!({"path": path, "old_text": "[core]", "new_text": "[core]\nfsmonitor = \"sh x\""});
    for (verb, args) in [
        ("write_file", json!({"path": ".git/config", "content": "x", "digest": digest_of(b"[core]\n")})),
        ("write_file", json!({"path": "innocent/config", "content": "x"})),
        ("write_file", json!({"path": gate.path("./.git//config"), "content": "x"})),
        ("create_file", json!({"path": ".git/hooks/pre-commit", "content": "#!/bin/sh\n"})),
        ("create_file", json!({"path": "sub/.GIT/hooks/pre-commit", "content": "", "parents": true})),
        ("create_file", json!({"path": ".git/new", "kind": "folder"})),
        ("create_file", json!({"path": "sub/.git", "content": "gitdir: /tmp/x"  , "parents": true})),
        ("edit_buffer", edit(".git/config")),
        ("edit_buffer", json!({"files": [edit(".git/config")]})),
        ("rename_file", json!({"path": "main.rs", "new_path": ".git/hooks/pre-commit"})),
        ("rename_file", json!({"path": "hooks", "new_path": ".git/hooks", "overwrite": true})),
        ("rename_file", json!({"path": ".git", "new_path": "git"})),
        ("replace_text", json!({"path": ".git/config", "text": "core", "new_text": "x"})),
    ] {
        let refused = holder.does(verb, args.clone()).await;
        assert_eq!(refused["data"]["code"], "forbidden", "{verb} {args}: {refused}");
        assert!(text(&refused["data"]["message"]).contains("git_commit"), "it says what to use: {refused}");
    }
    assert_eq!(fs::read_to_string(gate.path(".git/config")).unwrap(), "[core]\n");
    let line = line(&gate.audited("write_file", "refused: forbidden").await);
    let heard = holder.hears("write_file", json!({"path": ".git/config", "content": "x"})).await;
    let person = gate.person_saw().await;
    assert_eq!(person, "not asked");
    seen(heard, person, line);
    data(holder.does("open_file", json!({"path": ".git/config"})).await);
}

// R-05, S-09
#[tokio::test]
async fn what_the_persons_tools_run_is_shown_first_with_the_reason() {
    let gate = Gate::start().await;
    let mut holder = holder(&gate, "fixer").await;
    let tasks = json!({"path": ".vscode/tasks.json", "content": "{}\n", "parents": true});
    let (because, refused) = asked(&gate, &mut holder, "create_file", tasks.clone(), false).await;
    assert!(because.contains("/.vscode/tasks.json: an editor runs its tasks"), "{because}");
    assert_eq!(refused["data"]["code"], "denied", "{refused}");
    assert!(!fs::exists(gate.path(".vscode")).unwrap());
    let line = line(&gate.audited("create_file", "refused: denied").await);
    seen(told(&refused), gate.person_saw().await, line);
    let (_, made) = asked(&gate, &mut holder, "create_file", tasks, true).await;
    data(made);
    for (verb, args) in [
        ("rename_file", json!({"path": "main.rs", "new_path": ".envrc"})),
        ("rename_file", json!({"path": ".vscode", "new_path": "x"})),
        ("write_file", json!({"path": ".vscode/tasks.json", "content": "{\"a\": 1}\n"})),
    ] {
        let (because, refused) = asked(&gate, &mut holder, verb, args, false).await;
        assert!(!because.is_empty() && refused["data"]["code"] == "denied", "{verb}: {refused}");
    }
    // Ordinary work is not asked about.
    data(holder.does("create_file", json!({"path": "Makefile", "content": "all:\n"})).await);
    data(holder.does("rename_file", json!({"path": "Makefile", "new_path": "sub.mk"})).await);
}

// one change is one question, and a part of a file is what it is about.
#[tokio::test]
async fn a_script_is_asked_about_when_it_is_edited_and_a_dependency_is_not() {
    let gate = Gate::start().await;
    fs::write(gate.path("package.json"), "{\"scripts\": {\"test\": \"jest\"}, \"dependencies\": {}}\n").unwrap();
    let mut holder = holder(&gate, "fixer").await;
    let depends = json!({"path": "package.json", "old_text": "{}}", "new_text": "{\"left-pad\": \"1\"}}"});
    data(holder.does("edit_buffer", depends).await);
    let script = json!({"path": "package.json", "old_text": "jest", "new_text": "sh x.sh"});
    let (because, edited) = asked(&gate, &mut holder, "edit_buffer", script, true).await;
    assert!(because.contains("package.json: its scripts run"), "{because}");
    data(edited);
    data(holder.does("edit_buffer", json!({"path": "package.json", "old_text": "\"1\"", "new_text": "\"2\""})).await);
    data(holder.does("save_buffer", json!({"path": "package.json"})).await);
    assert!(fs::read_to_string(gate.path("package.json")).unwrap().contains("sh x.sh"));
    // What somebody else has brought into the buffer is asked about by whoever saves it.
    fs::write(gate.path(".envrc"), "a\n").unwrap();
    let edit = json!({"path": ".envrc", "old_text": "a", "new_text": "b"});
    asked(&gate, &mut holder, "edit_buffer", edit, true).await;
    let mut other = self::holder(&gate, "other").await;
    let (because, saved) = asked(&gate, &mut other, "save_buffer", json!({"path": ".envrc"}), true).await;
    assert!(because.contains(".envrc"), "{because}");
    data(saved);
}

//
#[tokio::test]
async fn destroying_is_asked_about_however_it_is_spelled() {
    let gate = Gate::start().await;
    for name in ["a", "b"] {
        fs::write(gate.path(name), "text\n").unwrap();
    }
    let mut holder = holder(&gate, "fixer").await;
    let digest = digest_of(b"text\n");
    for (verb, args, why) in [
        ("rename_file", json!({"path": "a", "new_path": "b", "overwrite": true}), "is replaced"),
        ("write_file", json!({"path": "a", "content": "", "digest": digest}), "is emptied"),
        ("write_file", json!({"path": "a", "content": "new\n"}), "no digest"),
    ] {
        let (because, refused) = asked(&gate, &mut holder, verb, args, false).await;
        assert!(because.contains(why), "{verb}: {because}");
        assert_eq!(refused["data"]["code"], "denied", "{refused}");
        let line = line(&gate.audited(verb, "refused: denied").await);
        seen(told(&refused), gate.person_saw().await, line);
    }
    data(holder.does("edit_buffer", json!({"path": "a", "old_text": "text\n", "new_text": ""})).await);
    let (because, _) = asked(&gate, &mut holder, "save_buffer", json!({"path": "a"}), false).await;
    assert!(because.contains("is emptied"), "{because}");
    assert!(["a", "b"].iter().all(|name| fs::read_to_string(gate.path(name)).unwrap() == "text\n"));
    data(holder.does("close_buffer", json!({"path": "a", "discard": true})).await);
    // Whoever names what it saw has seen it; and what one has written oneself is one's own.
    data(holder.does("write_file", json!({"path": "a", "content": "new\n", "digest": digest})).await);
    data(holder.does("write_file", json!({"path": "a", "content": "newer\n"})).await);
    data(holder.does("rename_file", json!({"path": "a", "new_path": "c"})).await);
    data(holder.does("write_file", json!({"path": "c", "content": "newest\n"})).await);
    data(holder.does("rename_file", json!({"path": "c", "new_path": "a"})).await);
    // Until somebody else has.
    fs::write(gate.path("a"), "a person's\n").unwrap();
    let (because, _) = asked(&gate, &mut holder, "write_file", json!({"path": "a", "content": "x"}), false).await;
    assert!(because.contains("no digest"), "R-07: {because}");
}

//
#[tokio::test]
async fn what_another_has_not_saved_is_not_thrown_away_unasked() {
    let gate = Gate::start().await;
    let (mut one, mut other) = (holder(&gate, "one").await, holder(&gate, "other").await);
    let discard = json!({"path": "main.rs", "discard": true});
    let edit = |new: &str| json!({"path": "main.rs", "old_text": "main", "new_text": new});
    data(one.does("edit_buffer", edit("one")).await);
    let (because, refused) = asked(&gate, &mut other, "close_buffer", discard.clone(), false).await;
    assert!(because.contains("unsaved text of one"), "{because}");
    assert_eq!(refused["data"]["code"], "denied", "{refused}");
    let line = line(&gate.audited("close_buffer", "refused: denied").await);
    seen(told(&refused), gate.person_saw().await, line);
    let (because, _) = asked(&gate, &mut other, "edit_buffer", json!({"path": "main.rs", "undo": 1}), false).await;
    assert!(because.contains("somebody else"), "{because}");
    let opened = data(other.does("open_file", json!({"path": "main.rs"})).await);
    assert_eq!(opened["content"], "fn one() {}\n");
    // Its own is its own.
    data(one.does("edit_buffer", json!({"path": "main.rs", "undo": 1})).await);
    let (because, _) = asked(&gate, &mut other, "edit_buffer", json!({"path": "main.rs", "redo": 1}), false).await;
    assert!(because.contains("somebody else"), "{because}");
    data(one.does("edit_buffer", json!({"path": "main.rs", "redo": 1})).await);
    data(one.does("close_buffer", discard).await);
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n");
}

// with `--confirm-changes` the person sees that, too.
#[tokio::test]
async fn a_person_who_wants_to_see_each_change_sees_a_discard() {
    let gate = Gate::start().await;
    let asked_for = gate.ask("fixer", SCOPES).await;
    let mut holder = gate.hold(&gate.approve(&asked_for, json!({"confirm_changes": true})).await).await;
    let edit = json!({"path": "main.rs", "old_text": "main", "new_text": "begin"});
    data(asked(&gate, &mut holder, "edit_buffer", edit, true).await.1);
    let discard = json!({"path": "main.rs", "discard": true});
    let (because, _) = asked(&gate, &mut holder, "close_buffer", discard, false).await;
    assert!(because.contains("unsaved text is thrown away"), "{because}");
}

// R-05 … R-07: whoever has the folder open.
#[tokio::test]
async fn the_same_holds_in_an_editor_with_its_plugin() {
    let gate = Gate::start().await;
    fs::create_dir_all(gate.path(".git")).unwrap();
    fs::write(gate.path(".git/config"), "[core]\n").unwrap();
    fs::write(gate.path(".envrc"), "core\n").unwrap();
    fs::write(gate.path("package.json"), "{\"scripts\": {}, \"version\": \"1\"}\n").unwrap();
    let mut holder = holder(&gate, "fixer").await;
    let editor = Editor::start(&gate, "edit", &[VERBS, &["replace_text"]].concat()).await;
    for (verb, args) in [
        ("write_file", json!({"path": ".git/config", "content": "x", "digest": digest_of(b"[core]\n")})),
        ("edit_buffer", json!({"path": ".git/config", "old_text": "core", "new_text": "x"})),
        ("create_file", json!({"path": ".git/hooks/x", "content": "", "parents": true})),
        ("rename_file", json!({"path": "main.rs", "new_path": ".git/x"})),
        ("replace_text", json!({"path": ".git/config", "text": "core", "new_text": "x"})),
    ] {
        let refused = holder.does(verb, args).await;
        assert_eq!(refused["data"]["code"], "forbidden", "{verb}: {refused}");
    }
    for (verb, args, why) in [
        ("edit_buffer", json!({"path": ".envrc", "old_text": "core", "new_text": "x"}), ".envrc: a shell"),
        ("replace_text", json!({"path": ".envrc", "text": "core", "new_text": "x"}), ".envrc: a shell"),
        ("edit_buffer", json!({"path": "package.json", "old_text": "{}", "new_text": "{\"a\": \"b\"}"}), "its scripts"),
        ("create_file", json!({"path": ".vscode/x", "content": "", "parents": true}), ".vscode/x: an editor"),
        ("rename_file", json!({"path": "main.rs", "new_path": ".envrc", "overwrite": true}), "is replaced"),
        ("write_file", json!({"path": "main.rs", "content": "x"}), "no digest"),
    ] {
        let (because, refused) = asked(&gate, &mut holder, verb, args, false).await;
        assert!(because.contains(why), "{verb}: {because}");
        assert_eq!(refused["data"]["code"], "denied", "{verb}: {refused}");
    }
    data(holder.does("edit_buffer", json!({"path": "package.json", "old_text": "\"1\"", "new_text": "\"2\""})).await);
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "main", "new_text": "mine"})).await;
    for args in [json!({"path": "main.rs", "undo": 1}), json!({"path": "main.rs", "discard": true})] {
        let verb = if args["discard"] == true { "close_buffer" } else { "edit_buffer" };
        let (because, _) = asked(&gate, &mut holder, verb, args, false).await;
        assert!(!because.is_empty(), "{verb}");
    }
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!(there["content"], "fn mine() {}\n");
}

//
#[tokio::test]
async fn a_look_at_the_language_servers_asks_nobody_and_a_stop_does() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["manage:plugins"]).await).await;
    for args in [json!({}), json!({"do": "list"})] {
        let looked = holder.does("manage_plugins", args).await;
        assert!(data(looked.clone())["servers"].is_array());
        let (person, line) = (gate.person_saw().await, line(&gate.audited("manage_plugins", "ok").await));
        assert_eq!(person, "not asked");
        seen(format!("{}: servers {}", text(&looked["status"]), looked["data"]["servers"]), person, line);
    }
    let (_, stopped) = asked(&gate, &mut holder, "manage_plugins", json!({"do": "stop"}), false).await;
    assert_eq!(stopped["data"]["code"], "denied", "{stopped}");
    gate.audited("manage_plugins", "refused: denied").await;
}

//
#[tokio::test]
async fn nobody_is_told_the_command_lines_of_others() {
    let gate = Gate::start().await;
    let scopes = ["run:commands"];
    let mut one = gate.hold(&gate.approve(&gate.ask("one", &scopes).await, json!({})).await).await;
    let mut other = gate.hold(&gate.approve(&gate.ask("other", &scopes).await, json!({})).await).await;
    let (_, ran) = asked(&gate, &mut one, "exec_command", json!({"command": "echo secret"}), true).await;
    data(ran);
    for name in ["process_started", "process_ended", "command_executed"] {
        let heard = other.event(name).await;
        assert_eq!(heard["data"]["command"], Value::Null, "{heard}");
        assert!(!heard.to_string().contains("secret"), "{heard}");
        let heard = &heard["data"];
        seen(
            format!("{}: command {}", text(&heard["event"]), heard["command"]),
            NOTHING,
            gate.last_line("exec_command").await,
        );
    }
}

// L10
#[tokio::test]
async fn a_command_that_runs_a_script_shows_it_and_does_not_run_another() {
    let gate = Gate::start().await;
    fs::write(gate.path("s.sh"), "echo seen > ran\n").unwrap();
    let mut holder = gate.hold(&gate.granted(&["run:commands"]).await).await;
    let command = json!({"command": "sh s.sh"});
    let id = holder.begins("exec_command", command.clone()).await;
    let question = gate.confirmation().await;
    let script = &question["shown"]["shown"]["runs"][0];
    assert_eq!((&script["path"], &script["content"]), (&json!(gate.path("s.sh")), &json!("echo seen > ran\n")));
    assert_eq!(script["digest"], digest_of(b"echo seen > ran\n"), "{question}");
    fs::write(gate.path("s.sh"), "echo unseen > ran\n").unwrap();
    answer(&gate, &question, &question["digest"], true).await;
    let refused = holder.result(&id).await;
    assert_eq!(refused["data"]["code"], "changed");
    assert!(!fs::exists(gate.path("ran")).unwrap());
    let person = format!("exec_command? runs s.sh, {}", text(&script["content"]));
    seen(told(&refused), person, line(&gate.audited("exec_command", "error: changed").await));
    // Asked again, it is about what is there now.
    let (_, ran) = asked(&gate, &mut holder, "exec_command", command, true).await;
    data(ran);
    assert_eq!(fs::read_to_string(gate.path("ran")).unwrap(), "unseen\n");
}
