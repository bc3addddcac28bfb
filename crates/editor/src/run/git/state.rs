//! How a repository stands, read from its own files without running git, and what has happened between two looks.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use prism_os::root::{FileKind, FolderHandle};

/// A look at a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RepositoryState {
    /// `None` if a commit is checked out and no branch.
    pub(super) branch: Option<String>,
    /// `None` before the first commit.
    pub(super) commit: Option<String>,
    /// Whether a merge, a rebase or the like is under way.
    pub(super) is_merging: bool,
    /// When the index was written, and its size.
    index: Option<(SystemTime, u64)>,
    /// How long the log of HEAD is; `None` if none is kept.
    log: Option<u64>,
    /// The same for what was last seen of others' branches.
    remote_logs: BTreeMap<PathBuf, u64>,
}

/// Something that has happened.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RepositoryNews {
    Branch(Option<String>),
    Commit(String),
    Push { branch: String, commit: String },
    Status,
}

/// A line of a log: what it leads to, and why.
struct Logged {
    commit: String,
    why: String,
}

/// Files of one line are shorter than this.
const MAX_LINE: u64 = 4096;

/// What is searched of the packed refs: 100,000 branches.
const MAX_PACKED: u64 = 8 << 20;

/// What is read of a log at a time. Of more the beginning is left out: somebody has rewritten the whole history.
const MAX_LOGGED: u64 = 64 << 10;

/// Remote branches that are looked after. Pushes to further ones are not told.
const MAX_REMOTES: usize = 256;

/// How deep their names nest.
const MAX_DEPTH: usize = 6;

impl RepositoryState {
    pub(super) fn read(own: &FolderHandle, common: &FolderHandle) -> Self {
        let head = first_line(own, "HEAD").unwrap_or_default();
        let branch = head.strip_prefix("ref: refs/heads/").filter(|branch| *branch != ".invalid").map(str::to_owned);
        let commit = match &branch {
            Some(branch) => commit_of(common, &format!("refs/heads/{branch}")),
            None => Some(head).filter(|head| is_hash(head)),
        };
        let has = |name| own.spot(Path::new(name)).and_then(|spot| spot.look()).is_ok_and(|found| found.is_some());
        let index = own.open_file(Path::new("index")).map(|file| file.metadata().ok());
        let index = index.ok().flatten().and_then(|about| Some((about.modified().ok()?, about.len())));
        let mut remote_logs = BTreeMap::new();
        remote_logs_of(common, Path::new("logs/refs/remotes"), MAX_DEPTH, &mut remote_logs);
        Self {
            branch,
            commit,
            is_merging: ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD"].into_iter().any(has),
            index,
            log: length(own, Path::new("logs/HEAD")),
            remote_logs,
        }
    }

    /// Returns what has happened since an earlier look at the same repository.
    pub(super) fn since(&self, before: &Self, own: &FolderHandle, common: &FolderHandle) -> Vec<RepositoryNews> {
        let mut news = Vec::new();
        if self.branch != before.branch || self.branch.is_none() && self.commit != before.commit {
            news.push(RepositoryNews::Branch(self.branch.clone()));
        }
        let logged = logged_since(own, Path::new("logs/HEAD"), before.log.unwrap_or(0));
        match self.log {
            Some(_) => news
                .extend(logged.into_iter().filter(Logged::is_commit).map(|line| RepositoryNews::Commit(line.commit))),
            // Without a log all that is known is that the branch is somewhere else now.
            None if self.branch == before.branch && self.commit != before.commit => {
                news.extend(self.commit.clone().map(RepositoryNews::Commit));
            }
            None => {}
        }
        for (path, length) in &self.remote_logs {
            let read_before = before.remote_logs.get(path).copied().unwrap_or(0);
            if *length <= read_before {
                continue;
            }
            let branch = path.strip_prefix("logs/refs/remotes").unwrap_or(path).display().to_string();
            let pushed =
                logged_since(common, path, read_before).into_iter().filter(|line| line.why == "update by push");
            news.extend(pushed.map(|line| RepositoryNews::Push { branch: branch.clone(), commit: line.commit }));
        }
        if self != before {
            news.push(RepositoryNews::Status);
        }
        news
    }
}

impl Logged {
    fn is_commit(&self) -> bool {
        let is = |word: &str| self.why.starts_with(word);
        let merges = is("merge") || is("pull");
        is("commit")
            || is("cherry-pick")
            || is("revert")
            || is("am")
            || is("rebase") && self.why.contains("(pick)")
            || merges && !self.why.ends_with("Fast-forward")
    }
}

/// Reads what a log has more than `length` bytes; all of it if it is shorter now, as then it was written anew.
fn logged_since(folder: &FolderHandle, path: &Path, length: u64) -> Vec<Logged> {
    let Ok(mut file) = folder.open_file(path) else { return Vec::new() };
    let text = part(&mut file, length).unwrap_or_default();
    let line = |line: &str| {
        let (about, why) = line.split_once('\t')?;
        let commit = about.split(' ').nth(1).filter(|commit| is_hash(commit))?;
        Some(Logged { commit: commit.to_owned(), why: why.to_owned() })
    };
    text.lines().filter_map(line).collect()
}

fn part(file: &mut File, from: u64) -> Option<String> {
    let length = file.metadata().ok()?.len();
    if length < from {
        return None;
    }
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(MAX_LOGGED)))).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_LOGGED).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn remote_logs_of(common: &FolderHandle, path: &Path, depth: usize, found: &mut BTreeMap<PathBuf, u64>) {
    let Ok(entries) = common.beneath(path).and_then(|folder| folder.entries()) else { return };
    for entry in entries.flatten() {
        if found.len() == MAX_REMOTES {
            return;
        }
        let path = path.join(&entry.name);
        match entry.kind {
            FileKind::Folder if depth > 0 => remote_logs_of(common, &path, depth - 1, found),
            FileKind::File => found.extend(length(common, &path).map(|length| (path, length))),
            _ => {}
        }
    }
}

fn length(folder: &FolderHandle, path: &Path) -> Option<u64> {
    folder.open_file(path).ok()?.metadata().ok().map(|about| about.len())
}

fn commit_of(common: &FolderHandle, name: &str) -> Option<String> {
    if let Some(commit) = first_line(common, name) {
        return Some(commit).filter(|commit| is_hash(commit));
    }
    let file = common.open_file(Path::new("packed-refs")).ok()?;
    let mut packed = Vec::new();
    file.take(MAX_PACKED).read_to_end(&mut packed).ok()?;
    let packed = String::from_utf8_lossy(&packed);
    let mut refs = packed.lines().filter_map(|line| line.split_once(' '));
    refs.find(|(_, named)| *named == name).map(|(commit, _)| commit.to_owned()).filter(|commit| is_hash(commit))
}

fn first_line(folder: &FolderHandle, path: &str) -> Option<String> {
    let file = folder.open_file(Path::new(path)).ok()?;
    let mut text = String::new();
    file.take(MAX_LINE).read_to_string(&mut text).ok()?;
    text.lines().next().map(str::to_owned)
}

fn is_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
