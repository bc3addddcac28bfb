//! Whether the log is what was written: every line's own hash, that each hangs on the one before it, and that it ends
//! where the head says.
//!
//! A line says itself what it hangs on, so files are checked apart from each other, on as many cores as there are, and
//! then their ends are held together. Nothing is parsed but the ends of lines ([`LineParts`]).

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    num::NonZero,
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread,
};

use super::{
    chain::{ChainLink, GENESIS, LineParts},
    files::{self, LogFile},
    head::{self, AuditHead, FoundHead},
};

/// A log that is what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedLog {
    pub lines: u64,
    pub files: usize,
    /// The number of the first line: 1, unless older ones were let go of.
    pub first_seq: u64,
    /// The newest line.
    pub head: AuditHead,
    /// What is behind it without a line end: somebody is writing it at this moment, or was killed.
    pub unfinished_bytes: u64,
}

/// Where the log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditBreak {
    pub file: PathBuf,
    /// In this file, from 1. Nothing where it is about the file.
    pub line: Option<u64>,
    /// The number of the line that should be there.
    pub seq: Option<u64>,
    pub what: BreakKind,
}

/// What is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// It is no line of an audit log, or its line end is gone.
    Form,
    /// Its hash is not that of its text.
    Changed,
    /// Its number is another.
    Number {
        found: u64,
    },
    /// It hangs on another line than the one before it.
    Link,
    /// The log ends before it.
    Missing {
        newest: u64,
    },
    /// It is not the line that the head names.
    Head,
    HeadMissing,
    HeadDamaged,
    /// Older lines than this were let go of, and it with them.
    LetGo,
}

#[derive(Debug, thiserror::Error)]
pub enum AuditVerifyError {
    #[error("{0}")]
    Broken(AuditBreak),
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
}

/// What was found in one file.
#[derive(Debug)]
struct Checked {
    lines: u64,
    /// What the first line says of the one before it.
    before: Option<ChainLink>,
    newest: Option<ChainLink>,
    /// The first thing that is wrong in it, if one looks at nothing else.
    broken: Option<(u64, u64, BreakKind)>,
    unfinished_bytes: u64,
    /// The hashes of the lines that were looked for, in their order.
    wanted: Vec<(ChainLink, bool)>,
}

/// What the threads say.
enum VerifyReport {
    Bytes(u64),
    Done(usize, Box<io::Result<Checked>>),
}

/// What is read at once. A line that is longer is none.
const CHUNK_BYTES: usize = 1 << 20;

/// Words of the threads that may wait for the caller. Beyond it the threads do: a caller that draws too slowly makes them
/// slower, not the memory full.
const MAX_WORDS: usize = 64;

/// Checks the log in a folder. `on_progress` is told how many bytes of how many are done.
pub fn verify(folder: &Path, on_progress: impl FnMut(u64, u64)) -> Result<VerifiedLog, AuditVerifyError> {
    verify_with_heads(folder, &[], on_progress)
}

