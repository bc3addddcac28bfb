//! refactor_symbol: another name for something, wherever it is used.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    edits::{self, EditsMode},
    site::{Ability, PATIENCE, Site},
};
use crate::{
    args::{Args, wrong},
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
    text::buffers::stale,
};

/// Letters of a name.
const MAX_NAME: usize = 200;

const RENAME: Ability = Ability { capability: "renameProvider", method: "textDocument/rename", what: "rename symbols" };
const PREPARE: Ability = Ability { method: "textDocument/prepareRename", ..RENAME };

pub(crate) fn rename(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        let position = args.position("position")?.ok_or_else(|| wrong("`position` is missing: {line, character}"))?;
        let new_name = args.text("new_name")?;
        let version = args.number("version", 0, u64::MAX)?;
        let mode = EditsMode::of(args.flag("preview")?);
        args.done()?;
        let is_name = !new_name.trim().is_empty() && !new_name.contains(char::is_control);
        if !is_name || new_name.chars().count() > MAX_NAME {
            return Err(wrong(format!("`new_name` must be a name of 1 to {MAX_NAME} letters")));
        }
        let site = Site::open(context, path).await?;
        let now = site.snapshot().version;
        if version.is_some_and(|version| version != now) {
            return Err(stale(&site.path().display().to_string(), now));
        }
        let until = Instant::now() + PATIENCE;
        let mut params = json!({ "textDocument": site.document_id(), "position": site.place(position)? });
        let client = site.client().await?;
        super::site::ready(&client, until).await.map_err(|fault| site.refusal(fault, Some(RENAME)))?;
        let prepares =
            client.known.read(|facts| facts.option(RENAME.capability, RENAME.method, "prepareProvider") == true);
        if prepares {
            let answer = site.ask(PREPARE, &params, until).await?;
            if answer.value.is_null() {
                return Err(wrong("there is nothing at `position` that could be renamed"));
            }
        }
        params["newName"] = new_name.into();
        let answer = site.ask(RENAME, &params, until).await?;
        if answer.was_busy {
            // Half of the uses would keep the old name.
            let message = format!("{} is still loading the project; try again in a moment", site.kind.name);
            let retry_after = Some(std::time::Duration::from_secs(2));
            let code = prism_core::policy::Code::TimedOut;
            return Err(prism_core::policy::Refusal { code, message, retry_after });
        }
        if matches!(answer.value, Value::Null) {
            return Err(wrong("there is nothing at `position` that could be renamed"));
        }
        let state = site.context.state.clone();
        state.editor.blocking(move |_| edits::prepared(&site, &answer.value, &answer.texts, "rename", mode)).await
    })
}
