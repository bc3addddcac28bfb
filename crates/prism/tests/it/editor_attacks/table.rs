//! What each verb is attacked with: arguments that are right, and what must come of it where they are about something bad.

use prism_core::policy::VerbSpec;
use serde_json::{Value, json};

/// A row for each verb.
pub(super) struct Row {
    pub(super) action: &'static VerbSpec,
    /// Arguments that are right. Each is replaced by something wrong in turn.
    pub(super) good: Value,
    /// Those of them that cannot be left out.
    pub(super) required: &'static [&'static str],
    /// Others that are numbers, each replaced by numbers beyond all bounds.
    pub(super) numbers: &'static [&'static str],
    /// What may come of it on a file that is no text, and on one of a gigabyte. Nothing: it is not about a file's content.
    pub(super) binary: &'static [&'static str],
    pub(super) huge: &'static [&'static str],
    /// What may come of it on a file that comes and goes.
    pub(super) restless: &'static [&'static str],
}

const OK: &str = "ok";
const BAD: &str = "bad_arguments";
const GONE: &str = "not_found";
const CHANGED: &str = "changed";
const LARGE: &str = "too_large";
const NO: &str = "unsupported";

/// For who opens a text: what is none is refused, what is too large as well.
const NO_TEXT: &[&str] = &[BAD];
const TOO_LARGE: &[&str] = &[LARGE];
const COMES_AND_GOES: &[&str] = &[OK, GONE, CHANGED];
/// No language server is there for these tests, and without one there is no answer.
const SERVED: &[&str] = &[GONE, CHANGED, NO];

impl Row {
    pub(super) fn is_of_terminal(&self) -> bool {
        self.good.get("terminal").is_some()
    }
}

pub(super) fn rows() -> Vec<Row> {
    VerbSpec::all().map(row).collect()
}

