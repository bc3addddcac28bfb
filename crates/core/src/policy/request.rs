//! The life of a request and of the grant that it becomes (A-04).
//!
//! ```text
//!  requested ─► pending ─┬─► approved ─► active ─┬─► expired
//!                        ├─► denied       │      └─► revoked
//!                        └─► expired      └────────► (the same ends)
//! ```

use serde::{Deserialize, Serialize};

/// Where it stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RequestState {
    /// Accepted, and nobody was told yet.
    #[default]
    Requested,
    /// A person was told, and decides.
    Pending,
    /// There is a grant, which nobody has used yet.
    Approved,
    Denied,
    /// Its holder was here.
    Active,
    Expired,
    Revoked,
}

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestStep {
    Told,
    Approve,
    Deny,
    Use,
    Expire,
    Revoke,
}

impl RequestState {
    pub const ALL: [Self; 7] =
        [Self::Requested, Self::Pending, Self::Approved, Self::Denied, Self::Active, Self::Expired, Self::Revoked];

    /// Its name on the wire and on disk (A-04).
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "REQUESTED",
            Self::Pending => "PENDING",
            Self::Approved => "APPROVED",
            Self::Denied => "DENIED",
            Self::Active => "ACTIVE",
            Self::Expired => "EXPIRED",
            Self::Revoked => "REVOKED",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether a person has still to decide.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Pending)
    }

    /// Whether a grant lets its holder do anything.
    pub fn is_granted(self) -> bool {
        matches!(self, Self::Approved | Self::Active)
    }

    /// What a step makes of it; `None` where it is no step.
    pub fn after(self, step: RequestStep) -> Option<Self> {
        use RequestState::*;
        match (self, step) {
            (Requested, RequestStep::Told) => Some(Pending),
            (Requested | Pending, RequestStep::Approve) => Some(Approved),
            (Requested | Pending, RequestStep::Deny) => Some(Denied),
            (Approved | Active, RequestStep::Use) => Some(Active),
            (Requested | Pending | Approved | Active, RequestStep::Expire) => Some(Expired),
            (Approved | Active, RequestStep::Revoke) => Some(Revoked),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEPS: [RequestStep; 6] = [
        RequestStep::Told,
        RequestStep::Approve,
        RequestStep::Deny,
        RequestStep::Use,
        RequestStep::Expire,
        RequestStep::Revoke,
    ];

    #[test]
    fn every_state_is_found_by_its_name() {
        assert!(RequestState::ALL.into_iter().all(|state| RequestState::named(state.name()) == Some(state)));
    }

    #[test]
    fn a_state_is_written_by_its_name() {
        for state in RequestState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
            assert_eq!(serde_json::from_value::<RequestState>(state.name().into()).unwrap(), state);
        }
    }

    proptest! {
        // A-04
        #[test]
        fn a_decision_is_made_once_and_an_end_is_the_end(steps in proptest::collection::vec(0..STEPS.len(), 0..20)) {
            let (mut state, mut decided, mut ended) = (RequestState::Requested, 0, false);
            for step in steps.into_iter().map(|at| STEPS[at]) {
                let Some(next) = state.after(step) else { continue };
                prop_assert!(!ended, "{state:?} is not the end");
                decided += i32::from(matches!(step, RequestStep::Approve | RequestStep::Deny));
                prop_assert!(!next.is_granted() || decided == 1, "granted without an approval");
                ended = matches!(next, RequestState::Denied | RequestState::Expired | RequestState::Revoked);
                state = next;
            }
            prop_assert!(decided <= 1);
            prop_assert!(!(state.is_open() && state.is_granted()));
        }
    }
}
