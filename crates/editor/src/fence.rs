//! The usual fence: what commands, builds, terminals, language servers and git may touch beside the granted folders. How the
//! kernel is told is in `prism_os::fence`.
//!
//! Of the system all may be read that others may read too; of the user's home folder only what toolchains keep there, file by
//! file where a secret lies beside it (`.cargo/credentials.toml`, `.config/git/credentials`). What is written outside of the
//! granted folders goes to a folder for temporary files that only this holder has, and to the toolchains' caches.

mod temporary;
mod usual;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use prism_core::policy::Refusal;
use prism_os::{
    fence::{Enforced, Fence},
    root::Root,
};
use serde_json::{Value, json};

use crate::{Settings, ground::Ground, runtime::failed};
use temporary::Temporary;

/// Makes fences, and keeps the folders for temporary files.
#[derive(Debug)]
pub(crate) struct Fences {
    /// `None`: they are switched off.
    usual: Option<Usual>,
    /// Where folders for temporary files are made.
    base: PathBuf,
    temporary: Mutex<HashMap<u128, Arc<Temporary>>>,
}

#[derive(Debug)]
struct Usual {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    closed: Vec<PathBuf>,
    /// What go keeps its cache in, if it has none in the home folder yet that could be written.
    lacks_go_cache: bool,
}

/// A fence for one child, and what the child's environment says of it. To be kept while the child runs.
#[derive(Debug)]
pub(crate) struct Around {
    /// `None`: they are switched off.
    pub(crate) fence: Option<Fence>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    _temporary: Option<Arc<Temporary>>,
}

// === impl Fences ===

impl Fences {
    /// `env` is what the children are given, and `closed` what they never touch: Prism's own folder.
    pub(crate) fn new(settings: &Settings, env: &BTreeMap<OsString, OsString>, closed: Vec<PathBuf>) -> Self {
        let base = env.get(OsStr::new("TMPDIR")).map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        if settings.fence {
            temporary::clear(&base);
        }
        let usual = settings.fence.then(|| Usual::new(settings, env, closed));
        Self { usual, base, temporary: Mutex::default() }
    }

    /// A fence around granted folders, for a holder. Blocks.
    pub(crate) fn around(&self, ground: &Ground, holder: u128) -> Result<Around, Refusal> {
        // One that is not there cannot be touched either.
        let held = ground.roots().iter().filter_map(|root| ground.root(root).and_then(|way| way.folder()).ok());
        self.around_folders(held.collect(), holder).map_err(|error| {
            failed(format!(
                "cannot make a folder for temporary files in {:?}: {error}; set TMPDIR to a folder that can be written",
                self.base
            ))
        })
    }

    pub(crate) fn around_folders(&self, held: Vec<Root>, holder: u128) -> io::Result<Around> {
        let Some(usual) = &self.usual else {
            return Ok(Around { fence: None, env: BTreeMap::new(), _temporary: None });
        };
        let temporary = self.temporary_of(holder)?;
        let folder = temporary.path();
        let mut env: BTreeMap<OsString, OsString> =
            ["TMPDIR", "TMP", "TEMP"].map(|name| (name.into(), folder.as_os_str().to_owned())).into();
        if usual.lacks_go_cache {
            env.insert("GOCACHE".into(), folder.join("go-build").into());
        }
        let write = usual.write.iter().cloned().chain([folder.to_owned()]).collect();
        let fence = Fence { read: usual.read.clone(), write, held, exec: None, closed: usual.closed.clone() };
        Ok(Around { fence: Some(fence), env, _temporary: Some(temporary) })
    }

    fn temporary_of(&self, holder: u128) -> io::Result<Arc<Temporary>> {
        let mut all = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.get(&holder).filter(|made| made.path().is_dir()) {
            return Ok(made.clone());
        }
        let made = Arc::new(Temporary::make(&self.base)?);
        all.insert(holder, made.clone());
        Ok(made)
    }

    /// A holder is no more: its temporary files go as soon as nothing of its runs.
    pub(crate) fn left(&self, holder: u128) {
        self.temporary.lock().unwrap_or_else(PoisonError::into_inner).remove(&holder);
    }

    /// Removes the temporary files of all. Blocks.
    pub(crate) fn close(&self) {
        let all = std::mem::take(&mut *self.temporary.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_values().filter_map(Arc::into_inner).for_each(Temporary::remove);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.usual.is_some()
    }
}

// === impl Around ===

#[cfg(test)]
impl Around {
    /// The folder for temporary files, where there is one.
    pub(crate) fn temporary(&self) -> Option<&std::path::Path> {
        self._temporary.as_deref().map(Temporary::path)
    }
}

/// Says in a result what was enforced.
pub(crate) fn told(enforced: Option<&Enforced>) -> Value {
    match enforced {
        None => json!({ "enforced": "none", "why": "fences are switched off (`fence` of `[editor]`)" }),
        Some(Enforced::None { why }) => json!({ "enforced": "none", "why": why }),
        Some(Enforced::Landlock { abi, is_whole, cramped }) => {
            let mut told = json!({ "enforced": "landlock", "abi": abi });
            let mut why = Vec::new();
            if !is_whole {
                why.push("this kernel can keep a part of it only: newer ones can do more".to_owned());
            }
            why.extend(cramped.iter().map(|folder| {
                format!("Prism's own folder lies beneath {folder:?}, so nothing new can be made right in there")
            }));
            if !why.is_empty() {
                told["why"] = why.join("; ").into();
            }
            told
        }
    }
}

/// What programs say that were kept from a file: in the system's words, or in Python's, which misses a module then, if only of its
/// own library, and does not say why.
const SIGNS: [&str; 6] = [
    "Permission denied",
    "PermissionError",
    "EACCES",
    "ModuleNotFoundError",
    "No module named",
    "platform independent libraries",
];

const HINT: &str = "the fence may have kept it from a file: it reaches the granted folders, the system and the usual folders of \
                    toolchains; a person can add another to `readable` of `[editor]` (`writable`, to write there)";

/// What to say of a failure that may be the fence's doing.
pub(crate) fn hint(enforced: &Value, said: &[&str]) -> Option<&'static str> {
    let is_sign = |said: &&str| SIGNS.iter().any(|sign| said.contains(sign));
    (enforced["enforced"] == "landlock" && said.iter().any(is_sign)).then_some(HINT)
}

#[cfg(test)]
mod tests;
