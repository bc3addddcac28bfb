//! The connection that is kept for reading what is asked for often. It neither waits for the writer nor holds it up,
//! and sees everything that the writer has acknowledged.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, TransactionBehavior};

use crate::connection::{BUSY_PATIENCE, StoreReadError, connect_to_read};

/// The reading end of the database. One reads at a time: each takes tens of microseconds.
#[derive(Debug)]
pub(crate) struct DatabaseReader {
    path: Arc<Path>,
    kept: Mutex<KeptConnection>,
}

#[derive(Debug)]
enum KeptConnection {
    /// Nobody has read yet.
    Nothing,
    Open(Connection),
    /// The store is closed. Who reads all the same gets a connection for that once.
    Closed,
}

impl DatabaseReader {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.into(), kept: Mutex::new(KeptConnection::Nothing) }
    }

    /// Reads one state of the database: what is committed meanwhile is not seen.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreReadError> {
        // A reader that panicked has left the connection whole: its transaction was undone on the way.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut once;
        let connection = match &mut *kept {
            KeptConnection::Open(connection) => connection,
            KeptConnection::Closed => {
                once = connect_to_read(&self.path, BUSY_PATIENCE)?;
                &mut once
            }
            nothing @ KeptConnection::Nothing => {
                *nothing = KeptConnection::Open(connect_to_read(&self.path, BUSY_PATIENCE)?);
                let KeptConnection::Open(connection) = nothing else { unreachable!("it was opened in the line above") };
                connection
            }
        };
        let query = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let found = read(&transaction)?;
            transaction.commit()?;
            Ok(found)
        };
        query().map_err(|source| StoreReadError::Query { path: self.path.to_path_buf(), source })
    }

    pub(crate) fn close(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = KeptConnection::Closed;
    }
}
