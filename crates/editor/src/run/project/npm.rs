//! What npm's scripts run: compilers and linters (tsc, eslint, esbuild), and test runners in `npm/runners.rs`.

mod runners;

use runners::Runners;

use super::findings::{Diagnostic, Findings, OutputReader, Severity, place};

#[derive(Debug, Default)]
pub(super) struct Npm {
    runners: Runners,
    /// The file whose findings eslint lists.
    file: Option<String>,
    /// What esbuild says, until it says where.
    pending: Option<(Severity, String)>,
}

impl OutputReader for Npm {
    fn line(&mut self, line: &str, found: &mut Findings) {
        let line = &plain(line);
        if !self.runners.line(line, found) {
            self.finding(line, found);
        }
    }

    fn end(&mut self, found: &mut Findings) {
        self.runners.end(found);
    }
}

impl Npm {
    fn finding(&mut self, line: &str, found: &mut Findings) {
        if let Some(diagnostic) = typescript(line) {
            found.diagnostic(diagnostic);
        } else if let Some(rest) = line.strip_prefix("✘ [ERROR] ") {
            self.pending = Some((Severity::Error, rest.to_owned()));
        } else if let Some(rest) = line.strip_prefix("▲ [WARNING] ") {
            self.pending = Some((Severity::Warning, rest.to_owned()));
        } else if let Some((path, start)) = line.strip_prefix("    ").filter(|_| self.pending.is_some()).and_then(place)
        {
            if let Some((severity, message)) = self.pending.take() {
                let path = path.to_owned();
                found.diagnostic(Diagnostic {
                    path,
                    start,
                    severity,
                    message,
                    source: "esbuild",
                    ..Diagnostic::default()
                });
            }
        } else if line.starts_with('/') && !line.contains(": ") && !line.ends_with(':') {
            self.file = Some(line.trim_end().to_owned());
        } else if line.trim().is_empty() {
            self.file = None;
        } else if let Some(diagnostic) = self.file.as_deref().and_then(|file| eslint(file, line)) {
            found.diagnostic(diagnostic);
        }
    }
}

/// Without the codes that colour it.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
        } else if letters.next() == Some('[') {
            for letter in letters.by_ref() {
                if ('@'..='~').contains(&letter) {
                    break;
                }
            }
        }
    }
    plain
}

/// `src/a.ts(3,5): error TS2322: …`, or `src/a.ts:3:5 - error TS2322: …`
fn typescript(line: &str) -> Option<Diagnostic> {
    let (at, rest) = line.split_once("): ").or_else(|| line.split_once(" - "))?;
    let (path, start) = match at.rsplit_once('(') {
        Some((path, numbers)) => {
            let (line, column) = numbers.split_once(',')?;
            let number = |text: &str| text.parse::<u32>().ok()?.checked_sub(1);
            (path, (number(line)?, number(column)?))
        }
        None => place(at)?,
    };
    let (severity, rest) = rest.split_once(' ')?;
    let (code, message) = rest.split_once(": ").filter(|(code, _)| code.starts_with("TS"))?;
    Some(Diagnostic {
        path: path.to_owned(),
        start,
        severity: Severity::of(severity),
        message: message.to_owned(),
        source: "tsc",
        code: Some(code.to_owned()),
        ..Diagnostic::default()
    })
}

/// `  3:5  error  'x' is not defined  no-undef`
fn eslint(file: &str, line: &str) -> Option<Diagnostic> {
    let line = line.strip_prefix("  ")?;
    let mut words = line.split("  ").map(str::trim).filter(|word| !word.is_empty());
    let (row, column) = words.next()?.split_once(':')?;
    let number = |text: &str| text.parse::<u32>().ok().map(|number| number.saturating_sub(1));
    let start = (number(row)?, number(column)?);
    let severity = words.next().filter(|word| matches!(*word, "error" | "warning"))?;
    let rest: Vec<&str> = words.collect();
    let (message, code) = match rest.as_slice() {
        [message @ .., code] if !message.is_empty() => (message.join("  "), Some((*code).to_owned())),
        [message] => ((*message).to_owned(), None),
        _ => return None,
    };
    let severity = Severity::of(severity);
    Some(Diagnostic {
        path: file.to_owned(),
        start,
        severity,
        message,
        source: "eslint",
        code,
        ..Diagnostic::default()
    })
}
