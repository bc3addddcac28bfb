//! A grant: what its holder may do, where, how often and until when; and how it is made smaller for a helper (A-03, A-09).

use super::{Code, GrantRoot, Refusal, Risk, Scopes, VerbSpec};
use crate::Time;

/// Limits of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantLimits {
    /// Actions a second, and how many at once.
    pub per_second: u32,
    pub burst: u32,
    /// The most that one edit may write.
    pub max_edit_bytes: u64,
}

/// What a person has decided that an agent may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub scopes: Scopes,
    pub roots: Vec<GrantRoot>,
    pub expires_at: Time,
    pub limits: GrantLimits,
    /// Whether the person wants to see each change before it is made, and not only what destroys.
    pub confirms_changes: bool,
}

/// A smaller grant, as a holder asks for it for a helper of its own. What is not said stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantNarrowing {
    pub scopes: Option<Scopes>,
    pub roots: Option<Vec<String>>,
    pub expires_at: Option<Time>,
    pub per_second: Option<u32>,
    pub max_edit_bytes: Option<u64>,
}

/// Why a grant cannot be made smaller in this way: it would not be smaller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NarrowingError {
    #[error("your grant has no {}", .0.names().join(", "))]
    Scopes(Scopes),
    #[error("{0:?} is not beneath a root of your grant")]
    Root(String),
    #[error("a grant needs at least one scope and one root")]
    Nothing,
    #[error("it would last longer than yours")]
    Longer,
    #[error("it would be over already")]
    Over,
    #[error("it would be allowed more a second, or larger edits, than yours")]
    Limits,
}

impl Default for GrantLimits {
    fn default() -> Self {
        Self { per_second: 10, burst: 20, max_edit_bytes: 100 * 1024 }
    }
}

impl GrantLimits {
    /// Refuses an edit that is larger than allowed (A-09).
    pub fn allow_edit(&self, bytes: u64) -> Result<(), Refusal> {
        if bytes <= self.max_edit_bytes {
            return Ok(());
        }
        let most = self.max_edit_bytes;
        Err(Refusal::new(Code::TooLarge, format!("an edit of {bytes} bytes; at most {most} are allowed at once")))
    }
}

// === impl Grant ===

