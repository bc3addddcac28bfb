//! Words and expressions replaced in one file or in all beneath a folder: in the buffers, all at once or not at all. It is
//! worked out before it is shown, and what was shown is what is made.

use std::sync::Arc;

use prism_core::policy::{Code, Refusal};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Engine, FileSearch, MOST_MATCHES, Pattern, SearchOptions, SearchStart, glob,
    pattern::{MAX_NEW, ReplacementText},
    unsaved_beneath,
};
use crate::{
    args::{Args, wrong},
    disk::walk::WalkOptions,
    prepared::Work,
    refusal::failed,
    shown::ActionPreview,
    state::Cancellation,
    text::{
        TextContext,
        buffers::{BufferChange, EditPlan, MadeEdit},
        edit::TextEdit,
    },
};

/// Places that are replaced if nothing else is said. If there are more, none is.
const USUAL_PLACES: u64 = 1_000;

/// Files of one action. If there are more, none is changed.
const MAX_FILES: usize = 200;

/// Of a difference that is asked for so much is told, in whole lines.
const MAX_DIFF: usize = 1 << 20;

/// What is to be replaced.
struct Replacement {
    pattern: Pattern,
    new: ReplacementText,
    limit: usize,
}

pub(crate) fn replace(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let (text, pattern) = (args.maybe_text("text")?, args.maybe_text("pattern")?);
    let new_text = args.text("new_text")?;
    let path = args.maybe_text("path")?;
    let glob = glob(&mut args)?;
    let how = SearchOptions { ignores_case: args.flag("ignore_case")?, ..SearchOptions::default() };
    let is_preview = args.flag("preview")?;
    let limit = args.number("limit", 1, MOST_MATCHES)?.unwrap_or(USUAL_PLACES);
    args.done()?;
    let (pattern, new) = match (text, pattern) {
        (Some(text), None) => (
            Pattern::words(&text, how).map_err(|why| wrong(format!("`text` {why}")))?,
            ReplacementText::words(&new_text),
        ),
        (None, Some(pattern)) => {
            let pattern = Pattern::expression(&pattern, how).map_err(|why| wrong(format!("`pattern` {why}")))?;
            (pattern, ReplacementText::with_captures(&new_text))
        }
        (None, None) => return Err(wrong("`text` is missing: a string; or `pattern`, an expression")),
        (Some(_), Some(_)) => return Err(wrong("give `text` or `pattern`, not both")),
    };
    let way = path.as_deref().map_or_else(|| context.roots.first(), |path| context.roots.resolve(path))?;
    let (at, place) = SearchStart::of(&way)?;
    let replacement = Replacement { pattern, new, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
    let search = FileSearch {
        pattern: replacement.pattern.clone(),
        glob,
        also: WalkOptions::default(),
        limit: replacement.limit,
    };
    // Nothing is changed yet, and the walk has a deadline of its own.
    let unsaved = unsaved_beneath(&context.state.buffers, &place);
    let found = search.run(&way, at, &place, &unsaved, &Cancellation::never())?;
    if found.files.len() > MAX_FILES {
        return Err(too_many(format!(
            "it stands in {} files; at most {MAX_FILES} can be changed at once",
            found.files.len()
        )));
    }
    let places: usize = found.files.iter().map(|(_, hits)| hits.len()).sum();
    if places >= replacement.limit && !found.is_complete {
        return Err(too_many(format!("it stands in more than {} places, and `limit` is that", replacement.limit)));
    }
    let is_complete = found.is_complete;
    let changes = found.files.iter().map(|(path, _)| replacement.change(path, context));
    let changes: Vec<BufferChange> = changes.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    if changes.iter().map(|change| change.edits.len()).sum::<usize>() > replacement.limit {
        return Err(failed("the files change while they are searched; try again"));
    }
    planned(changes, is_preview, is_complete, context)
}

impl Replacement {
    /// What becomes of one file, by the text that its buffer has now; `None` if nothing does.
    fn change(&self, path: &std::path::Path, context: &TextContext) -> Result<Option<BufferChange>, Refusal> {
        let buffer = context.state.buffers.open(&context.roots.resolve(&path.to_string_lossy())?)?;
        let now = buffer.snapshot();
        let mut engine = Engine::new(&self.pattern);
        // One more than may be, so that it shows.
        let hits = engine.text(&now.text, self.limit + 1, Some(&self.new));
        let hits = hits.map_err(|error| failed(format!("{}: {error}", path.display())))?;
        if !self.new.is_within_bounds() {
            return Err(too_many(format!("it would put in more than {MAX_NEW} bytes")));
        }
        let edit = |hit: super::SearchHit| TextEdit { range: hit.bytes, new_text: hit.new_text };
        let edits: Vec<TextEdit> =
            hits.hits.into_iter().map(edit).filter(|edit| now.text[edit.range.clone()] != edit.new_text).collect();
        Ok((!edits.is_empty()).then_some(BufferChange { buffer, version: now.version, edits }))
    }
}

/// What was replaced, or would be.
#[derive(Serialize)]
struct ReplaceAnswer {
    files: Vec<Value>,
    replacements: usize,
    is_preview: bool,
    is_complete: bool,
    /// Of a preview.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
}

fn planned(
    changes: Vec<BufferChange>,
    is_preview: bool,
    is_complete: bool,
    context: &TextContext,
) -> Result<(ActionPreview, Work), Refusal> {
    let told: Vec<Value> = changes
        .iter()
        .map(|change| json!({ "path": change.buffer.path(), "version": change.version, "replacements": change.edits.len() }))
        .collect();
    let replacements: usize = changes.iter().map(|change| change.edits.len()).sum();
    let answer = move |files: Vec<Value>| ReplaceAnswer { files, replacements, is_preview, is_complete, diff: None };
    let plan = Arc::new(EditPlan::of(changes, "replace")?);
    if plan.written_bytes() > MAX_NEW as u64 {
        return Err(too_many(format!("it would put in more than {MAX_NEW} bytes")));
    }
    if is_preview {
        let shown = ActionPreview::plain(format!("Preview: {}", plan.title()));
        let work = Work::new(move |_| {
            let mut answer = answer(told);
            let diff = plan.unified();
            let is_cut = diff.len() > MAX_DIFF;
            let end = if is_cut {
                diff.as_bytes()[..MAX_DIFF].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
            } else {
                diff.len()
            };
            answer.diff = Some(diff[..end].to_owned());
            answer.is_complete = is_complete && !is_cut;
            Ok(json!(answer))
        });
        return Ok((shown, work.affecting(Vec::new())));
    }
    let (picture, state, by) = (plan.clone(), context.state.clone(), context.holder.clone());
    let (shown, writes, effects) = (ActionPreview::plain(plan.title()), plan.written_bytes(), plan.effects());
    let work = Work::new(move |_| {
        let made = state.buffers.make(&plan, &by)?;
        let file = |made: &MadeEdit| json!({ "path": made.buffer.path(), "version": made.version, "replacements": made.edits });
        Ok(json!(answer(made.iter().map(file).collect())))
    });
    Ok((shown, work.writing(writes).affecting(effects).pictured(move || picture.shown())))
}

fn too_many(why: String) -> Refusal {
    Refusal::new(Code::TooLarge, format!("{why}; `path` and `glob` narrow it down. Nothing was changed"))
}
