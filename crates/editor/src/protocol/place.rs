//! Paths as a plugin writes them: absolute, or as a `file:` URI. Here they are only names; whether something lies where its
//! name says, whoever opens it finds out.

use std::path::{Component, Path, PathBuf};

/// The longest path.
const MAX_LENGTH: usize = 4096;

/// Reads an absolute path, or a `file:` URI of this machine; `None` if it is neither, or leads upwards.
pub fn as_path(written: &str) -> Option<PathBuf> {
    let path = match written.strip_prefix("file://") {
        Some(rest) => unescaped(rest.strip_prefix("localhost").unwrap_or(rest))?,
        None => written.to_owned(),
    };
    if !path.starts_with('/') || path.len() > MAX_LENGTH || path.contains('\0') {
        return None;
    }
    let path = Path::new(&path);
    let leads_down = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    leads_down.then(|| path.components().collect())
}

/// Whether a path is this folder or written below it.
pub fn is_beneath(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder)
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).ok()
}
