//! What destinations last listed at the hub. How long that counts, and for what, is the daemon's to know.

use crate::{Store, StoreReadError, StoreWriteError};

/// The longest list that is kept. A longer one is asked for again.
const MAX_ITEMS_BYTES: usize = 1 << 20;

/// One list of one destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredList {
    pub destination: String,
    /// The method that asks for it.
    pub list: String,
    /// The result that lists them, as JSON; `None`: it was waited for, and did not come.
    pub items: Option<String>,
}

impl Store {
    /// Remembers what a destination lists, or that it was waited for in vain.
    pub async fn remember_listed(&self, listed: StoredList, at_us: i64) -> Result<(), StoreWriteError> {
        let StoredList { destination, list, items } = listed;
        let items = items.filter(|items| items.len() <= MAX_ITEMS_BYTES);
        let row = (destination, list, items, at_us);
        let sql = "INSERT INTO listed (destination, list, items, learned_at_us) VALUES (?1, ?2, ?3, ?4)
                   ON CONFLICT DO UPDATE SET items = excluded.items, learned_at_us = excluded.learned_at_us";
        self.writer.write(move |connection| connection.execute(sql, row).map(drop)).await
    }

    /// Returns everything that is remembered, by destination.
    pub fn listed(&self) -> Result<Vec<StoredList>, StoreReadError> {
        let sql = "SELECT destination, list, items FROM listed ORDER BY destination, list";
        self.rows(sql, |row| Ok(StoredList { destination: row.get(0)?, list: row.get(1)?, items: row.get(2)? }))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    //
    #[tokio::test]
    async fn the_last_list_of_each_kind_is_kept_and_one_that_is_too_long_is_not() {
        let dir = TempDir::new().unwrap();
        let store = Store::open(&dir.path().join("prism.db")).unwrap();
        let listed = |list: &str, items: Option<&str>| StoredList {
            destination: "fs".to_owned(),
            list: list.to_owned(),
            items: items.map(str::to_owned),
        };
        store.remember_listed(listed("tools/list", None), 1).await.unwrap();
        store.remember_listed(listed("tools/list", Some("{}")), 2).await.unwrap();
        store.remember_listed(listed("prompts/list", Some("{}")), 2).await.unwrap();
        let long = "x".repeat(MAX_ITEMS_BYTES + 1);
        store.remember_listed(listed("prompts/list", Some(&long)), 3).await.unwrap();
        assert_eq!(store.listed().unwrap(), [listed("prompts/list", None), listed("tools/list", Some("{}"))]);
    }
}
