//! What the daemon's mesh offers to the paths that lead through the daemon itself. The mesh implements it; the adapters
//! of those paths are a few lines each.

use std::{path::Path as FilePath, time::Duration};

use prism_core::mesh::{ChatFailure, WakePath};
use tokio::time::timeout;

use super::{AgentFacts, ContactAddress, Doing, ProbeOutcome, RingOutcome, WakeBell, WakeContact, Why};

/// How long a link may take to say whether a stream took a ring. It answers within a millisecond or is stuck.
const DEADLINE: Duration = Duration::from_secs(2);

/// What the daemon holds for agent sessions. Nothing here waits for an agent.
pub trait DaemonChannels: Send + Sync {
    /// Whether something is open now that a ring by this path would reach.
    fn is_open(&self, path: WakePath, session: &str) -> bool;

    /// Writes `notifications/resources/updated` for the session's doorbell to its stream, GET or listen. True if one took
    /// it; never queued, never replayed.
    fn ring_stream<'a>(&'a self, session: &'a str) -> Doing<'a, bool>;

    /// Ends the session's long polls of this kind with the bell. True if there was one.
    fn finish(&self, poll: PollKind, session: &str, bell: &WakeBell) -> bool;

    /// Has the bell's text put at the end of the next tool result that leaves for the session's client. True if there is a
    /// client that can have one.
    fn arm_piggyback(&self, session: &str, bell: &WakeBell) -> bool;

    /// Whether a window of this kind has the folder open and lets bells into its chat.
    fn has_chat<'a>(&'a self, kind: &'a str, folder: Option<&'a FilePath>) -> Doing<'a, bool>;

    /// Has that window put the bell into its chat.
    fn ring_chat<'a>(
        &'a self,
        kind: &'a str,
        folder: Option<&'a FilePath>,
        bell: &'a WakeBell,
        within: Duration,
    ) -> Doing<'a, Result<(), ChatFailure>>;
}

/// Whose long poll it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PollKind {
    /// The agent's own: the tool `prism_signals_wait`.
    Tool,
    /// Of a program that its surface started: `POST /prism/mesh/wait` with a `hook`.
    Hook,
    /// Of `prism acp`: the same with `hook: "acp"`.
    Acp,
    /// Of `prism stdio`: the same with `hook: "channel"`, and `instance` in place of an agent.
    Channel,
}

/// Reaches a session by something that the daemon holds. Whether it is held shows when it is rung.
pub(super) fn contact(agent: &AgentFacts) -> WakeContact {
    WakeContact::new(agent, ContactAddress::Inside)
}

pub(super) fn probe(
    inside: &dyn DaemonChannels,
    path: WakePath,
    contact: &WakeContact,
    absent: &'static str,
) -> ProbeOutcome {
    match (&contact.to, inside.is_open(path, &contact.session)) {
        (ContactAddress::Inside, true) => ProbeOutcome::There,
        (ContactAddress::Inside, false) => ProbeOutcome::Absent(absent.into()),
        _ => ProbeOutcome::misled(),
    }
}

/// What ringing by something inside comes to.
pub(super) fn rung(contact: &WakeContact, took: bool, uncaptured: &'static str) -> RingOutcome {
    match (&contact.to, took) {
        (ContactAddress::Inside, true) => RingOutcome::Rang,
        (ContactAddress::Inside, false) => RingOutcome::Uncaptured(uncaptured.into()),
        _ => RingOutcome::misled(),
    }
}

/// The same for something that a link is asked for.
pub(super) async fn asked(contact: &WakeContact, asking: Doing<'_, bool>, uncaptured: &'static str) -> RingOutcome {
    asked_within(DEADLINE, contact, asking, uncaptured).await
}

pub(super) async fn asked_within(
    deadline: Duration,
    contact: &WakeContact,
    asking: Doing<'_, bool>,
    uncaptured: &'static str,
) -> RingOutcome {
    match timeout(deadline, asking).await {
        Ok(took) => rung(contact, took, uncaptured),
        Err(_) => RingOutcome::SendFailed(Why::from(
            "the session's connection in the daemon did not answer in time: prism status shows what it is busy with",
        )),
    }
}
