//! Listening to the members, so that a change of any list reaches the hub's clients.

use std::{future::poll_fn, sync::Arc, time::Duration};

use prism_core::{
    mcp::Method,
    wire::{
        Message, MessageKind,
        sse::{SseEvent, SseSplitter},
    },
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::{Hub, HubMember, fetch};
use crate::drive::{Audience, LinkCommand};

/// How often it is asked whether anybody would hear of a change.
const CHECK: Duration = Duration::from_secs(60);
/// The longest note that is read. What a longer one says is of no interest.
const MAX_NOTE: usize = 64 << 10;

impl Hub {
    /// Listens to a member where this audience's calls run, if nobody does, or says why it cannot be reached. It keeps the
    /// member's server awake, so it ends when the hub has no clients.
    pub(super) async fn watch(self: &Arc<Self>, member: &Arc<HubMember>, audience: Audience) -> Result<(), String> {
        let destination = &member.destination;
        if member.lists.watched.lock().await.contains(&destination.list_link(audience).number) {
            return Ok(());
        }
        // Where to listen depends on what it speaks; and one that does not start is not waited for.
        fetch::reach(destination, audience).await?;
        let link = destination.list_link(audience);
        let mut watched = member.lists.watched.lock().await;
        if !watched.contains(&link.number)
            && let Some(listen) = fetch::listen(link).await
        {
            watched.insert(listen.0.number);
            tokio::spawn(self.clone().attend(member.clone(), audience, listen));
        }
        Ok(())
    }

    async fn attend(
        self: Arc<Self>,
        member: Arc<HubMember>,
        audience: Audience,
        (link, stream, mut reader): fetch::Listen,
    ) {
        let whose = |of: Audience| member.destination.share_lists(of, audience);
        // Not at once: the session that it is for may still be about to be opened.
        let mut check = interval_at(Instant::now() + CHECK, CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = SseSplitter::new(MAX_NOTE);
        loop {
            let bytes = tokio::select! {
                bytes = poll_fn(|context| Pin::new(&mut reader).poll_next(context)) => bytes,
                _ = async { tokio::select! { _ = check.tick() => {} () = self.sessions.left_hub() => {} } } => {
                    // Their calls may run elsewhere since it is known to ask nothing.
                    let moved = || member.destination.list_link(audience).number != link.number;
                    if !self.is_used() || moved() {
                        break;
                    }
                    continue;
                }
            };
            let Some(bytes) = bytes else { break };
            events.push(&bytes);
            while let Some(event) = events.next_event() {
                // At home everybody hears of it anyhow; and what is announced there is heard here, too.
                if let Some(told) = told(event).filter(|_| !member.is_home()) {
                    self.announce(&member, whose, told);
                }
            }
        }
        drop(reader);
        let _ = link.commands.send(LinkCommand::StreamGone { stream }).await;
        member.lists.watched.lock().await.remove(&link.number);
        // The next one who asks finds out.
        self.outdate(&member, whose);
    }
}

/// The list that an event says has changed.
fn told(event: SseEvent) -> Option<Method> {
    let SseEvent::Data { data, .. } = event else { return None };
    match Message::parse(data).ok()?.kind() {
        MessageKind::Notification(
            method @ (Method::ToolsChanged | Method::PromptsChanged | Method::ResourcesChanged),
        ) => Some(method),
        _ => None,
    }
}
