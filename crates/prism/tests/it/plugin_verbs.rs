//! Verbs that an editor does, all the way: agent, gate, router, protocol, and back.

use std::fs;

use prism_editor::digest_of;
use serde_json::{Value, json};

use crate::support::{
    gate::{Gate, Holder, UNFENCED, answer},
    plugin::{Editor, VERBS, owning, register},
};

async fn with_editor(scopes: &[&str]) -> (Gate, Holder, Editor) {
    let gate = Gate::start().await;
    let holder = gate.hold(&gate.granted(scopes).await).await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    (gate, holder, editor)
}

fn data(result: Value) -> Value {
    assert_eq!(result["status"], "ok", "{result}");
    result["data"].clone()
}

// A-06, E-02
#[tokio::test]
async fn what_an_agent_edits_is_in_the_editors_own_buffer() {
    let (gate, mut holder, editor) = with_editor(&["*"]).await;
    let opened = data(holder.does("open_file", json!({"path": "main.rs"})).await);
    assert_eq!(opened["content"], "fn main() {}\n");
    let start = json!({"line": 0, "character": 3});
    let edit = json!({"range": {"start": start, "end": {"line": 0, "character": 7}}, "new_text": "begin"});
    let edited = json!({"path": "main.rs", "version": opened["version"], "edits": [edit]});
    data(holder.does("edit_buffer", edited.clone()).await);
    assert_eq!(holder.refused("edit_buffer", edited).await, "changed", "a stale version, as the editor says");
    let there = editor.person("open_file", json!({"path": "main.rs"})).await;
    assert_eq!((&there["content"], &there["is_dirty"]), (&json!("fn begin() {}\n"), &json!(true)));
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n");
    data(holder.does("save_buffer", json!({"path": "main.rs"})).await);
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn begin() {}\n");
}

//
#[tokio::test]
async fn every_verb_that_the_editor_has_goes_through_it() {
    let (gate, mut holder, editor) = with_editor(&["*"]).await;
    for (verb, args, expected) in [
        ("create_file", json!({"path": "a/b.txt", "content": "one\n", "parents": true}), "/path"),
        ("write_file", json!({"path": "a/b.txt", "content": "two words\n", "digest": digest_of(b"one\n")}), "/digest"),
        ("rename_file", json!({"path": "a/b.txt", "new_path": "a/c.txt"}), "/new_path"),
        ("search_files", json!({"pattern": "*.txt"}), "/entries/0"),
        ("open_file", json!({"path": "a/c.txt"}), "/version"),
        ("get_buffers", json!({}), "/buffers/0/plugin"),
        ("edit_buffer", json!({"path": "a/c.txt", "old_text": "two", "new_text": "three"}), "/version"),
        ("save_buffer", json!({"path": "a/c.txt"}), "/digest"),
        ("switch_buffer", json!({"path": "a/c.txt"}), "/is_active"),
        ("split_pane", json!({"path": "a/c.txt"}), "/panes/0"),
        ("set_cursor_pos", json!({"path": "a/c.txt", "position": {"line": 0, "character": 2}}), "/position/character"),
        ("get_cursor_pos", json!({"path": "a/c.txt"}), "/position/character"),
        ("get_selection", json!({"path": "a/c.txt"}), "/path"),
        ("sync_viewport", json!({"path": "a/c.txt", "first_line": 0, "last_line": 1}), "/path"),
        ("find_in_file", json!({"path": "a/c.txt", "text": "words"}), "/matches/0"),
        ("explore_tree", json!({}), "/entries/0"),
        ("get_workspace_info", json!({}), "/roots/0"),
        ("close_buffer", json!({"path": "a/c.txt"}), "/path"),
    ] {
        let before = gate.daemon.metric("prism_plugin_commands_total{result=\"ok\"}").await.unwrap_or(0);
        let result = data(holder.does(verb, args).await);
        assert!(result.pointer(expected).is_some_and(|value| !value.is_null()), "{verb}: {result}");
        let after = gate.daemon.metric("prism_plugin_commands_total{result=\"ok\"}").await.unwrap_or(0);
        assert!(after > before || verb == "get_buffers", "{verb} did not go through the editor");
    }
    assert_eq!(fs::read_to_string(gate.path("a/c.txt")).unwrap(), "three words\n");
    let asked = holder.begins("delete_file", json!({"path": "a/c.txt"})).await;
    let confirmation = gate.confirmation().await;
    assert_eq!(confirmation["shown"]["shown"]["kind"], "delete", "{confirmation}");
    answer(&gate, &confirmation, &confirmation["digest"], true).await;
    data(holder.result(&asked).await);
    assert!(!fs::exists(gate.path("a/c.txt")).unwrap());
    drop(editor);
}

