//! What a text is made of, by its grammar: where it is broken, what it defines, its tree. It says nothing that needs more than
//! the one text; what a whole project says is the language servers' (`lsp`).

mod errors;
mod grammar;
mod outline;
mod parse;
mod places;
mod tree;

use std::{ops::Range, path::Path};

use prism_core::policy::{Code, Refusal};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    encoding,
    language::SourceLanguage,
    prepared::{Opened, Work},
    refusal::failed,
    roots::read::whole,
    shown::ActionPreview,
    state::Cancellation,
    text::{
        TextContext,
        edit::{Span, TextLines},
    },
};
use outline::Symbol;
use places::PlaceIndex;

/// Errors that are told. A text with more is likely not in the language that it is taken for.
const MAX_ERRORS: usize = 200;

/// Nodes of a tree that are shown if nothing else is said, and at most.
const USUAL_NODES: u64 = 500;
const MOST_NODES: u64 = 5_000;

/// How deep a tree is shown if nothing else is said, and at most.
const USUAL_DEPTH: u64 = 6;
const MOST_DEPTH: u64 = 64;

/// Which tree is wanted, as it was asked for.
struct TreeRequest {
    depth: usize,
    limit: usize,
    range: Option<Span>,
}

/// What a text is made of, as results have it.
#[derive(Debug, Serialize)]
struct SyntaxAnalysis {
    path: String,
    /// Of the buffer, if it is open.
    version: Option<u64>,
    language: &'static str,
    has_errors: bool,
    errors: Vec<Value>,
    outline: Vec<Value>,
    /// If it was wanted; `null`, if nothing of it touches the range.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<Option<tree::ShownNode>>,
    is_complete: bool,
}

pub(crate) fn analyze(mut args: Args, context: &TextContext) -> Result<Opened, Refusal> {
    let path = args.text("path")?;
    let wants_tree = args.flag("tree")?;
    let depth = args.number("depth", 0, MOST_DEPTH)?.unwrap_or(USUAL_DEPTH) as usize;
    let limit = args.number("limit", 1, MOST_NODES)?.unwrap_or(USUAL_NODES) as usize;
    let range = args.range("range")?;
    args.done()?;
    let wish = wants_tree.then_some(TreeRequest { depth, limit, range });
    let way = context.roots.resolve(&path)?;
    let (file, place) = way.open_placed()?;
    let language = language_of(&place)?;
    let shown = ActionPreview::plain(format!("Parse {}", place.display()));
    let state = context.state.clone();
    let work = Work::new(move |stop| {
        let name = place.display().to_string();
        if state.buffers.at(&place).is_some() {
            // Found once more by its way, as one that nobody has changed follows its file.
            let snapshot = state.buffers.open(&way)?.snapshot();
            let mut answer = analysis(&snapshot.text, language, wish.as_ref(), stop)?;
            (answer.path, answer.version) = (name, Some(snapshot.version));
            return Ok(json!(answer));
        }
        let bytes = whole(file, &name)?;
        let Some(text) = encoding::as_text(&bytes) else { return Err(wrong(format!("{name:?} is no text"))) };
        let mut answer = analysis(text, language, wish.as_ref(), stop)?;
        answer.path = name;
        Ok(json!(answer))
    });
    Ok((shown, work))
}

fn language_of(path: &Path) -> Result<SourceLanguage, Refusal> {
    SourceLanguage::of(path).ok_or_else(|| {
        let message = format!(
            "{:?}: there is no grammar for its kind; there are some for Rust, Python, TypeScript, JavaScript, Go, C, C++, Bash, \
             JSON, TOML and Markdown",
            path.display().to_string()
        );
        Refusal::new(Code::Unsupported, message)
    })
}

/// Says of a text all but where it is.
fn analysis(
    text: &str,
    language: SourceLanguage,
    wish: Option<&TreeRequest>,
    stop: &Cancellation,
) -> Result<SyntaxAnalysis, Refusal> {
    let is_over = || stop.is_stopped();
    let known = grammar::of(language)
        .map_err(|why| failed(format!("its grammar cannot be used: {why}; this is Prism's fault")))?;
    let wanted = wish.and_then(|wish| wish.range).map(|range| bytes_of(text, range)).transpose()?;
    let Some(tree) = parse::parse(known, text, &is_over) else {
        let message = format!("it could not be parsed within {} s", parse::MAX_TIME.as_secs());
        return Err(Refusal::new(Code::TooLarge, message));
    };
    let places = PlaceIndex::of(text);
    let (faults, are_all_faults) = errors::find(&tree, text, MAX_ERRORS);
    let (symbols, are_all_symbols) = outline::find(known, &tree, text, &is_over);
    let mut is_complete = are_all_faults && are_all_symbols;
    let told =
        |fault: &errors::SyntaxFault| json!({ "range": places.range(fault.range.clone()), "message": fault.message });
    let shown_tree = wish.map(|wish| {
        let part = tree::TreePart { depth: wish.depth, limit: wish.limit, range: wanted };
        tree::show(&tree, text, &places, &part)
    });
    is_complete &= shown_tree.as_ref().is_none_or(|(_, is_whole)| *is_whole);
    Ok(SyntaxAnalysis {
        path: String::new(),
        version: None,
        language: language.id(),
        has_errors: !faults.is_empty(),
        errors: faults.iter().map(told).collect(),
        outline: symbols.iter().map(|symbol| shown(symbol, &places)).collect(),
        tree: shown_tree.map(|(root, _)| root),
        is_complete,
    })
}

fn bytes_of(text: &str, (start, end): Span) -> Result<Range<usize>, Refusal> {
    let lines = TextLines::of(text);
    let byte = |place| lines.offset(place).map_err(|why| wrong(format!("`range`: {why}")));
    let range = byte(start)?..byte(end)?;
    if range.start > range.end { Err(wrong("`range` ends before it starts")) } else { Ok(range) }
}

/// Not deeper than `outline::MAX_DEPTH`.
fn shown(symbol: &Symbol, places: &PlaceIndex<'_>) -> Value {
    let children: Vec<Value> = symbol.children.iter().map(|child| shown(child, places)).collect();
    json!({
        "name": symbol.name,
        "kind": symbol.kind,
        "range": places.range(symbol.range.clone()),
        "children": children,
    })
}

#[cfg(test)]
mod tests;
