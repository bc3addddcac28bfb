//! What is made of changes: buffers follow, and happenings are told.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use prism_os::{root::FileKind, watch::FolderChange};
use serde::Serialize;
use serde_json::{Value, json};

use super::Watches;
use crate::{
    encoding,
    roots::{ResolvedPath, read::whole},
    state::GrantHolder,
    text::buffers::Buffers,
};

/// Changes that are told one by one. If more come together, as when a branch is checked out, the rest is one happening for
/// each granted folder, which says to look there again.
const MAX_TOLD: usize = 500;

/// Files that make a folder a project.
const PROJECTS: [&str; 10] = [
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "go.mod",
    "Makefile",
    "CMakeLists.txt",
    "tsconfig.json",
    "pytest.ini",
];

/// Files that say how a project is worked on.
const SETTINGS: [&str; 14] = [
    ".editorconfig",
    "rustfmt.toml",
    ".rustfmt.toml",
    "clippy.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "pyrightconfig.json",
    "jsconfig.json",
    "setup.cfg",
    "tox.ini",
    ".prettierrc",
    ".clangd",
    ".clang-format",
    "compile_commands.json",
];

/// Whether what is left out may be another now.
pub(super) fn has_rules(changes: &[FolderChange]) -> bool {
    let is_rules = |path: &Path| path.file_name().is_some_and(|name| name == ".gitignore" || name == ".ignore");
    changes.iter().any(|change| match change {
        FolderChange::Created(path, _) | FolderChange::Deleted(path, _) | FolderChange::Written(path) => is_rules(path),
        FolderChange::Renamed { from, to, .. } => is_rules(from) || is_rules(to),
        FolderChange::Lost => false,
    })
}

pub(super) fn tell(watches: &Watches, changes: Vec<FolderChange>) {
    let mut news = ChangeReport { watches, work_trees: BTreeSet::new(), folders: BTreeSet::new(), told: 0 };
    let is_lost = changes.contains(&FolderChange::Lost) || changes.len() > MAX_TOLD;
    for change in changes {
        news.take(change);
    }
    news.finish(is_lost);
}

struct ChangeReport<'a> {
    watches: &'a Watches,
    /// Work trees whose `.git` has changed.
    work_trees: BTreeSet<PathBuf>,
    /// Folders that something came to or went from.
    folders: BTreeSet<PathBuf>,
    told: usize,
}

