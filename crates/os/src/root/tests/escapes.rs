//! Ways out that are there from the start.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use super::*;

type Way = fn(&Yard) -> PathBuf;

fn link(yard: &Yard, target: impl AsRef<Path>) -> PathBuf {
    symlink(target, yard.granted.join("link")).unwrap();
    "link".into()
}

//
#[test]
fn no_path_leads_out() {
    let ways: &[(&str, Way)] = &[
        ("up", |_| "../outside/secret".into()),
        ("up to a folder", |_| "../outside".into()),
        ("up through a folder", |yard| {
            fs::create_dir(yard.granted.join("a")).unwrap();
            "a/../../outside/secret".into()
        }),
        ("up through what is not there", |_| "none/../../outside/secret".into()),
        ("up alone", |_| "..".into()),
        ("up and in again", |_| "../granted/../outside".into()),
        ("absolute", |yard| yard.outside.join("secret")),
        ("absolute, to a folder", |yard| yard.outside.clone()),
        ("absolute, with slashes", |yard| PathBuf::from(format!("//{}//secret", yard.outside.display()))),
        ("/proc/self/root", |yard| PathBuf::from(format!("/proc/self/root{}", yard.outside.display()))),
        ("/proc/self/cwd", |_| "/proc/self/cwd".into()),
        ("a fullwidth slash", |_| "..／outside／secret".into()),
        ("a division slash", |_| "..∕outside∕secret".into()),
        ("one dot leaders", |_| "\u{2024}\u{2024}/outside/secret".into()),
        ("a two dot leader", |_| "\u{2025}/outside/secret".into()),
        ("fullwidth dots", |_| "．．/outside/secret".into()),
        ("an overlong slash", |_| OsString::from_vec(b"..\xC0\xAFoutside\xC0\xAFsecret".to_vec()).into()),
        ("overlong dots", |_| OsString::from_vec(b"\xC0\xAE\xC0\xAE/outside/secret".to_vec()).into()),
        ("percent signs", |_| "%2e%2e%2foutside%2fsecret".into()),
        ("backslashes", |_| "..\\outside\\secret".into()),
        ("a home", |_| "~/secret".into()),
        ("a variable", |_| "$HOME/secret".into()),
        ("a pattern", |_| "../*/secret".into()),
        ("up behind an accent", |_| "e\u{301}/../../outside/secret".into()),
        ("a link to a file", |yard| link(yard, yard.outside.join("secret"))),
        ("a link to a folder", |yard| link(yard, &yard.outside)),
        ("through a link to a folder", |yard| link(yard, &yard.outside).join("secret")),
        ("a relative link", |yard| link(yard, "../outside/secret")),
        ("a link up", |yard| link(yard, "..").join("outside/secret")),
        ("a link to the root", |yard| link(yard, "/")),
        ("a chain of links", |yard| {
            symlink("b", yard.granted.join("a")).unwrap();
            symlink("c/secret", yard.granted.join("b")).unwrap();
            symlink("../outside", yard.granted.join("c")).unwrap();
            "a".into()
        }),
        ("a link in a folder that is linked to", |yard| {
            fs::create_dir_all(yard.granted.join("d/e")).unwrap();
            symlink("d/e", yard.granted.join("a")).unwrap();
            symlink("../../../outside", yard.granted.join("d/e/f")).unwrap();
            "a/f/secret".into()
        }),
        ("a link to /proc/self/root", |yard| link(yard, "/proc/self/root")),
        ("a link to /proc/self/cwd", |yard| link(yard, "/proc/self/cwd")),
        ("a link to itself", |yard| link(yard, "link")),
    ];
    for (how, way) in ways {
        let yard = Yard::new();
        let path = way(&yard);
        for read in yard.try_everything(&path) {
            assert!(!read.contains(SECRET) && read != "secret", "{how}: {read}");
        }
        yard.assert_untouched(how);
    }
}

