//! How LSP puts messages on a stream: a head that says how long the body is, and the body. Bytes in, bodies out; what a body
//! says is in `message.rs`.

/// Bytes of one body. A server that announces more is ended: nothing that is asked of one is that long.
pub(crate) const MAX_BODY: usize = 32 << 20;

/// Bytes of one head.
const MAX_HEAD: usize = 4 << 10;

/// Takes a stream apart.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// How many of them were given out already.
    done: usize,
}

/// Why what comes is not LSP. There is no way to find the next message after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a head of more than {MAX_HEAD} bytes")]
    LongHead,
    #[error("a head without a Content-Length")]
    NoLength,
    #[error("a Content-Length that is no number, or stands there twice")]
    BadLength,
    #[error("a message of {0} bytes; at most {MAX_BODY} are taken")]
    LongBody(usize),
}

impl Frames {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.done > 0 {
            self.bytes.drain(..self.done);
            self.done = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next body, if all of it is there. To be called until `None` after each `push`.
    pub(crate) fn poll(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let left = &self.bytes[self.done..];
        let Some((head, start)) = head_of(left) else {
            return if left.len() > MAX_HEAD { Err(FrameError::LongHead) } else { Ok(None) };
        };
        if head.len() > MAX_HEAD {
            return Err(FrameError::LongHead);
        }
        let length = length_in(head)?;
        if length > MAX_BODY {
            return Err(FrameError::LongBody(length));
        }
        if left.len() - start < length {
            return Ok(None);
        }
        let start = self.done + start;
        self.done = start + length;
        Ok(Some(&self.bytes[start..self.done]))
    }
}

/// Appends a message to what is to be written.
pub(crate) fn write(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(body);
}

/// Returns the head, and where the body begins. Some servers leave out the `\r`.
fn head_of(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let window = &bytes[..bytes.len().min(MAX_HEAD + 4)];
    let mut line = 0;
    for (i, _) in window.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if window[line..i].iter().all(|byte| *byte == b'\r') {
            return Some((&window[..line], i + 1));
        }
        line = i + 1;
    }
    None
}

fn length_in(head: &[u8]) -> Result<usize, FrameError> {
    let mut length = None;
    for line in head.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        if !line[..colon].eq_ignore_ascii_case(b"content-length") {
            continue;
        }
        let digits = line[colon + 1..].trim_ascii();
        let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        let number = str::from_utf8(digits).ok().filter(|_| is_number).and_then(|digits| digits.parse().ok());
        if length.is_some() || number.is_none() {
            return Err(FrameError::BadLength);
        }
        length = number;
    }
    length.ok_or(FrameError::NoLength)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(frames: &mut Frames) -> Result<Vec<Vec<u8>>, FrameError> {
        let mut found = Vec::new();
        while let Some(body) = frames.poll()? {
            found.push(body.to_vec());
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_is_cut(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
            cuts in proptest::collection::vec(1_usize..50, 1..20),
        ) {
            let mut stream = Vec::new();
            bodies.iter().for_each(|body| write(&mut stream, body));
            let (mut frames, mut found, mut rest, mut cuts) = (Frames::default(), Vec::new(), &stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let cut = (*cuts.next().unwrap()).min(rest.len());
                frames.push(&rest[..cut]);
                rest = &rest[cut..];
                found.extend(all(&mut frames).unwrap());
            }
            prop_assert_eq!(found, bodies);
        }

        #[test]
        fn garbage_is_an_error_or_waited_for_and_never_more(bytes in proptest::collection::vec(any::<u8>(), 0..6000)) {
            let mut frames = Frames::default();
            frames.push(&bytes);
            let outcome = all(&mut frames);
            prop_assert!(outcome.is_err() || bytes.len() <= MAX_HEAD + 4 || !outcome.unwrap().is_empty());
        }
    }

    #[test]
    fn heads_are_read_as_servers_write_them() {
        for head in [
            "Content-Length: 2\r\n\r\n",
            "content-length:2\n\n",
            "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        ] {
            let mut frames = Frames::default();
            frames.push(format!("{head}{{}}").as_bytes());
            assert_eq!(all(&mut frames), Ok(vec![b"{}".to_vec()]), "{head:?}");
        }
        for (head, error) in [
            ("X: 2\r\n\r\n", FrameError::NoLength),
            ("\r\n", FrameError::NoLength),
            ("Content-Length: x\r\n\r\n", FrameError::BadLength),
            ("Content-Length: -1\r\n\r\n", FrameError::BadLength),
            ("Content-Length: 1\r\nContent-Length: 1\r\n\r\n", FrameError::BadLength),
            ("Content-Length: 999999999999999999999999\r\n\r\n", FrameError::BadLength),
            ("Content-Length: 33554433\r\n\r\n", FrameError::LongBody(33_554_433)),
        ] {
            let mut frames = Frames::default();
            frames.push(head.as_bytes());
            assert_eq!(all(&mut frames), Err(error), "{head:?}");
        }
        let mut frames = Frames::default();
        frames.push(&vec![b'x'; MAX_HEAD + 1]);
        assert_eq!(all(&mut frames), Err(FrameError::LongHead));
    }
}
