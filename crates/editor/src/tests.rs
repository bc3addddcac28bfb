//! Actions on real files and children, as the gate orders them.

mod buffers;
mod caches;
mod changes;
mod commands;
mod escapes;
mod limits;
mod listing;
mod observing;
mod panes;
mod projects;
mod reading;
mod replacing;
mod searching;
mod swaps;
mod syntax;
mod terminals;
mod verbs;
mod watching;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use prism_core::policy::{self, Code, Refusal, VerbSpec};
use prism_os::census::OwnerDaemon;
use serde_json::{Value, json};

use crate::{
    dispatch::{BuiltinEditor, EditorEnvironment, VerbOrder},
    prepared::PreparedVerb,
    progress::ProgressSink,
    settings::EditorSettings,
    shown::ActionPreview,
    state::GrantHolder,
};

/// A granted folder with something beside it that nobody was granted.
struct Place {
    /// Removed in the end.
    _folder: tempfile::TempDir,
    granted: PathBuf,
    outside: PathBuf,
    runtime: BuiltinEditor,
}

const SECRET: &str = "what nobody was granted\n";

/// Says that this test is skipped here, and what to install: to whoever reads its output, and to the lane `unit`, which lists
/// what was skipped (`PRISM_TESTS_SKIPPED` names the file).
pub(crate) fn skipped(why: &str) {
    let line = format!("{}: {why}", std::thread::current().name().unwrap_or("a test"));
    println!("SKIPPED {line}");
    if let Some(list) = environment().get(std::ffi::OsStr::new("PRISM_TESTS_SKIPPED")) {
        let mut list = fs::File::options().append(true).create(true).open(list).unwrap();
        std::io::Write::write_all(&mut list, format!("{line}\n").as_bytes()).unwrap();
    }
}

impl Place {
    fn new() -> Self {
        Self::with(EditorSettings { inner: inner(), ..EditorSettings::default() }, "granted/home")
    }

    /// Where no closed folder lies beneath the granted one, so that a command can make files there; with the toolchains of
    /// whoever runs the tests.
    fn roomy() -> Self {
        let home = environment().get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
        Self::with(EditorSettings { home, inner: inner(), ..EditorSettings::default() }, "prism")
    }

    /// The same with landlock alone, as where there is no bubblewrap.
    fn bound() -> Self {
        let home = environment().get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
        Self::with(EditorSettings { home, ..EditorSettings::default() }, "prism")
    }

    /// What is enforced here.
    fn enforced(&self) -> &'static str {
        if self.runtime.lacks_sandbox().is_none() { "sandbox" } else { "landlock" }
    }

    /// The processes that live in the granted folder, by their numbers in here and, in a sandbox, in there.
    fn living(&self) -> Vec<(u32, String)> {
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        let is_dead = |status: &str| status.lines().any(|line| line.starts_with("State:") && line.contains(['Z', 'X']));
        pids.filter_map(|pid: u32| {
            let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let inside = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?;
            (cwd.starts_with(&self.granted) && !is_dead(&status)).then(|| (pid, inside.to_owned()))
        })
        .collect()
    }

    fn with(settings: EditorSettings, closed: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let (granted, outside, home) = (real.join("granted"), real.join("outside"), real.join("granted/home"));
        for made in [&granted, &outside, &home] {
            fs::create_dir(made).unwrap();
        }
        fs::write(outside.join("secret"), SECRET).unwrap();
        fs::write(home.join("management-token"), SECRET).unwrap();
        let mut env = environment();
        env.insert("MCP_TOKEN".into(), "secret".into());
        env.insert("PRISM_HOME".into(), "secret".into());
        // What is built in a project stays there.
        env.remove(std::ffi::OsStr::new("CARGO_TARGET_DIR"));
        let owner = OwnerDaemon::this_process(&real.join("owner"));
        let closed = vec![real.join(closed)];
        let runtime = BuiltinEditor::new(EditorEnvironment { env, owner, closed, unsaved: None, settings });
        Self { _folder: folder, granted, outside, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.granted.join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// What there is in the granted folder.
    fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(&self.granted).unwrap().map(name).collect();
        names.sort();
        names
    }

    fn root(&self) -> policy::GrantRoot {
        policy::GrantRoot::new(self.granted.to_str().unwrap()).unwrap()
    }

    fn order(&self, verb: &str, args: &Value) -> VerbOrder {
        let verb = VerbSpec::named(verb).unwrap();
        VerbOrder {
            verb,
            args: args.as_object().unwrap().clone(),
            roots: vec![self.root()],
            holder: GrantHolder { id: 1, name: "one".to_owned(), ..GrantHolder::default() },
        }
    }

    async fn prepare(&self, verb: &str, args: Value) -> Result<PreparedVerb, Refusal> {
        self.runtime.prepare(self.order(verb, &args)).await
    }

    async fn run(&self, verb: &str, args: Value) -> Result<Value, Refusal> {
        self.prepare(verb, args).await?.run(ProgressSink::unseen()).await
    }

    /// The same for another holder.
    async fn run_for(&self, holder: u128, verb: &str, args: Value) -> Result<Value, Refusal> {
        let order = self.order(verb, &args);
        let order = VerbOrder {
            holder: GrantHolder { id: holder, name: format!("holder {holder}"), ..GrantHolder::default() },
            ..order
        };
        self.runtime.prepare(order).await?.run(ProgressSink::unseen()).await
    }

    async fn shown(&self, verb: &str, args: Value) -> ActionPreview {
        self.prepare(verb, args).await.unwrap().shown()
    }

    async fn code(&self, verb: &str, args: Value) -> Code {
        self.run(verb, args).await.expect_err("it should be refused").code
    }

    /// Refuses to be called well if anything outside has changed.
    fn assert_untouched(&self) {
        let names: Vec<_> = fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(fs::read_to_string(self.outside.join("secret")).unwrap(), SECRET);
        assert_eq!(fs::read_to_string(self.path("home/management-token")).unwrap(), SECRET);
    }
}

/// The environment of the tests themselves.
pub(crate) fn environment() -> BTreeMap<OsString, OsString> {
    let text = fs::read("/proc/self/environ").unwrap();
    let variables = text.split(|byte| *byte == 0).filter_map(|line| {
        let end = line.iter().position(|byte| *byte == b'=')?;
        Some((OsString::from_vec(line[..end].to_owned()), OsString::from_vec(line[end + 1..].to_owned())))
    });
    variables.collect()
}

/// The program that is the first to run in a sandbox: that of the workspace, which lies above the programs of tests.
pub(crate) fn inner() -> Option<PathBuf> {
    let program = std::env::current_exe().unwrap().parent().and_then(Path::parent).unwrap().join("prism");
    assert!(program.is_file(), "{} is not built; type: cargo nextest run --workspace", program.display());
    Some(program)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
