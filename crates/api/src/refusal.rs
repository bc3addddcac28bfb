//! Why something was not done, as every door of the daemon says it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The body of an answer that refuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RefusedAnswer {
    pub error: ToldRefusal,
}

/// A refusal: a code for programs, a sentence for whoever reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToldRefusal {
    pub code: String,
    pub message: String,
    /// The gate's refusals have more to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RefusalDetails>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RefusalDetails {
    /// The status that HTTP has for it.
    pub status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}
