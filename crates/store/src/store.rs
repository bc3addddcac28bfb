//! The open database: how it is created and closed. The tables are elsewhere, one file each.

use std::{path::Path, sync::Arc};

use rusqlite::{Connection, Row};

use crate::{
    connection::{BUSY_PATIENCE, StoreOpenError, StoreReadError, connect, make_private, rows},
    reader::DatabaseReader,
    schema,
    writer::DatabaseWriter,
};

/// The database file. Clones share it; it closes itself when the last of them goes.
#[derive(Clone, Debug)]
pub struct Store {
    /// Before the writer, as it has to be closed before it: the last one to close tidies up, and only the writer can.
    reader: Arc<DatabaseReader>,
    pub(crate) writer: Arc<DatabaseWriter>,
    path: Arc<Path>,
}

impl Store {
    /// Opens the database at `path`, which is created if it is missing, and brings its schema up to date. The
    /// directory has to be there.
    pub fn open(path: &Path) -> Result<Self, StoreOpenError> {
        make_private(path)?;
        let mut connection = connect(path).map_err(|source| StoreOpenError::Open { path: path.to_owned(), source })?;
        schema::migrate(&mut connection, path)?;
        let writer = DatabaseWriter::spawn(connection, path)
            .map_err(|source| StoreOpenError::Thread { path: path.to_owned(), source })?;
        Ok(Self { reader: Arc::new(DatabaseReader::new(path)), writer: Arc::new(writer), path: path.into() })
    }

    /// Refuses further writes, of all clones, and returns once those already accepted are on disk.
    pub fn close(&self) {
        self.reader.close();
        self.writer.close();
    }

    /// Returns how many transactions have been committed since the store was opened.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Returns every row of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        row: fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreReadError> {
        rows(&self.path, BUSY_PATIENCE, sql, row)
    }

    /// Reads one state of the database, on a connection that is kept for the next time.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreReadError> {
        self.reader.read(read)
    }
}

#[cfg(test)]
mod tests;
