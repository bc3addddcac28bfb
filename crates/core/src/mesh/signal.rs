//! What kinds of signals there are, and what each asks of its recipient (M-02, M-10).

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignalType {
    Question,
    TaskAssigned,
    ReviewRequested,
    StatusUpdate,
    Acknowledgment,
    TaskCompleted,
    ReviewCompleted,
    Answer,
    PeerJoined,
    PeerLeft,
    MasterPreempted,
}

/// What a recipient owes for a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalDuty {
    /// To have heard it.
    Hear,
    /// To act, and to say how it went.
    Reply,
}

impl SignalType {
    pub const ALL: [Self; 11] = [
        Self::Question,
        Self::TaskAssigned,
        Self::ReviewRequested,
        Self::StatusUpdate,
        Self::Acknowledgment,
        Self::TaskCompleted,
        Self::ReviewCompleted,
        Self::Answer,
        Self::PeerJoined,
        Self::PeerLeft,
        Self::MasterPreempted,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Question => "Question",
            Self::TaskAssigned => "TaskAssigned",
            Self::ReviewRequested => "ReviewRequested",
            Self::StatusUpdate => "StatusUpdate",
            Self::Acknowledgment => "Acknowledgment",
            Self::TaskCompleted => "TaskCompleted",
            Self::ReviewCompleted => "ReviewCompleted",
            Self::Answer => "Answer",
            Self::PeerJoined => "PeerJoined",
            Self::PeerLeft => "PeerLeft",
            Self::MasterPreempted => "MasterPreempted",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether Prism itself sends it. Nobody else may, and it never rings (M-06).
    pub fn is_system(self) -> bool {
        matches!(self, Self::PeerJoined | Self::PeerLeft | Self::MasterPreempted)
    }

    /// Whether it rings the doorbell.
    pub fn rings(self) -> bool {
        !self.is_system()
    }

    /// What its recipient owes; `None` if nothing.
    pub fn duty(self) -> Option<SignalDuty> {
        match self {
            Self::Question | Self::TaskAssigned | Self::ReviewRequested => Some(SignalDuty::Reply),
            _ if self.is_system() => None,
            _ => Some(SignalDuty::Hear),
        }
    }

    /// The kind of a reply that ends what this one asks for, if it asks for one.
    pub fn reply(self) -> Option<Self> {
        match self {
            Self::Question => Some(Self::Answer),
            Self::TaskAssigned => Some(Self::TaskCompleted),
            Self::ReviewRequested => Some(Self::ReviewCompleted),
            _ => None,
        }
    }

    /// Whether a reply of this kind ends what `asked` asks for. A question is answered by whatever result it led to; a
    /// word that one is at it, or a question back, ends nothing.
    pub fn ends(self, asked: Self) -> bool {
        match asked {
            Self::Question => matches!(self, Self::Answer | Self::TaskCompleted | Self::ReviewCompleted),
            _ => asked.reply() == Some(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of M-10, row by row: kind, action and reply required, whether it rings, what ends it.
    const ROWS: [(SignalType, bool, bool, &str); 8] = [
        (SignalType::Question, true, true, "reply"),
        (SignalType::TaskAssigned, true, true, "TaskCompleted"),
        (SignalType::ReviewRequested, true, true, "ReviewCompleted"),
        (SignalType::StatusUpdate, false, true, "drain"),
        (SignalType::Acknowledgment, false, true, "drain"),
        (SignalType::PeerJoined, false, false, "no obligation"),
        (SignalType::PeerLeft, false, false, "no obligation"),
        (SignalType::MasterPreempted, false, false, "no obligation"),
    ];

    // M-06, M-10
    #[test]
    fn each_row_of_the_table() {
        for (kind, required, rings, terminal) in ROWS {
            assert_eq!(kind.duty() == Some(SignalDuty::Reply), required, "{kind:?}");
            assert_eq!(kind.rings(), rings, "{kind:?}");
            let ends = |by: SignalType| by.ends(kind);
            match terminal {
                "reply" => assert!(ends(SignalType::Answer)),
                "drain" => assert_eq!(kind.duty(), Some(SignalDuty::Hear)),
                "no obligation" => assert_eq!(kind.duty(), None),
                only => {
                    let ending: Vec<&str> =
                        SignalType::ALL.into_iter().filter(|by| ends(*by)).map(SignalType::name).collect();
                    assert_eq!(ending, [only]);
                }
            }
        }
    }

    #[test]
    fn a_word_on_the_way_ends_nothing() {
        for asked in [SignalType::Question, SignalType::TaskAssigned, SignalType::ReviewRequested] {
            for by in [SignalType::Acknowledgment, SignalType::StatusUpdate, SignalType::Question, SignalType::PeerLeft]
            {
                assert!(!by.ends(asked), "{by:?} to {asked:?}");
            }
            assert!(asked.reply().unwrap().ends(asked));
        }
    }

    #[test]
    fn a_name_leads_back_to_its_kind() {
        for kind in SignalType::ALL {
            assert_eq!(SignalType::named(kind.name()), Some(kind));
        }
        assert_eq!(SignalType::named("question"), None);
    }
}