// a handle to the outside that this process has is as good as a path.
#[test]
fn no_descriptor_leads_out() {
    let yard = Yard::new();
    let secret = File::open(yard.outside.join("secret")).unwrap();
    let folder = File::open(&yard.outside).unwrap();
    for (fd, how) in [(secret.as_raw_fd(), "file"), (folder.as_raw_fd(), "folder")] {
        for way in [format!("/dev/fd/{fd}"), format!("/proc/self/fd/{fd}"), format!("/proc/thread-self/fd/{fd}")] {
            let link = yard.granted.join("link");
            symlink(&way, &link).unwrap();
            for path in [Path::new(&way), Path::new("link"), &Path::new("link").join("secret")] {
                let read = yard.try_everything(path);
                assert!(!read.iter().any(|read| read.contains(SECRET) || read == "secret"), "{how} {way}");
            }
            let _ = fs::remove_file(&link);
            yard.assert_untouched(&way);
        }
    }
    // Where `/proc` itself is granted, its links lead nowhere all the same.
    let proc = FolderHandle::open(Path::new("/proc")).unwrap();
    for path in [format!("self/fd/{}", secret.as_raw_fd()), format!("self/root{}/secret", yard.outside.display())] {
        let refused = proc.open_file(Path::new(&path)).unwrap_err();
        assert!(matches!(refused, FolderError::Linked), "{path}: {refused}");
    }
}

// what is granted is what was approved, not what its name has come to mean.
#[test]
fn a_root_is_not_reached_through_a_link() {
    let yard = Yard::new();
    let link = yard.granted.join("link");
    symlink(&yard.outside, &link).unwrap();
    for base in [link.clone(), link.join("."), PathBuf::from(format!("/proc/self/root{}", yard.outside.display()))] {
        assert!(matches!(FolderHandle::open(&base), Err(FolderError::Linked)), "{}", base.display());
    }
    assert_eq!(real_path(&link).unwrap(), yard.outside);
    assert!(matches!(FolderHandle::open(Path::new("relative")), Err(FolderError::Relative)));
    assert!(matches!(FolderHandle::open(&yard.outside.join("secret")), Err(FolderError::NotAFolder)));
    assert!(matches!(FolderHandle::open(&yard.granted.join("none")), Err(FolderError::NotFound)));
}

//
#[test]
fn what_cannot_be_a_path_is_said_to_be_none() {
    let yard = Yard::new();
    yard.write("a", "inside");
    let long_name = "a".repeat(MAX_NAME + 1);
    let long_path = "a/".repeat(MAX_PATH);
    type Is = fn(&FolderError) -> bool;
    let cases: [(&str, Is); 6] = [
        ("", |error| matches!(error, FolderError::Empty)),
        ("a\0b", |error| matches!(error, FolderError::Nul)),
        ("a\0/../../outside/secret", |error| matches!(error, FolderError::Nul)),
        ("../outside/secret\0.txt", |error| matches!(error, FolderError::Nul)),
        (&long_name, |error| matches!(error, FolderError::TooLong)),
        (&long_path, |error| matches!(error, FolderError::TooLong)),
    ];
    for (path, is_expected) in cases {
        let refused = yard.read(path).unwrap_err();
        assert!(is_expected(&refused), "{refused}");
        let refused = yard.root.spot(Path::new(path)).unwrap_err();
        assert!(is_expected(&refused), "{refused}");
    }
    for path in [".", "..", "/", "a/.", "a/..", "./", "//"] {
        assert!(matches!(yard.root.spot(Path::new(path)), Err(FolderError::NoName)), "{path}");
    }
    let longest = "b".repeat(MAX_NAME);
    yard.spot(&longest).create(b"fits").unwrap();
    assert_eq!(yard.read(&longest).unwrap(), "fits");
}

// names are bytes. What only looks like another name is another name.
#[test]
fn spellings_of_a_name_are_different_names() {
    let yard = Yard::new();
    for (name, other) in [("é", "e\u{301}"), ("a", "A"), ("Å", "\u{212B}"), ("ﬁ", "fi"), ("a", "a "), ("a", "а")] {
        yard.write(name, "inside");
        assert_eq!(yard.read(name).unwrap(), "inside");
        assert!(matches!(yard.read(other), Err(FolderError::NotFound)), "{name} {other}");
    }
    // The granted folder's own name in another spelling is no way in, or out.
    for path in ["../GRANTED/a", "../granted /a", "../ｇranted/a"] {
        assert!(matches!(yard.read(path), Err(FolderError::Outside)), "{path}");
    }
}

