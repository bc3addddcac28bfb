//! A zip archive of files that are stored as they are: no more of the format than every reader of it knows. The crates that
//! write zip files bring more code than all of this, and here nothing is large enough to be worth compressing.

/// An archive in the making.
#[derive(Default)]
pub(super) struct ZipArchive {
    bytes: Vec<u8>,
    /// Its table of contents, which comes last.
    directory: Vec<u8>,
    count: u16,
}

/// The version of the format that stored files need, and that one with the Unix attributes of a plain file.
const NEEDS: u16 = 10;
const MADE_BY_UNIX: u16 = (3 << 8) | 20;
const PLAIN_FILE: u32 = 0o100_644 << 16;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const STORED: u16 = 0;
/// Midnight of the first day that there is in zip files, so that the same files give the same archive.
const TIME: u16 = 0;
const DATE: u16 = (1 << 5) | 1;

impl ZipArchive {
    /// Adds a file.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) {
        let start = size(self.bytes.len());
        let mut entry = Vec::new();
        put(&mut entry, &[NEEDS, FLAGS, STORED, TIME, DATE]);
        for field in [checksum(content), size(content.len()), size(content.len())] {
            entry.extend(field.to_le_bytes());
        }
        let extra = 0;
        put(&mut entry, &[u16::try_from(name.len()).expect("names here are short"), extra]);

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(&entry);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(content);

        let (comment, disk, kind) = (0, 0, 0);
        self.directory.extend(b"PK\x01\x02");
        put(&mut self.directory, &[MADE_BY_UNIX]);
        self.directory.extend(&entry);
        put(&mut self.directory, &[comment, disk, kind]);
        self.directory.extend(PLAIN_FILE.to_le_bytes());
        self.directory.extend(start.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.count += 1;
    }

    /// Returns the archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let start = size(self.bytes.len());
        self.bytes.extend(&self.directory);
        let (disk, comment) = (0, 0);
        self.bytes.extend(b"PK\x05\x06");
        put(&mut self.bytes, &[disk, disk, self.count, self.count]);
        self.bytes.extend(size(self.directory.len()).to_le_bytes());
        self.bytes.extend(start.to_le_bytes());
        put(&mut self.bytes, &[comment]);
        self.bytes
    }
}

fn put(bytes: &mut Vec<u8>, fields: &[u16]) {
    fields.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
}

fn size(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("what this program carries in itself is smaller than 4 GiB")
}

/// CRC-32, bit by bit: a few milliseconds for what is packed here.
fn checksum(content: &[u8]) -> u32 {
    let fed = content.iter().fold(u32::MAX, |checksum, byte| {
        (0..8).fold(checksum ^ u32::from(*byte), |checksum, _| match checksum & 1 {
            1 => (checksum >> 1) ^ 0xedb8_8320,
            _ => checksum >> 1,
        })
    });
    !fed
}

#[cfg(test)]
mod tests {
    use super::*;

    // The check value that the catalogue of CRCs has for this one.
    #[test]
    fn the_checksum_is_the_one_of_zip_files() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
