//! apply_quick_fix: what a server offers to change at a place. Only edits are made; what would run a command of the server's
//! is refused, because nobody can see beforehand what it does.

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    conversation::LspAnswer,
    edits::{self, EditsMode},
    errors,
    site::{Ability, PATIENCE, Site},
};
use crate::{
    args::{Args, wrong},
    lsp::LspContext,
    prepared::{Doing, Work},
    progress::ProgressSink,
    shown::ActionPreview,
    text::buffers::stale,
};

/// Fixes in one answer.
const MAX_FIXES: usize = 200;

const ACTION: Ability =
    Ability { capability: "codeActionProvider", method: "textDocument/codeAction", what: "offer quick fixes" };

type Range = ((u64, u64), (u64, u64));

pub(crate) fn fix(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        let range = args.range("range")?.ok_or_else(|| wrong("`range` is missing: {start, end}"))?;
        let title = args.maybe_text("title")?;
        let version = args.number("version", 0, u64::MAX)?;
        let mode = EditsMode::of(args.flag("preview")?);
        args.done()?;
        let site = Site::open(context, path).await?;
        let now = site.snapshot().version;
        if version.is_some_and(|version| version != now) {
            return Err(stale(&site.path().display().to_string(), now));
        }
        let (start, end) = (site.place(range.0)?, site.place(range.1)?);
        let named = json!({ "start": start, "end": end });
        let Some(title) = title else {
            let shown = ActionPreview::plain(format!("Look for quick fixes in {}", site.path().display()));
            let work = Work::task(move |_| async move {
                let answer = offered(&site, range, &named).await?;
                let all: Vec<Value> = actions(&answer.value).map(action_json).collect();
                let is_complete = all.len() <= MAX_FIXES && !answer.was_busy;
                let fixes: Vec<Value> = all.into_iter().take(MAX_FIXES).collect();
                Ok(json!({ "fixes": fixes, "is_complete": is_complete }))
            });
            return Ok((shown, work.within(PATIENCE * 3).affecting(Vec::new())));
        };
        let answer = offered(&site, range, &named).await?;
        let edit = edit_of(&site, &answer.value, &title).await?;
        let state = site.context.state.clone();
        state.editor.blocking(move |_| edits::prepared(&site, &edit, &answer.texts, "quick_fix", mode)).await
    })
}

/// Asks what is offered. Some servers only have fixes for the errors that they are told back.
async fn offered(site: &Site, range: Range, named: &Value) -> Result<LspAnswer, Refusal> {
    let until = Instant::now() + PATIENCE;
    let client = site.client().await?;
    // Without them there may still be other offers, so what became of it does not matter.
    let _ = errors::fetch(site, &client, Instant::now() + PATIENCE / 2, &ProgressSink::unseen()).await;
    let known = client.known.read(|facts| facts.of(site.path()));
    let near: Vec<Value> =
        known.into_iter().flat_map(|known| known.items).filter(|item| meets(&item["range"], range)).collect();
    let context = json!({ "diagnostics": near, "triggerKind": 1 });
    let params = json!({ "textDocument": site.document_id(), "range": named, "context": context });
    site.ask(ACTION, &params, until).await
}

fn meets(theirs: &Value, (start, end): Range) -> bool {
    let place = |place: &Value| Some((place["line"].as_u64()?, place["character"].as_u64()?));
    match (place(&theirs["start"]), place(&theirs["end"])) {
        (Some(from), Some(to)) => from <= end && to >= start,
        _ => false,
    }
}

/// What is offered and can be done.
fn actions(answer: &Value) -> impl Iterator<Item = &Value> {
    answer.as_array().into_iter().flatten().filter(|action| action["disabled"].is_null())
}

fn action_json(action: &Value) -> Value {
    json!({ "title": action["title"], "kind": action["kind"], "is_preferred": action["isPreferred"] == true })
}

async fn edit_of(site: &Site, answer: &Value, title: &str) -> Result<Value, Refusal> {
    let mut named = actions(answer).filter(|action| action["title"] == title);
    let Some(action) = named.next() else {
        let titles: Vec<String> = actions(answer)
            .take(10)
            .filter_map(|action| action["title"].as_str())
            .map(|title| format!("{title:?}"))
            .collect();
        let offered = if titles.is_empty() { "nothing is offered".to_owned() } else { titles.join(", ") };
        let message = format!("no quick fix {title:?} is offered there by now; {offered}");
        return Err(Refusal::new(Code::NotFound, message));
    };
    let mut edit = action["edit"].clone();
    let client = site.client().await?;
    let resolves = client.known.read(|facts| facts.option(ACTION.capability, ACTION.method, "resolveProvider") == true);
    // A Command's `command` is a string, a CodeAction's is an object.
    if edit.is_null() && resolves && !action["command"].is_string() {
        let until = Instant::now() + PATIENCE;
        let resolved = site.ask_once(&client, "codeAction/resolve", action, until).await;
        edit = resolved.map_err(|fault| site.refusal(fault, Some(ACTION)))?.value["edit"].take();
    }
    if edit.is_null() {
        let message = format!(
            "the quick fix {title:?} runs a command of the language server {}; only fixes that are edits can be applied",
            site.kind.name
        );
        return Err(Refusal::new(Code::Unsupported, message));
    }
    Ok(edit)
}
