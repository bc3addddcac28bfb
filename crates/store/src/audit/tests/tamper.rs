//! Whatever is done to a log is found, and the line that it was done to is named.

use std::{cell::RefCell, collections::BTreeMap};

use proptest::prelude::*;

use super::*;

const LINES: usize = 40;

/// All files of a log.
type Bytes = BTreeMap<String, Vec<u8>>;

#[derive(Clone, Debug)]
enum Deed {
    /// One byte, anywhere.
    Change {
        at: prop::sample::Index,
        by: u8,
    },
    Remove {
        line: usize,
    },
    Swap {
        line: usize,
    },
    Repeat {
        line: usize,
    },
    /// The newest file, or all that begins in an older one.
    Truncate {
        at: prop::sample::Index,
    },
    /// So many of the last lines.
    CutLines {
        count: usize,
    },
    /// With a right hash of its own.
    Forge {
        line: usize,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let line = || 1..=LINES;
    prop_oneof![
        6 => (any::<prop::sample::Index>(), 1..=255_u8).prop_map(|(at, by)| Deed::Change { at, by }),
        1 => line().prop_map(|line| Deed::Remove { line }),
        1 => (1..LINES).prop_map(|line| Deed::Swap { line }),
        1 => line().prop_map(|line| Deed::Repeat { line }),
        2 => any::<prop::sample::Index>().prop_map(|at| Deed::Truncate { at }),
        1 => (1..=LINES).prop_map(|count| Deed::CutLines { count }),
        1 => line().prop_map(|line| Deed::Forge { line }),
    ]
}

/// The log before anything is done to it; made once, as that takes a while.
fn original() -> Bytes {
    thread_local!(static MADE: RefCell<Option<Bytes>> = const { RefCell::new(None) });
    MADE.with_borrow_mut(|made| made.get_or_insert_with(make).clone())
}

fn make() -> Bytes {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let home = runtime.block_on(written(AuditSettings { max_file_bytes: 6000, keep: 0 }, LINES));
    let files = fs::read_dir(folder(&home)).unwrap().map(|file| {
        let path = file.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    });
    files.collect()
}

/// The lines of all files together, and how many each file has.
fn lines_of(bytes: &Bytes) -> (Vec<Vec<u8>>, Vec<(String, usize)>) {
    let mut lines = Vec::new();
    let mut sizes = Vec::new();
    for (name, text) in bytes.iter().filter(|(name, _)| name.ends_with(".jsonl")) {
        let of_file: Vec<Vec<u8>> = text.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        sizes.push((name.clone(), of_file.len()));
        lines.extend(of_file);
    }
    (lines, sizes)
}

/// Puts lines back into files of the same sizes; the last takes the rest.
fn put(bytes: &mut Bytes, lines: &[Vec<u8>], sizes: &[(String, usize)]) {
    let mut rest = lines;
    for (at, (name, size)) in sizes.iter().enumerate() {
        let size = if at + 1 == sizes.len() { rest.len() } else { (*size).min(rest.len()) };
        let (of_file, behind) = rest.split_at(size);
        bytes.insert(name.clone(), of_file.concat());
        rest = behind;
    }
}

/// Does it, and returns the number of the line that has to be named; nothing for the head.
fn act(deed: &Deed, bytes: &mut Bytes) -> Option<u64> {
    let (mut lines, sizes) = lines_of(bytes);
    match deed {
        Deed::Change { at, by } => {
            let total = bytes.values().map(Vec::len).sum();
            let mut at = at.index(total);
            for (name, text) in bytes.iter_mut() {
                if at >= text.len() {
                    at -= text.len();
                    continue;
                }
                text[at] ^= by;
                let before: usize = sizes.iter().take_while(|(other, _)| other != name).map(|(_, size)| size).sum();
                let line = original()[name][..at].iter().filter(|byte| **byte == b'\n').count();
                return name.ends_with(".jsonl").then_some((before + line + 1) as u64);
            }
            unreachable!("it is in one of the files");
        }
        Deed::Remove { line } => {
            lines.remove(line - 1);
            put(bytes, &lines, &sizes);
            Some(*line as u64)
        }
        Deed::Swap { line } => {
            lines.swap(line - 1, *line);
            put(bytes, &lines, &sizes);
            Some(*line as u64)
        }
        Deed::Repeat { line } => {
            lines.insert(line - 1, lines[line - 1].clone());
            put(bytes, &lines, &sizes);
            Some(*line as u64 + 1)
        }
        Deed::Truncate { at } => {
            let (name, _) = sizes.last().unwrap();
            let text = bytes.get_mut(name).unwrap();
            text.truncate(at.index(text.len()));
            let left = lines_of(bytes).0.iter().filter(|line| line.ends_with(b"\n")).count();
            Some(left as u64 + 1)
        }
        Deed::CutLines { count } => {
            lines.truncate(LINES - count);
            put(bytes, &lines, &sizes);
            Some((LINES - count) as u64 + 1)
        }
        Deed::Forge { line } => {
            let text =
                String::from_utf8(lines[line - 1].clone()).unwrap().replace("\"user\":\"me\"", "\"user\":\"you\"");
            let (hashed, _) = text.rsplit_once(",\"hash\":\"").unwrap();
            let hash = String::from_utf8(chain::sha256(hashed.as_bytes()).to_vec()).unwrap();
            lines[line - 1] = format!("{hashed},\"hash\":\"{hash}\"}}\n").into_bytes();
            put(bytes, &lines, &sizes);
            // The next one does not hang on it; of the last one the head tells.
            Some((*line as u64 + 1).min(LINES as u64))
        }
    }
}

fn put_on_disk(bytes: &Bytes) -> TempDir {
    let home = TempDir::new().unwrap();
    fs::create_dir(folder(&home)).unwrap();
    bytes.iter().for_each(|(name, text)| fs::write(folder(&home).join(name), text).unwrap());
    home
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    //
    #[test]
    fn every_deed_is_found_and_its_line_is_named(deed in deed()) {
        let mut bytes = original();
        let named = act(&deed, &mut bytes);
        prop_assert_ne!(&bytes, &original());
        let home = put_on_disk(&bytes);
        let broken = broken(&home);
        match named {
            Some(seq) => {
                prop_assert_eq!(broken.seq, Some(seq), "{}", &broken);
                // Where the newest lines were, if whole files of them are gone, nobody can tell.
                if !matches!(deed, Deed::CutLines { .. }) {
                    let (_, sizes) = lines_of(&original());
                    let name = broken.file.file_name().unwrap().to_str().unwrap();
                    let before: usize = sizes.iter().take_while(|(other, _)| other != name).map(|(_, size)| size).sum();
                    prop_assert_eq!(before as u64 + broken.line.unwrap(), seq, "{}", &broken);
                }
            }
            None => prop_assert!(broken.file.ends_with("audit.head"), "{}", broken),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    // However it was tampered with while nobody looked: the next start does not paper over it.
    #[test]
    fn a_restart_hides_nothing(deed in deed(), more in 0..3_usize) {
        let mut bytes = original();
        let named = act(&deed, &mut bytes);
        let home = put_on_disk(&bytes);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let audit = open(&home, SMALL);
            for number in 0..more {
                audit.write(entry(number)).await.unwrap();
            }
            audit.close();
        });
        let notices = actions(&home).iter().filter(|action| action.starts_with("audit.")).count();
        match named {
            Some(_) => {
                broken(&home);
            }
            // Without a head nobody can tell, but that it was gone stands in the log.
            None => prop_assert!(notices == 1 && verified(&home).lines as usize == LINES + 1 + more),
        }
    }
}

#[tokio::test]
async fn no_file_can_be_removed() {
    let count = files::all(&folder(&written(SMALL, 31).await)).unwrap().len();
    for at in 0..count {
        let home = written(SMALL, 31).await;
        let path = files::all(&folder(&home)).unwrap().remove(at).path;
        let first = fs::read_to_string(&path).unwrap().lines().next().map(seq);
        fs::remove_file(&path).unwrap();
        assert!(first.is_some() && broken(&home).seq == first, "{path:?}: {}", broken(&home));
    }
}

#[tokio::test]
async fn a_missing_head_is_noticed() {
    let home = written(SMALL, 9).await;
    fs::remove_file(folder(&home).join("audit.head")).unwrap();
    let broken = broken(&home);
    assert_eq!((broken.line, broken.what), (None, BreakKind::HeadMissing));
}
