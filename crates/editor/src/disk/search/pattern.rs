//! What is looked for: words, or a regular expression. The engine is ripgrep's, which takes time in proportion to the text,
//! whatever the expression.

use std::cell::Cell;

use grep_matcher::{Captures, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

/// Something to look for.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(super) matcher: RegexMatcher,
    /// Whether a match may go over several lines.
    is_multiline: bool,
}

/// How it is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchOptions {
    pub(crate) ignores_case: bool,
    pub(crate) is_word: bool,
    pub(crate) is_multiline: bool,
}

/// What is put in the place of what was found.
#[derive(Debug)]
pub(crate) struct ReplacementText {
    text: String,
    /// Parts of what was found that may be in it.
    captures: usize,
    /// What might have been put in so far.
    bytes: Cell<usize>,
}

/// The most that one action puts in.
pub(super) const MAX_NEW: usize = 8 << 20;

/// The longest that is looked for.
const MAX_LENGTH: usize = 8 * 1024;

/// What an expression may become when it is made ready, and what it may remember on its way through a text.
const MAX_COMPILED: usize = 16 << 20;
const MAX_REMEMBERED: usize = 16 << 20;

/// The longest line, and with several lines in a match the longest file. One that is longer is left out, and the answer says
/// that it is not complete.
const MAX_HELD: usize = 32 << 20;

impl Pattern {
    pub(crate) fn words(words: &str, how: SearchOptions) -> Result<Self, String> {
        if words.is_empty() || words.contains(['\n', '\r']) {
            return Err("must be a part of one line".to_owned());
        }
        Self::new(words, how, RegexMatcherBuilder::new().fixed_strings(true))
    }

    pub(crate) fn expression(expression: &str, how: SearchOptions) -> Result<Self, String> {
        if expression.is_empty() {
            return Err("is empty".to_owned());
        }
        Self::new(expression, how, &mut RegexMatcherBuilder::new())
    }

    fn new(pattern: &str, how: SearchOptions, builder: &mut RegexMatcherBuilder) -> Result<Self, String> {
        if pattern.len() > MAX_LENGTH {
            return Err(format!("must have at most {MAX_LENGTH} bytes"));
        }
        builder
            .multi_line(true)
            .case_insensitive(how.ignores_case)
            .word(how.is_word)
            .size_limit(MAX_COMPILED)
            .dfa_size_limit(MAX_REMEMBERED);
        if how.is_multiline {
            builder.crlf(true).line_terminator(None);
        } else {
            builder.crlf(true);
        }
        let told = |error: grep_regex::Error| {
            let hint = if error.to_string().contains("not allowed in a regex") {
                "; `multiline` lets a match go over several lines"
            } else {
                ""
            };
            format!("is no expression that can be looked for: {error}{hint}")
        };
        let matcher = builder.build(pattern).map_err(told)?;
        Ok(Self { matcher, is_multiline: how.is_multiline })
    }

    pub(super) fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(grep_matcher::LineTerminator::crlf())
            .multi_line(self.is_multiline)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HELD))
            .build()
    }

    /// Finds all in some lines, from left to right, where they do not overlap. With a replacement, each comes with what it is
    /// replaced by.
    pub(super) fn each(
        &self,
        lines: &[u8],
        new: Option<&ReplacementText>,
        mut found: impl FnMut(usize, usize, String) -> bool,
    ) {
        let Some(new) = new else {
            let _ = self.matcher.find_iter(lines, |at| found(at.start(), at.end(), String::new()));
            return;
        };
        let Ok(mut captures) = self.matcher.new_captures() else { return };
        let _ = self.matcher.captures_iter(lines, &mut captures, |captures| {
            let Some(whole) = captures.get(0) else { return true };
            if !new.fits(whole.len()) {
                return false;
            }
            let mut text = Vec::new();
            captures.interpolate(|name| self.matcher.capture_index(name), lines, new.text.as_bytes(), &mut text);
            found(whole.start(), whole.end(), String::from_utf8_lossy(&text).into_owned())
        });
    }

    pub(super) fn is_multiline(&self) -> bool {
        self.is_multiline
    }
}

// === impl ReplacementText ===

impl ReplacementText {
    /// Words that are put in as they are.
    pub(crate) fn words(words: &str) -> Self {
        Self::with_captures(&words.replace('$', "$$"))
    }

    /// With `$1` and `${name}` for parts of what was found, and `$$` for a dollar sign.
    pub(crate) fn with_captures(text: &str) -> Self {
        let captures = memchr::memchr_iter(b'$', text.as_bytes()).count();
        Self { text: text.to_owned(), captures, bytes: Cell::new(0) }
    }

    /// Counts what might be put in for so many bytes; none of what is captured is longer than the whole.
    fn fits(&self, bytes: usize) -> bool {
        self.bytes.set(self.bytes.get().saturating_add(self.text.len() + self.captures.saturating_mul(bytes)));
        self.is_within_bounds()
    }

    /// Tells whether it did not become too much.
    pub(super) fn is_within_bounds(&self) -> bool {
        self.bytes.get() <= MAX_NEW
    }
}
