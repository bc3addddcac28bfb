//! Time as the mesh and the gate have it: what they decide outlives the daemon, so it counts from 1970 and not from a
//! start. And the one calendar: moments as RFC 3339, towards programs, and as people say them.

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

/// Returns a moment as clients read it: RFC 3339 with milliseconds, UTC.
#[must_use]
pub fn rfc3339(Time(us): Time) -> String {
    let us = u64::try_from(us).unwrap_or(0);
    format!("{}.{:03}Z", date_and_time(us / 1_000_000), us / 1000 % 1000)
}

/// Returns the date and the time of day, UTC, of a second since 1970: RFC 3339 without its `Z`.
#[must_use]
pub fn date_and_time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date in the civil calendar: years begin in March, so that leap days come last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Reads `2026-11-16T02:27:00.123Z` as milliseconds since 1970. Other offsets than Z are not written by Prism.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let (date, rest) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, "0"));
    let mut of_day = rest.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute, second) = (of_day.next()?.ok()?, of_day.next()?.ok()?, of_day.next()?.ok()?);
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && (0..10_000).contains(&year);
    if !in_range || !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    // The inverse of `date_and_time`, by the same calendar.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

/// Returns how long ago something was, as people say it: `just now`, `12 s ago`, `3 min ago`, `2 h ago`, `4 d ago`.
#[must_use]
pub fn ago(time: Duration) -> String {
    match time.as_secs() {
        ..3 => "just now".to_owned(),
        s @ 3..60 => format!("{s} s ago"),
        s @ 60..3600 => format!("{} min ago", s / 60),
        s @ 3600..86_400 => format!("{} h ago", s / 3600),
        s => format!("{} d ago", s / 86_400),
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(time.as_micros()).unwrap_or(i64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_and_read_back() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T12:00:00.000Z", 951_825_600_000),
            ("2026-11-16T02:27:00.123Z", 1_794_796_020_123),
            ("2026-03-01T00:00:00.500Z", 1_772_323_200_500),
        ] {
            assert_eq!(parse_rfc3339(text), Some(ms), "{text}");
            assert_eq!(rfc3339(Time(ms * 1000)), text);
        }
        for text in ["", "soon", "2026-13-01T00:00:00Z", "2026-11-16T02:27:00", "2026-11-16 02:27:00Z"] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
