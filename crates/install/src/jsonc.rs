//! Changes in JSON that a person wrote, comments, trailing commas and all. Every byte that is not ours stays.
//!
//! The text is never printed from a tree: what is added is spliced in, and what is removed is exactly what adding would
//! have put there. So adding and removing are each other's inverse even when nobody remembers what was there before.
//! The one thing that a text does not tell by itself is whether an object was there, and empty, before our entry came
//! into it; therefore an entry in an empty object follows its brace at once (`{"prism": …}`), and in an object that we
//! made there is a blank or a line end between the two.

mod items;

use std::ops::Range;

use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    ast::{Object, ObjectProp, Value as Ast},
    common::Ranged,
    errors::ParseError,
    parse_to_ast,
    tokens::{Token, TokenAndRange},
};
use serde_json::Value;

use super::{
    EditError, LineColumn,
    node::{ConfigNode, JsonLayout},
    splice::{Splice, apply, newline},
};

/// A text that was understood.
pub(super) struct Jsonc<'a> {
    text: &'a str,
    /// `None`: there is nothing in it, but blanks and comments.
    root: Option<Object<'a>>,
    /// Comments among them.
    tokens: Vec<TokenAndRange<'a>>,
}

/// A member of an object.
#[derive(Clone, Copy)]
struct JsonMember<'m, 'a> {
    parent: &'m Object<'a>,
    property: &'m ObjectProp<'a>,
}

/// Whether objects that are left empty go too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmptyObjectRule {
    /// They were there before.
    Stays,
    /// If they look like ones that we made.
    GoesIfOurs,
}

// === impl Jsonc ===

