//! How destinations were found to speak. Who finds that out, how long it counts and what follows from it is the
//! daemon's to know.

use std::{path::Path, time::Duration};

use rusqlite::{Row, params};

use crate::{Store, StoreReadError, StoreWriteError, connection::rows};

/// The last verdict on one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedEra {
    pub destination: String,
    pub era: String,
    /// Microseconds since 1970, UTC.
    pub learned_at_us: i64,
}

const ERAS: &str = "SELECT destination, era, learned_at_us FROM era ORDER BY destination";

/// How long somebody who only wants to look waits for a database that is locked.
pub(crate) const LOOK_PATIENCE: Duration = Duration::from_millis(250);

/// Returns what is remembered in the database at `path`, without opening it for more: nothing is created, migrated
/// or written, and a daemon that has it open does not notice.
pub fn eras_at(path: &Path) -> Result<Vec<LearnedEra>, StoreReadError> {
    rows(path, LOOK_PATIENCE, ERAS, learned)
}

impl Store {
    /// Remembers the verdict on a destination, in the place of any earlier one.
    pub async fn remember_era(&self, destination: &str, era: &str, at_us: i64) -> Result<(), StoreWriteError> {
        let row = (destination.to_owned(), era.to_owned(), at_us);
        let sql = "INSERT INTO era (destination, era, learned_at_us) VALUES (?1, ?2, ?3)
                   ON CONFLICT DO UPDATE SET era = excluded.era, learned_at_us = excluded.learned_at_us";
        self.writer.write(move |connection| connection.execute(sql, row).map(drop)).await
    }

    /// Forgets the verdict on a destination: it has proved wrong.
    pub async fn forget_era(&self, destination: &str) -> Result<(), StoreWriteError> {
        let destination = destination.to_owned();
        let sql = "DELETE FROM era WHERE destination = ?1";
        self.writer.write(move |connection| connection.execute(sql, params![destination]).map(drop)).await
    }

    /// Returns everything that is remembered, by destination.
    pub fn eras(&self) -> Result<Vec<LearnedEra>, StoreReadError> {
        self.rows(ERAS, learned)
    }
}

fn learned(row: &Row<'_>) -> rusqlite::Result<LearnedEra> {
    Ok(LearnedEra { destination: row.get(0)?, era: row.get(1)?, learned_at_us: row.get(2)? })
}

#[cfg(test)]
mod tests;
