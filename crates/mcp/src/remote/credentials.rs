//! What opens a server over HTTP, where that is more than a header that somebody wrote down. Whoever has it (a vault, one
//! refresher for all clients) is asked before each request and told when a server refuses one; it may have better by then.
//!
//! The request that was refused was not processed, so it may be sent once more. Only once: a server that refuses what it has
//! just been offered is not to be asked in a circle.

use std::pin::Pin;

use hyper::{
    HeaderMap,
    header::{HeaderValue, WWW_AUTHENTICATE},
};

/// What opens one server.
pub trait Credentials: Send + Sync {
    /// Returns the headers that a request carries now. They win over configured ones of the same name.
    fn headers(&self) -> HeaderMap;

    /// Hears that a server refused what it was offered, and finds out whether there is better. It may take as long as asking
    /// another server does; the request's own deadline goes on meanwhile.
    fn refused<'a>(
        &'a self,
        refusal: &'a CredentialsRefusal,
    ) -> Pin<Box<dyn Future<Output = AfterRefusal> + Send + 'a>>;
}

/// What a server said no to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialsRefusal {
    /// 401, or 403 with a challenge: who it is, is known, and more is needed.
    pub status: u16,
    /// `WWW-Authenticate`, as the server wrote it.
    pub challenges: Vec<HeaderValue>,
    /// What it was offered: another request may have brought better meanwhile.
    pub offered: HeaderMap,
}

/// What is to be done about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterRefusal {
    /// There are other headers now.
    TryAgain,
    /// Nothing here helps: a person has to do something, or it is as it should be.
    GiveUp,
}

impl CredentialsRefusal {
    /// Reads it off the head of a response; `None` if it is no refusal that other credentials could help.
    pub(super) fn read(status: u16, head: &HeaderMap, offered: HeaderMap) -> Option<Self> {
        let challenges: Vec<HeaderValue> = head.get_all(WWW_AUTHENTICATE).iter().cloned().collect();
        let can_help = status == 401 || (status == 403 && !challenges.is_empty());
        can_help.then(|| Self { status, challenges, offered })
    }
}
