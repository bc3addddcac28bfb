//! Changes in TOML that a person wrote. As in `jsonc.rs` the text is spliced, never printed, and removing is the inverse
//! of adding: a table is added at the end, behind one line end more than there was.

use std::ops::Range;

use serde_json::Value;
use toml_edit::{Document, InlineTable, Item, Key, Table, TableLike};

use super::{
    EditError, LineColumn,
    node::ConfigNode,
    splice::{Splice, apply, newline},
};

/// A text that was understood.
pub(super) struct Toml<'a> {
    text: &'a str,
    document: Document<&'a str>,
}

impl<'a> Toml<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, EditError> {
        let document = Document::parse(text).map_err(|error| EditError::Broken {
            spot: LineColumn::of(text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
        })?;
        Ok(Self { text, document })
    }

    /// Returns all of it.
    pub(super) fn value(&self) -> Value {
        toml::from_str(self.text).unwrap_or(Value::Null)
    }

    /// Returns the text of an entry, as it is written: its tables with their headers, or its value.
    pub(super) fn raw(&self, container: &str, name: &str) -> Result<Option<String>, EditError> {
        let Some((key, item)) = self.entry(container, name)? else {
            return Ok(None);
        };
        if self.inline(container)?.is_some() || item.is_inline_table() {
            return Ok(item.span().map(|span| self.text[span].to_owned()));
        }
        let lines = self.lines(key, item).into_iter().map(|range| self.text[range].to_owned());
        Ok(Some(lines.collect()))
    }

    /// Returns the text with an entry that is not there yet.
    pub(super) fn insert(&self, container: &str, name: &str, node: &ConfigNode) -> Result<String, EditError> {
        if self.entry(container, name)?.is_some() {
            return Err(EditError::Unsafe);
        }
        let newline = newline(self.text);
        if let Some(inline) = self.inline(container)? {
            let member = format!("{} = {}", Key::new(name), node.toml().to_string().trim());
            let last = inline.iter().filter_map(|(_, item)| item.span()).map(|span| span.end).max();
            let open = inline.span().ok_or(EditError::Unsafe)?.start + 1;
            let splice = match last {
                Some(end) => Splice::add(end, format!(", {member}")),
                None => Splice::add(open, member),
            };
            return Ok(apply(self.text, vec![splice]));
        }
        let block = block(container, name, node, newline);
        Ok(match self.text {
            "" => block,
            text if text.ends_with('\n') => format!("{text}{newline}{block}"),
            // A file without a last line end has none afterwards either.
            text => format!("{text}{newline}{newline}{}", block.trim_end()),
        })
    }

    /// Returns the text with another value for an entry that is there.
    pub(super) fn replace(&self, container: &str, name: &str, node: &ConfigNode) -> Result<String, EditError> {
        let (key, item) = self.entry(container, name)?.ok_or(EditError::Unsafe)?;
        if item.is_inline_table() {
            let span = item.span().ok_or(EditError::Unsafe)?;
            return Ok(apply(self.text, vec![Splice::new(span, node.toml().to_string().trim().to_owned())]));
        }
        let newline = newline(self.text);
        let mut block = block(container, name, node, newline);
        let mut splices: Vec<Splice> = self.lines(key, item).into_iter().map(Splice::cut).collect();
        let last = splices.last().ok_or(EditError::Unsafe)?.range.end;
        if last == self.text.len() && !self.text.ends_with('\n') {
            block.truncate(block.trim_end().len());
        }
        // Dotted keys stand among others; a table in their place would swallow what follows.
        if item.as_table().is_none_or(|table| table.is_dotted() || table.is_implicit()) {
            let without = apply(self.text, splices);
            return Toml::parse(&without)?.insert(container, name, node);
        }
        let start = splices[0].range.clone();
        splices[0] = Splice::new(start, block);
        Ok(apply(self.text, splices))
    }

    /// Returns the text with another text as the value of a key in an entry.
    pub(super) fn set(&self, container: &str, name: &str, field: &str, text: &str) -> Result<String, EditError> {
        let (_, item) = self.entry(container, name)?.ok_or(EditError::Unsafe)?;
        let value = item.as_table_like().and_then(|table| table.get(field)).ok_or(EditError::Unsafe)?;
        let span = value.span().ok_or(EditError::Unsafe)?;
        Ok(apply(self.text, vec![Splice::new(span, toml_edit::Value::from(text).to_string())]))
    }

    /// Returns the text without an entry. Nothing else moves.
    pub(super) fn remove(&self, container: &str, name: &str) -> Result<String, EditError> {
        let Some((key, item)) = self.entry(container, name)? else {
            return Ok(self.text.to_owned());
        };
        if let Some(inline) = self.inline(container)? {
            return Ok(apply(self.text, vec![self.inline_removal(inline, key, item)?]));
        }
        let mut splices: Vec<Splice> = Vec::new();
        for mut range in self.lines(key, item) {
            if self.text[range.clone()].trim_start().starts_with('[') {
                range.start = self.before_gap(&range);
            }
            splices.push(Splice::cut(range));
        }
        Ok(apply(self.text, splices))
    }

    /// Returns the place before the line end that stands in front of a table, and before one more at the end of a file
    /// that has no last line end: what `insert` puts there.
    fn before_gap(&self, table: &Range<usize>) -> usize {
        let mut before = &self.text[..table.start];
        let is_last = table.end == self.text.len() && !self.text.ends_with('\n');
        let most = if is_last { 2 } else { 1 };
        for _ in 0..most {
            let Some(shorter) = before.strip_suffix('\n') else {
                break;
            };
            let shorter = shorter.strip_suffix('\r').unwrap_or(shorter);
            // The end of the line above is that line's own, unless the file ends with our table and no line end.
            if !is_last && !shorter.is_empty() && !shorter.ends_with('\n') {
                break;
            }
            before = shorter;
        }
        before.len()
    }

    /// What takes an entry out of an inline table.
    fn inline_removal(&self, inline: &InlineTable, key: &Key, item: &Item) -> Result<Splice, EditError> {
        let start = key.span().ok_or(EditError::Unsafe)?.start;
        let end = item.span().ok_or(EditError::Unsafe)?.end;
        let ends = inline.iter().filter_map(|(_, item)| item.span()).map(|span| span.end);
        if let Some(before) = ends.filter(|end| *end <= start).max() {
            return Ok(Splice::cut(before..end));
        }
        let after = &self.text[end..];
        let to = match after.trim_start().strip_prefix(',') {
            Some(rest) => self.text.len() - rest.trim_start_matches(' ').len(),
            None => end,
        };
        Ok(Splice::cut(start..to))
    }

    /// Returns the lines of an entry: one range for each table with a header, one for each other line.
    fn lines(&self, key: &Key, item: &Item) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        self.collect(key, item, &mut ranges);
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    fn collect(&self, key: &Key, item: &Item, ranges: &mut Vec<Range<usize>>) {
        let Some(table) = item.as_table() else {
            if let (Some(key), Some(value)) = (key.span(), item.span()) {
                ranges.push(self.whole_lines(key.start..value.end));
            }
            return;
        };
        let header = table.span().filter(|_| !table.is_dotted() && !table.is_implicit());
        match header {
            Some(header) => {
                let end = last_value(table).unwrap_or(header.end).max(header.end);
                ranges.push(self.whole_lines(header.start..end));
                for (name, item) in table.iter().filter(|(_, item)| has_header(item)) {
                    if let Some(key) = table.key(name) {
                        self.collect(key, item, ranges);
                    }
                }
            }
            None => {
                for (name, item) in table.iter() {
                    if let Some(key) = table.key(name) {
                        self.collect(key, item, ranges);
                    }
                }
            }
        }
    }

    fn whole_lines(&self, range: Range<usize>) -> Range<usize> {
        let start = self.text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        let end = self.text[range.end..].find('\n').map_or(self.text.len(), |end| range.end + end + 1);
        start..end
    }

    fn entry(&self, container: &str, name: &str) -> Result<Option<(&Key, &Item)>, EditError> {
        let Some(item) = self.document.get(container) else {
            return Ok(None);
        };
        let Some(table) = item.as_table_like() else {
            let key = self.document.as_table().key(container).and_then(Key::span);
            let spot = LineColumn::of(self.text, key.or_else(|| item.span()).map_or(0, |span| span.start));
            return Err(EditError::WrongType { spot, what: format!("{container:?}") });
        };
        Ok(key_value(table, name))
    }

    fn inline(&self, container: &str) -> Result<Option<&InlineTable>, EditError> {
        Ok(self.document.get(container).and_then(Item::as_inline_table))
    }
}

