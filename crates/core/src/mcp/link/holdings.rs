//! How much a link holds, for those who check that it forgets.

use super::{Link, Session};

/// How much a link holds. For tests and fuzz targets: when everybody has gone it must be nothing.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkHoldings {
    pub exchanges: usize,
    pub calls: usize,
    pub held: usize,
    pub sessions: usize,
    pub watches: usize,
    pub questions: usize,
    pub parked: usize,
    pub aliases: usize,
    pub refreshing: usize,
    pub listens: usize,
    pub flights: usize,
    pub events_bytes: usize,
}

impl Link {
    #[doc(hidden)]
    pub fn holdings(&self) -> LinkHoldings {
        LinkHoldings {
            exchanges: self.exchanges.len(),
            calls: self.calls,
            held: self.held.len(),
            sessions: self.sessions.len(),
            watches: self.watches.len(),
            questions: self.sessions.values().map(|session| session.questions.len()).sum(),
            parked: self.parked.len(),
            aliases: self.aliases.len(),
            refreshing: self.refreshing.len(),
            listens: self.listens.len(),
            flights: self.flights.len(),
            events_bytes: self.sessions.values().map(Session::kept_bytes).sum(),
        }
    }
}
