//! What the machine says is to be done, done.

use std::time::Instant;

use bytes::Bytes;
use prism_core::mcp::{LinkAction, LinkAnswer, LinkState, link::StreamKey};
use tracing::{debug, info, warn};

use super::{ClientStream, LinkDriver, PendingReply, ReplyHead};
use crate::drive::{outlet::PushOutcome, vitals::StreamKind};

impl LinkDriver {
    pub(super) fn act(&mut self, now: Instant) {
        while let Some(action) = self.machine.poll_action() {
            match action {
                LinkAction::Answer(id, answer) => {
                    self.carried.remove(&id.0);
                    match &answer {
                        LinkAnswer::Fault { fault, .. } => {
                            self.shared.trouble.note_fault(fault);
                            self.shared.sightings.fault(fault);
                        }
                        _ => self.shared.sightings.answered(),
                    }
                    if let Some(PendingReply { reply, key, opens }) = self.waiting.remove(&id)
                        && reply.send(ReplyHead::Answer(answer)).is_err()
                        && let Some(key) = key.filter(|_| opens)
                    {
                        // Its client left a moment ago, and nobody else will ever know of this session.
                        self.machine.close(key, now);
                    }
                }
                LinkAction::Elsewhere(id, message) => {
                    // Before it hears of it, so that it does not come back here.
                    self.parked.note(true);
                    if let Some(PendingReply { reply, .. }) = self.waiting.remove(&id) {
                        drop(reply.send(ReplyHead::Elsewhere(message)));
                    }
                }
                LinkAction::Stream(id, stream) => {
                    if let Some(PendingReply { reply, key, .. }) = self.waiting.remove(&id) {
                        self.open_stream(stream, StreamKind::Post, key, reply, now);
                    }
                }
                LinkAction::Event { stream, number, bytes } => self.push(stream, number, bytes, now),
                LinkAction::Promised { stream, uris } => self.tell_of(stream, uris),
                LinkAction::End(stream) => {
                    if let Some(ClientStream { outlet, .. }) = self.streams.get(&stream) {
                        outlet.end();
                    }
                    self.stream_gone(stream, now);
                }
                LinkAction::Relay { home, text, what } => {
                    if !self.relays.say(home, text, what) {
                        self.shared.metrics.dropped.inc();
                        debug!(destination = self.name(), "Dropped a note: the hub has too much to do");
                    }
                }
                LinkAction::KeepAlive => {
                    self.sweep(now);
                    let silent = |stream: &ClientStream| stream.outlet.beat() == PushOutcome::Gone;
                    let gone: Vec<StreamKey> =
                        self.streams.iter().filter(|(_, stream)| silent(stream)).map(|(key, _)| *key).collect();
                    for stream in gone {
                        self.stream_gone(stream, now);
                    }
                }
                LinkAction::Start => self.start(now),
                LinkAction::Stop => self.stop(),
                // One that goes on elsewhere has not ended.
                LinkAction::Ended(key) if self.moves(key) => {}
                LinkAction::Ended(key) => self.shared.ended(key),
                LinkAction::Seen(key) => self.tell(|reach| reach.seen(key)),
                LinkAction::Silent(key) => self.tell(|reach| reach.silent(key)),
                LinkAction::Unsaved => self.saving.ask(now),
                LinkAction::Dropped(count) => {
                    self.shared.metrics.dropped.inc_by(count as u64);
                    debug!(destination = self.name(), count, "Dropped events that no client has had");
                }
                LinkAction::Garbage { line, why } => {
                    self.shared.metrics.garbage.inc();
                    if self.printed.is_none() && self.machine.condition().state == LinkState::Starting {
                        self.printed = Some(String::from_utf8_lossy(&line).into_owned());
                        self.shared.sightings.printed(self.printed.as_deref());
                    }
                    if !std::mem::replace(&mut self.told.garbage, true) {
                        warn!(
                            destination = self.name(),
                            why, "The server writes to stdout what is no message; it is skipped"
                        );
                    }
                    debug!(destination = self.name(), bytes = line.len(), why, "Skipped a line of the server's stdout");
                }
                LinkAction::Unowned(message) => {
                    self.shared.metrics.unowned.inc();
                    let method = message.method_text().unwrap_or_default();
                    if !std::mem::replace(&mut self.told.unowned, true) {
                        warn!(
                            destination = self.name(),
                            method,
                            "A note of the server belongs to no certain session and is kept from all; \
                             process = \"per_session\" would tell whose it is"
                        );
                    }
                    debug!(destination = self.name(), method, "A note without an owner");
                }
                LinkAction::Asked => {
                    self.shared.metrics.questions.inc();
                    self.shared.asked();
                }
                LinkAction::Ambiguous => {
                    self.shared.metrics.ambiguous.inc();
                    warn!(
                        destination = self.name(),
                        "Refused a server's question: calls of several clients were running. Use process = \"per_session\""
                    );
                }
                LinkAction::Listed { tools, whole } => self.shared.listed(&tools, whole),
                LinkAction::Tools(tools) => self.shared.know_tools(tools),
                LinkAction::Defined(result) => self.shared.definitions().learn(result),
                LinkAction::ListChanged(method) => self.shared.note_change(method),
                LinkAction::Answered { tool } => {
                    self.shared.sightings.answered();
                    if self.shared.answered(&tool) {
                        self.machine.share_freely(now);
                    }
                }
                LinkAction::Ready { name, version, era, speaks } => {
                    info!(destination = self.name(), server = name, version, era = era.name(), "Server is ready");
                    self.reopened = true;
                    self.tries = None;
                    self.shared.sightings.greeted();
                    self.vitals.speaks(era);
                    self.shared.greeted(&name, &version, speaks);
                }
            }
        }
    }

    fn push(&mut self, stream: StreamKey, number: u64, bytes: Bytes, now: Instant) {
        let Some(ClientStream { outlet, .. }) = self.streams.get(&stream) else { return };
        match outlet.push(number, bytes) {
            PushOutcome::Queued => {}
            PushOutcome::Gone => self.stream_gone(stream, now),
            PushOutcome::CutOff => {
                self.shared.metrics.cut_off.inc();
                warn!(destination = self.name(), "Cut off a client that stopped reading its stream; it can resume");
                self.stream_gone(stream, now);
            }
        }
    }
}
