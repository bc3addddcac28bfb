//! What outlives the daemon: its sessions are taken up by the next one and go on under their ids.

use std::time::Instant;

use super::{Link, SessionKey, watch::Watcher};
use crate::mcp::{
    hello::ClientHello,
    session::{Session, SessionSnapshot},
};

impl Link {
    /// Takes up a session that another daemon has left. Its server is started when its client is back.
    pub fn take_up(
        &mut self,
        key: SessionKey,
        hello: ClientHello,
        kept: SessionSnapshot,
        numbers_from: u32,
        now: Instant,
    ) {
        for uri in &kept.watched {
            self.watches.entry(uri.clone()).or_default().add(Watcher::Session(key));
        }
        let mut session = Session::resume(&hello, kept, numbers_from, now);
        session.keep();
        self.sessions.insert(key, session);
        if self.settings.alone {
            self.hello.get_or_insert(hello);
        }
        self.resumed = true;
    }

    /// What has to be saved of the sessions in which something has changed.
    pub fn take_unsaved(&mut self) -> Vec<(SessionKey, SessionSnapshot)> {
        let changed = self.sessions.iter_mut().filter_map(|(key, session)| Some((*key, session.take_unsaved()?)));
        let changed = changed.collect();
        self.with_watched(changed)
    }

    /// What has to be saved of all sessions, as the daemon is stopping.
    pub(super) fn last_unsaved(&mut self) -> Vec<(SessionKey, SessionSnapshot)> {
        let all = self.sessions.iter_mut().filter_map(|(key, session)| Some((*key, session.last_unsaved()?)));
        let all = all.collect();
        self.with_watched(all)
    }

    fn with_watched(&self, mut kept: Vec<(SessionKey, SessionSnapshot)>) -> Vec<(SessionKey, SessionSnapshot)> {
        for (key, kept) in &mut kept {
            let watched = self.watches.iter().filter(|(_, watch)| watch.has(Watcher::Session(*key)));
            kept.watched = watched.map(|(uri, _)| uri.clone()).collect();
        }
        kept
    }

    /// What a session wants to hear of has changed.
    pub(super) fn note_change(&mut self, key: SessionKey) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.changed(&mut self.actions);
        }
    }
}
