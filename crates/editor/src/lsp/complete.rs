//! get_completions: what could stand at a place, the likeliest first.

use prism_core::policy::Refusal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::site::{Ability, PATIENCE, Site};
use crate::{
    args::{Args, wrong},
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
    text::edit::TextLines,
};

const USUAL_LIMIT: u64 = 50;
const MAX_LIMIT: u64 = 500;

/// Letters of a documentation that are told.
const MAX_WORDS: usize = 1_000;

const COMPLETION: Ability =
    Ability { capability: "completionProvider", method: "textDocument/completion", what: "complete code" };

pub(crate) fn completions(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        let position = args.position("position")?.ok_or_else(|| wrong("`position` is missing: {line, character}"))?;
        let limit = args.number("limit", 1, MAX_LIMIT)?.unwrap_or(USUAL_LIMIT);
        args.done()?;
        let site = Site::open(context, path).await?;
        site.place(position)?;
        let title = format!("Complete code in {}", site.path().display());
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let work = Work::task(move |_| async move { complete(&site, position, limit).await });
        Ok((ActionPreview::plain(title), work.within(PATIENCE * 2)))
    })
}

async fn complete(site: &Site, position: (u64, u64), limit: usize) -> Result<Value, Refusal> {
    let context = json!({ "triggerKind": 1 });
    let params = json!({ "textDocument": site.document_id(), "position": site.place(position)?, "context": context });
    let answer = site.ask(COMPLETION, &params, Instant::now() + PATIENCE).await?;
    let typed = typed(&site.snapshot().text, position);
    let (items, is_incomplete) = match &answer.value {
        Value::Array(items) => (items.as_slice(), false),
        list => (list["items"].as_array().map_or(&[][..], Vec::as_slice), list["isIncomplete"] == true),
    };
    let mut fitting: Vec<(u8, &str, &Value)> = items.iter().filter_map(|item| fits(item, &typed)).collect();
    fitting.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    let is_complete = !is_incomplete && !answer.was_busy && fitting.len() <= limit;
    let told: Vec<Value> = fitting.iter().take(limit).map(|(_, _, item)| item_json(item)).collect();
    let version = answer.texts.iter().find(|text| text.path == site.path()).map(|text| text.version);
    Ok(json!({ "items": told, "is_complete": is_complete, "version": version }))
}

/// The word that stands before a place. Servers leave it to the editor to choose by it.
fn typed(text: &str, position: (u64, u64)) -> String {
    let before = TextLines::of(text).offset(position).map_or("", |offset| &text[..offset]);
    let start = before.rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '$'));
    let start = start.map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    before[start..].to_lowercase()
}

/// How well an item fits what was typed, and its place among its like; `None` if it does not.
fn fits<'a>(item: &'a Value, typed: &str) -> Option<(u8, &'a str, &'a Value)> {
    let label = item["label"].as_str()?;
    let word = item["filterText"].as_str().unwrap_or(label).to_lowercase();
    let mut rest = word.chars();
    let rank = match () {
        () if word.starts_with(typed) => 0,
        () if word.contains(typed) => 1,
        () if typed.chars().all(|wanted| rest.any(|letter| letter == wanted)) => 2,
        () => return None,
    };
    Some((rank, item["sortText"].as_str().unwrap_or(label), item))
}

fn item_json(item: &Value) -> Value {
    let label = item["label"].as_str().unwrap_or_default();
    let insert = item["textEdit"]["newText"].as_str().or_else(|| item["insertText"].as_str()).unwrap_or(label);
    let detail = item["detail"].as_str().or_else(|| item["labelDetails"]["detail"].as_str());
    let words = item["documentation"].as_str().or_else(|| item["documentation"]["value"].as_str());
    let mut told = json!({ "label": label, "kind": kind(&item["kind"]), "detail": detail, "insert_text": insert });
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        told["documentation"] = words.chars().take(MAX_WORDS).collect::<String>().into();
    }
    told
}

fn kind(number: &Value) -> Option<&'static str> {
    const KINDS: [&str; 25] = [
        "text",
        "method",
        "function",
        "constructor",
        "field",
        "variable",
        "class",
        "interface",
        "module",
        "property",
        "unit",
        "value",
        "enum",
        "keyword",
        "snippet",
        "color",
        "file",
        "reference",
        "folder",
        "enum_member",
        "constant",
        "struct",
        "event",
        "operator",
        "type_parameter",
    ];
    let number = usize::try_from(number.as_u64()?).ok()?;
    KINDS.get(number.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_chooses_and_orders() {
        assert_eq!(typed("let größe = a.wört", (0, 18)), "wört");
        assert_eq!(typed("a.", (0, 2)), "");
        let items = json!([{ "label": "unwrap_or" }, { "label": "or_unwrap" }, { "label": "umbrella", "sortText": "0" }, { "label": "else" }]);
        let mut found: Vec<_> = items.as_array().unwrap().iter().filter_map(|item| fits(item, "un")).collect();
        found.sort_by_key(|(rank, sort, _)| (*rank, sort.to_string()));
        let labels: Vec<_> = found.iter().map(|(_, _, item)| item["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["unwrap_or", "or_unwrap"]);
        assert_eq!(kind(&json!(25)), Some("type_parameter"));
        assert_eq!((kind(&json!(0)), kind(&json!(26)), kind(&Value::Null)), (None, None, None));
    }
}
