//! Requests for access: asked, decided, claimed.

use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::{GrantRow, grants, id, key, optional_id};
use crate::{Store, StoreReadError, StoreWriteError};

/// A request as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    pub id: u128,
    pub agent: String,
    /// Names, parted by blanks.
    pub scopes: String,
    /// JSON that only the daemon reads.
    pub roots: String,
    pub reason: String,
    pub ttl_s: i64,
    /// `REQUESTED`, `PENDING`, `DENIED`, `EXPIRED`; and from `APPROVED` on that of its grant.
    pub state: String,
    pub created_at_us: i64,
    /// When it can no longer be approved.
    pub expires_at_us: i64,
    pub decided_at_us: Option<i64>,
    pub decided_by: Option<String>,
    pub denied_because: Option<String>,
    pub grant_id: Option<u128>,
    /// SHA-256 of what whoever asked has to show to get the token.
    pub claim_hash: [u8; 32],
    pub claimed: bool,
    /// JSON that only the daemon reads: who is to be told of the decision.
    pub asker: String,
}

/// What became of a new request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddRequestResult {
    Added,
    /// This agent has as many open ones as it may have.
    TooManyOfAgent,
    /// All agents together have.
    TooMany,
}

/// What a step changes besides the state. What is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestPatch {
    pub decided_at_us: Option<i64>,
    pub decided_by: Option<String>,
    pub denied_because: Option<String>,
}

/// Which requests; all, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// Only those that a person has still to decide.
    pub open_only: bool,
    pub agent: Option<String>,
    /// Only those made before this.
    pub before_us: Option<i64>,
    pub limit: u32,
}

impl Store {
    /// Adds a request, unless there are too many open ones already.
    pub async fn add_request(
        &self,
        new: RequestRow,
        max_of_agent: u32,
        max_all: u32,
    ) -> Result<AddRequestResult, StoreWriteError> {
        self.writer.write(move |connection| add(connection, &new, max_of_agent, max_all)).await
    }

    /// Moves a request on. Returns whether it did: `false` means that the request was in none of the states `from`.
    pub async fn step_request(
        &self,
        request: u128,
        from: &[&'static str],
        to: &'static str,
        patch: RequestPatch,
    ) -> Result<bool, StoreWriteError> {
        let from = from.to_vec();
        let places = vec!["?"; from.len()].join(", ");
        let sql = format!(
            "UPDATE access_request SET state = ?, decided_at_us = coalesce(?, decided_at_us),
             decided_by = coalesce(?, decided_by), denied_because = coalesce(?, denied_because)
             WHERE id = ? AND state IN ({places})"
        );
        let step = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(&sql)?;
            let RequestPatch { decided_at_us, decided_by, denied_because } = &patch;
            let id = key(request);
            let values: [&dyn rusqlite::ToSql; 5] = [&to, decided_at_us, decided_by, denied_because, &id];
            let from = from.iter().map(|state| state as &dyn rusqlite::ToSql);
            Ok(statement.execute(params_from_iter(values.into_iter().chain(from)))? == 1)
        };
        self.writer.write(step).await
    }

    /// Approves a request: its grant is there from now on. Returns whether it was: `false` means that somebody has
    /// decided already, or that its time is over.
    pub async fn approve(
        &self,
        request: u128,
        decided_at_us: i64,
        decided_by: String,
        grant: GrantRow,
        token_hash: Option<[u8; 32]>,
    ) -> Result<bool, StoreWriteError> {
        let sql = "UPDATE access_request SET state = ?2, decided_at_us = ?3, decided_by = ?4, grant_id = ?5
                   WHERE id = ?1 AND state IN ('REQUESTED', 'PENDING') AND expires_at_us > ?3";
        let approve = move |connection: &Connection| {
            let row = params![key(request), grant.state, decided_at_us, decided_by, key(grant.id)];
            if connection.prepare_cached(sql)?.execute(row)? == 0 {
                return Ok(false);
            }
            grants::insert(connection, &GrantRow { request_id: Some(request), ..grant.clone() })?;
            token_hash.map_or(Ok(()), |hash| grants::add_token(connection, &hash, grant.id))?;
            Ok(true)
        };
        self.writer.write(approve).await
    }

