//! Grants, the branches that they form, and the hashes of their tokens.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{id, key, optional_id, requests};
use crate::{Store, StoreReadError, StoreWriteError};

/// A grant as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRow {
    pub id: u128,
    pub request_id: Option<u128>,
    /// The one that it was narrowed from.
    pub parent: Option<u128>,
    pub agent: String,
    /// Names, parted by blanks.
    pub scopes: String,
    /// JSON that only the daemon reads.
    pub roots: String,
    /// `APPROVED` or `ACTIVE`; `EXPIRED` or `REVOKED` once it has ended.
    pub state: String,
    pub created_at_us: i64,
    pub expires_at_us: i64,
    pub ended_at_us: Option<i64>,
    pub per_second: u32,
    pub burst: u32,
    pub max_edit_bytes: i64,
    pub confirms_changes: bool,
}

/// Which grants; all, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantFilter {
    /// Only those that have not ended.
    pub alive_only: bool,
    pub agent: Option<String>,
    pub request: Option<u128>,
    pub limit: u32,
}

/// Grants of an agent's past that are of interest when it asks anew.
const MAX_BEFORE: u32 = 20;

impl Store {
    /// Adds a grant that was narrowed from another. Returns whether it did: `false` means that its parent has ended, and
    /// nobody would end the child.
    pub async fn add_grant(&self, grant: GrantRow, token_hash: [u8; 32]) -> Result<bool, StoreWriteError> {
        let sql = "SELECT 1 FROM access_grant WHERE id = ?1 AND ended_at_us IS NULL";
        let add = move |connection: &Connection| {
            if let Some(parent) = grant.parent
                && !connection.prepare_cached(sql)?.exists([key(parent)])?
            {
                return Ok(false);
            }
            insert(connection, &grant)?;
            add_token(connection, &token_hash, grant.id)?;
            Ok(true)
        };
        self.writer.write(add).await
    }

    /// Notes that the holder of a grant was here.
    pub async fn activate_grant(&self, grant: u128) -> Result<(), StoreWriteError> {
        let sql = "UPDATE access_grant SET state = 'ACTIVE' WHERE id = ?1 AND state = 'APPROVED'";
        let activate = move |connection: &Connection| {
            if connection.prepare_cached(sql)?.execute([key(grant)])? == 1 {
                requests::follow_grant(connection, grant, "ACTIVE")?;
            }
            Ok(())
        };
        self.writer.write(activate).await
    }

    /// Ends grants, each with its whole branch as it is at this moment, and returns those that have ended by this.
    pub async fn end_grants(
        &self,
        grants: Vec<u128>,
        state: &'static str,
        at_us: i64,
    ) -> Result<Vec<u128>, StoreWriteError> {
        self.writer.write(move |connection| end(connection, &grants, state, at_us)).await
    }

    /// Ends the grants whose time is over, each with its branch, and returns them.
    pub async fn expire_grants(&self, now_us: i64) -> Result<Vec<u128>, StoreWriteError> {
        let sql = "SELECT id FROM access_grant INDEXED BY access_grant_live
                   WHERE ended_at_us IS NULL AND expires_at_us <= ?1";
        let expire = move |connection: &Connection| {
            let over: Vec<u128> =
                connection.prepare_cached(sql)?.query_map([now_us], |row| id(row, "id"))?.collect::<Result<_, _>>()?;
            end(connection, &over, "EXPIRED", now_us)
        };
        self.writer.write(expire).await
    }

    /// Returns the grant of a token, ended or not.
    pub fn grant_of_token(&self, hash: [u8; 32]) -> Result<Option<GrantRow>, StoreReadError> {
        let sql = "SELECT access_grant.* FROM grant_token JOIN access_grant ON id = grant_id WHERE hash = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([hash], self::grant).optional())
    }

    pub fn grant(&self, grant: u128) -> Result<Option<GrantRow>, StoreReadError> {
        let sql = "SELECT * FROM access_grant WHERE id = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([key(grant)], self::grant).optional())
    }

