use rustix::pipe::fcntl_getpipe_size;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::testing::{death, environment, home, line, shell, soon};

fn spawn(command: &[&str], cwd: Option<&Path>) -> Result<Child, SpawnError> {
    let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
    let spec = ChildSpec { command: &command, env: &environment(), cwd, cgroup: None, fence: None };
    Child::spawn(&spec, &OwnerDaemon::this_process(&home("child")))
}

#[tokio::test]
async fn what_goes_in_comes_out() {
    let mut child = spawn(&["cat"], None).unwrap();
    child.stdin.write_all(b"to and fro\n").await.unwrap();
    assert_eq!(line(&mut child.stdout).await, "to and fro");
}

#[tokio::test]
async fn stderr_is_a_stream_of_its_own() {
    // B-15
    let mut child = shell("echo heard; echo overheard >&2");
    assert_eq!(line(&mut child.stderr).await, "overheard");
    assert_eq!(line(&mut child.stdout).await, "heard");
}

#[tokio::test]
async fn closing_stdin_is_seen_by_the_child() {
    let mut child = spawn(&["cat"], None).unwrap();
    drop(child.stdin);
    soon(child.group.exited()).await;
    assert_eq!(soon(child.stdout.read(&mut [0])).await.unwrap(), 0);
    assert!(child.group.finish().unwrap().success());
}

#[tokio::test]
async fn the_environment_is_what_it_was_given_and_the_marker() {
    let path = std::env::var("PATH").unwrap();
    let env = [("ADDED", "yes"), (MARKER, "forged"), ("PATH", &path)];
    let env = env.map(|(name, value)| (name.into(), value.into())).into();
    // Sorted, and without what the shell adds by itself.
    let command =
        ["sh", "-c", "env | grep -v '^\\(PWD\\|OLDPWD\\|SHLVL\\|_\\)=' | sort | tr '\\n' ' '; echo"].map(str::to_owned);
    let owner = OwnerDaemon::this_process(&home("child"));
    let spec = ChildSpec { command: &command, env: &env, cwd: None, cgroup: None, fence: None };
    let mut child = Child::spawn(&spec, &owner).unwrap();
    let expected = format!("ADDED=yes PATH={path} {MARKER}={}", owner.marker().display());
    assert_eq!(line(&mut child.stdout).await, expected);
}

#[tokio::test]
async fn the_program_is_looked_for_on_the_path_that_the_child_is_given() {
    let command = ["cat".to_owned()];
    let env = [("PATH".into(), "/nowhere".into())].into();
    let spec = ChildSpec { command: &command, env: &env, cwd: None, cgroup: None, fence: None };
    let error = Child::spawn(&spec, &OwnerDaemon::this_process(&home("child"))).unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }), "{error}");
}

#[tokio::test]
async fn the_child_starts_in_its_directory() {
    let mut child = spawn(&["pwd", "-P"], Some(Path::new("/proc"))).unwrap();
    assert_eq!(line(&mut child.stdout).await, "/proc");
}

#[tokio::test]
async fn a_missing_command_is_named() {
    let error = spawn(&["prism-no-such-command"], None).unwrap_err();
    assert!(matches!(error, SpawnError::NotFound { .. }));
    assert_eq!(error.to_string(), "command \"prism-no-such-command\" not found on PATH");
}

#[tokio::test]
async fn a_missing_path_was_not_looked_for_on_path() {
    let error = spawn(&["/no/such/command"], None).unwrap_err();
    assert!(matches!(error, SpawnError::Exec { .. }), "{error}");
}

#[tokio::test]
async fn a_file_that_cannot_be_executed_says_so() {
    let SpawnError::Exec { command, source } = spawn(&["/proc/version"], None).unwrap_err() else {
        panic!("not an error of exec");
    };
    assert_eq!((command.as_str(), source.kind()), ("/proc/version", io::ErrorKind::PermissionDenied));
}

#[tokio::test]
async fn a_missing_directory_is_not_taken_for_a_missing_command() {
    let error = spawn(&["cat"], Some(Path::new("/no/such/directory"))).unwrap_err();
    assert_eq!(error.to_string(), "working directory \"/no/such/directory\" does not exist");
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    assert!(matches!(spawn(&[], None), Err(SpawnError::NoCommand)));
}

#[tokio::test]
async fn a_child_that_cannot_be_attached_is_not_left_running() {
    let child = spawn(&["sleep", "1000"], None).unwrap();
    let pid = child.group.pid();
    let not_a_pipe = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
    let attached = Child::attach(child.group, not_a_pipe(), not_a_pipe(), not_a_pipe());
    assert!(attached.is_err());
    death(pid).await;
}

#[tokio::test]
async fn a_big_answer_fits_into_the_pipe() {
    let child = spawn(&["cat"], None).unwrap();
    let allowed: usize = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").unwrap().trim().parse().unwrap();
    let expected = WIDE_BYTES.min(allowed);
    // Other tests of this binary run children too, and beyond `MAX_WIDE` of them ours stays narrow.
    if group::living() <= MAX_WIDE {
        assert_eq!(fcntl_getpipe_size(&child.stdout).unwrap(), expected);
        assert_eq!(fcntl_getpipe_size(&child.stdin).unwrap(), expected);
    }
}
