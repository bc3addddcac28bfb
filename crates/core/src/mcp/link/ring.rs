//! The bell (M-05): a note to one client, on the streams that it has open now. Who has none is not told later: a bell that
//! rings twice, or hours late, says something that is not so.

use super::{Link, Method, SessionKey, StreamKey};
use crate::wire::{members::JsonString, text};

impl Link {
    /// Tells a session that a resource was updated, whether it watches it or not. Returns the streams that were told.
    pub fn ring(&mut self, key: SessionKey, uri: &str) -> Vec<StreamKey> {
        let strict = self.settings.strict_streams;
        let Some(session) = self.sessions.get_mut(&key) else { return Vec::new() };
        session.ring(&[updated(uri).as_bytes()], strict, &mut self.actions)
    }

    /// Tells the modern clients that were promised to hear of it. Returns the streams that were told.
    pub fn ring_listens(&mut self, uri: &str) -> Vec<StreamKey> {
        let hearing: Vec<StreamKey> =
            self.listens.iter().filter(|(_, listen)| listen.hears(uri)).map(|(stream, _)| *stream).collect();
        let note = updated(uri);
        for stream in &hearing {
            self.tell_listen(*stream, &note);
        }
        hearing
    }

    /// Whether a stream is one that a session's bell rings on: not the rest of a call's answer.
    pub fn rings_on(&self, key: SessionKey, stream: StreamKey) -> bool {
        self.sessions.get(&key).is_some_and(|session| session.has_get(stream))
    }
}

fn updated(uri: &str) -> String {
    text::note(Method::ResourceUpdated, format_args!(r#"{{"uri":{}}}"#, JsonString(uri)))
}