// a file that is also outside by another name can be read here, as it lies here; what is written stays here.
#[test]
fn a_write_does_not_reach_what_a_hard_link_leads_to() {
    let yard = Yard::new();
    let inside = yard.granted.join("link");
    fs::hard_link(yard.outside.join("secret"), &inside).unwrap();
    let spot = yard.spot("link");
    let (_, found) = spot.open_file().unwrap();
    spot.replace(b"written", &found).unwrap();
    assert_eq!(yard.text("link"), "written");
    yard.assert_untouched("replaced");
    fs::remove_file(&inside).unwrap();
    fs::hard_link(yard.outside.join("secret"), &inside).unwrap();
    yard.write("new", "new");
    yard.spot("new").rename(&spot, RenameMode::Replace).unwrap();
    assert_eq!(yard.text("link"), "new");
    spot.remove(FileKind::File).unwrap();
    yard.assert_untouched("renamed over and removed");
}

// both ends.
#[test]
fn nothing_is_renamed_out_or_in() {
    let yard = Yard::new();
    yard.write("a", "inside");
    symlink(&yard.outside, yard.granted.join("link")).unwrap();
    for path in ["../outside/a", "link/a", "link/../../outside/a", yard.outside.join("a").to_str().unwrap()] {
        let refused = yard.root.spot(Path::new(path)).unwrap_err();
        assert!(matches!(refused, FolderError::Outside), "{path}: {refused}");
    }
    yard.spot("a").rename(&yard.spot("link"), RenameMode::Replace).unwrap();
    assert_eq!(yard.text("link"), "inside", "the link itself was replaced");
    yard.assert_untouched("renamed over a link");
}

// links that stay beneath lead to where they point.
#[test]
fn links_within_are_followed_to_read_and_not_to_change() {
    let yard = Yard::new();
    fs::create_dir(yard.granted.join("sub")).unwrap();
    yard.write("sub/a", "inside");
    symlink("sub/a", yard.granted.join("file")).unwrap();
    symlink("../sub", yard.granted.join("sub/folder")).unwrap();
    assert_eq!(yard.read("file").unwrap(), "inside");
    assert_eq!(yard.read("sub/folder/a").unwrap(), "inside");
    let spot = yard.spot("file");
    assert!(matches!(spot.open_file(), Err(FolderError::Linked)));
    let found = spot.look().unwrap().unwrap();
    assert_eq!(found.kind, FileKind::Link);
    assert!(matches!(spot.replace(b"", &found), Err(FolderError::Linked)));
    assert!(matches!(spot.create(b""), Err(FolderError::Exists)));
    yard.spot("sub/folder/a").remove(FileKind::File).unwrap();
    assert!(!yard.granted.join("sub/a").exists(), "the folder's way is followed, as far as it stays beneath");
}

// a child starts where the handle is, whatever its name leads to by then.
#[test]
fn a_command_starts_in_the_folder_that_was_opened() {
    let yard = Yard::new();
    let sub = yard.granted.join("sub");
    fs::create_dir(&sub).unwrap();
    for path in ["../outside", "sub/../../outside", "/", yard.outside.to_str().unwrap()] {
        assert!(matches!(yard.root.beneath(Path::new(path)), Err(FolderError::Outside)), "{path}");
    }
    let work_dir = yard.root.beneath(Path::new("sub")).unwrap().dir_for_command().unwrap();
    let moved = yard.granted.join("moved");
    fs::rename(&sub, &moved).unwrap();
    symlink(&yard.outside, &sub).unwrap();
    let output = std::process::Command::new("pwd").arg("-P").current_dir(work_dir.path()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), moved.to_str().unwrap());
}
