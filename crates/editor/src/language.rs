//! What language a file is in, told by its name.

use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SourceLanguage {
    Rust,
    Python,
    TypeScript,
    Tsx,
    JavaScript,
    Go,
    C,
    Cpp,
    Bash,
    Json,
    Toml,
    Markdown,
}

impl SourceLanguage {
    /// Returns the language of a file; `None` for what nothing here knows more of than that it is text.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        match name {
            "Cargo.lock" => return Some(Self::Toml),
            ".bashrc" | ".bash_profile" | ".profile" => return Some(Self::Bash),
            _ => {}
        }
        Some(match path.extension()?.to_str()? {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "ts" | "mts" | "cts" => Self::TypeScript,
            "tsx" => Self::Tsx,
            "js" | "mjs" | "cjs" | "jsx" => Self::JavaScript,
            "go" => Self::Go,
            "c" | "h" => Self::C,
            "cc" | "cpp" | "cxx" | "hh" | "hpp" | "hxx" => Self::Cpp,
            "sh" | "bash" => Self::Bash,
            "json" => Self::Json,
            "toml" => Self::Toml,
            "md" | "markdown" => Self::Markdown,
            _ => return None,
        })
    }

    /// LSP's name of it.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::Tsx => "typescriptreact",
            Self::JavaScript => "javascript",
            Self::Go => "go",
            Self::C => "c",
            Self::Cpp => "cpp",
            Self::Bash => "shellscript",
            Self::Json => "json",
            Self::Toml => "toml",
            Self::Markdown => "markdown",
        }
    }
}

#[cfg(test)]
mod tests {
    use prism_core::languages::LANGUAGES;

    use super::*;

    #[test]
    fn every_language_is_known_by_its_name_and_no_other_is() {
        let all = [
            SourceLanguage::Rust,
            SourceLanguage::Python,
            SourceLanguage::TypeScript,
            SourceLanguage::Tsx,
            SourceLanguage::JavaScript,
            SourceLanguage::Go,
            SourceLanguage::C,
            SourceLanguage::Cpp,
            SourceLanguage::Bash,
            SourceLanguage::Json,
            SourceLanguage::Toml,
            SourceLanguage::Markdown,
        ];
        assert_eq!(all.map(SourceLanguage::id), LANGUAGES);
    }
}
