//! The protocol's two eras and their revisions, and what differs between them.

/// How a peer is spoken to: with a handshake and sessions, or with everything in every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub const ALL: [Self; 2] = [Self::Legacy, Self::Modern];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|era| era.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// Which eras a server was found to speak; `None` is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpokenEras {
    pub legacy: Option<bool>,
    pub modern: Option<bool>,
}

impl SpokenEras {
    pub const BOTH: &'static str = "both";

    /// One era, and not the other.
    pub fn only(era: Era) -> Self {
        Self { legacy: Some(era == Era::Legacy), modern: Some(era == Era::Modern) }
    }

    pub fn named(name: &str) -> Option<Self> {
        match name {
            Self::BOTH => Some(Self { legacy: Some(true), modern: Some(true) }),
            _ => Era::named(name).map(Self::only),
        }
    }

    /// The name of what is known, once both is.
    pub fn name(self) -> Option<&'static str> {
        match (self.legacy?, self.modern?) {
            (true, true) => Some(Self::BOTH),
            (_, true) => Some(Era::Modern.name()),
            (_, false) => Some(Era::Legacy.name()),
        }
    }

    /// What it was found to speak. That it does not speak the rest is no longer known.
    pub fn without_refusals(self) -> Self {
        Self { legacy: self.legacy.filter(|does| *does), modern: self.modern.filter(|does| *does) }
    }

    /// Whether it was found not to speak an era, of which that was not known.
    pub fn refuses_more_than(self, before: Self) -> bool {
        let refuses = |now: Option<bool>, before: Option<bool>| now == Some(false) && before != Some(false);
        refuses(self.legacy, before.legacy) || refuses(self.modern, before.modern)
    }

    /// With what was found out later.
    pub fn and(self, newer: Self) -> Self {
        Self { legacy: newer.legacy.or(self.legacy), modern: newer.modern.or(self.modern) }
    }
}

/// A revision that is opened by `initialize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
}

impl Revision {
    pub const NEWEST: Self = Self::V2025_11_25;
    pub const ALL: [Self; 4] = [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
        }
    }

    /// The revision to answer a client with: the one it asks for, else our newest, for it to take or leave.
    pub fn negotiated(asked: &str) -> Self {
        match asked {
            // The TypeScript SDK still lists this draft of the first revision.
            "2024-10-07" => Self::V2024_11_05,
            _ => Self::named(asked).unwrap_or(Self::NEWEST),
        }
    }

    /// Whether a client of this revision understands an event that carries only an id. Older ones choke on it (N-04).
    pub fn knows_priming_events(self) -> bool {
        self >= Self::V2025_11_25
    }

    /// Whether a body may hold an array of messages (B-16).
    pub fn has_batches(self) -> bool {
        self == Self::V2025_03_26
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_revision_is_echoed_and_an_unknown_one_gets_our_newest() {
        for revision in Revision::ALL {
            assert_eq!(Revision::negotiated(revision.name()), revision);
        }
        assert_eq!(Revision::negotiated("2024-10-07"), Revision::V2024_11_05);
        assert_eq!(Revision::negotiated("2026-07-28"), Revision::NEWEST);
        assert_eq!(Revision::negotiated("banana"), Revision::NEWEST);
    }
}
