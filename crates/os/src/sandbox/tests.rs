//! Real sandboxes, and what is tried in them. The program that is the first to run inside is `prism` itself, which the tests of
//! the whole workspace have built.

mod ends;
mod ways_out;

use std::{
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::OnceLock,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{
    child::{Child, ChildSpec, SpawnError},
    proc::Stat,
    root::FolderHandle,
    testing::{environment, home, line, soon},
};

/// A granted folder, with one beside it that is not.
struct Place {
    _folder: TempDir,
    real: PathBuf,
    sandbox: Arc<Bubblewrap>,
}

/// What a command has come to.
struct Came {
    status: ExitStatus,
    out: String,
    err: String,
}

impl Place {
    /// `None` where there is no bubblewrap: then the test is skipped by its name.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        for name in ["granted/sub", "granted/.git", "outside", "home", "own/home", "own/tmp"] {
            fs::create_dir_all(real.join(name)).unwrap();
            fs::write(real.join(name).join("file"), name).unwrap();
        }
        Some(Self { _folder: folder, real, sandbox: sandbox()? })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.real.join(name)
    }

    fn fence(&self, network: NetworkAccess) -> SandboxPolicy {
        let room = SandboxRoom {
            sandbox: self.sandbox.clone(),
            home: Some(PrivateFolder { seems: self.path("home"), lies: self.path("own/home") }),
            temporary: self.path("own/tmp"),
            private: Vec::new(),
            network,
            guarded: vec![".git"],
        };
        let held = vec![FolderHandle::open(&self.path("granted")).unwrap()];
        SandboxPolicy { held, closed: vec![self.path("closed")], room: Some(room), ..SandboxPolicy::default() }
    }

    fn env(&self) -> BTreeMap<OsString, OsString> {
        [("PATH", "/usr/bin:/bin".into()), ("HOME", self.path("home").into_os_string())]
            .map(|(name, value)| (name.into(), value))
            .into()
    }

    fn spawn(&self, fence: &SandboxPolicy, command: &[&str]) -> Result<Child, SpawnError> {
        let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let (env, cwd) = (self.env(), self.path("granted"));
        let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(fence) };
        Child::spawn(&spec, &OwnerDaemon::this_process(&home("sandbox")))
    }

    /// Runs a line of shell to its end.
    async fn run(&self, script: &str) -> Came {
        self.run_in(&self.fence(NetworkAccess::Own), script).await
    }

    async fn run_in(&self, fence: &SandboxPolicy, script: &str) -> Came {
        end_of(self.spawn(fence, &["sh", "-c", script]).unwrap()).await
    }
}

async fn end_of(mut child: Child) -> Came {
    assert!(matches!(child.enforced, Some(SandboxEnforcement::Sandbox { .. })), "{:?}", child.enforced);
    drop(child.stdin);
    let (mut out, mut err) = (String::new(), String::new());
    let both = async { tokio::join!(child.stdout.read_to_string(&mut out), child.stderr.read_to_string(&mut err)) };
    let (one, other) = soon(both).await;
    one.and(other).unwrap();
    soon(child.group.exited()).await;
    let status = child.group.finish().unwrap();
    Came { status, out, err }
}