fn key_value<'t>(table: &'t dyn TableLike, name: &str) -> Option<(&'t Key, &'t Item)> {
    table.get_key_value(name).filter(|(_, item)| !item.is_none())
}

/// The end of the last value that stands under a table's own header.
fn last_value(table: &Table) -> Option<usize> {
    let values = table.iter().filter(|(_, item)| !has_header(item));
    values
        .filter_map(|(_, item)| match item.as_table() {
            Some(dotted) => last_value(dotted),
            None => item.span().map(|span| span.end),
        })
        .max()
}

/// Whether something stands under a header of its own.
fn has_header(item: &Item) -> bool {
    item.is_array_of_tables() || item.as_table().is_some_and(|table| !table.is_dotted())
}

/// Returns a table with its header.
fn block(container: &str, name: &str, node: &ConfigNode, newline: &str) -> String {
    let members = match node {
        ConfigNode::Raw(text) if text.trim_start().starts_with('[') => return text.clone(),
        ConfigNode::Table(members) => members.iter().map(|(name, node)| (name.clone(), node.toml())).collect(),
        other => match other.toml() {
            toml_edit::Value::InlineTable(table) => {
                table.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
            }
            _ => Vec::new(),
        },
    };
    let mut text = format!("[{}.{}]{newline}", Key::new(container), Key::new(name));
    for (name, value) in members {
        text.push_str(&format!("{} = {}{newline}", Key::new(name), value.to_string().trim()));
    }
    text
}
