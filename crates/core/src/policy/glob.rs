//! Patterns in rules: `*` stands for any text, `?` for one character, everything else for itself. Capitals count.

use std::fmt;

/// Characters of one pattern. Whoever wrote a longer one is told so: a match takes at most pattern × text steps, and this
/// keeps it linear in what a client can choose.
pub const MAX_PATTERN: usize = 256;

/// One pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameGlob {
    text: Box<str>,
    kind: GlobKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum GlobKind {
    Exact,
    /// What comes before the one star, at the end.
    Begins(usize),
    Any(Box<[char]>),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    #[error("a pattern is not empty")]
    Empty,
    #[error("a pattern has at most {MAX_PATTERN} characters")]
    TooLong,
}

impl NameGlob {
    pub fn new(text: &str) -> Result<Self, GlobError> {
        if text.is_empty() {
            return Err(GlobError::Empty);
        }
        if text.chars().count() > MAX_PATTERN {
            return Err(GlobError::TooLong);
        }
        let kind = match text.find(['*', '?']) {
            None => GlobKind::Exact,
            Some(at) if at + 1 == text.len() && text.ends_with('*') => GlobKind::Begins(at),
            Some(_) => GlobKind::Any(text.chars().collect()),
        };
        Ok(Self { text: text.into(), kind })
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether all of a text is what the pattern stands for.
    pub fn fits(&self, text: &str) -> bool {
        match &self.kind {
            GlobKind::Exact => *self.text == *text,
            GlobKind::Begins(length) => text.as_bytes().starts_with(&self.text.as_bytes()[..*length]),
            GlobKind::Any(pattern) => fits(pattern, text),
        }
    }
}

impl fmt::Display for NameGlob {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The last star takes one character more whenever what follows it does not fit; no star before it has to be tried again.
fn fits(pattern: &[char], text: &str) -> bool {
    let (mut at, mut rest) = (0, text.chars());
    let mut star: Option<(usize, std::str::Chars)> = None;
    loop {
        let before = rest.clone();
        match (pattern.get(at), rest.next()) {
            (Some('*'), _) => {
                at += 1;
                star = Some((at, before.clone()));
                rest = before;
            }
            (Some('?'), Some(_)) => at += 1,
            (Some(wanted), Some(found)) if *wanted == found => at += 1,
            (None, None) => return true,
            _ => {
                let Some((after, from)) = &mut star else { return false };
                if from.next().is_none() {
                    return false;
                }
                (at, rest) = (*after, from.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> NameGlob {
        NameGlob::new(text).expect("a pattern")
    }

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (pattern, text, does) in [
            ("delete_*", "delete_all", true),
            ("delete_*", "delete_", true),
            ("delete_*", "undelete_x", false),
            ("*", "", true),
            ("**", "x", true),
            ("?", "é", true),
            ("?", "", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*_?", "a_b_c", true),
            ("*_?", "a_b_", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("*aab", "aaab", true),
            ("read", "read", true),
            ("read", "Read", false),
            ("[a-z]", "b", false),
        ] {
            assert_eq!(glob(pattern).fits(text), does, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_has_a_length() {
        assert_eq!(NameGlob::new(""), Err(GlobError::Empty));
        assert_eq!(NameGlob::new(&"é".repeat(MAX_PATTERN + 1)), Err(GlobError::TooLong));
        assert!(glob(&"é".repeat(MAX_PATTERN)).fits(&"é".repeat(MAX_PATTERN)));
    }

    #[test]
    fn the_worst_pattern_is_no_trouble() {
        let pattern = glob(&format!("{}b", "*a".repeat(100)));
        assert!(!pattern.fits(&"a".repeat(100_000)));
    }

    /// What the words say, one case after the other.
    fn plainly(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|skipped| plainly(rest, &text[skipped..])),
            (['?', rest @ ..], [_, text @ ..]) => plainly(rest, text),
            ([wanted, rest @ ..], [found, text @ ..]) => wanted == found && plainly(rest, text),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_fits_where_the_words_say_so(pattern in "[ab*?é]{1,7}", text in "[abé]{0,8}") {
            let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(glob(&pattern).fits(&text), plainly(&p, &t));
        }
    }
}