    /// Returns grants, the newest first.
    pub fn grants(&self, filter: &GrantFilter) -> Result<Vec<GrantRow>, StoreReadError> {
        let agent = if filter.agent.is_some() { "agent = ?1" } else { "?1 IS NULL" };
        let request = if filter.request.is_some() { "AND request_id = ?2" } else { "AND ?2 IS NULL" };
        let alive = if filter.alive_only { "AND ended_at_us IS NULL" } else { "" };
        let sql = format!(
            "SELECT * FROM access_grant WHERE {agent} {request} {alive}
             ORDER BY created_at_us DESC, id DESC LIMIT ?3"
        );
        let row = params![filter.agent, filter.request.map(key), filter.limit];
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(row, self::grant)?.collect())
    }

    /// Returns how many grants have not ended.
    pub fn live_grants(&self) -> Result<u32, StoreReadError> {
        let sql = "SELECT count(*) FROM access_grant INDEXED BY access_grant_live WHERE ended_at_us IS NULL";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([], |row| row.get(0)))
    }

    /// Returns what an agent was granted, the newest first. Not what it was handed on by another agent.
    pub fn granted_before(&self, agent: &str) -> Result<Vec<GrantRow>, StoreReadError> {
        let sql = "SELECT * FROM access_grant WHERE agent = ?1 AND parent IS NULL
                   ORDER BY created_at_us DESC, id DESC LIMIT ?2";
        self.read(|connection| {
            connection.prepare_cached(sql)?.query_map(params![agent, MAX_BEFORE], self::grant)?.collect()
        })
    }

    /// Returns a grant and all that were narrowed from it or from those, itself first. What is ended as well.
    pub fn descendants(&self, grant: u128) -> Result<Vec<u128>, StoreReadError> {
        self.read(|connection| branch(connection, grant))
    }
}

pub(super) fn insert(connection: &Connection, new: &GrantRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO access_grant VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let row = params![
        key(new.id),
        new.request_id.map(key),
        new.parent.map(key),
        new.agent,
        new.scopes,
        new.roots,
        new.state,
        new.created_at_us,
        new.expires_at_us,
        new.ended_at_us,
        new.per_second,
        new.burst,
        new.max_edit_bytes,
        new.confirms_changes,
    ];
    connection.prepare_cached(sql)?.execute(row).map(drop)
}

pub(super) fn add_token(connection: &Connection, hash: &[u8; 32], grant: u128) -> rusqlite::Result<()> {
    let sql = "INSERT INTO grant_token VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![hash, key(grant)]).map(drop)
}

fn end(connection: &Connection, grants: &[u128], state: &str, at_us: i64) -> rusqlite::Result<Vec<u128>> {
    let sql = "UPDATE access_grant SET state = ?2, ended_at_us = ?3 WHERE id = ?1 AND ended_at_us IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let mut ended = Vec::new();
    for top in grants {
        // Of this moment: what was handed on a moment ago, when the caller did not look, ends as well.
        for grant in branch(connection, *top)? {
            if statement.execute(params![key(grant), state, at_us])? == 1 {
                requests::follow_grant(connection, grant, state)?;
                ended.push(grant);
            }
        }
    }
    Ok(ended)
}

fn branch(connection: &Connection, top: u128) -> rusqlite::Result<Vec<u128>> {
    // UNION, not UNION ALL: it would end even if somebody were their own ancestor.
    let sql = "WITH RECURSIVE branch (id) AS (
                   SELECT id FROM access_grant WHERE id = ?1
                   UNION SELECT child.id FROM branch JOIN access_grant AS child ON child.parent = branch.id)
               SELECT id FROM branch";
    connection.prepare_cached(sql)?.query_map([key(top)], |row| id(row, "id"))?.collect()
}

fn grant(row: &Row<'_>) -> rusqlite::Result<GrantRow> {
    Ok(GrantRow {
        id: id(row, "id")?,
        request_id: optional_id(row, "request_id")?,
        parent: optional_id(row, "parent")?,
        agent: row.get("agent")?,
        scopes: row.get("scopes")?,
        roots: row.get("roots")?,
        state: row.get("state")?,
        created_at_us: row.get("created_at_us")?,
        expires_at_us: row.get("expires_at_us")?,
        ended_at_us: row.get("ended_at_us")?,
        per_second: row.get("per_second")?,
        burst: row.get("burst")?,
        max_edit_bytes: row.get("max_edit_bytes")?,
        confirms_changes: row.get("confirms_changes")?,
    })
}
