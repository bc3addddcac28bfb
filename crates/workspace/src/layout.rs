//! Which folders and files of a workspace are its memory, and whose each of them is. `docs/workspace.md` says the same
//! to people.
//!
//! A *base* is a folder that is laid out as a workspace:
//!
//! ```text
//! OVERVIEW.md or README.md          what the workspace is
//! decisions/  _decisions/           one file each; so for lessons, plans and notes
//! _<topic>/                         notes on a topic of one's own
//! <domain>/                         the same again for a part of the workspace,
//! <domain>/<repository>/            and for a part of that
//! ```
//!
//! `resources/workspaces/<workspace>/` is a base for each workspace there; without that folder the root itself is the
//! one base. `.prism/memory/` is a base too, of the workspace that is called like the root: what Prism is told to
//! remember goes there while the workspace has no such folders. In a base that holds nothing but memory every Markdown
//! file counts; in the root, which is somebody's project, only those in the folders above and the overviews.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The bases of a root.
#[derive(Clone, Debug)]
pub(super) struct WorkspaceLayout {
    /// Never empty, and the one to write to first.
    pub(super) bases: Vec<WorkspaceBase>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WorkspaceBase {
    /// Relative to the root, with slashes; empty for the root itself.
    pub(super) folder: String,
    pub(super) workspace: String,
    pub(super) holds: BaseContent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaseContent {
    /// Every Markdown file in it is a note.
    Memory,
    /// It is a project, with notes in some folders.
    Project,
}

/// Whose a folder's files are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderOwner {
    pub(super) workspace: String,
    pub(super) domain: String,
    pub(super) repository: String,
    pub(super) topic: String,
    /// How many folders it lies below the scope's own.
    pub(super) below: usize,
}

/// The tree that a group of workspaces lives in.
pub(super) const TREE: &str = "resources/workspaces";

/// Where Prism writes while there is no other place.
pub(super) const OWN: &str = ".prism/memory";

/// The folders, besides the root, in which a base can appear.
pub(super) const FOLDERS_OF_BASES: [&str; 3] = [".prism", "resources", TREE];

/// The topics that need no underscore, and what a file in them is.
pub(super) const TOPICS: [(&str, &str); 4] =
    [("decisions", "decision"), ("lessons", "lesson"), ("plans", "plan"), ("notes", "note")];

pub(super) const OVERVIEW: &str = "overview";

// === impl WorkspaceLayout ===

impl WorkspaceLayout {
    /// Looks at a root, which is a folder.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        let own_name = root.file_name().map_or("workspace".into(), |name| name.to_string_lossy().into_owned());
        let mut bases = Vec::new();
        if is_folder(&root.join(TREE)) {
            for entry in fs::read_dir(root.join(TREE))? {
                let entry = entry?;
                let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
                if entry.file_type()?.is_dir() && !is_skipped(&name) {
                    bases.push(WorkspaceBase {
                        folder: format!("{TREE}/{name}"),
                        workspace: name,
                        holds: BaseContent::Memory,
                    });
                }
            }
            bases.sort_by(|a, b| a.workspace.cmp(&b.workspace));
        }
        let own = WorkspaceBase { folder: OWN.to_owned(), workspace: own_name.clone(), holds: BaseContent::Memory };
        if bases.is_empty() {
            bases.push(WorkspaceBase { folder: String::new(), workspace: own_name, holds: BaseContent::Project });
        }
        if is_folder(&root.join(OWN)) {
            bases.push(own);
        }
        Ok(Self { bases })
    }

    /// Returns the names of the workspaces.
    pub(super) fn workspaces(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.bases.iter().map(|base| base.workspace.as_str()).collect();
        names.dedup();
        names
    }

    /// Returns the bases of one workspace.
    pub(super) fn of_workspace<'a>(&'a self, workspace: &'a str) -> impl Iterator<Item = &'a WorkspaceBase> {
        self.bases.iter().filter(move |base| base.workspace == workspace)
    }
}

// === impl WorkspaceBase ===

impl WorkspaceBase {
    /// Returns the folder of a scope, relative to the root.
    pub(super) fn scope(&self, domain: &str, repository: &str) -> String {
        let parts = [self.folder.as_str(), domain, repository];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
    }
}

// === impl FolderOwner ===

impl FolderOwner {
    pub(super) fn of(base: &WorkspaceBase) -> Self {
        Self { workspace: base.workspace.clone(), ..Self::default() }
    }

    /// Returns the place of a folder in this one; none if nothing in it can be a note.
    pub(super) fn enter(&self, name: &str, holds: BaseContent) -> Option<Self> {
        let mut place = self.clone();
        if !self.topic.is_empty() || self.below > 0 {
            place.below += 1;
        } else if let Some(topic) = topic(name) {
            place.topic = topic.to_owned();
        } else if self.domain.is_empty() {
            place.domain = name.to_owned();
        } else if self.repository.is_empty() {
            place.repository = name.to_owned();
        } else if holds == BaseContent::Memory {
            place.below = 1;
        } else {
            return None;
        }
        Some(place)
    }

    /// Returns what a file here is, by its name; none if it is not of the memory.
    pub(super) fn kind(&self, name: &str, holds: BaseContent) -> Option<&'static str> {
        let (stem, extension) = name.rsplit_once('.')?;
        if !matches!(extension.to_ascii_lowercase().as_str(), "md" | "markdown") || stem.is_empty() {
            return None;
        }
        let is_overview = matches!(stem.to_ascii_lowercase().as_str(), "overview" | "readme");
        if is_overview && self.topic.is_empty() && self.below == 0 {
            return Some(OVERVIEW);
        }
        if self.topic.is_empty() {
            return (holds == BaseContent::Memory).then_some("note");
        }
        // A folder of decisions may say what it is for; that is no decision.
        let of_topic = || TOPICS.iter().find(|(topic, _)| *topic == self.topic).map(|(_, kind)| *kind);
        Some(if is_overview { "note" } else { of_topic().unwrap_or("note") })
    }
}

