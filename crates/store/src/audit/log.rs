//! The newest file of the log, at work: lines are added and on disk, or they are not there.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    AuditEntry, AuditSettings,
    chain::{ChainLink, now_us, timestamp},
    files,
    head::{AuditHead, HeadFile, KnownHead},
    mend,
    reserve::{LogRoom, RESERVE_BYTES, set_aside},
    rotate,
};

/// A log that is open for writing, by one thread.
#[derive(Debug)]
pub(super) struct OpenLog {
    pub(super) folder: PathBuf,
    pub(super) settings: AuditSettings,
    /// Where the chain stands on disk.
    pub(super) known: KnownHead,
    pub(super) head: HeadFile,
    /// Gone where a new one could not be begun; it is opened for the next lines.
    pub(super) file: Option<Newest>,
    /// The lines of one write. Kept, as the next one is about as large.
    buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Newest {
    file: File,
    inode: (u64, u64),
    /// Up to here it has whole lines.
    pub(super) good_bytes: u64,
    /// Up to here it has blocks, as far as is known.
    room_to: u64,
    /// There may be something behind that.
    failed: bool,
}

/// Lines that are on disk.
#[derive(Debug)]
pub(super) struct WrittenLines<'a> {
    /// The number of the first.
    pub(super) first: u64,
    pub(super) newest: ChainLink,
    /// All of them, each with its line end.
    pub(super) lines: &'a [u8],
}

impl OpenLog {
    /// Opens a log, and returns the line that has to be added about its state, if it has to be.
    /// `known`: how far it had come, as somebody knows.
    pub(super) fn open(
        folder: &Path,
        settings: AuditSettings,
        known: Option<&AuditHead>,
    ) -> io::Result<(Self, Option<AuditEntry>)> {
        files::make(folder)?;
        let mut standing = mend::look(folder, settings.keep)?;
        if let Some(known) = known {
            standing.reach(known);
        }
        let mut head = HeadFile::open(folder)?;
        let mut newest = Newest::open(folder, Some(standing.good_bytes))?;
        // A disk that is full already has none to give, and the next line tries again.
        let _ = newest.make_room(0);
        head.write(&standing.known)?;
        let known = standing.known;
        let log = Self { folder: folder.to_owned(), settings, known, head, file: Some(newest), buffer: Vec::new() };
        Ok((log, standing.says))
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(files::CURRENT)
    }

    /// Adds a line for each entry. If it fails, none of them is there.
    pub(super) fn write<'a>(
        &mut self,
        room: LogRoom,
        entries: impl Iterator<Item = &'a AuditEntry>,
    ) -> io::Result<WrittenLines<'_>> {
        let path = self.path();
        if let Some(file) = &mut self.file
            && !file.is_in_place(&path)?
        {
            // Somebody has taken it away. That the chain goes on elsewhere shows that there was something.
            self.file = None;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(Newest::open(&self.folder, None)?),
        };
        self.buffer.clear();
        let (first, ts) = (self.known.newest.seq + 1, timestamp(now_us()));
        let mut newest: ChainLink = self.known.newest;
        entries.for_each(|entry| newest.add(&mut self.buffer, entry, &ts));
        if room == LogRoom::Common {
            file.make_room(self.buffer.len() as u64)?;
        }
        file.add(&self.buffer)?;
        let full = file.good_bytes >= self.settings.max_file_bytes;
        self.known.newest = newest;
        // The lines are there, head or no head: one that is too old is made good by the next.
        if self.head.write(&self.known).is_ok() && full {
            // Else the file grows on, and this is tried again.
            let _ = rotate::begin_new(self);
        }
        Ok(WrittenLines { first, newest, lines: &self.buffer })
    }

    /// Puts the head on disk, too.
    pub(super) fn close(&mut self) {
        let _ = self.head.write(&self.known).and_then(|()| self.head.sync());
    }
}

// === impl Newest ===

impl Newest {
    /// Opens the newest file, cut off at `good_bytes`; or, if that is not known, behind its last line end.
    pub(super) fn open(folder: &Path, good_bytes: Option<u64>) -> io::Result<Self> {
        let path = folder.join(files::CURRENT);
        let is_new = !path.exists();
        let file = files::open_to_add(&path)?;
        let found = file.metadata()?;
        let good_bytes = match good_bytes {
            Some(good_bytes) => good_bytes,
            None => mend::whole_bytes(&File::open(&path)?)?,
        };
        if found.len() > good_bytes {
            file.set_len(good_bytes)?;
            file.sync_all()?;
        }
        if is_new {
            // The name has to be there after a power cut, not only the file.
            File::open(folder)?.sync_all()?;
        }
        let good_bytes = good_bytes.min(found.len());
        Ok(Self { file, inode: (found.dev(), found.ino()), good_bytes, room_to: good_bytes, failed: false })
    }

    /// Sees to it that so many bytes fit in without the reserve.
    fn make_room(&mut self, bytes: u64) -> io::Result<()> {
        let wanted = self.good_bytes + bytes + RESERVE_BYTES;
        if wanted > self.room_to {
            self.room_to = set_aside(&self.file, self.good_bytes, wanted)?;
        }
        Ok(())
    }

    /// Gives back what is behind its end: nothing is added any more.
    pub(super) fn give_back(&self) -> io::Result<()> {
        self.file.set_len(self.good_bytes)
    }

    /// Whether this is still the file of that name, and as long as it was. What a write that failed has left is taken
    /// back here, if it was not then.
    fn is_in_place(&mut self, path: &Path) -> io::Result<bool> {
        let Ok(found) = fs::symlink_metadata(path) else { return Ok(false) };
        if (found.dev(), found.ino()) != self.inode {
            return Ok(false);
        }
        if self.failed {
            self.file.set_len(self.good_bytes)?;
            self.failed = false;
            return Ok(true);
        }
        Ok(found.len() == self.good_bytes)
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes).and_then(|()| self.file.sync_data()) {
            self.failed = self.file.set_len(self.good_bytes).is_err();
            // That gave the reserve back, too.
            self.room_to = self.good_bytes;
            return Err(error);
        }
        self.good_bytes += bytes.len() as u64;
        Ok(())
    }
}