impl ChangeReport<'_> {
    fn take(&mut self, change: FolderChange) {
        match change {
            FolderChange::Created(path, _) | FolderChange::Deleted(path, _) | FolderChange::Written(path)
                if self.is_git(&path) => {}
            FolderChange::Renamed { to: path, .. } if self.is_git(&path) => {}
            FolderChange::Created(path, kind) => {
                self.follow(&path);
                let by = self.writer_of(&path);
                self.named("file_created", &path, kind, by.as_ref());
                self.watched(&path, "created", by.as_ref(), None);
            }
            FolderChange::Deleted(path, kind) => {
                self.watches.text.buffers.removed(&path);
                let by = self.watches.text.buffers.own_writes.take_remover_of(&path);
                self.named("file_deleted", &path, kind, by.as_ref());
                self.watched(&path, "deleted", by.as_ref(), None);
            }
            FolderChange::Renamed { from, to, kind } => self.renamed(&from, &to, kind),
            FolderChange::Written(path) => {
                self.follow(&path);
                let by = self.writer_of(&path);
                if by.is_none() && (is_one_of(&path, &SETTINGS) || is_one_of(&path, &PROJECTS)) {
                    self.tell("config_updated", &path, json!({ "change": "modified" }));
                }
                self.watched(&path, "modified", by.as_ref(), None);
            }
            FolderChange::Lost => {}
        }
    }

    /// Tells what concerns several changes together.
    fn finish(mut self, is_lost: bool) {
        if is_lost {
            for buffer in self.watches.text.buffers.all() {
                self.follow(buffer.path());
            }
            for root in self.watches.roots() {
                self.watches.text.editor.happenings.tell(
                    "directory_changed",
                    Some(&root),
                    json!({ "is_everything": true }),
                );
            }
        }
        for folder in std::mem::take(&mut self.folders) {
            self.tell("directory_changed", &folder, json!({}));
        }
        let Some(observer) = &self.watches.repositories else { return };
        for work_tree in &self.work_trees {
            if let Some(roots) = self.watches.roots_of(work_tree) {
                observer.changed(&roots, work_tree);
            }
        }
    }

    /// Something came or went by a name.
    fn named(&mut self, event: &str, path: &Path, kind: FileKind, by: Option<&GrantHolder>) {
        self.folders.extend(path.parent().map(Path::to_owned));
        if kind == FileKind::Folder {
            return;
        }
        self.tell(event, path, json!(ChangeNews { kind: Some(kind.name()), ..ChangeNews::by(by) }));
        let change = if event == "file_created" { "created" } else { "deleted" };
        self.project(path, change);
    }

    fn renamed(&mut self, from: &Path, to: &Path, kind: FileKind) {
        let buffers = &self.watches.text.buffers;
        // Unsaved text of what was there by the new name is kept, whatever takes its place.
        if buffers.dirty_beneath(to).is_empty() {
            buffers.renamed(from, to);
        } else {
            buffers.removed(from);
            self.follow(to);
        }
        self.folders.extend([from, to].iter().filter_map(|path| path.parent().map(Path::to_owned)));
        let by = self.watches.text.buffers.own_writes.take_remover_of(from);
        self.tell(
            "file_renamed",
            from,
            json!(ChangeNews { new_path: Some(to), kind: Some(kind.name()), ..ChangeNews::by(by.as_ref()) }),
        );
        for path in [from, to] {
            self.project(path, "renamed");
            self.watched(path, "renamed", by.as_ref(), Some(to));
        }
    }

    fn project(&mut self, path: &Path, change: &str) {
        if is_one_of(path, &PROJECTS) {
            self.tell("workspace_changed", path, json!({ "change": change }));
        }
        if is_one_of(path, &SETTINGS) {
            self.tell("config_updated", path, json!({ "change": change }));
        }
    }

    /// Has an open buffer follow its file.
    fn follow(&self, path: &Path) {
        let buffers: &Buffers = &self.watches.text.buffers;
        if buffers.at(path).is_some()
            && let Some(way) = self.way(path)
        {
            buffers.refresh(&way);
        }
    }

    /// Who has written a file here, if it is still as they left it.
    fn writer_of(&self, path: &Path) -> Option<GrantHolder> {
        let own_writes = &self.watches.text.buffers.own_writes;
        if !own_writes.has_written(path) {
            return None;
        }
        let file = self.way(path)?.open_file().ok()?;
        let bytes = whole(file, &path.to_string_lossy()).ok()?;
        own_writes.writer_of(path, &encoding::digest_of(&bytes))
    }

    fn way(&self, path: &Path) -> Option<ResolvedPath> {
        self.watches.roots_of(path)?.resolve(path.to_str()?).ok()
    }

    /// Tells those who watch a file by name.
    fn watched(&self, path: &Path, change: &str, by: Option<&GrantHolder>, new_path: Option<&Path>) {
        let news =
            ChangeNews { path: Some(path.display().to_string()), new_path, change: Some(change), ..ChangeNews::by(by) };
        let data = json!(news);
        for holder in self.watches.watchers(path) {
            self.watches.text.editor.happenings.tell_only("file_watched", holder, data.clone());
        }
    }

    fn tell(&mut self, event: &str, path: &Path, data: Value) {
        self.told += 1;
        if self.told <= MAX_TOLD {
            self.watches.text.editor.happenings.tell(event, Some(path), data);
        }
    }

    /// Notes a change in a repository's own folder.
    fn is_git(&mut self, path: &Path) -> bool {
        let Some(own) = path.ancestors().find(|above| above.file_name().is_some_and(|name| name == ".git")) else {
            return false;
        };
        self.work_trees.extend(own.parent().map(Path::to_owned));
        true
    }
}

/// What is told of one change, and whose doing it was.
#[derive(Clone, Debug, Default, Serialize)]
struct ChangeNews<'a> {
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_path: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a str>,
}

impl<'a> ChangeNews<'a> {
    fn by(holder: Option<&'a GrantHolder>) -> Self {
        let from = if holder.is_some() { "prism" } else { "outside" };
        Self { from, by: holder.map(|holder| holder.name.as_str()), ..Self::default() }
    }
}

fn is_one_of(path: &Path, names: &[&str]) -> bool {
    path.file_name().is_some_and(|name| names.iter().any(|known| name == *known))
}
