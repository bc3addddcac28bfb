//! The memory's answers as text for a person.

use serde_json::Value;

/// What to know on arrival.
pub(super) fn context(answer: &Value) -> String {
    let mut text = format!("workspace {} at {}\n", word(answer, "workspace"), word(answer, "root"));
    if let Some(scope) = answer["scope"].as_str() {
        text.push_str(&format!("scope {scope}\n"));
    }
    if let Some(overview) = answer["overview"]["text"].as_str() {
        text.push_str(&format!("\n{}\n{overview}\n", heading(document_path(&answer["overview"]))));
    }
    if let Some(tree) = answer["tree"].as_str() {
        text.push_str(&format!("\n{}\n{tree}\n", heading("folders")));
    }
    let topics = answer.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("topic:"));
    let sections = ["decisions", "lessons", "recent", "overviews"].map(|name| (name, &answer[name]));
    for (name, list) in topics.map(|(name, list)| (name.as_str(), list)).chain(sections) {
        let Some(entries) = list.as_array().filter(|entries| !entries.is_empty()) else { continue };
        text.push_str(&format!("\n{}\n{}\n", heading(name), rows(entries)));
    }
    if let Some(counts) = answer["notes"].as_object() {
        let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        text.push_str(&format!("\n{}\n", counts.join(", ")));
    }
    text.push_str(&remarks(answer, "left_out", "left out: "));
    text.push_str(&remarks(answer, "problems", "problem: "));
    text.trim_end().to_owned()
}

pub(super) fn search(answer: &Value) -> String {
    let results = answer["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = String::new();
    for result in results {
        text.push_str(&format!("{}\n  {}\n", word(result, "title"), document_path(result)));
        if let Some(snippet) = result["snippet"].as_str() {
            text.push_str(&format!("  {snippet}\n"));
        }
    }
    if results.is_empty() {
        text.push_str("no notes match\n");
    }
    text.push_str(&remarks(answer, "remarks", ""));
    text.trim_end().to_owned()
}

pub(super) fn remembered(answer: &Value) -> String {
    format!("remembered in {}/{}", word(answer, "root"), document_path(answer))
}

pub(super) fn forgotten(answer: &Value) -> String {
    format!("forgot {}\nundo: {}", document_path(answer), word(answer, "undo"))
}

pub(super) fn restored(answer: &Value) -> String {
    format!("restored {}", word(answer, "restored"))
}

pub(super) fn attic(answer: &Value) -> String {
    let all = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        return "nothing was forgotten".to_owned();
    }
    let line = |slip: &Value| {
        let path = format!("{}/{}", word(slip, "root"), word(slip, "path"));
        format!("{}  {}  {}  {path}", word(slip, "id"), word(slip, "forgotten_at"), word(slip, "title"))
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    format!("{}\nnext: prism workspace restore ID", lines.join("\n"))
}

pub(super) fn indexed(answer: &Value) -> String {
    let [notes, read, removed] = ["notes", "read", "removed"].map(|key| answer[key].as_u64().unwrap_or_default());
    let seconds = answer["milliseconds"].as_f64().unwrap_or_default() / 1_000.0;
    let text = format!("{notes} notes in {}\n{read} read, {removed} removed, {seconds:.2} s", word(answer, "root"));
    format!("{text}{}", remarks(answer, "remarks", "")).trim_end().to_owned()
}

pub(super) fn list(answer: &Value) -> String {
    let notes = answer["notes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if notes.is_empty() {
        let root = word(answer, "root");
        return format!("no notes in {root}\nnext: prism workspace remember TITLE TEXT");
    }
    let total = answer["total"].as_u64().unwrap_or_default();
    let more = total.saturating_sub(notes.len() as u64);
    let more = if more > 0 {
        format!("\n{more} more: raise --limit, or choose a --kind, --tags or --domain")
    } else {
        String::new()
    };
    format!("{}{more}{}", rows(notes), remarks(answer, "remarks", "")).trim_end().to_owned()
}

fn rows(entries: &[Value]) -> String {
    let cells = |entry: &Value| [word(entry, "date"), word(entry, "kind"), word(entry, "title")].map(str::to_owned);
    let rows: Vec<[String; 3]> = entries.iter().map(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [a, b, c] = [0, 1, 2].map(width);
    let line = |([date, kind, title], entry): (&[String; 3], &Value)| {
        let status = entry["status"].as_str().map(|status| format!("  ({status})")).unwrap_or_default();
        format!("{date:a$}  {kind:b$}  {title:c$}  {}{status}", document_path(entry))
    };
    rows.iter().zip(entries).map(line).collect::<Vec<_>>().join("\n")
}

fn remarks(answer: &Value, key: &str, label: &str) -> String {
    let all = answer[key].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(Value::as_str).map(|remark| format!("\n{label}{remark}")).collect()
}

fn heading(text: &str) -> String {
    format!("--- {text} ---")
}

fn document_path(entry: &Value) -> &str {
    entry["_meta"]["document_path"].as_str().unwrap_or_default()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}
