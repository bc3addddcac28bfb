//! The search through one file or one text, and where in it something stands as editors count it: lines from zero, UTF-16
//! units in a line. A file is read in pieces and never held.

use std::{
    cell::RefCell,
    io::{self, Read},
    ops::Range,
};

use grep_searcher::{Searcher, Sink, SinkMatch};

use super::pattern::{Pattern, ReplacementText};

/// What searches; one for each thread.
pub(crate) struct Engine {
    pattern: Pattern,
    searcher: Searcher,
}

/// One place where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SearchHit {
    pub(crate) start: (u64, u64),
    pub(crate) end: (u64, u64),
    /// The beginning of the line that it starts in.
    pub(crate) line_text: String,
    pub(crate) bytes: Range<usize>,
    /// What it is to be replaced by, if that was asked.
    pub(crate) new_text: String,
}

#[derive(Debug, Default)]
pub(crate) struct SearchHits {
    pub(crate) hits: Vec<SearchHit>,
    /// Whether there are more than asked for.
    pub(crate) is_cut: bool,
}

/// Letters of a line that are shown.
const MAX_LINE: usize = 300;

/// Carriage returns without a line feed in one file, which begin a line for an editor and not for the engine. Beyond it lines
/// are counted without them.
const MAX_RETURNS: usize = 100_000;

impl Engine {
    pub(crate) fn new(pattern: &Pattern) -> Self {
        Self { pattern: pattern.clone(), searcher: pattern.searcher() }
    }

    /// Searches what is read; `None` if it is no text. `is_over` is asked now and then, and ends it with an error.
    pub(crate) fn read(
        &mut self,
        from: impl Read,
        limit: usize,
        is_over: impl Fn() -> bool,
    ) -> io::Result<Option<SearchHits>> {
        let read = RefCell::new(ScanNotes::default());
        let source = ScannedSource { from, is_over, seen: &read };
        let mut sink = HitCollector::new(&self.pattern, limit, None, &read);
        self.searcher.search_reader(&self.pattern.matcher, source, &mut sink)?;
        Ok(if sink.is_binary { None } else { Some(sink.found) })
    }

    /// Searches a text. With a replacement, each place comes with what it is to be replaced by.
    pub(crate) fn text(&mut self, text: &str, limit: usize, new: Option<&ReplacementText>) -> io::Result<SearchHits> {
        // As a file is searched: a byte order mark is not part of the first line.
        let bare = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        let read = RefCell::new(ScanNotes::default());
        read.borrow_mut().note(text.as_bytes());
        let mut sink = HitCollector::new(&self.pattern, limit, new, &read);
        self.searcher.search_slice(&self.pattern.matcher, bare.as_bytes(), &mut sink)?;
        Ok(sink.found)
    }
}

/// What was seen in the bytes as they went by.
#[derive(Debug, Default)]
struct ScanNotes {
    length: usize,
    first: [u8; 3],
    /// Where each carriage return stands that has no line feed.
    returns: Vec<usize>,
    /// Whether the last byte was a carriage return.
    is_open: bool,
}

impl ScanNotes {
    fn note(&mut self, bytes: &[u8]) {
        let Some(first) = bytes.first() else { return };
        if self.is_open && *first != b'\n' {
            self.returns.push(self.length - 1);
        }
        for (place, byte) in (self.length..self.first.len()).zip(bytes) {
            self.first[place] = *byte;
        }
        for at in memchr::memchr_iter(b'\r', bytes) {
            if bytes.get(at + 1).is_some_and(|next| *next != b'\n') && self.returns.len() < MAX_RETURNS {
                self.returns.push(self.length + at);
            }
        }
        self.is_open = bytes.ends_with(b"\r");
        self.length += bytes.len();
    }

    /// The bytes of the mark that the engine does not count.
    fn mark(&self) -> usize {
        if self.first == [0xEF, 0xBB, 0xBF] { 3 } else { 0 }
    }

    /// UTF-16 is searched as UTF-8, so places in the one are none in the other.
    fn is_wide(&self) -> bool {
        matches!(self.first, [0xFF, 0xFE, _] | [0xFE, 0xFF, _])
    }

    /// Returns that stand before a place.
    fn returns_before(&self, place: usize) -> usize {
        if self.is_wide() { 0 } else { self.returns.partition_point(|at| *at < place) }
    }
}

