//! A link that is over because its destination has changed: what is still sent to it goes to where its sessions are now.

use std::sync::Arc;

use prism_core::mcp::{LinkRefusal, link::SessionKey};
use uuid::Uuid;

use super::{LinkCommand, LinkDriver, ReplyHead};
use crate::drive::{Destination, LinkHandle, sessions::SessionRole};

/// Commands that wait until the sessions have moved. Beyond it they are refused: that takes a moment, and who is refused
/// is told to try again.
const MAX_WAITING: usize = 1024;

/// Where the sessions of a link are.
#[derive(Default)]
pub(super) enum LinkSuccessor {
    /// Here.
    #[default]
    None,
    /// On their way.
    Awaited(Vec<LinkCommand>),
    Known(Arc<Destination>),
}

impl LinkDriver {
    /// The sessions are about to move.
    pub(super) fn await_successor(&mut self) {
        self.successor = LinkSuccessor::Awaited(Vec::new());
    }

    /// They have moved.
    pub(super) fn moved(&mut self, to: Arc<Destination>) {
        let before = std::mem::replace(&mut self.successor, LinkSuccessor::Known(to));
        if let LinkSuccessor::Awaited(waiting) = before {
            for command in waiting {
                drop(self.redirect(command));
            }
        }
    }

    /// Sends a command on to where it belongs now. Gives it back if that is here.
    pub(super) fn redirect(&mut self, command: LinkCommand) -> Option<LinkCommand> {
        // What is about this very link is.
        let own = matches!(
            command,
            LinkCommand::Left
                | LinkCommand::StreamGone { .. }
                | LinkCommand::Exited { .. }
                | LinkCommand::Probe { .. }
                | LinkCommand::ShutDown { .. }
                | LinkCommand::Moved { .. }
        );
        match &mut self.successor {
            _ if own => return Some(command),
            LinkSuccessor::None => return Some(command),
            LinkSuccessor::Awaited(waiting) if waiting.len() < MAX_WAITING => waiting.push(command),
            LinkSuccessor::Awaited(_) => refuse(command),
            LinkSuccessor::Known(to) => {
                let session = |key: &SessionKey| self.shared.sessions().get(&Uuid::from_u128(key.0));
                let link = match &command {
                    LinkCommand::Call { key: None, .. } => Some(to.stateless_link()),
                    LinkCommand::Call { key: Some(key), .. }
                    | LinkCommand::Tell { key: Some(key), .. }
                    | LinkCommand::Batch { key, .. }
                    | LinkCommand::Listen { key, .. }
                    | LinkCommand::Close { key, .. } => session(key).map(|entry| entry.link.clone()),
                    _ => None,
                };
                match link.filter(|link| !self.is(link)) {
                    // A full mailbox is no place to wait in line for: its reply is dropped, and the client told so.
                    Some(link) => drop(link.commands.try_send(command)),
                    None => refuse(command),
                }
            }
        }
        None
    }

    /// Whether a session goes on elsewhere: one that a client came to this very destination with.
    pub(super) fn moves(&self, key: SessionKey) -> bool {
        let entry = || self.shared.sessions().get(&Uuid::from_u128(key.0));
        matches!(self.successor, LinkSuccessor::Awaited(_))
            && entry().is_some_and(|entry| matches!(entry.role, SessionRole::Direct))
    }

    fn is(&self, link: &LinkHandle) -> bool {
        self.commands.upgrade().is_some_and(|own| own.same_channel(&link.commands))
    }
}

fn refuse(command: LinkCommand) {
    let (reply, refusal) = match command {
        // Its session was not one that could move.
        LinkCommand::Call { key: Some(_), reply, .. }
        | LinkCommand::Batch { reply, .. }
        | LinkCommand::Listen { reply, .. } => (reply, LinkRefusal::UnknownSession),
        LinkCommand::Call { reply, .. }
        | LinkCommand::Open { reply, .. }
        | LinkCommand::OpenPlain { reply, .. }
        | LinkCommand::Ask { reply, .. }
        | LinkCommand::Attend { reply, .. }
        | LinkCommand::Post { reply, .. } => (reply, LinkRefusal::Closed),
        _ => return,
    };
    drop(reply.send(ReplyHead::Refused(refusal)));
}
