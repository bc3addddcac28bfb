//! Ids as the database has them: 16 bytes, so that they compare as the numbers do.

use rusqlite::Row;

pub(crate) fn key(id: u128) -> [u8; 16] {
    id.to_be_bytes()
}

pub(crate) fn id(row: &Row<'_>, column: &str) -> rusqlite::Result<u128> {
    Ok(u128::from_be_bytes(row.get(column)?))
}

pub(crate) fn optional_id(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u128>> {
    Ok(row.get::<_, Option<[u8; 16]>>(column)?.map(u128::from_be_bytes))
}
