//! The memory's answers as text for a person.

use prism_api::workspace::{
    ForgottenNote, IndexAnswer, ListAnswer, NoteForgotten, NoteRemembered, NoteRestored, NoteView, SearchAnswer,
    WorkspaceContext,
};
use serde::Deserialize;
use serde_json::Value;

/// What to know on arrival.
pub(super) fn context(answer: &Value) -> anyhow::Result<String> {
    let answer = WorkspaceContext::deserialize(answer)?;
    let mut text = format!("workspace {} at {}\n", answer.workspace, answer.root);
    if let Some(scope) = &answer.scope {
        text.push_str(&format!("scope {scope}\n"));
    }
    if let Some(overview) = &answer.overview
        && let Some(body) = &overview.text
    {
        text.push_str(&format!("\n{}\n{body}\n", heading(&overview.meta.document_path)));
    }
    if let Some(tree) = &answer.tree {
        text.push_str(&format!("\n{}\n{tree}\n", heading("folders")));
    }
    let topics = answer.asked_topics.iter().map(|(name, notes)| (name.as_str(), Some(notes)));
    let sections = [
        ("decisions", answer.decisions.as_ref()),
        ("lessons", answer.lessons.as_ref()),
        ("recent", answer.recent.as_ref()),
        ("overviews", answer.overviews.as_ref()),
    ];
    for (name, list) in topics.chain(sections) {
        let Some(entries) = list.filter(|entries| !entries.is_empty()) else { continue };
        text.push_str(&format!("\n{}\n{}\n", heading(name), rows(entries)));
    }
    if let Some(counts) = &answer.notes {
        let counts: Vec<String> = counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        text.push_str(&format!("\n{}\n", counts.join(", ")));
    }
    text.push_str(&remarks(&answer.left_out, "left out: "));
    text.push_str(&remarks(&answer.problems, "problem: "));
    Ok(text.trim_end().to_owned())
}

pub(super) fn search(answer: &Value) -> anyhow::Result<String> {
    let answer = SearchAnswer::deserialize(answer)?;
    let mut text = String::new();
    for result in &answer.results {
        text.push_str(&format!("{}\n  {}\n", result.title, result.meta.document_path));
        if let Some(snippet) = &result.snippet {
            text.push_str(&format!("  {snippet}\n"));
        }
    }
    if answer.results.is_empty() {
        text.push_str("no notes match\n");
    }
    text.push_str(&remarks(&answer.remarks, ""));
    Ok(text.trim_end().to_owned())
}

pub(super) fn remembered(answer: &Value) -> anyhow::Result<String> {
    let NoteRemembered { root, meta, .. } = NoteRemembered::deserialize(answer)?;
    Ok(format!("remembered in {root}/{}", meta.document_path))
}

pub(super) fn forgotten(answer: &Value) -> anyhow::Result<String> {
    let NoteForgotten { undo, meta, .. } = NoteForgotten::deserialize(answer)?;
    Ok(format!("forgot {}\nundo: {undo}", meta.document_path))
}

pub(super) fn restored(answer: &Value) -> anyhow::Result<String> {
    let NoteRestored { restored } = NoteRestored::deserialize(answer)?;
    Ok(format!("restored {restored}"))
}

pub(super) fn attic(answer: &Value) -> anyhow::Result<String> {
    let all = Vec::<ForgottenNote>::deserialize(answer)?;
    if all.is_empty() {
        return Ok("nothing was forgotten".to_owned());
    }
    let line = |ForgottenNote { id, title, root, path, forgotten_at }: &ForgottenNote| {
        format!("{id}  {forgotten_at}  {title}  {root}/{path}")
    };
    let lines: Vec<String> = all.iter().map(line).collect();
    Ok(format!("{}\nnext: prism workspace restore ID", lines.join("\n")))
}

pub(super) fn indexed(answer: &Value) -> anyhow::Result<String> {
    let IndexAnswer { root, notes, read, removed, remarks, milliseconds } = IndexAnswer::deserialize(answer)?;
    #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
    let seconds = milliseconds as f64 / 1_000.0;
    let text = format!("{notes} notes in {root}\n{read} read, {removed} removed, {seconds:.2} s");
    Ok(format!("{text}{}", self::remarks(&remarks, "")).trim_end().to_owned())
}

pub(super) fn list(answer: &Value) -> anyhow::Result<String> {
    let ListAnswer { root, total, notes, remarks, .. } = ListAnswer::deserialize(answer)?;
    if notes.is_empty() {
        return Ok(format!("no notes in {root}\nnext: prism workspace remember TITLE TEXT"));
    }
    let more = total.saturating_sub(notes.len() as u64);
    let more = if more > 0 {
        format!("\n{more} more: raise --limit, or choose a --kind, --tags or --domain")
    } else {
        String::new()
    };
    Ok(format!("{}{more}{}", rows(&notes), self::remarks(&remarks, "")).trim_end().to_owned())
}

fn rows(entries: &[NoteView]) -> String {
    let cells = |entry: &NoteView| [entry.date.clone().unwrap_or_default(), entry.kind.clone(), entry.title.clone()];
    let rows: Vec<[String; 3]> = entries.iter().map(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let [a, b, c] = [0, 1, 2].map(width);
    let line = |([date, kind, title], entry): (&[String; 3], &NoteView)| {
        let status = entry.status.as_ref().map(|status| format!("  ({status})")).unwrap_or_default();
        format!("{date:a$}  {kind:b$}  {title:c$}  {}{status}", entry.meta.document_path)
    };
    rows.iter().zip(entries).map(line).collect::<Vec<_>>().join("\n")
}

fn remarks(all: &[String], label: &str) -> String {
    all.iter().map(|remark| format!("\n{label}{remark}")).collect()
}

fn heading(text: &str) -> String {
    format!("--- {text} ---")
}
