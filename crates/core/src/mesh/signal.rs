//! What kinds of signals there are, and what each asks of its recipient (M-02, M-10).

/// What a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
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
pub enum Duty {
    /// To have heard it.
    Hear,
    /// To act, and to say how it went.
    Reply,
}

impl Kind {
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
    pub fn duty(self) -> Option<Duty> {
        match self {
            Self::Question | Self::TaskAssigned | Self::ReviewRequested => Some(Duty::Reply),
            _ if self.is_system() => None,
            _ => Some(Duty::Hear),
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
    const ROWS: [(Kind, bool, bool, &str); 8] = [
        (Kind::Question, true, true, "reply"),
        (Kind::TaskAssigned, true, true, "TaskCompleted"),
        (Kind::ReviewRequested, true, true, "ReviewCompleted"),
        (Kind::StatusUpdate, false, true, "drain"),
        (Kind::Acknowledgment, false, true, "drain"),
        (Kind::PeerJoined, false, false, "no obligation"),
        (Kind::PeerLeft, false, false, "no obligation"),
        (Kind::MasterPreempted, false, false, "no obligation"),
    ];

    // M-06, M-10
    #[test]
    fn each_row_of_the_table() {
        for (kind, required, rings, terminal) in ROWS {
            assert_eq!(kind.duty() == Some(Duty::Reply), required, "{kind:?}");
            assert_eq!(kind.rings(), rings, "{kind:?}");
            let ends = |by: Kind| by.ends(kind);
            match terminal {
                "reply" => assert!(ends(Kind::Answer)),
                "drain" => assert_eq!(kind.duty(), Some(Duty::Hear)),
                "no obligation" => assert_eq!(kind.duty(), None),
                only => {
                    let ending: Vec<&str> = Kind::ALL.into_iter().filter(|by| ends(*by)).map(Kind::name).collect();
                    assert_eq!(ending, [only]);
                }
            }
        }
    }

    #[test]
    fn a_word_on_the_way_ends_nothing() {
        for asked in [Kind::Question, Kind::TaskAssigned, Kind::ReviewRequested] {
            for by in [Kind::Acknowledgment, Kind::StatusUpdate, Kind::Question, Kind::PeerLeft] {
                assert!(!by.ends(asked), "{by:?} to {asked:?}");
            }
            assert!(asked.reply().unwrap().ends(asked));
        }
    }

    #[test]
    fn a_name_leads_back_to_its_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
        }
        assert_eq!(Kind::named("question"), None);
    }
}
