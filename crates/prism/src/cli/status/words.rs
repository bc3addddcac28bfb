//! Times and sizes as people read them, in as few letters as a column has.

/// Two seconds, three minutes, a day: the largest unit that fits.
pub(in crate::cli) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.0} s"),
        s if s < 3600.0 => format!("{:.0} min", (s / 60.0).floor()),
        s if s < 48.0 * 3600.0 => format!("{:.0} h", (s / 3600.0).floor()),
        s => format!("{:.0} d", (s / 86400.0).floor()),
    }
}

/// How long ago something was.
pub(in crate::cli) fn ago(seconds: f64) -> String {
    if seconds < 1.0 { "just now".to_owned() } else { format!("{} ago", time(seconds)) }
}

/// How long something took.
pub(in crate::cli) fn took(milliseconds: f64) -> String {
    match milliseconds {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}

pub(in crate::cli) fn size(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let mib = bytes as f64 / f64::from(1 << 20);
    match mib {
        m if m < 10.0 => format!("{m:.1} MiB"),
        m if m < 1024.0 => format!("{m:.0} MiB"),
        m => format!("{:.1} GiB", m / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short() {
        let times = [0.2, 1.0, 59.4, 61.0, 3599.0, 3600.0 * 26.0, 86400.0 * 3.5].map(time);
        assert_eq!([0.2, 10.0].map(ago), ["just now", "10 s ago"]);
        assert_eq!(times, ["0 s", "1 s", "59 s", "1 min", "59 min", "26 h", "3 d"]);
        assert_eq!([0.214, 9.99, 46.0, 999.4, 12_345.0].map(took), ["0.2 ms", "10.0 ms", "46 ms", "999 ms", "12.3 s"]);
        assert_eq!([3 << 19, 45 << 20, 3 << 29].map(size), ["1.5 MiB", "45 MiB", "1.5 GiB"]);
    }
}
