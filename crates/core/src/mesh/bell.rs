//! A bell: what it is about, what it says, and what became of it. It has no content of any signal, and no place for one (M-03).

use std::fmt;

use super::signal::SignalType;

/// A wake without content: who has sent what, and what to do about it (M-03).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bell {
    pub sender: Box<str>,
    pub kind: SignalType,
    /// How many signals wait beside this one.
    pub more: u64,
}

/// The signal that a bell is about. Its body is not here: nothing that rings can tell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalHeader {
    /// Its place in the order of all signals.
    pub seq: i64,
    pub signal: u128,
    pub trace: u128,
    pub kind: SignalType,
    pub sender: Box<str>,
}

/// What became of a bell (M-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BellOutcome {
    Rang,
    Coalesced,
    Filtered,
    Uncaptured,
    SendFailed,
    /// The path was given it, and did not say in time whether it took it.
    Unanswered,
    /// A drain followed in time.
    Confirmed,
}

// === impl Bell ===

impl From<(SignalHeader, u64)> for Bell {
    fn from((lead, more): (SignalHeader, u64)) -> Self {
        Self { sender: lead.sender, kind: lead.kind, more }
    }
}

/// The text of every bell that has one. Agents are told which tools to use, both of them: one that knows only how to read
/// cannot reply.
impl fmt::Display for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sender, kind, more } = self;
        write!(f, "Signal from {sender}: {}", kind.name())?;
        if *more > 0 {
            write!(f, " and {more} more")?;
        }
        f.write_str(". Use prism_signals_pending to read; prism_signal_reply to reply if needed.")
    }
}

impl BellOutcome {
    pub const ALL: [Self; 7] = [
        Self::Rang,
        Self::Coalesced,
        Self::Filtered,
        Self::Uncaptured,
        Self::SendFailed,
        Self::Unanswered,
        Self::Confirmed,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Rang => "rang",
            Self::Coalesced => "coalesced",
            Self::Filtered => "filtered",
            Self::Uncaptured => "uncaptured",
            Self::SendFailed => "send-failed",
            Self::Unanswered => "unanswered",
            Self::Confirmed => "confirmed",
        }
    }
}
