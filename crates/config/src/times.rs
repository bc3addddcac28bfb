//! How long things may take: starting a server, and calling it. The daemon has limits, and a destination may have others.

use std::time::Duration;

use super::Config;

/// The limits of one destination; `None` is for ever, which is written as `0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// How long a client that takes JSON only waits for an answer, and one that takes a stream for a sign of life.
    pub request_timeout: Option<Duration>,
    /// When a call ends at the latest.
    pub max_request_time: Duration,
    /// How long a server may take to greet us, which is no call's time.
    pub start_timeout: Option<Duration>,
}

/// What a destination says of its own limits. The rest is the daemon's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeLimitOverrides {
    pub request_timeout: Option<Option<Duration>>,
    pub max_request_time: Option<Duration>,
    pub start_timeout: Option<Option<Duration>>,
}

impl TimeLimitOverrides {
    /// The limits that count, in the light of the daemon's.
    #[must_use]
    pub fn within(&self, daemon: &Config) -> TimeLimits {
        let request_timeout = self.request_timeout.unwrap_or(daemon.request_timeout);
        TimeLimits {
            request_timeout,
            // Nobody who allows a call one hour wants it ended after the default part of that.
            max_request_time: self
                .max_request_time
                .unwrap_or(daemon.max_request_time.max(self.request_timeout.flatten().unwrap_or_default())),
            start_timeout: self.start_timeout.unwrap_or(daemon.start_timeout),
        }
    }
}
