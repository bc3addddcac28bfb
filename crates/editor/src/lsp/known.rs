//! What is known of one server: how it is, what it can do, what it is busy with, and what it has said of files. Its task
//! writes it (`client.rs`), the verbs read it and wait for it to change.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;
use tokio::{sync::watch, time::Instant};

use super::lack;

#[derive(Debug)]
pub(crate) struct ServerKnowledge {
    facts: Mutex<ServerFacts>,
    ticks: watch::Sender<u64>,
}

#[derive(Debug)]
pub(crate) struct ServerFacts {
    pub(crate) phase: ServerPhase,
    pub(crate) capabilities: Value,
    /// What it has registered since, by its own ids.
    registered: BTreeMap<String, (String, Value)>,
    /// What it is at, by its tokens.
    progress: BTreeMap<String, String>,
    /// Whether it says that all is loaded; `None` if it is none that says so.
    is_quiet: Option<bool>,
    /// What it has not loaded and cannot, in words for who asks. What it says of the meaning of a text is a guess then.
    lacks: Vec<&'static str>,
    /// How often it has asked for its diagnostics to be fetched again.
    pub(crate) refreshes: u64,
    /// The texts that it has, and the numbers that it has them under.
    pub(crate) open: BTreeMap<PathBuf, i32>,
    /// Files that it was told of and has not been seen to have read anew.
    pub(crate) unread: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, DiagnosedFile>,
    /// Whether some of what it said about files was left out.
    pub(crate) is_cut: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerPhase {
    Starting,
    Ready,
    /// It ended because we wanted it to, for this reason.
    Stopped(String),
    /// It ended by itself, or could not be talked to.
    Died(String),
}

/// What it said of one file, of its own accord and when asked: some servers do both, about different things.
#[derive(Debug, Default)]
struct DiagnosedFile {
    pushed: Option<DiagnosticSet>,
    pulled: Option<DiagnosticSet>,
}

#[derive(Clone, Debug)]
struct DiagnosticSet {
    items: Arc<[Value]>,
    /// The buffer's version that it is about; `None` if it is about the file on the disk.
    version: Option<u64>,
    /// What the server calls this version, if it was not asked.
    number: Option<i64>,
    is_cut: bool,
}

/// All that is known of one file.
#[derive(Clone, Debug)]
pub(crate) struct Diagnosed {
    pub(crate) path: PathBuf,
    pub(crate) items: Vec<Value>,
    pub(crate) version: Option<u64>,
    /// Whether more was left out, or it may say otherwise when it has heard what it was told last, or has loaded all.
    pub(crate) is_cut: bool,
}

/// How diagnostics came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiagnosticOrigin {
    Pushed,
    /// `was_busy`: before all was loaded, so that it may say otherwise when it is asked again.
    Pulled {
        was_busy: bool,
    },
}

/// Diagnostics kept of one file. Further ones are left out, and the answer says that it is not complete.
const MAX_OF_FILE: usize = 1_000;

/// Files that diagnostics are kept of. Those of a further one are left out, and answers say that they are not complete.
const MAX_FILES: usize = 2_000;

/// Things that a server is busy with, and abilities that it registers. Further ones are not noted.
const MAX_NOTED: usize = 256;

impl ServerPhase {
    /// Why it is no more.
    pub(crate) fn end(&self) -> Option<&str> {
        match self {
            Self::Starting | Self::Ready => None,
            Self::Stopped(reason) | Self::Died(reason) => Some(reason),
        }
    }
}

// === impl ServerKnowledge ===

impl ServerKnowledge {
    /// One that tells when it is quiet is busy until it says so.
    pub(crate) fn new(tells_quiet: bool) -> Self {
        let facts = ServerFacts {
            phase: ServerPhase::Starting,
            capabilities: Value::Null,
            registered: BTreeMap::new(),
            progress: BTreeMap::new(),
            is_quiet: tells_quiet.then_some(false),
            lacks: Vec::new(),
            refreshes: 0,
            open: BTreeMap::new(),
            unread: BTreeSet::new(),
            files: BTreeMap::new(),
            is_cut: false,
        };
        Self { facts: Mutex::new(facts), ticks: watch::Sender::new(0) }
    }

    pub(crate) fn read<T>(&self, look: impl FnOnce(&ServerFacts) -> T) -> T {
        look(&self.lock())
    }

