//! A new file for a full one; and the oldest is let go of, where not all are kept. The chain goes on through all of them.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::Path,
};

use super::{
    chain::{ChainLink, LineParts},
    files,
    log::{Newest, OpenLog},
};

/// What is read of the end of a file to find its last line. Longer lines are not written.
const LAST_BYTES: u64 = 256 << 10;

/// Begins a new file. The head is known to be on the full one's last line, which `mend` relies on.
pub(super) fn begin_new(log: &mut OpenLog) -> io::Result<()> {
    log.head.sync()?;
    let number = files::full(&log.folder)?.last().map_or(0, |(number, _)| *number) + 1;
    let full = log.folder.join(files::full_name(number));
    if let Some(file) = &log.file {
        file.give_back()?;
    }
    // From here on the next write opens a new file, also if this fails half way.
    log.file = None;
    fs::rename(log.path(), full)?;
    File::open(&log.folder)?.sync_all()?;
    log.file = Some(Newest::open(&log.folder, None)?);
    if log.settings.keep > 0 {
        let_go(log)?;
    }
    Ok(())
}

fn let_go(log: &mut OpenLog) -> io::Result<()> {
    let full = files::full(&log.folder)?;
    for (_, path) in &full[..full.len().saturating_sub(log.settings.keep)] {
        // First the anchor, then the file: if somebody is killed in between, there is more than has to be, not less.
        log.known.anchor = last_line(path)?;
        log.head.write(&log.known)?;
        log.head.sync()?;
        fs::remove_file(path)?;
    }
    Ok(())
}

fn last_line(path: &Path) -> io::Result<ChainLink> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let size = length.min(LAST_BYTES);
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, length - size)?;
    let line = bytes.strip_suffix(b"\n").and_then(|bytes| LineParts::of(bytes.rsplit(|byte| *byte == b'\n').next()?));
    line.map(|parts| parts.link()).ok_or_else(|| io::Error::other("its last line is none"))
}
