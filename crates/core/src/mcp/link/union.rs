//! The one `subscriptions/listen` that a link has at a modern server, for all that its clients want to hear of
//! (mcp-eras 5.8). When that changes a new one is opened, and the old one ended once the new one is acknowledged.

use std::time::{Duration, Instant};

use super::{Link, LinkPhase, Method};
use crate::{
    mcp::{
        era::Era,
        hello::ServerGreeting,
        modern::{self, ListenFilter, OwnClientMeta},
    },
    wire::{Message, text},
};

/// How long to wait before a listen that ended is opened again; doubled each time, up to the second.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const AGAIN_AT_MOST: Duration = Duration::from_secs(30);
/// How long a server may take to acknowledge a listen.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Union {
    current: Option<Upstream>,
    next: Option<Upstream>,
    again_at: Option<Instant>,
    failures: u32,
    /// Nobody listened for a while: what has changed meanwhile is not known.
    missed: bool,
}

#[derive(Debug)]
struct Upstream {
    number: u64,
    asked: ListenFilter,
    /// What the server will tell of, once it has said so.
    honoured: Option<ListenFilter>,
    deadline: Instant,
}

impl Union {
    pub(super) fn has(&self, number: u64) -> bool {
        [&self.current, &self.next].into_iter().flatten().any(|one| one.number == number)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let unanswered = self.next.as_ref().map(|next| next.deadline);
        [self.again_at, unanswered].into_iter().flatten().min()
    }

    /// Whether nothing is being changed.
    pub(super) fn is_settled(&self) -> bool {
        self.next.is_none()
    }

    fn honoured(&self) -> Option<&ListenFilter> {
        self.current.as_ref()?.honoured.as_ref()
    }

    /// Whether the server will tell of this very resource.
    pub(super) fn agrees_to(&self, uri: &String) -> bool {
        self.honoured().is_some_and(|honoured| honoured.uris.contains(uri))
    }

    /// What of a filter the server will tell of: what it was asked for and has agreed to, and what it tells unasked if at all.
    pub(super) fn honours(&self, mut wanted: ListenFilter, greeting: &ServerGreeting) -> ListenFilter {
        let none = ListenFilter::default();
        let honoured = self.honoured().unwrap_or(&none);
        wanted.tools &= honoured.tools || !greeting.tools_changed;
        wanted.prompts &= honoured.prompts || !greeting.prompts_changed;
        wanted.resources &= honoured.resources || !greeting.resources_changed;
        wanted.uris.retain(|uri| honoured.uris.contains(uri));
        wanted
    }
}

impl Link {
    /// Opens, changes or ends the listen at the server, so that it fits what the clients want.
    pub(super) fn adjust_union(&mut self, now: Instant) {
        if self.phase != LinkPhase::Up || self.era() == Era::Legacy {
            return;
        }
        let wanted = self.wanted_changes();
        if self.union.next.as_ref().is_some_and(|next| next.asked == wanted) {
            return;
        }
        if let Some(unfinished) = self.union.next.take() {
            self.cancel_number(unfinished.number);
        }
        let current = self.union.current.as_ref().map(|current| &current.asked);
        if wanted.is_empty() || current == Some(&wanted) {
            if let Some(current) = self.union.current.take_if(|_| wanted.is_empty()) {
                self.cancel_number(current.number);
            }
            // Who waits for a change need not wait any more: there is none.
            self.settle_watches(now);
            return self.acknowledge_listens();
        }
        self.union.again_at = None;
        let number = self.next_id().0;
        let params = format!(r#"{{"notifications":{}}}"#, wanted.to_json());
        self.output.write_text(&modern::own_request(number, Method::Listen, &params, OwnClientMeta::OWN));
        let deadline = now + ACKNOWLEDGE_WITHIN;
        self.union.next = Some(Upstream { number, asked: wanted, honoured: None, deadline });
    }

    /// After a restart: the new child is asked for all of it.
    pub(super) fn replay_union(&mut self, now: Instant) {
        // Only who was there before can have missed something.
        let waiting = self.waiting_for_initialize();
        let sessions = self.sessions.keys().any(|key| !waiting.contains(key));
        self.union.missed = sessions || self.has_acknowledged_listens();
        self.adjust_union(now);
    }

    /// All that clients want to hear of and the server tells of. Legacy sessions hear of every list.
    fn wanted_changes(&self) -> ListenFilter {
        let Some(greeting) = &self.greeting else { return ListenFilter::default() };
        let all = !self.sessions.is_empty();
        let any = |wants: fn(&ListenFilter) -> bool| all || self.listens.values().any(|listen| wants(&listen.wanted));
        ListenFilter {
            tools: any(|filter| filter.tools),
            prompts: any(|filter| filter.prompts),
            resources: any(|filter| filter.resources),
            uris: self.watches.keys().cloned().collect(),
        }
        .announced_by(greeting)
    }

    /// The server acknowledged a listen of ours.
    pub(super) fn union_acknowledged(&mut self, message: &Message, now: Instant) {
        let Some(number) = modern::subscription(message) else { return };
        let Some(next) = self.union.next.take_if(|next| next.number == number) else { return };
        let honoured = ListenFilter::read(message).unwrap_or_default();
        let old = self.union.current.replace(Upstream { honoured: Some(honoured), ..next });
        if let Some(old) = old {
            self.cancel_number(old.number);
        }
        self.union.failures = 0;
        if std::mem::take(&mut self.union.missed) {
            self.tell_what_was_missed();
        }
        self.settle_watches(now);
        self.acknowledge_listens();
    }

    /// A listen of ours is over: ended by the server, refused, or cut.
    pub(super) fn union_over(&mut self, number: u64, now: Instant) {
        if self.union.current.take_if(|current| current.number == number).is_some() {
            self.union.missed = true;
        } else if self.union.next.take_if(|next| next.number == number).is_none() {
            return;
        }
        let wait = AGAIN_AFTER.saturating_mul(1 << self.union.failures.min(6)).min(AGAIN_AT_MOST);
        self.union.failures += 1;
        self.union.again_at = Some(now + wait);
        // Who waits for an acknowledgement gets one: that there is nothing, for now.
        self.settle_watches(now);
        self.acknowledge_listens();
    }

    pub(super) fn handle_union_timeout(&mut self, now: Instant) {
        if let Some(silent) = self.union.next.as_ref().filter(|next| next.deadline <= now).map(|next| next.number) {
            self.cancel_number(silent);
            self.union_over(silent, now);
        }
        if self.union.again_at.is_some_and(|at| at <= now) {
            self.union.again_at = None;
            self.adjust_union(now);
        }
    }

    /// Whether a change came on a listen that counts: while one replaces another, the old one does.
    pub(super) fn hears(&self, message: &Message) -> bool {
        match modern::subscription(message) {
            Some(number) => self.union.current.as_ref().is_some_and(|current| current.number == number),
            None => true,
        }
    }

    fn cancel_number(&mut self, number: u64) {
        self.output.write_text(&text::cancelled(number));
    }
}
