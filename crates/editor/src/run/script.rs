//! Which files of the granted folders a command runs: `sh s.sh` says nothing of what is in `s.sh`, and who may write it has the last
//! word. So the person sees the file too, and it is not run if it has become another (L10).
//!
//! It is read from the words of the command as a person would, not as a shell does: what is hidden well enough is not found. It is
//! about what can be seen at a glance and would be taken for all of it.

mod words;

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use prism_core::policy::Refusal;
use ring::digest::{Context, SHA256};

use crate::{
    roots::{GrantedRoots, ResolvedPath},
    shown::{GivenCommand, Script},
};

/// The files of one command, each with the way to it.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Vec<(ResolvedPath, Script)>);

/// Files that are shown of a command, and of each so many bytes. A person reads no more; the digest is of all of it.
const MAX_SCRIPTS: usize = 8;
const MAX_SHOWN: usize = 16 << 10;

impl Scripts {
    /// Finds them. Blocks.
    pub(crate) fn of(roots: &GrantedRoots, command: &GivenCommand, cwd: &Path) -> Self {
        let mut scripts: Vec<(ResolvedPath, Script)> = Vec::new();
        for named in words::named(command, cwd) {
            if scripts.len() >= MAX_SCRIPTS {
                break;
            }
            let Some((way, path, script)) = found(roots, &named) else { continue };
            if scripts.iter().all(|(_, known)| Path::new(&known.path) != path) {
                scripts.push((way, script));
            }
        }
        Self(scripts)
    }

    pub(crate) fn shown(&self) -> Vec<Script> {
        self.0.iter().map(|(_, script)| script.clone()).collect()
    }

    /// Refuses if one of them is another than was shown. Blocks.
    pub(crate) fn are_still(&self) -> Result<(), Refusal> {
        for (way, script) in &self.0 {
            let now = way.open_file().ok().and_then(|file| read(file).ok());
            if now.is_none_or(|(_, _, digest)| digest != script.digest) {
                return Err(way.changed("the command runs it, and it has changed since it was shown"));
            }
        }
        Ok(())
    }
}

/// What a name leads to, if that is a file that was granted: others cannot have been written by the holder.
fn found(roots: &GrantedRoots, named: &Path) -> Option<(ResolvedPath, PathBuf, Script)> {
    let way = roots.resolve(named.to_str()?).ok()?;
    let (file, path) = way.open_placed().ok()?;
    let (bytes, begin, digest) = read(file).ok()?;
    let is_cut = bytes > begin.len() as u64;
    let content = match String::from_utf8(begin) {
        Ok(text) => Some(text),
        // Cut within a letter, it is a text all the same.
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            String::from_utf8(error.into_bytes()[..end].to_vec()).ok()
        }
        Err(_) => None,
    };
    let content = content.filter(|text| !text.contains('\0'));
    let script = Script { path: path.display().to_string(), bytes, digest, content, is_cut };
    Some((way, path, script))
}

/// How long a file is, how it begins, and its digest.
fn read(mut file: File) -> io::Result<(u64, Vec<u8>, String)> {
    let (mut bytes, mut begin, mut hash) = (0, Vec::new(), Context::new(&SHA256));
    let mut piece = vec![0; 64 << 10];
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        hash.update(&piece[..count]);
        let room = MAX_SHOWN - begin.len();
        begin.extend_from_slice(&piece[..count.min(room)]);
    }
    let digest: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((bytes, begin, digest))
}
