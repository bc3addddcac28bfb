//! Terminals that agents have opened in editors. An editor counts its own; what agents are told names the editor, too, and
//! none is another holder's to use.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prism_core::policy::{Code, Refusal};
use serde_json::Value;

use super::plugin::Plugin;

#[derive(Debug, Default)]
pub(super) struct Terminals(Mutex<HashMap<String, Terminal>>);

#[derive(Clone, Debug)]
pub(super) struct Terminal {
    pub(super) plugin: Arc<Plugin>,
    /// What the editor calls it.
    pub(super) inner: Value,
    holder: u128,
    /// Its holder has closed it; what it ended with is still to be told.
    is_closed: bool,
}

/// Terminals of one holder, and of all, in editors. A further one is refused: one that is open has to be closed first.
const MAX_OF_HOLDER: usize = 8;
const MAX_IN_ALL: usize = 32;

impl Terminals {
    /// Refuses a holder that has enough of them.
    pub(super) fn has_room(&self, holder: u128) -> Result<(), Refusal> {
        let table = self.table();
        let open = || table.values().filter(|terminal| !terminal.is_closed);
        let own = open().filter(|terminal| terminal.holder == holder).count();
        if own < MAX_OF_HOLDER && open().count() < MAX_IN_ALL {
            return Ok(());
        }
        Err(Refusal::new(Code::TooFast, "too many terminals are open; close one with send_input and `close`"))
    }

    /// Notes one; returns what its holder calls it.
    pub(super) fn opened(&self, plugin: &Arc<Plugin>, inner: Value, holder: u128) -> String {
        let name = outer(plugin, &inner);
        self.table().insert(name.clone(), Terminal { plugin: plugin.clone(), inner, holder, is_closed: false });
        name
    }

    /// The one that a holder means; `None` if it is no editor's.
    pub(super) fn of(&self, name: &Value, holder: u128) -> Option<Terminal> {
        let table = self.table();
        let found = table.get(name.as_str()?)?;
        (found.holder == holder && !found.is_closed).then(|| found.clone())
    }

    /// What a holder calls an editor's terminal, and whose it is; `None` if no agent has opened it.
    pub(super) fn named(&self, plugin: &Arc<Plugin>, inner: &Value) -> Option<(String, u128)> {
        let name = outer(plugin, inner);
        let holder = self.table().get(&name)?.holder;
        Some((name, holder))
    }

    /// Its holder uses it no more; that it has ended is still told.
    pub(super) fn closed(&self, name: &str) {
        let mut table = self.table();
        // Editors that never tell of an end do not fill the table.
        if table.values().filter(|terminal| terminal.is_closed).count() >= MAX_IN_ALL {
            table.retain(|_, terminal| !terminal.is_closed);
        }
        if let Some(terminal) = table.get_mut(name) {
            terminal.is_closed = true;
        }
    }

    /// Its process has ended, and everybody was told.
    pub(super) fn ended(&self, name: &str) {
        let mut table = self.table();
        if table.get(name).is_some_and(|terminal| terminal.is_closed) {
            table.remove(name);
        }
    }

    /// Forgets those of an editor that is gone.
    pub(super) fn lost(&self, plugin: &Arc<Plugin>) {
        self.table().retain(|_, terminal| !Arc::ptr_eq(&terminal.plugin, plugin));
    }

    /// Takes those of a holder that has left.
    pub(super) fn left(&self, holder: u128) -> Vec<Terminal> {
        let mut table = self.table();
        let (own, others) = table.drain().partition(|(_, terminal): &(String, Terminal)| terminal.holder == holder);
        *table = others;
        let own: HashMap<String, Terminal> = own;
        own.into_values().collect()
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Terminal>> {
        // Nothing panics while it holds the lock, and each change of it is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn outer(plugin: &Plugin, inner: &Value) -> String {
    let inner = inner.as_str().map_or_else(|| inner.to_string(), str::to_owned);
    format!("{}:{inner}", plugin.about.connection)
}
