//! Reading a file as a whole.

use std::{fs::File, io::Read};

use prism_core::policy::{Code, Refusal};

use crate::refusal::failed;

/// The largest file that is read or written as a whole.
pub(crate) const MAX_BYTES: u64 = 5 << 20;

/// Reads all of a file, unless it is too large.
pub(crate) fn whole(file: File, path: &str) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    // One more, so that a file that grows meanwhile is found out too.
    let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| failed(format!("{path:?} cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_BYTES {
        let message = format!("{path:?} has more than {MAX_BYTES} bytes; read a part of it with a command");
        return Err(Refusal::new(Code::TooLarge, message));
    }
    Ok(bytes)
}

/// Refuses to write more than would be read again.
pub(crate) fn check_size(bytes: &[u8]) -> Result<(), Refusal> {
    if bytes.len() as u64 <= MAX_BYTES {
        return Ok(());
    }
    Err(Refusal::new(Code::TooLarge, format!("a file of {} bytes; at most {MAX_BYTES} can be written", bytes.len())))
}
