//! The machine's clock, and time as the mesh and the gate have it: since 1970, so that it means something to the next daemon,
//! and never going back, so that it means something to this one.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use prism_core::{Time, time::date_and_time};

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    at: Time,
}

impl Clock {
    pub fn start() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), at: Time(i64::try_from(at.as_micros()).unwrap_or(i64::MAX)) }
    }

    pub fn now(&self) -> Time {
        self.at + self.began.elapsed()
    }
}

/// Returns this moment as RFC 3339, to the second.
#[must_use]
pub fn now_rfc3339() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{}Z", date_and_time(seconds))
}
