//! What came of a verb, for people: texts as they are, places as `path:line:column`, and the rest as JSON.

use std::process::ExitCode;

use prism_api::{
    editor::{
        BufferOpen, BuffersOpen, BuildResult, CommandOutput, CompletionsFound, DiagnosticFound, DiagnosticsFound,
        DiffResult, EntriesFound, EntryFound, GitChange, GitState, LocationsFound, MatchesFound, OpenedFile,
        PlaceFound, TerminalOutput, TestsRun, TextRange, VerbSuccess,
    },
    refusal::ToldRefusal,
    socket::HolderEvent,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::cli::say::{self, Colour, Line};

/// Shows a result, or why there is none.
pub(super) fn told(verb: &str, result: &Result<Value, ToldRefusal>, json: bool) -> anyhow::Result<ExitCode> {
    match (result, json) {
        (Ok(result), true) => say::text(&serde_json::to_string_pretty(result)?),
        (Ok(result), false) => shown(verb, result)?,
        (Err(refusal), true) => say::text(&serde_json::to_string_pretty(&json!(refusal))?),
        (Err(refusal), false) => say::error(&anyhow::anyhow!(refused(refusal))),
    }
    let failed = |result: &Value| VerbSuccess::deserialize(result).is_ok_and(|ran| ran.is_ok == Some(false));
    Ok(if result.as_ref().map_or(true, failed) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A refusal in words, with what to do about it.
fn refused(ToldRefusal { code, message, .. }: &ToldRefusal) -> String {
    let fix = match code.as_str() {
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
    // A plugin may answer in a form of its own: it is shown as it came.
    if in_its_form(verb, result).is_none() {
        say::text(&serde_json::to_string_pretty(result)?);
    }
    Ok(())
}

/// Shows a result in the form that its verb has; `None`, if it has none, or the result is not in it.
fn in_its_form(verb: &str, result: &Value) -> Option<()> {
    match verb {
        "open_file" => {
            let file: OpenedFile = read(result)?;
            (file.encoding == "utf-8").then(|| say::text(&file.content))?;
        }
        "get_output" => say::text(&read::<TerminalOutput>(result)?.output?),
        "exec_command" => {
            let CommandOutput { stdout, stderr } = read(result)?;
            texts([&stdout, &stderr]);
        }
        "git_diff" => say::text(&read::<DiffResult>(result)?.diff),
        "replace_text" => {
            let change: DiffResult = read(result)?;
            change.is_preview.then(|| say::text(&change.diff))?;
        }
        "search_files" | "explore_tree" => {
            let EntriesFound { entries, is_complete } = read(result)?;
            rows(&entries, is_complete, entry);
        }
        "find_in_file" | "find_in_project" | "regex_search" => {
            let MatchesFound { path, matches, is_complete } = read(result)?;
            rows(&matches, is_complete, |row| found(row, path.as_deref()));
        }
        "goto_definition" => {
            let LocationsFound { path, locations, is_complete } = read(result)?;
            rows(&locations, is_complete, |row| found(row, path.as_deref()));
        }
        "get_errors" => {
            let DiagnosticsFound { diagnostics, is_complete } = read(result)?;
            rows(&diagnostics, is_complete, diagnostic);
        }
        "get_completions" => {
            let CompletionsFound { items, is_complete } = read(result)?;
            rows(&items, is_complete, |row| vec![plain(&row.label), dim(&format!("  {}", row.detail))]);
        }
        "get_buffers" => {
            let BuffersOpen { buffers, is_complete } = read(result)?;
            rows(&buffers, is_complete, buffer);
        }
        "git_status" | "git_add" => {
            let GitState { branch, entries, is_complete } = read(result)?;
            say::coloured(&vec![plain(&format!("on {branch}"))]);
            rows(&entries, is_complete, changed);
        }
        "build_project" | "run_tests" => built(&read(result)?),
        _ => return None,
    }
    Some(())
}

fn read<T: DeserializeOwned>(result: &Value) -> Option<T> {
    T::deserialize(result).ok()
}

fn texts(texts: [&str; 2]) {
    texts.into_iter().filter(|text| !text.is_empty()).for_each(say::text);
}

fn rows<T>(all: &[T], is_complete: Option<bool>, line: impl Fn(&T) -> Line) {
    all.iter().for_each(|row| say::coloured(&line(row)));
    match (all.is_empty(), is_complete == Some(false)) {
        (_, true) => say::note("… and more; limit=N shows more"),
        (true, false) => say::note("none"),
        (false, false) => {}
    }
}

fn entry(row: &EntryFound) -> Line {
    let end = if row.kind == "folder" { "/" } else { "" };
    vec![plain(&format!("{}{end}", row.path))]
}

/// A place with its line. Editors count columns and lines from one.
fn found(row: &PlaceFound, of: Option<&str>) -> Line {
    let path = row.path.as_deref().or(of).unwrap_or_default();
    vec![dim(&format!("{path}:{}: ", at(row.range))), plain(row.line_text.trim_end())]
}

fn at(TextRange { start, .. }: TextRange) -> String {
    format!("{}:{}", start.line + 1, start.character + 1)
}

fn diagnostic(row: &DiagnosticFound) -> Line {
    let colour = match row.severity.as_str() {
        "error" => Some(Colour::Red),
        "warning" => Some(Colour::Yellow),
        _ => Some(Colour::Dim),
    };
    vec![
        dim(&format!("{}:{}: ", row.path, at(row.range))),
        (row.severity.clone(), colour),
        plain(&format!(": {}", row.message)),
    ]
}

fn buffer(row: &BufferOpen) -> Line {
    let unsaved = if row.is_dirty { "  unsaved" } else { "" };
    vec![plain(&row.path), dim(&format!("  version {}", row.version)), (unsaved.to_owned(), Some(Colour::Yellow))]
}

fn changed(row: &GitChange) -> Line {
    let letter = |text: &str| if text.is_empty() { " ".to_owned() } else { text.to_owned() };
    vec![
        (letter(&row.index), Some(Colour::Green)),
        (letter(&row.worktree), Some(Colour::Red)),
        plain(&format!(" {}", row.path)),
    ]
}

fn built(result: &BuildResult) {
    let cases = result.tests.as_ref().map(|tests| tests.cases.as_slice()).unwrap_or_default();
    for case in cases.iter().filter(|case| case.outcome == "failed") {
        say::coloured(&vec![("failed ".to_owned(), Some(Colour::Red)), plain(&case.name)]);
        if !case.message.is_empty() {
            say::text(&case.message);
        }
    }
    result.diagnostics.iter().for_each(|row| say::coloured(&diagnostic(row)));
    if !result.is_ok && result.diagnostics.is_empty() && cases.is_empty() {
        texts([&result.stdout, &result.stderr]);
    }
    let (how, colour) = if result.is_ok { ("ok", Colour::Green) } else { ("failed", Colour::Red) };
    let counts = match &result.tests {
        Some(TestsRun { passed, failed, ignored, .. }) => {
            format!(" {passed} passed, {failed} failed, {ignored} ignored")
        }
        None => String::new(),
    };
    let took = result.duration_ms.map(|ms| format!(" in {ms} ms")).unwrap_or_default();
    say::coloured(&vec![(how.to_owned(), Some(colour)), plain(&counts), dim(&took)]);
}

/// An event in one line: when it came is when it is shown.
pub(super) fn event(HolderEvent { data, .. }: &HolderEvent) -> Line {
    let mut line = vec![(data.event.clone(), Some(Colour::Green))];
    if let Some(path) = &data.path {
        line.push(plain(&format!(" {path}")));
    }
    let rest: Vec<String> = data.more.iter().map(|(name, value)| format!("{name}={value}")).collect();
    line.push(dim(&format!(" {}", rest.join(" "))));
    line
}

fn plain(text: &str) -> (String, Option<Colour>) {
    (text.to_owned(), None)
}

fn dim(text: &str) -> (String, Option<Colour>) {
    (text.to_owned(), Some(Colour::Dim))
}
