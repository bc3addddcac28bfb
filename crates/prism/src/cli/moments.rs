//! Moments as the daemon tells them, in RFC 3339, and as people read them.

use std::time::{SystemTime, UNIX_EPOCH};

use prism_core::time::{date_and_time, parse_rfc3339};

use super::status::words::time;

/// Returns this moment in milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a moment as a date and a time of day, or nothing.
pub(super) fn clock(text: &str) -> String {
    let Some(seconds) = parse_rfc3339(text).and_then(|ms| u64::try_from(ms / 1000).ok()) else { return String::new() };
    format!("{}Z", date_and_time(seconds))
}

/// Returns how far away a moment is that is told as text, or nothing.
pub(super) fn until(text: &str, now: i64) -> String {
    parse_rfc3339(text).map(|at| distance(at, now)).unwrap_or_default()
}

/// Returns how far away a moment is, as in `in 4 min` or `4 min ago`.
pub(super) fn distance(at: i64, now: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "seconds, as people read them")]
    let seconds = (at - now) as f64 / 1000.0;
    if seconds > 0.0 { format!("in {}", time(seconds)) } else { format!("{} ago", time(-seconds)) }
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
            assert_eq!(parse_rfc3339(text), Some(ms), "{text}");
            assert_eq!(clock(text), format!("{}Z", &text[..19]), "{text}");
        }
        for text in ["", "soon", "2026-13-01T00:00:00Z", "2026-11-16T02:27:00", "2026-11-16 02:27:00Z"] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_to_come_and_what_is_past_are_told_apart() {
        assert_eq!([distance(61_000, 1000), distance(0, 2000)], ["in 1 min", "2 s ago"]);
    }
}
