//! Clients' sessions, for the daemon that takes them up after this one. What the texts mean is the daemon's to know.

use rusqlite::{Connection, Row, params};

use crate::{Store, StoreReadError, StoreWriteError};

/// A session as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSession {
    pub id: u128,
    pub destination: String,
    pub opening: String,
    pub state: Option<String>,
    pub hub: Option<String>,
    /// Microseconds since 1970, UTC.
    pub used_at_us: i64,
    /// In the order of their streams and numbers.
    pub events: Vec<StoredEvent>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub stream: u64,
    pub number: u64,
    pub bytes: Vec<u8>,
}

/// What has changed in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionUpdate {
    pub id: u128,
    pub state: String,
    /// Events of the session's own stream before this one are kept no more.
    pub oldest: u64,
    /// New ones.
    pub events: Vec<StoredEvent>,
}

/// POST streams of one session whose events are kept. Beyond it the oldest is forgotten.
const MAX_POSTS: u32 = 8;

impl Store {
    /// Remembers a session that was opened.
    pub async fn remember_session(
        &self,
        id: u128,
        destination: &str,
        opening: String,
        at_us: i64,
    ) -> Result<(), StoreWriteError> {
        let row = (key(id), destination.to_owned(), opening, at_us);
        let sql = "INSERT OR REPLACE INTO session (id, destination, opening, used_at_us) VALUES (?1, ?2, ?3, ?4)";
        self.writer.write(move |connection| connection.prepare_cached(sql)?.execute(row).map(drop)).await
    }

    /// Remembers what has changed in sessions. Those that are over stay forgotten.
    pub async fn save_sessions(&self, saves: Vec<SessionUpdate>, at_us: i64) -> Result<(), StoreWriteError> {
        self.writer.write(move |connection| saves.iter().try_for_each(|save| save_one(connection, save, at_us))).await
    }

    /// Remembers what sessions are that are taken up. Nobody has used them yet.
    pub async fn renew_sessions(&self, states: Vec<(u128, String)>) -> Result<(), StoreWriteError> {
        let renew = move |connection: &Connection| {
            let mut statement = connection.prepare_cached("UPDATE session SET state = ?2 WHERE id = ?1")?;
            states.iter().try_for_each(|(id, state)| statement.execute((key(*id), state)).map(drop))
        };
        self.writer.write(renew).await
    }

    /// Remembers what the hub has of a session, unless something newer is remembered already.
    pub async fn save_hub(&self, id: u128, hub: String, version: u64) -> Result<(), StoreWriteError> {
        let row = (key(id), hub, version.cast_signed());
        let sql = "UPDATE session SET hub = ?2, hub_version = ?3 WHERE id = ?1 AND hub_version < ?3";
        self.writer.write(move |connection| connection.prepare_cached(sql)?.execute(row).map(drop)).await
    }

    /// Notes that these sessions are in use.
    pub async fn touch_sessions(&self, ids: Vec<u128>, at_us: i64) -> Result<(), StoreWriteError> {
        let sql = "UPDATE session SET used_at_us = ?2 WHERE id = ?1";
        let touch = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            ids.iter().try_for_each(|id| statement.execute((key(*id), at_us)).map(drop))
        };
        self.writer.write(touch).await
    }

    /// Forgets sessions: they are over.
    pub async fn forget_sessions(&self, ids: Vec<u128>) -> Result<(), StoreWriteError> {
        let forget = move |connection: &Connection| {
            let mut session = connection.prepare_cached("DELETE FROM session WHERE id = ?1")?;
            let mut events = connection.prepare_cached("DELETE FROM session_event WHERE session = ?1")?;
            ids.iter().try_for_each(|id| {
                session.execute([key(*id)])?;
                events.execute([key(*id)]).map(drop)
            })
        };
        self.writer.write(forget).await
    }

    /// Returns all sessions that are not over, the last used first.
    pub fn sessions(&self) -> Result<Vec<StoredSession>, StoreReadError> {
        let sql = "SELECT id, destination, opening, state, hub, used_at_us FROM session ORDER BY used_at_us DESC, id";
        let mut sessions = self.rows(sql, session)?;
        let sql = "SELECT session, stream, number, bytes FROM session_event ORDER BY session, stream, number";
        let mut events = self.rows(sql, event)?;
        for session in &mut sessions {
            session.events = events.extract_if(.., |(of, _)| *of == session.id).map(|(_, event)| event).collect();
        }
        Ok(sessions)
    }
}

fn save_one(connection: &Connection, save: &SessionUpdate, at_us: i64) -> rusqlite::Result<()> {
    let id = key(save.id);
    let known = connection
        .prepare_cached("UPDATE session SET state = ?2, used_at_us = ?3 WHERE id = ?1")?
        .execute(params![id, save.state, at_us])?;
    if known == 0 {
        return Ok(());
    }
    connection
        .prepare_cached("DELETE FROM session_event WHERE session = ?1 AND stream = 0 AND number < ?2")?
        .execute(params![id, save.oldest.cast_signed()])?;
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO session_event (session, stream, number, bytes) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for event in &save.events {
        insert.execute(params![id, event.stream.cast_signed(), event.number.cast_signed(), event.bytes])?;
    }
    if save.events.iter().any(|event| event.stream != 0) {
        let sql = "DELETE FROM session_event WHERE session = ?1 AND stream <> 0 AND stream NOT IN
                   (SELECT DISTINCT stream FROM session_event WHERE session = ?1 ORDER BY stream DESC LIMIT ?2)";
        connection.prepare_cached(sql)?.execute(params![id, MAX_POSTS])?;
    }
    Ok(())
}

