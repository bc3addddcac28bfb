//! The agents that have started, each with its newest session.

use rusqlite::{Connection, Row, params};

use super::{id, key, optional_id};
use crate::{Store, StoreReadError, StoreWriteError};

/// An agent as it was last known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRow {
    pub name: String,
    pub session: u128,
    pub surface: String,
    pub workspace: String,
    pub transport: String,
    /// The id of its program's own session.
    pub surface_session: Option<String>,
    /// JSON that only the daemon reads.
    pub facts: String,
    pub mcp_session: Option<u128>,
    pub instance: Option<u128>,
    pub started_at_us: i64,
    pub seen_at_us: i64,
    pub wrapped_at_us: Option<i64>,
}

impl Store {
    /// Remembers an agent, in place of what was known of it.
    pub async fn save_agent(&self, agent: AgentRow) -> Result<(), StoreWriteError> {
        let sql = "INSERT OR REPLACE INTO agent VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let save = move |connection: &Connection| {
            let row = params![
                agent.name,
                key(agent.session),
                agent.surface,
                agent.workspace,
                agent.transport,
                agent.surface_session,
                agent.facts,
                agent.mcp_session.map(key),
                agent.instance.map(key),
                agent.started_at_us,
                agent.seen_at_us,
                agent.wrapped_at_us,
            ];
            connection.prepare_cached(sql)?.execute(row).map(drop)
        };
        self.writer.write(save).await
    }

    /// Keeps a note of an agent's, which was seen then; of its older ones so many.
    pub async fn add_agent_note(&self, agent: &str, at_us: i64, note: &str, kept: u32) -> Result<(), StoreWriteError> {
        let (agent, note) = (agent.to_owned(), note.to_owned());
        let add = move |connection: &Connection| {
            let sql = "INSERT INTO agent_note VALUES (?1, ?2, ?3)";
            connection.prepare_cached(sql)?.execute(params![agent, at_us, note])?;
            let sql = "DELETE FROM agent_note WHERE agent = ?1 AND rowid NOT IN (
                           SELECT rowid FROM agent_note WHERE agent = ?1 ORDER BY at_us DESC, rowid DESC LIMIT ?2)";
            connection.prepare_cached(sql)?.execute(params![agent, kept])?;
            touch(connection, &[(agent.clone(), at_us)])
        };
        self.writer.write(add).await
    }

    /// Returns an agent's newest notes, and when each was made; the newest first.
    pub fn agent_notes(&self, agent: &str, limit: u32) -> Result<Vec<(i64, String)>, StoreReadError> {
        let sql = "SELECT at_us, note FROM agent_note WHERE agent = ?1 ORDER BY at_us DESC, rowid DESC LIMIT ?2";
        self.read(|connection| {
            let rows = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            connection.prepare_cached(sql)?.query_map(params![agent, limit], rows)?.collect()
        })
    }

    /// Notes when agents were last seen. An earlier time than the known one changes nothing.
    pub async fn touch_agents(&self, seen: Vec<(String, i64)>) -> Result<(), StoreWriteError> {
        self.writer.write(move |connection| touch(connection, &seen)).await
    }

    /// Forgets agents that nobody has seen since then, for whom nothing waits and who owe nothing, and returns their names.
    pub async fn forget_agents(&self, before_us: i64) -> Result<Vec<String>, StoreWriteError> {
        let sql = "DELETE FROM agent WHERE seen_at_us < ?1
                   AND NOT EXISTS (SELECT 1 FROM mailbox WHERE mailbox.agent = agent.name AND pending > 0)
                   AND NOT EXISTS (SELECT 1 FROM obligation INDEXED BY obligation_live
                                   WHERE debtor = agent.name AND closed_at_us IS NULL) RETURNING name";
        let forget = move |connection: &Connection| {
            let gone: Vec<String> =
                connection.prepare_cached(sql)?.query_map([before_us], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let mut notes = connection.prepare_cached("DELETE FROM agent_note WHERE agent = ?1")?;
            gone.iter().try_for_each(|agent| notes.execute([agent]).map(drop))?;
            Ok(gone)
        };
        self.writer.write(forget).await
    }

    /// Returns all agents, by name.
    pub fn agents(&self) -> Result<Vec<AgentRow>, StoreReadError> {
        let sql = "SELECT * FROM agent ORDER BY name";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([], agent)?.collect())
    }
}

pub(super) fn touch(connection: &Connection, seen: &[(String, i64)]) -> rusqlite::Result<()> {
    let sql = "UPDATE agent SET seen_at_us = ?2 WHERE name = ?1 AND seen_at_us < ?2";
    let mut statement = connection.prepare_cached(sql)?;
    seen.iter().try_for_each(|(name, at_us)| statement.execute(params![name, at_us]).map(drop))
}

fn agent(row: &Row<'_>) -> rusqlite::Result<AgentRow> {
    Ok(AgentRow {
        name: row.get("name")?,
        session: id(row, "session")?,
        surface: row.get("surface")?,
        workspace: row.get("workspace")?,
        transport: row.get("transport")?,
        surface_session: row.get("surface_session")?,
        facts: row.get("facts")?,
        mcp_session: optional_id(row, "mcp_session")?,
        instance: optional_id(row, "instance")?,
        started_at_us: row.get("started_at_us")?,
        seen_at_us: row.get("seen_at_us")?,
        wrapped_at_us: row.get("wrapped_at_us")?,
    })
}
