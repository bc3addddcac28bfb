//! Git's actions on real repositories, by the real git.

mod attacks;
mod events;
mod verbs;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
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
};

/// A granted folder with a repository in it, a person's home folder with their config, and what nobody was granted.
struct Shop {
    /// Removed in the end.
    _folder: tempfile::TempDir,
    granted: PathBuf,
    outside: PathBuf,
    home: PathBuf,
    runtime: BuiltinEditor,
}

impl Shop {
    fn new() -> Self {
        Self::with(true, "[user]\n\tname = A Person\n\temail = person@example.com\n[init]\n\tdefaultBranch = main\n")
    }

    fn with(fence: bool, config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        let [granted, outside, home] = ["granted", "outside", "home"].map(|name| real.join(name));
        for made in [&granted, &outside, &home] {
            fs::create_dir(made).unwrap();
        }
        fs::write(home.join(".gitconfig"), config).unwrap();
        let owner = OwnerDaemon::this_process(&real.join("owner"));
        let closed = vec![real.join("prism")];
        let settings = EditorSettings { fence, ..EditorSettings::default() };
        let env = environment(&home);
        let runtime = BuiltinEditor::new(EditorEnvironment { env, owner, closed, unsaved: None, settings });
        Self { _folder: folder, granted, outside, home, runtime }
    }

    /// With a repository in the granted folder that has one commit.
    fn begun(fence: bool) -> Self {
        let shop = Self::with(
            fence,
            "[user]\n\tname = A Person\n\temail = person@example.com\n[init]\n\tdefaultBranch = main\n",
        );
        shop.git(&["init", "-q"]);
        shop.write("first", "one\n");
        shop.git(&["add", "."]);
        shop.git(&["commit", "-qm", "Begin"]);
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.granted.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs git as the person does.
    fn git(&self, words: &[&str]) -> String {
        self.git_in(&self.granted, words)
    }

    fn git_in(&self, folder: &Path, words: &[&str]) -> String {
        let (is_ok, told) = self.git_may_fail(folder, words);
        assert!(is_ok, "git {words:?}: {told}");
        told
    }

    fn git_may_fail(&self, folder: &Path, words: &[&str]) -> (bool, String) {
        let mut command = Command::new("git");
        command.env_clear().envs(environment(&self.home)).current_dir(folder).args(words);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), told)
    }

    async fn prepare(&self, verb: &str, args: &Value) -> Result<PreparedVerb, Refusal> {
        let order = VerbOrder {
            verb: VerbSpec::named(verb).unwrap(),
            args: args.as_object().unwrap().clone(),
            roots: vec![policy::GrantRoot::new(self.granted.to_str().unwrap()).unwrap()],
            holder: GrantHolder { id: 7, name: "seven".to_owned(), ..GrantHolder::default() },
        };
        self.runtime.prepare(order).await
    }

    async fn run(&self, verb: &str, args: Value) -> Result<Value, Refusal> {
        self.prepare(verb, &args).await?.run(ProgressSink::unseen()).await
    }

    async fn refused(&self, verb: &str, args: Value) -> Refusal {
        self.run(verb, args).await.expect_err("it should be refused")
    }

    /// What `git_status` says of each file: path beneath the granted folder, index, work tree.
    async fn status(&self) -> Vec<(String, Value, Value)> {
        let status = self.run("git_status", json!({})).await.unwrap();
        let entry = |entry: &Value| {
            let path = Path::new(entry["path"].as_str().unwrap()).strip_prefix(&self.granted).unwrap();
            (path.display().to_string(), entry["index"].clone(), entry["worktree"].clone())
        };
        status["entries"].as_array().unwrap().iter().map(entry).collect()
    }
}

fn environment(home: &Path) -> BTreeMap<OsString, OsString> {
    let path = fs::read("/proc/self/environ").unwrap();
    let path = path.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"PATH=")).unwrap();
    let path = String::from_utf8(path.to_vec()).unwrap();
    let mut env = BTreeMap::from([("PATH".into(), path.into()), ("HOME".into(), home.into())]);
    // What the machine's owner has set for all is not the tests' business.
    env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
    env
}
