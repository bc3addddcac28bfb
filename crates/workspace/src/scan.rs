//! The walk over a workspace: which notes there are and what they look like from outside. Nothing is read here but
//! folders; that is cheap enough to be done before every answer.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::Arc,
};

use prism_store::memory::DocumentStamp;

use super::layout::{self, BaseContent, FolderOwner, WorkspaceBase, WorkspaceLayout, is_folder, is_skipped};

/// What the walk found.
#[derive(Debug)]
pub(super) struct MemoryScan {
    pub(super) layout: WorkspaceLayout,
    pub(super) notes: Vec<NoteFile>,
    /// What was not looked at, in words.
    pub(super) remarks: Vec<String>,
}

/// One file of the memory.
#[derive(Debug)]
pub(super) struct NoteFile {
    /// Relative to the root, with slashes.
    pub(super) path: String,
    pub(super) place: Arc<FolderOwner>,
    pub(super) kind: &'static str,
    /// Without the content's hash.
    pub(super) stamp: DocumentStamp,
    /// Device and inode: what is read later has to be this file.
    pub(super) identity: (u64, u64),
}

/// How far the walk goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanBounds {
    /// Notes that are indexed. Those beyond are not found by any search, and every answer says so.
    pub(super) notes: usize,
    /// Files and folders that are looked at; the walk ends there, and every answer says so.
    pub(super) entries: usize,
    /// Folders within folders; deeper ones are not entered.
    pub(super) depth: usize,
}

impl ScanBounds {
    pub(super) const USUAL: Self = Self { notes: 50_000, entries: 500_000, depth: 24 };
}

/// Walks over all bases of a root. Symbolic links are not followed, so nothing outside of the root is ever read. Each
/// folder is shown to `enter` before it is read.
pub(super) fn scan(root: &Path, bounds: ScanBounds, enter: &mut dyn FnMut(&Path)) -> io::Result<MemoryScan> {
    // Where a base may appear.
    enter(root);
    for folder in layout::FOLDERS_OF_BASES.map(|folder| root.join(folder)).iter().filter(|folder| is_folder(folder)) {
        enter(folder);
    }
    let layout = WorkspaceLayout::of(root)?;
    let mut walk = ScanWalk { root, bounds, enter, entries: 0, notes: Vec::new(), remarks: Vec::new() };
    for base in &layout.bases {
        walk.base(base)?;
    }
    let ScanWalk { notes, remarks, .. } = walk;
    Ok(MemoryScan { layout, notes, remarks })
}

struct ScanWalk<'a> {
    root: &'a Path,
    bounds: ScanBounds,
    enter: &'a mut dyn FnMut(&Path),
    entries: usize,
    notes: Vec<NoteFile>,
    remarks: Vec<String>,
}

struct ScanFolder {
    path: String,
    place: FolderOwner,
    depth: usize,
}