impl<'a> Jsonc<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, EditError> {
        let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let parsed = parse_to_ast(text, &collect, &options).map_err(|error| broken(&error))?;
        let root = match parsed.value {
            Some(Ast::Object(root)) => Some(root),
            Some(other) => {
                return Err(EditError::WrongType {
                    spot: LineColumn::of(text, other.start()),
                    what: "the file".to_owned(),
                });
            }
            None => None,
        };
        Ok(Self { text, root, tokens: parsed.tokens.unwrap_or_default() })
    }

    /// Returns all of it.
    pub(super) fn value(&self) -> Value {
        self.root.as_ref().map_or(Value::Null, object)
    }

    /// Returns the text of a member, as it is written.
    pub(super) fn raw(&self, path: &[&str]) -> Result<Option<&'a str>, EditError> {
        Ok(self.member(path)?.map(|member| &self.text[member.property.value.start()..member.property.value.end()]))
    }

    /// Returns the text with a member that is not there yet, and the objects around it that it needs.
    pub(super) fn insert(&self, path: &[&str], node: &ConfigNode) -> Result<String, EditError> {
        let newline = newline(self.text);
        let Some(root) = &self.root else {
            let layout = JsonLayout::Lines { indent: String::new(), unit: "  ".to_owned(), newline };
            let gap = if self.text.is_empty() || self.text.ends_with('\n') { "" } else { newline };
            return Ok(format!(
                "{}{gap}{}{newline}",
                self.text,
                layout.container(&nested(path, node, &layout.inner()))
            ));
        };
        let mut target = root;
        let mut rest = path;
        while let [name, below @ ..] = rest
            && !below.is_empty()
            && let Some(member) = self.find(target, name)?
        {
            target = self.as_object(member, name)?;
            rest = below;
        }
        if let [name] = rest
            && self.find(target, name)?.is_some()
        {
            return Err(EditError::Unsafe);
        }
        Ok(apply(self.text, self.insertion(root, target, rest, node)))
    }

    /// Returns the text with another value for a member that is there.
    pub(super) fn replace(&self, path: &[&str], node: &ConfigNode) -> Result<String, EditError> {
        let JsonMember { parent, property } = self.member(path)?.ok_or(EditError::Unsafe)?;
        let value = &property.value;
        let in_lines = self.text[value.start()..value.end()].contains('\n') || self.in_lines(parent);
        let layout = self.layout(in_lines, self.indent(property.start()), parent);
        Ok(apply(self.text, vec![Splice::new(value.start()..value.end(), node.json(&layout))]))
    }

    /// Returns the text with another name for a member.
    pub(super) fn rename(&self, path: &[&str], name: &str) -> Result<String, EditError> {
        let property = self.member(path)?.ok_or(EditError::Unsafe)?.property;
        Ok(apply(self.text, vec![Splice::new(property.name.start()..property.name.end(), super::node::quoted(name))]))
    }

    /// Returns the text without a member. Nothing else moves.
    pub(super) fn remove(&self, path: &[&str], empty: EmptyObjectRule) -> Result<String, EditError> {
        let Some(JsonMember { parent, property }) = self.member(path)? else {
            return Ok(self.text.to_owned());
        };
        if parent.properties.len() > 1 {
            return Ok(apply(self.text, self.removal(property.start()..property.end())));
        }
        let inside = parent.start() + 1..parent.end() - 1;
        let commented = self
            .tokens
            .iter()
            .any(|token| is_comment(token) && inside.contains(&token.start()) && !spans(property, token.start()));
        let follows_at_once = property.start() == inside.start;
        if follows_at_once || commented {
            let end = self.comma_after(property.end()).unwrap_or(property.end());
            return Ok(apply(self.text, vec![Splice::cut(property.start()..end)]));
        }
        match (empty, path) {
            (EmptyObjectRule::GoesIfOurs, [around @ .., _]) if !around.is_empty() => self.remove(around, empty),
            (EmptyObjectRule::GoesIfOurs, _) => {
                let after = &self.text[parent.end()..];
                let line_end = if after.starts_with("\r\n") { 2 } else { usize::from(after.starts_with('\n')) };
                Ok(apply(self.text, vec![Splice::cut(parent.start()..parent.end() + line_end)]))
            }
            (EmptyObjectRule::Stays, _) => Ok(apply(self.text, vec![Splice::cut(inside)])),
        }
    }

    /// What adds the rest of a path to an object that has none of it.
    fn insertion(&self, root: &Object<'a>, target: &Object<'a>, rest: &[&str], node: &ConfigNode) -> Vec<Splice> {
        let Some(last) = target.properties.last() else {
            let in_lines = root.properties.is_empty() || self.text[root.start()..root.end()].contains('\n');
            let layout = self.layout(in_lines, self.indent(target.start()), root);
            return vec![Splice::add(target.start() + 1, nested(rest, node, &layout))];
        };
        let in_lines = self.in_lines(target);
        let first = &target.properties[0];
        let indent = self.own_indent(last).or_else(|| self.own_indent(first)).unwrap_or_default().to_owned();
        let member = nested(rest, node, &self.layout(in_lines, indent.clone(), target));
        let comma = self.comma_after(last.end());
        if !in_lines {
            let blank = if self.is_tight(target) { "" } else { " " };
            return match comma {
                Some(comma) => vec![Splice::add(comma, format!("{blank}{member},"))],
                None => vec![Splice::add(last.end(), format!(",{blank}{member}"))],
            };
        }
        // A comment that stands beside the last member is about that one, and stays beside it.
        let place = self.after_comments(comma.unwrap_or(last.end()));
        let line = format!("{}{indent}{member}", newline(self.text));
        match comma {
            Some(_) => vec![Splice::add(place, format!("{line},"))],
            None => vec![Splice::add(last.end(), ",".to_owned()), Splice::add(place, line)],
        }
    }

    /// What takes a member out of an object, or an element out of a list, that has others.
    fn removal(&self, taken: Range<usize>) -> Vec<Splice> {
        let before = self.tokens.iter().rev().find(|token| token.end() <= taken.start);
        let start = before.map_or(0, |token| self.end_of(token));
        let after = self.comma_after(taken.end);
        let end = after.unwrap_or(taken.end);
        let rest = self.text[end..].trim_start_matches([' ', '\t']);
        // What follows must not become part of a comment.
        let in_comment = before.is_some_and(|token| matches!(token.token, Token::CommentLine(_)))
            && !rest.starts_with(['\n', '\r'])
            && !rest.is_empty();
        let left = if in_comment { newline(self.text).to_owned() } else { String::new() };
        let mut splices = vec![Splice::new(start..end, left)];
        let comma_before = self.tokens.iter().rev().find(|token| token.end() <= taken.start && !is_comment(token));
        if let (None, Some(comma)) = (after, comma_before)
            && matches!(comma.token, Token::Comma)
        {
            match comma.end() == start {
                true => splices[0].range.start = comma.start(),
                false => splices.insert(0, Splice::cut(comma.start()..comma.end())),
            }
        }
        splices
    }

    fn member(&self, path: &[&str]) -> Result<Option<JsonMember<'_, 'a>>, EditError> {
        let (Some(root), [around @ .., name]) = (&self.root, path) else {
            return Ok(None);
        };
        let mut parent = root;
        for name in around {
            match self.find(parent, name)? {
                Some(property) => parent = self.as_object(property, name)?,
                None => return Ok(None),
            }
        }
        Ok(self.find(parent, name)?.map(|property| JsonMember { parent, property }))
    }

    /// Finds a member by its name. Of two, programs take one or the other, so we touch neither.
    fn find<'m>(&self, object: &'m Object<'a>, name: &str) -> Result<Option<&'m ObjectProp<'a>>, EditError> {
        let mut found = object.properties.iter().filter(|property| property.name.as_str() == name);
        let first = found.next();
        match found.next() {
            Some(second) => {
                Err(EditError::Twice { spot: LineColumn::of(self.text, second.start()), name: name.to_owned() })
            }
            None => Ok(first),
        }
    }

    fn as_object<'m>(&self, property: &'m ObjectProp<'a>, name: &str) -> Result<&'m Object<'a>, EditError> {
        property.value.as_object().ok_or_else(|| EditError::WrongType {
            spot: LineColumn::of(self.text, property.start()),
            what: format!("{name:?}"),
        })
    }

    /// Whether each member has a line of its own.
    fn in_lines(&self, object: &Object<'a>) -> bool {
        object.properties.first().is_some_and(|first| self.text[object.start()..first.start()].contains('\n'))
    }

    /// Whether nothing stands between a colon and its value.
    fn is_tight(&self, object: &Object<'a>) -> bool {
        object.properties.first().is_some_and(|first| &self.text[first.name.end()..first.value.start()] == ":")
    }

    fn layout(&self, in_lines: bool, indent: String, near: &Object<'a>) -> JsonLayout {
        match in_lines {
            true => JsonLayout::Lines { indent, unit: self.unit(), newline: newline(self.text) },
            false => JsonLayout::Line { tight: self.is_tight(near) },
        }
    }

    /// The blanks at the start of the line that a place is in.
    fn indent(&self, place: usize) -> String {
        let line = &self.text[self.line_start(place)..];
        line.chars().take_while(|c| matches!(c, ' ' | '\t')).collect()
    }

    /// The blanks before a member or an element, if it begins its line.
    fn own_indent(&self, value: &impl Ranged) -> Option<&'a str> {
        let before = &self.text[self.line_start(value.start())..value.start()];
        before.chars().all(|c| matches!(c, ' ' | '\t')).then_some(before)
    }

    fn line_start(&self, place: usize) -> usize {
        self.text[..place].rfind('\n').map_or(0, |end| end + 1)
    }

    /// One step of indentation: that of the outermost members.
    fn unit(&self) -> String {
        let members = self.root.iter().flat_map(|root| &root.properties);
        let mut indents = members.filter_map(|property| self.own_indent(property)).filter(|indent| !indent.is_empty());
        indents.next().unwrap_or("  ").to_owned()
    }

    /// The end of the comma that follows, whatever comments stand between.
    fn comma_after(&self, place: usize) -> Option<usize> {
        let next = self.tokens.iter().find(|token| token.start() >= place && !is_comment(token))?;
        matches!(next.token, Token::Comma).then(|| next.end())
    }

    /// The end of the comments that begin in the same line.
    fn after_comments(&self, place: usize) -> usize {
        let mut end = place;
        for token in self.tokens.iter().filter(|token| token.start() >= place) {
            if !is_comment(token) || self.text[end..token.end()].contains('\n') {
                break;
            }
            end = self.end_of(token);
        }
        end
    }

    /// The end of a token, without the first half of a line end.
    fn end_of(&self, token: &TokenAndRange<'a>) -> usize {
        let text = &self.text[..token.end()];
        text.strip_suffix('\r').unwrap_or(text).len()
    }
}

