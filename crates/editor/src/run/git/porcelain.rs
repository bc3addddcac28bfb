//! What git prints for programs, read. Nothing is run here. Names are bytes to git; what is no UTF-8 is told with marks.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Value, json};

/// `git status --porcelain=v2 --branch -z`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct WorktreeStatus {
    /// `None` before the first commit.
    pub(super) commit: Option<String>,
    /// `None` if a commit is checked out and no branch.
    pub(super) branch: Option<String>,
    pub(super) upstream: Option<String>,
    pub(super) ahead: Option<u64>,
    pub(super) behind: Option<u64>,
    pub(super) entries: Vec<StatusEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatusEntry {
    /// As git has it: beneath the work tree, of a folder with a slash at the end.
    pub(super) path: Vec<u8>,
    pub(super) index: EntryChange,
    pub(super) worktree: EntryChange,
    pub(super) renamed_from: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryChange {
    None,
    Modified,
    TypeChanged,
    Added,
    Deleted,
    Renamed,
    Copied,
    Unmerged,
    Untracked,
    Ignored,
}

/// What a file of a diff has gained and lost; neither is known of a binary one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) path: Vec<u8>,
    pub(super) renamed_from: Option<Vec<u8>>,
    pub(super) lines: Option<(u64, u64)>,
}

/// `git for-each-ref` with `BRANCHES`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) name: String,
    pub(super) commit: String,
    pub(super) upstream: Option<String>,
    pub(super) is_current: bool,
}

/// What of `git config --list --show-scope --show-origin -z` matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Configured {
    /// The files that are the person's or the system's, not the repository's.
    pub(super) files: BTreeSet<PathBuf>,
    /// Names of filters that something is set for.
    pub(super) filters: BTreeSet<String>,
    /// Names of hooks that are set here and not as files.
    pub(super) hooks: BTreeSet<String>,
}

pub(super) const BRANCHES: &str = "--format=%(HEAD)%00%(refname:lstrip=2)%00%(objectname)%00%(upstream:lstrip=2)";

// === impl WorktreeStatus ===

impl WorktreeStatus {
    /// Reads it; what is not understood is left out, as a newer git may say more. A last record that was cut is left out too.
    pub(super) fn parse(output: &[u8]) -> Self {
        let mut status = Self::default();
        let mut records = NulRecords(output);
        while let Some(record) = records.next() {
            match record {
                [b'#', b' ', header @ ..] => status.header(&lossy(header)),
                [b'1', b' ', rest @ ..] => status.entries.extend(entry(rest, 7, None)),
                [b'2', b' ', rest @ ..] => {
                    let Some(old) = records.next() else { break };
                    status.entries.extend(entry(rest, 8, Some(old.to_vec())));
                }
                [b'u', b' ', rest @ ..] => {
                    let unmerged = |path: &[u8]| StatusEntry::new(path, EntryChange::Unmerged, EntryChange::Unmerged);
                    status.entries.extend(rest.splitn(10, |byte| *byte == b' ').nth(9).map(unmerged));
                }
                [b'?', b' ', path @ ..] => {
                    status.entries.push(StatusEntry::new(path, EntryChange::None, EntryChange::Untracked))
                }
                [b'!', b' ', path @ ..] => {
                    status.entries.push(StatusEntry::new(path, EntryChange::None, EntryChange::Ignored))
                }
                _ => {}
            }
        }
        status
    }

    fn header(&mut self, header: &str) {
        let Some((name, value)) = header.split_once(' ') else { return };
        match name {
            "branch.oid" if value != "(initial)" => self.commit = Some(value.to_owned()),
            "branch.head" if value != "(detached)" => self.branch = Some(value.to_owned()),
            "branch.upstream" => self.upstream = Some(value.to_owned()),
            "branch.ab" => {
                let mut numbers = value.split(' ').map(|number| number.trim_start_matches(['+', '-']).parse().ok());
                (self.ahead, self.behind) = (numbers.next().flatten(), numbers.next().flatten());
            }
            _ => {}
        }
    }

    pub(super) fn conflicts(&self) -> impl Iterator<Item = &StatusEntry> {
        self.entries.iter().filter(|entry| entry.index == EntryChange::Unmerged)
    }
}

/// An entry with so many fields before its path.
fn entry(rest: &[u8], fields: usize, renamed_from: Option<Vec<u8>>) -> Option<StatusEntry> {
    let mut parts = rest.splitn(fields + 1, |byte| *byte == b' ');
    let [index, worktree] = parts.next()? else { return None };
    let (index, worktree) = (EntryChange::of(*index)?, EntryChange::of(*worktree)?);
    Some(StatusEntry { path: parts.nth(fields - 1)?.to_vec(), index, worktree, renamed_from })
}