//
#[tokio::test]
async fn paths_are_found_by_handle_before_an_editor_hears_of_them() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let mut line = owning(&gate, "edit", register(&gate.project(), VERBS)).await;
    std::os::unix::fs::symlink("/etc", gate.path("out")).unwrap();
    std::os::unix::fs::symlink("main.rs", gate.path("alias.rs")).unwrap();
    for path in ["/etc/passwd", "out/passwd", "../x", "./../x"] {
        assert_eq!(holder.refused("open_file", json!({"path": path})).await, "outside_root", "{path}");
    }
    let asked = holder.begins("open_file", json!({"path": "alias.rs"})).await;
    let cmd = line.hears("cmd").await;
    assert_eq!(cmd["args"]["path"], gate.path("main.rs").as_str(), "it is the real path: {cmd}");
    // What comes back is looked at, too.
    let stolen = json!({"path": "/etc/passwd", "content": "root"});
    line.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": stolen})).await;
    assert_eq!(holder.result(&asked).await["data"]["code"], "outside_root");
    let asked = holder.begins("get_buffers", json!({})).await;
    let cmd = line.hears("cmd").await;
    let buffers = json!({"buffers": [{"path": "/home/me/diary", "is_dirty": true}, {"path": gate.path("main.rs")}]});
    line.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": buffers})).await;
    let listed = data(holder.result(&asked).await);
    assert_eq!(listed["buffers"].as_array().map(Vec::len), Some(1), "{listed}");
}

//
#[tokio::test]
async fn a_rename_does_not_reach_beyond_what_was_granted() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let mut line = owning(&gate, "edit", register(&gate.project(), &["refactor_symbol"])).await;
    let position = json!({"line": 0, "character": 3});
    let args = json!({"path": "main.rs", "position": position, "new_name": "begin", "preview": true});
    for (beside, expected) in [("/elsewhere/lib.rs", "outside_root"), (gate.path("lib.rs").as_str(), "ok")] {
        let asked = holder.begins("refactor_symbol", args.clone()).await;
        let cmd = line.hears("cmd").await;
        assert_eq!(cmd["roots"], json!([gate.project()]), "the editor is told where it may change something: {cmd}");
        let files = json!([{"path": gate.path("main.rs"), "version": 1, "edits": 1}, {"path": beside, "version": 1}]);
        let preview = json!({"files": files, "diff": "+a secret", "is_preview": true});
        line.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": preview})).await;
        let result = holder.result(&asked).await;
        let outcome = if result["status"] == "ok" { json!("ok") } else { result["data"]["code"].clone() };
        assert_eq!(outcome, expected, "{result}");
    }
}

//
#[tokio::test]
async fn what_an_editor_cannot_do_is_unsupported_unless_it_only_reads() {
    let gate = Gate::start().await;
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let mut line = owning(&gate, "edit", register(&gate.project(), &["get_cursor_pos"])).await;
    for verb in ["open_file", "find_in_file", "explore_tree", "get_workspace_info", "search_files"] {
        let args = match verb {
            "find_in_file" => json!({"path": "main.rs", "text": "main"}),
            "search_files" => json!({"pattern": "*"}),
            "open_file" => json!({"path": "main.rs"}),
            _ => json!({}),
        };
        assert_eq!(holder.does(verb, args).await["status"], "ok", "{verb} is read by the built-in editor");
    }
    let info = data(holder.does("get_workspace_info", json!({})).await);
    assert!(info.get("runtime").is_none_or(|runtime| runtime["kind"] == "testedit"), "{info}");
    for (verb, args) in [
        ("edit_buffer", json!({"path": "main.rs", "old_text": "main", "new_text": "x"})),
        ("write_file", json!({"path": "main.rs", "content": ""})),
        ("create_file", json!({"path": "new", "content": ""})),
        ("get_selection", json!({"path": "main.rs"})),
        ("close_buffer", json!({"path": "main.rs"})),
    ] {
        assert_eq!(holder.refused(verb, args).await, "unsupported", "{verb}");
    }
    assert_eq!(fs::read_to_string(gate.path("main.rs")).unwrap(), "fn main() {}\n");
    // A text that only the editor knows is not read from the disk.
    let path = gate.path("main.rs");
    line.event(1, "buffer_changed", json!({"path": path, "version": 2, "is_dirty": true, "text": "new"})).await;
    holder.event("buffer_changed").await;
    assert_eq!(holder.refused("open_file", json!({"path": "main.rs"})).await, "unsupported");
    // A search of more than that says what it has not seen.
    let found = data(holder.does("regex_search", json!({"pattern": "ma.n"})).await);
    assert_eq!((&found["is_complete"], &found["unsaved"]), (&json!(false), &json!([path])), "{found}");
}

