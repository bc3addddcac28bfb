//! Room behind the end of the newest file, which a full disk does not take away: an agent that fills the disk must not be able
//! to keep from the log that its access was taken back (H6). The blocks belong to the file, so nobody can be quicker when
//! they are needed, and its length says nothing of them.

use std::{fs::File, io};

/// What is kept for lines that are owed: some hundred of them.
pub(super) const RESERVE_BYTES: u64 = 64 << 10;

/// What is set aside at once beyond that, where there is room: to ask for each line would cost more than the line.
pub(super) const STEP_BYTES: u64 = 256 << 10;

/// What of a file may be written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogRoom {
    /// All but the reserve.
    Common,
    /// The reserve, too.
    Reserve,
}

/// Gives a file blocks from `from` to `to`, whatever its length. Returns up to where it has them now: as far as anybody knows,
/// where file systems cannot do this.
pub(super) fn set_aside(file: &File, from: u64, to: u64) -> io::Result<u64> {
    for to in [to + STEP_BYTES, to] {
        match allocate(file, from, to - from) {
            Ok(()) => return Ok(to),
            Err(error) if is_full(&error) => {}
            Err(_) => return Ok(u64::MAX),
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, from: u64, bytes: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    Ok(fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes)?)
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _from: u64, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
