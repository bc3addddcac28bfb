//! A link that is over because its destination has changed: what is still sent to it goes to where its sessions are now.

use std::sync::Arc;

use prism_core::mcp::{Refusal, link::SessionKey};
use uuid::Uuid;

use super::{Command, Driver, Head};
use crate::drive::{Destination, LinkHandle, sessions::Role};

/// Commands that wait until the sessions have moved. Beyond it they are refused: that takes a moment, and who is refused
/// is told to try again.
const MAX_WAITING: usize = 1024;

/// Where the sessions of a link are.
#[derive(Default)]
pub(super) enum Successor {
    /// Here.
    #[default]
    None,
    /// On their way.
    Awaited(Vec<Command>),
    Known(Arc<Destination>),
}

impl Driver {
    /// The sessions are about to move.
    pub(super) fn await_successor(&mut self) {
        self.successor = Successor::Awaited(Vec::new());
    }

    /// They have moved.
    pub(super) fn moved(&mut self, to: Arc<Destination>) {
        let before = std::mem::replace(&mut self.successor, Successor::Known(to));
        if let Successor::Awaited(waiting) = before {
            for command in waiting {
                drop(self.redirect(command));
            }
        }
    }

    /// Sends a command on to where it belongs now. Gives it back if that is here.
    pub(super) fn redirect(&mut self, command: Command) -> Option<Command> {
        // What is about this very link is.
        let own = matches!(
            command,
            Command::Left
                | Command::StreamGone { .. }
                | Command::Exited { .. }
                | Command::Probe { .. }
                | Command::ShutDown { .. }
                | Command::Moved { .. }
        );
        match &mut self.successor {
            _ if own => return Some(command),
            Successor::None => return Some(command),
            Successor::Awaited(waiting) if waiting.len() < MAX_WAITING => waiting.push(command),
            Successor::Awaited(_) => refuse(command),
            Successor::Known(to) => {
                let session = |key: &SessionKey| self.shared.sessions().get(&Uuid::from_u128(key.0));
                let link = match &command {
                    Command::Call { key: None, .. } => Some(to.stateless_link()),
                    Command::Call { key: Some(key), .. }
                    | Command::Tell { key: Some(key), .. }
                    | Command::Batch { key, .. }
                    | Command::Listen { key, .. }
                    | Command::Close { key, .. } => session(key).map(|entry| entry.link.clone()),
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
        matches!(self.successor, Successor::Awaited(_))
            && entry().is_some_and(|entry| matches!(entry.role, Role::Direct))
    }

    fn is(&self, link: &LinkHandle) -> bool {
        self.commands.upgrade().is_some_and(|own| own.same_channel(&link.commands))
    }
}

fn refuse(command: Command) {
    let (reply, refusal) = match command {
        // Its session was not one that could move.
        Command::Call { key: Some(_), reply, .. } | Command::Batch { reply, .. } | Command::Listen { reply, .. } => {
            (reply, Refusal::UnknownSession)
        }
        Command::Call { reply, .. }
        | Command::Open { reply, .. }
        | Command::OpenPlain { reply, .. }
        | Command::Ask { reply, .. }
        | Command::Attend { reply, .. }
        | Command::Post { reply, .. } => (reply, Refusal::Closed),
        _ => return,
    };
    drop(reply.send(Head::Refused(refusal)));
}
