//! Listening to the members, so that a change of any list reaches the hub's clients.

use std::{future::poll_fn, sync::Arc, time::Duration};

use prism_core::{
    mcp::{Class, Method},
    wire::{
        Kind, Message,
        sse::{Event, Events},
    },
};
use tokio::time::{MissedTickBehavior, interval};

use super::{Hub, Member, fetch};
use crate::drive::{Command, LinkHandle};

/// How often it is asked whether anybody would hear of a change.
const CHECK: Duration = Duration::from_secs(60);
/// The longest note that is read. What a longer one says is of no interest.
const MAX_NOTE: usize = 64 << 10;

impl Hub {
    /// Listens to a member, if nobody does, or says why it cannot be reached. It keeps the member's server awake, so it
    /// ends when the hub has no clients.
    pub(super) async fn watch(self: &Arc<Self>, member: &Arc<Member>) -> Result<(), String> {
        let destination = &member.destination;
        if !member.lists.watched.lock().await.contains(&destination.stateless_link().number) {
            // Where to listen depends on what it speaks; and one that does not start is not waited for.
            fetch::reach(destination).await?;
            self.watch_at(member, destination.stateless_link()).await;
        }
        Ok(())
    }

    /// Listens where a modern client's calls go, too: a server that speaks both eras has a process for each.
    pub async fn watch_modern(self: &Arc<Self>, member: &Arc<Member>) {
        let speaks = member.destination.speaks();
        if speaks.modern == Some(true) && speaks.legacy != Some(false) {
            let (link, _) = member.destination.modern_link(Class::NONE, false);
            self.watch_at(member, link).await;
        }
    }

    async fn watch_at(self: &Arc<Self>, member: &Arc<Member>, link: LinkHandle) {
        let mut watched = member.lists.watched.lock().await;
        if !watched.contains(&link.number)
            && let Some(listen) = fetch::listen(link.clone()).await
        {
            watched.insert(link.number);
            tokio::spawn(self.clone().attend(member.clone(), listen));
        }
    }

    async fn attend(self: Arc<Self>, member: Arc<Member>, (link, stream, mut reader): fetch::Listen) {
        let mut check = interval(CHECK);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = Events::new(MAX_NOTE);
        loop {
            let bytes = tokio::select! {
                bytes = poll_fn(|context| Pin::new(&mut reader).poll_next(context)) => bytes,
                _ = check.tick() => {
                    if !self.is_used() {
                        break;
                    }
                    continue;
                }
            };
            let Some(bytes) = bytes else { break };
            events.push(&bytes);
            while let Some(event) = events.next_event() {
                if let Some(told) = told(event) {
                    self.outdate(&member, told);
                    // At home everybody hears of it anyhow; and what is announced there is heard here, too.
                    if !member.is_home() {
                        self.announce(&member, told);
                    }
                }
            }
        }
        drop(reader);
        let _ = link.commands.send(Command::StreamGone { stream }).await;
        member.lists.watched.lock().await.remove(&link.number);
        // Whatever changes from now on, nobody hears of it: the next one who asks finds out.
        for told in [Method::ToolsChanged, Method::PromptsChanged, Method::ResourcesChanged] {
            self.outdate(&member, told);
        }
    }
}

/// The list that an event says has changed.
fn told(event: Event) -> Option<Method> {
    let Event::Data { data, .. } = event else { return None };
    match Message::parse(data).ok()?.kind() {
        Kind::Notification(method @ (Method::ToolsChanged | Method::PromptsChanged | Method::ResourcesChanged)) => {
            Some(method)
        }
        _ => None,
    }
}
