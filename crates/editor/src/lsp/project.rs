//! Which project a file belongs to: the nearest folder above it that looks like one of its language, within what was granted.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use super::catalogue::ServerKind;
use crate::roots::GrantedRoots;

/// Bytes of a project's file that are looked at.
const MAX_LOOKED_AT: u64 = 1 << 20;

/// Returns the project's folder; the granted folder itself where nothing looks like one. `None` if the file is not granted.
pub(crate) fn of(path: &Path, kind: &ServerKind, roots: &GrantedRoots) -> Option<PathBuf> {
    let root = root_of(path, roots)?;
    let above: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&root)).collect();
    let is_marked = |folder: &Path| kind.markers.iter().any(|marker| is_file(&folder.join(marker), roots));
    let nearest = above.iter().position(|folder| is_marked(folder));
    let Some(nearest) = nearest else { return Some(root) };
    let widest = kind.wide.zip(kind.markers.first()).and_then(|(sign, marker)| {
        above[nearest..].iter().rev().find(|folder| holds(&folder.join(marker), sign, roots))
    });
    Some(widest.unwrap_or(&above[nearest]).to_path_buf())
}

/// The narrowest granted folder that a path lies in by name.
pub(crate) fn root_of(path: &Path, roots: &GrantedRoots) -> Option<PathBuf> {
    let roots = roots.names().iter().map(|root| PathBuf::from(root.to_string()));
    roots.filter(|root| path.starts_with(root)).max_by_key(|root| root.as_os_str().len())
}

fn is_file(path: &Path, roots: &GrantedRoots) -> bool {
    path.to_str().is_some_and(|path| roots.resolve(path).and_then(|way| way.open_file()).is_ok())
}

fn holds(path: &Path, sign: &str, roots: &GrantedRoots) -> bool {
    let file = path.to_str().and_then(|path| roots.resolve(path).and_then(|way| way.open_file()).ok());
    let mut text = String::new();
    let read = file.map(|file| file.take(MAX_LOOKED_AT).read_to_string(&mut text));
    matches!(read, Some(Ok(_))) && text.contains(sign)
}