/// The same, and that the lines are there which somebody has kept elsewhere.
pub fn verify_with_heads(
    folder: &Path,
    kept: &[AuditHead],
    on_progress: impl FnMut(u64, u64),
) -> Result<VerifiedLog, AuditVerifyError> {
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source| AuditVerifyError::Read { path, source }
    };
    // Before the lines: they may become more meanwhile, but then not fewer than this head says.
    let head_path = folder.join(head::NAME);
    let found = FoundHead::read(folder).map_err(error(&head_path))?;
    let files = files::all(folder).map_err(error(folder))?;
    let head = match found {
        FoundHead::Head(known) => Some(known),
        FoundHead::Damaged => return Err(broken(&head_path, None, None, BreakKind::HeadDamaged)),
        FoundHead::Nothing => None,
    };
    let link = |kept: &AuditHead| Some(ChainLink { seq: kept.seq, hash: super::chain::hash(&kept.hash)? });
    let kept: Vec<ChainLink> = kept.iter().filter_map(link).collect();
    let wanted: Vec<ChainLink> = head.iter().flat_map(|head| [head.newest, head.anchor]).chain(kept.clone()).collect();
    let all = check_all(&files, &wanted, on_progress);
    let anchor = head.map_or(GENESIS, |head| head.anchor);
    let mut verified =
        VerifiedLog { lines: 0, files: 0, first_seq: 0, head: AuditHead::from(&anchor), unfinished_bytes: 0 };
    let mut before: Option<ChainLink> = None;
    let last = files.len();
    for (place, (file, checked)) in (1..).zip(files.iter().zip(all)) {
        let checked = checked.map_err(error(&file.path))?;
        if let Some(first) = checked.before {
            // Files that the anchor is in were to be let go of, and somebody was killed before that: the anchor's own line
            // is looked for instead.
            let expected = before.unwrap_or(if first.seq < anchor.seq { first } else { anchor });
            let seq = Some(expected.seq + 1);
            if first.seq != expected.seq {
                return Err(broken(&file.path, Some(1), seq, BreakKind::Number { found: first.seq + 1 }));
            }
            if first.hash != expected.hash {
                return Err(broken(&file.path, Some(1), seq, BreakKind::Link));
            }
            verified.first_seq = if before.is_none() { first.seq + 1 } else { verified.first_seq };
        }
        if let Some((line, seq, wrong)) = checked.broken {
            // Without a line before it nobody knows what its number was to be.
            let seq = if line == 1 { before.or(Some(anchor)).map(|before| before.seq + 1) } else { Some(seq) };
            return Err(broken(&file.path, Some(line), seq, wrong));
        }
        if let Some((wanted, _)) = checked.wanted.iter().find(|(_, is_it)| !is_it) {
            let line = wanted.seq - checked.before.map_or(0, |before| before.seq);
            return Err(broken(&file.path, Some(line), Some(wanted.seq), BreakKind::Head));
        }
        before = checked.newest.or(before);
        if checked.unfinished_bytes > 0 && place < last {
            let seq = before.unwrap_or(anchor).seq + 1;
            return Err(broken(&file.path, Some(checked.lines + 1), Some(seq), BreakKind::Form));
        }
        verified.lines += checked.lines;
        verified.files += 1;
        verified.unfinished_bytes = checked.unfinished_bytes;
        if let Some(newest) = before
            && place == last
            && wanted.iter().any(|wanted| wanted.seq > newest.seq)
        {
            let what = BreakKind::Missing { newest: newest.seq };
            return Err(broken(&file.path, Some(checked.lines + 1), Some(newest.seq + 1), what));
        }
    }
    if let Some(kept) = kept.iter().find(|kept| kept.seq < verified.first_seq && **kept != anchor) {
        return Err(broken(folder, None, Some(kept.seq), BreakKind::LetGo));
    }
    match before {
        Some(newest) if head.is_some() => {
            verified.head = AuditHead::from(&newest);
            Ok(verified)
        }
        Some(_) => Err(broken(&head_path, None, None, BreakKind::HeadMissing)),
        None => match wanted.iter().find(|wanted| wanted.seq > 0) {
            None => Ok(verified),
            Some(_) => {
                let file = folder.join(files::CURRENT);
                Err(broken(&file, Some(1), Some(anchor.seq + 1), BreakKind::Missing { newest: anchor.seq }))
            }
        },
    }
}

fn broken(file: &Path, line: Option<u64>, seq: Option<u64>, what: BreakKind) -> AuditVerifyError {
    AuditVerifyError::Broken(AuditBreak { file: file.to_owned(), line, seq, what })
}

// === one file after the other, on all cores ===

fn check_all(
    files: &[LogFile],
    wanted: &[ChainLink],
    mut on_progress: impl FnMut(u64, u64),
) -> Vec<io::Result<Checked>> {
    let total = files.iter().map(|file| file.file.metadata().map_or(0, |found| found.len())).sum();
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(files.len());
    let next = AtomicUsize::new(0);
    let mut all: Vec<Option<io::Result<Checked>>> = files.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let (tell, words) = sync_channel(MAX_WORDS);
        for _ in 0..threads {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(place) else { return };
                    let checked = Box::new(check(&file.file, wanted, &tell));
                    // The other end is there as long as this one.
                    let _ = tell.send(VerifyReport::Done(place, checked));
                }
            });
        }
        drop(tell);
        let mut done = 0;
        for word in words {
            match word {
                VerifyReport::Bytes(bytes) => {
                    done += bytes;
                    on_progress(done.min(total), total);
                }
                VerifyReport::Done(place, checked) => all[place] = Some(*checked),
            }
        }
    });
    all.into_iter().map(|checked| checked.unwrap_or_else(|| Err(io::Error::other("it was not looked at")))).collect()
}

