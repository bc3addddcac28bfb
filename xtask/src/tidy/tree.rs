//! The files of the workspace, and the views of a Rust file that the checks look at.

use std::{
    fs,
    ops::Range,
    path::{Path, PathBuf},
};

use anyhow::Context;

/// What is nobody's text: built, fetched, or git's own.
const SKIPPED: [&str; 6] = ["target", "node_modules", "corpus", "artifacts", "__pycache__", ".git"];

pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// One text file. All views have the same length, so that an offset means the same in each.
pub(crate) struct File {
    /// From the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Without comments.
    pub(super) bare: String,
    /// Without comments and without the insides of strings.
    pub(crate) code: String,
    /// What is compiled for tests only.
    tests: Vec<Range<usize>>,
}

// === impl Tree ===

impl Tree {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
                let path = entry.with_context(|| format!("cannot list {}", folder.display()))?.path();
                let name = path.file_name().unwrap_or_default();
                if path.is_symlink() || SKIPPED.iter().any(|skipped| name == *skipped) {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = fs::read_to_string(&path) {
                    // What is not UTF-8 is not text; what has just been moved away is none of ours.
                    files.push(File::new(&relative(root, &path), text));
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Self { files })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| File::new(path, (*text).to_owned())).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    pub(super) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The Rust files of the product: `crates/`, without the fuzz targets.
    pub(super) fn crates(&self) -> impl Iterator<Item = &File> {
        self.rust().filter(|file| file.path.starts_with("crates/"))
    }

    /// What ends up in a library or a binary of the product.
    pub(super) fn shipped(&self) -> impl Iterator<Item = &File> {
        self.crates().filter(|file| file.path.contains("/src/") && !file.is_test())
    }

    /// Every Rust file of the workspace's members.
    pub(super) fn rust(&self) -> impl Iterator<Item = &File> {
        let member = |path: &str| ["crates/", "perf/", "xtask/"].iter().any(|folder| path.starts_with(folder));
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(".rs") && member(&file.path) && !file.path.contains("/fuzz/"))
    }
}

fn relative(root: &Path, path: &Path) -> String {
    let parts: PathBuf = path.strip_prefix(root).unwrap_or(path).to_owned();
    parts.to_string_lossy().replace('\\', "/")
}

// === impl File ===

impl File {
    fn new(path: &str, text: String) -> Self {
        let (bare, code, tests) = if path.ends_with(".rs") {
            let (bare, code) = super::source::views(&text);
            let tests = super::source::test_items(&code);
            (bare, code, tests)
        } else {
            (text.clone(), text.clone(), Vec::new())
        };
        Self { path: path.to_owned(), text, bare, code, tests }
    }

    /// `tests.rs`, and everything in a folder of tests or benches.
    pub(super) fn is_test(&self) -> bool {
        let folder = |name: &str| self.path.contains(&format!("/{name}/"));
        self.path.ends_with("/tests.rs") || folder("tests") || folder("benches")
    }

    /// Whether the offset lies in an item under `#[cfg(test)]`.
    pub(super) fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    pub(crate) fn line(&self, at: usize) -> usize {
        self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Whether the file is `module.rs`, or below `module/`.
    pub(super) fn belongs_to(&self, module: &str) -> bool {
        self.path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    }
}