/// The one that all tests use, or `None` where the machine has none.
fn sandbox() -> Option<Arc<Bubblewrap>> {
    static FOUND: OnceLock<Result<Arc<Bubblewrap>, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| Bubblewrap::find(&environment(), None, &inner()));
    match found {
        Ok(sandbox) => Some(sandbox.clone()),
        Err(why) if why.contains("is not installed") => {
            skipped(why);
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// The program of the workspace, which lies above the programs of tests.
fn inner() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().and_then(Path::parent).unwrap().join("prism");
    assert!(program.is_file(), "{} is not built; type: cargo nextest run --workspace", program.display());
    program
}

/// Says that a test is skipped, and what would be needed; `cargo xtask test` lists what was skipped (`PRISM_TESTS_SKIPPED`
/// names the file).
fn skipped(why: &str) {
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("skipped: {name}: {why}");
    if let Some(list) = environment().get(&OsString::from("PRISM_TESTS_SKIPPED")) {
        let list = fs::OpenOptions::new().create(true).append(true).open(list);
        std::io::Write::write_all(&mut list.unwrap(), format!("{name}: {why}\n").as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn a_command_runs_with_its_folder_its_variables_and_its_status() {
    let Some(place) = Place::new() else { return };
    let came = place.run("cat sub/file; echo; pwd; echo $HOME; echo new >made; echo said >&2; exit 7").await;
    let [granted, home] = ["granted", "home"].map(|name| place.path(name).display().to_string());
    assert_eq!(came.out, format!("granted/sub\n{granted}\n{home}\n"), "{}", came.err);
    assert_eq!((came.err.as_str(), came.status.code()), ("said\n", Some(7)));
    assert_eq!(fs::read_to_string(place.path("granted/made")).unwrap(), "new\n");
}

#[tokio::test]
async fn what_comes_in_goes_through_and_what_was_enforced_is_known() {
    let Some(place) = Place::new() else { return };
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["cat"]).unwrap();
    child.stdin.write_all(b"to and fro\n").await.unwrap();
    assert_eq!(line(&mut child.stdout).await, "to and fro");
    let Some(SandboxEnforcement::Sandbox { landlock, network: NetworkAccess::Own, .. }) = child.enforced else {
        panic!("{:?}", child.enforced)
    };
    // Where these tests run, there is landlock, too.
    assert!(landlock.is_some());
}

#[tokio::test]
async fn a_program_that_is_not_there_or_may_not_run_is_told_as_without_a_sandbox() {
    let Some(place) = Place::new() else { return };
    let fence = place.fence(NetworkAccess::Own);
    let error = place.spawn(&fence, &["no-such-program"]).unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error:?}");
    let limited = SandboxPolicy { exec: Some(vec!["/usr/bin/cat".into()]), ..place.fence(NetworkAccess::Own) };
    let error = place.spawn(&limited, &["ls"]).unwrap_err();
    let SpawnError::Exec { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(end_of(place.spawn(&limited, &["cat", "sub/file"]).unwrap()).await.out, "granted/sub");
}

// S-06
#[tokio::test]
async fn granted_folders_are_there_wherever_they_lie() {
    let Some(place) = Place::new() else { return };
    let read = |root: &str, script: &'static str| {
        let held = vec![FolderHandle::open(&place.path(root)).unwrap()];
        (SandboxPolicy { held, ..place.fence(NetworkAccess::Own) }, script)
    };
    fs::create_dir_all(place.path("home/project")).unwrap();
    fs::write(place.path("home/project/file"), "beneath the home folder").unwrap();
    let at = |name: &str| place.path(name).display().to_string();
    for (root, file, text) in [
        ("granted", "granted/sub/file", "granted/sub"),
        ("home/project", "home/project/file", "beneath the home folder"),
    ] {
        let (fence, _) = read(root, "");
        let command = ["cat".to_owned(), at(file)];
        let (env, cwd) = (place.env(), place.path(root).canonicalize().unwrap());
        let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(&fence) };
        let child = Child::spawn(&spec, &OwnerDaemon::this_process(&home("sandbox"))).unwrap();
        let came = end_of(child).await;
        assert_eq!(came.out, text, "{root}: {}", came.err);
    }
    // One within the other, and the outer one first or last.
    for order in [["granted", "granted/sub"], ["granted/sub", "granted"]] {
        let held = order.map(|name| FolderHandle::open(&place.path(name)).unwrap()).into();
        let fence = SandboxPolicy { held, ..place.fence(NetworkAccess::Own) };
        let came = place.run_in(&fence, "cat file 2>/dev/null; cat sub/file; echo x >sub/new && echo written").await;
        assert_eq!(came.out, "granted/subwritten\n", "{}", came.err);
    }
}

// S-05
#[tokio::test]
async fn a_granted_folder_is_the_one_that_was_opened_whatever_its_name_leads_to_now() {
    let Some(place) = Place::new() else { return };
    let fence = place.fence(NetworkAccess::Own);
    fs::rename(place.path("granted"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink(place.path("outside"), place.path("granted")).unwrap();
    let (env, cwd) = (place.env(), PathBuf::from("/"));
    let command = ["sh".to_owned(), "-c".to_owned(), format!("cat {0}/*/file {0}/file", place.real.display())];
    let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(&fence) };
    let came = end_of(Child::spawn(&spec, &OwnerDaemon::this_process(&home("sandbox"))).unwrap()).await;
    assert!(!came.out.contains("outside"), "{}", came.out);
}

// S-12
#[tokio::test]
async fn what_a_command_is_given_is_nothing_to_what_is_around_it() {
    let Some(place) = Place::new() else { return };
    let library = place.path("granted/evil.so");
    let source = "#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void run(void) {\n
        int file = open(OUT, O_CREAT | O_WRONLY, 0600); if (file >= 0) close(file); }";
    fs::write(place.path("granted/evil.c"), source).unwrap();
    let out = format!("-DOUT=\"{}\"", place.path("outside/ran").display());
    let made = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", &out, "-o"])
        .args([&library, &place.path("granted/evil.c")])
        .status();
    assert!(made.unwrap().success());
    for name in ["LD_PRELOAD", "LD_AUDIT"] {
        let mut env = place.env();
        env.insert(name.into(), library.clone().into());
        let (command, cwd, fence) = (["true".to_owned()], place.path("granted"), place.fence(NetworkAccess::Own));
        let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(&fence) };
        let came = end_of(Child::spawn(&spec, &OwnerDaemon::this_process(&home("sandbox"))).unwrap()).await;
        assert!(came.status.success(), "{}", came.err);
        assert!(!place.path("outside/ran").exists(), "{name} was read outside");
    }
}

