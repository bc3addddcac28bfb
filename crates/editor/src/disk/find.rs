//! Words in one file, where they stand as editors count it.

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    disk::search::{Engine, MOST_MATCHES, Pattern, SearchHit, SearchOptions, USUAL_MATCHES},
    prepared::Work,
    refusal::failed,
    shown::ActionPreview,
    text::{TextContext, buffers::FileContent},
};

pub(crate) fn find(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let words = args.text("text")?;
    let how = SearchOptions { ignores_case: args.flag("ignore_case")?, ..SearchOptions::default() };
    let limit = args.number("limit", 1, MOST_MATCHES)?.unwrap_or(USUAL_MATCHES);
    args.done()?;
    let pattern = Pattern::words(&words, how).map_err(|why| wrong(format!("`text` {why}")))?;
    let buffer = match context.state.buffers.look(&context.roots.resolve(&path)?)? {
        FileContent::Text(buffer) => buffer,
        FileContent::Other { path, .. } => return Err(wrong(format!("{:?} is no text", path.display().to_string()))),
    };
    let shown = ActionPreview::plain(format!("Search {}", buffer.path().display()));
    let work = Work::new(move |_| {
        let now = buffer.snapshot();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let hits = Engine::new(&pattern).text(&now.text, limit, None);
        let hits = hits.map_err(|error| failed(format!("{}: {error}", buffer.path().display())))?;
        let matches: Vec<Value> = hits.hits.iter().map(SearchHit::to_json).collect();
        Ok(json!({
            "path": buffer.path(), "version": now.version, "digest": now.digest,
            "matches": matches, "is_complete": !hits.is_cut,
        }))
    });
    Ok((shown, work))
}
