//! Moments as the daemon tells them, in RFC 3339, and as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use super::status::words::time;
use crate::telemetry::log::date_and_time;

/// Returns this moment in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a moment as a date and a time of day, or nothing.
pub(super) fn clock(text: &str) -> String {
    let Some(seconds) = read(text).and_then(|ms| u64::try_from(ms / 1000).ok()) else { return String::new() };
    format!("{}Z", date_and_time(seconds))
}

/// Returns how far away a moment is that is told as text, or nothing.
pub(super) fn until(text: &str, now: i64) -> String {
    read(text).map(|at| distance(at, now)).unwrap_or_default()
}

/// Returns how far away a moment is, as in `in 4 min` or `4 min ago`.
pub(super) fn distance(at: i64, now: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
    let seconds = (at - now) as f64 / 1000.0;
    if seconds > 0.0 { format!("in {}", time(seconds)) } else { format!("{} ago", time(-seconds)) }
}

/// Reads `2026-11-16T02:27:00.123Z`. Other offsets than Z are not written by Prism.
pub(crate) fn read(text: &str) -> Option<i64> {
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
    // Days since 1970, with years that begin in March: then the leap day is a year's last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = y.div_euclid(400);
    let of_era = y.rem_euclid(400);
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_and_written_back() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2026-11-16T02:27:00.123456Z", 1_794_796_020_123),
            ("2026-03-01T00:00:00.5Z", 1_772_323_200_500),
        ] {
            assert_eq!(read(text), Some(ms), "{text}");
            assert_eq!(clock(text), format!("{}Z", &text[..19]), "{text}");
        }
        for text in ["", "soon", "2026-13-01T00:00:00Z", "2026-11-16T02:27:00", "2026-11-16 02:27:00Z"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_to_come_and_what_is_past_are_told_apart() {
        assert_eq!([distance(61_000, 1000), distance(0, 2000)], ["in 1 min", "2 s ago"]);
    }
}