impl ScanWalk<'_> {
    fn base(&mut self, base: &WorkspaceBase) -> io::Result<()> {
        let mut folders = vec![ScanFolder { path: base.folder.clone(), place: FolderOwner::of(base), depth: 0 }];
        while let Some(folder) = folders.pop() {
            let is_base = folder.depth == 0;
            match self.folder(folder, base.holds, &mut folders) {
                Ok(()) => {}
                // A root that cannot be read must not look like one without notes.
                Err((_, error)) if is_base => return Err(error),
                // Deleted since its parent was read.
                Err((_, error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err((path, error)) => self.remarks.push(format!("the folder {path} was not read: {error}")),
            }
            if self.entries > self.bounds.entries || self.notes.len() > self.bounds.notes {
                self.stop();
                break;
            }
        }
        Ok(())
    }

    fn folder(
        &mut self,
        folder: ScanFolder,
        holds: BaseContent,
        more: &mut Vec<ScanFolder>,
    ) -> Result<(), (String, io::Error)> {
        let failed = |error| (folder.path.clone(), error);
        let place = Arc::new(folder.place);
        let real = self.root.join(&folder.path);
        (self.enter)(&real);
        for entry in fs::read_dir(real).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            self.entries += 1;
            if self.entries > self.bounds.entries || self.notes.len() > self.bounds.notes {
                break;
            }
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && !is_skipped(name) {
                let Some(place) = place.enter(name, holds) else { continue };
                let path = joined(&folder.path, name);
                if folder.depth == self.bounds.depth {
                    let depth = self.bounds.depth;
                    self.remarks
                        .push(format!("the folder {path} was not read: it lies more than {depth} folders deep"));
                    continue;
                }
                more.push(ScanFolder { path, place, depth: folder.depth + 1 });
            } else if kind.is_file() && !name.starts_with('.') {
                let Some(kind) = place.kind(name, holds) else { continue };
                // Gone by now: then it is no note.
                let Ok(found) = entry.metadata() else { continue };
                let path = joined(&folder.path, name);
                let place = Arc::clone(&place);
                self.notes.push(NoteFile { path, place, kind, stamp: stamp(&found), identity: identity(&found) });
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        let remark = if self.notes.len() > self.bounds.notes {
            self.notes.truncate(self.bounds.notes);
            format!("only {} notes are indexed, there are more: split the workspace", self.bounds.notes)
        } else {
            format!(
                "the walk ended after {} files and folders, there are more: choose a smaller root",
                self.bounds.entries
            )
        };
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Looks at one file that is known to be a note. What it is and whose is not looked up again.
pub(super) fn note_at(root: &Path, path: &str) -> io::Result<NoteFile> {
    let found = fs::symlink_metadata(root.join(path))?;
    let place = Arc::new(FolderOwner::default());
    Ok(NoteFile { path: path.to_owned(), place, kind: "note", stamp: stamp(&found), identity: identity(&found) })
}

/// Returns by what a file is known to be unchanged, but for the content.
pub(super) fn stamp(found: &Metadata) -> DocumentStamp {
    let ns = |seconds: i64, ns: i64| seconds.saturating_mul(1_000_000_000).saturating_add(ns);
    DocumentStamp {
        size: i64::try_from(found.size()).unwrap_or(i64::MAX),
        mtime_ns: ns(found.mtime(), found.mtime_nsec()),
        ctime_ns: ns(found.ctime(), found.ctime_nsec()),
        content: 0,
    }
}

pub(super) fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn root(files: &[&str]) -> TempDir {
        let root = TempDir::new().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        root
    }

    fn paths(scan: &MemoryScan) -> Vec<&str> {
        let mut paths: Vec<&str> = scan.notes.iter().map(|note| note.path.as_str()).collect();
        paths.sort_unstable();
        paths
    }

    // W-02
    #[test]
    fn hidden_built_and_linked_folders_are_left_alone() {
        let outside = root(&["notes/secret.md", "secret.md"]);
        let root = root(&[
            "notes/a.md",
            "notes/.hidden.md",
            ".git/notes/b.md",
            "node_modules/notes/c.md",
            "shop/target/notes/d.md",
            "notes/.obsidian/e.md",
            ".prism/memory/f.md",
        ]);
        symlink(outside.path().join("notes"), root.path().join("lessons")).unwrap();
        symlink(outside.path().join("secret.md"), root.path().join("notes/link.md")).unwrap();
        symlink(root.path(), root.path().join("notes/loop")).unwrap();
        let scan = scan(root.path(), ScanBounds::USUAL, &mut |_| ()).unwrap();
        assert_eq!(paths(&scan), [".prism/memory/f.md", "notes/a.md"]);
        assert_eq!(scan.remarks, [""; 0]);
    }

    #[test]
    fn each_bound_is_said() {
        let root = root(&["notes/a.md", "notes/b.md", "notes/c.md", "notes/d/e/f/g.md"]);
        let with = |bounds| {
            let scan = scan(root.path(), bounds, &mut |_| ()).unwrap();
            (scan.notes.len(), scan.remarks.join("; "))
        };
        let (count, remarks) = with(ScanBounds { notes: 2, ..ScanBounds::USUAL });
        assert_eq!(count, 2);
        assert!(remarks.contains("only 2 notes are indexed"), "{remarks}");
        let (_, remarks) = with(ScanBounds { entries: 3, ..ScanBounds::USUAL });
        assert!(remarks.contains("after 3 files and folders"), "{remarks}");
        let (count, remarks) = with(ScanBounds { depth: 3, ..ScanBounds::USUAL });
        assert_eq!(count, 3);
        assert!(remarks.contains("notes/d/e/f was not read"), "{remarks}");
        assert_eq!(with(ScanBounds { notes: 4, ..ScanBounds::USUAL }), (4, String::new()));
    }

    #[test]
    fn a_root_that_is_gone_is_an_error() {
        let root = root(&[]);
        let gone = root.path().join("gone");
        assert!(scan(&gone, ScanBounds::USUAL, &mut |_| ()).is_err());
    }
}
