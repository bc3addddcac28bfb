//! What of a folder is left out when it is walked: hidden names, and what its ignore files say, as git and ripgrep read them.
//! They are read by handle, from the granted folder down and from no folder above it.

use std::{ffi::OsStr, io::Read, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use prism_os::root::{FileKind, FolderHandle, FolderListing};

/// What is wanted of what is usually left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkOptions {
    pub(crate) hidden: bool,
    pub(crate) ignored: bool,
}

/// The rules that hold in a folder: its own, and those of the folders above.
#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    above: Option<Arc<Self>>,
    /// The folder's path, as long as it is; what its files say is about paths below.
    at: usize,
    /// `.ignore`, which is for searches alone and goes before all others.
    ignore: Option<Gitignore>,
    gitignore: Option<Gitignore>,
    /// `.git/info/exclude`
    exclude: Option<Gitignore>,
    /// What git ignores above a repository is not said of what is in it.
    is_repository: bool,
}

/// The names in a folder that rules come from.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IgnoreSources {
    pub(crate) ignore: bool,
    pub(crate) gitignore: bool,
    pub(crate) git: bool,
}

/// Of an ignore file so much is read; nobody has written the rest by hand.
const MAX_RULES: u64 = 1 << 20;

impl IgnoreRules {
    /// Reads what the folders above say, from the granted one down to that at `path`, and not of that one itself.
    pub(crate) fn above(root: &FolderHandle, path: &Path) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let mut way = std::path::PathBuf::new();
        for name in path.components() {
            if let Ok(folder) = root.listing_beneath(&way) {
                let is_there = |name: &str| folder.kind_of(OsStr::new(name)).is_some();
                let sources = IgnoreSources {
                    ignore: is_there(".ignore"),
                    gitignore: is_there(".gitignore"),
                    git: is_there(".git"),
                };
                rules = Self::of(rules, &folder, &way, sources);
            }
            way.push(name);
        }
        rules
    }

    /// Adds what a folder itself says.
    pub(crate) fn of(above: Arc<Self>, folder: &FolderListing, path: &Path, sources: IgnoreSources) -> Arc<Self> {
        if !(sources.ignore || sources.gitignore || sources.git) {
            return above;
        }
        let read = |is_there: bool, name: &str| if is_there { read(folder, name) } else { None };
        let exclude = || {
            let info = folder.folder(OsStr::new(".git")).ok()?.folder(OsStr::new("info")).ok()?;
            self::read(&info, "exclude")
        };
        let length = path.as_os_str().len();
        Arc::new(Self {
            ignore: read(sources.ignore, ".ignore"),
            gitignore: read(sources.gitignore, ".gitignore"),
            exclude: if sources.git { exclude() } else { None },
            is_repository: sources.git,
            // And the slash.
            at: if length == 0 { 0 } else { length + 1 },
            above: Some(above),
        })
    }

    /// Tells whether something in this folder is left out. Its path is that from the granted folder.
    pub(crate) fn leave_out(&self, path: &Path, kind: FileKind, also: WalkOptions) -> bool {
        let name = path.file_name().unwrap_or_default();
        // Git's own: who looks for hidden files does not look for these.
        if name == ".git" && !(also.hidden && also.ignored) {
            return true;
        }
        let said = if also.ignored { None } else { self.said(path, kind == FileKind::Folder) };
        match said {
            Some(is_ignored) => is_ignored,
            None => !also.hidden && name.as_bytes().starts_with(b"."),
        }
    }

    /// What the files say: ignored or expressly not; most say nothing. All `.ignore` files go before all of git's, and of
    /// each kind the nearest goes first.
    fn said(&self, path: &Path, is_folder: bool) -> Option<bool> {
        let bytes = path.as_os_str().as_bytes();
        let ask = |file: &Option<Gitignore>, at: usize| {
            let path = Path::new(OsStr::from_bytes(bytes.get(at..)?));
            match file.as_ref()?.matched(path, is_folder) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            }
        };
        let (mut by_git, mut by_exclude) = (None, None);
        let mut is_outside = false;
        let mut rules = Some(self);
        while let Some(here) = rules {
            if let Some(said) = ask(&here.ignore, here.at) {
                return Some(said);
            }
            if !is_outside {
                by_git = by_git.or_else(|| ask(&here.gitignore, here.at));
                by_exclude = by_exclude.or_else(|| ask(&here.exclude, here.at));
            }
            is_outside |= here.is_repository;
            rules = here.above.as_deref();
        }
        by_git.or(by_exclude)
    }
}

impl IgnoreSources {
    pub(crate) fn note(&mut self, name: &OsStr) {
        match name.as_bytes() {
            b".ignore" => self.ignore = true,
            b".gitignore" => self.gitignore = true,
            b".git" => self.git = true,
            _ => {}
        }
    }
}

fn read(folder: &FolderListing, name: &str) -> Option<Gitignore> {
    let (file, _) = folder.file(OsStr::new(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_RULES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{FEFF}').lines() {
        // A line that means nothing to git means nothing here.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}
