//! The life of a confirmation: it waits until a person answers, or nobody waits for the answer any more.

use serde::{Deserialize, Serialize};

/// Where a confirmation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmationState {
    /// A person was asked, and has not answered yet.
    #[default]
    Waiting,
    Allowed,
    Denied,
    /// Nobody has answered in time.
    Expired,
    /// Who wanted the answer has gone.
    Withdrawn,
}

impl ConfirmationState {
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Allowed, Self::Denied, Self::Expired, Self::Withdrawn];

    /// The word for it, on disk and outside.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confirmations_state_is_written_and_found_by_its_name() {
        for state in ConfirmationState::ALL {
            assert_eq!(ConfirmationState::named(state.name()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }
}
