//! The difference between two texts, as a person reads it and as policy judges it.

use std::time::Duration;

use prism_core::policy::{Effect, TextLocation};
use similar::TextDiff;

use crate::encoding;

/// How long the smallest difference is looked for; after that a larger one, no less true, will do.
const PATIENCE: Duration = Duration::from_secs(1);

/// Returns the difference as `diff -u` has it; of what is no text, only that there is one.
pub fn unified(path: &str, old: Option<&[u8]>, new: &[u8]) -> String {
    let (Some(before), Some(after)) = (encoding::as_text(old.unwrap_or_default()), encoding::as_text(new)) else {
        let before = old.map_or_else(|| "none".to_owned(), |old| format!("{} bytes", old.len()));
        return format!(
            "Not a text: {before} before, {} bytes after, SHA-256 {}\n",
            new.len(),
            encoding::digest_of(new)
        );
    };
    // A name with a line break in it must not look like a part of the difference.
    let path = path.replace(char::is_control, "\u{FFFD}");
    let old_path = if old.is_some() { &path } else { "/dev/null" };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
    let unified = diff.unified_diff().context_radius(3).header(old_path, &path).to_string();
    // Where no line differs, it is still about a file.
    if unified.is_empty() { format!("--- {old_path}\n+++ {path}\n") } else { unified }
}

/// What becomes of a file. A text that is none is not known.
pub(crate) fn on_disk(path: &str, before: Option<&[u8]>, after: &[u8]) -> Effect {
    let before = before.map(|bytes| String::from_utf8_lossy(bytes).into());
    Effect::Text {
        path: path.to_owned(),
        at: TextLocation::Disk,
        before,
        after: encoding::as_text(after).map(Into::into),
    }
}
