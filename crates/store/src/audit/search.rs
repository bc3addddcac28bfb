//! Looking things up, from the newest line backwards. What is asked for is mostly what happened last.

use std::{
    borrow::Cow,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use super::{
    chain::{number, timestamp},
    files,
};

/// Which lines; all, if nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    pub actor: Option<String>,
    /// An action's name; with a `*` at its end, all that begin so.
    pub action: Option<String>,
    /// Anywhere in the line, in whichever case.
    pub text: Option<String>,
    pub session: Option<String>,
    /// Not before this time, in microseconds since 1970.
    pub since_us: Option<i64>,
    /// Only lines before this number.
    pub before_seq: Option<u64>,
    /// Only lines after this number.
    pub after_seq: Option<u64>,
    pub limit: usize,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot read the audit log in {path:?}")]
pub struct AuditSearchError {
    path: PathBuf,
    source: io::Error,
}

/// What a query looks at.
#[derive(Deserialize)]
struct SearchedLine<'a> {
    #[serde(borrow)]
    ts: Cow<'a, str>,
    #[serde(borrow)]
    actor: Cow<'a, str>,
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
}

/// What is read at once.
const CHUNK_BYTES: u64 = 256 << 10;

/// How far a clock may have been set back. A line that is older than asked for by this ends the search.
const CLOCK_SLACK_US: i64 = 3_600_000_000;

/// Returns the newest lines.
pub fn tail(folder: &Path, limit: usize) -> Result<Vec<String>, AuditSearchError> {
    search(folder, &AuditQuery { limit, ..AuditQuery::default() })
}

/// Returns the lines that match, the newest first. It reads files, so it is for a thread that may wait.
pub fn search(folder: &Path, query: &AuditQuery) -> Result<Vec<String>, AuditSearchError> {
    let mut found = Vec::new();
    let wanted = PreparedQuery::new(query);
    let mut look = || -> io::Result<()> {
        for file in files::all(folder)?.iter().rev() {
            let more = backwards(&file.file, |line| match wanted.judge(line) {
                Judged::Over => false,
                Judged::Other => found.len() < query.limit,
                Judged::Match => {
                    if found.len() < query.limit {
                        found.push(String::from_utf8_lossy(line).into_owned());
                    }
                    found.len() < query.limit
                }
            })?;
            if !more {
                break;
            }
        }
        Ok(())
    };
    look().map_err(|source| AuditSearchError { path: folder.to_owned(), source })?;
    Ok(found)
}

/// Returns a moment as lines have it.
pub fn stamp(us: i64) -> String {
    timestamp(us)
}

/// Gives the lines of a file to `each`, the last first, while it wants more. Returns whether it does. What has no line end
/// is no line yet.
fn backwards(file: &File, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<bool> {
    let mut start = file.metadata()?.len();
    // What was read and not given yet: it ends with a line end, or is the unfinished end of the file.
    let mut held: Vec<u8> = Vec::new();
    let mut is_end = true;
    while start > 0 {
        let size = CHUNK_BYTES.min(start);
        start -= size;
        let mut chunk = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        file.read_exact_at(&mut chunk, start)?;
        chunk.extend_from_slice(&held);
        held = chunk;
        if is_end {
            let Some(end) = memchr::memrchr(b'\n', &held) else { continue };
            held.truncate(end + 1);
            is_end = false;
        }
        // The last line end but one is where the last line begins.
        while let Some(before) = memchr::memrchr(b'\n', &held[..held.len() - 1]) {
            if !each(&held[before + 1..held.len() - 1]) {
                return Ok(false);
            }
            held.truncate(before + 1);
        }
    }
    Ok(match held.strip_suffix(b"\n") {
        Some(first) => each(first),
        None => true,
    })
}

/// A query, made ready.
struct PreparedQuery<'a> {
    query: &'a AuditQuery,
    /// As it stands in a line, in small letters.
    text: Option<String>,
    since: Option<(String, String)>,
    is_parsed: bool,
}

enum Judged {
    Match,
    Other,
    /// Neither is anything before it.
    Over,
}

impl<'a> PreparedQuery<'a> {
    fn new(query: &'a AuditQuery) -> Self {
        let escaped = |text: &String| {
            let quoted = serde_json::to_string(text).unwrap_or_default();
            quoted[1..quoted.len().max(2) - 1].to_lowercase()
        };
        let since = |us| (timestamp(us), timestamp(us.saturating_sub(CLOCK_SLACK_US)));
        let AuditQuery { actor, action, text, session, since_us, .. } = query;
        let is_parsed = actor.is_some() || action.is_some() || session.is_some() || since_us.is_some();
        Self { query, text: text.as_ref().map(escaped), since: since_us.map(since), is_parsed }
    }

    fn judge(&self, line: &[u8]) -> Judged {
        let Some(seq) = number(line) else { return Judged::Other };
        if self.query.after_seq.is_some_and(|after| seq <= after) {
            return Judged::Over;
        }
        if self.query.before_seq.is_some_and(|before| seq >= before) {
            return Judged::Other;
        }
        let Ok(text) = str::from_utf8(line) else { return Judged::Other };
        let Some((since, surely_before)) = &self.since else { return self.matches(text) };
        match serde_json::from_str::<SearchedLine<'_>>(text) {
            Ok(line) if *line.ts < **surely_before => Judged::Over,
            Ok(line) if *line.ts < **since => Judged::Other,
            _ => self.matches(text),
        }
    }

    fn matches(&self, text: &str) -> Judged {
        if self.text.as_ref().is_some_and(|wanted| !text.to_lowercase().contains(wanted)) {
            return Judged::Other;
        }
        if !self.is_parsed {
            return Judged::Match;
        }
        let Ok(line) = serde_json::from_str::<SearchedLine<'_>>(text) else { return Judged::Other };
        let AuditQuery { actor, action, session, .. } = self.query;
        let is_action = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => line.action.starts_with(beginning),
            None => line.action == *wanted,
        };
        let is_match = actor.as_ref().is_none_or(|actor| line.actor == **actor)
            && action.as_ref().is_none_or(is_action)
            && session.as_ref().is_none_or(|session| line.session_id.as_deref() == Some(session));
        if is_match { Judged::Match } else { Judged::Other }
    }
}
