//! Edits of a text: by place, as editors count (lines and UTF-16 units from zero), or by the words to be replaced, which must
//! be there once. All edits of an action are about the same text, so none moves what another is about.
//!
//! A buffer is edited, not the file: `save_buffer` writes it.

mod apply;
mod position;

use std::{ops::Range, sync::Arc};

use prism_core::policy::Refusal;
use serde_json::{Map, Value, json};

use crate::{
    args::{Args, kind_of, members, wrong},
    prepared::Work,
    shown::ActionPreview,
    state::GrantHolder,
    text::{
        TextContext, TextState,
        buffers::{Buffer, BufferChange, EditPlan, MadeEdit, Snapshot, Steps, stale},
    },
};
pub(crate) use apply::{TextEdit, apply};
pub(crate) use position::{Position, Span, TextLines};

/// Edits of one action, and files. The text is gone through for each of them.
const MAX_EDITS: usize = 1_000;
const MAX_FILES: usize = 200;

/// One edit as it was given.
pub(crate) struct RequestedEdit {
    place: EditTarget,
    new_text: String,
}

enum EditTarget {
    /// With what must stand there, if that was said.
    Range { start: Position, end: Position, old_text: Option<String> },
    /// Where this stands.
    Words(String),
}

pub(crate) fn edit(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    if let Some(files) = args.take("files") {
        args.done()?;
        return edit_files(files, context);
    }
    let (order, path) = EditBasis::read(&mut args)?;
    let (undo, redo) = (args.number("undo", 1, MAX_EDITS as u64)?, args.number("redo", 1, MAX_EDITS as u64)?);
    let what = what(&mut args)?;
    args.done()?;
    let buffer = context.state.buffers.open(&context.roots.resolve(&path)?)?;
    let snapshot = order.fits(&path, &buffer)?;
    let steps = match (undo, redo, what) {
        (None, None, Some(edits)) => {
            let change = change(buffer, &snapshot, edits, order.names_version())?;
            return planned(&context.state, &context.holder, vec![change], "edit", one);
        }
        (Some(steps), None, None) => Steps::Back(steps),
        (None, Some(steps), None) => Steps::Forth(steps),
        (None, None, None) => {
            return Err(wrong(
                "`edits` is missing: an array of {range, new_text} or {old_text, new_text}; or `undo`, or `redo`",
            ));
        }
        _ => return Err(wrong("give one of `edits`, `undo` and `redo`")),
    };
    let (plan, state, by) = (buffer.retraced(snapshot.version, steps)?, context.state.clone(), context.holder.clone());
    let shown = ActionPreview::plain(format!("Edit {}", plan.path().display()));
    let picture = plan.clone();
    let effects = plan.effects(&by);
    let work = Work::new(move |_| Ok(state.buffers.make_retraced(plan, &by)?.to_json()));
    Ok((shown, work.affecting(effects).pictured(move || picture.shown())))
}

/// Several files, all or none.
fn edit_files(files: Value, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let Value::Array(files) = files else {
        return Err(wrong(format!("`files` must be an array, not {}", kind_of(&files))));
    };
    if files.is_empty() || files.len() > MAX_FILES {
        return Err(wrong(format!("`files` must hold 1 to {MAX_FILES} files, not {}", files.len())));
    }
    let mut changes = Vec::with_capacity(files.len());
    for (i, file) in files.into_iter().enumerate() {
        let read = || {
            let mut args = members("files", file)?;
            let (order, path) = EditBasis::read(&mut args)?;
            let edits = what(&mut args)?.ok_or_else(|| wrong("`edits` is missing"))?;
            args.done()?;
            let buffer = context.state.buffers.open(&context.roots.resolve(&path)?)?;
            let snapshot = order.fits(&path, &buffer)?;
            change(buffer, &snapshot, edits, order.names_version())
        };
        changes.push(
            read()
                .map_err(|refusal: Refusal| Refusal { message: format!("file {i}: {}", refusal.message), ..refusal })?,
        );
    }
    planned(&context.state, &context.holder, changes, "edit", all)
}

/// Which text an edit was made for.
struct EditBasis {
    version: Option<u64>,
    digest: Option<String>,
}

impl EditBasis {
    fn read(args: &mut Args) -> Result<(Self, String), Refusal> {
        let path = args.text("path")?;
        let version = args.number("version", 0, u64::MAX)?;
        let digest = args.maybe_text("digest")?;
        Ok((Self { version, digest }, path))
    }

    fn names_version(&self) -> bool {
        self.version.is_some() || self.digest.is_some()
    }

    /// Refuses if the text is another by now (E-03).
    fn fits(&self, path: &str, buffer: &Buffer) -> Result<Snapshot, Refusal> {
        let now = buffer.snapshot();
        let is_stale = self.version.is_some_and(|version| version != now.version)
            || self.digest.as_ref().is_some_and(|digest| *digest != now.digest);
        if is_stale {
            return Err(stale(path, now.version));
        }
        Ok(now)
    }
}

fn change(
    buffer: Arc<Buffer>,
    snapshot: &Snapshot,
    edits: Vec<RequestedEdit>,
    names_version: bool,
) -> Result<BufferChange, Refusal> {
    let is_blind = |edit: &RequestedEdit| matches!(edit.place, EditTarget::Range { old_text: None, .. });
    if !names_version && edits.iter().any(is_blind) {
        let why = "a `range` is about one version of the text: give `version` (or `digest`) as open_file told it, or the \
                   `old_text` that stands there";
        return Err(wrong(why));
    }
    let edits = placed(&snapshot.text, edits)?;
    Ok(BufferChange { buffer, version: snapshot.version, edits })
}

