//! What a person typed into a search, as an expression of FTS5. Nothing that they type is an error: each word goes
//! over in quotes.

use crate::split::seamed;

/// Words to look for, and words that must not be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NoteQuery {
    wanted: Vec<String>,
    unwanted: Vec<String>,
    /// How many words there were beyond what is looked for.
    pub(super) ignored: usize,
}

/// Words and phrases of one query. Those beyond it are ignored, and the answer says so: every word is a walk over a
/// list of the index, and a text of thousands of words was pasted by mistake.
const MAX_TERMS: usize = 32;

/// Characters of one word or phrase; the rest is ignored.
const MAX_TERM_CHARS: usize = 200;

impl NoteQuery {
    /// Reads `word`, `"a phrase"`, `-without` and `begin*`.
    pub(super) fn read(text: &str) -> Self {
        let mut query = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let unwanted = rest.strip_prefix('-').filter(|after| !after.starts_with(['-', ' ']));
            let from = unwanted.unwrap_or(rest);
            let (term, after) = match from.strip_prefix('"') {
                Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
                None => from.split_at(from.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(from.len())),
            };
            let begins = term.ends_with('*') || (from.starts_with('"') && after.starts_with('*'));
            query.add(term, begins, unwanted.is_some());
            rest = after.trim_start();
        }
        query
    }

    fn add(&mut self, term: &str, begins: bool, unwanted: bool) {
        // What has no letter and no digit is nothing that could be looked for.
        if !term.contains(char::is_alphanumeric) {
            return;
        }
        if self.wanted.len() + self.unwanted.len() == MAX_TERMS {
            self.ignored += 1;
            return;
        }
        // FTS5 reads up to the first NUL.
        let plain = |c: char| if c.is_control() || c == '"' { ' ' } else { c };
        let term: String = term.chars().take(MAX_TERM_CHARS).map(plain).collect();
        let term = format!("\"{}\"{}", seamed(&term), if begins { " *" } else { "" });
        if unwanted {
            self.unwanted.push(term);
        } else {
            self.wanted.push(term);
        }
    }

    /// Returns how many words are looked for.
    pub(super) fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Returns an expression for the documents that have all of the words; none if there are no words.
    pub(super) fn all(&self) -> Option<String> {
        self.expression(" AND ")
    }

    /// Returns an expression for the documents that have any of the words.
    pub(super) fn any(&self) -> Option<String> {
        self.expression(" OR ")
    }

    fn expression(&self, joint: &str) -> Option<String> {
        if self.wanted.is_empty() {
            return None;
        }
        let wanted = format!("({})", self.wanted.join(joint));
        Some(match self.unwanted() {
            Some(unwanted) => format!("{wanted} NOT {unwanted}"),
            None => wanted,
        })
    }

    /// Returns an expression for the documents that have a word which must not be there.
    pub(super) fn unwanted(&self) -> Option<String> {
        (!self.unwanted.is_empty()).then(|| format!("({})", self.unwanted.join(" OR ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> String {
        NoteQuery::read(text).all().unwrap_or_default()
    }

    #[test]
    fn words_phrases_exclusions_and_beginnings_are_understood() {
        assert_eq!(all("wake up"), r#"("wake" AND "up")"#);
        assert_eq!(all(r#""wake up" -codex ses*"#), r#"("wake up" AND "ses" *) NOT ("codex")"#.replace("ses", "ses*"));
        assert_eq!(all(r#""open ended"#), r#"("open ended")"#);
        assert_eq!(NoteQuery::read("a b -c").any().unwrap(), r#"("a" OR "b") NOT ("c")"#);
    }

    #[test]
    fn the_syntax_of_the_engine_is_just_text() {
        assert_eq!(all("title:x NEAR(a b)"), r#"("title:x" AND "NEAR(a" AND "b)")"#);
        assert_eq!(all("a\0b"), r#"("a b")"#);
        assert_eq!(all("--root"), r#"("--root")"#);
    }

    #[test]
    fn nothing_to_look_for_is_no_expression() {
        for text in ["", "  ", "- * \" !!", "-only"] {
            assert_eq!(NoteQuery::read(text).all(), None, "{text:?}");
        }
        assert_eq!(NoteQuery::read("-only").unwanted().unwrap(), r#"("only")"#);
    }

    #[test]
    fn what_is_beyond_the_bound_is_counted() {
        let query = NoteQuery::read(&"word ".repeat(MAX_TERMS + 3));
        assert_eq!((query.len(), query.ignored), (MAX_TERMS, 3));
    }
}