    /// Gives the agent that asked a token of its own, once. Returns whether it got one: `false` means that the claim is
    /// wrong, was used before, or that there is no live grant.
    pub async fn claim(
        &self,
        request: u128,
        claim_hash: [u8; 32],
        token_hash: [u8; 32],
    ) -> Result<bool, StoreWriteError> {
        let sql = "UPDATE access_request SET claimed = 1 WHERE id = ?1 AND claim_hash = ?2 AND NOT claimed
                   AND EXISTS (SELECT 1 FROM access_grant AS live
                               WHERE live.id = access_request.grant_id AND live.ended_at_us IS NULL)
                   RETURNING grant_id";
        let claim = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let row = params![key(request), claim_hash];
            let Some(grant) = statement.query_row(row, |row| id(row, "grant_id")).optional()? else { return Ok(false) };
            grants::add_token(connection, &token_hash, grant)?;
            Ok(true)
        };
        self.writer.write(claim).await
    }

    /// Ends the open requests whose time is over, and returns them.
    pub async fn expire_requests(&self, now_us: i64) -> Result<Vec<u128>, StoreWriteError> {
        let sql = "UPDATE access_request INDEXED BY access_request_expiring SET state = 'EXPIRED'
                   WHERE state IN ('REQUESTED', 'PENDING') AND expires_at_us <= ?1 RETURNING id";
        let expire = move |connection: &Connection| {
            connection.prepare_cached(sql)?.query_map([now_us], |row| id(row, "id"))?.collect()
        };
        self.writer.write(expire).await
    }

    pub fn request(&self, request: u128) -> Result<Option<RequestRow>, StoreReadError> {
        let sql = "SELECT * FROM access_request WHERE id = ?1";
        self.read(|connection| connection.prepare_cached(sql)?.query_row([key(request)], self::request).optional())
    }

    /// Returns requests, the newest first.
    pub fn requests(&self, filter: &RequestFilter) -> Result<Vec<RequestRow>, StoreReadError> {
        let agent = if filter.agent.is_some() { "agent = ?1" } else { "?1 IS NULL" };
        let open = if filter.open_only { "AND state IN ('REQUESTED', 'PENDING')" } else { "" };
        let before = if filter.before_us.is_some() { "AND created_at_us < ?2" } else { "AND ?2 IS NULL" };
        let sql = format!(
            "SELECT * FROM access_request WHERE {agent} {open} {before} ORDER BY created_at_us DESC, id DESC LIMIT ?3"
        );
        let row = params![filter.agent, filter.before_us, filter.limit];
        self.read(|connection| connection.prepare_cached(&sql)?.query_map(row, self::request)?.collect())
    }
}

/// Moves a request along with its grant.
pub(super) fn follow_grant(connection: &Connection, grant: u128, state: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE access_request SET state = ?2 WHERE grant_id = ?1";
    connection.prepare_cached(sql)?.execute(params![key(grant), state]).map(drop)
}

fn add(
    connection: &Connection,
    new: &RequestRow,
    max_of_agent: u32,
    max_all: u32,
) -> rusqlite::Result<AddRequestResult> {
    let sql = "SELECT count(*) FILTER (WHERE agent = ?1), count(*)
               FROM access_request INDEXED BY access_request_open WHERE state IN ('REQUESTED', 'PENDING')";
    let (of_agent, all): (u32, u32) =
        connection.prepare_cached(sql)?.query_row([&new.agent], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if of_agent >= max_of_agent {
        return Ok(AddRequestResult::TooManyOfAgent);
    }
    if all >= max_all {
        return Ok(AddRequestResult::TooMany);
    }
    let sql = "INSERT INTO access_request VALUES
               (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let row = params![
        key(new.id),
        new.agent,
        new.scopes,
        new.roots,
        new.reason,
        new.ttl_s,
        new.state,
        new.created_at_us,
        new.expires_at_us,
        new.decided_at_us,
        new.decided_by,
        new.denied_because,
        new.grant_id.map(key),
        new.claim_hash,
        new.claimed,
        new.asker,
    ];
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(AddRequestResult::Added)
}

fn request(row: &Row<'_>) -> rusqlite::Result<RequestRow> {
    Ok(RequestRow {
        id: id(row, "id")?,
        agent: row.get("agent")?,
        scopes: row.get("scopes")?,
        roots: row.get("roots")?,
        reason: row.get("reason")?,
        ttl_s: row.get("ttl_s")?,
        state: row.get("state")?,
        created_at_us: row.get("created_at_us")?,
        expires_at_us: row.get("expires_at_us")?,
        decided_at_us: row.get("decided_at_us")?,
        decided_by: row.get("decided_by")?,
        denied_because: row.get("denied_because")?,
        grant_id: optional_id(row, "grant_id")?,
        claim_hash: row.get("claim_hash")?,
        claimed: row.get("claimed")?,
        asker: row.get("asker")?,
    })
}
