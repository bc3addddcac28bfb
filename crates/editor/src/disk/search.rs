//! Words and expressions in a file or in all files beneath a folder. What is open and not saved counts as it is in the
//! buffer.

mod engine;
mod pattern;
mod replace;

use std::{
    collections::HashMap,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use engine::SearchHits;
pub(crate) use engine::{Engine, SearchHit};
pub(crate) use pattern::{Pattern, SearchOptions};
use prism_core::policy::{Code, Refusal};
use prism_os::root::{FolderHandle, FolderListing};
pub(crate) use replace::replace;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    disk::{
        glob::PathGlob,
        walk::{BestPaths, FolderWalk, MOST_LEVELS, WalkOptions, WalkVisitor},
    },
    prepared::Work,
    refusal::failed,
    roots::{ResolvedPath, place},
    shown::ActionPreview,
    state::Cancellation,
    text::{TextContext, buffers::Buffers},
};

/// Places that an answer holds at most, and if nothing else is said; it says if there are more.
pub(crate) const MOST_MATCHES: u64 = 10_000;
pub(crate) const USUAL_MATCHES: u64 = 1_000;

/// Texts that are open and not saved, by where their files are.
type Unsaved = HashMap<PathBuf, Arc<str>>;

/// Where is searched.
enum SearchStart {
    Folder(FolderHandle),
    File(File),
}

/// What is searched for, and which files count.
struct FileSearch {
    pattern: Pattern,
    glob: Option<PathGlob>,
    also: WalkOptions,
    limit: usize,
}

/// What was found, by path and in order.
struct SearchResults {
    files: Vec<(PathBuf, Vec<SearchHit>)>,
    is_complete: bool,
}

pub(crate) fn words(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let words = args.text("text")?;
    let how = SearchOptions {
        ignores_case: args.flag("ignore_case")?,
        is_word: args.flag("word")?,
        ..SearchOptions::default()
    };
    let pattern = Pattern::words(&words, how).map_err(|why| wrong(format!("`text` {why}")))?;
    search(args, context, pattern)
}

pub(crate) fn expression(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let expression = args.text("pattern")?;
    let how = SearchOptions {
        ignores_case: args.flag("ignore_case")?,
        is_multiline: args.flag("multiline")?,
        ..SearchOptions::default()
    };
    let pattern = Pattern::expression(&expression, how).map_err(|why| wrong(format!("`pattern` {why}")))?;
    search(args, context, pattern)
}

fn search(mut args: Args, context: &TextContext, pattern: Pattern) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let glob = glob(&mut args)?;
    let also = WalkOptions { hidden: args.flag("hidden")?, ignored: args.flag("ignored")? };
    let limit = args.number("limit", 1, MOST_MATCHES)?.unwrap_or(USUAL_MATCHES);
    args.done()?;
    let search = FileSearch { pattern, glob, also, limit: usize::try_from(limit).unwrap_or(usize::MAX) };
    let way = path.as_deref().map_or_else(|| context.roots.first(), |path| context.roots.resolve(path))?;
    let (at, place) = SearchStart::of(&way)?;
    let shown = ActionPreview::plain(format!("Search {}", place.display()));
    let state = context.state.clone();
    let work = Work::new(move |stop| {
        let found = search.run(&way, at, &place, &unsaved_beneath(&state.buffers, &place), stop)?;
        let files = found.files.len();
        let told = |(path, hits): (PathBuf, Vec<SearchHit>)| {
            let path = path.display().to_string();
            hits.into_iter()
                .map(move |hit| json!({ "path": path, "range": hit.range_json(), "line_text": hit.line_text }))
        };
        let matches: Vec<Value> = found.files.into_iter().flat_map(told).collect();
        Ok(json!({ "matches": matches, "files": files, "is_complete": found.is_complete }))
    });
    Ok((shown, work))
}

fn unsaved_beneath(buffers: &Buffers, place: &Path) -> Unsaved {
    let dirty = buffers.dirty_beneath(place).into_iter();
    dirty.map(|buffer| (buffer.path().to_owned(), buffer.snapshot().text)).collect()
}

fn glob(args: &mut Args) -> Result<Option<PathGlob>, Refusal> {
    let glob = args.maybe_text("glob")?;
    glob.map(|glob| PathGlob::new(&glob).map_err(|why| wrong(format!("`glob` {why}")))).transpose()
}

// === impl SearchStart ===

impl SearchStart {
    /// Opens what a way leads to, and says where it is.
    fn of(way: &ResolvedPath) -> Result<(Self, PathBuf), Refusal> {
        match way.folder() {
            Ok(folder) => {
                let place = place(&folder, way.written());
                Ok((Self::Folder(folder), place))
            }
            // A part of the way that is not a folder, most likely the last.
            Err(refusal) if refusal.code == Code::BadArguments => {
                let (file, place) = way.open_placed()?;
                Ok((Self::File(file), place))
            }
            Err(refusal) => Err(refusal),
        }
    }
}

