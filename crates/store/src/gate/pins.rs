//! The definitions of tools as a person knows them.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{Store, StoreReadError, StoreWriteError};

/// A tool's definition as it was when it was first used, or last agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinRow {
    pub destination: String,
    pub tool: String,
    /// SHA-256 of the definition.
    pub digest: [u8; 32],
    pub definition: String,
    pub pinned_at_us: i64,
}

impl Store {
    /// Pins a definition, in place of the one that was.
    pub async fn set_pin(&self, pin: PinRow) -> Result<(), StoreWriteError> {
        let sql = "INSERT OR REPLACE INTO pin VALUES (?1, ?2, ?3, ?4, ?5)";
        let set = move |connection: &Connection| {
            let row = params![pin.destination, pin.tool, pin.digest, pin.definition, pin.pinned_at_us];
            connection.prepare_cached(sql)?.execute(row).map(drop)
        };
        self.writer.write(set).await
    }

    pub fn pin(&self, destination: &str, tool: &str) -> Result<Option<PinRow>, StoreReadError> {
        let sql = "SELECT * FROM pin WHERE destination = ?1 AND tool = ?2";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([destination, tool], pin).optional())
    }

    /// Returns all pins, by destination and tool.
    pub fn pins(&self) -> Result<Vec<PinRow>, StoreReadError> {
        let sql = "SELECT * FROM pin ORDER BY destination, tool";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([], pin)?.collect())
    }
}

fn pin(row: &Row<'_>) -> rusqlite::Result<PinRow> {
    Ok(PinRow {
        destination: row.get("destination")?,
        tool: row.get("tool")?,
        digest: row.get("digest")?,
        definition: row.get("definition")?,
        pinned_at_us: row.get("pinned_at_us")?,
    })
}