//
#[tokio::test]
async fn what_is_shown_of_an_edit_is_the_editors_text_and_the_edit_is_bound_to_it() {
    let gate = Gate::start().await;
    let asked = gate.ask("fixer", &["*"]).await;
    let mut holder = gate.hold(&gate.approve(&asked, json!({"confirm_changes": true})).await).await;
    let editor = Editor::start(&gate, "edit", VERBS).await;
    let typed = json!({"path": "main.rs", "old_text": "main", "new_text": "typed_by_the_person"});
    editor.person("edit_buffer", typed).await;
    let edit = json!({"path": "main.rs", "old_text": "{}", "new_text": "{ go() }"});
    for is_meddled in [false, true] {
        let asked = holder.begins("edit_buffer", edit.clone()).await;
        let confirmation = gate.confirmation().await;
        let unified = confirmation["shown"]["shown"]["unified"].as_str().unwrap_or_default().to_owned();
        assert!(unified.contains("+fn typed_by_the_person() { go() }"), "{confirmation}");
        if is_meddled {
            let more = json!({"path": "main.rs", "old_text": "\n", "new_text": "\n// more\n"});
            editor.person("edit_buffer", more).await;
        }
        answer(&gate, &confirmation, &confirmation["digest"], true).await;
        let result = holder.result(&asked).await;
        match is_meddled {
            false => {
                data(result);
                // As it was, for the next round.
                editor.person("edit_buffer", json!({"path": "main.rs", "undo": 1})).await;
            }
            true => assert_eq!(result["data"]["code"], "changed", "{result}"),
        }
    }
    let text = editor.person("open_file", json!({"path": "main.rs"})).await["content"].clone();
    assert_eq!(text, "fn typed_by_the_person() {}\n// more\n");
}

/// What runs programs, with arguments that do something in an empty repository.
fn running() -> Vec<(&'static str, Value)> {
    vec![
        ("exec_command", json!({"command": ["true"]})),
        ("git_status", json!({})),
        ("git_diff", json!({})),
        ("git_branch", json!({})),
        ("git_add", json!({"paths": ["main.rs"]})),
        ("git_commit", json!({"message": "one"})),
        ("build_project", json!({})),
        ("run_tests", json!({})),
        ("get_output", json!({})),
    ]
}

/// Begins something, and confirms it if that is asked.
async fn begun(gate: &Gate, holder: &mut Holder, verb: &str, args: Value) -> String {
    let asked = holder.begins(verb, args).await;
    if verb == "exec_command" {
        let confirmation = gate.confirmation().await;
        answer(gate, &confirmation, &confirmation["digest"], true).await;
    }
    asked
}

// an editor is behind no fence, so what runs programs is not its to do.
#[tokio::test]
async fn what_runs_programs_is_behind_the_fence_whoever_has_the_folder_open() {
    the_editor_is_asked_to_run_nothing(&Gate::start().await, "sandbox").await;
}

//
#[tokio::test]
async fn without_the_fence_the_editor_is_asked_to_run_nothing_either() {
    the_editor_is_asked_to_run_nothing(&Gate::start_with(UNFENCED).await, "none").await;
}

