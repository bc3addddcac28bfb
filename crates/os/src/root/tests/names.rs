//! What is done with names where nobody tries anything.

use std::{
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use super::*;

fn names(root: &FolderHandle) -> Vec<(String, FileKind)> {
    let mut names: Vec<_> = root
        .entries()
        .unwrap()
        .map(|entry| entry.map(|entry| (entry.name.into_string().unwrap(), entry.kind)).unwrap())
        .collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    names
}

#[test]
fn what_is_neither_file_nor_folder_is_refused_at_once() {
    let yard = Yard::new();
    assert!(Command::new("mkfifo").arg(yard.granted.join("pipe")).status().unwrap().success());
    let _listener = UnixListener::bind(yard.granted.join("socket")).unwrap();
    fs::create_dir(yard.granted.join("folder")).unwrap();
    let root = FolderHandle::open(&yard.granted).unwrap();
    let (done, tried) = mpsc::channel();
    // Whoever waits for a writer waits for ever; then it is this thread that says so.
    thread::spawn(move || {
        for name in ["pipe", "socket"].map(Path::new) {
            assert!(matches!(root.open_file(name), Err(FolderError::Special)), "{name:?}");
            let spot = root.spot(name).unwrap();
            assert!(matches!(spot.open_file(), Err(FolderError::Special)), "{name:?}");
            let found = spot.look().unwrap().unwrap();
            assert_eq!(found.kind, FileKind::Special);
            assert!(matches!(spot.replace(b"", &found), Err(FolderError::Special)), "{name:?}");
        }
        done.send(()).unwrap();
    });
    tried.recv_timeout(Duration::from_secs(20)).expect("refused, and not waited for");
    assert!(matches!(yard.read("folder"), Err(FolderError::IsFolder)));
    let kinds = [("folder", FileKind::Folder), ("pipe", FileKind::Special), ("socket", FileKind::Special)];
    assert_eq!(names(&yard.root), kinds.map(|(name, kind)| (name.to_owned(), kind)));
}

#[test]
fn a_new_file_is_never_over_another_and_nothing_is_left_behind() {
    let yard = Yard::new();
    let spot = yard.spot("a");
    spot.create(b"first").unwrap();
    assert!(matches!(spot.create(b"second"), Err(FolderError::Exists)));
    assert!(matches!(spot.create_folder(), Err(FolderError::Exists)));
    assert_eq!(yard.text("a"), "first");
    yard.write("b", "other");
    assert!(matches!(spot.rename(&yard.spot("b"), RenameMode::Refuse), Err(FolderError::Exists)));
    assert_eq!(names(&yard.root), [("a".to_owned(), FileKind::File), ("b".to_owned(), FileKind::File)]);
}

#[test]
fn a_replaced_file_keeps_its_mode_and_runs_as_nobody_else() {
    let yard = Yard::new();
    for (before, after) in [(0o640, 0o640), (0o755, 0o755), (0o4755, 0o755), (0o2775, 0o775), (0o606, 0o606)] {
        yard.write("a", "old");
        fs::set_permissions(yard.granted.join("a"), fs::Permissions::from_mode(before)).unwrap();
        let spot = yard.spot("a");
        let (_, found) = spot.open_file().unwrap();
        spot.replace(b"new", &found).unwrap();
        assert_eq!(fs::metadata(yard.granted.join("a")).unwrap().mode() & 0o7777, after, "{before:o}");
        assert_eq!(yard.text("a"), "new");
        fs::remove_file(yard.granted.join("a")).unwrap();
    }
    yard.write("a", "old");
    fs::set_permissions(yard.granted.join("a"), fs::Permissions::from_mode(0o444)).unwrap();
    let (_, found) = yard.spot("a").open_file().unwrap();
    assert!(matches!(yard.spot("a").replace(b"new", &found), Err(FolderError::ReadOnly)));
}

#[test]
fn a_stamp_tells_one_file_from_another_and_from_itself_when_changed() {
    let yard = Yard::new();
    yard.write("a", "text");
    let look = || yard.spot("a").look().unwrap().unwrap().stamp;
    let before = look();
    assert_eq!(before, look());
    yard.write("a", "longer");
    assert!(look() != before);
    let before = look();
    yard.write("b", "longer");
    fs::rename(yard.granted.join("b"), yard.granted.join("a")).unwrap();
    assert!(look() != before);
}

#[test]
fn folders_are_removed_only_if_they_are_empty_and_not_moved_into_themselves() {
    let yard = Yard::new();
    yard.spot("a").create_folder().unwrap();
    yard.spot("a/b").create(b"").unwrap();
    assert!(matches!(yard.spot("a").remove(FileKind::Folder), Err(FolderError::NotEmpty)));
    assert!(matches!(yard.spot("a").remove(FileKind::File), Err(FolderError::IsFolder)));
    assert!(matches!(yard.spot("a").rename(&yard.spot("a/c"), RenameMode::Refuse), Err(FolderError::IntoItself)));
    yard.spot("a/b").remove(FileKind::File).unwrap();
    yard.spot("a/").remove(FileKind::Folder).unwrap();
    assert_eq!(yard.spot("a").look().unwrap(), None);
}

#[test]
fn a_folder_is_known_however_it_is_called() {
    let yard = Yard::new();
    fs::create_dir(yard.granted.join("a")).unwrap();
    let folder = yard.root.beneath(Path::new("a")).unwrap();
    fs::rename(yard.granted.join("a"), yard.granted.join("b")).unwrap();
    assert!(folder.is(&yard.root.beneath(Path::new("b")).unwrap()));
    assert!(!folder.is(&yard.root));
    assert_eq!(place(&folder).unwrap(), yard.granted.join("b"));
}
