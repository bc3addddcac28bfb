//! Places in a text as editors count them: lines from zero, and in a line UTF-16 units from zero (LSP 3.17, Position).

/// The lines of a text.
pub(crate) struct Lines<'a> {
    text: &'a str,
    /// Where each begins, and where it ends without its line break.
    ends: Vec<(usize, usize)>,
}

impl<'a> Lines<'a> {
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

    /// The lines without their breaks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a str> {
        self.ends.iter().map(|&(start, end)| &self.text[start..end])
    }

    /// Returns the byte at a place. Beyond the end of a line is its end, as in LSP; beyond the last line is an error.
    pub(crate) fn offset(&self, (line, character): (u64, u64)) -> Result<usize, String> {
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
}
