//! The languages that can be parsed: for each its grammar, and the query that finds what its outline is made of.
//!
//! A query marks a definition with `@definition.KIND` and its name with `@name`; where there is none, everything up to `@until`
//! is the name. Of two patterns that find the same definition the one further up counts.

use std::sync::OnceLock;

use tree_sitter::{Language as Grammar, Query};

use crate::language::SourceLanguage;

/// A grammar with its query, ready for use.
pub(super) struct LoadedGrammar {
    pub(super) grammar: Grammar,
    pub(super) outline: Query,
    /// By the query's captures.
    pub(super) marks: Vec<CaptureMark>,
}

/// What a capture says of its node.
#[derive(Clone, Debug)]
pub(super) enum CaptureMark {
    Name,
    Until,
    Definition(String),
}

/// Returns the grammar of a language. The only error is a query that does not fit it, which the tests rule out.
pub(super) fn of(language: SourceLanguage) -> Result<&'static LoadedGrammar, &'static str> {
    macro_rules! known {
        ($grammar:expr, $($query:literal),+) => {{
            static KNOWN: OnceLock<Result<LoadedGrammar, String>> = OnceLock::new();
            KNOWN.get_or_init(|| LoadedGrammar::new(Grammar::new($grammar), concat!($(include_str!($query)),+))).as_ref().map_err(String::as_str)
        }};
    }
    match language {
        SourceLanguage::Rust => known!(tree_sitter_rust::LANGUAGE, "queries/rust.scm"),
        SourceLanguage::Python => known!(tree_sitter_python::LANGUAGE, "queries/python.scm"),
        SourceLanguage::TypeScript => known!(tree_sitter_typescript::LANGUAGE_TYPESCRIPT, "queries/typescript.scm"),
        SourceLanguage::Tsx => known!(tree_sitter_typescript::LANGUAGE_TSX, "queries/typescript.scm"),
        SourceLanguage::JavaScript => known!(tree_sitter_javascript::LANGUAGE, "queries/javascript.scm"),
        SourceLanguage::Go => known!(tree_sitter_go::LANGUAGE, "queries/go.scm"),
        SourceLanguage::C => known!(tree_sitter_c::LANGUAGE, "queries/c.scm"),
        // What C has, C++ has too.
        SourceLanguage::Cpp => known!(tree_sitter_cpp::LANGUAGE, "queries/cpp.scm", "queries/c.scm"),
        SourceLanguage::Bash => known!(tree_sitter_bash::LANGUAGE, "queries/bash.scm"),
        SourceLanguage::Json => known!(tree_sitter_json::LANGUAGE, "queries/json.scm"),
        SourceLanguage::Toml => known!(tree_sitter_toml_ng::LANGUAGE, "queries/toml.scm"),
        SourceLanguage::Markdown => known!(tree_sitter_md::LANGUAGE, "queries/markdown.scm"),
    }
}

impl LoadedGrammar {
    fn new(grammar: Grammar, query: &str) -> Result<Self, String> {
        let outline = Query::new(&grammar, query).map_err(|error| error.to_string())?;
        let mark = |capture: &&str| match *capture {
            "name" => Ok(CaptureMark::Name),
            "until" => Ok(CaptureMark::Until),
            other => match other.strip_prefix("definition.") {
                Some(kind) => Ok(CaptureMark::Definition(kind.to_owned())),
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
