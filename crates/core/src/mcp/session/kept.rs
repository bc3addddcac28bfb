//! What of a session outlives the daemon: its log level, what it watches, and the events that its client may ask for
//! again. Its calls and the questions it was asked do not: they die with the server that knew them.

use std::time::Instant;

use bytes::Bytes;

use super::{Actions, Post, STANDALONE, Saved, Session};
use crate::{
    mcp::{
        hello::ClientHello,
        level::LogLevel,
        link::LinkAction,
        replay::{Replay, ReplayKind, UNSAVED},
    },
    wire::frame::EventId,
};

/// What has to be saved of a session, or what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSnapshot {
    pub level: Option<LogLevel>,
    /// The resources it watches.
    pub watched: Vec<String>,
    /// The newest event of its own stream, and the newest of them that went out.
    pub last: u64,
    pub delivered: u64,
    /// The events of its own stream before this one are kept no more.
    pub oldest: u64,
    /// Events that were not saved before, in their order.
    pub events: Vec<(EventId, Bytes)>,
}

impl SessionSnapshot {
    /// Returns the number after which the events of its own stream are numbered once it is taken up. It has to be saved
    /// before it is: the daemon after that one must not give the same numbers to other events.
    #[must_use]
    pub fn numbers_after(&self) -> u64 {
        let own = self.events.iter().filter(|(id, _)| id.stream == STANDALONE);
        Replay::resume(self.last, self.delivered, own.map(|(id, bytes)| (id.event, bytes.clone()))).last()
    }
}

impl Session {
    /// Takes up a session that another daemon has left. Its streams and questions are numbered from there on: what its
    /// client still has of the old ones must find nothing.
    pub fn resume(hello: &ClientHello, kept: SessionSnapshot, numbers_from: u32, now: Instant) -> Self {
        let mut session = Self::new(hello, None);
        let (own, of_posts): (Vec<_>, Vec<_>) = kept.events.into_iter().partition(|(id, _)| id.stream == STANDALONE);
        let own = own.into_iter().map(|(id, bytes)| (id.event, bytes));
        session.standalone = Replay::resume(kept.last, kept.delivered, own);
        session.had = session.standalone.delivered();
        session.level = kept.level;
        session.last_post = numbers_from.into();
        session.last_question = numbers_from.into();
        for events in of_posts.chunk_by(|(one, _), (other, _)| one.stream == other.stream) {
            let Some((EventId { stream: number, .. }, _)) = events.first() else { continue };
            let replay = Replay::resume(0, 0, events.iter().map(|(id, bytes)| (id.event, bytes.clone())));
            let (attached, finished) = (None, Some(now));
            session.posts.push(Post {
                number: *number,
                replay,
                attached,
                by_method: false,
                open: 0,
                finished,
                unsaved: false,
            });
        }
        session
    }

    /// From now on the shell hears when there is something to save.
    pub fn keep(&mut self) {
        self.saved = Saved::Until { event: self.standalone.last(), changed: false };
    }

    /// Something that is saved has changed.
    pub fn changed(&mut self, actions: &mut Actions) {
        if let Saved::Until { changed, .. } = &mut self.saved
            && !std::mem::replace(changed, true)
        {
            actions.push_back(LinkAction::Unsaved);
        }
    }

    /// Its own stream has told something more.
    pub(super) fn told_more(&mut self, worth_saving: bool, actions: &mut Actions) {
        let Saved::Until { event, .. } = self.saved else { return };
        // Otherwise the number alone is worth it, every now and then.
        if worth_saving || self.standalone.last() - event >= UNSAVED / 2 {
            self.changed(actions);
        }
    }

    /// What has changed since this was asked last; `None` if nothing has. What it watches is the link's to say.
    pub fn take_unsaved(&mut self) -> Option<SessionSnapshot> {
        let Saved::Until { event: before, changed: true } = self.saved else { return None };
        let last = self.standalone.last();
        self.saved = Saved::Until { event: last, changed: false };
        let own = self.standalone.after(before).filter(|(_, _, what)| **what == ReplayKind::Message);
        let own = own.map(|(event, bytes, _)| (EventId { stream: STANDALONE, event }, bytes.clone()));
        let mut events: Vec<_> = own.collect();
        for post in self.posts.iter_mut().filter(|post| post.unsaved) {
            post.unsaved = false;
            let of_post = post.replay.after(0).filter(|(_, _, what)| **what == ReplayKind::Message);
            events.extend(of_post.map(|(event, bytes, _)| (EventId { stream: post.number, event }, bytes.clone())));
        }
        let (delivered, oldest) = (self.standalone.delivered(), self.standalone.oldest());
        Some(SessionSnapshot { level: self.level, watched: Vec::new(), last, delivered, oldest, events })
    }

    /// What is saved when the daemon stops: all that has changed, and the ends of its POST streams, which nobody may
    /// have read.
    pub fn last_unsaved(&mut self) -> Option<SessionSnapshot> {
        let Saved::Until { changed, .. } = &mut self.saved else { return None };
        *changed = true;
        for post in self.posts.iter_mut().filter(|post| post.finished.is_some()) {
            post.unsaved = true;
        }
        self.take_unsaved()
    }
}
