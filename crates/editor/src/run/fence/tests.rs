//! The usual fence, with the toolchains that are here.

use std::{fs, path::Path, process::Command};

use prism_os::{
    census::OwnerDaemon,
    child::{Child, ChildSpec},
};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::*;
use crate::tests::environment;

struct Place {
    _folder: TempDir,
    real: PathBuf,
    env: BTreeMap<OsString, OsString>,
    fences: Fences,
}

impl Place {
    /// With the toolchains of whoever runs the tests.
    fn new() -> Self {
        let env = environment();
        let home = env.get(OsStr::new("HOME")).map(PathBuf::from);
        Self::with(EditorSettings { home, ..EditorSettings::default() }, env)
    }

    fn with(settings: EditorSettings, env: BTreeMap<OsString, OsString>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        fs::create_dir(real.join("granted")).unwrap();
        fs::write(real.join("secret"), "secret").unwrap();
        let fences = Fences::new(&settings, &env, Arc::new(ClosedPaths::new(vec![real.join("prism")])));
        Self { _folder: folder, real, env, fences }
    }

    /// Runs a line of shell in the granted folder, and returns its exit code and what it said.
    async fn run(&self, script: &str) -> (Option<i32>, String) {
        let root = FolderHandle::open(&self.real.join("granted")).unwrap();
        let around = self.fences.around_folders(vec![root], &holder(1)).unwrap();
        let command = ["sh", "-c", script].map(str::to_owned);
        let env: BTreeMap<_, _> = self.env.clone().into_iter().chain(around.env.clone()).collect();
        let cwd = self.real.join("granted");
        let spec =
            ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: around.fence.as_ref() };
        let mut child = Child::spawn(&spec, &OwnerDaemon::this_process(&self.real)).unwrap();
        assert_eq!(serde_json::to_value(FenceReport::of(child.enforced.as_ref())).unwrap()["enforced"], "landlock");
        let (mut out, mut err) = (String::new(), String::new());
        drop(child.stdin);
        let (a, b) = tokio::join!(child.stdout.read_to_string(&mut out), child.stderr.read_to_string(&mut err));
        a.and(b).unwrap();
        child.group.exited().await;
        (child.group.finish().unwrap().code(), out + &err)
    }
}

fn holder(id: u128) -> GrantHolder {
    GrantHolder { id, ..GrantHolder::default() }
}

#[tokio::test]
async fn cargo_builds_and_tests_a_project() {
    let place = Place::new();
    let granted = place.real.join("granted");
    fs::create_dir(granted.join("src")).unwrap();
    fs::write(granted.join("Cargo.toml"), "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")
        .unwrap();
    fs::write(granted.join("src/main.rs"), "fn main() {}\n#[test]\nfn works() {}\n").unwrap();
    let build = "export CARGO_TARGET_DIR=target; cargo build --offline && ./target/debug/a && cargo test --offline";
    let (code, said) = place.run(build).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[tokio::test]
async fn python_and_node_run() {
    let place = Place::new();
    let (code, said) = place.run("python3 -c 'import tempfile; print(tempfile.mkstemp()[1])'").await;
    assert_eq!(code, Some(0), "{said}");
    let around = place.fences.around_folders(Vec::new(), &holder(1)).unwrap();
    assert!(Path::new(said.trim()).starts_with(around.temporary().unwrap()), "{said}");
    let node = "node -e 'require(\"fs\").writeFileSync(\"made\", require(\"os\").tmpdir())' && cat made";
    let (code, said) = place.run(node).await;
    assert_eq!((code, said.as_str()), (Some(0), around.temporary().unwrap().to_str().unwrap()));
}

#[tokio::test]
async fn a_compiler_and_a_pseudoterminal_work() {
    let place = Place::new();
    let (code, said) = place.run("echo 'int main(){return 0;}' >a.c && cc a.c -o a && ./a && echo x >/dev/null").await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = place.run("script -qc 'echo in a terminal >/dev/tty' /dev/null </dev/null").await;
    assert!(code == Some(0) && said.contains("in a terminal"), "{said}");
}

#[tokio::test]
async fn of_the_home_folder_only_toolchains_are_there() {
    let home = tempfile::tempdir().unwrap();
    let file = |name: &str| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "text").unwrap();
        path
    };
    let mut env = environment();
    env.remove(OsStr::new("CARGO_HOME"));
    // A home folder on PATH is not opened by that.
    let path = env.get(OsStr::new("PATH")).unwrap().clone();
    env.insert("PATH".into(), [path.as_os_str(), home.path().as_os_str()].join(OsStr::new(":")));
    let open = [".cargo/config.toml", ".rustup/settings.toml", ".gitconfig", ".local/bin/tool"].map(file);
    let shut = [
        ".ssh/id_ed25519",
        ".cargo/credentials.toml",
        ".config/git/credentials",
        ".aws/credentials",
        ".bash_history",
        ".npmrc",
        ".cache/mozilla/page",
        ".local/share/keyrings/login",
        "Documents/letter",
    ]
    .map(file);
    let place = Place::with(EditorSettings { home: Some(home.path().to_owned()), ..EditorSettings::default() }, env);
    for path in &open {
        assert_eq!(place.run(&format!("cat {}", path.display())).await.1, "text", "{path:?}");
    }
    for path in &shut {
        let (code, said) = place.run(&format!("cat {}", path.display())).await;
        assert!(code == Some(1) && said.contains("Permission denied"), "{path:?}: {said}");
    }
    let (code, _) = place.run(&format!("echo x >>{}", open[0].display())).await;
    assert_ne!(code, Some(0), "what is read is not written");
    let (_, said) = place.run(&format!("cat {} 2>&1", place.real.join("secret").display())).await;
    assert!(said.contains("Permission denied"), "{said}");
}

