//! Names as file systems and tools may take them: without regard to capitals, to letters that are not seen, and to what some
//! systems leave off at the end. Two names that could be the same file somewhere count as the same.

use crate::unseen::is_unseen;

/// The parts of a path, each as it is compared.
pub(super) struct GuardedNames(Vec<String>);

/// A name of the table, in its parts.
pub(super) struct GuardedName<'a> {
    parts: Vec<&'a str>,
    is_folder: bool,
}

/// Folders of agents' programs that have whole projects checked out in them: what lies deeper is judged from there on.
const CHECKED_OUT: [[&str; 2]; 3] = [[".claude", "worktrees"], [".cursor", "worktrees"], [".codex", "worktrees"]];

impl GuardedNames {
    pub(super) fn of(path: &str) -> Self {
        let mut names: Vec<String> =
            path.split('/').map(folded).filter(|name| !matches!(name.as_str(), "" | ".")).collect();
        let is_one = |at: usize| CHECKED_OUT.iter().any(|[one, two]| names[at] == *one && names[at + 1] == *two);
        // The project has a name of its own, and what is judged is in it.
        let last = (0..names.len().saturating_sub(3)).rev().find(|at| is_one(*at));
        if let Some(at) = last {
            names.drain(..at + 3);
        }
        Self(names)
    }
}

impl<'a> GuardedName<'a> {
    pub(super) fn of(name: &'a str) -> Self {
        Self { parts: name.trim_end_matches('/').split('/').collect(), is_folder: name.ends_with('/') }
    }

    /// Whether a path is this, or in it.
    pub(super) fn is_in(&self, path: &GuardedNames) -> bool {
        let is_here = |names: &[String]| names.iter().zip(&self.parts).all(|(name, part)| is_like(name, part));
        let mut places = path.0.windows(self.parts.len());
        if self.is_folder { places.any(is_here) } else { places.next_back().is_some_and(is_here) }
    }

    /// Whether this could lie in a folder of that path: its first parts are the path's last.
    pub(super) fn begins_at(&self, path: &GuardedNames) -> bool {
        (1..self.parts.len()).any(|count| {
            let last = path.0.len().checked_sub(count).map(|from| &path.0[from..]);
            last.is_some_and(|last| last.iter().zip(&self.parts).all(|(name, part)| is_like(name, part)))
        })
    }
}

/// A `*` stands for any letters, also none.
fn is_like(name: &str, part: &str) -> bool {
    let is_same = |name: &[u8], part: &str| name.eq_ignore_ascii_case(part.as_bytes());
    let name = name.as_bytes();
    match part.split_once('*') {
        None => is_same(name, part),
        Some((first, last)) => {
            let rest = name.len().checked_sub(last.len()).filter(|rest| *rest >= first.len());
            rest.is_some_and(|rest| is_same(&name[..first.len()], first) && is_same(&name[rest..], last))
        }
    }
}

/// A name without what some file system does not see in it: macOS and ext4 with casefolding know no capitals and skip letters that
/// are not seen; NTFS leaves dots and spaces at the end off, takes a `:` for the begin of something else, and has a short name
/// for each long one.
fn folded(name: &str) -> String {
    if matches!(name, "." | "..") {
        return name.to_owned();
    }
    let seen = name.chars().filter(|letter| !is_unseen(*letter)).map(plain);
    let mut folded: String = seen.flat_map(char::to_lowercase).collect();
    if let Some(at) = folded.find(':').filter(|at| *at > 0) {
        folded.truncate(at);
    }
    folded.truncate(folded.trim_end_matches(['.', ' ']).len());
    match folded.as_str() {
        "git~1" => ".git".to_owned(),
        _ => folded,
    }
}

/// A letter that another form of it stands for.
fn plain(letter: char) -> char {
    match letter {
        // The full width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xff01 + u32::from('!')).unwrap_or(letter),
        '\u{2024}' | '\u{fe52}' => '.',
        '\u{fe63}' | '\u{2010}' | '\u{2011}' => '-',
        '\u{fe4d}'..='\u{fe4f}' => '_',
        'ſ' => 's',
        letter => letter,
    }
}
