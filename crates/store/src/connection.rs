//! What every connection to the database agrees on, and why one could not be had.

use std::{
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Row, config::DbConfig};

/// Why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreOpenError {
    #[error("cannot create database {path:?}")]
    Create { path: PathBuf, source: io::Error },
    #[error("cannot make database {path:?} private")]
    Protect { path: PathBuf, source: io::Error },
    #[error("cannot open database {path:?}")]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error(
        "database {path:?} is of version {found} and this Prism knows versions up to {known}: \
         install a newer Prism or move the file away"
    )]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("cannot migrate database {path:?} with {migration}")]
    Migrate { path: PathBuf, migration: &'static str, source: rusqlite::Error },
    #[error("cannot start the writer of database {path:?}")]
    Thread { path: PathBuf, source: io::Error },
}

/// Why something could not be read back.
#[derive(Debug, thiserror::Error)]
pub enum StoreReadError {
    #[error("cannot open database {path:?} for reading")]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("cannot read from database {path:?}")]
    Query { path: PathBuf, source: rusqlite::Error },
}

/// How long to wait for another process that has the database locked, such as somebody's `sqlite3` shell.
pub(crate) const BUSY_PATIENCE: Duration = Duration::from_secs(5);

/// Statements that a connection keeps prepared. Beyond it the least used is forgotten, and prepared anew when it is
/// needed again.
const MAX_PREPARED: usize = 64;

/// What a write-ahead log that once grew big is cut back to. More than one has that is folded in when it should be: to cut
/// it takes milliseconds, and to write over what is there is cheaper than to make it longer again.
const JOURNAL_LIMIT_BYTES: i64 = 32 << 20;

/// The pages in the log at which a commit folds them in after all: the thread does not keep up, or is gone. So the log is
/// bounded.
pub(crate) const BACKSTOP_PAGES: i64 = 6000;

/// Returns every row of a query. On a connection of its own, as reading is rare (at the start), and so never waits
/// for the writer nor makes it wait. A database that is not there is an error, and stays away.
pub(crate) fn rows<T>(
    path: &Path,
    patience: Duration,
    sql: &str,
    row: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreReadError> {
    let connection = connect_to_read(path, patience)?;
    let query = || connection.prepare(sql)?.query_map([], row)?.collect::<Result<_, _>>();
    query().map_err(|source| StoreReadError::Query { path: path.to_owned(), source })
}

/// Opens a database that is there, for reading.
pub(crate) fn connect_to_read(path: &Path, patience: Duration) -> Result<Connection, StoreReadError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(patience)?;
        plan_once(&connection)?;
        connection.set_prepared_statement_cache_capacity(MAX_PREPARED);
        Ok(connection)
    };
    open().map_err(|source| StoreReadError::Open { path: path.to_owned(), source })
}

/// Lets no value decide on a plan. Otherwise each `LIMIT ?` would have its statement prepared anew whenever it is run, which
/// takes longer than to run it.
fn plan_once(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// Creates the file with mode 0600, or takes the others' rights to it away. SQLite gives the files it puts
/// beside the database the database's mode.
pub(crate) fn make_private(path: &Path) -> Result<(), StoreOpenError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        // Not opened: closing a descriptor gives up all locks this process has on the file, and the database
        // may be open in it already (sqlite.org/howtocorrupt.html on POSIX advisory locks).
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::set_permissions(path, Permissions::from_mode(0o600))
                .map_err(|source| StoreOpenError::Protect { path: path.to_owned(), source })
        }
        Err(source) => Err(StoreOpenError::Create { path: path.to_owned(), source }),
    }
}

/// Opens a database that is there, for writing.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_PATIENCE)?;
    // Where the filesystem cannot do WAL the old journal stays. That is slower, and as durable.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // NORMAL would lose the last commits in a power cut, after they were acknowledged.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    connection.pragma_update(None, "wal_autocheckpoint", BACKSTOP_PAGES)?;
    // What is needed to undo one of many writes in a transaction: a few pages, which would go to a file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    plan_once(&connection)?;
    connection.set_prepared_statement_cache_capacity(MAX_PREPARED);
    Ok(connection)
}
