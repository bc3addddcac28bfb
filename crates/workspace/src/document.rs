//! A note as it is read from its file: what it is called, when it was written, what it says.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::SystemTime,
};

use prism_store::memory::{DocumentStamp, IndexedDocument};

use super::{
    front_matter,
    layout::{OVERVIEW, TOPICS},
    scan::{self, NoteFile},
};

/// The text of a file, and what is wrong with it.
#[derive(Debug)]
pub(super) struct NoteText {
    pub(super) text: String,
    pub(super) stamp: DocumentStamp,
    pub(super) problem: Option<String>,
}

/// How much of a file is read. What is behind it is not found by any search, and answers that name the file say so.
pub(super) const MAX_FILE_BYTES: u64 = 1 << 20;

/// A file that was written this shortly before it was read may be written again without a new time on it: the clock
/// that stamps files ticks some hundred times a second. Such a file is read again the next time.
const UNSETTLED_NS: i64 = 50_000_000;

/// Reads the file that the walk saw. Another one in its place is an error: a link out of the root, perhaps.
pub(super) fn read(root: &Path, note: &NoteFile) -> io::Result<NoteText> {
    let file = File::open(root.join(&note.path))?;
    let found = file.metadata()?;
    if scan::identity(&found) != note.identity {
        return Err(io::Error::other("the file was replaced while it was read"));
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let mut stamp = scan::stamp(&found);
    let mut bytes = Vec::with_capacity(usize::try_from(found.len().min(MAX_FILE_BYTES)).unwrap_or_default() + 1);
    file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    stamp.content = hash(&bytes);
    if stamp.mtime_ns.saturating_add(UNSETTLED_NS) > i64::try_from(now.as_nanos()).unwrap_or(i64::MAX) {
        stamp.mtime_ns = 0;
    }
    let cut = found.len() > MAX_FILE_BYTES;
    let (text, garbled) = match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        // A character that was cut in two at the end is not the file's fault.
        Err(error) => {
            let garbled = !cut || error.utf8_error().error_len().is_some();
            (String::from_utf8_lossy(error.as_bytes()).into_owned(), garbled)
        }
    };
    let problem = match (cut, garbled) {
        (true, _) => Some("only its first 1 MiB is indexed".to_owned()),
        (_, true) => Some("it is not UTF-8: characters that cannot be read are shown as \u{fffd}".to_owned()),
        _ => None,
    };
    Ok(NoteText { text, stamp, problem })
}

/// Makes of a note and its text what the index keeps.
pub(super) fn document(note: &NoteFile, read: &NoteText) -> IndexedDocument {
    let parts = front_matter::split(&read.text);
    let matter = &parts.front_matter;
    let name = note.path.rsplit('/').next().unwrap_or(&note.path);
    let said_kind = front_matter::text(matter, &["kind"]).to_lowercase();
    let is_kind = |kind: &&str| TOPICS.iter().any(|(_, known)| known == kind);
    let kind = Some(said_kind.as_str()).filter(|kind| note.kind != OVERVIEW && is_kind(kind)).unwrap_or(note.kind);
    let title = front_matter::text(matter, &["title", "name"]);
    let created = front_matter::text(matter, &["created", "date"]);
    IndexedDocument {
        path: note.path.clone(),
        stamp: read.stamp,
        workspace: note.place.workspace.clone(),
        domain: note.place.domain.clone(),
        repository: note.place.repository.clone(),
        topic: note.place.topic.clone(),
        kind: kind.to_owned(),
        title: if title.is_empty() { heading(parts.body).unwrap_or_else(|| title_of(name)) } else { title },
        date: date(&created).or_else(|| date(name)).unwrap_or_default(),
        status: front_matter::text(matter, &["status"]),
        category: front_matter::text(matter, &["category"]),
        tags: front_matter::words(matter, "tags"),
        front_matter: if matter.is_empty() { String::new() } else { serde_json::to_string(matter).unwrap_or_default() },
        problem: parts.problem.or_else(|| read.problem.clone()).unwrap_or_default(),
        // What the front matter says in words is worth finding too.
        body: match front_matter::text(matter, &["description"]) {
            description if description.is_empty() => parts.body.trim().to_owned(),
            description => format!("{description}\n\n{}", parts.body.trim()),
        },
    }
}

/// Returns a date at the beginning of a text, as in `2026-03-01…`, `20260301…` or `260301-…`.
fn date(text: &str) -> Option<String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (year, month, day) = match digits {
        4 => {
            let rest = text[4..].strip_prefix('-')?;
            (text[..4].to_owned(), rest.get(..2)?, rest[2..].strip_prefix('-')?.get(..2)?)
        }
        6 => (format!("20{}", &text[..2]), &text[2..4], &text[4..6]),
        8 => (text[..4].to_owned(), &text[4..6], &text[6..8]),
        _ => return None,
    };
    let within = |part: &str, most: u8| part.parse::<u8>().is_ok_and(|number| (1..=most).contains(&number));
    (within(month, 12) && within(day, 31)).then(|| format!("{year}-{month}-{day}"))
}

