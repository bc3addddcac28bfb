//! Edits of a text: by place, as editors count (lines and UTF-16 units from zero), or by the words to be replaced, which must
//! be there once. All edits of an action are about the same text, so none moves what another is about.
//!
//! There is no buffer behind it yet that would hold unsaved text: the file is edited.

mod position;

use std::ops::Range;

use prism_core::policy::Refusal;
use serde_json::{Map, Value};

use crate::{
    Shown,
    args::{Args, kind_of, wrong},
    change::Old,
    ground::Ground,
    prepared::Work,
    text,
};
pub(crate) use position::Lines;

/// Edits of one action. The text is gone through for each of them.
const MAX_EDITS: usize = 1_000;

/// One edit as it was given.
struct Edit {
    place: Place,
    new_text: String,
}

enum Place {
    /// With what must stand there, if that was said.
    Range { start: (u64, u64), end: (u64, u64), old_text: Option<String> },
    /// Where this stands.
    Words(String),
}

pub(crate) fn edit(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let path = args.text("path")?;
    let digest = args.maybe_text("digest")?;
    // An open buffer's version, once there are buffers; of a file its digest is all that there is.
    let version = args.maybe_text("version")?;
    let listed = args.take("edits");
    let (old_text, new_text) = (args.take("old_text"), args.take("new_text"));
    args.done()?;
    let edits = match (listed, old_text, new_text) {
        (Some(Value::Array(listed)), None, None) => read(listed)?,
        (Some(Value::Array(_)), _, _) => return Err(wrong("give `edits`, or `old_text` and `new_text`, not both")),
        (Some(other), _, _) => return Err(wrong(format!("`edits` must be an array, not {}", kind_of(&other)))),
        (None, None, None) => {
            return Err(wrong("`edits` is missing: an array of {range, new_text} or {old_text, new_text}"));
        }
        (None, old_text, new_text) => {
            let members = [("old_text", old_text), ("new_text", new_text)];
            let single: Map<_, _> =
                members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
            read(vec![Value::Object(single)])?
        }
    };
    let made_for = digest.or(version);
    let old = Old::open(ground.way(&path)?, made_for.as_deref())?;
    let new = match text::as_text(&old.bytes) {
        Some(text) => apply(text, &edits)?,
        None => return Err(wrong(format!("{path:?} is no text; write_file replaces it as a whole"))),
    };
    old.replaced_by(new.into_bytes())
}

fn read(listed: Vec<Value>) -> Result<Vec<Edit>, Refusal> {
    if listed.is_empty() || listed.len() > MAX_EDITS {
        return Err(wrong(format!("`edits` must hold 1 to {MAX_EDITS} edits, not {}", listed.len())));
    }
    let read = |(i, edit)| match edit {
        Value::Object(edit) => read_one(edit).map_err(|error| wrong(format!("edit {i}: {}", error.message))),
        other => Err(wrong(format!("edit {i} must be an object, not {}", kind_of(&other)))),
    };
    listed.into_iter().enumerate().map(read).collect()
}

fn read_one(edit: Map<String, Value>) -> Result<Edit, Refusal> {
    let mut args = Args::new(edit);
    let range = args.take("range");
    let old_text = args.maybe_text("old_text")?;
    let new_text = args.text("new_text")?;
    args.done()?;
    let place = match (range, old_text) {
        (Some(range), old_text) => {
            let mut ends = members("range", range)?;
            let mut end_of = |name: &'static str| {
                let place = ends.take(name).ok_or_else(|| wrong(format!("`range` has no `{name}`")))?;
                let mut place = members(name, place)?;
                let mut number = |member| {
                    let number = place.number(member, 0, u64::from(u32::MAX))?;
                    number.ok_or_else(|| wrong(format!("`{name}` has no `{member}`")))
                };
                let found = (number("line")?, number("character")?);
                place.done()?;
                Ok::<_, Refusal>(found)
            };
            let (start, end) = (end_of("start")?, end_of("end")?);
            ends.done()?;
            Place::Range { start, end, old_text }
        }
        (None, Some(old_text)) if old_text.is_empty() => return Err(wrong("`old_text` is empty")),
        (None, Some(old_text)) => Place::Words(old_text),
        (None, None) => return Err(wrong("it needs a `range` or an `old_text`")),
    };
    Ok(Edit { place, new_text })
}

fn members(name: &str, value: Value) -> Result<Args, Refusal> {
    match value {
        Value::Object(members) => Ok(Args::new(members)),
        other => Err(wrong(format!("`{name}` must be an object, not {}", kind_of(&other)))),
    }
}

/// Returns the text with all edits made.
fn apply(text: &str, edits: &[Edit]) -> Result<String, Refusal> {
    let lines = Lines::of(text);
    let mut found = Vec::with_capacity(edits.len());
    for (i, edit) in edits.iter().enumerate() {
        let range = place_of(text, &lines, &edit.place).map_err(|why| wrong(format!("edit {i}: {why}")))?;
        found.push((range, edit.new_text.as_str(), i));
    }
    // Several insertions at one place stay in their order.
    found.sort_by_key(|(range, _, i)| (range.start, range.end, *i));
    let mut new = String::with_capacity(text.len());
    let mut done = 0;
    let mut last = 0;
    for (range, new_text, i) in found {
        if range.start < done {
            return Err(wrong(format!("edits {last} and {i} overlap")));
        }
        new.push_str(&text[done..range.start]);
        new.push_str(new_text);
        (done, last) = (range.end, i);
    }
    new.push_str(&text[done..]);
    Ok(new)
}

fn place_of(text: &str, lines: &Lines<'_>, place: &Place) -> Result<Range<usize>, String> {
    match place {
        Place::Range { start, end, old_text } => {
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
        Place::Words(old_text) => {
            let start = text.find(old_text).ok_or("`old_text` is not in the file; open it again")?;
            // It may overlap with itself, too.
            let next = start + text[start..].chars().next().map_or(1, char::len_utf8);
            if text[next..].contains(old_text) {
                return Err("`old_text` is in the file more than once; give more of what stands around it".to_owned());
            }
            Ok(start..start + old_text.len())
        }
    }
}

#[cfg(test)]
mod tests;
