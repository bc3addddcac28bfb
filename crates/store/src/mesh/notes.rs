//! What nobody waits for: it is written down along with what somebody does wait for, and so costs no commit of its own.

use rusqlite::Connection;

use super::{BellRow, WakeNote, agents, bells, drain, obligations};
use crate::{Store, StoreWriteError};

/// Things to write down. What is empty is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeshNotes {
    /// What became of ringing, in its order.
    pub bells: Vec<BellRow>,
    /// What was tried to wake debtors. It is the last of these that counts as the last.
    pub wakes: Vec<WakeNote>,
    /// Agents, and the bucket that what they owe still goes into.
    pub buckets: Vec<(String, String)>,
    /// Obligations that were not fulfilled in time, and of which somebody was told, since when. The first time counts.
    pub overdue: Vec<(u128, i64)>,
    pub escalated: Vec<(u128, i64)>,
    /// Agents, and the number up to which what they have drained has surely arrived.
    pub settled: Vec<(String, i64)>,
    /// When agents were last seen. An earlier time than the known one changes nothing.
    pub seen: Vec<(String, i64)>,
}

impl Store {
    /// Has things written down with the next commit, or soon after if there is none.
    pub async fn note(&self, notes: MeshNotes) -> Result<(), StoreWriteError> {
        self.writer.write_behind(move |connection| write(connection, &notes)).await
    }
}

fn write(connection: &Connection, notes: &MeshNotes) -> rusqlite::Result<()> {
    let MeshNotes { bells, wakes, buckets, overdue, escalated, settled, seen } = notes;
    bells::note(connection, bells)?;
    obligations::note_wakes(connection, wakes)?;
    obligations::change_buckets(connection, buckets)?;
    obligations::note_overdue(connection, overdue)?;
    obligations::note_escalated(connection, escalated)?;
    settled.iter().try_for_each(|(agent, up_to)| drain::settle_given(connection, agent, *up_to))?;
    agents::touch(connection, seen)
}
