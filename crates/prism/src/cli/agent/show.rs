//! What came of a verb, for people: texts as they are, places as `path:line:column`, and the rest as JSON.

use std::process::ExitCode;

use serde_json::Value;

use crate::cli::say::{self, Colour, Line};

/// Shows a result, or why there is none.
pub(super) fn told(verb: &str, result: &Result<Value, Value>, json: bool) -> anyhow::Result<ExitCode> {
    match (result, json) {
        (Ok(result), true) => say::text(&serde_json::to_string_pretty(result)?),
        (Ok(result), false) => shown(verb, result)?,
        (Err(refusal), true) => say::text(&serde_json::to_string_pretty(refusal)?),
        (Err(refusal), false) => say::error(&anyhow::anyhow!(refused(refusal))),
    }
    let failed = result.as_ref().map_or(true, |result| result["is_ok"] == false);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A refusal in words, with what to do about it.
fn refused(refusal: &Value) -> String {
    let (code, message) =
        (refusal["code"].as_str().unwrap_or_default(), refusal["message"].as_str().unwrap_or_default());
    let fix = match code {
        "forbidden" => "\n  fix: prism agent open --scope …; prism agent verbs shows what is granted",
        "outside_root" => "\n  fix: prism agent open --root FOLDER asks for another folder",
        "changed" => "\n  fix: open it again, and use the version that it has now",
        "expired" | "revoked" => "\n  fix: prism agent open",
        "denied" => "\n  fix: ask the person",
        _ => "",
    };
    format!("{message} ({code}){fix}")
}

fn shown(verb: &str, result: &Value) -> anyhow::Result<()> {
    match verb {
        "open_file" if result["encoding"] == "utf-8" => say::text(word(result, "content")),
        "get_output" if result["output"].is_string() => say::text(word(result, "output")),
        "exec_command" => {
            [word(result, "stdout"), word(result, "stderr")]
                .into_iter()
                .filter(|text| !text.is_empty())
                .for_each(say::text);
        }
        "git_diff" => say::text(word(result, "diff")),
        "replace_text" if result["is_preview"] == true => say::text(word(result, "diff")),
        "search_files" | "explore_tree" => rows(result, "entries", entry),
        "find_in_file" | "find_in_project" | "regex_search" => rows(result, "matches", |row| found(row, result)),
        "goto_definition" => rows(result, "locations", |row| found(row, result)),
        "get_errors" => rows(result, "diagnostics", diagnostic),
        "get_completions" => {
            rows(result, "items", |row| vec![plain(word(row, "label")), dim(&format!("  {}", word(row, "detail")))])
        }
        "get_buffers" => rows(result, "buffers", buffer),
        "git_status" | "git_add" => {
            say::coloured(&vec![plain(&format!("on {}", word(result, "branch")))]);
            rows(result, "entries", changed);
        }
        "build_project" | "run_tests" => built(result),
        _ => say::text(&serde_json::to_string_pretty(result)?),
    }
    Ok(())
}

fn rows(result: &Value, member: &str, line: impl Fn(&Value) -> Line) {
    let all = result[member].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().for_each(|row| say::coloured(&line(row)));
    match (all.is_empty(), result["is_complete"] == false) {
        (_, true) => say::note("… and more; limit=N shows more"),
        (true, false) => say::note("none"),
        (false, false) => {}
    }
}

fn entry(row: &Value) -> Line {
    let end = if row["kind"] == "folder" { "/" } else { "" };
    vec![plain(&format!("{}{end}", word(row, "path")))]
}

/// A place with its line. Editors count columns and lines from one.
fn found(row: &Value, of: &Value) -> Line {
    let path = row["path"].as_str().unwrap_or_else(|| word(of, "path"));
    vec![dim(&format!("{path}:{}: ", at(row))), plain(word(row, "line_text").trim_end())]
}

fn at(row: &Value) -> String {
    let start = &row["range"]["start"];
    let count = |name: &str| start[name].as_u64().unwrap_or_default() + 1;
    format!("{}:{}", count("line"), count("character"))
}

fn diagnostic(row: &Value) -> Line {
    let severity = word(row, "severity");
    let colour = match severity {
        "error" => Some(Colour::Red),
        "warning" => Some(Colour::Yellow),
        _ => Some(Colour::Dim),
    };
    vec![
        dim(&format!("{}:{}: ", word(row, "path"), at(row))),
        (severity.to_owned(), colour),
        plain(&format!(": {}", word(row, "message"))),
    ]
}

fn buffer(row: &Value) -> Line {
    let unsaved = if row["is_dirty"] == true { "  unsaved" } else { "" };
    vec![
        plain(word(row, "path")),
        dim(&format!("  version {}", row["version"])),
        (unsaved.to_owned(), Some(Colour::Yellow)),
    ]
}

fn changed(row: &Value) -> Line {
    let letter = |name: &str| row[name].as_str().map_or(" ", |text| if text.is_empty() { " " } else { text });
    vec![
        (letter("index").to_owned(), Some(Colour::Green)),
        (letter("worktree").to_owned(), Some(Colour::Red)),
        plain(&format!(" {}", word(row, "path"))),
    ]
}

fn built(result: &Value) {
    let cases = result["tests"]["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    for case in cases.iter().filter(|case| case["outcome"] == "failed") {
        say::coloured(&vec![("failed ".to_owned(), Some(Colour::Red)), plain(word(case, "name"))]);
        let message = word(case, "message");
        if !message.is_empty() {
            say::text(message);
        }
    }
    let diagnostics = result["diagnostics"].as_array().map(Vec::as_slice).unwrap_or_default();
    diagnostics.iter().for_each(|row| say::coloured(&diagnostic(row)));
    let is_ok = result["is_ok"] == true;
    if !is_ok && diagnostics.is_empty() && cases.is_empty() {
        [word(result, "stdout"), word(result, "stderr")]
            .into_iter()
            .filter(|text| !text.is_empty())
            .for_each(say::text);
    }
    let (how, colour) = if is_ok { ("ok", Colour::Green) } else { ("failed", Colour::Red) };
    let counts = match result["tests"].as_object() {
        Some(tests) => {
            let count = |name: &str| tests.get(name).and_then(Value::as_u64).unwrap_or_default();
            format!(" {} passed, {} failed, {} ignored", count("passed"), count("failed"), count("ignored"))
        }
        None => String::new(),
    };
    let took = result["duration_ms"].as_u64().map(|ms| format!(" in {ms} ms")).unwrap_or_default();
    say::coloured(&vec![(how.to_owned(), Some(colour)), plain(&counts), dim(&took)]);
}

/// An event in one line: when it came is when it is shown.
pub(super) fn event(message: &Value) -> Line {
    let data = &message["data"];
    let mut line = vec![(word(data, "event").to_owned(), Some(Colour::Green))];
    if let Some(path) = data["path"].as_str() {
        line.push(plain(&format!(" {path}")));
    }
    let rest = data.as_object().into_iter().flatten().filter(|(name, _)| !["event", "path"].contains(&name.as_str()));
    let rest: Vec<String> = rest.map(|(name, value)| format!("{name}={value}")).collect();
    line.push(dim(&format!(" {}", rest.join(" "))));
    line
}

fn word<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn plain(text: &str) -> (String, Option<Colour>) {
    (text.to_owned(), None)
}

fn dim(text: &str) -> (String, Option<Colour>) {
    (text.to_owned(), Some(Colour::Dim))
}