/// Returns the topic that a folder of this name is for.
pub(super) fn topic(folder: &str) -> Option<&str> {
    match folder.strip_prefix('_') {
        Some(topic) if !topic.is_empty() => Some(topic),
        _ => TOPICS.iter().map(|(topic, _)| *topic).find(|topic| *topic == folder),
    }
}

/// Whether a folder of this name is left alone: hidden, or full of what was built or fetched.
pub(super) fn is_skipped(name: &str) -> bool {
    name.starts_with('.') || matches!(name, "node_modules" | "target")
}

/// Whether this can be the name of a domain, a repository or a topic: one folder, which is neither hidden nor special.
pub(super) fn is_name(name: &str) -> bool {
    let fits = !name.is_empty() && name.len() <= 100 && !name.starts_with(['.', '_', '-', ' ']) && !name.ends_with(' ');
    fits && !is_skipped(name) && !name.contains(|c: char| c.is_control() || matches!(c, '/' | '\\' | ':'))
}

/// Whether a folder is there, and no symbolic link.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Finds the root for a person who named none: the nearest folder, from here upwards, that is somebody's project or
/// has a memory. Prism's own folder, `~/.prism`, does not make the home folder one.
#[must_use]
pub fn nearest_root(here: &Path, home: &Path) -> PathBuf {
    marked_root(here, home).unwrap_or_else(|| here.to_owned())
}

/// The same, if there is one.
pub(super) fn marked_root(here: &Path, home: &Path) -> Option<PathBuf> {
    let real = |path: &Path| path.canonicalize().ok();
    let is_root = |folder: &&Path| {
        let own = folder.join(".prism");
        folder.join(".git").exists() || folder.join(TREE).is_dir() || (own.is_dir() && real(&own) != real(home))
    };
    here.ancestors().find(is_root).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn place_of(path: &str, holds: BaseContent) -> Option<(FolderOwner, &'static str)> {
        let base = WorkspaceBase { folder: String::new(), workspace: "w".to_owned(), holds };
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap();
        let place = folders.iter().try_fold(FolderOwner::of(&base), |place, folder| place.enter(folder, holds))?;
        let kind = place.kind(name, holds)?;
        Some((place, kind))
    }

    fn shown(path: &str, holds: BaseContent) -> String {
        place_of(path, holds)
            .map_or("-".to_owned(), |(p, kind)| format!("{}|{}|{}|{kind}", p.domain, p.repository, p.topic))
    }

    // W-02
    #[test]
    fn a_files_place_says_whose_it_is_and_what_it_is() {
        for (path, memory, project) in [
            ("README.md", "|||overview", "|||overview"),
            ("OVERVIEW.md", "|||overview", "|||overview"),
            ("shop/overview.md", "shop|||overview", "shop|||overview"),
            ("shop/web/README.md", "shop|web||overview", "shop|web||overview"),
            ("shop/web/src/README.md", "shop|web||note", "-"),
            ("loose.md", "|||note", "-"),
            ("loose.txt", "-", "-"),
            (".md", "-", "-"),
            ("decisions/260301-x.md", "||decisions|decision", "||decisions|decision"),
            ("decisions/README.md", "||decisions|note", "||decisions|note"),
            ("_lessons/a.MD", "||lessons|lesson", "||lessons|lesson"),
            ("shop/_plans/deep/er/a.md", "shop||plans|plan", "shop||plans|plan"),
            ("shop/web/notes/decisions/a.md", "shop|web|notes|note", "shop|web|notes|note"),
            ("_features/x/long-term.md", "||features|note", "||features|note"),
        ] {
            assert_eq!(shown(path, BaseContent::Memory), memory, "{path}");
            assert_eq!(shown(path, BaseContent::Project), project, "{path}");
        }
    }

    // W-02
    #[test]
    fn a_root_is_one_workspace_or_has_a_tree_of_them() {
        let root = TempDir::new().unwrap();
        let name = root.path().file_name().unwrap().to_str().unwrap().to_owned();
        let folders = || -> Vec<(String, String)> {
            WorkspaceLayout::of(root.path())
                .unwrap()
                .bases
                .into_iter()
                .map(|base| (base.folder, base.workspace))
                .collect()
        };
        let pair = |folder: &str, workspace: &str| (folder.to_owned(), workspace.to_owned());
        assert_eq!(folders(), [pair("", &name)]);
        fs::create_dir_all(root.path().join(OWN)).unwrap();
        assert_eq!(folders(), [pair("", &name), pair(OWN, &name)]);
        fs::create_dir_all(root.path().join("resources/workspaces/tools")).unwrap();
        fs::create_dir_all(root.path().join("resources/workspaces/.hidden")).unwrap();
        assert_eq!(folders(), [pair("resources/workspaces/tools", "tools"), pair(OWN, &name)]);
    }

    #[test]
    fn a_name_is_one_folder() {
        for name in ["shop", "web-2", "größe", "a.b"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".git", "a/b", "a\\b", "_x", "target", "a\nb", "-x", " x", &"x".repeat(101)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn prisms_own_folder_makes_no_root() {
        let top = TempDir::new().unwrap();
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let home = top.path().join(".prism");
        fs::create_dir(&home).unwrap();
        assert_eq!(nearest_root(&deep, &home), deep);
        assert_eq!(nearest_root(&deep, Path::new("/elsewhere")), top.path());
        fs::create_dir(top.path().join("a/.git")).unwrap();
        assert_eq!(nearest_root(&deep, &home), top.path().join("a"));
    }
}