// === impl StatusEntry ===

/// What differs of one file, as results have it.
#[derive(Serialize)]
struct ReportedEntry {
    path: String,
    index: Option<&'static str>,
    worktree: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<String>,
}

impl StatusEntry {
    fn new(path: &[u8], index: EntryChange, worktree: EntryChange) -> Self {
        Self { path: path.to_vec(), index, worktree, renamed_from: None }
    }

    pub(super) fn to_json(&self, worktree: &Path) -> Value {
        json!(ReportedEntry {
            path: absolute(worktree, &self.path),
            index: self.index.word(),
            worktree: self.worktree.word(),
            renamed_from: self.renamed_from.as_ref().map(|old| absolute(worktree, old)),
        })
    }
}

// === impl EntryChange ===

impl EntryChange {
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'.' => Self::None,
            b'M' => Self::Modified,
            b'T' => Self::TypeChanged,
            b'A' => Self::Added,
            b'D' => Self::Deleted,
            b'R' => Self::Renamed,
            b'C' => Self::Copied,
            b'U' => Self::Unmerged,
            _ => return None,
        })
    }

    fn word(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Modified => "modified",
            Self::TypeChanged => "type_changed",
            Self::Added => "added",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
            Self::Copied => "copied",
            Self::Unmerged => "unmerged",
            Self::Untracked => "untracked",
            Self::Ignored => "ignored",
        })
    }
}

/// Reads `--numstat -z`.
pub(super) fn numbers(output: &[u8]) -> Vec<Numbers> {
    let mut records = NulRecords(output);
    let mut files = Vec::new();
    while let Some(record) = records.next() {
        let mut parts = record.splitn(3, |byte| *byte == b'\t');
        let (Some(added), Some(removed), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let lines = lossy(added).parse().ok().zip(lossy(removed).parse().ok());
        if !path.is_empty() {
            files.push(Numbers { path: path.to_vec(), renamed_from: None, lines });
            continue;
        }
        let (Some(old), Some(new)) = (records.next(), records.next()) else { break };
        files.push(Numbers { path: new.to_vec(), renamed_from: Some(old.to_vec()), lines });
    }
    files
}

/// How much of one file differs, as results have it.
#[derive(Serialize)]
struct ReportedNumbers {
    path: String,
    added: Option<u64>,
    removed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renamed_from: Option<String>,
}

impl Numbers {
    pub(super) fn to_json(&self, worktree: &Path) -> Value {
        let (added, removed) = self.lines.unzip();
        json!(ReportedNumbers {
            path: absolute(worktree, &self.path),
            added,
            removed,
            renamed_from: self.renamed_from.as_ref().map(|old| absolute(worktree, old)),
        })
    }
}

pub(super) fn branches(output: &[u8]) -> Vec<Branch> {
    let branch = |line: &[u8]| {
        let mut parts = line.split(|byte| *byte == 0).map(lossy);
        let is_current = parts.next()? == "*";
        let (name, commit) = (parts.next()?, parts.next()?);
        let upstream = Some(parts.next()?).filter(|upstream| !upstream.is_empty());
        Some(Branch { name, commit, upstream, is_current })
    };
    output.split(|byte| *byte == b'\n').filter_map(branch).collect()
}

/// Reads scope, origin and value of each setting: `scope\0origin\0name\nvalue\0`.
pub(super) fn configured(output: &[u8]) -> Configured {
    let mut found = Configured::default();
    let mut records = NulRecords(output);
    while let (Some(scope), Some(origin), Some(setting)) = (records.next(), records.next(), records.next()) {
        if matches!(scope, b"system" | b"global") {
            found.files.extend(origin.strip_prefix(b"file:").map(|file| PathBuf::from(lossy(file))));
        }
        let name = lossy(setting.split(|byte| *byte == b'\n').next().unwrap_or_default());
        // `section.name.key`: only the name in the middle can hold dots, and only it has capitals that count.
        let Some((section, rest)) = name.split_once('.') else { continue };
        let Some((middle, _)) = rest.rsplit_once('.') else { continue };
        match section {
            "filter" => found.filters.insert(middle.to_owned()),
            "hook" => found.hooks.insert(middle.to_owned()),
            _ => false,
        };
    }
    found
}

/// What ends with a NUL. A last one that does not is left out: it was cut.
pub(super) struct NulRecords<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for NulRecords<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (record, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Some(record)
    }
}

pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn absolute(worktree: &Path, path: &[u8]) -> String {
    worktree.join(lossy(path)).display().to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_status_is_read() {
        let output = b"# branch.oid 1234\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -13\0\
            # stash 3\0\
            1 .M N... 100644 100644 100644 aa bb a file\0\
            1 AM N... 000000 100644 100644 00 bb new\0\
            2 R. N... 100644 100644 100644 aa bb R100 new name\0old\nname\0\
            u UU N... 100644 100644 100644 100644 aa bb cc torn\0\
            ? some folder/\0! target/\0? cut";
        let status = WorktreeStatus::parse(output);
        assert_eq!((status.commit.as_deref(), status.branch.as_deref()), (Some("1234"), Some("main")));
        assert_eq!((status.ahead, status.behind), (Some(2), Some(13)));
        assert_eq!(status.upstream.as_deref(), Some("origin/main"));
        let renamed = StatusEntry {
            renamed_from: Some(b"old\nname".to_vec()),
            ..StatusEntry::new(b"new name", EntryChange::Renamed, EntryChange::None)
        };
        assert_eq!(
            status.entries,
            [
                StatusEntry::new(b"a file", EntryChange::None, EntryChange::Modified),
                StatusEntry::new(b"new", EntryChange::Added, EntryChange::Modified),
                renamed,
                StatusEntry::new(b"torn", EntryChange::Unmerged, EntryChange::Unmerged),
                StatusEntry::new(b"some folder/", EntryChange::None, EntryChange::Untracked),
                StatusEntry::new(b"target/", EntryChange::None, EntryChange::Ignored),
            ]
        );
        assert_eq!(status.conflicts().count(), 1);
        assert_eq!(
            status.entries[2].to_json(Path::new("/w")),
            json!({
                "path": "/w/new name", "index": "renamed", "worktree": null, "renamed_from": "/w/old\nname",
            })
        );
    }

    #[test]
    fn before_the_first_commit_and_off_any_branch_there_is_less_to_say() {
        let status = WorktreeStatus::parse(b"# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(status, WorktreeStatus::default());
    }

    #[test]
    fn numbers_of_a_diff_are_read() {
        let numbers = numbers(b"1\t2\ta b\0-\t-\timage\x003\t0\t\0old\0new\x004\t4\tcut");
        let file = |path: &str, old: Option<&str>, lines| Numbers {
            path: path.into(),
            renamed_from: old.map(Into::into),
            lines,
        };
        assert_eq!(
            numbers,
            [file("a b", None, Some((1, 2))), file("image", None, None), file("new", Some("old"), Some((3, 0))),]
        );
    }

    #[test]
    fn branches_are_read() {
        let branches = branches(b"*\0main\0aa\0origin/main\n \0b/c\0bb\0\n");
        assert_eq!(branches.len(), 2);
        assert!(branches[0].is_current && branches[0].upstream.as_deref() == Some("origin/main"));
        assert_eq!(
            branches[1],
            Branch { name: "b/c".to_owned(), commit: "bb".to_owned(), upstream: None, is_current: false }
        );
    }

    #[test]
    fn what_runs_code_is_found_in_a_config() {
        let output = b"system\0file:/etc/gitconfig\0filter.lfs.clean\ngit-lfs clean\0\
            global\0file:/home/a/.gitconfig\0user.name\na\0\
            local\0file:.git/config\0filter.A=b.c d.process\nevil\nlines\0\
            local\0file:.git/config\0hook.x.command\nevil\0\
            local\0file:.git/config\0filter.clean\nno driver\0\
            command\0command line:\0core.pager\0";
        let found = configured(output);
        assert_eq!(found.filters, BTreeSet::from(["lfs".to_owned(), "A=b.c d".to_owned()]));
        assert_eq!(found.hooks, BTreeSet::from(["x".to_owned()]));
        assert_eq!(found.files, BTreeSet::from(["/etc/gitconfig".into(), "/home/a/.gitconfig".into()]));
    }

    proptest! {
        #[test]
        fn nothing_that_is_printed_makes_them_panic(output in prop::collection::vec(
            prop_oneof![Just(0_u8), Just(b' '), Just(b'\t'), Just(b'\n'), Just(b'1'), Just(b'2'), Just(b'u'), any::<u8>()], 0..200)
        ) {
            WorktreeStatus::parse(&output);
            numbers(&output);
            branches(&output);
            configured(&output);
        }
    }
}
