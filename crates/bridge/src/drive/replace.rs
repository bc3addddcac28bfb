//! A destination in the place of another: its settings have changed, and its sessions go on (D-09).

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use prism_core::{
    mcp::{CallFault, ClientHello, SessionSnapshot, link::SessionKey},
    wire::Message,
};
use tokio::{sync::oneshot, time::timeout};
use tracing::info;
use uuid::Uuid;

use super::{
    Destination, LinkCommand, LinkHandle, SessionEntry, SessionTable, keeping::numbers_from, sessions::SessionRole,
};

/// How long a link may take to say what it leaves.
const SHUT_DOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Ends the links of destinations, for that reason, and returns what outlives them.
pub async fn shut_down(links: Vec<LinkHandle>, why: CallFault) -> Vec<(SessionKey, SessionSnapshot)> {
    let left = join_all(links.into_iter().map(|link| {
        let why = why.clone();
        async move {
            let (kept, left) = oneshot::channel();
            let left = async {
                link.commands.send(LinkCommand::ShutDown { why, kept }).await.ok()?;
                left.await.ok()
            };
            timeout(SHUT_DOWN_TIMEOUT, left).await.ok().flatten().unwrap_or_default()
        }
    }));
    left.await.into_iter().flatten().collect()
}

/// Moves the sessions of a destination to the one that is there in its place. What a session of the hub's had there is
/// opened anew when it is used.
pub async fn hand_over(from: &Arc<Destination>, to: &Arc<Destination>, sessions: &SessionTable) {
    let links = from.links();
    let left = shut_down(links.clone(), CallFault::Replaced).await;
    let (mut moved, mut ended) = (0, 0);
    for (key, kept) in left {
        let Some(entry) = sessions.get(&Uuid::from_u128(key.0)) else { continue };
        match move_one(&entry, to, kept, sessions).await {
            Some(()) => moved += 1,
            None => {
                sessions.remove(&entry.id);
                ended += 1;
            }
        }
    }
    for link in links {
        let _ = link.commands.send(LinkCommand::Moved { to: to.clone() }).await;
    }
    info!(destination = to.config().name, moved, ended, "Its settings have changed; its sessions go on");
}

async fn move_one(
    entry: &Arc<SessionEntry>,
    to: &Arc<Destination>,
    kept: SessionSnapshot,
    sessions: &SessionTable,
) -> Option<()> {
    if !matches!(entry.role, SessionRole::Direct) {
        return None;
    }
    let hello = ClientHello::read(&Message::parse(entry.initialize.clone()).ok()?).ok()?;
    let (place, link) = (to.place().ok()?, to.link_for(hello.class));
    let command = LinkCommand::TakeUp {
        key: entry.key(),
        hello: Box::new(hello),
        kept: Box::new(kept),
        numbers_from: numbers_from(),
    };
    link.commands.send(command).await.ok()?;
    sessions.renew(entry, place, link);
    Some(())
}
