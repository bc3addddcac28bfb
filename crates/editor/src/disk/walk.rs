//! Going through all that lies beneath a folder, by as many threads as there are processors. Each folder is opened from the
//! handle of the one that it is in, never by a joined name; links are met and not followed, and neither are other
//! file systems that are mounted there.

mod best;
mod queue;
mod rules;

use std::{
    borrow::Cow,
    ffi::{OsStr, OsString},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

pub(crate) use best::BestPaths;
use prism_core::policy::{Code, Refusal};
use prism_os::root::{FileKind, FolderError, FolderHandle, FolderListing, NameBuffer};
use queue::WalkQueue;
pub(crate) use rules::{IgnoreRules, IgnoreSources, WalkOptions};

use crate::{
    refusal::failed,
    roots::{ClosedPaths, ResolvedPath, place},
    state::Cancellation,
};

/// Levels below the folder.
pub(crate) const MOST_LEVELS: u64 = 64;

/// Names that are looked at in all. What is beyond is not found, and the answer says that it is not complete.
const MAX_SEEN: usize = 500_000;

/// How long is looked. The same holds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads of one walk. More would wait for the same disk.
const MAX_THREADS: usize = 8;

/// Files that are looked into before another thread may have the rest of their folder.
const AT_ONCE: usize = 64;

/// Who is told what is met.
pub(crate) trait WalkVisitor: Sync {
    /// What each thread has for itself.
    type Own;

    fn own(&self) -> Self::Own;

    /// Tells whether nothing at a path, or beneath it, is wanted any more.
    fn is_beyond(&self, path: &Path) -> bool;

    /// Is told what was met in a folder, by their paths from the folder that is walked.
    fn met(&self, _entries: &[(PathBuf, FileKind)]) {}

    /// Tells whether a file is to be looked into.
    fn wants(&self, _path: &Path) -> bool {
        false
    }

    /// Looks into a file.
    fn look(&self, _own: &mut Self::Own, _folder: &FolderListing, _path: &Path, _walk: &FolderWalk<'_>) {}
}

/// One walk through a folder.
#[derive(Debug)]
pub(crate) struct FolderWalk<'a> {
    stop: &'a Cancellation,
    until: Instant,
    levels: u64,
    also: WalkOptions,
    /// Where the folder is.
    place: PathBuf,
    /// The way to it from the granted folder, which ignore files are about.
    way: PathBuf,
    closed: Option<Arc<ClosedPaths>>,
    seen: AtomicUsize,
    is_cut: AtomicBool,
}

/// What waits for a thread.
enum WalkJob {
    Folder { above: Arc<WalkFolder>, name: OsString },
    Files { here: Arc<WalkFolder>, names: Vec<OsString> },
}

/// A folder that is gone through.
struct WalkFolder {
    folder: FolderListing,
    /// From the folder that is walked.
    path: PathBuf,
    rules: Arc<IgnoreRules>,
    level: u64,
}

impl<'a> FolderWalk<'a> {
    pub(crate) fn new(
        way: &ResolvedPath,
        folder: &FolderHandle,
        also: WalkOptions,
        levels: u64,
        stop: &'a Cancellation,
    ) -> Self {
        let place = place(folder, way.written());
        let closed = Some(way.closed().clone()).filter(|closed| closed.is_beneath(&place));
        let granted = prism_os::root::place(way.root()).ok();
        let below = granted.and_then(|granted| Some(place.strip_prefix(granted).ok()?.to_owned()));
        Self {
            stop,
            until: Instant::now() + PATIENCE,
            levels,
            also,
            way: below.unwrap_or_default(),
            place,
            closed,
            seen: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        }
    }

    /// Goes through the folder, and tells whether nothing had to be left out.
    pub(crate) fn run<V: WalkVisitor>(
        &self,
        way: &ResolvedPath,
        folder: &FolderHandle,
        visitor: &V,
    ) -> Result<bool, Refusal> {
        let unreadable = |error: FolderError| Refusal::new(Code::Failed, format!("{}: {error}", self.place.display()));
        let first = WalkFolder {
            folder: folder.listing().map_err(unreadable)?,
            path: PathBuf::new(),
            rules: if self.also.ignored { Arc::default() } else { IgnoreRules::above(way.root(), &self.way) },
            level: 1,
        };
        let queue = WalkQueue::default();
        let mut names = NameBuffer::default();
        self.list(first, &mut names, &queue, visitor).map_err(unreadable)?;
        let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| self.work(&mut NameBuffer::default(), &queue, visitor));
            }
            self.work(&mut names, &queue, visitor);
        });
        if self.stop.is_stopped() {
            return Err(failed("nobody waits for it any more"));
        }
        Ok(!self.is_cut.load(Ordering::Relaxed))
    }

    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Tells whether it is to end now, be it too soon.
    pub(crate) fn is_over(&self) -> bool {
        if self.stop.is_stopped() || self.seen.load(Ordering::Relaxed) > MAX_SEEN || Instant::now() > self.until {
            self.cut();
            return true;
        }
        false
    }

    /// Notes that something was left out that lies too deep or cannot be read.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Notes why something could not be opened. What is not there any more, or has become a link, is not left out.
    pub(crate) fn failed(&self, error: &FolderError) {
        if !matches!(error, FolderError::NotFound | FolderError::Linked) {
            self.cut();
        }
    }

    fn work<V: WalkVisitor>(&self, names: &mut NameBuffer, queue: &WalkQueue<WalkJob>, visitor: &V) {
        let mut own = visitor.own();
        while let Some(job) = queue.take() {
            if self.is_over() {
                queue.close();
                return;
            }
            match &*job {
                WalkJob::Folder { above, name } => self.enter(above, name, names, queue, visitor),
                WalkJob::Files { here, names } => self.look(here, names, &mut own, visitor),
            }
        }
    }

    fn enter<V: WalkVisitor>(
        &self,
        above: &WalkFolder,
        name: &OsStr,
        names: &mut NameBuffer,
        queue: &WalkQueue<WalkJob>,
        visitor: &V,
    ) {
        let path = above.path.join(name);
        if visitor.is_beyond(&path) {
            return;
        }
        let listed = above.folder.folder(name).and_then(|folder| {
            let here = WalkFolder { folder, path, rules: above.rules.clone(), level: above.level + 1 };
            self.list(here, names, queue, visitor)
        });
        if let Err(error) = listed {
            self.failed(&error);
        }
    }

    /// Lists a folder, tells what is in it, and has the rest looked into.
    fn list<V: WalkVisitor>(
        &self,
        mut here: WalkFolder,
        names: &mut NameBuffer,
        queue: &WalkQueue<WalkJob>,
        visitor: &V,
    ) -> Result<(), FolderError> {
        let mut sources = IgnoreSources::default();
        let mut listed = Vec::new();
        let all = here.folder.each(names, |name, kind| {
            sources.note(name);
            listed.push((here.path.join(name), kind));
            if listed.len() > MAX_SEEN { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        self.seen.fetch_add(listed.len(), Ordering::Relaxed);
        if all?.is_break() {
            self.cut();
        }
        if !self.also.ignored {
            here.rules = IgnoreRules::of(here.rules, &here.folder, &self.way_to(&here.path), sources);
        }
        listed.retain(|(path, kind)| !self.leaves_out(&here, path, *kind));
        visitor.met(&listed);
        listed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));

        let here = Arc::new(here);
        let name_of = |path: &Path| path.file_name().unwrap_or_default().to_owned();
        let mut jobs = Vec::new();
        let mut files = Vec::new();
        for (path, kind) in &listed {
            match kind {
                FileKind::File if visitor.wants(path) => {
                    files.push(name_of(path));
                    if files.len() == AT_ONCE {
                        jobs.push(WalkJob::Files { here: here.clone(), names: std::mem::take(&mut files) });
                    }
                }
                FileKind::Folder if here.level == self.levels => self.cut(),
                FileKind::Folder => jobs.push(WalkJob::Folder { above: here.clone(), name: name_of(path) }),
                _ => {}
            }
        }
        if !files.is_empty() {
            jobs.push(WalkJob::Files { here, names: files });
        }
        // The first last, so that it is taken first: then the first of what is found is found soon.
        if !queue.put(jobs.into_iter().rev()) {
            self.cut();
        }
        Ok(())
    }

    fn leaves_out(&self, here: &WalkFolder, path: &Path, kind: FileKind) -> bool {
        // No link was followed down here, so its path is where it is.
        if self.closed.as_ref().is_some_and(|closed| closed.holds(&self.place.join(path))) {
            return true;
        }
        here.rules.leave_out(&self.way_to(path), kind, self.also)
    }

    /// The way to something from the granted folder.
    fn way_to<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        if self.way.as_os_str().is_empty() {
            Cow::Borrowed(path)
        } else if path.as_os_str().is_empty() {
            Cow::Owned(self.way.clone())
        } else {
            Cow::Owned(self.way.join(path))
        }
    }

    fn look<V: WalkVisitor>(&self, here: &WalkFolder, names: &[OsString], own: &mut V::Own, visitor: &V) {
        for name in names {
            if self.is_over() {
                return;
            }
            let path = here.path.join(name);
            if !visitor.is_beyond(&path) {
                visitor.look(own, &here.folder, &path, self);
            }
        }
    }
}
