//! What there is to be known of the granted folders at a glance: what is checked out there, what is built there and in which
//! languages, and how what is started there is fenced in.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use prism_core::policy::Refusal;
use prism_os::root::{FileKind, FolderHandle};
use serde_json::{Value, json};

use super::RuntimeState;
use crate::{
    args::Args,
    disk::walk::{FolderWalk, MOST_LEVELS, WalkOptions, WalkVisitor},
    language::SourceLanguage,
    prepared::{Opened, Work},
    roots::{ResolvedPath, place},
    run::{fence::FenceReport, git, project},
    shown::ActionPreview,
    state::Cancellation,
    state::OrderContext,
};

/// Folders that are looked at whether they are projects. A folder with more is one of copies, and the answer says that it is
/// not complete.
const MAX_PROJECTS: usize = 200;

/// A folder that is open, or why it is not, and its name.
type Named = (Result<(FolderHandle, ResolvedPath), Refusal>, String);

pub(crate) fn info(mut args: Args, context: &OrderContext<RuntimeState>) -> Result<Opened, Refusal> {
    let path = args.maybe_text("path")?;
    args.done()?;
    let roots = context.roots.clone();
    let opened = |way: ResolvedPath| Ok((way.folder()?, way));
    let folders: Vec<Named> = match path {
        Some(path) => vec![(Ok(opened(roots.resolve(&path)?)?), path)],
        None => {
            let folder = |root| roots.root(root).and_then(opened);
            roots.names().iter().map(|root| (folder(root), root.to_string())).collect()
        }
    };
    let context = context.clone();
    let work = Work::new(move |stop| {
        let about = |(folder, name): &Named| match folder {
            Ok((folder, way)) => about(folder, way, &context, stop),
            Err(refusal) => Ok(json!({ "path": name, "is_there": false, "why": refusal.message, "git": null })),
        };
        let roots = folders.iter().map(about).collect::<Result<Vec<Value>, Refusal>>()?;
        Ok(
            json!({ "roots": roots, "runtime": { "kind": "built-in", "ui": false }, "fence": FenceReport::of(context.state.fences.kind().as_ref()) }),
        )
    });
    Ok((ActionPreview::plain("Look at the granted folders"), work))
}

fn about(
    folder: &FolderHandle,
    way: &ResolvedPath,
    context: &OrderContext<RuntimeState>,
    stop: &Cancellation,
) -> Result<Value, Refusal> {
    let OrderContext { roots, state, .. } = context;
    let path = place(folder, way.written());
    let census = TallyVisitor::default();
    let is_complete =
        FolderWalk::new(way, folder, WalkOptions::default(), MOST_LEVELS, stop).run(way, folder, &census)?;
    let FolderTally { languages, marked } = census.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let languages: BTreeMap<&str, u64> =
        languages.into_iter().map(|(language, files)| (language.id(), files)).collect();
    let is_all = is_complete && marked.len() <= MAX_PROJECTS;
    let project = |marked: PathBuf| {
        let tool = project::tool_of(&folder.beneath(&marked).ok()?)?;
        let folder = if marked.as_os_str().is_empty() { path.clone() } else { path.join(marked) };
        Some(json!({ "tool": tool, "path": folder }))
    };
    let projects: Vec<Value> = marked.into_iter().take(MAX_PROJECTS).filter_map(project).collect();
    let is_about = |served: &Path| roots.holds(served) && (served.starts_with(&path) || path.starts_with(served));
    Ok(json!({
        "path": path,
        "is_there": true,
        "git": git::glance(roots, &path.display().to_string()),
        "languages": languages,
        "projects": projects,
        "servers": state.lsp.servers.list(is_about),
        "watched": state.watches.extent(&path),
        "is_complete": is_all,
    }))
}

/// Counts what is met.
#[derive(Default)]
struct TallyVisitor(Mutex<FolderTally>);

#[derive(Default)]
struct FolderTally {
    languages: BTreeMap<SourceLanguage, u64>,
    /// Folders that may be projects, in order.
    marked: BTreeSet<PathBuf>,
}

impl WalkVisitor for TallyVisitor {
    type Own = ();

    fn own(&self) {}

    fn is_beyond(&self, _path: &Path) -> bool {
        false
    }

    fn met(&self, entries: &[(PathBuf, FileKind)]) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, kind) in entries {
            if let Some(language) = SourceLanguage::of(path).filter(|_| *kind == FileKind::File) {
                *counted.languages.entry(language).or_default() += 1;
            }
            // One more than is looked at, to know that there are more.
            if path.file_name().is_some_and(project::is_mark) && counted.marked.len() <= MAX_PROJECTS {
                counted.marked.insert(path.parent().map(Path::to_owned).unwrap_or_default());
            }
        }
    }
}
