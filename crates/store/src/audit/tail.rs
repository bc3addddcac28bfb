//! A look at the end of the log, for the start of a daemon: whether its newest lines are what was written, and reach as far as
//! the database knows. The whole log is `verify`'s: it may take long.

use std::{io, os::unix::fs::FileExt, path::Path};

use super::{
    chain::{ChainLink, LineParts, hash},
    files::{self, LogFile},
    head::{self, AuditHead, FoundHead},
    verify::{AuditBreak, AuditVerifyError, BreakKind},
};

/// What is read of the newest file. Some thousand lines, in milliseconds.
const TAIL_BYTES: u64 = 1 << 20;

/// Checks the newest lines. What a process that was killed has left behind the head is none of this: it is mended.
pub fn check_tail(folder: &Path, known: Option<&AuditHead>) -> Result<(), AuditVerifyError> {
    let read = |source| AuditVerifyError::Read { path: folder.to_owned(), source };
    if !folder.is_dir() {
        return known
            .map_or(Ok(()), |_| Err(broken(&folder.join(files::CURRENT), 1, BreakKind::Missing { newest: 0 })));
    }
    let known = known.and_then(|known| Some(ChainLink { seq: known.seq, hash: hash(&known.hash)? }));
    let head_path = folder.join(head::NAME);
    let files = files::all(folder).map_err(read)?;
    let head = match FoundHead::read(folder).map_err(read)? {
        FoundHead::Head(found) => Some(found),
        FoundHead::Damaged => return Err(about(&head_path, None, BreakKind::HeadDamaged)),
        FoundHead::Nothing => None,
    };
    let wanted = known.into_iter().chain(head.map(|head| head.newest)).max_by_key(|link| link.seq);
    let missing = |file: &Path, newest: u64| match wanted {
        Some(wanted) if wanted.seq > newest => Err(broken(file, newest + 1, BreakKind::Missing { newest })),
        _ => Ok(()),
    };
    for (place, file) in files.iter().enumerate().rev() {
        let before = head.filter(|_| place == 0).map(|head| head.anchor);
        // A new file may have been begun, and somebody killed before it had a line.
        let kept: Vec<ChainLink> = head.map(|head| head.newest).into_iter().chain(known).collect();
        if let Some(newest) = follow(file, before, &kept)? {
            return match head {
                Some(_) => missing(&file.path, newest),
                None => Err(about(&head_path, None, BreakKind::HeadMissing)),
            };
        }
    }
    missing(&folder.join(files::CURRENT), 0)
}

/// Follows the newest lines of a file up to the last of those that somebody has kept. Returns the number of the last one; nothing
/// if there is none. `before`: what the first line of the file hangs on, if that is known.
fn follow(file: &LogFile, before: Option<ChainLink>, kept: &[ChainLink]) -> Result<Option<u64>, AuditVerifyError> {
    let (bytes, is_all) = end_of(file).map_err(|source| AuditVerifyError::Read { path: file.path.clone(), source })?;
    let mut newest = before.filter(|_| is_all);
    let until = kept.iter().map(|kept| kept.seq).max().unwrap_or(u64::MAX);
    let Some(last) = bytes.iter().rposition(|byte| *byte == b'\n') else { return Ok(None) };
    for line in bytes[..=last].split_inclusive(|byte| *byte == b'\n') {
        if newest.is_some_and(|newest| newest.seq >= until) {
            break;
        }
        let seq = newest.map_or(0, |newest| newest.seq + 1);
        let wrong = |what| broken(&file.path, seq, what);
        let parts = LineParts::of(&line[..line.len() - 1]).ok_or_else(|| wrong(BreakKind::Form))?;
        // A file that the anchor is in was to be let go of, and somebody was killed before that.
        newest = newest.filter(|newest| Some(*newest) != before || parts.seq > newest.seq);
        match &newest {
            Some(newest) if parts.seq != newest.seq + 1 => return Err(wrong(BreakKind::Number { found: parts.seq })),
            _ if !parts.is_whole() => return Err(broken(&file.path, parts.seq, BreakKind::Changed)),
            Some(newest) if !parts.follows(newest) => return Err(wrong(BreakKind::Link)),
            _ => {}
        }
        let link = parts.link();
        if kept.iter().any(|kept| kept.seq == link.seq && *kept != link) {
            return Err(broken(&file.path, link.seq, BreakKind::Head));
        }
        newest = Some(link);
    }
    Ok(newest.map(|newest| newest.seq))
}

fn end_of(file: &LogFile) -> io::Result<(Vec<u8>, bool)> {
    let length = file.file.metadata()?.len();
    let window = TAIL_BYTES.min(length);
    let mut bytes = vec![0; usize::try_from(window).map_err(io::Error::other)?];
    file.file.read_exact_at(&mut bytes, length - window)?;
    if window == length {
        return Ok((bytes, true));
    }
    // The line that the window begins in is not whole.
    let begin = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
    Ok((bytes.split_off(begin), false))
}

fn broken(file: &Path, seq: u64, what: BreakKind) -> AuditVerifyError {
    about(file, Some(seq).filter(|seq| *seq > 0), what)
}

fn about(file: &Path, seq: Option<u64>, what: BreakKind) -> AuditVerifyError {
    AuditVerifyError::Broken(AuditBreak { file: file.to_owned(), line: None, seq, what })
}
