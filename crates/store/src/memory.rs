//! The index of a workspace's notes: a database of its own, made from files and made anew whenever it is missing,
//! broken or of another version. What a note is, and where notes lie, is decided elsewhere.
//!
//! It holds nothing that cannot be read again, so it is deleted without asking, and several processes may use it at
//! once: a row that one of them wrote from an older state of a file carries that state's stamp, and the next look at
//! the files mends it.

mod query;
mod search;

#[cfg(test)]
mod tests;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params};

use crate::split::{seamed, whole_words};
pub use search::{DocumentEntry, DocumentFilter, DocumentHit, FoundNotes, MatchMode, ScopeReach};

/// The open index.
#[derive(Debug)]
pub struct MemoryIndex {
    connection: Connection,
    path: PathBuf,
}

/// One file, as it is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexedDocument {
    /// Relative to the root, with slashes.
    pub path: String,
    pub stamp: DocumentStamp,
    pub workspace: String,
    /// Empty: of the whole workspace.
    pub domain: String,
    pub repository: String,
    pub topic: String,
    pub kind: String,
    pub title: String,
    /// `YYYY-MM-DD`, or empty.
    pub date: String,
    pub status: String,
    pub category: String,
    pub tags: Vec<String>,
    /// JSON, or empty.
    pub front_matter: String,
    /// What is wrong with the file, or empty.
    pub problem: String,
    pub body: String,
}

/// By what a file is known to be unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentStamp {
    pub size: i64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    /// A hash of the content.
    pub content: i64,
}

/// One step that brings the index nearer to the files.
#[derive(Debug)]
pub enum IndexChange {
    /// The file is new, or says something else.
    Put(Box<IndexedDocument>),
    /// The file was touched, and says what it said.
    Touch { path: String, stamp: DocumentStamp },
    /// The file is gone.
    Remove { path: String },
}

/// How an index was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexOrigin {
    Kept,
    Made,
    /// There was one that was of no use, for this reason.
    Replaced(&'static str),
}

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("cannot create the folder of the index {path:?}")]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot delete the index {path:?}, which is of no use")]
    Delete { path: PathBuf, source: io::Error },
    #[error("cannot open the index {path:?}")]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("cannot read the index {path:?}")]
    Read { path: PathBuf, source: rusqlite::Error },
    #[error("cannot write the index {path:?}")]
    Write { path: PathBuf, source: rusqlite::Error },
}

/// The version of the schema and of how words are split. An index of another one is built anew.
const VERSION: i64 = 2;

/// How long to wait for another process that writes; building a big index takes some seconds.
const BUSY_PATIENCE: Duration = Duration::from_secs(30);

/// What a write-ahead log that once grew big is cut back to.
const JOURNAL_LIMIT_BYTES: i64 = 4 << 20;

// === impl MemoryIndex ===

impl MemoryIndex {
    /// Opens the index at `path` for the notes below `root`. One that is broken, of another version or of another
    /// root is deleted first.
    pub fn open(path: &Path, root: &str) -> Result<(Self, IndexOrigin), MemoryError> {
        let opening = match examine(path, root)? {
            IndexCondition::Usable(index) => return Ok((index, IndexOrigin::Kept)),
            IndexCondition::Missing => IndexOrigin::Made,
            IndexCondition::Useless(why) => {
                delete(path)?;
                IndexOrigin::Replaced(why)
            }
        };
        Ok((create(path, root)?, opening))
    }

    /// Deletes the index at `path`. Whoever has it open keeps what they see, and heals when they open it again.
    pub fn delete(path: &Path) -> Result<(), MemoryError> {
        delete(path)
    }

    /// Returns a number that changes when another process has changed the index.
    pub fn version(&self) -> Result<i64, MemoryError> {
        self.connection.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(|e| self.cannot_read(e))
    }

    /// Returns what is in the index, by the state each file was read in.
    pub fn stamps(&self) -> Result<Vec<(String, DocumentStamp)>, MemoryError> {
        let query = || {
            let mut statement =
                self.connection.prepare_cached("SELECT path, size, mtime_ns, ctime_ns, content FROM document")?;
            let rows = statement.query_map([], |row| {
                let stamp = DocumentStamp {
                    size: row.get(1)?,
                    mtime_ns: row.get(2)?,
                    ctime_ns: row.get(3)?,
                    content: row.get(4)?,
                };
                Ok((row.get(0)?, stamp))
            })?;
            rows.collect::<Result<_, _>>()
        };
        query().map_err(|error| self.cannot_read(error))
    }

    /// Applies changes as they come, all of them or none. The iterator may be slow: it reads the files.
    pub fn apply(&mut self, changes: impl Iterator<Item = IndexChange>) -> Result<(), MemoryError> {
        let apply = || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for change in changes {
                apply_one(&transaction, &change)?;
            }
            transaction.commit()
        };
        apply().map_err(|source| MemoryError::Write { path: self.path.clone(), source })
    }

    fn cannot_read(&self, source: rusqlite::Error) -> MemoryError {
        MemoryError::Read { path: self.path.clone(), source }
    }
}

