//! Elements of lists. As with members, removing one is the inverse of adding it: an element in a list that was there, and
//! empty, follows its bracket at once, and in a list that we made there is a blank or a line end between the two.

use jsonc_parser::{
    ast::{Array, Value as Ast},
    common::Ranged,
};
use serde_json::Value;

use super::{EmptyObjectRule, Jsonc, is_comment, newline, spans, value};
use crate::{
    EditError, LineColumn,
    node::ConfigNode,
    splice::{Splice, apply},
};

impl<'a> Jsonc<'a> {
    /// Returns the elements of a list; none if there is no list.
    pub(crate) fn items(&self, path: &[&str]) -> Result<Vec<Value>, EditError> {
        Ok(self.list(path)?.map(|list| list.elements.iter().map(value).collect()).unwrap_or_default())
    }

    /// Returns the text with one more element at the end of a list, which is made where there is none.
    pub(crate) fn append(&self, path: &[&str], node: &ConfigNode) -> Result<String, EditError> {
        let Some(list) = self.list(path)? else {
            return self.insert(path, &ConfigNode::Items(vec![node.clone()]));
        };
        let Some(parent) = self.member(path)?.map(|member| member.parent) else { return Err(EditError::Unsafe) };
        let (Some(first), Some(last)) = (list.elements.first(), list.elements.last()) else {
            let layout = self.layout(self.in_lines(parent), self.indent(list.start()), parent);
            return Ok(apply(self.text, vec![Splice::add(list.start() + 1, node.json(&layout))]));
        };
        let in_lines = self.text[list.start()..first.start()].contains('\n');
        let indent = self.own_indent(last).or_else(|| self.own_indent(first)).unwrap_or_default().to_owned();
        let element = node.json(&self.layout(in_lines, indent.clone(), parent));
        let comma = self.comma_after(last.end());
        if !in_lines {
            let blank = if self.is_tight(parent) { "" } else { " " };
            return Ok(apply(
                self.text,
                match comma {
                    Some(comma) => vec![Splice::add(comma, format!("{blank}{element},"))],
                    None => vec![Splice::add(last.end(), format!(",{blank}{element}"))],
                },
            ));
        }
        let place = self.after_comments(comma.unwrap_or(last.end()));
        let line = format!("{}{indent}{element}", newline(self.text));
        let splices = match comma {
            Some(_) => vec![Splice::add(place, format!("{line},"))],
            None => vec![Splice::add(last.end(), ",".to_owned()), Splice::add(place, line)],
        };
        Ok(apply(self.text, splices))
    }

    /// Returns the text with another element in the place of one.
    pub(crate) fn replace_item(&self, path: &[&str], at: usize, node: &ConfigNode) -> Result<String, EditError> {
        let list = self.list(path)?.ok_or(EditError::Unsafe)?;
        let old = list.elements.get(at).ok_or(EditError::Unsafe)?;
        let parent = self.member(path)?.ok_or(EditError::Unsafe)?.parent;
        let in_lines = self.text[old.start()..old.end()].contains('\n');
        let layout = self.layout(in_lines, self.indent(old.start()), parent);
        Ok(apply(self.text, vec![Splice::new(old.start()..old.end(), node.json(&layout))]))
    }

    /// Returns the text without one element. Nothing else moves.
    pub(crate) fn remove_item(&self, path: &[&str], at: usize, empty: EmptyObjectRule) -> Result<String, EditError> {
        let list = self.list(path)?.ok_or(EditError::Unsafe)?;
        let element = list.elements.get(at).ok_or(EditError::Unsafe)?;
        if list.elements.len() > 1 {
            return Ok(apply(self.text, self.removal(element.start()..element.end())));
        }
        let inside = list.start() + 1..list.end() - 1;
        let commented = self
            .tokens
            .iter()
            .any(|token| is_comment(token) && inside.contains(&token.start()) && !spans(element, token.start()));
        let follows_at_once = element.start() == inside.start;
        if follows_at_once || commented {
            let end = self.comma_after(element.end()).unwrap_or(element.end());
            return Ok(apply(self.text, vec![Splice::cut(element.start()..end)]));
        }
        match empty {
            EmptyObjectRule::GoesIfOurs => self.remove(path, empty),
            EmptyObjectRule::Stays => Ok(apply(self.text, vec![Splice::cut(inside)])),
        }
    }

    fn list(&self, path: &[&str]) -> Result<Option<&Array<'a>>, EditError> {
        let Some(member) = self.member(path)? else { return Ok(None) };
        match &member.property.value {
            Ast::Array(list) => Ok(Some(list)),
            other => Err(EditError::NoList {
                spot: LineColumn::of(self.text, other.start()),
                what: format!("{:?}", path.last().copied().unwrap_or_default()),
            }),
        }
    }
}
