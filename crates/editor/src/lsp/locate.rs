//! goto_definition: where something is defined, declared, used. Of what lies outside the granted folders it is told where it
//! is, and nothing of what stands there.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    site::{Ability, PATIENCE, Site},
    uri,
};
use crate::{
    args::{Args, wrong},
    lsp::LspContext,
    prepared::{Doing, Work},
    shown::ActionPreview,
    text::edit::TextLines,
};

/// Places in one answer. Of more the answer says that it is not complete.
const MAX_PLACES: usize = 1_000;

/// Bytes of a file that is opened to show a line of it; larger ones are not.
const MAX_FILE: u64 = 5 << 20;

/// Letters of a line that are shown.
const MAX_LINE: usize = 300;

fn ability(kind: &str) -> Option<Ability> {
    let (capability, method, what) = match kind {
        "definition" => ("definitionProvider", "textDocument/definition", "find definitions"),
        "declaration" => ("declarationProvider", "textDocument/declaration", "find declarations"),
        "type_definition" => ("typeDefinitionProvider", "textDocument/typeDefinition", "find types"),
        "implementation" => ("implementationProvider", "textDocument/implementation", "find implementations"),
        "references" => ("referencesProvider", "textDocument/references", "find references"),
        "symbols" => ("documentSymbolProvider", "textDocument/documentSymbol", "list symbols"),
        _ => return None,
    };
    Some(Ability { capability, method, what })
}

pub(crate) fn locate(mut args: Args, context: LspContext) -> Doing<(ActionPreview, Work)> {
    Box::pin(async move {
        let path = args.text("path")?;
        let position = args.position("position")?;
        let kind = args.maybe_text("kind")?.unwrap_or_else(|| "definition".to_owned());
        args.done()?;
        let ability = ability(&kind).ok_or_else(|| {
            wrong(format!(
                "`kind` is definition, declaration, type_definition, implementation, references or symbols, not {kind:?}"
            ))
        })?;
        if position.is_none() && kind != "symbols" {
            return Err(wrong("`position` is missing: {line, character}"));
        }
        let site = Site::open(context, path).await?;
        let mut params = json!({ "textDocument": site.document_id() });
        if let Some(position) = position {
            let place = site.place(position)?;
            if kind != "symbols" {
                params["position"] = place;
            }
        }
        if kind == "references" {
            params["context"] = json!({ "includeDeclaration": true });
        }
        let title = format!("Find the {} of something in {}", kind.replace('_', " "), site.path().display());
        let work = Work::task(move |_| async move {
            let answer = site.ask(ability, &params, Instant::now() + PATIENCE).await?;
            let state = site.context.state.clone();
            state.editor.blocking(move |_| Ok(locations_json(&site, &answer.value, answer.was_busy))).await
        });
        Ok((ActionPreview::plain(title), work.within(PATIENCE * 2)))
    })
}

/// A place that a server names.
struct LspLocation {
    path: PathBuf,
    range: Value,
    /// Name, kind and what it is in, of a symbol.
    symbol: Option<(String, &'static str, Option<String>)>,
}

fn locations_json(site: &Site, answer: &Value, was_busy: bool) -> Value {
    let mut found = Vec::new();
    match answer {
        Value::Array(items) => items.iter().for_each(|item| collect(site, item, None, &mut found)),
        Value::Object(_) => collect(site, answer, None, &mut found),
        _ => {}
    }
    let is_complete = found.len() <= MAX_PLACES && !was_busy;
    found.truncate(MAX_PLACES);
    let mut texts = Texts { context: &site.context, known: BTreeMap::new() };
    let locations: Vec<Value> = found.iter().map(|found| texts.location_json(found)).collect();
    json!({ "locations": locations, "is_complete": is_complete })
}

fn collect(site: &Site, item: &Value, within: Option<&str>, found: &mut Vec<LspLocation>) {
    if found.len() > MAX_PLACES {
        return;
    }
    let symbol = item["name"].as_str().map(|name| {
        let within = within.or_else(|| item["containerName"].as_str()).filter(|within| !within.is_empty());
        (name.to_owned(), symbol_kind(&item["kind"]), within.map(str::to_owned))
    });
    // A Location, a LocationLink, a SymbolInformation or a DocumentSymbol.
    let (uri, range) = match item {
        _ if item["uri"].is_string() => (item["uri"].as_str(), &item["range"]),
        _ if item["targetUri"].is_string() => (item["targetUri"].as_str(), &item["targetSelectionRange"]),
        _ if item["location"].is_object() => (item["location"]["uri"].as_str(), &item["location"]["range"]),
        _ => (None, &item["range"]),
    };
    let path = match uri {
        Some(uri) => uri::path(uri),
        None => symbol.is_some().then(|| site.path().to_owned()),
    };
    if let (Some(path), true) = (path, range.is_object()) {
        found.push(LspLocation { path, range: range.clone(), symbol });
    }
    for child in item["children"].as_array().into_iter().flatten() {
        collect(site, child, item["name"].as_str(), found);
    }
}

/// Texts that lines are shown of, each opened once and only through what was granted.
struct Texts<'a> {
    context: &'a LspContext,
    known: BTreeMap<PathBuf, Option<Arc<str>>>,
}

impl Texts<'_> {
    fn location_json(&mut self, found: &LspLocation) -> Value {
        let text = self.known.entry(found.path.clone()).or_insert_with(|| open(self.context, &found.path));
        let mut told = json!({ "path": found.path, "range": found.range, "is_granted": text.is_some() });
        let line = found.range["start"]["line"].as_u64().and_then(|line| usize::try_from(line).ok());
        let shown = text.as_deref().zip(line).and_then(|(text, line)| TextLines::of(text).iter().nth(line));
        if let Some(shown) = shown {
            told["line_text"] = shown.chars().take(MAX_LINE).collect::<String>().into();
        }
        if let Some((name, kind, within)) = &found.symbol {
            told["name"] = name.as_str().into();
            told["kind"] = (*kind).into();
            told["container"] = within.as_deref().into();
        }
        told
    }
}

/// Returns the text of a file that was granted; empty if it is none to be shown. `None` if it was not granted.
fn open(context: &LspContext, path: &Path) -> Option<Arc<str>> {
    let file = context.roots.resolve(path.to_str()?).and_then(|way| way.open_file()).ok()?;
    if let Some(buffer) = context.state.text.buffers.at(path) {
        return Some(buffer.snapshot().text);
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE).read_to_string(&mut text);
    Some(if read.is_ok() { text.into() } else { "".into() })
}

fn symbol_kind(number: &Value) -> &'static str {
    const KINDS: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum_member",
        "struct",
        "event",
        "operator",
        "type_parameter",
    ];
    let number = number.as_u64().and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    number.and_then(|number| KINDS.get(number)).copied().unwrap_or("symbol")
}
