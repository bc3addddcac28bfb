//! A unified diff, line by line: signs and numbers say what is new and what goes, the colour only helps.

use maud::{Markup, html};

use super::page::visible;

/// Lines that are shown at once. A longer diff says how much of it is not.
const MAX_LINES: usize = 2000;

/// What a line of a diff is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DiffRowKind {
    Hunk,
    Added,
    Removed,
    Same,
    Note,
}

struct DiffRow<'a> {
    kind: DiffRowKind,
    /// Where the line is, before and after.
    old: Option<u64>,
    new: Option<u64>,
    text: &'a str,
}

pub fn diff(unified: &str, label: &str) -> Markup {
    let rows = rows(unified);
    let hidden = rows.len().saturating_sub(MAX_LINES);
    let count = |kind| rows.iter().filter(|row| row.kind == kind).count();
    let (added, removed) = (count(DiffRowKind::Added), count(DiffRowKind::Removed));
    html! {
        figure.diff {
            figcaption {
                code { (visible(label)) }
                span.plus { "+" (added) span.sr { " lines added" } }
                span.minus { "−" (removed) span.sr { " lines removed" } }
            }
            div.scroll tabindex="0" role="group" aria-label={ "Changes of " (label) } {
                table { tbody {
                    @for row in rows.iter().take(MAX_LINES) { (line(row)) }
                } }
                @if hidden > 0 { p.fine { (hidden) " more lines are not shown here" } }
            }
        }
    }
}

fn line(row: &DiffRow<'_>) -> Markup {
    let (class, sign, said) = match row.kind {
        DiffRowKind::Hunk => ("hunk", "", ""),
        DiffRowKind::Added => ("added", "+", "added"),
        DiffRowKind::Removed => ("removed", "−", "removed"),
        DiffRowKind::Same => ("same", "", ""),
        DiffRowKind::Note => ("note", "", ""),
    };
    html! {
        tr class=(class) {
            td.at { @if let Some(at) = row.old { (at) } }
            td.at { @if let Some(at) = row.new { (at) } }
            td.sign { (sign) @if !said.is_empty() { span.sr { " " (said) " " } } }
            td.text { (visible(row.text)) }
        }
    }
}

fn rows(unified: &str) -> Vec<DiffRow<'_>> {
    let (mut old, mut new) = (0, 0);
    let mut in_hunk = false;
    let mut rows = Vec::new();
    for text in unified.lines() {
        if let Some((from, to)) = starts(text) {
            (old, new, in_hunk) = (from, to, true);
            rows.push(DiffRow { kind: DiffRowKind::Hunk, old: None, new: None, text });
            continue;
        }
        // Before the first hunk are the names of the two files, which the head says.
        if !in_hunk {
            continue;
        }
        let row = match text.split_at_checked(1) {
            Some(("+", text)) => DiffRow { kind: DiffRowKind::Added, old: None, new: Some(new), text },
            Some(("-", text)) => DiffRow { kind: DiffRowKind::Removed, old: Some(old), new: None, text },
            Some(("\\", _)) => DiffRow { kind: DiffRowKind::Note, old: None, new: None, text },
            Some((" ", text)) => DiffRow { kind: DiffRowKind::Same, old: Some(old), new: Some(new), text },
            _ => DiffRow { kind: DiffRowKind::Same, old: Some(old), new: Some(new), text },
        };
        old += u64::from(row.old.is_some());
        new += u64::from(row.new.is_some());
        rows.push(row);
    }
    rows
}

/// Where a hunk starts, of `@@ -12,7 +12,9 @@`.
fn starts(line: &str) -> Option<(u64, u64)> {
    let mut parts = line.strip_prefix("@@ -")?.split(' ');
    let number = |part: &str| part.split(',').next()?.parse().ok();
    Some((number(parts.next()?)?, number(parts.next()?.strip_prefix('+')?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -3,2 +3,3 @@ fn main\n same\n-old <b>\n+new\n++ plus\n\\ No newline at end of file\n";

    #[test]
    fn lines_are_numbered_on_both_sides_and_counted() {
        let rows = rows(DIFF);
        let told: Vec<_> = rows.iter().map(|row| (row.kind, row.old, row.new, row.text)).collect();
        assert_eq!(
            told,
            [
                (DiffRowKind::Hunk, None, None, "@@ -3,2 +3,3 @@ fn main"),
                (DiffRowKind::Same, Some(3), Some(3), "same"),
                (DiffRowKind::Removed, Some(4), None, "old <b>"),
                (DiffRowKind::Added, None, Some(4), "new"),
                (DiffRowKind::Added, None, Some(5), "+ plus"),
                (DiffRowKind::Note, None, None, "\\ No newline at end of file"),
            ]
        );
        let shown = diff(DIFF, "x.rs").into_string();
        assert!(shown.contains("+2<") && shown.contains("−1<") && shown.contains("old &lt;b&gt;"), "{shown}");
    }
}
