//! Time as the mesh and the gate have it: since 1970, so that it means something to the next daemon, and never going back,
//! so that it means something to this one.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use prism_core::Time;

use crate::telemetry::log::date_and_time;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    began: Instant,
    at: Time,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { began: Instant::now(), at: Time(i64::try_from(at.as_micros()).unwrap_or(i64::MAX)) }
    }

    pub(crate) fn now(&self) -> Time {
        self.at + self.began.elapsed()
    }
}

/// How long ago something was, in one sentence with it: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `4 d ago`.
pub(crate) fn ago(time: Duration) -> String {
    match time.as_secs() {
        ..3 => "just now".to_owned(),
        s @ 3..60 => format!("{s} s ago"),
        s @ 60..3600 => format!("{} min ago", s / 60),
        s @ 3600..86_400 => format!("{} h ago", s / 3600),
        s => format!("{} d ago", s / 86_400),
    }
}

/// A time as clients read it: RFC 3339 with milliseconds, UTC.
pub(crate) fn written(Time(us): Time) -> String {
    let us = u64::try_from(us).unwrap_or(0);
    format!("{}.{:03}Z", date_and_time(us / 1_000_000), us / 1000 % 1000)
}
