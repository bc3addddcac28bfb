//! Time as the mesh and the gate have it: what they decide outlives the daemon, so it counts from 1970 and not from a
//! start.

use std::{ops::Add, time::Duration};

/// Microseconds since 1970, UTC, as the store has them. Whoever drives them sees to it that they never go back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// How long ago the other one was; nothing if it is yet to come.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
    }
}
