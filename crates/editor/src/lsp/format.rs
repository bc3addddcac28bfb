//! format_code: through the server of the language, as an edit of the buffer.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    edits,
    site::{Ability, PATIENCE, Site},
};
use crate::{
    args::Args,
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
    text::{
        buffers::{MadeEdit, stale},
        edit::planned,
    },
};

const WHOLE: Ability =
    Ability { capability: "documentFormattingProvider", method: "textDocument/formatting", what: "format code" };
const PART: Ability = Ability {
    capability: "documentRangeFormattingProvider",
    method: "textDocument/rangeFormatting",
    what: "format a part of a file; leave out `range`",
};

pub(crate) fn format(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        let version = args.number("version", 0, u64::MAX)?;
        let range = args.range("range")?;
        let tab_size = args.number("tab_size", 1, 16)?.unwrap_or(4);
        let insert_spaces = args.take("insert_spaces").is_none_or(|wanted| wanted != false);
        args.done()?;
        let site = Site::open(context, path).await?;
        let before = site.snapshot().version;
        if version.is_some_and(|version| version != before) {
            return Err(stale(&site.path().display().to_string(), before));
        }
        let options = json!({ "tabSize": tab_size, "insertSpaces": insert_spaces });
        let mut params = json!({ "textDocument": site.document_id(), "options": options });
        let ability = match range {
            None => WHOLE,
            Some((start, end)) => {
                params["range"] = json!({ "start": site.place(start)?, "end": site.place(end)? });
                PART
            }
        };
        let answer = site.ask(ability, &params, Instant::now() + PATIENCE).await?;
        let edit = edits::of_one(&site, answer.value);
        let state = site.context.state.clone();
        state
            .editor
            .blocking(move |_| {
                let changes = edits::changes(&site, &edit, &answer.texts)?;
                if changes.is_empty() {
                    let (title, path) = (format!("Format {}", site.path().display()), site.path().to_owned());
                    let same = json!({ "path": path, "version": before, "edits": 0, "is_changed": false });
                    return Ok((ActionPreview::plain(title), Work::new(move |_| Ok(same)).affecting(Vec::new())));
                }
                planned(&site.context.state.text, &site.context.holder, changes, "format", formatted)
            })
            .await
    })
}

fn formatted(made: &[MadeEdit]) -> Value {
    let mut file = made.first().map_or(Value::Null, MadeEdit::to_json);
    file["is_changed"] = true.into();
    file
}
