//! What edits make of a text that is open elsewhere: for an editor's text that is shown before it is changed, or kept.

use prism_core::policy::Refusal;
use serde_json::{Map, Value};

use crate::{
    args::{Args, wrong},
    text::edit,
};

/// Returns a text with an array of edits made, as `edit_buffer` takes them.
pub fn edited(text: &str, edits: &Value) -> Result<String, Refusal> {
    let args = Map::from_iter([("edits".to_owned(), edits.clone())]);
    edited_by(text, &args)
}

/// Returns a text as the arguments of an `edit_buffer` would leave it.
pub fn edited_by(text: &str, args: &Map<String, Value>) -> Result<String, Refusal> {
    let members = ["edits", "old_text", "new_text"].into_iter();
    let given = members.filter_map(|name| Some((name.to_owned(), args.get(name)?.clone())));
    let edits = edit::what(&mut Args::new(given.collect()))?;
    let edits = edit::placed(text, edits.ok_or_else(|| wrong("`edits` is missing"))?)?;
    edit::apply(text, &edits).map(|(new, _)| new).map_err(|overlap| wrong(overlap.to_string()))
}
