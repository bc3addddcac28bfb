//! Real children behind real fences. A kernel without landlock would prove nothing, so there these tests fail.

use std::{process::Command, time::Instant};

use tempfile::TempDir;

use super::*;

/// A folder that is allowed, with one beside it that is not.
struct Ground {
    _folder: TempDir,
    real: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        for name in ["granted", "granted/sub", "granted/closed", "outside"] {
            fs::create_dir(real.join(name)).unwrap();
            fs::write(real.join(name).join("file"), name).unwrap();
        }
        Self { _folder: folder, real }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.real.join(name)
    }

    fn fence(&self) -> SandboxPolicy {
        SandboxPolicy { held: vec![FolderHandle::open(&self.path("granted")).unwrap()], ..system() }
    }

    /// Runs a line of shell behind a fence, and returns what it printed.
    fn run(&self, fence: &SandboxPolicy, script: &str) -> String {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(&self.real);
        let (output, enforced) = fence.spawn(move || command.output()).unwrap();
        assert!(matches!(enforced, SandboxEnforcement::Landlock { is_whole: true, .. }), "{enforced:?}");
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

fn system() -> SandboxPolicy {
    let read = ["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc"].map(PathBuf::from).to_vec();
    SandboxPolicy { read, write: vec!["/dev/null".into(), "/dev/urandom".into()], ..SandboxPolicy::default() }
}

//
#[test]
fn nothing_outside_is_read_or_written() {
    let ground = Ground::new();
    let script = "cat granted/sub/file; cat outside/file 2>/dev/null || echo -no
        { echo x >outside/new; } 2>/dev/null || echo -no
        { echo x >>outside/file; } 2>/dev/null || echo -no
        rm -f outside/file 2>/dev/null || echo -no
        mv granted/file outside/moved 2>/dev/null || echo -no
        ln outside/file granted/linked 2>/dev/null || echo -no
        ln -s ../outside granted/way; cat granted/way/file 2>/dev/null || echo -no
        mkdir outside/made 2>/dev/null || echo -no
        truncate -s 0 outside/file 2>/dev/null || echo -no
        ls outside 2>/dev/null || echo -no
        echo new >granted/new && mv granted/new granted/sub/new && cat granted/sub/new";
    assert_eq!(ground.run(&ground.fence(), script), format!("granted/sub{}new\n", "-no\n".repeat(10)));
    assert_eq!(fs::read_to_string(ground.path("outside/file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(ground.path("outside")).unwrap().count(), 1);
}

#[test]
fn whoever_is_started_by_the_child_is_behind_the_fence_too() {
    let ground = Ground::new();
    let script = "setsid sh -c '(cat outside/file 2>/dev/null || echo -no) & wait'";
    assert_eq!(ground.run(&ground.fence(), script), "-no\n");
}

#[test]
fn this_process_stays_free() {
    let ground = Ground::new();
    ground.run(&ground.fence(), "true");
    assert_eq!(fs::read_to_string(ground.path("outside/file")).unwrap(), "outside");
    let output = Command::new("cat").arg(ground.path("outside/file")).output().unwrap();
    assert_eq!(output.stdout, b"outside");
}

#[test]
fn a_closed_folder_is_gone_around() {
    let ground = Ground::new();
    let fence = SandboxPolicy { closed: vec![ground.path("granted/closed")], ..ground.fence() };
    let script = "cat granted/file granted/sub/file; ls granted | tr '\\n' ' '
        cat granted/closed/file 2>/dev/null || echo -no
        { echo x >granted/closed/file; } 2>/dev/null || echo -no
        { echo x >granted/closed/new; } 2>/dev/null || echo -no
        mv granted/closed granted/sub/open 2>/dev/null || echo -no
        mv granted granted2 2>/dev/null || echo -no
        echo in >granted/sub/new && cat granted/sub/new";
    let expected = format!("grantedgranted/subclosed file sub {}in\n", "-no\n".repeat(5));
    assert_eq!(ground.run(&fence, script), expected);
    assert_eq!(fs::read_to_string(ground.path("granted/closed/file")).unwrap(), "granted/closed");

    let ((), enforced) = fence.spawn(|| ()).unwrap();
    let SandboxEnforcement::Landlock { cramped, .. } = enforced else { panic!("{enforced:?}") };
    assert_eq!(cramped, [ground.path("granted")]);
    let inside = SandboxPolicy { held: vec![FolderHandle::open(&ground.path("granted/closed")).unwrap()], ..fence };
    assert_eq!(ground.run(&inside, "cat granted/closed/file 2>/dev/null || echo -no"), "-no\n");
}

#[test]
fn a_folder_by_handle_is_the_one_that_was_opened() {
    let ground = Ground::new();
    let fence = ground.fence();
    fs::rename(ground.path("granted"), ground.path("moved")).unwrap();
    fs::rename(ground.path("outside"), ground.path("granted")).unwrap();
    let script = "cat moved/file; echo; cat granted/file 2>/dev/null || echo -no";
    assert_eq!(ground.run(&fence, script), "granted\n-no\n");
}

#[test]
fn what_is_not_there_is_left_out() {
    let ground = Ground::new();
    let mut fence = ground.fence();
    fence.read.push(ground.path("missing"));
    fence.write.push(ground.path("outside/file/not-a-folder"));
    assert_eq!(ground.run(&fence, "cat granted/file"), "granted");
}

#[test]
fn nobody_outside_is_sent_a_signal() {
    let ground = Ground::new();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let script = format!("kill -9 {} 2>/dev/null || echo -no; sleep 1000 & kill -9 $! && echo own", bystander.id());
    let said = ground.run(&ground.fence(), &script);
    let is_alive = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert_eq!((said.as_str(), is_alive), ("-no\nown\n", true));
}

#[test]
fn no_other_process_lends_its_view() {
    let ground = Ground::new();
    let script = format!(
        "cat /proc/{}/root/{} 2>/dev/null || echo -no",
        std::process::id(),
        ground.path("outside/file").display()
    );
    assert_eq!(ground.run(&ground.fence(), &script), "-no\n");
}

#[test]
fn nobody_elses_environment_is_read() {
    let ground = Ground::new();
    // Also not by whom the kernel lets look at everything, were it not given up.
    let script = format!("cat /proc/{}/environ 2>/dev/null || echo -no", std::process::id());
    assert_eq!(ground.run(&ground.fence(), &script), "-no\n");
    let script =
        "mknod granted/disk b 8 0 2>/dev/null || echo -no; touch granted/new && chmod 700 granted/new && echo own";
    assert_eq!(ground.run(&ground.fence(), script), "-no\nown\n");
}

/// Makes a repository whose config runs a filter and whose hooks run too.
fn repository(ground: &Ground) {
    let script = "cd granted && git init -q . && git config user.name a && git config user.email a@b.c
        git config filter.evil.clean 'sh -c \"touch filtered; cat\"' && echo 'evil.txt filter=evil' >.gitattributes
        git config core.fsmonitor 'touch monitored'
        mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch hooked\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
        echo text >evil.txt";
    assert!(Command::new("sh").args(["-c", script]).current_dir(&ground.real).status().unwrap().success());
}

#[test]
fn git_that_may_only_execute_git_runs_neither_hook_nor_filter() {
    let ground = Ground::new();
    repository(&ground);
    let find = |script| {
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).canonicalize().unwrap()
    };
    let git = find("command -v git");
    let made = || ["hooked", "filtered", "monitored"].map(|name| ground.path("granted").join(name).exists());
    let run = |fence: &SandboxPolicy, arguments: &[&str]| {
        let mut command = Command::new(&git);
        // The configuration of whoever runs the tests is behind the fence too.
        command.arg("-C").arg(ground.path("granted")).args(arguments).env("HOME", ground.path("granted"));
        let (output, _) = fence.spawn(move || command.output()).unwrap();
        let output = output.unwrap();
        println!("git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.status.success()
    };

    let limited =
        SandboxPolicy { exec: Some(vec![git.clone(), find("git --exec-path").join("git")]), ..ground.fence() };
    assert!(run(&limited, &["add", "evil.txt"]) && run(&limited, &["status"]));
    run(&limited, &["commit", "-qm", "x"]);
    assert_eq!(made(), [false; 3]);

    // And it would have worked.
    fs::write(ground.path("granted/evil.txt"), "changed").unwrap();
    assert!(run(&ground.fence(), &["add", "evil.txt"]) && run(&ground.fence(), &["commit", "-qm", "x"]));
    assert_eq!(made(), [true; 3]);
}

#[test]
fn what_may_not_be_executed_says_so() {
    let ground = Ground::new();
    let limited = SandboxPolicy { exec: Some(vec!["/bin/cat".into()]), ..ground.fence() };
    let (error, _) = limited.spawn(|| Command::new("/bin/ls").spawn().unwrap_err()).unwrap();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    let (output, _) = limited.spawn(|| Command::new("/bin/cat").arg("/etc/passwd").output().unwrap()).unwrap();
    assert!(output.status.success());
}

#[test]
fn a_fence_costs_little() {
    let ground = Ground::new();
    let times = |start: &dyn Fn()| {
        let mut times: Vec<_> = (0..101)
            .map(|_| {
                let began = Instant::now();
                start();
                began.elapsed()
            })
            .collect();
        times.sort();
        times[50]
    };
    let spawn = || Command::new("/bin/true").status().unwrap();
    let free = times(&|| assert!(spawn().success()));
    let fence = ground.fence();
    let fenced = times(&|| drop(fence.spawn(spawn).unwrap()));
    println!("a child {free:?}, behind a fence {fenced:?}");
    assert!(fenced < free + std::time::Duration::from_millis(20), "{free:?} {fenced:?}");
}