/// Returns a member, within as many objects of ours as its path has names left.
fn nested(path: &[&str], node: &ConfigNode, layout: &JsonLayout) -> String {
    match path {
        [] => String::new(),
        [name] => layout.member(name, node),
        [name, rest @ ..] => {
            let container = layout.container(&nested(rest, node, &layout.inner()));
            layout.member(name, &ConfigNode::Raw(container))
        }
    }
}

fn is_comment(token: &TokenAndRange<'_>) -> bool {
    matches!(token.token, Token::CommentLine(_) | Token::CommentBlock(_))
}

fn spans(value: &impl Ranged, place: usize) -> bool {
    (value.start()..value.end()).contains(&place)
}

fn object(object: &Object<'_>) -> Value {
    object.properties.iter().map(|property| (property.name.as_str().to_owned(), value(&property.value))).collect()
}

fn value(ast: &Ast<'_>) -> Value {
    match ast {
        Ast::StringLit(text) => text.value.clone().into_owned().into(),
        Ast::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Ast::BooleanLit(flag) => flag.value.into(),
        Ast::Object(members) => object(members),
        Ast::Array(array) => array.elements.iter().map(value).collect(),
        Ast::NullKeyword(_) => Value::Null,
    }
}

fn broken(error: &ParseError) -> EditError {
    EditError::Broken {
        spot: LineColumn { line: error.line_display(), column: error.column_display() },
        problem: error.kind().to_string(),
    }
}
