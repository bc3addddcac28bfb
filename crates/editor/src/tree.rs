//! What lies beneath a folder: all of it to some depth, or what a pattern is about. Links are listed and not followed, and
//! neither are other file systems that are mounted there.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use prism_core::policy::{Code, Refusal};
use prism_os::root::{Entry, Kind, Root};
use serde_json::{Value, json};

use crate::{
    Shown,
    args::{Args, wrong},
    glob::Glob,
    ground::{Closed, Ground, Way, place},
    prepared::Work,
    runtime::{Stop, failed},
};

/// What an answer holds at most, and if nothing else is said. The rest is left out, and the answer says that it is not
/// complete.
const MOST_ENTRIES: u64 = 10_000;
const USUAL_ENTRIES: u64 = 1_000;

/// Levels below the folder.
const MOST_LEVELS: u64 = 64;
const USUAL_LEVELS: u64 = 3;

/// Names that are looked at in all. What is beyond is not found, and the answer says that it is not complete.
const MAX_SEEN: usize = 500_000;

/// How long is looked. The same holds.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn explore(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let levels = args.number("depth", 1, MOST_LEVELS)?.unwrap_or(USUAL_LEVELS);
    let limit = args.number("limit", 1, MOST_ENTRIES)?.unwrap_or(USUAL_ENTRIES);
    args.done()?;
    walk(ground, path, "List", levels, limit, |_| true)
}

pub(crate) fn search(mut args: Args, ground: &Ground) -> Result<(Shown, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let pattern = args.text("pattern")?;
    let limit = args.number("limit", 1, MOST_ENTRIES)?.unwrap_or(USUAL_ENTRIES);
    args.done()?;
    let glob = Glob::new(&pattern).map_err(|why| wrong(format!("`pattern` {why}")))?;
    walk(ground, path, "Search", MOST_LEVELS, limit, move |path| glob.matches(path))
}

fn walk(
    ground: &Ground,
    path: Option<String>,
    verb: &str,
    levels: u64,
    limit: u64,
    wanted: impl Fn(&str) -> bool + Send + 'static,
) -> Result<(Shown, Work), Refusal> {
    let way = path.as_deref().map_or_else(|| ground.first(), |path| ground.way(path))?;
    let folder = way.folder()?;
    let place = place(&folder, way.written());
    let shown = Shown::plain(format!("{verb} {}", place.display()));
    let work = Work::new(move |stop| {
        let mut walk = Walk::new(&way, place, levels, limit, stop);
        let is_complete = walk.visit(&folder, "", 1, &wanted).is_continue() && !walk.is_cut;
        if stop.is_stopped() {
            return Err(failed("nobody waits for it any more"));
        }
        if let Some(refusal) = walk.refusal {
            return Err(refusal);
        }
        Ok(json!({ "path": walk.place, "entries": walk.found, "is_complete": is_complete }))
    });
    Ok((shown, work))
}

struct Walk<'a> {
    place: PathBuf,
    levels: u64,
    limit: usize,
    stop: &'a Stop,
    until: Instant,
    closed: Option<Arc<Closed>>,
    seen: usize,
    found: Vec<Value>,
    /// Whether something was left out that lies too deep or cannot be read.
    is_cut: bool,
    /// Why not even the first folder could be read.
    refusal: Option<Refusal>,
}

impl<'a> Walk<'a> {
    fn new(way: &Way, place: PathBuf, levels: u64, limit: u64, stop: &'a Stop) -> Self {
        let closed = Some(way.closed().clone()).filter(|closed| closed.is_beneath(&place));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let until = Instant::now() + PATIENCE;
        Self { place, levels, limit, stop, until, closed, seen: 0, found: Vec::new(), is_cut: false, refusal: None }
    }

    fn visit(&mut self, folder: &Root, above: &str, level: u64, wanted: &dyn Fn(&str) -> bool) -> ControlFlow<()> {
        for Entry { name, kind } in self.names(folder, level)? {
            let told = name.to_string_lossy();
            let path = if above.is_empty() { told.into_owned() } else { format!("{above}/{told}") };
            if self.is_closed(&path) {
                continue;
            }
            if wanted(&path) {
                if self.found.len() == self.limit {
                    return ControlFlow::Break(());
                }
                self.found.push(json!({ "path": path, "kind": kind.name() }));
            }
            if kind != Kind::Folder {
                continue;
            }
            if level == self.levels {
                self.is_cut = true;
                continue;
            }
            match folder.spot(Path::new(&name)).and_then(|spot| spot.open_folder()) {
                Ok(beneath) => self.visit(&beneath, &path, level + 1, wanted)?,
                // Another file system's, or a link by now, or not to be read.
                Err(_) => self.is_cut = true,
            }
        }
        ControlFlow::Continue(())
    }

    /// Tells whether a folder is closed. No link was followed down here, so its path is where it is.
    fn is_closed(&self, path: &str) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.holds(&self.place.join(path)))
    }

    /// Lists a folder, in order.
    fn names(&mut self, folder: &Root, level: u64) -> ControlFlow<(), Vec<Entry>> {
        let mut names = Vec::new();
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) => {
                self.is_cut = true;
                if level == 1 {
                    self.refusal = Some(Refusal::new(Code::Failed, format!("{}: {error}", self.place.display())));
                }
                return ControlFlow::Continue(names);
            }
        };
        for entry in entries {
            self.seen += 1;
            if self.seen > MAX_SEEN || self.stop.is_stopped() || Instant::now() > self.until {
                return ControlFlow::Break(());
            }
            match entry {
                Ok(entry) => names.push(entry),
                Err(_) => self.is_cut = true,
            }
        }
        names.sort_by(|a, b| a.name.cmp(&b.name));
        ControlFlow::Continue(names)
    }
}
