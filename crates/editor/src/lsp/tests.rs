//! Verbs against language servers: a scripted one for what real ones rarely do, and the real ones where they are installed.

mod edits;
mod finding;
mod lifecycle;
mod listening;
mod project_trust;
mod real;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    time::Duration,
};

use prism_core::policy::{self, Code, Refusal, VerbSpec};
use prism_os::census::OwnerDaemon;
use serde_json::{Value, json};

use crate::{
    dispatch::{BuiltinEditor, EditorEnvironment, VerbOrder},
    prepared::PreparedVerb,
    progress::ProgressSink,
    settings::EditorSettings,
    state::GrantHolder,
    tests::{inner, skipped},
};

/// A granted folder, and beside it the scripted server with its notes.
struct Workshop {
    /// Removed in the end.
    _folder: tempfile::TempDir,
    granted: PathBuf,
    notes: PathBuf,
    runtime: BuiltinEditor,
}

/// Long enough for anything that works, on a machine that is busy.
const DEADLINE: Duration = Duration::from_secs(60);

impl Workshop {
    /// With the scripted server for Markdown, in a certain mood.
    fn scripted(mode: &str) -> Self {
        Self::with(mode, |_| {})
    }

    fn with(mode: &str, set: impl FnOnce(&mut EditorSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let (granted, notes) = (real.join("granted"), real.join("notes"));
        fs::create_dir(&granted).unwrap();
        fs::create_dir(&notes).unwrap();
        let script = real.join("server.py");
        fs::write(&script, include_str!("tests/server.py")).unwrap();
        let words = [python(), "-S".to_owned(), text(&script), mode.to_owned(), text(&notes)];
        let home = environment().remove(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
        let mut settings = EditorSettings { home, ..EditorSettings::default() };
        (settings.readable, settings.writable) = (vec![script.clone()], vec![notes.clone()]);
        settings.servers.insert("markdown".to_owned(), words.to_vec());
        set(&mut settings);
        let owner = OwnerDaemon::this_process(&real.join("owner"));
        let surroundings = EditorEnvironment { env: environment(), owner, closed: Vec::new(), unsaved: None, settings };
        Self { _folder: folder, granted, notes, runtime: BuiltinEditor::new(surroundings) }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.granted.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn prepare(&self, holder: u128, root: &Path, verb: &str, args: Value) -> Result<PreparedVerb, Refusal> {
        let verb = VerbSpec::named(verb).unwrap();
        let roots = vec![policy::GrantRoot::new(root.to_str().unwrap()).unwrap()];
        let holder = GrantHolder { id: holder, name: format!("holder {holder}"), ..GrantHolder::default() };
        let args = args.as_object().unwrap().clone();
        self.runtime.prepare(VerbOrder { verb, args, roots, holder }).await
    }

    async fn try_run(&self, verb: &str, args: Value) -> Result<Value, Refusal> {
        self.run_for(1, &self.granted, verb, args).await
    }

    async fn run_for(&self, holder: u128, root: &Path, verb: &str, args: Value) -> Result<Value, Refusal> {
        let done = async { self.prepare(holder, root, verb, args).await?.run(ProgressSink::unseen()).await };
        tokio::time::timeout(DEADLINE, done).await.expect("it should have answered by now")
    }

    async fn run(&self, verb: &str, args: Value) -> Value {
        self.try_run(verb, args.clone()).await.unwrap_or_else(|refusal| panic!("{verb} {args}: {refusal:?}"))
    }

    async fn refused(&self, verb: &str, args: Value) -> Refusal {
        self.try_run(verb, args).await.expect_err("it should be refused")
    }

    async fn code(&self, verb: &str, args: Value) -> Code {
        self.refused(verb, args).await.code
    }

    /// What the scripted server has written down.
    fn notes(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.notes.join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The process that serves a language now.
    async fn server(&self, language: &str) -> Value {
        let list = self.run("manage_plugins", json!({ "language": language })).await;
        list["servers"][0].clone()
    }

    /// Tells whether a language has a server here that can work. If not, the test is skipped, and that is said.
    async fn has_server(&self, language: &str) -> bool {
        let server = self.server(language).await;
        if server["state"] != "not_started" {
            skipped(server["why"].as_str().unwrap_or_default());
            return false;
        }
        let is_whole = language != "rust" || has_standard_library();
        if !is_whole {
            skipped(
                "rust-analyzer cannot load the standard library; type: rustup component add rust-src, then cargo xtask test unit",
            );
        }
        is_whole
    }

    /// Replaces the text of a file in its buffer.
    async fn edit(&self, path: &str, old: &str, new: &str) -> u64 {
        let edited = self.run("edit_buffer", json!({ "path": path, "old_text": old, "new_text": new })).await;
        edited["version"].as_u64().unwrap()
    }
}

/// Tells whether rust-analyzer can load the standard library without fetching anything.
fn has_standard_library() -> bool {
    const LOAD: &str = "RUSTC_BOOTSTRAP=1 cargo metadata --offline --locked --format-version 1 --manifest-path \
                        \"$(rustc --print sysroot)/lib/rustlib/src/rust/library/Cargo.toml\"";
    std::process::Command::new("sh").args(["-c", LOAD]).output().is_ok_and(|loaded| loaded.status.success())
}

fn python() -> String {
    let env = environment();
    let path = env.get(std::ffi::OsStr::new("PATH")).and_then(|path| path.to_str()).unwrap_or_default();
    // The system's own starts faster than one behind a version manager.
    let folders = ["/usr/bin"].into_iter().chain(path.split(':'));
    let found = folders.map(|folder| Path::new(folder).join("python3")).find(|program| program.is_file());
    text(&found.expect("these tests need python3"))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The environment of the tests themselves.
pub(super) fn environment() -> BTreeMap<OsString, OsString> {
    let text = fs::read("/proc/self/environ").unwrap();
    let variables = text.split(|byte| *byte == 0).filter_map(|line| {
        let end = line.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(line[..end].to_owned()), OsString::from_vec(line[end + 1..].to_owned())))
    });
    variables.collect()
}

/// Tells whether a process is there; a zombie is.
fn is_alive(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Waits for something that comes about outside of this process.
async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + DEADLINE;
    while !holds() {
        assert!(tokio::time::Instant::now() < end, "{what}");
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
}

fn messages(answer: &Value) -> Vec<&str> {
    answer["diagnostics"].as_array().unwrap().iter().map(|item| item["message"].as_str().unwrap()).collect()
}
