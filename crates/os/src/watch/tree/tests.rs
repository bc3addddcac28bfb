//! Real files that come, change and go.

use std::{collections::HashSet, fs, os::unix::fs::symlink, time::Duration};

use tokio::time::timeout;

use super::*;

struct Yard {
    _folder: tempfile::TempDir,
    path: PathBuf,
    tree: TreeWatch,
}

/// Leaves out what is called `out`.
struct AllBut;

impl WatchFilter for AllBut {
    fn enter(&mut self, _: &FolderListing, _: &Path, _: &[(OsString, FileKind)]) {}

    fn leaves_out(&self, path: &Path, _: FileKind) -> bool {
        path.file_name().is_some_and(|name| name == "out")
    }
}

impl Yard {
    fn new(make: impl FnOnce(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        make(&path);
        let mut tree = TreeWatch::new().unwrap();
        tree.set(vec![FolderHandle::open(&path).unwrap()], &mut AllBut);
        Self { _folder: folder, path, tree }
    }

    /// What is told of what is done, once the bell has rung for it.
    async fn after(&mut self, act: impl FnOnce(&Path)) -> Vec<String> {
        act(&self.path);
        let bell = self.tree.bell();
        timeout(Duration::from_secs(20), bell.rung()).await.expect("nothing is told").unwrap();
        let mut told: Vec<_> = self.tree.changes(&mut AllBut).iter().map(|change| self.told(change)).collect();
        told.sort();
        told
    }

    fn told(&self, change: &FolderChange) -> String {
        let name = |path: &Path| path.strip_prefix(&self.path).unwrap().display().to_string();
        match change {
            FolderChange::Created(path, kind) => format!("+{} {}", name(path), kind.name()),
            FolderChange::Deleted(path, kind) => format!("-{} {}", name(path), kind.name()),
            FolderChange::Renamed { from, to, kind } => format!("{}>{} {}", name(from), name(to), kind.name()),
            FolderChange::Written(path) => format!("={}", name(path)),
            FolderChange::Lost => "lost".to_owned(),
        }
    }
}

fn write(path: PathBuf, text: &str) {
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn every_kind_of_change_is_told_by_name() {
    let mut yard = Yard::new(|path| {
        fs::create_dir_all(path.join("deep/er")).unwrap();
        fs::create_dir(path.join("out")).unwrap();
        write(path.join("deep/er/a"), "1");
    });
    assert_eq!(yard.after(|path| write(path.join("deep/er/a"), "2")).await, ["=deep/er/a"]);
    assert_eq!(yard.after(|path| write(path.join("b"), "2")).await, ["+b file"]);
    assert_eq!(yard.after(|path| fs::rename(path.join("b"), path.join("deep/c")).unwrap()).await, ["b>deep/c file"]);
    assert_eq!(yard.after(|path| symlink("deep", path.join("link")).unwrap()).await, ["+link link"]);
    assert_eq!(yard.after(|path| fs::remove_file(path.join("deep/c")).unwrap()).await, ["-deep/c file"]);
    // As editors save: another file in the place of the old one.
    let replace = |path: &Path| {
        write(path.join("deep/er/a.tmp"), "3");
        fs::rename(path.join("deep/er/a.tmp"), path.join("deep/er/a")).unwrap();
    };
    assert_eq!(yard.after(replace).await, ["=deep/er/a"]);
    let keep_the_old = |path: &Path| {
        fs::rename(path.join("deep/er/a"), path.join("deep/er/a~")).unwrap();
        write(path.join("deep/er/a"), "4");
    };
    assert_eq!(yard.after(keep_the_old).await, ["+deep/er/a~ file", "=deep/er/a"]);
    let passing = |path: &Path| {
        write(path.join("x"), "");
        fs::remove_file(path.join("x")).unwrap();
        write(path.join("out/x"), "");
        write(path.join("y"), "");
    };
    assert_eq!(yard.after(passing).await, ["+y file"]);
    let exchange = |path: &Path| {
        fs::remove_file(path.join("y")).unwrap();
        fs::create_dir(path.join("y")).unwrap();
    };
    assert_eq!(yard.after(exchange).await, ["+y folder", "-y file"]);
}

#[tokio::test]
async fn folders_are_followed_as_they_come_move_and_go() {
    let mut yard = Yard::new(|_| {});
    let grow = |path: &Path| {
        fs::create_dir_all(path.join("a/b")).unwrap();
        write(path.join("a/b/c"), "");
    };
    assert_eq!(yard.after(grow).await, ["+a folder", "+a/b folder", "+a/b/c file"]);
    assert_eq!(yard.after(|path| write(path.join("a/b/c"), "x")).await, ["=a/b/c"]);
    assert_eq!(yard.after(|path| fs::rename(path.join("a"), path.join("z")).unwrap()).await, ["a>z folder"]);
    assert_eq!(yard.after(|path| write(path.join("z/b/d"), "x")).await, ["+z/b/d file"]);
    let outside = tempfile::tempdir().unwrap();
    let (there, back) = (outside.path().join("b"), outside.path().join("b"));
    let away = yard.after(|path| fs::rename(path.join("z/b"), there).unwrap()).await;
    assert_eq!(away, ["-z/b folder", "-z/b/c file", "-z/b/d file"]);
    write(back.join("e"), "");
    let home = yard.after(|path| fs::rename(back, path.join("b")).unwrap()).await;
    assert_eq!(home, ["+b folder", "+b/c file", "+b/d file", "+b/e file"]);
    let gone = yard.after(|path| fs::remove_dir_all(path.join("b")).unwrap()).await;
    assert_eq!(gone, ["-b folder", "-b/c file", "-b/d file", "-b/e file"]);
    assert!(!yard.tree.is_partial());
}

#[tokio::test]
async fn nothing_is_told_through_a_link_that_takes_a_folders_place() {
    let outside = tempfile::tempdir().unwrap();
    let mut yard = Yard::new(|path| fs::create_dir(path.join("a")).unwrap());
    let swap = |path: &Path| {
        fs::remove_dir(path.join("a")).unwrap();
        symlink(outside.path(), path.join("a")).unwrap();
        write(outside.path().join("secret"), "");
    };
    assert_eq!(yard.after(swap).await, ["+a link", "-a folder"]);
    write(outside.path().join("another"), "");
    assert_eq!(yard.after(|path| write(path.join("b"), "")).await, ["+b file"]);
}

#[tokio::test]
async fn what_the_kernel_could_not_keep_is_found_by_looking() {
    let mut yard = Yard::new(|path| write(path.join("goes"), ""));
    let most: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    if most > 200_000 {
        return; // It would take too long to be told more than that.
    }
    let flood = |path: &Path| {
        fs::remove_file(path.join("goes")).unwrap();
        // Two names in turn, or the kernel would put equal notes together.
        for i in 0..=most / 2 {
            write(path.join(format!("f{}", i % 2)), "x");
        }
        write(path.join("comes"), "");
    };
    let told: HashSet<_> = yard.after(flood).await.into_iter().collect();
    assert!(told.contains("lost") && told.contains("-goes file") && told.contains("+comes file"), "{told:?}");
    assert_eq!(yard.after(|path| write(path.join("comes"), "x")).await, ["=comes"]);
}
