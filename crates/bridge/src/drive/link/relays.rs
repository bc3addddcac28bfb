//! What parts of the hub's sessions have to say at their home, which is another link with a mailbox of its own. This task must not
//! wait for it: its other clients would wait, too. So what finds the mailbox full is counted, and the sum is told there as soon
//! as there is room; a question waits for that by itself, as its server waits for the answer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use prism_core::mcp::{link::SessionKey, replay::ReplayKind};
use tokio::sync::{
    Semaphore,
    mpsc::{Sender, error::TrySendError},
};

use super::LinkCommand;
use crate::drive::destination::lock;

/// Questions that wait for room. Beyond it one is dropped, and its server hears of that when its patience is over.
const MAX_QUESTIONS: usize = 64;

pub(super) struct HomeRelays {
    home: Option<Sender<LinkCommand>>,
    /// What each session has missed and was not told of. While there is something, somebody waits to tell it.
    missed: Arc<Mutex<HashMap<SessionKey, u64>>>,
    questions: Arc<Semaphore>,
}

impl HomeRelays {
    pub(super) fn new() -> Self {
        Self { home: None, missed: Arc::default(), questions: Arc::new(Semaphore::new(MAX_QUESTIONS)) }
    }

    pub(super) fn lead_to(&mut self, home: Sender<LinkCommand>) {
        self.home = Some(home);
    }

    /// Says something at the home of a session. Returns whether it will be heard there.
    pub(super) fn say(&self, to: SessionKey, text: Bytes, what: ReplayKind) -> bool {
        let Some(home) = &self.home else { return false };
        let command = match home.try_send(LinkCommand::Relay { home: to, text, what }) {
            Ok(()) => return true,
            Err(TrySendError::Closed(_)) => return false,
            Err(TrySendError::Full(command)) => command,
        };
        let home = home.clone();
        if matches!(command, LinkCommand::Relay { what: ReplayKind::Question(_), .. }) {
            let Ok(room) = self.questions.clone().try_acquire_owned() else { return false };
            tokio::spawn(async move {
                let _room = room;
                home.send(command).await
            });
            return true;
        }
        let is_first = {
            let mut missed = lock(&self.missed);
            let count = missed.entry(to).or_default();
            *count += 1;
            *count == 1
        };
        if is_first {
            let missed = self.missed.clone();
            tokio::spawn(async move {
                // Counted when there is room, so that it is told once.
                let room = home.reserve().await;
                let count = lock(&missed).remove(&to).unwrap_or_default();
                if let Ok(room) = room {
                    room.send(LinkCommand::Missed { home: to, count });
                }
            });
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    const HOME: SessionKey = SessionKey(7);

    fn note(relays: &HomeRelays) -> bool {
        relays.say(HOME, Bytes::from_static(b"{}"), ReplayKind::Message)
    }

    //
    #[tokio::test]
    async fn a_session_is_told_how_much_it_missed_while_its_home_had_too_much_to_do() {
        let (tx, mut rx) = mpsc::channel(2);
        let mut relays = HomeRelays::new();
        relays.lead_to(tx);
        assert_eq!([(); 5].map(|()| note(&relays)), [true, true, false, false, false]);
        assert!(
            relays.say(HOME, Bytes::from_static(b"{}"), ReplayKind::Question(9)),
            "its server waits for the answer"
        );
        let mut questions = 0;
        let mut told = Vec::new();
        for _ in 0..4 {
            match rx.recv().await.expect("four are said") {
                LinkCommand::Relay { what: ReplayKind::Question(9), .. } => questions += 1,
                LinkCommand::Relay { .. } => {}
                LinkCommand::Missed { home: HOME, count } => told.push(count),
                _ => panic!("nothing else is said"),
            }
        }
        assert_eq!((questions, told), (1, vec![3]));
        assert!(note(&relays) && rx.try_recv().is_ok(), "there is room again");
    }
}
