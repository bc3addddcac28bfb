//! What the person's own tools run by themselves: a repository's hooks and settings, tasks of an editor, scripts of a manifest, what
//! other agents are told. Whoever may write such a file runs code as the person, outside of every fence, later.
//!
//! So it is not enough to know which folder a file is in. To some names file verbs are closed, as only a tool has business
//! there; at others the person sees the change before it is made, as they would see a command. What is *not* here is what the
//! person runs knowingly: sources, tests, a Makefile. An agent writes those all day, and whoever is asked about everything reads
//! nothing. Names only: nothing is opened here.

mod names;
mod parts;
mod table;

use std::borrow::Cow;

use names::{GuardedName, GuardedNames};
use parts::GuardedPart;
use table::{EXCEPT, TABLE};

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct GuardedPath {
    /// Found at any depth. `x/` is a folder with all that is in it, `x` is a file, and a `*` stands for any letters.
    names: &'static [&'static str],
    pub guard: GuardPolicy,
    /// Who runs what, in a phrase.
    pub why: &'static str,
    part: GuardedPart,
    /// Builds write there, so it cannot be taken from what they may write.
    is_built: bool,
}

/// What becomes of a file verb there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardPolicy {
    /// It is refused, and this is the way to go instead.
    Closed { instead: &'static str },
    /// The person sees it first, as they see a deletion.
    Shown,
}

/// Finds what guards a file or a folder by this path, or all above it.
pub fn guard_of(path: &str) -> Option<&'static GuardedPath> {
    let names = GuardedNames::of(path);
    let is_one = |name: &&'static str| GuardedName::of(name).is_in(&names);
    if EXCEPT.iter().any(is_one) {
        return None;
    }
    TABLE.iter().find(|row| row.names.iter().any(&is_one))
}

/// The same for a folder that comes to be there with all that is in it: `x` renamed to `.config` may bring a `.config/fish` along.
pub fn guard_beneath(path: &str) -> Option<&'static GuardedPath> {
    let names = GuardedNames::of(path);
    let leads = |row: &&GuardedPath| row.names.iter().any(|name| GuardedName::of(name).begins_at(&names));
    guard_of(path).or_else(|| TABLE.iter().find(leads))
}

/// The folders at the top of a granted folder that nothing has to write which runs for its holder: for a sandbox, which can let
/// them be read only. Relative, and where a name has several parts all of it.
pub fn folders() -> impl Iterator<Item = &'static str> {
    plain().filter_map(|name| name.strip_suffix('/'))
}

/// The same of files.
pub fn files() -> impl Iterator<Item = &'static str> {
    plain().filter(|name| !name.ends_with('/'))
}

/// Names of which each is one folder or file.
fn plain() -> impl Iterator<Item = &'static str> {
    let whole = TABLE.iter().filter(|row| !row.is_built && row.part == GuardedPart::Whole);
    whole.flat_map(|row| row.names).copied().filter(|name| !name.contains('*'))
}

// === impl GuardedPath ===

impl GuardedPath {
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLE.iter()
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.names.iter().copied()
    }

    /// What of a text is guarded: two texts of which this is the same differ in nothing that a tool runs by itself.
    pub fn part<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.part.of(text)
    }

    /// Whether only a part of such a file is guarded.
    pub fn is_in_part(&self) -> bool {
        self.part != GuardedPart::Whole
    }
}

#[cfg(test)]
mod tests;
