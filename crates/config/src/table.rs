//! What the tables of servers are called: `[server.NAME]`, or `[destination.NAME]`, the older word, which goes on working.
//! They are one set. Messages name the word that stands in the file, and `server` where nothing stands yet.

use std::fmt;

use toml_edit::{Item, Table};

/// The key that a server stands below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTable {
    #[default]
    Server,
    /// The older word.
    Destination,
}

/// What the settings of one server stand below, as in `server.files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerKey<'a> {
    pub table: ServerTable,
    pub name: &'a str,
}

/// Returns the key that a line begins with, if servers stand below it.
fn of_line(line: &str) -> Option<ServerTable> {
    let key = line.trim_start_matches([' ', '\t', '[']);
    let begins = |table: &ServerTable| {
        key.strip_prefix(table.as_str()).is_some_and(|rest| rest.trim_start().starts_with(['.', '=', ']']))
    };
    ServerTable::ALL.into_iter().find(begins)
}

// === impl ServerTable ===

impl ServerTable {
    /// Both of them, the newer word first.
    pub const ALL: [Self; 2] = [Self::Server, Self::Destination];

    /// Returns the word itself.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Destination => "destination",
        }
    }

    /// Returns the key that a server stands below, or is to be written below: a file that has only the older word goes on
    /// in that, so that nobody finds two words in a file in which they wrote one.
    #[must_use]
    pub fn of_entry(document: &Table, name: &str) -> Self {
        let has_it = |table: &Self| document.get(table.as_str()).is_some_and(|servers| servers.get(name).is_some());
        // What was taken out leaves an empty table behind, which is in no text.
        let is_left = |servers: &Item| servers.as_table().is_some_and(|table| table.is_implicit() && table.is_empty());
        let is_there = |table: &Self| document.get(table.as_str()).is_some_and(|servers| !is_left(servers));
        let found = Self::ALL.into_iter().find(has_it).or_else(|| Self::ALL.into_iter().find(is_there));
        found.unwrap_or_default()
    }

    /// Returns the key that a place in a file is below. Outside of any, it is the first in the file.
    pub(super) fn around(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        before.lines().rev().find_map(of_line).unwrap_or_else(|| Self::first(text))
    }

    /// Returns the key that comes first in a file.
    pub(super) fn first(text: &str) -> Self {
        text.lines().find_map(of_line).unwrap_or_default()
    }
}

impl fmt::Display for ServerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl ServerKey ===

impl fmt::Display for ServerKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.table, self.name)
    }
}
