//! A part of the syntax tree as JSON: the nodes that have names, down to some depth and as many as are wanted.

use std::ops::Range;

use serde::Serialize;
use serde_json::Value;
use tree_sitter::{Node, Tree};

use super::places::PlaceIndex;

/// What of a tree is wanted.
pub(super) struct TreePart {
    pub(super) depth: usize,
    pub(super) limit: usize,
    /// The nodes that touch this, and all others only as far as they hold such; everything if `None`.
    pub(super) range: Option<Range<usize>>,
}

/// A node, as results have it.
#[derive(Debug, Serialize)]
pub(super) struct ShownNode {
    kind: String,
    range: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_missing: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<Self>>,
}

/// A text is quoted in a node that has no nodes in it, as far as this.
const MAX_TEXT: usize = 80;

/// Returns the part, and whether nothing of it was left out for its depth or number.
pub(super) fn show(tree: &Tree, text: &str, places: &PlaceIndex<'_>, part: &TreePart) -> (Option<ShownNode>, bool) {
    let mut drawing = Drawing { text, places, part, left: part.limit, is_whole: true };
    let root = tree.root_node();
    let shown = drawing.node(root, None, part.depth);
    (shown, drawing.is_whole)
}

struct Drawing<'a> {
    text: &'a str,
    places: &'a PlaceIndex<'a>,
    part: &'a TreePart,
    left: usize,
    is_whole: bool,
}

impl Drawing<'_> {
    /// Goes as deep as was asked for, which `syntax.rs` bounds.
    fn node(&mut self, node: Node<'_>, field: Option<&str>, depth: usize) -> Option<ShownNode> {
        if let Some(wanted) = &self.part.range {
            let range = node.byte_range();
            let touches = range.start <= wanted.end && wanted.start <= range.end;
            if !touches {
                return None;
            }
        }
        if self.left == 0 {
            self.is_whole = false;
            return None;
        }
        self.left -= 1;
        let mut shown = ShownNode {
            kind: node.kind().to_owned(),
            range: self.places.range(node.byte_range()),
            field: field.map(str::to_owned),
            is_missing: node.is_missing(),
            text: None,
            children: None,
        };
        if node.named_child_count() == 0 {
            let text = self.text.get(node.byte_range()).unwrap_or_default();
            let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
            shown.text = Some(text[..end].to_owned());
            return Some(shown);
        }
        if depth == 0 {
            self.is_whole = false;
            return Some(shown);
        }
        let mut children = Vec::new();
        let mut cursor = node.walk();
        let mut is_more = cursor.goto_first_child();
        // A node can have a million children; those that are not shown are not looked at.
        while is_more && self.left > 0 {
            if cursor.node().is_named() {
                children.extend(self.node(cursor.node(), cursor.field_name(), depth - 1));
            }
            is_more = cursor.goto_next_sibling();
        }
        self.is_whole &= !is_more;
        shown.children = Some(children);
        Some(shown)
    }
}