struct ScannedSource<'a, R, F> {
    from: R,
    is_over: F,
    seen: &'a RefCell<ScanNotes>,
}

impl<R: Read, F: Fn() -> bool> Read for ScannedSource<'_, R, F> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        if (self.is_over)() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let length = self.from.read(room)?;
        self.seen.borrow_mut().note(&room[..length]);
        Ok(length)
    }
}

struct HitCollector<'a> {
    pattern: &'a Pattern,
    limit: usize,
    new: Option<&'a ReplacementText>,
    seen: &'a RefCell<ScanNotes>,
    found: SearchHits,
    is_binary: bool,
}

impl<'a> HitCollector<'a> {
    fn new(pattern: &'a Pattern, limit: usize, new: Option<&'a ReplacementText>, seen: &'a RefCell<ScanNotes>) -> Self {
        Self { pattern, limit, new, seen, found: SearchHits::default(), is_binary: false }
    }
}

impl Sink for &mut HitCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let seen = self.seen.borrow();
        let lines = matched.bytes();
        let searched = if self.pattern.is_multiline() { lines } else { without_break(lines) };
        let begin = usize::try_from(matched.absolute_byte_offset()).unwrap_or(usize::MAX) + seen.mark();
        let line = matched.line_number().map_or(0, |number| number - 1) + seen.returns_before(begin) as u64;
        // The mark is a letter of the first line, as the text has it.
        let marked = u64::from(seen.mark() > 0 && begin == seen.mark());
        let mut place = LineCursor { bytes: lines, at: 0, line_at: 0, line, units: marked };
        let (found, limit) = (&mut self.found, self.limit);
        self.pattern.each(searched, self.new, |start, end, new_text| {
            // That is the beginning of what comes next, and found there.
            if start == end && start == lines.len() && lines.ends_with(b"\n") {
                return true;
            }
            if found.hits.len() == limit {
                found.is_cut = true;
                return false;
            }
            let from = place.go_to(start);
            let line_text = place.line_text();
            let to = place.clone().go_to(end);
            found.hits.push(SearchHit { start: from, end: to, line_text, bytes: begin + start..begin + end, new_text });
            true
        });
        Ok(!self.found.is_cut && self.new.is_none_or(ReplacementText::is_within_bounds))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// A place in some lines, which only goes forward.
#[derive(Clone)]
struct LineCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where its line begins.
    line_at: usize,
    line: u64,
    /// From the beginning of the line.
    units: u64,
}

impl LineCursor<'_> {
    fn go_to(&mut self, at: usize) -> (u64, u64) {
        // Rarely are there breaks before it: only in a match of several lines, or behind a bare carriage return.
        while let Some(found) = memchr::memchr2(b'\r', b'\n', &self.bytes[self.at..at]) {
            let found = self.at + found;
            if self.bytes[found] == b'\r' && self.bytes.get(found + 1) == Some(&b'\n') && found + 1 >= at {
                break;
            }
            let is_pair = self.bytes[found] == b'\r' && self.bytes.get(found + 1) == Some(&b'\n');
            self.at = found + if is_pair { 2 } else { 1 };
            (self.line_at, self.units) = (self.at, 0);
            self.line += 1;
        }
        self.units += units(&self.bytes[self.at..at]);
        self.at = at;
        (self.line, self.units)
    }

    fn line_text(&self) -> String {
        let line = &self.bytes[self.line_at..];
        // No letter has more than four bytes.
        let line = &line[..line.len().min(4 * MAX_LINE)];
        let line = &line[..memchr::memchr2(b'\r', b'\n', line).unwrap_or(line.len())];
        String::from_utf8_lossy(line).chars().take(MAX_LINE).collect()
    }
}

fn without_break(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// UTF-16 units; what is no UTF-8 counts as the letter that is shown in its place.
fn units(bytes: &[u8]) -> u64 {
    if bytes.is_ascii() {
        return bytes.len() as u64;
    }
    let chunk = |chunk: std::str::Utf8Chunk<'_>| {
        chunk.valid().encode_utf16().count() + usize::from(!chunk.invalid().is_empty())
    };
    bytes.utf8_chunks().map(chunk).sum::<usize>() as u64
}