// C1
// without the first of these Debian's Chromium ends at once.
#[tokio::test]
async fn what_programs_take_from_the_systems_settings_is_there() {
    let Some(place) = Place::new() else { return };
    for name in ["chromium.d", "alternatives", "ssl", "passwd"].map(|name| Path::new("/etc").join(name)) {
        let script = format!("test -e {name} && ! touch {name} 2>/dev/null && echo there", name = name.display());
        assert!(!name.exists() || place.run(&script).await.out == "there\n", "{name:?}");
    }
}

#[tokio::test]
async fn what_is_closed_is_empty_and_stays_where_it_is() {
    let Some(place) = Place::new() else { return };
    let closed = [place.path("granted/sub/file"), place.path("granted/sub"), place.path("granted/.git")];
    for (closed, script) in [
        (&closed[..1], "cat sub/file; echo evil >sub/file; mv sub/file sub/other; mv sub gone; rm -rf sub; echo end"),
        (
            &closed[1..],
            "cat sub/file .git/file; echo evil >sub/file; echo evil >sub/new; mv sub gone; rm -rf sub; echo end",
        ),
    ] {
        let fence = SandboxPolicy { closed: closed.to_vec(), ..place.fence(NetworkAccess::Own) };
        let came = place.run_in(&fence, &format!("({script}) 2>/dev/null")).await;
        assert_eq!(came.out, "end\n", "{}", came.err);
        assert_eq!(fs::read_to_string(place.path("granted/sub/file")).unwrap(), "granted/sub");
    }
}

// S-08
#[tokio::test]
async fn nothing_is_left_in_a_granted_folder_that_was_not_put_there() {
    let Some(place) = Place::new() else { return };
    let list = || {
        let names = fs::read_dir(place.path("granted")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let before = list();
    assert!(place.run("true").await.status.success());
    assert_eq!(list(), before);
}

#[tokio::test]
async fn an_upgrade_of_the_program_does_not_end_its_sandboxes() {
    let Some(place) = Place::new() else { return };
    let (program, new) = (place.path("prism"), place.path("prism-new"));
    fs::copy(inner(), &program).unwrap();
    fs::copy(inner(), &new).unwrap();
    let place = Place { sandbox: Bubblewrap::find(&environment(), None, &program).unwrap(), ..place };
    fs::rename(&new, &program).unwrap();
    let came = place.run("echo still").await;
    assert_eq!(came.out, "still\n", "{}", came.err);
    // And what is said where there is none any more.
    fs::remove_file(&program).unwrap();
    let error = place.spawn(&place.fence(NetworkAccess::Own), &["true"]).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("prism cannot be opened"), "{source}");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |path: &Path| BTreeMap::from([("PATH".into(), path.into())]);
    let why = Bubblewrap::find(&path(folder.path()), None, &inner()).unwrap_err();
    assert!(why.contains("install the package `bubblewrap`"), "{why}");
    // One that others could have put there is none.
    let bwrap = folder.path().join("bwrap");
    fs::write(&bwrap, "#!/bin/sh\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&bwrap, mode).unwrap();
    let why = Bubblewrap::find(&path(folder.path()), None, &inner()).unwrap_err();
    assert!(why.contains("install the package `bubblewrap`"), "{why}");
}
