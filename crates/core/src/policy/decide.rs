//! The decision about one action: done, shown to the person first, or refused, and why.

use std::time::Duration;

use super::{Bucket, Grant, VerbSpec};
use crate::Time;

/// What is to become of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// A person has to see it first.
    Confirm,
    Refuse(Refusal),
}

/// Why an action is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    /// When it is worth another try.
    pub retry_after: Option<Duration>,
}

/// What programs are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// No scope of the grant allows it.
    Forbidden,
    /// A path is not beneath a granted root.
    OutsideRoot,
    /// It has no row in the table.
    UnknownAction,
    BadArguments,
    TooLarge,
    TooFast,
    Expired,
    Revoked,
    /// The person said no, or nobody said anything in time.
    Denied,
    /// What it was about is another than when the person saw it.
    Changed,
    NotFound,
    /// No runtime that is here can do it.
    Unsupported,
    TimedOut,
    /// The machine refused.
    Failed,
}

/// Decides. Only an action that would be done, or be shown, counts against the rate: what is refused cannot crowd out
/// what is not.
pub fn decide(grant: &Grant, bucket: &mut Bucket, action: &VerbSpec, edit_bytes: Option<u64>, now: Time) -> Decision {
    let refuse = |code, message: String| Decision::Refuse(Refusal { code, message, retry_after: None });
    if grant.is_over(now) {
        return refuse(Code::Expired, "the grant has expired; ask for another".to_owned());
    }
    let needed = action.scopes();
    if !grant.scopes.has_any_of(needed) {
        let needed = needed.names().join(" or ");
        return refuse(Code::Forbidden, format!("{} needs {needed}, which this grant does not have", action.verb));
    }
    let limits = grant.limits;
    if let Err(refusal) = limits.allow_edit(edit_bytes.unwrap_or(0)) {
        return Decision::Refuse(refusal);
    }
    if let Err(wait) = bucket.take(limits.per_second, limits.burst, now) {
        let message = format!("more than {} actions a second; wait {} ms", limits.per_second, wait.as_millis().max(1));
        return Decision::Refuse(Refusal { code: Code::TooFast, message, retry_after: Some(wait) });
    }
    if grant.needs_confirmation(action) { Decision::Confirm } else { Decision::Allow }
}

// === impl Code ===

impl Code {
    pub const ALL: [Self; 14] = [
        Self::Forbidden,
        Self::OutsideRoot,
        Self::UnknownAction,
        Self::BadArguments,
        Self::TooLarge,
        Self::TooFast,
        Self::Expired,
        Self::Revoked,
        Self::Denied,
        Self::Changed,
        Self::NotFound,
        Self::Unsupported,
        Self::TimedOut,
        Self::Failed,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::OutsideRoot => "outside_root",
            Self::UnknownAction => "unknown_action",
            Self::BadArguments => "bad_arguments",
            Self::TooLarge => "too_large",
            Self::TooFast => "rate_limited",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Denied => "denied",
            Self::Changed => "changed",
            Self::NotFound => "not_found",
            Self::Unsupported => "unsupported",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
        }
    }

    /// The status that HTTP has for it; in the details of every error, for those who know them by that.
    pub fn status(self) -> u16 {
        match self {
            Self::Forbidden | Self::OutsideRoot | Self::Denied => 403,
            Self::UnknownAction | Self::BadArguments => 400,
            Self::TooLarge => 413,
            Self::TooFast => 429,
            Self::Expired | Self::Revoked => 401,
            Self::Changed => 409,
            Self::NotFound => 404,
            Self::Unsupported => 501,
            Self::TimedOut => 504,
            Self::Failed => 500,
        }
    }
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{GrantLimits, GrantRoot, GrantScope, Scopes};

    fn grant(scopes: Scopes) -> Grant {
        let roots = vec![GrantRoot::new("/p").unwrap()];
        Grant { scopes, roots, expires_at: Time(1_000_000), limits: GrantLimits::default(), confirms_changes: false }
    }

    fn decided(grant: &Grant, verb: &str, bytes: Option<u64>, now: i64) -> Decision {
        decide(grant, &mut Bucket::full(20, Time(0)), VerbSpec::named(verb).unwrap(), bytes, Time(now))
    }

    fn code(decision: Decision) -> Option<Code> {
        match decision {
            Decision::Refuse(refusal) => Some(refusal.code),
            Decision::Allow | Decision::Confirm => None,
        }
    }

    //
    #[test]
    fn every_action_is_refused_without_its_scope_and_is_not_with_it() {
        for action in VerbSpec::all() {
            let without = grant(Scopes::all().without(action.scopes()));
            assert_eq!(code(decided(&without, action.verb, None, 0)), Some(Code::Forbidden), "{}", action.verb);
            for scope in action.needs {
                let with = decided(&grant((*scope).into()), action.verb, None, 0);
                assert_eq!(code(with), None, "{} with {}", action.verb, scope.name());
            }
        }
    }

    //
    #[test]
    fn what_destroys_is_shown_first_and_changes_are_where_the_person_wants_it() {
        let all = grant(Scopes::all());
        let careful = Grant { confirms_changes: true, ..all.clone() };
        for (verb, usually, carefully) in [
            ("delete_file", Decision::Confirm, Decision::Confirm),
            ("exec_command", Decision::Confirm, Decision::Confirm),
            ("edit_buffer", Decision::Allow, Decision::Confirm),
            ("open_file", Decision::Allow, Decision::Allow),
        ] {
            assert_eq!(decided(&all, verb, None, 0), usually, "{verb}");
            assert_eq!(decided(&careful, verb, None, 0), carefully, "{verb}");
        }
    }

    //
    #[test]
    fn size_rate_and_time_are_limits() {
        let grant = grant(GrantScope::EditBuffers.into());
        assert_eq!(code(decided(&grant, "edit_buffer", Some(102_400), 0)), None);
        assert_eq!(code(decided(&grant, "edit_buffer", Some(102_401), 0)), Some(Code::TooLarge));
        assert_eq!(code(decided(&grant, "edit_buffer", None, 999_999)), None);
        assert_eq!(code(decided(&grant, "edit_buffer", None, 1_000_000)), Some(Code::Expired));
        let mut bucket = Bucket::full(20, Time(0));
        let mut many = |verb: &str, times: usize| {
            let action = VerbSpec::named(verb).unwrap();
            let decisions = (0..times).map(|_| decide(&grant, &mut bucket, action, None, Time(0)));
            decisions.filter(|decision| *decision == Decision::Allow).count()
        };
        assert_eq!(many("open_file", 100), 0, "what is refused costs nothing");
        assert_eq!(many("edit_buffer", 100), 20);
    }
}
