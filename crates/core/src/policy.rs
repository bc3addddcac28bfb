//! Who may do what: scopes and the verbs that need them, grants and how they are narrowed, limits, and the decision about
//! one action. The gate (`crates/gate`) asks; nothing here opens a file or reads a clock.
//!
//! An action that has no row in the table is refused, and what is approved is never more than was asked for.

mod action;
pub mod canonical;
mod confirmation;
mod decide;
mod effect;
mod event;
mod glob;
mod grant;
pub mod guarded;
mod limit;
pub mod person;
mod preset;
mod redact;
mod request;
mod root;
pub mod rules;
mod scope;

pub use action::{ActionCategory, Risk, VerbSpec};
pub use confirmation::ConfirmationState;
pub use decide::{Code, Decision, Refusal, decide};
pub use effect::{Effect, EffectTarget, LossOwner, ReviewedText, TextLocation, seen_of, weigh};
pub use event::EventSpec;
pub use glob::{GlobError, MAX_PATTERN, NameGlob};
pub use grant::{Grant, GrantLimits, GrantNarrowing, NarrowingError};
pub use limit::Bucket;
pub use preset::Preset;
pub use redact::{HIDDEN, MAX_ARGS_BYTES, Redaction};
pub use request::{RequestState, RequestStep};
pub use root::{GrantRoot, RootNameError};
pub use rules::{DefaultRule, RuleVerdict, ToolRule, ToolRules};
pub use scope::{GrantScope, Scopes, UnknownScope};
