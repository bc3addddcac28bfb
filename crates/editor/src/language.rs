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

/// LSP's names of all languages that are known here.
pub const LANGUAGES: [&str; SourceLanguage::ALL.len()] = {
    let mut names = [""; SourceLanguage::ALL.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = SourceLanguage::ALL[i].id();
        i += 1;
    }
    names
};

impl SourceLanguage {
    const ALL: [Self; 12] = [
        Self::Rust,
        Self::Python,
        Self::TypeScript,
        Self::Tsx,
        Self::JavaScript,
        Self::Go,
        Self::C,
        Self::Cpp,
        Self::Bash,
        Self::Json,
        Self::Toml,
        Self::Markdown,
    ];

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