async fn the_editor_is_asked_to_run_nothing(gate: &Gate, enforced: &str) {
    let mut holder = gate.hold(&gate.granted(&["*"]).await).await;
    let verbs: Vec<&str> =
        running().into_iter().map(|(verb, _)| verb).chain(["open_terminal", "send_input", "get_cursor_pos"]).collect();
    let mut line = owning(gate, "edit", register(&gate.project(), &verbs)).await;
    for (verb, args) in running() {
        let asked = begun(gate, &mut holder, verb, args).await;
        let result = holder.result(&asked).await;
        assert_ne!(result["data"]["code"], "unsupported", "{verb}: {result}");
        if verb == "exec_command" {
            // Where there is no sandbox, it is landlock alone.
            let by = &result["data"]["fence"]["enforced"];
            assert!(by == enforced || (enforced == "sandbox" && by == "landlock"), "{result}");
        }
    }
    // A terminal of the built-in editor stays its own, though the plugin has the verbs.
    let asked = holder.begins("open_terminal", json!({"command": ["cat"]})).await;
    let confirmation = gate.confirmation().await;
    answer(gate, &confirmation, &confirmation["digest"], true).await;
    let terminal = data(holder.result(&asked).await)["terminal"].clone();
    data(holder.does("get_output", json!({"terminal": terminal})).await);
    // The editor was asked none of it: what it hears first is this.
    let asked = holder.begins("get_cursor_pos", json!({})).await;
    let cmd = line.hears("cmd").await;
    assert_eq!(cmd["action"], "get_cursor_pos");
    line.says(json!({"type": "result", "id": cmd["id"], "status": "ok", "data": {"ui": true}})).await;
    data(holder.result(&asked).await);
}

// what is asked for in several files at once is shown as the differences in the editor's own texts, and bound to them.
#[tokio::test]
async fn edits_of_several_files_and_replacements_are_shown_as_differences() {
    let gate = Gate::start().await;
    fs::write(gate.path("b.rs"), "fn other() {}\n").unwrap();
    let granted = gate.approve(&gate.ask("fixer", &["*"]).await, json!({"confirm_changes": true})).await;
    let mut holder = gate.hold(&granted).await;
    let verbs: Vec<&str> = VERBS.iter().copied().chain(["replace_text"]).collect();
    let editor = Editor::start(&gate, "edit", &verbs).await;
    editor.person("edit_buffer", json!({"path": "main.rs", "old_text": "main", "new_text": "typed"})).await;
    let whole = json!({"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 8}});
    let file = |path: &str| json!({"path": path, "edits": [{"range": whole, "new_text": "fresh"}]});
    let asked = holder.begins("edit_buffer", json!({"files": [file("main.rs"), file("b.rs")]})).await;
    let confirmation = gate.confirmation().await;
    let shown = &confirmation["shown"]["shown"];
    assert_eq!(shown["kind"], "diff", "{confirmation}");
    assert_eq!(shown["path"], format!("{}, {}", gate.path("main.rs"), gate.path("b.rs")));
    let unified = shown["unified"].as_str().unwrap();
    for line in ["-fn typed() {}", "+fn fresh() {}", "-fn other() {}"] {
        assert!(unified.contains(line), "{unified}");
    }
    answer(&gate, &confirmation, &confirmation["digest"], true).await;
    data(holder.result(&asked).await);
    assert_eq!(editor.person("open_file", json!({"path": "b.rs"})).await["content"], "fn fresh() {}\n");
    // One of the texts moved on while it waited: none is changed.
    let asked = holder.begins("edit_buffer", json!({"files": [file("main.rs"), file("b.rs")]})).await;
    let confirmation = gate.confirmation().await;
    editor.person("edit_buffer", json!({"path": "b.rs", "old_text": "fresh", "new_text": "mine"})).await;
    answer(&gate, &confirmation, &confirmation["digest"], true).await;
    assert_eq!(holder.result(&asked).await["data"]["code"], "changed");
    let asked = holder.begins("replace_text", json!({"text": "mine", "new_text": "ours"})).await;
    let confirmation = gate.confirmation().await;
    let shown = &confirmation["shown"]["shown"];
    assert_eq!((&shown["kind"], &shown["path"]), (&json!("diff"), &json!(gate.path("b.rs"))), "{confirmation}");
    assert!(shown["unified"].as_str().is_some_and(|unified| unified.contains("+fn ours() {}")), "{confirmation}");
    answer(&gate, &confirmation, &confirmation["digest"], true).await;
    data(holder.result(&asked).await);
    assert_eq!(editor.person("open_file", json!({"path": "b.rs"})).await["content"], "fn ours() {}\n");
}