// === impl FileSearch ===

impl FileSearch {
    /// Searches, and gives the whole paths of what was found.
    fn run(
        &self,
        way: &ResolvedPath,
        at: SearchStart,
        place: &Path,
        unsaved: &Unsaved,
        stop: &Cancellation,
    ) -> Result<SearchResults, Refusal> {
        let folder = match at {
            SearchStart::Folder(folder) => folder,
            SearchStart::File(file) => return self.one(file, place, unsaved, stop),
        };
        let walk = FolderWalk::new(way, &folder, self.also, MOST_LEVELS, stop);
        let found = Mutex::new(BestPaths::new(self.limit));
        let visit = SearchVisitor { search: self, place, unsaved, found };
        let is_all = walk.run(way, &folder, &visit)?;
        visit.look_without_file(&folder);
        let found = visit.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_complete = is_all && !found.is_over();
        let files = found.into_found().into_iter().map(|(path, hits)| (place.join(path), hits)).collect();
        Ok(SearchResults { files, is_complete })
    }

    fn one(&self, file: File, place: &Path, unsaved: &Unsaved, stop: &Cancellation) -> Result<SearchResults, Refusal> {
        let mut engine = Engine::new(&self.pattern);
        let searched = match unsaved.get(place) {
            Some(text) => engine.text(text, self.limit, None).map(Some),
            None => engine.read(file, self.limit, || stop.is_stopped()),
        };
        let hits = match searched {
            Ok(Some(hits)) => hits,
            Ok(None) => return Err(wrong(format!("{:?} is no text", place.display().to_string()))),
            Err(_) if stop.is_stopped() => return Err(failed("nobody waits for it any more")),
            Err(error) => return Err(failed(format!("{}: {error}", place.display()))),
        };
        let is_complete = !hits.is_cut;
        let files = if hits.hits.is_empty() { Vec::new() } else { vec![(place.to_owned(), hits.hits)] };
        Ok(SearchResults { files, is_complete })
    }
}

// === impl SearchHit ===

impl SearchHit {
    pub(crate) fn to_json(&self) -> Value {
        json!({ "range": self.range_json(), "line_text": self.line_text })
    }

    fn range_json(&self) -> Value {
        let at = |(line, character): (u64, u64)| json!({ "line": line, "character": character });
        json!({ "start": at(self.start), "end": at(self.end) })
    }
}

/// A search on its way.
struct SearchVisitor<'a> {
    search: &'a FileSearch,
    place: &'a Path,
    unsaved: &'a Unsaved,
    found: Mutex<BestPaths<SearchHit>>,
}

impl SearchVisitor<'_> {
    /// Searches unsaved text whose file somebody has removed: no walk meets it.
    fn look_without_file(&self, folder: &FolderHandle) {
        for (path, text) in self.unsaved {
            let Ok(path) = path.strip_prefix(self.place) else { continue };
            let spot = folder.spot(path);
            let is_there = spot.is_ok_and(|spot| !matches!(spot.look(), Ok(None)));
            if is_there || !self.wants(path) || self.is_beyond(path) {
                continue;
            }
            if let Ok(hits) = self.own().text(text, self.search.limit, None) {
                self.insert(path, hits);
            }
        }
    }

    fn insert(&self, path: &Path, hits: SearchHits) {
        if !hits.hits.is_empty() {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.insert(path, hits.hits, hits.is_cut);
        }
    }
}

impl WalkVisitor for SearchVisitor<'_> {
    type Own = Engine;

    fn own(&self) -> Engine {
        Engine::new(&self.search.pattern)
    }

    fn is_beyond(&self, path: &Path) -> bool {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).is_beyond(path)
    }

    fn wants(&self, path: &Path) -> bool {
        self.search.glob.as_ref().is_none_or(|glob| glob.matches(&path.to_string_lossy()))
    }

    fn look(&self, engine: &mut Engine, folder: &FolderListing, path: &Path, walk: &FolderWalk<'_>) {
        let limit = self.search.limit;
        let unsaved = if self.unsaved.is_empty() { None } else { self.unsaved.get(&self.place.join(path)) };
        let searched = match unsaved {
            Some(text) => engine.text(text, limit, None).map(Some),
            None => match folder.file(path.file_name().unwrap_or_default()) {
                Ok((file, _)) => engine.read(file, limit, || walk.is_over()),
                Err(error) => return walk.failed(&error),
            },
        };
        match searched {
            Ok(Some(hits)) => self.insert(path, hits),
            Ok(None) => {}
            // Too long a line, or the file cannot be read to its end.
            Err(_) => walk.cut(),
        }
    }
}
