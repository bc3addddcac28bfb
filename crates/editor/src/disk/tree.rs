//! What lies beneath a folder: all of it to some depth, or what a pattern is about.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use prism_core::policy::Refusal;
use prism_os::root::FileKind;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    disk::{
        glob::PathGlob,
        walk::{BestPaths, FolderWalk, MOST_LEVELS, WalkOptions, WalkVisitor},
    },
    prepared::Work,
    roots::place,
    shown::ActionPreview,
    text::TextContext,
};

/// What an answer holds at most, and if nothing else is said. The rest is left out, and the answer says that it is not
/// complete.
const MOST_ENTRIES: u64 = 10_000;
const USUAL_ENTRIES: u64 = 1_000;

const USUAL_LEVELS: u64 = 3;

pub(crate) fn explore(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let levels = args.number("depth", 1, MOST_LEVELS)?.unwrap_or(USUAL_LEVELS);
    list(args, context, "List", levels, None)
}

pub(crate) fn search(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let pattern = args.text("pattern")?;
    let glob = PathGlob::new(&pattern).map_err(|why| wrong(format!("`pattern` {why}")))?;
    list(args, context, "Search", MOST_LEVELS, Some(glob))
}

fn list(
    mut args: Args,
    context: &TextContext,
    verb: &str,
    levels: u64,
    glob: Option<PathGlob>,
) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let limit = args.number("limit", 1, MOST_ENTRIES)?.unwrap_or(USUAL_ENTRIES);
    let also = WalkOptions { hidden: args.flag("hidden")?, ignored: args.flag("ignored")? };
    args.done()?;
    let way = path.as_deref().map_or_else(|| context.roots.first(), |path| context.roots.resolve(path))?;
    let folder = way.folder()?;
    let shown = ActionPreview::plain(format!("{verb} {}", place(&folder, way.written()).display()));
    let work = Work::new(move |stop| {
        let listed =
            TreeListing { glob, found: Mutex::new(BestPaths::new(usize::try_from(limit).unwrap_or(usize::MAX))) };
        let walk = FolderWalk::new(&way, &folder, also, levels, stop);
        let is_all = walk.run(&way, &folder, &listed)?;
        let found = listed.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_complete = is_all && !found.is_over();
        let entry = |(path, kinds): (PathBuf, Vec<FileKind>)| json!({ "path": path.to_string_lossy(), "kind": kinds[0].name() });
        let entries: Vec<Value> = found.into_found().into_iter().map(entry).collect();
        Ok(json!({ "path": walk.place(), "entries": entries, "is_complete": is_complete }))
    });
    Ok((shown, work))
}

struct TreeListing {
    glob: Option<PathGlob>,
    found: Mutex<BestPaths<FileKind>>,
}

impl WalkVisitor for TreeListing {
    type Own = ();

    fn own(&self) {}

    fn is_beyond(&self, path: &Path) -> bool {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).is_beyond(path)
    }

    fn met(&self, entries: &[(PathBuf, FileKind)]) {
        let wanted = |path: &Path| self.glob.as_ref().is_none_or(|glob| glob.matches(&path.to_string_lossy()));
        let wanted: Vec<_> = entries.iter().filter(|(path, _)| wanted(path)).collect();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, kind) in wanted {
            found.insert(path, vec![*kind], false);
        }
    }
}