impl Grant {
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.expires_at
    }

    /// Whether a person has to see this before it is done (A-10).
    pub fn needs_confirmation(&self, action: &VerbSpec) -> bool {
        match action.risk {
            Risk::Destroys => true,
            Risk::Changes => self.confirms_changes,
            Risk::Reads | Risk::Runs => false,
        }
    }

    /// A grant for a helper: weaker in everything that is said, and in nothing stronger.
    pub fn narrowed(&self, by: &GrantNarrowing, now: Time) -> Result<Self, NarrowingError> {
        let scopes = by.scopes.unwrap_or(self.scopes);
        if !scopes.is_within(self.scopes) {
            return Err(NarrowingError::Scopes(scopes.without(self.scopes)));
        }
        let beneath = |path: &String| {
            let found = self.roots.iter().find_map(|root| root.narrowed_to(path));
            found.ok_or_else(|| NarrowingError::Root(path.clone()))
        };
        let roots = match &by.roots {
            None => self.roots.clone(),
            Some(paths) => paths.iter().map(beneath).collect::<Result<Vec<_>, _>>()?,
        };
        if scopes.is_empty() || roots.is_empty() {
            return Err(NarrowingError::Nothing);
        }
        let expires_at = by.expires_at.unwrap_or(self.expires_at);
        if expires_at > self.expires_at {
            return Err(NarrowingError::Longer);
        }
        if expires_at <= now {
            return Err(NarrowingError::Over);
        }
        let per_second = by.per_second.unwrap_or(self.limits.per_second);
        let max_edit_bytes = by.max_edit_bytes.unwrap_or(self.limits.max_edit_bytes);
        if per_second > self.limits.per_second || max_edit_bytes > self.limits.max_edit_bytes || per_second == 0 {
            return Err(NarrowingError::Limits);
        }
        // No more at once than its own rate, where that is the smaller one.
        let burst = if by.per_second.is_some() { self.limits.burst.min(per_second * 2) } else { self.limits.burst };
        let limits = GrantLimits { per_second, burst, max_edit_bytes };
        Ok(Self { scopes, roots, expires_at, limits, confirms_changes: self.confirms_changes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::{GrantScope, Preset};

    fn grant() -> Grant {
        Grant {
            scopes: Preset::Standard.scopes(),
            roots: vec![GrantRoot::new("/p").unwrap(), GrantRoot::new("/q/r").unwrap()],
            expires_at: Time(1000),
            limits: GrantLimits::default(),
            confirms_changes: true,
        }
    }

    #[test]
    fn a_helper_gets_what_it_is_given_and_no_more() {
        let read = Scopes::from(GrantScope::ReadFiles);
        let by = GrantNarrowing {
            scopes: Some(read),
            roots: Some(vec!["/q/r/s".into()]),
            expires_at: Some(Time(500)),
            per_second: Some(2),
            max_edit_bytes: Some(10),
        };
        let small = grant().narrowed(&by, Time(0)).unwrap();
        assert_eq!((small.scopes, small.roots[0].to_string().as_str()), (read, "/q/r/s"));
        assert_eq!((small.limits.per_second, small.limits.burst, small.limits.max_edit_bytes), (2, 4, 10));
        assert!(small.confirms_changes, "what the person wants to see, they see of helpers too");
        assert_eq!(grant().narrowed(&GrantNarrowing::default(), Time(0)), Ok(grant()));
    }

    #[test]
    fn what_would_be_stronger_is_refused() {
        let refused = |by: GrantNarrowing| grant().narrowed(&by, Time(0)).unwrap_err();
        let more = Scopes::from(GrantScope::DeleteFiles) | GrantScope::ReadFiles.into();
        assert_eq!(
            refused(GrantNarrowing { scopes: Some(more), ..GrantNarrowing::default() }).to_string(),
            "your grant has no delete:files"
        );
        for root in ["/", "/q", "/px", "/p/../etc", "p"] {
            let by = GrantNarrowing { roots: Some(vec!["/p".into(), root.into()]), ..GrantNarrowing::default() };
            assert_eq!(refused(by), NarrowingError::Root(root.into()));
        }
        for (by, why) in [
            (GrantNarrowing { expires_at: Some(Time(1001)), ..GrantNarrowing::default() }, NarrowingError::Longer),
            (GrantNarrowing { expires_at: Some(Time(0)), ..GrantNarrowing::default() }, NarrowingError::Over),
            (GrantNarrowing { per_second: Some(11), ..GrantNarrowing::default() }, NarrowingError::Limits),
            (GrantNarrowing { per_second: Some(0), ..GrantNarrowing::default() }, NarrowingError::Limits),
            (GrantNarrowing { max_edit_bytes: Some(u64::MAX), ..GrantNarrowing::default() }, NarrowingError::Limits),
            (GrantNarrowing { scopes: Some(Scopes::NONE), ..GrantNarrowing::default() }, NarrowingError::Nothing),
            (GrantNarrowing { roots: Some(vec![]), ..GrantNarrowing::default() }, NarrowingError::Nothing),
        ] {
            assert_eq!(refused(by), why);
        }
    }

    fn any_narrowing() -> impl Strategy<Value = GrantNarrowing> {
        let scopes = proptest::option::of(any::<u64>().prop_map(|bits| {
            GrantScope::ALL.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1).map(|(_, scope)| *scope).collect()
        }));
        let roots = proptest::sample::select(vec!["/", "/p", "/p/a", "/p/a/b", "/q", "/q/r/s", "/q/r/s/../../..", ""]);
        let roots = proptest::option::of(proptest::collection::vec(roots.prop_map(str::to_owned), 0..3));
        let time = proptest::option::of((-5i64..2000).prop_map(Time));
        (scopes, roots, time, proptest::option::of(0u32..20), proptest::option::of(0u64..200_000)).prop_map(
            |(scopes, roots, expires_at, per_second, max_edit_bytes)| GrantNarrowing {
                scopes,
                roots,
                expires_at,
                per_second,
                max_edit_bytes,
            },
        )
    }

    proptest! {
        // However often it is handed on, nothing grows.
        #[test]
        fn a_branch_only_gets_weaker(steps in proptest::collection::vec(any_narrowing(), 0..6)) {
            let first = grant();
            let mut now = first.clone();
            for by in steps {
                let Ok(next) = now.narrowed(&by, Time(1)) else { continue };
                prop_assert!(next.scopes.is_within(now.scopes) && !next.scopes.is_empty());
                prop_assert!(next.expires_at <= now.expires_at);
                prop_assert!(next.limits.per_second <= now.limits.per_second && next.limits.burst <= now.limits.burst);
                prop_assert!(next.limits.max_edit_bytes <= now.limits.max_edit_bytes);
                for root in &next.roots {
                    prop_assert!(now.roots.iter().any(|old| old.narrowed_to(&root.to_string()).is_some()));
                    prop_assert!(first.roots.iter().any(|old| old.base() == root.base()));
                }
                now = next;
            }
        }
    }
}
