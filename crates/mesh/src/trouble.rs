//! Why a verb was refused: a code for scripts, and a sentence for whoever reads it, which names what to do next.

use prism_core::mesh::AgentNameError;
use prism_store::{StoreReadError, StoreWriteError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshError {
    pub code: MeshErrorCode,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshErrorCode {
    BadArguments,
    /// Nobody knows who calls.
    NotStarted,
    UnknownSession,
    UnknownAgent,
    UnknownSignal,
    NotYours,
    /// It cannot be taken back any more.
    AlreadyDrained,
    AlreadyGone,
    /// Delivery was to be at once, and cannot be.
    Unreachable,
    /// The recipient has more than it can read.
    MailboxFull,
    /// There are as many agents, or waits, as there may be.
    Busy,
    /// The same id was used for something else.
    Conflict,
    CursorAhead,
    CursorExpired,
    /// The store does not take it: nothing was done.
    Store,
}

impl MeshError {
    pub fn new(code: MeshErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(MeshErrorCode::BadArguments, message)
    }
}

impl MeshErrorCode {
    pub fn name(self) -> &'static str {
        match self {
            Self::BadArguments => "bad_arguments",
            Self::NotStarted => "not_started",
            Self::UnknownSession => "unknown_session",
            Self::UnknownAgent => "unknown_agent",
            Self::UnknownSignal => "unknown_signal",
            Self::NotYours => "not_yours",
            Self::AlreadyDrained => "already_drained",
            Self::AlreadyGone => "already_gone",
            Self::Unreachable => "unreachable",
            Self::MailboxFull => "mailbox_full",
            Self::Busy => "busy",
            Self::Conflict => "conflict",
            Self::CursorAhead => "cursor_ahead",
            Self::CursorExpired => "cursor_expired",
            Self::Store => "store",
        }
    }
}

impl From<AgentNameError> for MeshError {
    fn from(error: AgentNameError) -> Self {
        Self::bad(error.to_string())
    }
}

impl From<StoreWriteError> for MeshError {
    fn from(error: StoreWriteError) -> Self {
        Self::new(MeshErrorCode::Store, format!("{:#}; nothing was done, try again", anyhow::Error::from(error)))
    }
}

impl From<StoreReadError> for MeshError {
    fn from(error: StoreReadError) -> Self {
        Self::new(MeshErrorCode::Store, format!("{:#}; try again", anyhow::Error::from(error)))
    }
}