/// Returns the first heading, if the text begins with one.
fn heading(body: &str) -> Option<String> {
    let first = body.lines().map(str::trim).find(|line| !line.is_empty())?;
    let title = first.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' ')?.trim();
    (!title.is_empty()).then(|| title.chars().take(200).collect())
}

/// Returns `260301-wake-up.md` as `wake up`.
fn title_of(name: &str) -> String {
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let dated = stem.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    let words = if dated.is_empty() { stem } else { dated };
    words.replace(['-', '_'], " ").trim().to_owned()
}

/// FNV-1a: tells texts apart, and is the same in every version of Prism.
pub(super) fn hash(bytes: &[u8]) -> i64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash.cast_signed()
}

#[cfg(test)]
mod tests {
    use std::{fs, sync::Arc};

    use tempfile::TempDir;

    use super::*;
    use crate::{layout::FolderOwner, scan::ScanBounds, scan::scan};

    fn made(path: &str, text: &str) -> IndexedDocument {
        let note = NoteFile {
            path: path.to_owned(),
            place: Arc::new(FolderOwner::default()),
            kind: "note",
            stamp: DocumentStamp::default(),
            identity: (0, 0),
        };
        document(&note, &NoteText { text: text.to_owned(), stamp: DocumentStamp::default(), problem: None })
    }

    // W-02
    #[test]
    fn a_note_has_a_title_and_a_date_however_they_are_written() {
        for (path, text, title, date) in [
            ("notes/a.md", "---\ntitle: T\ncreated: 2026-03-01\n---\n# Other", "T", "2026-03-01"),
            ("notes/a.md", "---\nname: N\ncreated: 2026-03-01T10:00:00Z\n---\n", "N", "2026-03-01"),
            ("notes/a.md", "---\ncreated: 260301\n---\n\n## Heading\ntext", "Heading", "2026-03-01"),
            ("notes/260302-wake-up.md", "text", "wake up", "2026-03-02"),
            ("notes/2026-03-02-wake_up.md", "text", "wake up", "2026-03-02"),
            ("notes/261399-x.md", "#no heading", "x", ""),
            ("notes/2026-é.md", "", "é", ""),
            ("notes/2026.md", "", "2026", ""),
        ] {
            let document = made(path, text);
            assert_eq!((document.title.as_str(), document.date.as_str()), (title, date), "{path} {text}");
        }
    }

    #[test]
    fn the_kind_that_a_note_gives_itself_counts() {
        assert_eq!(made("_auth/a.md", "---\nkind: Decision\n---\n").kind, "decision");
        assert_eq!(made("_auth/a.md", "---\nkind: song\n---\n").kind, "note");
        assert_eq!(made("_auth/a.md", "---\nkind: overview\n---\n").kind, "note");
    }

    #[test]
    fn a_file_that_is_too_long_or_garbled_is_still_read() {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("notes")).unwrap();
        let long = "é".repeat(MAX_FILE_BYTES as usize);
        fs::write(root.path().join("notes/long.md"), format!("x{long}")).unwrap();
        fs::write(root.path().join("notes/garbled.md"), b"caf\xe9 au lait").unwrap();
        for note in scan(root.path(), ScanBounds::USUAL, &mut |_| ()).unwrap().notes {
            let text = read(root.path(), &note).unwrap();
            let problem = text.problem.unwrap();
            if note.path.contains("long") {
                assert!(problem.contains("first 1 MiB"), "{problem}");
                assert!(text.text.len() <= MAX_FILE_BYTES as usize + 3);
            } else {
                assert!(problem.contains("UTF-8"), "{problem}");
                assert!(text.text.contains("au lait"));
            }
        }
    }

    #[test]
    fn a_file_that_was_written_just_now_is_not_taken_for_known() {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("notes")).unwrap();
        let file = fs::File::create(root.path().join("notes/a.md")).unwrap();
        let stamp = || {
            let note = scan(root.path(), ScanBounds::USUAL, &mut |_| ()).unwrap().notes.remove(0);
            (read(root.path(), &note).unwrap().stamp.mtime_ns, note.stamp.mtime_ns)
        };
        // In the future, as on a share whose clock is ahead.
        file.set_modified(SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
        assert_eq!(stamp().0, 0);
        file.set_modified(SystemTime::now() - std::time::Duration::from_secs(60)).unwrap();
        let (kept, seen) = stamp();
        assert_eq!(kept, seen);
    }

    #[test]
    fn another_file_in_the_place_of_the_one_that_was_seen_is_not_read() {
        let root = TempDir::new().unwrap();
        let path = root.path().join("notes/a.md");
        fs::create_dir(root.path().join("notes")).unwrap();
        fs::write(&path, "mine").unwrap();
        fs::write(root.path().join("secret"), "not mine").unwrap();
        let note = scan(root.path(), ScanBounds::USUAL, &mut |_| ()).unwrap().notes.remove(0);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(root.path().join("secret"), &path).unwrap();
        assert!(read(root.path(), &note).is_err());
    }
}
