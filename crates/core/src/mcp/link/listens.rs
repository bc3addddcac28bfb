//! Streams of modern clients that want to hear of changes (`subscriptions/listen`, mcp-eras 5.8).

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{CallFault, Link, LinkAction, LinkPhase, LinkRefusal, MemberNames, Method, StreamKey, watch::Watcher};
use crate::{
    mcp::{
        era::Era,
        modern::{self, ListenFilter},
    },
    wire::{Message, frame},
};

/// Listens at a time. Beyond it the next is refused.
const MAX_LISTENS: usize = 256;
/// Changes that wait for an acknowledgement. Beyond it the oldest is dropped.
const MAX_EARLY: usize = 64;
/// How long a server may take to confirm that it will tell of a resource. Then the client is told that it will not.
const CONFIRM_WITHIN: Duration = Duration::from_secs(10);

/// One client's listen.
#[derive(Debug)]
pub(super) struct ClientListen {
    /// The id of its request, as it was written: what its messages are tagged with.
    id: Box<str>,
    by_method: bool,
    /// How its client calls the server's resources, where that is not as the server does.
    pub(super) names: Option<MemberNames>,
    pub(super) wanted: ListenFilter,
    /// What it was told that it will hear of; nothing before that is sent.
    honoured: Option<ListenFilter>,
    /// The server was asked for the resources that it wants.
    begun: bool,
    early: Vec<String>,
}

impl ClientListen {
    /// Whether it was told that it will hear of this very resource.
    pub(super) fn hears(&self, uri: &str) -> bool {
        self.honoured.as_ref().is_some_and(|honoured| honoured.uris.iter().any(|own| own == uri))
    }
}

impl Link {
    /// Opens a modern client's stream of changes. What it is acknowledged for follows when the server is there.
    pub fn attend(
        &mut self,
        message: &Message,
        wanted: ListenFilter,
        by_method: bool,
        names: Option<MemberNames>,
        now: Instant,
    ) -> Result<StreamKey, LinkRefusal> {
        if self.listens.len() >= MAX_LISTENS {
            return Err(LinkRefusal::Busy);
        }
        if self.is_stuck() {
            return Err(LinkRefusal::Stuck);
        }
        let stream = self.next_stream(now);
        let id = message.id().unwrap_or_default().into();
        let listen = ClientListen { id, by_method, names, wanted, honoured: None, begun: false, early: Vec::new() };
        self.listens.insert(stream, listen);
        if self.phase == LinkPhase::Up {
            self.begin_listens(now);
        } else {
            self.want(now);
        }
        Ok(stream)
    }

    /// Asks the server for what the new listens want.
    pub(super) fn begin_listens(&mut self, now: Instant) {
        let Some(greeting) = self.greeting.clone() else { return };
        let new: Vec<StreamKey> = self.listens.iter().filter(|(_, l)| !l.begun).map(|(stream, _)| *stream).collect();
        for stream in new {
            let Some(listen) = self.listens.get_mut(&stream) else { continue };
            listen.begun = true;
            listen.wanted = std::mem::take(&mut listen.wanted).within(&greeting);
            for uri in listen.wanted.uris.clone() {
                self.watch_for(Watcher::Listen(stream), &uri, now + CONFIRM_WITHIN);
            }
        }
        self.adjust_union(now);
        self.acknowledge_listens();
    }

