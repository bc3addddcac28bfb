//! Where a log stands when it is opened, and what was wrong with its end.
//!
//! What a killed process has left unfinished lies behind the head, as the head is written after the lines. So what is
//! broken there is cut off: nobody was told that it was written. What is broken up to the head is left as it is, as
//! evidence, and the chain goes on from the head: so the gap can be seen for ever, whatever is added.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use super::{
    AuditEntry,
    chain::{ChainLink, GENESIS, LineParts, hash, number},
    files,
    head::{AuditHead, FoundHead, KnownHead},
};

/// What is read of the end of a file at first to find the head's line. If that is not enough, twice as much.
const WINDOW_BYTES: u64 = 256 << 10;

/// How a log stands.
#[derive(Debug)]
pub(super) struct LogStanding {
    pub(super) known: KnownHead,
    /// How long the newest file is to be; what is behind that is to be cut off.
    pub(super) good_bytes: u64,
    /// A line to be added that says what was found.
    pub(super) says: Option<AuditEntry>,
}

/// The end of a file.
struct LogEnd {
    /// The last line that can be read as one; nothing if there is none.
    newest: Option<ChainLink>,
    /// What is behind it, and is not whole.
    cut_bytes: u64,
    /// Whether it has the head's line, or begins behind it.
    follows_head: bool,
}

pub(super) fn look(folder: &Path, keep: usize) -> io::Result<LogStanding> {
    let found = FoundHead::read(folder)?;
    let all = files::all(folder)?;
    let mut good_bytes = 0;
    let mut cut_bytes = 0;
    let mut last = None;
    for file in all.iter().rev() {
        let end = end_of(&file.file, &found)?;
        if file.path.ends_with(files::CURRENT) {
            (good_bytes, cut_bytes) = (file.file.metadata()?.len() - end.cut_bytes, end.cut_bytes);
        }
        // A new file may have been begun, and the process killed before it had a line.
        if end.newest.is_some() {
            last = Some(end);
            break;
        }
    }
    let newest = last.as_ref().and_then(|end| end.newest);
    let found_seq = newest.map_or(0, |newest| newest.seq);
    let cut = (cut_bytes > 0).then(|| notice("audit.mended", format!("{{\"cut_bytes\":{cut_bytes}}}")));
    let (newest, anchor, says) = match &found {
        FoundHead::Head(KnownHead { newest: head, anchor }) => {
            let follows = last.as_ref().map_or(head.seq == 0, |end| end.follows_head);
            if follows {
                (newest.unwrap_or(GENESIS), *anchor, cut)
            } else {
                let args = format!("{{\"newest_seq\":{},\"found_seq\":{found_seq}}}", head.seq);
                let go_on = ChainLink { seq: head.seq.max(found_seq), hash: head.hash };
                (go_on, *anchor, Some(notice("audit.broken", args)))
            }
        }
        FoundHead::Nothing if newest.is_none() => (GENESIS, GENESIS, cut),
        _ => {
            let what = if found == FoundHead::Nothing { "missing" } else { "damaged" };
            let says = notice("audit.mended", format!("{{\"head\":\"{what}\",\"cut_bytes\":{cut_bytes}}}"));
            // Only where files are let go of may the first one that is left not be the first.
            let anchor = if keep == 0 { GENESIS } else { first_anchor(&all)? };
            (newest.unwrap_or(GENESIS), anchor, Some(says))
        }
    };
    Ok(LogStanding { known: KnownHead { newest, anchor }, good_bytes, says })
}

impl LogStanding {
    /// Goes on behind a line that somebody knows of, where the log ends before it: its number is never given again.
    pub(super) fn reach(&mut self, known: &AuditHead) {
        let newest = &mut self.known.newest;
        let Some(hash) = hash(&known.hash).filter(|_| newest.seq < known.seq) else { return };
        let args = format!("{{\"newest_seq\":{},\"found_seq\":{}}}", known.seq, newest.seq);
        self.says = Some(notice("audit.broken", args));
        *newest = ChainLink { seq: known.seq, hash };
    }
}

