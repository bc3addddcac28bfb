//! One thing that was looked at: how it is, and what to type if it should be otherwise.

use serde::Serialize;

use crate::cli::say::{self, Colour, Line};

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Finding {
    /// What was looked at, in a word or two.
    pub(super) what: String,
    pub(super) verdict: FindingVerdict,
    pub(super) said: String,
    /// What to type.
    pub(super) fix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) took_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FindingVerdict {
    Ok,
    /// Not wrong, but worth knowing.
    Note,
    Wrong,
    /// It could not be looked at.
    Skipped,
}

/// The column of what was looked at.
const WIDTH: usize = 12;

impl Finding {
    pub(super) fn ok(what: &str, said: impl Into<String>) -> Self {
        Self::new(what, FindingVerdict::Ok, said, None)
    }

    pub(super) fn note(what: &str, said: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(what, FindingVerdict::Note, said, Some(fix.into()))
    }

    pub(super) fn wrong(what: &str, said: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(what, FindingVerdict::Wrong, said, Some(fix.into()))
    }

    pub(super) fn skipped(what: &str, said: impl Into<String>) -> Self {
        Self::new(what, FindingVerdict::Skipped, said, None)
    }

    /// An error in our own words, which says what to type after `fix:`, if it knows.
    pub(super) fn error(what: &str, error: &anyhow::Error) -> Self {
        let text = format!("{error:#}");
        match text.split_once("fix: ") {
            Some((said, fix)) => Self::wrong(what, said.trim(), fix.trim()),
            None => Self::new(what, FindingVerdict::Wrong, text, None),
        }
    }

    fn new(what: &str, verdict: FindingVerdict, said: impl Into<String>, fix: Option<String>) -> Self {
        Self { what: what.to_owned(), verdict, said: said.into(), fix, took_ms: None }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.verdict == FindingVerdict::Wrong
    }

    pub(super) fn say(&self) {
        self.lines().iter().for_each(say::coloured);
    }

    pub(super) fn lines(&self) -> Vec<Line> {
        let (word, colour) = match self.verdict {
            FindingVerdict::Ok => ("ok", Colour::Green),
            FindingVerdict::Note => ("note", Colour::Yellow),
            FindingVerdict::Wrong => ("wrong", Colour::Red),
            FindingVerdict::Skipped => ("skipped", Colour::Dim),
        };
        let indent = " ".repeat(9 + WIDTH + 2);
        let mut said = self.said.lines();
        let first = said.next().unwrap_or_default().trim();
        let mut lines: Vec<Line> =
            vec![vec![(format!("{word:9}"), Some(colour)), (format!("{:WIDTH$}  {first}", self.what), None)]];
        lines.extend(said.map(|more| vec![(format!("{indent}{}", more.trim()), None)]));
        if let Some(fix) = &self.fix {
            lines.push(vec![(
                format!("{indent}fix: {}", fix.lines().map(str::trim).collect::<Vec<_>>().join(" ")),
                None,
            )]);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(finding: &Finding) -> String {
        let line = |line: Line| line.into_iter().map(|(text, _)| text).collect::<String>();
        finding.lines().into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_finding_reads_like_this() {
        assert_eq!(text(&Finding::ok("home", "/home/ann/.prism")), "ok       home          /home/ann/.prism");
        assert_eq!(
            text(&Finding::wrong("token", "it can be read by others\n  (mode 0644)", "chmod 600 x")),
            "\
wrong    token         it can be read by others
                       (mode 0644)
                       fix: chmod 600 x"
        );
    }

    #[test]
    fn an_error_of_ours_brings_what_to_type() {
        let finding = Finding::error("config", &anyhow::anyhow!("line 3: no such key\n  fix: take it out"));
        assert_eq!((finding.said.as_str(), finding.fix.as_deref()), ("line 3: no such key", Some("take it out")));
        let finding = Finding::error("config", &anyhow::anyhow!("cannot").context("read it"));
        assert_eq!((finding.said.as_str(), finding.fix), ("read it: cannot", None));
    }
}
