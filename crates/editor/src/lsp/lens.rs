//! get_code_lens: what a server would have an editor show above the code. The commands behind it are only named: nothing here
//! runs them.

use prism_core::policy::Refusal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::site::{Ability, PATIENCE, Site};
use crate::{
    args::Args,
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
};

/// Lenses in one answer, and those of them whose words have to be asked for one by one.
const MAX_LENSES: usize = 500;
const MAX_RESOLVED: usize = 100;

const LENS: Ability =
    Ability { capability: "codeLensProvider", method: "textDocument/codeLens", what: "show code lenses" };

pub(crate) fn lenses(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        args.done()?;
        let site = Site::open(context, path).await?;
        let title = format!("Look at the code lenses of {}", site.path().display());
        let work = Work::task(move |_| async move { of(&site).await });
        Ok((ActionPreview::plain(title), work.within(PATIENCE * 2)))
    })
}

async fn of(site: &Site) -> Result<Value, Refusal> {
    let until = Instant::now() + PATIENCE;
    let answer = site.ask(LENS, &json!({ "textDocument": site.document_id() }), until).await?;
    let client = site.client().await?;
    let resolves = client.known.read(|facts| facts.option(LENS.capability, LENS.method, "resolveProvider") == true);
    let found = answer.value.as_array().map_or(&[][..], Vec::as_slice);
    let mut is_complete = found.len() <= MAX_LENSES && !answer.was_busy;
    let (mut told, mut resolved) = (Vec::new(), 0);
    for lens in found.iter().take(MAX_LENSES) {
        let mut command = lens["command"].clone();
        if command.is_null() && resolves && resolved < MAX_RESOLVED {
            resolved += 1;
            match site.ask_once(&client, "codeLens/resolve", lens, until).await {
                Ok(mut answer) => command = answer.value["command"].take(),
                Err(_) => is_complete = false,
            }
        }
        is_complete &= !command.is_null();
        told.push(json!({ "range": lens["range"], "title": command["title"], "command": command["command"] }));
    }
    let version = answer.texts.iter().find(|text| text.path == site.path()).map(|text| text.version);
    Ok(json!({ "lenses": told, "version": version, "is_complete": is_complete }))
}