//
#[tokio::test]
async fn a_python_environment_on_path_works_with_all_that_belongs_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    // As `python3 -m venv` and conda lay them out; the base lies outside of the system, too.
    for (name, content) in [
        ("venv/pyvenv.cfg", format!("home = {}\nversion = 3.12\n", folder.join("base/bin").display())),
        ("venv/bin/tool", "#!/bin/sh\n".to_owned()),
        ("venv/lib/module.py", "library".to_owned()),
        ("base/lib/encodings.py", "base".to_owned()),
        ("conda/conda-meta/history", "history".to_owned()),
        ("conda/bin/tool", "#!/bin/sh\n".to_owned()),
        ("conda/lib/module.py", "library".to_owned()),
        ("plain/bin/tool", "#!/bin/sh\n".to_owned()),
        ("plain/secret", "secret".to_owned()),
    ] {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), content).unwrap();
    }
    let mut env = environment();
    let path = env.get(OsStr::new("PATH")).unwrap().to_str().unwrap().to_owned();
    let bins = ["venv/bin", "conda/bin", "plain/bin"].map(|bin| folder.join(bin).display().to_string()).join(":");
    env.insert("PATH".into(), format!("{path}:{bins}").into());
    let place = Place::with(EditorSettings::default(), env);
    for name in ["venv/lib/module.py", "base/lib/encodings.py", "conda/lib/module.py"] {
        let (code, said) = place.run(&format!("cat {}", folder.join(name).display())).await;
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    let (code, said) = place.run(&format!("cat {}", folder.join("plain/secret").display())).await;
    assert!(code == Some(1) && said.contains("Permission denied"), "{said}");
}

#[tokio::test]
async fn a_person_can_open_more() {
    let more = tempfile::tempdir().unwrap();
    let more = more.path().canonicalize().unwrap();
    fs::create_dir_all(more.join("in")).unwrap();
    fs::write(more.join("in/file"), "text").unwrap();
    fs::create_dir_all(more.join("out")).unwrap();
    let settings = EditorSettings {
        readable: vec![more.join("in")],
        writable: vec![more.join("out")],
        ..EditorSettings::default()
    };
    let place = Place::with(settings, environment());
    let more = more.display();
    let (code, said) = place.run(&format!("cat {more}/in/file >{more}/out/copy && cat {more}/out/copy")).await;
    assert_eq!((code, said.as_str()), (Some(0), "text"));
}

