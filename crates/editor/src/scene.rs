//! Where an order is carried out: on the ground that was granted, at the desk that all share, for one holder.

use std::sync::Arc;

use prism_os::sandbox::Network;

use crate::{dispatch::Desk, roots::Ground};

/// Whom an order is from. Terminals, watches, panes and cursors are a holder's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    pub id: u128,
    pub name: String,
    /// What of the network the commands reach that it runs.
    pub network: Network,
}

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) ground: Ground,
    pub(crate) desk: Arc<Desk>,
    pub(crate) holder: Holder,
}