fn key(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

fn session(row: &Row<'_>) -> rusqlite::Result<StoredSession> {
    Ok(StoredSession {
        id: u128::from_be_bytes(row.get(0)?),
        destination: row.get(1)?,
        opening: row.get(2)?,
        state: row.get(3)?,
        hub: row.get(4)?,
        used_at_us: row.get(5)?,
        events: Vec::new(),
    })
}

fn event(row: &Row<'_>) -> rusqlite::Result<(u128, StoredEvent)> {
    let (stream, number): (i64, i64) = (row.get(1)?, row.get(2)?);
    let event = StoredEvent { stream: stream.cast_unsigned(), number: number.cast_unsigned(), bytes: row.get(3)? };
    Ok((u128::from_be_bytes(row.get(0)?), event))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn event(stream: u64, number: u64) -> StoredEvent {
        StoredEvent { stream, number, bytes: format!("{stream}-{number}").into_bytes() }
    }

    fn save(id: u128, oldest: u64, events: Vec<StoredEvent>) -> SessionUpdate {
        SessionUpdate { id, state: format!("from {oldest}"), oldest, events }
    }

    fn store(home: &TempDir) -> Store {
        Store::open(&home.path().join("prism.db")).unwrap()
    }

    #[tokio::test]
    async fn a_session_is_found_again_with_the_events_that_are_still_kept() {
        let home = TempDir::new().unwrap();
        let before = store(&home);
        before.remember_session(7, "fs", "{}".to_owned(), 1).await.unwrap();
        before.save_sessions(vec![save(7, 1, vec![event(0, 1), event(0, 2), event(3, 1)])], 2).await.unwrap();
        before.save_sessions(vec![save(7, 2, vec![event(0, 3)])], 3).await.unwrap();
        before.close();
        let found = store(&home).sessions().unwrap();
        let (state, events) = (Some("from 2".to_owned()), vec![event(0, 2), event(0, 3), event(3, 1)]);
        let (destination, opening) = ("fs".to_owned(), "{}".to_owned());
        assert_eq!(found, [StoredSession { id: 7, destination, opening, state, hub: None, used_at_us: 3, events }]);
    }

    #[tokio::test]
    async fn what_comes_after_its_end_does_not_bring_a_session_back() {
        let home = TempDir::new().unwrap();
        let store = store(&home);
        store.remember_session(7, "fs", "{}".to_owned(), 1).await.unwrap();
        store.save_sessions(vec![save(7, 1, vec![event(0, 1)])], 2).await.unwrap();
        store.forget_sessions(vec![7]).await.unwrap();
        store.save_sessions(vec![save(7, 1, vec![event(0, 2)])], 3).await.unwrap();
        store.save_hub(7, "late".to_owned(), 1).await.unwrap();
        assert_eq!(store.sessions().unwrap(), []);
        assert_eq!(store.rows("SELECT count(*) FROM session_event", |row| row.get::<_, i64>(0)).unwrap(), [0]);
    }

    #[tokio::test]
    async fn a_session_that_is_taken_up_is_not_in_use_by_that() {
        let home = TempDir::new().unwrap();
        let store = store(&home);
        store.remember_session(7, "fs", "{}".to_owned(), 1).await.unwrap();
        store.renew_sessions(vec![(7, "new".to_owned()), (8, "of nobody".to_owned())]).await.unwrap();
        let found = store.sessions().unwrap();
        assert_eq!((found.len(), found[0].state.as_deref(), found[0].used_at_us), (1, Some("new"), 1));
    }

    #[tokio::test]
    async fn the_hub_keeps_what_is_newest_whoever_writes_last() {
        let home = TempDir::new().unwrap();
        let store = store(&home);
        store.remember_session(7, "prism", "{}".to_owned(), 1).await.unwrap();
        store.save_hub(7, "two".to_owned(), 2).await.unwrap();
        store.save_hub(7, "one".to_owned(), 1).await.unwrap();
        assert_eq!(store.sessions().unwrap()[0].hub.as_deref(), Some("two"));
    }

    #[tokio::test]
    async fn of_the_posts_only_the_newest_are_kept() {
        let home = TempDir::new().unwrap();
        let store = store(&home);
        store.remember_session(7, "fs", "{}".to_owned(), 1).await.unwrap();
        for stream in 1..=20 {
            store.save_sessions(vec![save(7, 1, vec![event(stream, 1)])], 2).await.unwrap();
        }
        let kept: Vec<u64> = store.sessions().unwrap()[0].events.iter().map(|event| event.stream).collect();
        assert_eq!(kept, (13..=20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn the_last_used_comes_first() {
        let home = TempDir::new().unwrap();
        let store = store(&home);
        for id in 1..=3 {
            store.remember_session(id, "fs", "{}".to_owned(), 1).await.unwrap();
        }
        store.touch_sessions(vec![2], 9).await.unwrap();
        assert_eq!(store.sessions().unwrap().iter().map(|session| session.id).collect::<Vec<_>>(), [2, 1, 3]);
    }
}
