//! All lines, the oldest first, for a copy elsewhere.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    chain::{GENESIS, LineParts},
    files,
    head::AuditHead,
};

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportSummary {
    pub lines: u64,
    /// The newest line. Who keeps it can tell later whether the log is still the same.
    pub head: AuditHead,
}

/// Why not all was copied.
#[derive(Debug, thiserror::Error)]
pub enum AuditExportError {
    #[error("cannot read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    /// What they are given to has failed.
    #[error("cannot write the copy")]
    Write(#[source] io::Error),
}

/// What is read at once. A longer line would be none, and ends the copy of its file.
const CHUNK_BYTES: usize = 1 << 20;

/// Gives the lines of a log to `to`, many at once, as they are.
pub fn export(folder: &Path, mut to: impl FnMut(&[u8]) -> io::Result<()>) -> Result<ExportSummary, AuditExportError> {
    let error = |path: &Path| {
        let path = path.to_owned();
        move |source| AuditExportError::Read { path, source }
    };
    let mut exported = ExportSummary { lines: 0, head: AuditHead::from(&GENESIS) };
    let mut buffer = vec![0; CHUNK_BYTES];
    for file in files::all(folder).map_err(error(folder))? {
        let mut held = 0;
        loop {
            let read = (&file.file).read(&mut buffer[held..]).map_err(error(&file.path))?;
            if read == 0 {
                // What has no line end is no line yet.
                break;
            }
            let end = held + read;
            let whole = memchr::memrchr(b'\n', &buffer[..end]).map_or(0, |at| at + 1);
            if whole > 0 {
                let lines = &buffer[..whole];
                to(lines).map_err(AuditExportError::Write)?;
                exported.lines += memchr::memchr_iter(b'\n', lines).count() as u64;
                let last = lines[..whole - 1].rsplit(|byte| *byte == b'\n').next();
                if let Some(parts) = last.and_then(LineParts::of) {
                    exported.head = AuditHead::from(&parts.link());
                }
            }
            buffer.copy_within(whole..end, 0);
            held = end - whole;
        }
    }
    Ok(exported)
}
