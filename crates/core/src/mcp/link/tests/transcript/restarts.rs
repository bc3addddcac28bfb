//! The end of a daemon, and the next one: what was saved is all that the new link knows.

use super::Stage;
use crate::mcp::{CallFault, Link, SessionSnapshot, link::SessionKey};

/// Where the numbers of streams and questions go on, in place of a random one.
const NUMBERS_FROM: u32 = 500;

impl Stage {
    pub(super) fn save(&mut self) {
        for (key, kept) in self.link.take_unsaved() {
            self.note(key, kept);
        }
    }

    /// As the store does it.
    fn note(&mut self, key: SessionKey, new: SessionSnapshot) {
        let saved = self.saved.entry(key).or_default();
        let mut events = std::mem::take(&mut saved.events);
        events.retain(|(id, _)| id.stream != 0 || id.event >= new.oldest);
        events.extend(new.events);
        events.sort_by_key(|(id, _)| (id.stream, id.event));
        *saved = SessionSnapshot { events, ..new };
    }

    pub(super) fn restart(&mut self) {
        let kept = self.link.shut_down(CallFault::Stopping, self.now);
        self.act();
        for (key, kept) in kept {
            self.note(key, kept);
        }
        self.heard.clear();
        self.start_again();
    }

    /// Nothing is left but what was saved.
    pub(super) fn start_again(&mut self) {
        self.link = Link::new(self.settings.clone());
        self.child = None;
        (self.initialize, self.discover, self.union) = (None, None, None);
        self.ids.clear();
        self.posts.clear();
        self.streams.clear();
        for (key, hello) in self.hellos.clone() {
            let kept = self.saved.get(&key).cloned().unwrap_or_default();
            self.link.take_up(key, hello, kept, NUMBERS_FROM, self.now);
        }
    }
}
