//! What in a project's own files would have its language server run something of the project's, or load it. Most of it is
//! overruled by what servers are told and given (`catalogue.rs`); of what cannot be overruled the project is refused, unless
//! a person has set `runs_project_code`.
//!
//! Of the servers that are known only rust-analyzer is led by such files: its own settings name the formatter, and cargo's
//! name variables that reach the compiler. pyright asks the python on PATH and none of the project's, clangd asks no compiler
//! (`--query-driver`), tsc loads no plugins, and gopls is overruled.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use prism_core::policy::{Code, Refusal};
use prism_os::root;

use super::catalogue::ServerKind;
use crate::{
    disk::walk::{FolderWalk, MOST_LEVELS, WalkOptions, WalkVisitor},
    roots::{GrantedRoots, ResolvedPath},
    state::Cancellation,
};

/// Bytes of such a file; a longer one is refused unread.
const MAX_READ: u64 = 1 << 20;

/// Folders that no server takes for sources, and that hold a lot.
const LEFT_OUT: [&str; 3] = [".git", "target", "node_modules"];

/// Names that rust-analyzer reads its settings by.
const OWN: [&str; 2] = ["rust-analyzer.toml", ".rust-analyzer.toml"];

const PROJECTS: [&str; 2] = ["rust-project.json", ".rust-project.json"];

const CARGO: [&str; 2] = [".cargo/config.toml", ".cargo/config"];

/// Keys of cargo's settings that name what is run, or what is run with, and that no variable overrules.
const REFUSED: [&str; 3] = ["env", "include", "credential-alias"];

/// Refuses a project that would have its server run something. `reach` is the granted folder that it is in. Blocks.
pub(crate) fn refuse(kind: &ServerKind, folder: &Path, reach: &Path, roots: &GrantedRoots) -> Result<(), Refusal> {
    if !is_led(kind) {
        return Ok(());
    }
    let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(reach));
    let mut files: Vec<PathBuf> = above.flat_map(|above| CARGO.map(|name| above.join(name))).collect();
    files.extend(beneath(folder, roots)?);
    files.iter().try_for_each(|path| check(path, reach, roots))
}

/// Tells whether a file, or a folder, may be one that `refuse` has to look at.
pub(crate) fn may_be(kind: &ServerKind, path: &Path) -> bool {
    let is_one = || OWN.iter().chain(&PROJECTS).chain(&CARGO).any(|name| path.ends_with(name));
    is_led(kind) && (path.ends_with(".cargo") || is_one())
}

fn is_led(kind: &ServerKind) -> bool {
    kind.name == "rust-analyzer"
}

/// Such files in a project. Of cargo's only those at the top and one level below: it is run where a project begins, and
/// reads what is there and above.
fn beneath(folder: &Path, roots: &GrantedRoots) -> Result<Vec<PathBuf>, Refusal> {
    let written = folder.display().to_string();
    let way = roots.resolve(&written)?;
    let handle = way.folder()?;
    let found = PlantedFiles::default();
    let is_all = FolderWalk::new(
        &way,
        &handle,
        WalkOptions { hidden: true, ignored: true },
        MOST_LEVELS,
        &Cancellation::never(),
    )
    .run(&way, &handle, &found)?;
    if !is_all {
        return Err(refusal(
            folder,
            "it is too large to be looked through for files that have its server run something",
        ));
    }
    let found = found.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(found.into_iter().map(|path| folder.join(path)).collect())
}

#[derive(Default)]
struct PlantedFiles(Mutex<Vec<PathBuf>>);

impl WalkVisitor for PlantedFiles {
    type Own = ();

    fn own(&self) {}

    fn is_beyond(&self, path: &Path) -> bool {
        LEFT_OUT.iter().any(|name| path.ends_with(name))
    }

    fn met(&self, entries: &[(PathBuf, root::FileKind)]) {
        let ends_with = |path: &Path, names: &[&str]| names.iter().any(|name| path.ends_with(name));
        for (path, kind) in entries {
            let levels = path.components().count();
            let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A link is met and not followed, and cargo would follow it.
            if path.ends_with(".cargo") && *kind != root::FileKind::Folder && levels <= 2 {
                found.extend(["config.toml", "config"].map(|name| path.join(name)));
            }
            let is_one = ends_with(path, &OWN)
                || levels == 1 && ends_with(path, &PROJECTS)
                || levels <= 3 && ends_with(path, &CARGO);
            if is_one {
                found.push(path.clone());
            }
        }
    }
}

fn check(path: &Path, reach: &Path, roots: &GrantedRoots) -> Result<(), Refusal> {
    let written = path.display().to_string();
    let file = match roots.resolve(&written).and_then(|way: ResolvedPath| way.open_file()) {
        Ok(file) => file,
        Err(refusal) if refusal.code == Code::NotFound => return Ok(()),
        Err(_) => return Err(refusal(path, "it cannot be read, and a language server might")),
    };
    if OWN.iter().any(|name| path.ends_with(name)) {
        return Err(refusal(path, "it can name programs that rust-analyzer runs"));
    }
    let mut text = String::new();
    match file.take(MAX_READ + 1).read_to_string(&mut text) {
        Ok(read) if read as u64 <= MAX_READ => {}
        _ => return Err(refusal(path, "it cannot be read as a text of at most 1 MiB")),
    }
    if PROJECTS.iter().any(|name| path.ends_with(name)) {
        let is_own = names_toolchain(&text, reach);
        return if is_own { Err(refusal(path, "it names a toolchain within the project")) } else { Ok(()) };
    }
    let Ok(settings) = text.parse::<toml::Table>() else {
        return Err(refusal(path, "it is no TOML"));
    };
    match settings.keys().find(|key| REFUSED.contains(&key.as_str())) {
        Some(key) => Err(refusal(path, &format!("its `{key}` reaches the programs that cargo starts"))),
        None if has_provider(&settings) => Err(refusal(path, "it names programs that cargo runs for credentials")),
        None => Ok(()),
    }
}

/// Tells whether compilers would be run from the project. What is no JSON, nobody can read.
fn names_toolchain(text: &str, reach: &Path) -> bool {
    let Ok(project) = serde_json::from_str::<serde_json::Value>(text) else { return false };
    let mut named = ["sysroot", "sysroot_src"].into_iter().filter_map(|name| project.get(name)?.as_str());
    named.any(|folder| !folder.starts_with('/') || folder.contains("..") || Path::new(folder).starts_with(reach))
}

fn has_provider(table: &toml::Table) -> bool {
    table.iter().any(|(key, value)| {
        matches!(key.as_str(), "credential-provider" | "global-credential-providers")
            || value.as_table().is_some_and(has_provider)
    })
}

fn refusal(path: &Path, why: &str) -> Refusal {
    let message = format!(
        "no language server is started for this project because of {}: {why}; a person who trusts the project can set \
         `runs_project_code` of `[editor]`",
        path.display()
    );
    Refusal::new(Code::Unsupported, message)
}
