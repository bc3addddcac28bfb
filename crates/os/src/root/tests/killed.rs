//! A process that is killed while it replaces a file leaves the old one or the new one.

use std::{
    os::unix::fs::MetadataExt,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::*;

/// Says where the other process, which is this test again, is to write.
const FOLDER: &str = "PRISM_TEST_FOLDER";

/// More than is written in one go.
const LENGTH: usize = 300_000;

const KILLS: usize = 30;

/// Long enough for a process to start on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn whoever_is_killed_leaves_the_old_file_or_the_new_one() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        write_for_ever(Path::new(&folder));
    }
    let yard = Yard::new();
    yard.write("file", &"a".repeat(LENGTH));
    for _ in 0..KILLS {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "root::tests::killed::whoever_is_killed_leaves_the_old_file_or_the_new_one"])
            .env(FOLDER, &yard.granted)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Once it has written something it is at it, at a place that is another each time.
        let file = yard.granted.join("file");
        let began = Instant::now();
        let before = fs::metadata(&file).unwrap().ino();
        while fs::metadata(&file).unwrap().ino() == before && began.elapsed() < PATIENCE {
            assert!(writer.try_wait().unwrap().is_none(), "it writes for ever");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        let text = yard.text("file");
        let letter = &text[..1];
        assert!(text == letter.repeat(LENGTH), "{} bytes, not all of them {letter}", text.len());
    }
}

#[test]
fn whoever_is_killed_while_it_makes_files_leaves_whole_ones_and_no_others() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        make_for_ever(Path::new(&folder));
    }
    let yard = Yard::new();
    let count = || fs::read_dir(&yard.granted).unwrap().count();
    for _ in 0..KILLS {
        let mut writer = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "root::tests::killed::whoever_is_killed_while_it_makes_files_leaves_whole_ones_and_no_others",
            ])
            .env(FOLDER, &yard.granted)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (before, began) = (count(), Instant::now());
        while count() == before && began.elapsed() < PATIENCE {
            assert!(writer.try_wait().unwrap().is_none(), "it writes for ever");
        }
        writer.kill().unwrap();
        writer.wait().unwrap();
        for entry in fs::read_dir(&yard.granted).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let is_whole = entry.metadata().unwrap().len() == LENGTH as u64;
            assert!(name.starts_with("made-") && is_whole || !has_nameless(&yard), "{name}");
        }
    }
}

/// Tells whether this file system has files without names.
fn has_nameless(yard: &Yard) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::TMPFILE.bits() as i32;
    fs::OpenOptions::new().write(true).custom_flags(flags).open(&yard.granted).is_ok()
}

fn make_for_ever(folder: &Path) -> ! {
    let root = FolderHandle::open(folder).unwrap();
    let first = fs::read_dir(folder).unwrap().count();
    for number in first.. {
        // One that is there already is left alone.
        let _ = root.spot(Path::new(&format!("made-{number}"))).unwrap().create(&vec![b'a'; LENGTH]);
    }
    unreachable!("the numbers never end")
}

fn write_for_ever(folder: &Path) -> ! {
    let root = FolderHandle::open(folder).unwrap();
    let spot = root.spot(Path::new("file")).unwrap();
    for letter in (b'a'..=b'z').cycle() {
        let (_, found) = spot.open_file().unwrap();
        spot.replace(&vec![letter; LENGTH], &found).unwrap();
    }
    unreachable!("the letters never end")
}