fn row(action: &'static VerbSpec) -> Row {
    let place = json!({"line": 0, "character": 1});
    let range = json!({"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}});
    let text = |good: Value, required| Row {
        action,
        good,
        required,
        numbers: &[],
        binary: NO_TEXT,
        huge: TOO_LARGE,
        restless: COMES_AND_GOES,
    };
    let other = |good: Value, required| Row { binary: &[], huge: &[], restless: &[], ..text(good, required) };
    let served = |good: Value, required| Row { restless: SERVED, ..text(good, required) };
    match action.verb {
        "open_file" => Row { numbers: &["offset", "limit"], binary: &[OK], ..text(json!({"path": "a.rs"}), &["path"]) },
        "create_file" => Row {
            binary: &[BAD],
            huge: &[BAD],
            restless: &[OK, BAD, CHANGED],
            ..text(json!({"path": "new.txt", "content": "x"}), &["path"])
        },
        "write_file" => Row {
            binary: &[OK],
            huge: &[OK, LARGE],
            ..text(json!({"path": "a.rs", "content": "x"}), &["path", "content"])
        },
        "delete_file" => Row { binary: &[OK], huge: &[OK], ..text(json!({"path": "a.rs"}), &["path"]) },
        "rename_file" => Row {
            binary: &[OK],
            huge: &[OK],
            restless: &[OK, GONE, CHANGED, BAD],
            ..text(json!({"path": "a.rs", "new_path": "b.rs"}), &["path", "new_path"])
        },
        "search_files" => Row { numbers: &["limit"], ..other(json!({"pattern": "*.rs", "path": "src"}), &["pattern"]) },
        "watch_file" => Row { binary: &[OK], huge: &[OK], ..text(json!({"path": "a.rs"}), &["path"]) },
        "get_buffers" => other(json!({}), &[]),
        "edit_buffer" => Row {
            numbers: &["undo", "redo"],
            restless: &[OK, GONE, CHANGED, BAD],
            ..text(json!({"path": "a.rs", "old_text": "main", "new_text": "other"}), &["path", "new_text"])
        },
        "save_buffer" => text(json!({"path": "a.rs"}), &["path"]),
        "switch_buffer" => text(json!({"path": "a.rs"}), &["path"]),
        "split_pane" => {
            Row { restless: &[OK, GONE, CHANGED, BAD], ..text(json!({"path": "a.rs", "direction": "down"}), &[]) }
        }
        "close_buffer" => {
            Row { binary: &[GONE, BAD], huge: &[GONE, LARGE], ..text(json!({"path": "a.rs"}), &["path"]) }
        }
        "analyze_syntax" => Row { numbers: &["depth", "limit"], ..text(json!({"path": "a.rs"}), &["path"]) },
        "get_errors" => Row { numbers: &["wait_ms"], ..served(json!({"path": "a.rs"}), &[]) },
        "get_completions" => {
            Row { numbers: &["limit"], ..served(json!({"path": "a.rs", "position": place}), &["path", "position"]) }
        }
        "format_code" => Row { numbers: &["tab_size"], ..served(json!({"path": "a.rs"}), &["path"]) },
        "goto_definition" => served(json!({"path": "a.rs", "position": place}), &["path", "position"]),
        "explore_tree" => Row { numbers: &["depth", "limit"], ..other(json!({"path": "src"}), &[]) },
        "build_project" | "run_tests" => {
            Row { numbers: &["timeout_ms"], ..other(json!({"cwd": "src", "tool": "make"}), &[]) }
        }
        "get_workspace_info" => other(json!({"path": "src"}), &[]),
        "exec_command" => {
            Row { numbers: &["timeout_ms"], ..other(json!({"command": ["true"], "cwd": "src"}), &["command"]) }
        }
        "open_terminal" => Row { numbers: &["rows", "cols"], ..other(json!({"command": ["true"], "cwd": "src"}), &[]) },
        "get_output" => Row { numbers: &["after", "limit", "wait_ms"], ..other(json!({"terminal": "t"}), &[]) },
        "send_input" => other(json!({"terminal": "t", "input": "x"}), &["terminal", "input"]),
        "git_status" => other(json!({"cwd": "src"}), &[]),
        "git_add" => other(json!({"cwd": "src", "path": "a.rs"}), &["path"]),
        "git_commit" => other(json!({"cwd": "src", "message": "m"}), &["message"]),
        "git_diff" => other(json!({"cwd": "src", "path": "a.rs"}), &[]),
        "git_branch" => other(json!({"cwd": "src", "name": "side", "create": true}), &[]),
        "find_in_file" => {
            Row { numbers: &["limit"], ..text(json!({"path": "a.rs", "text": "main"}), &["path", "text"]) }
        }
        "find_in_project" => Row { numbers: &["limit"], ..other(json!({"path": "src", "text": "main"}), &["text"]) },
        "replace_text" => Row {
            numbers: &["limit"],
            ..other(json!({"path": "src", "text": "main", "new_text": "x", "preview": true}), &["text", "new_text"])
        },
        "regex_search" => Row { numbers: &["limit"], ..other(json!({"path": "src", "pattern": "ma.n"}), &["pattern"]) },
        "get_cursor_pos" | "get_selection" => text(json!({"path": "a.rs"}), &[]),
        "set_cursor_pos" => Row {
            restless: &[OK, GONE, CHANGED, BAD],
            ..text(json!({"path": "a.rs", "position": place}), &["path", "position"])
        },
        "sync_viewport" => Row { numbers: &["first_line", "last_line"], ..text(json!({"path": "a.rs"}), &["path"]) },
        "get_code_lens" => served(json!({"path": "a.rs"}), &["path"]),
        "apply_quick_fix" => served(json!({"path": "a.rs", "range": range}), &["path", "range"]),
        "refactor_symbol" => {
            served(json!({"path": "a.rs", "position": place, "new_name": "other"}), &["path", "position", "new_name"])
        }
        "manage_plugins" => other(json!({"do": "list"}), &[]),
        verb => panic!("{verb} has no row here"),
    }
}
