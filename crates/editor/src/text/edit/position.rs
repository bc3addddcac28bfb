//! Places in a text as editors count them: lines from zero, and in a line UTF-16 units from zero (LSP 3.17, Position).

use prism_core::policy::Refusal;
use serde_json::{Value, json};

use crate::args::{Args, members, wrong};

/// A line, and the UTF-16 units before a place in it.
pub(crate) type Position = (u64, u64);

/// From one place to another.
pub(crate) type Span = (Position, Position);

/// The lines of a text.
pub(crate) struct TextLines<'a> {
    text: &'a str,
    /// Where each begins, and where it ends without its line break.
    ends: Vec<(usize, usize)>,
}

impl Args {
    /// A place in a text: its line, and the UTF-16 units before it in that line.
    pub(crate) fn position(&mut self, name: &'static str) -> Result<Option<Position>, Refusal> {
        self.take(name).map(|value| position(name, value)).transpose()
    }

    /// Two places.
    pub(crate) fn range(&mut self, name: &'static str) -> Result<Option<Span>, Refusal> {
        self.take(name).map(|value| range(name, value)).transpose()
    }
}

fn position(name: &str, value: Value) -> Result<Position, Refusal> {
    let mut place = members(name, value)?;
    let mut number = |member| {
        let number = place.number(member, 0, u64::from(u32::MAX))?;
        number.ok_or_else(|| wrong(format!("`{name}` has no `{member}`")))
    };
    let found = (number("line")?, number("character")?);
    place.done()?;
    Ok(found)
}

pub(super) fn range(name: &str, value: Value) -> Result<Span, Refusal> {
    let mut ends = members(name, value)?;
    let mut end_of = |end: &'static str| {
        let place = ends.take(end).ok_or_else(|| wrong(format!("`{name}` has no `{end}`")))?;
        position(end, place)
    };
    let found = (end_of("start")?, end_of("end")?);
    ends.done()?;
    Ok(found)
}

impl<'a> TextLines<'a> {
    /// A line ends with `\n`, `\r\n` or `\r`; what follows the last break is a line too, be it empty.
    pub(crate) fn of(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut ends = Vec::new();
        let (mut start, mut i) = (0, 0);
        while i < bytes.len() {
            let width = match (bytes[i], bytes.get(i + 1)) {
                (b'\r', Some(b'\n')) => 2,
                (b'\r' | b'\n', _) => 1,
                _ => {
                    i += 1;
                    continue;
                }
            };
            ends.push((start, i));
            i += width;
            start = i;
        }
        ends.push((start, bytes.len()));
        Self { text, ends }
    }

    /// Returns the byte at a place. Beyond the end of a line is its end, as in LSP; beyond the last line is an error.
    pub(crate) fn offset(&self, (line, character): Position) -> Result<usize, String> {
        let known = usize::try_from(line).ok().and_then(|line| self.ends.get(line));
        let &(start, end) =
            known.ok_or_else(|| format!("there is no line {line}; the last is {}", self.ends.len() - 1))?;
        let mut units = 0;
        for (offset, letter) in self.text[start..end].char_indices() {
            if units == character {
                return Ok(start + offset);
            }
            units += letter.len_utf16() as u64;
            if units > character {
                return Err(format!("line {line} has no place {character}: it is within a character"));
            }
        }
        Ok(end)
    }

    /// The lines without their breaks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.ends.iter().map(|&(start, end)| &self.text[start..end])
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the place of a byte. Within a line break is the end of its line.
    pub(crate) fn place(&self, offset: usize) -> Position {
        let line = self.ends.partition_point(|&(start, _)| start <= offset).saturating_sub(1);
        let (start, end) = self.ends[line];
        let before = self.text.get(start..offset.min(end)).unwrap_or_default();
        (line as u64, before.chars().map(|letter| letter.len_utf16() as u64).sum())
    }

    /// Returns the place of a byte, as JSON has it.
    pub(crate) fn to_json(&self, offset: usize) -> Value {
        let (line, character) = self.place(offset);
        json!({ "line": line, "character": character })
    }

    /// Returns the place itself, or the nearest before it that there is.
    pub(crate) fn nearest(&self, (line, character): Position) -> Position {
        let last = self.ends.len() - 1;
        let at = usize::try_from(line).unwrap_or(usize::MAX).min(last);
        let (start, end) = self.ends[at];
        if at as u64 != line {
            return self.place(end);
        }
        let mut units = 0;
        for letter in self.text[start..end].chars() {
            let next = units + letter.len_utf16() as u64;
            if next > character {
                break;
            }
            units = next;
        }
        (line, units)
    }
}