/// What is to be changed, if that is what was given.
pub(crate) fn what(args: &mut Args) -> Result<Option<Vec<RequestedEdit>>, Refusal> {
    let listed = args.take("edits");
    let (old_text, new_text) = (args.take("old_text"), args.take("new_text"));
    match (listed, old_text, new_text) {
        (Some(Value::Array(listed)), None, None) => read(listed).map(Some),
        (Some(Value::Array(_)), _, _) => Err(wrong("give `edits`, or `old_text` and `new_text`, not both")),
        (Some(other), _, _) => Err(wrong(format!("`edits` must be an array, not {}", kind_of(&other)))),
        (None, None, None) => Ok(None),
        (None, old_text, new_text) => {
            let members = [("old_text", old_text), ("new_text", new_text)];
            let single: Map<_, _> =
                members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
            read(vec![Value::Object(single)]).map(Some)
        }
    }
}

/// Has changes of buffers made, for any verb that makes some: shown as the differences that they make, all made or none.
pub(crate) fn planned(
    state: &Arc<TextState>,
    holder: &GrantHolder,
    changes: Vec<BufferChange>,
    reason: &'static str,
    answer: impl FnOnce(&[MadeEdit]) -> Value + Send + 'static,
) -> Result<(ActionPreview, Work), Refusal> {
    let plan = Arc::new(EditPlan::of(changes, reason)?);
    let (state, by) = (state.clone(), holder.clone());
    let shown = ActionPreview::plain(plan.title());
    let (picture, writes, effects) = (plan.clone(), plan.written_bytes(), plan.effects());
    let work = Work::new(move |_| Ok(answer(&state.buffers.make(&plan, &by)?)));
    Ok((shown, work.writing(writes).affecting(effects).pictured(move || picture.shown())))
}

fn one(edited: &[MadeEdit]) -> Value {
    edited.first().map_or(Value::Null, MadeEdit::to_json)
}

fn all(edited: &[MadeEdit]) -> Value {
    json!({ "files": edited.iter().map(MadeEdit::to_json).collect::<Vec<_>>() })
}

fn read(listed: Vec<Value>) -> Result<Vec<RequestedEdit>, Refusal> {
    if listed.is_empty() || listed.len() > MAX_EDITS {
        return Err(wrong(format!("`edits` must hold 1 to {MAX_EDITS} edits, not {}", listed.len())));
    }
    let read = |(i, edit)| match edit {
        Value::Object(edit) => read_one(edit).map_err(|error| wrong(format!("edit {i}: {}", error.message))),
        other => Err(wrong(format!("edit {i} must be an object, not {}", kind_of(&other)))),
    };
    listed.into_iter().enumerate().map(read).collect()
}

fn read_one(edit: Map<String, Value>) -> Result<RequestedEdit, Refusal> {
    let mut args = Args::new(edit);
    let range = args.take("range");
    let old_text = args.maybe_text("old_text")?;
    let new_text = args.text("new_text")?;
    args.done()?;
    let place = match (range, old_text) {
        (Some(range), old_text) => {
            let (start, end) = position::range("range", range)?;
            EditTarget::Range { start, end, old_text }
        }
        (None, Some(old_text)) if old_text.is_empty() => return Err(wrong("`old_text` is empty")),
        (None, Some(old_text)) => EditTarget::Words(old_text),
        (None, None) => return Err(wrong("it needs a `range` or an `old_text`")),
    };
    Ok(RequestedEdit { place, new_text })
}

/// Finds where each edit is in a text, and makes sure that no two meet.
pub(crate) fn placed(text: &str, edits: Vec<RequestedEdit>) -> Result<Vec<TextEdit>, Refusal> {
    let lines = TextLines::of(text);
    let place = |(i, edit): (usize, RequestedEdit)| {
        let range = place_of(text, &lines, &edit.place).map_err(|why| wrong(format!("edit {i}: {why}")))?;
        Ok(TextEdit { range, new_text: edit.new_text })
    };
    edits.into_iter().enumerate().map(place).collect()
}

fn place_of(text: &str, lines: &TextLines<'_>, place: &EditTarget) -> Result<Range<usize>, String> {
    match place {
        EditTarget::Range { start, end, old_text } => {
            let range = lines.offset(*start)?..lines.offset(*end)?;
            if range.start > range.end {
                return Err("`range` ends before it starts".to_owned());
            }
            match old_text {
                Some(old_text) if *old_text != text[range.clone()] => {
                    Err("what stands in `range` is not `old_text`; open the file again".to_owned())
                }
                _ => Ok(range),
            }
        }
        EditTarget::Words(old_text) => {
            let start = text.find(old_text).ok_or("`old_text` is not in the text; open it again")?;
            // It may overlap with itself, too.
            let next = start + text[start..].chars().next().map_or(1, char::len_utf8);
            if text[next..].contains(old_text) {
                return Err("`old_text` is in the text more than once; give more of what stands around it".to_owned());
            }
            Ok(start..start + old_text.len())
        }
    }
}

#[cfg(test)]
mod tests;
