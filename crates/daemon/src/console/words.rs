//! Times and numbers as a person reads them. The script says them in the same words, as time goes on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use maud::{Markup, html};
use prism_core::time::{self, date_and_time, parse_rfc3339};

/// Milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    pub fn now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
    }

    pub fn before(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Reads `2026-11-16T06:00:00Z`, with or without a fraction.
    pub fn read(text: &str) -> Option<Self> {
        parse_rfc3339(text).map(Self)
    }

    /// In full, for whoever wants it exactly.
    fn in_full(self) -> String {
        let seconds = u64::try_from(self.0 / 1000).unwrap_or(0);
        format!("{} UTC", date_and_time(seconds).replace('T', " "))
    }
}

/// How long ago something was; the script keeps it right.
pub fn ago(at: Moment, now: Moment) -> Markup {
    html! { time data-ago=(at.0) title=(at.in_full()) { (in_words(now.0 - at.0)) } }
}

/// How long something still lasts, counted down by the script.
pub fn left(until: Moment, now: Moment) -> Markup {
    html! { time.countdown data-until=(until.0) title=(format!("until {}", until.in_full())) { (on_clock(until.0 - now.0)) } }
}

fn in_words(ms: i64) -> String {
    time::ago(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
}

/// `14:32`, `7:59:12`; `0:00` when it is over.
fn on_clock(ms: i64) -> String {
    let s = (ms.max(0) + 999) / 1000;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        hours => format!("{hours}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// `15 min`, `1 h`, `90 min`.
pub fn span(seconds: u64) -> String {
    match seconds {
        s if s >= 3600 && s % 3600 == 0 => format!("{} h", s / 3600),
        s if s >= 60 && s % 60 == 0 => format!("{} min", s / 60),
        s if s >= 120 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

/// `0.4 ms`, `12 ms`, `1.3 s`.
pub fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

/// `12 MB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        b if b < 1 << 10 => format!("{b} B"),
        b if b < 1 << 20 => format!("{} KB", b >> 10),
        b if b < 10 << 30 => format!("{} MB", b >> 20),
        b => format!("{} GB", b >> 30),
    }
}

/// `1 request`, `3 requests`, `12,345 lines`.
pub fn count(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(number)) }
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_a_person_says_them() {
        assert_eq!(in_words(-50), "just now");
        assert_eq!(in_words(59_900), "59 s ago");
        assert_eq!(in_words(3_600_000), "1 h ago");
        assert_eq!(in_words(3 * 86_400_000), "3 d ago");
        assert_eq!((on_clock(-5), on_clock(1), on_clock(3_599_000)), ("0:00".into(), "0:01".into(), "59:59".into()));
        assert_eq!(on_clock(8 * 3_600_000), "8:00:00");
        assert_eq!(
            (span(900), span(3600), span(5400), span(90)),
            ("15 min".into(), "1 h".into(), "90 min".into(), "90 s".into())
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!((grouped(1), grouped(1234), grouped(1_234_567)), ("1".into(), "1,234".into(), "1,234,567".into()));
        assert_eq!((count(1, "line"), count(0, "line")), ("1 line".into(), "0 lines".into()));
        assert_eq!((millis(0.42), millis(12.4), millis(1300.0)), ("0.4 ms".into(), "12 ms".into(), "1.3 s".into()));
    }
}
