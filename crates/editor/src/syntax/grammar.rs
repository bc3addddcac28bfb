//! The languages that can be parsed: for each its grammar, and the query that finds what its outline is made of.
//!
//! A query marks a definition with `@definition.KIND` and its name with `@name`; where there is none, everything up to `@until`
//! is the name. Of two patterns that find the same definition the one further up counts.

use std::sync::OnceLock;

use tree_sitter::{Language as Grammar, Query};

use crate::language::Language;

/// A grammar with its query, ready for use.
pub(super) struct Known {
    pub(super) grammar: Grammar,
    pub(super) outline: Query,
    /// By the query's captures.
    pub(super) marks: Vec<Mark>,
}

/// What a capture says of its node.
#[derive(Clone, Debug)]
pub(super) enum Mark {
    Name,
    Until,
    Definition(String),
}

/// Returns the grammar of a language. The only error is a query that does not fit it, which the tests rule out.
pub(super) fn of(language: Language) -> Result<&'static Known, &'static str> {
    macro_rules! known {
        ($grammar:expr, $($query:literal),+) => {{
            static KNOWN: OnceLock<Result<Known, String>> = OnceLock::new();
            KNOWN.get_or_init(|| Known::new(Grammar::new($grammar), concat!($(include_str!($query)),+))).as_ref().map_err(String::as_str)
        }};
    }
    match language {
        Language::Rust => known!(tree_sitter_rust::LANGUAGE, "queries/rust.scm"),
        Language::Python => known!(tree_sitter_python::LANGUAGE, "queries/python.scm"),
        Language::TypeScript => known!(tree_sitter_typescript::LANGUAGE_TYPESCRIPT, "queries/typescript.scm"),
        Language::Tsx => known!(tree_sitter_typescript::LANGUAGE_TSX, "queries/typescript.scm"),
        Language::JavaScript => known!(tree_sitter_javascript::LANGUAGE, "queries/javascript.scm"),
        Language::Go => known!(tree_sitter_go::LANGUAGE, "queries/go.scm"),
        Language::C => known!(tree_sitter_c::LANGUAGE, "queries/c.scm"),
        // What C has, C++ has too.
        Language::Cpp => known!(tree_sitter_cpp::LANGUAGE, "queries/cpp.scm", "queries/c.scm"),
        Language::Bash => known!(tree_sitter_bash::LANGUAGE, "queries/bash.scm"),
        Language::Json => known!(tree_sitter_json::LANGUAGE, "queries/json.scm"),
        Language::Toml => known!(tree_sitter_toml_ng::LANGUAGE, "queries/toml.scm"),
        Language::Markdown => known!(tree_sitter_md::LANGUAGE, "queries/markdown.scm"),
    }
}

impl Known {
    fn new(grammar: Grammar, query: &str) -> Result<Self, String> {
        let outline = Query::new(&grammar, query).map_err(|error| error.to_string())?;
        let mark = |capture: &&str| match *capture {
            "name" => Ok(Mark::Name),
            "until" => Ok(Mark::Until),
            other => match other.strip_prefix("definition.") {
                Some(kind) => Ok(Mark::Definition(kind.to_owned())),
                None => Err(format!("@{other} means nothing")),
            },
        };
        let marks = outline.capture_names().iter().map(mark).collect::<Result<_, _>>()?;
        Ok(Self { grammar, outline, marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_fits_its_grammar() {
        for language in super::super::tests::ALL {
            assert_eq!(of(language).err(), None, "{language:?}");
        }
    }
}
