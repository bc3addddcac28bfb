//! The languages that Prism knows, by LSP's names of them. What it knows of each is the built-in editor's (`crates/editor`).

/// LSP's names of all languages that are known here.
pub const LANGUAGES: [&str; 12] = [
    "rust",
    "python",
    "typescript",
    "typescriptreact",
    "javascript",
    "go",
    "c",
    "cpp",
    "shellscript",
    "json",
    "toml",
    "markdown",
];
