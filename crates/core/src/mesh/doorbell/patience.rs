//! How patient a doorbell is.

use std::time::Duration;

/// How long bells may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorbellTiming {
    /// For a path to take a bell at all.
    pub ring_within: Duration,
    /// For a drain after a bell, before the next rung is tried.
    pub climb_after: Duration,
    /// For a drain after a bell to count as its effect. Without one the agent cannot be woken for now.
    pub confirm_within: Duration,
    /// Bells in one cycle, of an agent that can be woken and of one that cannot.
    pub max_attempts: [u32; 2],
}

impl Default for DoorbellTiming {
    fn default() -> Self {
        Self {
            ring_within: Duration::from_secs(10),
            climb_after: Duration::from_secs(5),
            confirm_within: Duration::from_secs(60),
            max_attempts: [5, 2],
        }
    }
}
