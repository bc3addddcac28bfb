//! Who may see the console: links that open it once, and the sessions that they open. All of it is in memory, so that a
//! restart of the daemon ends every session.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use prism_config::home::{HomeError, Token};

/// How long a link opens the console.
pub const LINK_LASTS: Duration = Duration::from_secs(60);
/// How long a session lasts.
pub const SESSION_LASTS: Duration = Duration::from_secs(8 * 60 * 60);
/// Links that nobody has used yet. Beyond it the oldest one opens nothing any more.
const MAX_LINKS: usize = 8;
/// Sessions at once. Beyond it the oldest one ends.
const MAX_SESSIONS: usize = 16;

#[derive(Debug)]
pub struct ConsoleAccess {
    inside: Mutex<ConsoleLogins>,
    /// Whoever watches looks again whether it still may.
    left: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct ConsoleLogins {
    links: VecDeque<(Token, Instant)>,
    sessions: VecDeque<ConsoleSession>,
}

/// A person at a browser.
#[derive(Clone, Debug)]
pub struct ConsoleSession {
    /// What our own pages show with every request. They are told it once, and no other origin can read where they keep it.
    pub secret: Token,
    until: Instant,
}

impl Default for ConsoleAccess {
    fn default() -> Self {
        Self { inside: Mutex::default(), left: watch::Sender::new(()) }
    }
}

impl ConsoleAccess {
    /// Makes a code that opens the console once.
    pub fn link(&self, now: Instant) -> Result<Token, HomeError> {
        let code = Token::random()?;
        let mut inside = self.inside();
        inside.links.retain(|(_, until)| now < *until);
        if inside.links.len() >= MAX_LINKS {
            inside.links.pop_front();
        }
        inside.links.push_back((code.clone(), now + LINK_LASTS));
        Ok(code)
    }

    /// Opens a session with such a code, which then opens nothing any more. `None`: it was used, is too old, or never was.
    pub fn enter(&self, code: &[u8], now: Instant) -> Result<Option<ConsoleSession>, HomeError> {
        let session = ConsoleSession { secret: Token::random()?, until: now + SESSION_LASTS };
        let mut inside = self.inside();
        let Some(at) = inside.links.iter().position(|(link, _)| link.matches(code)) else { return Ok(None) };
        let fresh = inside.links.remove(at).is_some_and(|(_, until)| now < until);
        if !fresh {
            return Ok(None);
        }
        inside.sessions.retain(|session| now < session.until);
        if inside.sessions.len() >= MAX_SESSIONS {
            inside.sessions.pop_front();
        }
        inside.sessions.push_back(session.clone());
        drop(inside);
        self.left.send_replace(());
        Ok(Some(session))
    }

    /// The session that a secret is of, while it lasts.
    pub fn session(&self, secret: &[u8], now: Instant) -> Option<ConsoleSession> {
        let inside = self.inside();
        inside.sessions.iter().find(|session| session.secret.matches(secret) && now < session.until).cloned()
    }

    /// Ends a session.
    pub fn leave(&self, session: &ConsoleSession) {
        self.inside().sessions.retain(|one| !one.secret.matches(session.secret.expose().as_bytes()));
        self.left.send_replace(());
    }

    /// Returns when that session is over. Cancel safe.
    pub async fn over(&self, session: &ConsoleSession) {
        let mut left = self.left.subscribe();
        loop {
            let is_open = self.session(session.secret.expose().as_bytes(), Instant::now()).is_some();
            if !is_open {
                return;
            }
            tokio::select! {
                _ = left.changed() => {}
                () = tokio::time::sleep_until(session.until.into()) => {}
            }
        }
    }

    fn inside(&self) -> MutexGuard<'_, ConsoleLogins> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(door: &ConsoleAccess, code: &Token, now: Instant) -> Option<ConsoleSession> {
        door.enter(code.expose().as_bytes(), now).unwrap()
    }

    fn is_in(door: &ConsoleAccess, session: &ConsoleSession, now: Instant) -> bool {
        door.session(session.secret.expose().as_bytes(), now).is_some()
    }

    //
    #[test]
    fn a_link_opens_once_and_within_its_minute() {
        let (door, now) = (ConsoleAccess::default(), Instant::now());
        let code = door.link(now).unwrap();
        assert!(door.enter(b"guess", now).unwrap().is_none());
        assert!(enter(&door, &code, now).is_some());
        assert!(enter(&door, &code, now).is_none(), "it was used");
        let late = door.link(now).unwrap();
        assert!(enter(&door, &late, now + LINK_LASTS).is_none());
        assert!(enter(&door, &late, now).is_none(), "and trying it has used it up");
    }

    #[test]
    fn a_session_ends_by_itself_and_by_leaving() {
        let (door, now) = (ConsoleAccess::default(), Instant::now());
        let open = || enter(&door, &door.link(now).unwrap(), now).unwrap();
        let (one, other) = (open(), open());
        assert!(is_in(&door, &one, now) && is_in(&door, &other, now));
        assert!(!is_in(&door, &one, now + SESSION_LASTS));
        door.leave(&one);
        assert!(!is_in(&door, &one, now) && is_in(&door, &other, now));
    }

    #[test]
    fn there_are_never_many_links_nor_sessions() {
        let (door, now) = (ConsoleAccess::default(), Instant::now());
        let first = door.link(now).unwrap();
        let links: Vec<Token> = (0..MAX_LINKS).map(|_| door.link(now).unwrap()).collect();
        assert!(enter(&door, &first, now).is_none());
        let oldest = enter(&door, &links[0], now).unwrap();
        for _ in 0..MAX_SESSIONS {
            enter(&door, &door.link(now).unwrap(), now).unwrap();
        }
        assert!(!is_in(&door, &oldest, now));
        assert_eq!(door.inside().sessions.len(), MAX_SESSIONS);
    }

    #[tokio::test]
    async fn who_watches_hears_that_the_session_is_over() {
        let (door, now) = (ConsoleAccess::default(), Instant::now());
        let session = enter(&door, &door.link(now).unwrap(), now).unwrap();
        let (over, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(5), door.over(&session)), async {
            tokio::task::yield_now().await;
            door.leave(&session);
        });
        over.unwrap();
    }
}
