//! Edits that a server proposes, as changes of buffers: all of them or none. They are about texts that the server had; if one
//! of these has changed since, or lies outside of what was granted, nothing is done.

use std::{collections::BTreeMap, path::PathBuf};

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};

use super::{conversation::SentText, site::Site, uri};
use crate::{
    prepared::Work,
    refusal::failed,
    shown::ActionPreview,
    text::{
        buffers::{BufferChange, EditPlan, MadeEdit, stale},
        edit::{TextEdit, TextLines, planned},
    },
};

/// Files of one change, and edits in all. More is refused: nobody could look at it.
const MAX_FILES: usize = 200;
const MAX_EDITS: usize = 20_000;

/// What a server wants done with one file.
#[derive(Default)]
struct FileEdits {
    /// The number of the text that it means, if it says so.
    number: Option<i64>,
    edits: Vec<Value>,
}

/// Whether changes are made, or only shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EditsMode {
    Make,
    Preview,
}

impl EditsMode {
    pub(crate) fn of(is_preview: bool) -> Self {
        if is_preview { Self::Preview } else { Self::Make }
    }
}

/// Returns the work that makes the changes of a WorkspaceEdit, shown as what it changes. Blocks.
pub(crate) fn prepared(
    site: &Site,
    edit: &Value,
    texts: &[SentText],
    reason: &'static str,
    mode: EditsMode,
) -> Result<(ActionPreview, Work), Refusal> {
    let changes = changes(site, edit, texts)?;
    if changes.is_empty() {
        let none = json!({ "files": [], "is_preview": mode == EditsMode::Preview });
        return Ok((ActionPreview::plain("Change nothing"), Work::new(move |_| Ok(none)).affecting(Vec::new())));
    }
    if mode == EditsMode::Preview {
        let told = |change: &BufferChange| json!({ "path": change.buffer.path(), "version": change.version, "edits": change.edits.len() });
        let files: Vec<Value> = changes.iter().map(told).collect();
        let plan = EditPlan::of(changes, reason)?;
        let title = format!("Preview: {}", plan.title());
        let work = Work::new(move |_| Ok(json!({ "files": files, "diff": plan.unified(), "is_preview": true })));
        return Ok((ActionPreview::plain(title), work.affecting(Vec::new())));
    }
    planned(&site.context.state.text, &site.context.holder, changes, reason, |edited| {
        let files: Vec<Value> = edited.iter().map(MadeEdit::to_json).collect();
        json!({ "files": files, "is_preview": false })
    })
}

/// Returns the changes that a WorkspaceEdit means. Blocks.
pub(crate) fn changes(site: &Site, edit: &Value, texts: &[SentText]) -> Result<Vec<BufferChange>, Refusal> {
    let wanted = wanted(edit)?;
    let edits: usize = wanted.values().map(|wanted| wanted.edits.len()).sum();
    if wanted.len() > MAX_FILES || edits > MAX_EDITS {
        let message = format!(
            "the change would make {edits} edits in {} files; at most {MAX_EDITS} in {MAX_FILES} are made",
            wanted.len()
        );
        return Err(Refusal::new(Code::TooLarge, message));
    }
    let not_empty = wanted.into_iter().filter(|(_, wanted)| !wanted.edits.is_empty());
    not_empty.map(|(path, wanted)| change(site, path, &wanted, texts)).collect()
}

fn wanted(edit: &Value) -> Result<BTreeMap<PathBuf, FileEdits>, Refusal> {
    let mut wanted: BTreeMap<PathBuf, FileEdits> = BTreeMap::new();
    let path_of = |uri: &Value| {
        let path = uri.as_str().and_then(uri::path);
        path.ok_or_else(|| failed("the language server wants to change something that is no file; nothing was changed"))
    };
    let list = |edits: &Value| match edits {
        Value::Array(edits) => Ok(edits.clone()),
        _ => Err(failed("the language server has named a file and no edits; nothing was changed")),
    };
    // LSP 3.17, WorkspaceEdit: where both are there, the document changes are meant.
    if let Some(steps) = edit["documentChanges"].as_array() {
        for step in steps {
            if let Some(kind) = step["kind"].as_str() {
                let message = format!(
                    "the change would also {kind} a file, which is not done along with edits; do that with create_file, \
                     rename_file or delete_file"
                );
                return Err(Refusal::new(Code::Unsupported, message));
            }
            let (path, number) = (path_of(&step["textDocument"]["uri"])?, step["textDocument"]["version"].as_i64());
            let edits = list(&step["edits"])?;
            if wanted.insert(path, FileEdits { number, edits }).is_some() {
                return Err(failed("the language server wants to change a file twice in a row; nothing was changed"));
            }
        }
        return Ok(wanted);
    }
    for (uri, edits) in edit["changes"].as_object().into_iter().flatten() {
        wanted.insert(path_of(&Value::from(uri.as_str()))?, FileEdits { number: None, edits: list(edits)? });
    }
    Ok(wanted)
}

fn change(site: &Site, path: PathBuf, wanted: &FileEdits, texts: &[SentText]) -> Result<BufferChange, Refusal> {
    let told = path.display().to_string();
    let outside = |refusal: Refusal| Refusal {
        message: format!("the change would also touch {told:?}: {}; nothing was changed", refusal.message),
        ..refusal
    };
    let way = site.context.roots.resolve(&told).map_err(outside)?;
    let buffer = site.context.state.text.buffers.open(&way).map_err(outside)?;
    let now = buffer.snapshot();
    match texts.iter().find(|text| text.path == buffer.path()) {
        Some(text) => {
            let is_same = wanted.number.is_none_or(|number| number == i64::from(text.number));
            if text.version != now.version || !is_same {
                return Err(stale(&told, now.version));
            }
        }
        // It has read the file itself, and so must we have.
        None if now.is_dirty => return Err(stale(&told, now.version)),
        None => {}
    }
    let lines = TextLines::of(&now.text);
    let edits = wanted.edits.iter().map(|edit| text_edit(&now.text, &lines, edit)).collect::<Result<_, _>>()?;
    Ok(BufferChange { buffer, version: now.version, edits })
}

fn text_edit(text: &str, lines: &TextLines<'_>, edit: &Value) -> Result<TextEdit, Refusal> {
    let wrong = || failed("the language server has named a place that is not in the text; nothing was changed");
    if edit["insertTextFormat"] == 2 {
        return Err(failed("the language server wants to insert a template; nothing was changed"));
    }
    let offset = |end: &Value| {
        let (line, character) = (end["line"].as_u64()?, end["character"].as_u64()?);
        // Beyond the last line is the end, as servers say "all of it".
        if line >= lines.count() as u64 { Some(text.len()) } else { lines.offset((line, character)).ok() }
    };
    let (start, end) = (offset(&edit["range"]["start"]), offset(&edit["range"]["end"]));
    let range = start.zip(end).filter(|(start, end)| start <= end).ok_or_else(wrong)?;
    let new_text = edit["newText"].as_str().ok_or_else(wrong)?.to_owned();
    Ok(TextEdit { range: range.0..range.1, new_text })
}

/// Edits of one text, as formatters answer, as a WorkspaceEdit.
pub(crate) fn of_one(site: &Site, edits: Value) -> Value {
    let edits = if edits.is_array() { edits } else { json!([]) };
    json!({ "changes": { uri::of(site.path()): edits } })
}
