//! What is defined in a text, as its grammar's query finds it, each within what it is defined in.

use std::{
    collections::HashMap,
    ops::{ControlFlow, Range},
    time::Instant,
};

use tree_sitter::{QueryCursor, QueryCursorOptions, StreamingIterator, Tree};

use super::{
    grammar::{CaptureMark, LoadedGrammar},
    parse::MAX_TIME,
};

/// A definition.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) range: Range<usize>,
    pub(super) children: Vec<Self>,
}

/// Definitions of one outline; what comes after them is left out, and the answer says so.
pub(super) const MAX_SYMBOLS: usize = 5_000;

/// How deep definitions lie in each other; what lies deeper is left out. A file of data can nest without end.
pub(super) const MAX_DEPTH: usize = 24;

/// Characters of a name.
const MAX_NAME: usize = 200;

/// Returns the outline, and whether that is all.
pub(super) fn find(
    known: &'static LoadedGrammar,
    tree: &Tree,
    text: &str,
    is_over: &dyn Fn() -> bool,
) -> (Vec<Symbol>, bool) {
    let (found, is_all) = definitions(known, tree, text, is_over);
    let mut nest = SymbolNest { open: Vec::new(), done: Vec::new(), left_out: !is_all };
    for symbol in found {
        nest.take(symbol);
    }
    nest.finish()
}

fn definitions(
    known: &'static LoadedGrammar,
    tree: &Tree,
    text: &str,
    is_over: &dyn Fn() -> bool,
) -> (Vec<Symbol>, bool) {
    let began = Instant::now();
    let mut is_late = false;
    let mut check = |_: &_| match is_over() || began.elapsed() > MAX_TIME {
        true => {
            is_late = true;
            ControlFlow::Break(())
        }
        false => ControlFlow::Continue(()),
    };
    let mut found: HashMap<usize, (usize, Symbol)> = HashMap::new();
    let mut is_full = false;
    let mut cursor = QueryCursor::new();
    {
        let options = QueryCursorOptions::new().progress_callback(&mut check);
        let mut matches = cursor.matches_with_options(&known.outline, tree.root_node(), text.as_bytes(), options);
        while let Some(matched) = matches.next() {
            let (mut name, mut until, mut definition) = (None, None, None);
            for capture in matched.captures() {
                match known.marks.get(capture.index as usize) {
                    Some(CaptureMark::Name) => name = Some(capture.node.byte_range()),
                    Some(CaptureMark::Until) => until = Some(capture.node.start_byte()),
                    Some(CaptureMark::Definition(kind)) => definition = Some((capture.node, kind.as_str())),
                    None => {}
                }
            }
            let Some((node, kind)) = definition else { continue };
            let Some(name) = name.or_else(|| Some(node.start_byte()..until?)) else { continue };
            // Where a declaration has several names, each is one.
            let key = name.start;
            let Some(name) = text.get(name) else { continue };
            let pattern = matched.pattern_index;
            if found.get(&key).is_some_and(|(better, _)| *better <= pattern) {
                continue;
            }
            if found.len() == MAX_SYMBOLS && !found.contains_key(&key) {
                is_full = true;
                break;
            }
            let symbol = Symbol { name: on_one_line(name), kind, range: node.byte_range(), children: Vec::new() };
            found.insert(key, (pattern, symbol));
        }
    }
    let is_all = !is_full && !is_late && !cursor.did_exceed_match_limit();
    let mut found: Vec<_> = found.into_iter().map(|(at, (_, symbol))| (at, symbol)).collect();
    found.sort_by_key(|(at, symbol)| (symbol.range.start, usize::MAX - symbol.range.end, *at));
    (found.into_iter().map(|(_, symbol)| symbol).collect(), is_all)
}

fn on_one_line(name: &str) -> String {
    let words = name.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MAX_NAME) {
        None => words,
        Some((end, _)) => format!("{}…", &words[..end]),
    }
}

/// Puts definitions, which come in the text's order, into those that they lie in.
struct SymbolNest {
    open: Vec<Symbol>,
    done: Vec<Symbol>,
    left_out: bool,
}

impl SymbolNest {
    fn take(&mut self, symbol: Symbol) {
        let holds = |outer: &Symbol| outer.range != symbol.range && outer.range.end >= symbol.range.end;
        while self.open.last().is_some_and(|last| !holds(last)) {
            self.close();
        }
        if self.open.len() == MAX_DEPTH {
            self.left_out = true;
            return;
        }
        self.open.push(symbol);
    }

    fn close(&mut self) {
        let Some(symbol) = self.open.pop() else { return };
        match self.open.last_mut() {
            Some(outer) => outer.children.push(symbol),
            None => self.done.push(symbol),
        }
    }

    fn finish(mut self) -> (Vec<Symbol>, bool) {
        while !self.open.is_empty() {
            self.close();
        }
        (self.done, !self.left_out)
    }
}
