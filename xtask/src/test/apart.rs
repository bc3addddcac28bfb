//! A lane in a process of its own, with its words in a file: what a run prints when nobody watches is a line a lane,
//! and of a lane that failed the lines that say why.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::Context;

use super::{Lane, Mark, Row, Verdict};
use crate::{Place, say::say};

/// How many telling lines of a lane's log are shown, how many of its last ones, and how much of each.
const TELLING: usize = 16;
const LAST: usize = 12;
const WIDTH: usize = 240;

/// Runs `cargo xtask lane NAME` into a log.
pub(super) fn run(place: &Place, lane: &Lane) -> anyhow::Result<Verdict> {
    let (log, path) = place.log(&format!("lane-{}", lane.name))?;
    let itself = std::env::current_exe().context("cannot find xtask itself")?;
    let status = Command::new(itself)
        .args(["lane", lane.name])
        .stdin(Stdio::null())
        .stdout(log.try_clone().context("cannot share a log")?)
        .stderr(log)
        .status()
        .context("cannot start xtask itself")?;
    let said = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let said = String::from_utf8_lossy(&said);
    let (mark, note) = said.lines().rev().find_map(Row::read).unwrap_or((Mark::Failed, status.to_string()));
    match mark {
        Mark::Passed if status.success() && note.is_empty() => Ok(Verdict::Passed),
        Mark::Passed if status.success() => Ok(Verdict::PassedBut(note)),
        Mark::Skipped if status.success() => Ok(Verdict::Skipped(note)),
        Mark::Passed | Mark::Skipped | Mark::Failed => Err(anyhow::anyhow!(note)),
    }
}

/// Shows why a lane failed, as far as its log knows.
pub(super) fn explain(place: &Place, lane: &str) {
    let path = place.target.join("xtask").join(format!("lane-{lane}.log"));
    let Ok(said) = fs::read(&path) else { return };
    let said = String::from_utf8_lossy(&said);
    say(format_args!("\n--- {lane}: {} ---", path.strip_prefix(&place.root).unwrap_or(&path).display()));
    excerpt(&said).into_iter().for_each(say);
}

/// The lines with a failure in them and the last ones, in their order.
fn excerpt(said: &str) -> Vec<String> {
    const SIGNS: [&str; 5] = ["FAIL", "panicked at", "error", "assertion", "left behind"];
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let telling = |line: &str| SIGNS.iter().any(|sign| line.contains(sign)) && !line.contains("(unscored");
    // A panic says where in one line, and what in the next.
    let told =
        |at: usize| telling(lines[at]) || at.checked_sub(1).is_some_and(|before| lines[before].contains("panicked at"));
    let last = lines.len().saturating_sub(LAST);
    let mut shown: Vec<usize> = (0..last).filter(|&at| told(at)).take(TELLING).collect();
    shown.extend(last..lines.len());
    shown.into_iter().map(|at| lines[at].chars().take(WIDTH).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_cut_to_what_tells() {
        let calm = "        PASS one\n".repeat(500);
        let log = format!("{calm}thread 'a' panicked at src/a.rs:1:2:\nleft: 1\n{calm}error: test run failed\n");
        let shown = excerpt(&log);
        assert!(shown.iter().any(|line| line.contains("panicked at")) && shown.iter().any(|line| line == "left: 1"));
        assert_eq!(shown.last().map(String::as_str), Some("error: test run failed"));
        assert!(shown.len() <= TELLING + LAST, "{}", shown.len());
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let row = |mark, note: &str| {
            let took = std::time::Duration::from_millis(1234);
            format!("--- {}", Row { lane: "unit", mark, took, note: note.into() })
        };
        for (mark, note) in
            [(Mark::Passed, ""), (Mark::Failed, "exit status: 100: see above"), (Mark::Skipped, "no  node")]
        {
            assert_eq!(Row::read(&row(mark, note)), Some((mark, note.to_owned())));
        }
        assert_eq!(Row::read("--- a line of a diff"), None);
    }
}
