//! What the tasks of a `RemoteConnection` tell it.

use hyper::{HeaderMap, Uri, header::HeaderValue};
use prism_core::wire::{Frame, Message};
use tokio::sync::mpsc;

use super::{RemoteFailure, headers::ProtocolHeaders};

/// What a task tells its `RemoteConnection`.
pub(super) struct TaskReport {
    pub(super) from: ReportSource,
    pub(super) says: ReportContent,
}

/// Who tells it.
#[derive(Clone, Copy)]
pub(super) enum ReportSource {
    Request(u64),
    Note,
    Stream(u64),
}

/// What there is to tell.
pub(super) enum ReportContent {
    Message(Frame),
    /// What of the response's head concerns whoever asked.
    Told(HeaderMap),
    /// The request's answer. It is over.
    Answer(Message),
    Failed(RemoteFailure),
    /// The request was accepted and will be answered elsewhere.
    Taken,
    SessionLost {
        session: HeaderValue,
        message: Message,
    },
    /// The stream of the session could not be opened again: the server has forgotten it.
    SessionGone,
    /// The answer to `initialize`, which follows, brought this.
    Opened(ProtocolHeaders),
    /// The server refused `initialize` in a way that servers of the older transport do.
    NotStreamable {
        message: Message,
        otherwise: Box<Self>,
    },
    /// `notifications/initialized` was accepted, or not.
    Greeted {
        number: u64,
        accepted: bool,
    },
    /// The stream of the session is open, or it is known that there is none for now.
    Listening,
    /// The older transport's stream is open, and messages go there.
    Endpoint(Uri),
    /// The older transport's stream is no more.
    Lost(SseLoss),
}

/// The end of the older transport's stream.
pub(super) struct SseLoss {
    pub(super) why: String,
    /// The server answered, and there is no such stream.
    pub(super) refused: bool,
}

/// A task's end of the channel.
#[derive(Clone)]
pub(super) struct TaskReporter {
    pub(super) from: ReportSource,
    pub(super) reports: mpsc::Sender<TaskReport>,
}

impl TaskReporter {
    /// Reports something. Waits while the link is behind: that is what slows a server down that says too much.
    pub(super) async fn say(&self, says: ReportContent) {
        // Nobody listens any more: the Remote is being dropped, and this task with it.
        let _ = self.reports.send(TaskReport { from: self.from, says }).await;
    }
}