    /// Changes something, and wakes those that wait for it.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut ServerFacts) -> T) -> T {
        let outcome = change(&mut self.lock());
        self.ticks.send_modify(|tick| *tick += 1);
        outcome
    }

    /// Waits until `look` finds something, or the time is up.
    pub(crate) async fn wait<T>(&self, until: Instant, look: impl Fn(&ServerFacts) -> Option<T>) -> Option<T> {
        let mut ticks = self.ticks.subscribe();
        loop {
            ticks.mark_unchanged();
            if let Some(found) = self.read(&look) {
                return Some(found);
            }
            if !matches!(tokio::time::timeout_at(until, ticks.changed()).await, Ok(Ok(()))) {
                return None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ServerFacts> {
        // Each change is whole, whatever became of who made it.
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ServerFacts ===

impl ServerFacts {
    /// What it is busy with, in its own words; `None` if all that it says was said with everything in view.
    pub(crate) fn busy_with(&self) -> Option<String> {
        if self.phase == ServerPhase::Starting {
            return Some("starting".to_owned());
        }
        match self.progress.values().next() {
            Some(title) => Some(title.clone()),
            None if self.is_quiet == Some(false) => Some("loading the project".to_owned()),
            None => None,
        }
    }

    /// Tells whether it can do something: as it said at the start, or has registered since.
    pub(crate) fn offers(&self, capability: &str, method: &str) -> bool {
        let said = &self.capabilities[capability];
        !matches!(said, Value::Null | Value::Bool(false))
            || self.registered.values().any(|(registered, _)| registered == method)
    }

    /// A part of what it said about an ability.
    pub(crate) fn option(&self, capability: &str, method: &str, name: &str) -> Value {
        let registered = || self.registered.values().find(|(registered, _)| registered == method);
        match &self.capabilities[capability][name] {
            Value::Null => registered().map_or(Value::Null, |(_, options)| options[name].clone()),
            said => said.clone(),
        }
    }

    pub(crate) fn register(&mut self, id: &str, method: &str, options: Value) {
        if self.registered.len() < MAX_NOTED {
            self.registered.insert(id.to_owned(), (method.to_owned(), options));
        }
    }

    /// The folders whose files it wants to be told of.
    pub(crate) fn watched_folders(&self) -> BTreeSet<PathBuf> {
        let registered = self.registered.values().filter(|(method, _)| method == "workspace/didChangeWatchedFiles");
        let watchers = registered.flat_map(|(_, options)| options["watchers"].as_array().into_iter().flatten());
        let folder = |watcher: &Value| {
            let (folder, _) = watcher["globPattern"].as_str()?.split_once("/**/")?;
            Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute())
        };
        watchers.filter_map(folder).collect()
    }

    pub(crate) fn unregister(&mut self, id: &str) {
        self.registered.remove(id);
    }

    pub(crate) fn began(&mut self, token: String, title: &str) {
        if self.progress.len() < MAX_NOTED {
            self.progress.insert(token, title.chars().take(100).collect());
        }
    }

    pub(crate) fn ended(&mut self, token: &str) {
        self.progress.remove(token);
    }

    pub(crate) fn status(&mut self, is_quiet: bool, lacks: Vec<&'static str>) {
        (self.is_quiet, self.lacks) = (Some(is_quiet), lacks);
    }

    /// Why its answers are not to be taken for the whole truth, and what helps.
    pub(crate) fn note(&self) -> Option<String> {
        (!self.lacks.is_empty()).then(|| self.lacks.join("; "))
    }

    /// Notes what it says of a file. Returns whether that is another than before.
    pub(crate) fn diagnosed(
        &mut self,
        path: &Path,
        came: DiagnosticOrigin,
        version: Option<u64>,
        number: Option<i64>,
        mut items: Vec<Value>,
    ) -> bool {
        if items.is_empty() && version.is_none() {
            // Of a file that nobody has open, nothing is left to say.
            return self.files.remove(path).is_some_and(|file| file.all().next().is_some());
        }
        if !self.files.contains_key(path) && self.files.len() >= MAX_FILES {
            self.is_cut = true;
            return false;
        }
        // What it said before it had loaded all is not the answer, however long ago it was and however quiet it is now.
        let is_cut = items.len() > MAX_OF_FILE || came == DiagnosticOrigin::Pulled { was_busy: true };
        items.truncate(MAX_OF_FILE);
        let file = self.files.entry(path.to_owned()).or_default();
        let place = match came {
            DiagnosticOrigin::Pushed => &mut file.pushed,
            DiagnosticOrigin::Pulled { .. } => &mut file.pulled,
        };
        let is_same = match place.as_ref() {
            Some(before) => *before.items == *items,
            None => items.is_empty(),
        };
        *place = Some(DiagnosticSet { items: items.into(), version, number, is_cut });
        !is_same
    }

    /// Forgets which text it spoke of: the file was closed, and what it says next is about the disk.
    pub(crate) fn closed(&mut self, path: &Path) {
        self.files.remove(path);
        self.open.remove(path);
    }

    pub(crate) fn of(&self, path: &Path) -> Option<Diagnosed> {
        self.files.get(path).map(|file| self.diagnosis(path, file))
    }

    /// What it has said of all files.
    pub(crate) fn all(&self) -> impl Iterator<Item = Diagnosed> {
        self.files.iter().map(|(path, file)| self.diagnosis(path, file))
    }

    /// What it has said of a file, less what it cannot know.
    fn diagnosis(&self, path: &Path, file: &DiagnosedFile) -> Diagnosed {
        let mut told = file.diagnosis(path, self.open.get(path).copied());
        if !self.lacks.is_empty() {
            told.items.retain(lack::is_certain);
            told.is_cut = true;
        }
        told
    }

    /// The number of the text that what it said of its own accord is about.
    pub(crate) fn pushed_number(&self, path: &Path) -> Option<i64> {
        self.files.get(path)?.pushed.as_ref()?.number
    }

    pub(crate) fn pulled_version(&self, path: &Path) -> Option<u64> {
        self.files.get(path)?.pulled.as_ref()?.version
    }
}

// === impl DiagnosedFile ===

impl DiagnosedFile {
    fn all(&self) -> impl Iterator<Item = &Value> {
        [&self.pushed, &self.pulled].into_iter().flatten().flat_map(|said| said.items.iter())
    }

    fn diagnosis(&self, path: &Path, number: Option<i32>) -> Diagnosed {
        let mut items: Vec<Value> = Vec::new();
        for item in self.all() {
            // What it says both ways it says once.
            if !items.contains(item) {
                items.push(item.clone());
            }
        }
        // Asked, it says for certain which text it means.
        let version = match (&self.pulled, &self.pushed) {
            (Some(said), _) | (None, Some(said)) => said.version,
            (None, None) => None,
        };
        let is_cut = [&self.pushed, &self.pulled].into_iter().flatten().any(|said| said.is_cut);
        let is_old =
            self.pulled.is_none() && self.pushed.as_ref().is_some_and(|said| said.number < number.map(i64::from));
        let is_cut = is_cut || is_old;
        Diagnosed { path: path.to_owned(), items, version, is_cut }
    }
}
