//! Whom a server sees as one: what it lists is asked for where the calls of those run that are shown it. A list of another
//! process would not have what a call has just added, and nobody would hear that it did (R-20, R-56).

use prism_core::mcp::{ClientClass, Era, LinkState, quiet::QuietVerdict};

use super::{Destination, LinkHandle};

/// Clients that can answer the same questions and speak the same era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Audience {
    pub class: ClientClass,
    pub era: Era,
}

// === impl Audience ===

impl Audience {
    /// Who has not said what it can do: Prism itself, too.
    pub const PLAIN: Self = Self::legacy(ClientClass::NONE);

    pub const fn legacy(class: ClientClass) -> Self {
        Self { class, era: Era::Legacy }
    }

    pub const fn modern(class: ClientClass) -> Self {
        Self { class, era: Era::Modern }
    }

    /// As it is written down. Those of the older era have no word for it: what was written before there were two is theirs.
    pub fn to_text(self) -> String {
        match self.era {
            Era::Legacy => self.class.to_capabilities(),
            Era::Modern => format!("{} {}", Era::Modern.name(), self.class.to_capabilities()),
        }
    }

    pub fn read(text: &str) -> Option<Self> {
        let (era, capabilities) = match text.split_once(' ').map(|(era, rest)| (Era::named(era), rest)) {
            Some((Some(era), rest)) => (era, rest),
            _ => (Era::Legacy, text),
        };
        Some(Self { class: ClientClass::read(capabilities)?, era })
    }
}

// === impl Destination ===

impl Destination {
    /// As whom the server sees these clients. Where both eras meet at one link they count as the older.
    pub fn audience(&self, Audience { class, era }: Audience) -> Audience {
        let class = self.class_shown(class);
        let apart = !self.is_only_modern() && (self.speaks().modern != Some(false) || self.has_twins(class));
        Audience { class, era: if apart { era } else { Era::Legacy } }
    }

    /// The link whose lists these clients are shown: the one where their calls run, or where all such clients' would.
    pub fn list_link(&self, of: Audience) -> LinkHandle {
        match self.audience(of) {
            // A modern server hears with every request what its client can answer.
            _ if self.is_only_modern() => self.stateless_link(),
            Audience { class, era: Era::Modern } => self.modern_link(class, false).0,
            Audience { class, era: Era::Legacy } => self.shared_link(class, Era::Legacy),
        }
    }

    /// Whether both are shown the lists of one link, so that a change of one's is a change of the other's.
    pub fn share_lists(&self, one: Audience, other: Audience) -> bool {
        let (one, other) = (self.audience(one), self.audience(other));
        let speaks_modern = one.era == Era::Modern && self.speaks().modern != Some(false);
        one.era == other.era && (self.is_only_modern() || speaks_modern || one.class == other.class)
    }

    /// Whether the server that lists for these clients is being started.
    pub(crate) fn is_starting(&self, of: Audience) -> bool {
        self.list_link(of).vitals.state() == LinkState::Starting
    }

    /// What of their abilities clients of a class show to the server.
    pub(super) fn class_shown(&self, class: ClientClass) -> ClientClass {
        if self.is_built_in() || self.config().asks == Some(false) { ClientClass::NONE } else { class }
    }

    /// Whether a server of the older era has children of their own for the sessionless calls of clients of a class: it may
    /// ask them something, and must not ask anybody else.
    pub(super) fn has_twins(&self, class: ClientClass) -> bool {
        class.answers_questions() && self.verdict() != QuietVerdict::Quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_reads_as_it_is_written() {
        let asked = ClientClass::read(r#"{"elicitation":{"form":{}},"roots":{}}"#).unwrap();
        for class in [ClientClass::NONE, asked] {
            for audience in [Audience::legacy(class), Audience::modern(class)] {
                assert_eq!(Audience::read(&audience.to_text()), Some(audience));
            }
            // As it was written before eras were.
            assert_eq!(Audience::read(&class.to_capabilities()), Some(Audience::legacy(class)));
        }
        assert_eq!(Audience::read("modern"), None);
        assert_eq!(Audience::read("tomorrow {}"), None);
    }
}
