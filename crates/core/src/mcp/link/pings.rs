//! Which clients are asked whether they are there, and when.

use std::time::{Duration, Instant};

use super::{Link, SessionKey};
use crate::mcp::session::ClientPings;

/// The shortest time between two pings of a client.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

impl Link {
    /// From now on a session's client is asked whether it is there, as often as this; or not any more.
    pub fn watch_over(&mut self, key: SessionKey, every: Option<Duration>, now: Instant) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        match (every.map(|every| every.max(AT_MOST_EVERY)), &mut session.pings) {
            (None, pings) => *pings = None,
            (Some(every), Some(pings)) => pings.set_interval(every, now),
            (Some(every), pings) => *pings = Some(Box::new(ClientPings::new(every, now))),
        }
        self.ping(now);
    }

    pub(super) fn ping(&mut self, now: Instant) {
        for (key, session) in &mut self.sessions {
            session.ping(*key, now, &mut self.actions);
        }
        self.ping_at = self.sessions.values().filter_map(|session| Some(session.pings.as_ref()?.due)).min();
    }
}