    /// Tells the listens whose resources are settled what they will hear of.
    pub(super) fn acknowledge_listens(&mut self) {
        if self.phase != LinkPhase::Up {
            return;
        }
        let Some(greeting) = &self.greeting else { return };
        let modern = self.era() == Era::Modern;
        let mut ready = Vec::new();
        for (stream, listen) in self.listens.iter().filter(|(_, l)| l.begun && l.honoured.is_none()) {
            let watcher = Watcher::Listen(*stream);
            let is_watched = |uri: &String| self.watches.get(uri).is_some_and(|watch| watch.has(watcher));
            let is_open = |uri: &String| self.watches.get(uri).is_some_and(|watch| watch.expects(watcher));
            let settled = if modern { self.union.is_settled() } else { !listen.wanted.uris.iter().any(is_open) };
            if settled {
                let mut honoured = listen.wanted.clone();
                honoured.uris.retain(is_watched);
                if modern {
                    honoured = self.union.honours(honoured, greeting);
                }
                ready.push((*stream, honoured));
            }
        }
        for (stream, honoured) in ready {
            let Some(listen) = self.listens.get_mut(&stream) else { continue };
            let first = modern::acknowledgement(&listen.id, &honoured);
            let uris = honoured.uris.clone();
            listen.honoured = Some(honoured);
            let by_method = listen.by_method;
            for text in std::iter::once(first).chain(std::mem::take(&mut listen.early)) {
                push(&mut self.actions, stream, by_method, &text);
            }
            if !uris.is_empty() {
                self.actions.push_back(LinkAction::Promised { stream, uris });
            }
        }
    }

    /// A listen's stream is gone.
    pub(super) fn stop_listening(&mut self, stream: StreamKey, now: Instant) {
        self.listens.remove(&stream);
        self.release_watches(Watcher::Listen(stream));
        self.adjust_union(now);
        self.settle(now);
    }

    /// Tells every listen that wants it of a changed list.
    pub(super) fn tell_listens(&mut self, method: Method, text: &str) {
        let wanting: Vec<StreamKey> =
            self.listens.iter().filter(|(_, l)| l.wanted.wants(method)).map(|(stream, _)| *stream).collect();
        for stream in wanting {
            self.tell_listen(stream, text);
        }
    }

    pub(super) fn has_acknowledged_listens(&self) -> bool {
        self.listens.values().any(|listen| listen.honoured.is_some())
    }

    /// Tells one listen of a change, under its own id.
    pub(super) fn tell_listen(&mut self, stream: StreamKey, text: &str) {
        // What was before a listen is no change to it.
        let Some(listen) = self.listens.get_mut(&stream).filter(|listen| listen.begun) else { return };
        let Ok(message) = Message::parse(Bytes::copy_from_slice(text.as_bytes())) else { return };
        let tagged = modern::tagged(&message, &listen.id);
        if listen.honoured.is_some() {
            push(&mut self.actions, stream, listen.by_method, &tagged);
        } else if !listen.early.contains(&tagged) {
            if listen.early.len() >= MAX_EARLY {
                listen.early.remove(0);
                self.actions.push_back(LinkAction::Dropped(1));
            }
            listen.early.push(tagged);
        }
    }

    /// The server is gone: what it was asked for and has not confirmed, the next one is asked for.
    pub(super) fn hold_listens(&mut self) {
        for listen in self.listens.values_mut().filter(|listen| listen.honoured.is_none()) {
            listen.begun = false;
        }
    }

    /// The server promises something else than before: who was told what to expect asks anew.
    pub(super) fn end_acknowledged_listens(&mut self) {
        let (told, new) = std::mem::take(&mut self.listens).into_iter().partition(|(_, l)| l.honoured.is_some());
        self.listens = told;
        self.end_listens(None);
        self.listens = new;
        self.hold_listens();
    }

    /// Ends all listens: in order, or because the server is out of reach.
    pub(super) fn end_listens(&mut self, fault: Option<&CallFault>) {
        for (stream, listen) in std::mem::take(&mut self.listens) {
            let last = match fault {
                None => modern::listen_over(&listen.id),
                Some(fault) => fault.body(Some(&listen.id)),
            };
            push(&mut self.actions, stream, listen.by_method, &last);
            self.actions.push_back(LinkAction::End(stream));
        }
    }
}

fn push(actions: &mut std::collections::VecDeque<LinkAction>, stream: StreamKey, by_method: bool, text: &str) {
    let bytes = super::exchange::named(frame::event(None, &[text.as_bytes()]), by_method);
    actions.push_back(LinkAction::Event { stream, number: 0, bytes });
}