fn apply_one(transaction: &Transaction<'_>, change: &IndexChange) -> rusqlite::Result<()> {
    match change {
        IndexChange::Put(document) => put(transaction, document),
        IndexChange::Touch { path, stamp } => {
            let sql = "UPDATE document SET size = ?2, mtime_ns = ?3, ctime_ns = ?4, content = ?5 WHERE path = ?1";
            let row = params![path, stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.content];
            transaction.prepare_cached(sql)?.execute(row).map(drop)
        }
        IndexChange::Remove { path } => {
            let words = "DELETE FROM words WHERE rowid = (SELECT id FROM document WHERE path = ?1)";
            transaction.prepare_cached(words)?.execute([path])?;
            transaction.prepare_cached("DELETE FROM document WHERE path = ?1")?.execute([path]).map(drop)
        }
    }
}

fn put(transaction: &Transaction<'_>, document: &IndexedDocument) -> rusqlite::Result<()> {
    let sql = "INSERT INTO document (path, size, mtime_ns, ctime_ns, content, workspace, domain, repository, topic,
                                     kind, title, date, status, category, tags, front_matter, problem)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
               ON CONFLICT (path) DO UPDATE SET
                   size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns,
                   content = excluded.content, workspace = excluded.workspace, domain = excluded.domain,
                   repository = excluded.repository, topic = excluded.topic, kind = excluded.kind,
                   title = excluded.title, date = excluded.date, status = excluded.status,
                   category = excluded.category, tags = excluded.tags, front_matter = excluded.front_matter,
                   problem = excluded.problem
               RETURNING id";
    let d = document;
    let row = params![
        d.path,
        d.stamp.size,
        d.stamp.mtime_ns,
        d.stamp.ctime_ns,
        d.stamp.content,
        d.workspace,
        d.domain,
        d.repository,
        d.topic,
        d.kind,
        d.title,
        d.date,
        d.status,
        d.category,
        d.tags.join("\n"),
        d.front_matter,
        d.problem,
    ];
    let id: i64 = transaction.prepare_cached(sql)?.query_row(row, |row| row.get(0))?;
    transaction.prepare_cached("DELETE FROM tag WHERE document = ?1")?.execute([id])?;
    for tag in &d.tags {
        transaction
            .prepare_cached("INSERT OR IGNORE INTO tag (tag, document) VALUES (?1, ?2)")?
            .execute(params![tag, id])?;
    }
    transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([id])?;
    let (title, tags, body) = (seamed(&d.title), seamed(&d.tags.join(" ")), seamed(&d.body));
    let whole = whole_words(&format!("{title} {tags} {body}"));
    let sql = "INSERT INTO words (rowid, title, tags, path, body, whole) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    transaction.prepare_cached(sql)?.execute(params![id, title, tags, seamed(&d.path), body, whole]).map(drop)
}

// === impl MemoryError ===

impl MemoryError {
    /// Whether the file is broken, so that only building it anew helps.
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        match self {
            Self::Folder { .. } | Self::Delete { .. } => false,
            Self::Open { source, .. } | Self::Read { source, .. } | Self::Write { source, .. } => is_corruption(source),
        }
    }
}

// === helpers ===

/// What lies at the place of an index.
enum IndexCondition {
    Missing,
    Usable(MemoryIndex),
    Useless(&'static str),
}

fn examine(path: &Path, root: &str) -> Result<IndexCondition, MemoryError> {
    if !path.exists() {
        return Ok(IndexCondition::Missing);
    }
    let look = || {
        let connection = connect(path, OpenFlags::empty())?;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? != VERSION {
            return Ok(IndexCondition::Useless("it is of another version of Prism"));
        }
        if connection.query_row("SELECT root FROM origin", [], |row| row.get::<_, String>(0))? != root {
            return Ok(IndexCondition::Useless("it is of another folder"));
        }
        connection.query_row("SELECT count(*) FROM words WHERE rowid = 0", [], |row| row.get::<_, i64>(0))?;
        Ok(IndexCondition::Usable(MemoryIndex { connection, path: path.to_owned() }))
    };
    match look() {
        Err(error) if is_corruption(&error) => Ok(IndexCondition::Useless("it is broken")),
        other => other.map_err(|source| MemoryError::Open { path: path.to_owned(), source }),
    }
}

/// Makes an index, unless another process has made one by now.
fn create(path: &Path, root: &str) -> Result<MemoryIndex, MemoryError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| MemoryError::Folder { path: path.to_owned(), source })?;
    }
    let make = || {
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? != VERSION {
            transaction.execute_batch(include_str!("memory/schema.sql"))?;
            transaction.execute("INSERT INTO origin (root) VALUES (?1)", [root])?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()?;
        Ok(MemoryIndex { connection, path: path.to_owned() })
    };
    make().map_err(|source| MemoryError::Open { path: path.to_owned(), source })
}

fn connect(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_PATIENCE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // What a power cut takes away is read from the files again.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Building an index writes all of it to the log first.
    connection.pragma_update(None, "journal_size_limit", JOURNAL_LIMIT_BYTES)?;
    Ok(connection)
}

fn delete(path: &Path) -> Result<(), MemoryError> {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(MemoryError::Delete { path: path.to_owned(), source });
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_corruption(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::SqliteFailure(failure, text) => match failure.code {
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => true,
            // Somebody has taken a table away.
            ErrorCode::Unknown => text.as_deref().is_some_and(|text| text.contains("no such table")),
            _ => false,
        },
        rusqlite::Error::SqlInputError { msg, .. } => msg.contains("no such table"),
        rusqlite::Error::QueryReturnedNoRows => true,
        _ => false,
    }
}