fn check(mut file: &File, wanted: &[ChainLink], tell: &SyncSender<VerifyReport>) -> io::Result<Checked> {
    let mut checked =
        Checked { lines: 0, before: None, newest: None, broken: None, unfinished_bytes: 0, wanted: Vec::new() };
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut held = 0;
    loop {
        let read = match file.read(&mut buffer[held..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        let _ = tell.send(VerifyReport::Bytes(read as u64));
        if read == 0 {
            checked.unfinished_bytes = held as u64;
            return Ok(checked);
        }
        let end = held + read;
        let mut at = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[at..end]) {
            if let Err(wrong) = checked.add(&buffer[at..at + length], wanted) {
                checked.broken = Some((checked.lines + 1, checked.newest.map_or(0, |newest| newest.seq) + 1, wrong));
                return Ok(checked);
            }
            at += length + 1;
        }
        buffer.copy_within(at..end, 0);
        held = end - at;
        if held == buffer.len() {
            let seq = checked.newest.map_or(0, |newest| newest.seq) + 1;
            checked.broken = Some((checked.lines + 1, seq, BreakKind::Form));
            return Ok(checked);
        }
    }
}

impl Checked {
    fn add(&mut self, line: &[u8], wanted: &[ChainLink]) -> Result<(), BreakKind> {
        let parts = LineParts::of(line).ok_or(BreakKind::Form)?;
        match &self.newest {
            Some(newest) if parts.seq != newest.seq + 1 => return Err(BreakKind::Number { found: parts.seq }),
            // Its own hash first: if that is wrong it is this line that was changed, not the one before it.
            _ if !parts.is_whole() => return Err(BreakKind::Changed),
            Some(newest) if parts.prev != newest.hash => return Err(BreakKind::Link),
            Some(_) => {}
            None => self.before = Some(parts.before()),
        }
        let link = parts.link();
        let found = wanted.iter().filter(|wanted| wanted.seq == link.seq && wanted.seq > 0);
        self.wanted.extend(found.map(|wanted| (*wanted, *wanted == link)));
        self.newest = Some(link);
        self.lines += 1;
        Ok(())
    }
}

// === for people ===

impl fmt::Display for AuditBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(seq) = self.seq {
            write!(f, " (seq {seq})")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl BreakKind {
    /// Its name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Changed => "changed",
            Self::Number { .. } => "number",
            Self::Link => "link",
            Self::Missing { .. } => "missing",
            Self::Head => "head",
            Self::HeadMissing => "head_missing",
            Self::HeadDamaged => "head_damaged",
            Self::LetGo => "let_go",
        }
    }
}

impl fmt::Display for BreakKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => f.write_str("this is no audit line: it was changed or cut"),
            Self::Changed => f.write_str("this line was changed: its text does not have its hash"),
            Self::Number { found } => {
                write!(f, "the line here has the number {found}: lines were removed, added or swapped")
            }
            Self::Link => {
                f.write_str("this line does not follow on the one before it: one of the two was replaced, or what was between them is gone")
            }
            Self::Missing { newest } => write!(f, "the log ends with number {newest}: the lines after it were cut off"),
            Self::Head => f.write_str("this line is not the one that was here: it and all after it may be made up"),
            Self::HeadMissing => f.write_str("the head is missing, so nobody can tell whether the newest lines were cut off"),
            Self::LetGo => f.write_str("this line is no longer kept, so nothing can be compared with it"),
            Self::HeadDamaged => f.write_str("the head is damaged, so nobody can tell whether the newest lines were cut off"),
        }
    }
}