#[tokio::test]
async fn temporary_files_are_a_holders_own_and_go_with_it() {
    let place = Place::new();
    let folder =
        |number| place.fences.around_folders(Vec::new(), &holder(number)).unwrap().temporary().unwrap().to_owned();
    let (first, second) = (folder(1), folder(2));
    assert_ne!(first, second);
    assert_eq!(first, folder(1));
    fs::write(second.join("secret"), "x").unwrap();
    let (_, said) = place.run(&format!("cat {}/secret; ls {}", second.display(), second.display())).await;
    assert_eq!(said.matches("Permission denied").count(), 2, "{said}");

    let running = place.fences.around_folders(Vec::new(), &holder(1)).unwrap();
    place.fences.release(1);
    assert!(first.exists(), "somebody still uses it");
    drop(running);
    let gone = async {
        while first.exists() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.unwrap();
    assert!(second.exists());
}

// a library in a folder that is out of reach is one that Python has never heard of.
#[test]
fn what_a_program_says_that_was_kept_from_a_file_is_known() {
    let landlock = SandboxEnforcement::Landlock { abi: 7, is_whole: true, cramped: Vec::new() };
    let (landlock, none) = (FenceReport::of(Some(&landlock)), FenceReport::of(None));
    for said in [
        "cat: /a: Permission denied",
        "ModuleNotFoundError: No module named 'requests'",
        "/usr/bin/python3: No module named pytest",
    ] {
        assert!(landlock.hint_for(&["", said]).is_some(), "{said}");
        assert!(none.hint_for(&["", said]).is_none(), "{said}");
    }
    assert!(landlock.hint_for(&["error: 3 tests failed", ""]).is_none());
}

//
#[test]
fn who_has_no_network_is_told_which_scope_has_one() {
    let sandbox = |network| SandboxEnforcement::Sandbox { landlock: Some(7), network, covered: Vec::new() };
    let alone = FenceReport::of(Some(&sandbox(NetworkAccess::Own)));
    let online = FenceReport::of(Some(&sandbox(NetworkAccess::All)));
    for said in [
        "curl: (6) Could not resolve host: example.org",
        "npm error code ENOTCACHED",
        "dial tcp: lookup example.org on 127.0.0.1:53: read udp 127.0.0.1:4->127.0.0.1:53: connection refused",
    ] {
        assert!(alone.hint_for(&["", said]).is_some_and(|hint| hint.contains("network:all")), "{said}");
        assert!(online.hint_for(&["", said]).is_none(), "{said}");
    }
}

#[test]
fn without_a_fence_nothing_is_changed() {
    let settings = EditorSettings { fence: false, ..EditorSettings::default() };
    let fences = Fences::new(&settings, &environment(), Arc::default());
    let around = fences.around_folders(Vec::new(), &holder(1)).unwrap();
    assert!(around.fence.is_none() && around.env.is_empty() && !fences.is_on());
    assert_eq!(serde_json::to_value(FenceReport::of(None)).unwrap()["enforced"], "none");
}

#[test]
fn a_usual_fence_costs_little() {
    let place = Place::new();
    let around = place
        .fences
        .around_folders(vec![FolderHandle::open(&place.real.join("granted")).unwrap()], &holder(1))
        .unwrap();
    let fence = around.fence.unwrap();
    let spawn = || Command::new("/bin/true").status().unwrap();
    let median = |start: &dyn Fn()| {
        let mut times: Vec<_> = (0..101)
            .map(|_| {
                let began = std::time::Instant::now();
                start();
                began.elapsed()
            })
            .collect();
        times.sort();
        times[50]
    };
    let free = median(&|| assert!(spawn().success()));
    let fenced = median(&|| assert!(fence.spawn(spawn).unwrap().0.success()));
    println!("a child {free:?}, behind the usual fence {fenced:?}");
    assert!(fenced < free + std::time::Duration::from_millis(30), "{free:?} {fenced:?}");
}

// S-03: what was missing, or too busy, when it was first looked for is not missed for ever.
#[test]
fn a_sandbox_that_was_not_there_is_found_when_it_is() {
    let Some(bwrap) = ["/usr/bin/bwrap", "/bin/bwrap"].into_iter().find(|path| Path::new(path).exists()) else {
        return crate::tests::skipped("install the package bubblewrap");
    };
    let tools = tempfile::tempdir().unwrap();
    let mut env = environment();
    env.insert("PATH".into(), tools.path().into());
    let settings = EditorSettings { inner: crate::tests::inner(), ..EditorSettings::default() };
    let fences = Fences::new(&settings, &env, Arc::default());
    assert!(fences.lacks().is_some_and(|why| why.contains("not installed")));
    std::os::unix::fs::symlink(bwrap, tools.path().join("bwrap")).unwrap();
    assert_eq!(fences.lacks(), None);
    fs::remove_file(tools.path().join("bwrap")).unwrap();
    assert_eq!(fences.lacks(), None, "what was found stays");
}
