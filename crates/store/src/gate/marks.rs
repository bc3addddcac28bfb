//! Ends that are not written down yet. What takes a grant away is done in memory first; while log or database are full, the
//! end is noted here, so that a daemon that is killed meanwhile does not give the grant back at its next start.
//!
//! The idea: the file has its full size from the start and is only ever written over, so it needs no room on the disk.

use std::{
    fs::{File, OpenOptions, Permissions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Bytes of one mark, and how many there are: more than there are grants.
const SLOT_BYTES: usize = 256;
const SLOTS: usize = 512;

/// Bytes of a name. What is longer is cut.
const MAX_NAME: usize = 160;

/// A grant that has ended, with all that came from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndMark {
    pub grant: u128,
    pub at_us: i64,
    /// Who has ended it.
    pub by: String,
}

/// The file, open.
#[derive(Debug)]
pub struct EndMarks {
    file: File,
    used: usize,
}

impl EndMarks {
    /// Opens the file, which is made if it is missing, and returns what is in it.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<EndMark>)> {
        let mut options = OpenOptions::new();
        let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
        options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_follow);
        let file = options.open(path)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        let found = file.metadata()?.len();
        let whole = SLOT_BYTES * SLOTS;
        if found < whole as u64 {
            // With bytes, so that every block is there.
            let from = usize::try_from(found).unwrap_or(0) / SLOT_BYTES * SLOT_BYTES;
            file.write_all_at(&blank(SLOTS - from / SLOT_BYTES), from as u64)?;
            file.sync_all()?;
        }
        let mut bytes = vec![0; whole];
        file.read_exact_at(&mut bytes, 0)?;
        let slots: Vec<Option<EndMark>> = bytes.chunks_exact(SLOT_BYTES).map(read).collect();
        let used = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        Ok((Self { file, used }, slots.into_iter().flatten().collect()))
    }

    /// Notes an end, on disk.
    pub fn add(&mut self, mark: &EndMark) -> io::Result<()> {
        if self.used >= SLOTS {
            return Err(io::Error::other("there is no place for another one"));
        }
        self.file.write_all_at(&written(mark), (self.used * SLOT_BYTES) as u64)?;
        self.used += 1;
        self.file.sync_data()
    }

    /// Forgets all of them: they are written down by now.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.used > 0 {
            self.file.write_all_at(&blank(self.used), 0)?;
            self.file.sync_data()?;
            self.used = 0;
        }
        Ok(())
    }
}

fn blank(slots: usize) -> Vec<u8> {
    let mut bytes = vec![b' '; slots * SLOT_BYTES];
    bytes.chunks_exact_mut(SLOT_BYTES).for_each(|slot| slot[SLOT_BYTES - 1] = b'\n');
    bytes
}

fn written(mark: &EndMark) -> Vec<u8> {
    let mut end = mark.by.len().min(MAX_NAME);
    while !mark.by.is_char_boundary(end) {
        end -= 1;
    }
    let by: String = mark.by[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut bytes = format!("{:032x} {} {by}", mark.grant, mark.at_us).into_bytes();
    bytes.resize(SLOT_BYTES - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn read(slot: &[u8]) -> Option<EndMark> {
    let text = str::from_utf8(slot).ok()?;
    let (grant, rest) = text.split_once(' ')?;
    let (at, by) = rest.split_once(' ')?;
    let grant = u128::from_str_radix(grant, 16).ok().filter(|_| grant.len() == 32)?;
    Some(EndMark { grant, at_us: at.parse().ok()?, by: by.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn mark(grant: u128, by: &str) -> EndMark {
        EndMark { grant, at_us: 1_794_816_300_000_000, by: by.to_owned() }
    }

    // H6
    #[test]
    fn an_end_is_there_at_the_next_start_until_it_is_forgotten() {
        let home = TempDir::new().unwrap();
        let path = home.path().join("ends");
        let (mut marks, found) = EndMarks::open(&path).unwrap();
        assert!(found.is_empty());
        let all = [mark(7, "console"), mark(u128::MAX, "grün")];
        all.iter().for_each(|mark| marks.add(mark).unwrap());
        drop(marks);
        let (mut marks, found) = EndMarks::open(&path).unwrap();
        assert_eq!(found, all);
        marks.add(&mark(8, "")).unwrap();
        assert_eq!(EndMarks::open(&path).unwrap().1.len(), 3);
        marks.clear().unwrap();
        marks.add(&mark(9, "http")).unwrap();
        assert_eq!(EndMarks::open(&path).unwrap().1, [mark(9, "http")]);
    }

    // H6: so a full disk does not matter.
    #[test]
    fn the_file_never_grows() {
        let home = TempDir::new().unwrap();
        let path = home.path().join("ends");
        let (mut marks, _) = EndMarks::open(&path).unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        for grant in 0..SLOTS as u128 {
            marks.add(&mark(grant, &"ü\n".repeat(300))).unwrap();
        }
        assert!(marks.add(&mark(1, "one too many")).is_err());
        assert_eq!(std::fs::metadata(&path).unwrap().len(), size);
        assert_eq!(EndMarks::open(&path).unwrap().1.len(), SLOTS);
        marks.clear().unwrap();
        assert!(EndMarks::open(&path).unwrap().1.is_empty());
    }

    #[test]
    fn what_is_no_mark_is_passed_over() {
        let home = TempDir::new().unwrap();
        let path = home.path().join("ends");
        std::fs::write(&path, "nonsense").unwrap();
        let (mut marks, found) = EndMarks::open(&path).unwrap();
        assert!(found.is_empty());
        marks.add(&mark(7, "console")).unwrap();
        assert_eq!(EndMarks::open(&path).unwrap().1, [mark(7, "console")]);
    }
}