/// Returns how much of a file is whole lines.
pub(super) fn whole_bytes(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len() - end_of(file, &FoundHead::Nothing)?.cut_bytes)
}

pub(super) fn notice(action: &str, args: String) -> AuditEntry {
    let (actor, result) = ("prism".to_owned(), "ok".to_owned());
    AuditEntry { actor, action: action.to_owned(), args, result, ..AuditEntry::default() }
}

/// What the first line that is left hangs on.
fn first_anchor(all: &[files::LogFile]) -> io::Result<ChainLink> {
    let Some(first) = all.first() else { return Ok(GENESIS) };
    let mut bytes = vec![0; usize::try_from(WINDOW_BYTES.min(first.file.metadata()?.len())).map_err(io::Error::other)?];
    first.file.read_exact_at(&mut bytes, 0)?;
    let line = bytes.split(|byte| *byte == b'\n').next().and_then(LineParts::of);
    Ok(line.map_or(GENESIS, |parts| parts.before()))
}

fn end_of(file: &File, found: &FoundHead) -> io::Result<LogEnd> {
    let length = file.metadata()?.len();
    let mut window = WINDOW_BYTES.min(length);
    loop {
        let mut bytes = vec![0; usize::try_from(window).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, length - window)?;
        let is_all = window == length;
        // Unless it is the first, the line that the window begins in is not whole.
        let line_end = bytes.iter().position(|byte| *byte == b'\n');
        let skipped = if is_all { 0 } else { line_end.map_or(bytes.len(), |at| at + 1) };
        if let Some(end) = end(&bytes[skipped..], found, is_all) {
            return Ok(end);
        }
        window = (window * 2).min(length);
    }
}

/// Follows the chain from the head's line to the end. Returns nothing if more has to be read.
fn end(bytes: &[u8], found: &FoundHead, is_all: bool) -> Option<LogEnd> {
    let whole_bytes = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let whole = &bytes[..whole_bytes];
    let lines = || whole.split_inclusive(|byte| *byte == b'\n');
    let last = lines().rev().find_map(parts).map(|parts| parts.link());
    let evidence = LogEnd { newest: last, cut_bytes: (bytes.len() - whole_bytes) as u64, follows_head: false };
    let FoundHead::Head(KnownHead { newest: head, .. }) = found else {
        return (last.is_some() || is_all).then_some(evidence);
    };
    // The place behind the head's line, and whether that is what it was.
    let mut before = whole_bytes;
    let mut heads_line = None;
    for line in lines().rev() {
        if number(line).is_some_and(|seq| seq == head.seq) {
            heads_line = Some((before, parts(line).is_some_and(|parts| parts.is_whole() && parts.link() == *head)));
            break;
        }
        before -= line.len();
    }
    let begins_behind = || lines().next().and_then(parts).is_some_and(|parts| parts.follows(head));
    let start = match heads_line {
        Some((place, true)) => place,
        Some((_, false)) => return Some(evidence),
        None if is_all && begins_behind() => 0,
        // An empty file says nothing about the head: the one before it does.
        None if is_all || last.is_some_and(|last| last.seq < head.seq) => return Some(evidence),
        None => return None,
    };
    let (mut newest, mut good) = (*head, start);
    for line in whole[start..].split_inclusive(|byte| *byte == b'\n') {
        match parts(line) {
            Some(parts) if parts.is_whole() && parts.follows(&newest) => newest = parts.link(),
            _ => break,
        }
        good += line.len();
    }
    Some(LogEnd { newest: Some(newest), cut_bytes: (bytes.len() - good) as u64, follows_head: true })
}

fn parts(line: &[u8]) -> Option<LineParts<'_>> {
    LineParts::of(line.strip_suffix(b"\n")?)
}
