//! Where an order is carried out: beneath the roots that were granted, for one holder, on the state of the room that does it.

use std::sync::Arc;

use prism_os::sandbox::NetworkAccess;

use crate::roots::GrantedRoots;

/// Whom an order is from. Terminals, watches, panes and cursors are a holder's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantHolder {
    pub id: u128,
    pub name: String,
    /// What of the network the commands reach that it runs.
    pub network: NetworkAccess,
}

/// The surroundings of one order. `S` is the state of the room that carries it out.
#[derive(Debug)]
pub(crate) struct OrderContext<S> {
    pub(crate) roots: GrantedRoots,
    pub(crate) holder: GrantHolder,
    pub(crate) state: Arc<S>,
}

impl<S> Clone for OrderContext<S> {
    fn clone(&self) -> Self {
        Self { roots: self.roots.clone(), holder: self.holder.clone(), state: self.state.clone() }
    }
}
