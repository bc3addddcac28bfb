//! Where a text is not what its grammar says.

use std::ops::Range;

use tree_sitter::{Node, Tree};

/// Something that should not stand there, or does not and should.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    pub(super) range: Range<usize>,
    pub(super) message: String,
}

/// Returns what is wrong, in the text's order, and whether that is all; at most `most`.
pub(super) fn find(tree: &Tree, text: &str, most: usize) -> (Vec<SyntaxFault>, bool) {
    let mut faults = Vec::new();
    let root = tree.root_node();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        // What is within something wrong is mostly right by itself. Where nothing is right, the root says too little.
        let is_told = node.is_missing() || node.is_error() && node.id() != root.id();
        if is_told {
            if faults.len() == most {
                return (faults, false);
            }
            faults.push(fault(node, text));
        }
        if !is_told && node.has_error() && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                if faults.is_empty() && root.has_error() {
                    faults.push(fault(root, text));
                }
                return (faults, true);
            }
        }
    }
}

/// As much of the text as a message should hold.
const MAX_QUOTED: usize = 40;

fn fault(node: Node<'_>, text: &str) -> SyntaxFault {
    let range = node.byte_range();
    let message = match node.is_missing() {
        true if node.is_named() => format!("{} is missing", node.kind().replace('_', " ")),
        true => format!("`{}` is missing", node.kind()),
        false => {
            let line = text.get(range.clone()).unwrap_or_default().trim_start().lines().next().unwrap_or_default();
            match line.char_indices().nth(MAX_QUOTED) {
                _ if line.trim().is_empty() => "something is missing or unexpected".to_owned(),
                Some((end, _)) => format!("unexpected `{}…`", &line[..end]),
                None => format!("unexpected `{}`", line.trim_end()),
            }
        }
    };
    SyntaxFault { range, message }
}
