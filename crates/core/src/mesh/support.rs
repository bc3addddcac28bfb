//! How well an agent can be reached: whether it can be woken, and where the way to its stream stands.

/// Whether an agent can be woken (M-09).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WakeSupport {
    Full,
    Degraded,
}

/// Where the way to an agent's stream stands (M-16). No bell goes down a stream before the queue was read again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamConnection {
    #[default]
    Disconnected,
    /// There is a stream, and the queue is being read.
    Reconciling,
    /// It was read, and what had gathered is being rung for, once.
    Connected,
    /// Whatever comes rings.
    Emitting,
}

// === impl WakeSupport, StreamConnection ===

impl WakeSupport {
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Degraded => "degraded",
        }
    }
}

impl StreamConnection {
    pub fn name(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Reconciling => "reconciling",
            Self::Connected => "connected",
            Self::Emitting => "emitting",
        }
    }
}
