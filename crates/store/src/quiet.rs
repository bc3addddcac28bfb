//! Which destinations are known never to ask their client anything. Who may conclude that, and what follows from
//! it, is the daemon's to know.

use rusqlite::params;

use crate::{Store, StoreReadError, StoreWriteError};

/// One destination that was quiet, with the server that was behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuietServer {
    pub destination: String,
    /// As the server named itself in `initialize`.
    pub server: String,
    pub version: String,
    /// Microseconds since 1970, UTC.
    pub learned_at_us: i64,
}

impl Store {
    /// Remembers that this server at this destination asks nothing; the time is that of the last call.
    pub async fn remember_quiet(
        &self,
        destination: &str,
        server: &str,
        version: &str,
        at_us: i64,
    ) -> Result<(), StoreWriteError> {
        let row = (destination.to_owned(), server.to_owned(), version.to_owned(), at_us);
        let sql = "INSERT INTO quiet (destination, server, version, learned_at_us) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET learned_at_us = excluded.learned_at_us";
        self.writer.write(move |connection| connection.execute(sql, row).map(drop)).await
    }

    /// Forgets all servers of a destination: it has asked something after all.
    pub async fn forget_quiet(&self, destination: &str) -> Result<(), StoreWriteError> {
        let destination = destination.to_owned();
        let sql = "DELETE FROM quiet WHERE destination = ?1";
        self.writer.write(move |connection| connection.execute(sql, params![destination]).map(drop)).await
    }

    /// Returns everything that is remembered, by destination.
    pub fn quiet(&self) -> Result<Vec<QuietServer>, StoreReadError> {
        let sql = "SELECT destination, server, version, learned_at_us FROM quiet
                   ORDER BY destination, server, version";
        self.rows(sql, |row| {
            Ok(QuietServer {
                destination: row.get(0)?,
                server: row.get(1)?,
                version: row.get(2)?,
                learned_at_us: row.get(3)?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn quiet(destination: &str, version: &str, learned_at_us: i64) -> QuietServer {
        QuietServer {
            destination: destination.to_owned(),
            server: "server".to_owned(),
            version: version.to_owned(),
            learned_at_us,
        }
    }

    #[tokio::test]
    async fn what_is_remembered_survives_reopening() {
        let home = TempDir::new().unwrap();
        let path = home.path().join("prism.db");
        let store = Store::open(&path).unwrap();
        store.remember_quiet("fs", "server", "1.0", 5).await.unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(store.quiet().unwrap(), [quiet("fs", "1.0", 5)]);
    }

    #[tokio::test]
    async fn each_version_is_remembered_and_the_latest_time_of_it() {
        let home = TempDir::new().unwrap();
        let store = Store::open(&home.path().join("prism.db")).unwrap();
        for (version, at_us) in [("2.0", 7), ("1.0", 5), ("1.0", 6)] {
            store.remember_quiet("fs", "server", version, at_us).await.unwrap();
        }
        assert_eq!(store.quiet().unwrap(), [quiet("fs", "1.0", 6), quiet("fs", "2.0", 7)]);
    }

    #[tokio::test]
    async fn a_destination_is_forgotten_whole_and_alone() {
        let home = TempDir::new().unwrap();
        let store = Store::open(&home.path().join("prism.db")).unwrap();
        store.remember_quiet("fs", "server", "1.0", 5).await.unwrap();
        store.remember_quiet("fs", "server", "2.0", 5).await.unwrap();
        store.remember_quiet("git", "server", "1.0", 5).await.unwrap();
        store.forget_quiet("fs").await.unwrap();
        assert_eq!(store.quiet().unwrap(), [quiet("git", "1.0", 5)]);
    }
}
