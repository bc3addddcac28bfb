//! The head: the number and hash of the newest line, in a file of its own, so that a missing end is noticed. It also has
//! the anchor: the last line of those that were let go of, on which the first one kept hangs.
//!
//! It is written after the lines, so a log may be longer than its head says: somebody was killed in between. It is never
//! shorter.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;

use super::{
    chain::{ChainLink, Hash, hash, sha256},
    files::NO_FOLLOW,
};

pub(super) const NAME: &str = "audit.head";

/// How often it is put on disk at most. A head that is too old costs nothing but what a thief could cut off.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// Bytes of the file, whatever the numbers: so one write replaces all of it.
const WIDTH: usize = 320;

/// How often one reads a head that somebody is writing at this moment.
const TRIES: u32 = 5;

/// The newest line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditHead {
    pub seq: u64,
    /// 64 hexadecimal digits.
    pub hash: String,
}

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownHead {
    pub(super) newest: ChainLink,
    pub(super) anchor: ChainLink,
}

/// What there is in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundHead {
    Head(KnownHead),
    Nothing,
    Damaged,
}

/// The file, open for writing.
#[derive(Debug)]
pub(super) struct HeadFile {
    folder: PathBuf,
    file: File,
    /// What it says.
    text: Vec<u8>,
    synced: Instant,
}

#[derive(Deserialize)]
struct RawHead {
    seq: u64,
    hash: String,
    anchor_seq: u64,
    anchor: String,
}

// === impl AuditHead ===

impl From<&ChainLink> for AuditHead {
    fn from(link: &ChainLink) -> Self {
        Self { seq: link.seq, hash: String::from_utf8_lossy(&link.hash).into_owned() }
    }
}

impl std::fmt::Display for AuditHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl std::str::FromStr for AuditHead {
    type Err = String;

    /// Reads `SEQ:HASH`, as it is displayed.
    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (seq, hex) = text.split_once(':')?;
            hash(hex).and_then(|_| Some(Self { seq: seq.parse().ok()?, hash: hex.to_owned() }))
        };
        read().ok_or_else(|| "a head is SEQ:HASH, a number and 64 hexadecimal digits".to_owned())
    }
}

// === impl FoundHead ===

impl FoundHead {
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        for _ in 0..TRIES {
            match fs::read(folder.join(NAME)) {
                Ok(text) => {
                    if let Some(known) = parse(&text) {
                        return Ok(Self::Head(known));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
                Err(error) => return Err(error),
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(Self::Damaged)
    }
}

// === impl HeadFile ===

impl HeadFile {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let (file, text) = (open(folder)?, Vec::new());
        Ok(Self { folder: folder.to_owned(), file, text, synced: Instant::now() })
    }

    pub(super) fn write(&mut self, known: &KnownHead) -> io::Result<()> {
        self.text = text(known);
        self.file.write_all_at(&self.text, 0)?;
        if self.synced.elapsed() >= SYNC_EVERY { self.sync() } else { Ok(()) }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.file.metadata()?.nlink() == 0 {
            // Somebody has taken it away.
            self.file = open(&self.folder)?;
            self.file.write_all_at(&self.text, 0)?;
        }
        self.file.set_len(WIDTH as u64)?;
        self.file.sync_data()?;
        self.synced = Instant::now();
        Ok(())
    }
}

fn open(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_FOLLOW);
    let file = options.open(folder.join(NAME))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn text(known: &KnownHead) -> Vec<u8> {
    let hex = |hash: &Hash| String::from_utf8_lossy(hash).into_owned();
    let KnownHead { newest, anchor } = known;
    let said = format!(
        "{{\"seq\":{},\"hash\":\"{}\",\"anchor_seq\":{},\"anchor\":\"{}\"",
        newest.seq,
        hex(&newest.hash),
        anchor.seq,
        hex(&anchor.hash)
    );
    let sum = hex(&sha256(said.as_bytes()));
    let mut text = format!("{said},\"sum\":\"{}\"}}", &sum[..16]).into_bytes();
    text.resize(WIDTH - 1, b' ');
    text.push(b'\n');
    text
}

/// Returns what a head says if it is whole to the byte.
fn parse(text: &[u8]) -> Option<KnownHead> {
    let raw: RawHead = serde_json::from_slice(text).ok()?;
    let newest = ChainLink { seq: raw.seq, hash: hash(&raw.hash)? };
    let anchor = ChainLink { seq: raw.anchor_seq, hash: hash(&raw.anchor)? };
    let known = KnownHead { newest, anchor };
    (self::text(&known) == text).then_some(known)
}
