//! Where an order's paths really are, for an editor that does it: it opens by name, so it is given the names of what was
//! found by handle beneath the granted folders.

use std::path::{Path, PathBuf};

use prism_core::policy::{Code, GrantRoot, Refusal, VerbSpec};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;

use crate::{
    dispatch::{BuiltinEditor, VerbOrder},
    happening::EditorEvent,
    roots::{GrantedRoots, ResolvedPath, place},
    state::Cancellation,
    text::buffers::ReleasedText,
};

/// An order's arguments with all paths absolute and real, and these paths; with none, the first granted folder.
#[derive(Clone, Debug)]
pub struct ResolvedArgs {
    pub args: Map<String, Value>,
    pub paths: Vec<PathBuf>,
}

/// Paths of one order that are looked up.
const MAX_PATHS: usize = 200;

impl BuiltinEditor {
    /// Finds what an order is about. Nothing is changed.
    pub async fn locate(&self, order: &VerbOrder) -> Result<ResolvedArgs, Refusal> {
        let (verb, args, roots, editor) = (order.verb, order.args.clone(), order.roots.clone(), &self.state().editor);
        let roots = GrantedRoots::new(roots, editor.closed.clone());
        editor.blocking(move |_| located(verb, args, &roots)).await
    }

    /// Gives up all that is open beneath a folder; returns what was unsaved.
    pub async fn surrender(&self, folder: &Path) -> Vec<ReleasedText> {
        let (text, folder) = (self.state().text.clone(), folder.to_owned());
        // Not in the queue of all others, which may refuse: texts that stayed here would have two owners.
        spawn_blocking(move || text.buffers.surrender(&folder)).await.unwrap_or_default()
    }

    /// Opens a file beneath a folder with a text that is not saved.
    pub async fn adopt(&self, root: &Path, path: &Path, text: &str) -> Result<(), Refusal> {
        let named = |path: &Path| path.to_str().map(str::to_owned);
        let names = named(root).and_then(|root| Some((GrantRoot::new(&root).ok()?, named(path)?)));
        let (root, path) = names.ok_or_else(|| Refusal::new(Code::Failed, "its path is no text"))?;
        let (editor, open, text) = (&self.state().editor, self.state().text.clone(), text.to_owned());
        let adopt = move |_: &Cancellation| {
            let roots = GrantedRoots::new(vec![root], open.editor.closed.clone());
            open.buffers.adopt(&roots.resolve(&path)?, &text)
        };
        editor.blocking(adopt).await
    }

    /// Tells of something that happened in another editor.
    pub fn tell(&self, happening: EditorEvent) {
        self.state().editor.happenings.pass_on(happening);
    }
}

fn located(verb: &VerbSpec, mut args: Map<String, Value>, roots: &GrantedRoots) -> Result<ResolvedArgs, Refusal> {
    // Who does it may have more than was granted open: what stands for the granted folder is said.
    if let Some(name) = folder_of(verb)
        && args.get(name).is_none_or(Value::is_null)
    {
        args.insert(name.to_owned(), place(roots.first()?.folder()?, "").display().to_string().into());
    }
    let mut paths = Vec::new();
    let mut put = |value: &mut Value, name: &str| -> Result<(), Refusal> {
        // What is no text is refused by whoever does the verb.
        let Value::String(written) = value else { return Ok(()) };
        if paths.len() >= MAX_PATHS {
            return Err(Refusal::new(Code::TooLarge, format!("at most {MAX_PATHS} paths at once")));
        }
        let path = real(verb, name, &roots.resolve(written)?)?;
        *written = path.display().to_string();
        paths.push(path);
        Ok(())
    };
    for name in verb.paths {
        if let Some(value) = args.get_mut(*name) {
            put(value, name)?;
        }
    }
    if let Some(Value::Array(files)) = args.get_mut("files") {
        files.iter_mut().filter_map(|file| file.get_mut("path")).try_for_each(|path| put(path, "path"))?;
    }
    if let Some(Value::Array(listed)) = args.get_mut("paths") {
        listed.iter_mut().try_for_each(|path| put(path, "path"))?;
    }
    if paths.is_empty() {
        paths.push(place(roots.first()?.folder()?, ""));
    }
    Ok(ResolvedArgs { args, paths })
}

/// The argument of a verb that is the first granted folder if it is not given.
fn folder_of(verb: &VerbSpec) -> Option<&'static str> {
    match verb.verb {
        "search_files" | "explore_tree" | "get_workspace_info" | "find_in_project" | "regex_search"
        | "replace_text" => Some("path"),
        "build_project" | "run_tests" | "exec_command" | "open_terminal" => Some("cwd"),
        "git_status" | "git_add" | "git_commit" | "git_diff" | "git_branch" => Some("cwd"),
        _ => None,
    }
}

fn real(verb: &VerbSpec, name: &str, way: &ResolvedPath) -> Result<PathBuf, Refusal> {
    match (verb.verb, name) {
        // These are about a name, not about what a link by that name leads to.
        ("delete_file" | "rename_file", "path") => {
            let spot = way.spot()?;
            Ok(place(spot.folder(), way.written()).join(spot.name()))
        }
        ("create_file", _) | (_, "new_path") => Ok(PathBuf::from(way.nearest()?.path())),
        _ => match way.folder() {
            Ok(folder) => Ok(place(&folder, way.written())),
            Err(refusal) if matches!(refusal.code, Code::BadArguments | Code::NotFound) => way.real_path(),
            Err(refusal) => Err(refusal),
        },
    }
}
