//! Just enough of Rust's lexical rules to tell code from comments and strings.

use std::ops::Range;

/// Returns the text without comments, and the text without comments and the insides of strings. What is
/// left out becomes spaces, byte by byte, so that offsets and lines stay.
pub(super) fn views(text: &str) -> (String, String) {
    let bytes = text.as_bytes();
    let (mut bare, mut code) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => {
                let end = find(bytes, at, b"\n");
                blank(&mut bare, at..end);
                blank(&mut code, at..end);
                end
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                let end = block_comment(bytes, at);
                blank(&mut bare, at..end);
                blank(&mut code, at..end);
                end
            }
            b'"' => {
                let end = quoted(bytes, at, b'"');
                blank(&mut code, at + 1..end.saturating_sub(1).max(at + 1));
                end
            }
            b'r' if !follows_word(bytes, at) => match raw(bytes, at) {
                Some((inside, end)) => {
                    blank(&mut code, inside);
                    end
                }
                None => at + 1,
            },
            b'b' | b'c' if !follows_word(bytes, at) && bytes.get(at + 1) == Some(&b'r') => match raw(bytes, at + 1) {
                Some((inside, end)) => {
                    blank(&mut code, inside);
                    end
                }
                None => at + 1,
            },
            b'\'' => match character(bytes, at) {
                Some(end) => {
                    blank(&mut code, at + 1..end - 1);
                    end
                }
                None => at + 1, // a lifetime
            },
            _ => at + 1,
        };
        at = end;
    }
    // Only whole comments and strings were blanked, which begin and end at ASCII bytes.
    let back = |view: Vec<u8>| String::from_utf8(view).unwrap_or_default();
    (back(bare), back(code))
}

/// Returns what only the comments of a text say, of the text and its view without them. What is left out becomes spaces.
pub(super) fn comments(text: &str, bare: &str) -> String {
    let said = |(own, without): (u8, u8)| if own == without && own != b'\n' { b' ' } else { own };
    // Comments begin and end at ASCII bytes.
    String::from_utf8(text.bytes().zip(bare.bytes()).map(said).collect()).unwrap_or_default()
}

/// Returns the items under `#[cfg(test)]`, attribute included, as ranges of the code view.
pub(super) fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items = Vec::new();
    let mut from = 0;
    while let Some(start) = code[from..].find("#[cfg(test)]").map(|found| from + found) {
        let end = match code[start..].find(['{', ';']).map(|found| start + found) {
            Some(open) if code.as_bytes()[open] == b'{' => closing(code, open),
            Some(semicolon) => semicolon + 1,
            None => code.len(),
        };
        items.push(start..end);
        from = end;
    }
    items
}

/// Returns the offset behind the bracket that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return offset + 1;
        }
    }
    code.len()
}

/// Returns where `word` stands in `code` with no letter, digit or underscore on either side.
pub(super) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let after = code.as_bytes().get(at + word.len());
        !follows_word(code.as_bytes(), at) && !after.is_some_and(|byte| is_word(*byte))
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn follows_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

fn blank(view: &mut [u8], range: Range<usize>) {
    for byte in &mut view[range] {
        if *byte != b'\n' {
            *byte = b' ';
        }
    }
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> usize {
    bytes[from..].windows(needle.len()).position(|window| window == needle).map_or(bytes.len(), |found| from + found)
}

fn block_comment(bytes: &[u8], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Returns the offset behind the closing quote.
fn quoted(bytes: &[u8], from: usize, quote: u8) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns the inside and the end of the raw string whose `r` is at `at`, if one is there.
fn raw(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let hashes = bytes[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if bytes.get(open) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let inside = open + 1..find(bytes, open + 1, &close);
    let end = (inside.end + close.len()).min(bytes.len());
    Some((inside, end))
}

/// Returns the end of the character literal at `at`; a lifetime is none.
fn character(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at + 1) == Some(&b'\\') {
        return Some(quoted(bytes, at, b'\''));
    }
    let rest = std::str::from_utf8(&bytes[at + 1..]).ok()?;
    let width = rest.chars().next()?.len_utf8();
    (bytes.get(at + 1 + width) == Some(&b'\'')).then_some(at + 2 + width)
}
