use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_command_leaves_its_words_and_its_status() {
    let ran = run(shell("echo one; echo two; echo three >&2; exit 3"), VANISH, Show::Nothing, || ()).unwrap();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("one\ntwo\n", "three\n"));
    assert_eq!((ran.status.code(), ran.last_words()), (Some(3), "two".to_owned()));
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_children() {
    let begun = Instant::now();
    let error = run(shell("echo $$; sleep 60 & wait"), Duration::from_millis(200), Show::Nothing, || ()).err().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30), "{error}");
    let group: u32 = error.to_string().rsplit(' ').next().unwrap().parse().unwrap();
    let deadline = Instant::now() + VANISH;
    while Process::all().iter().any(|process| process.group == group && !process.is_dead()) {
        assert!(Instant::now() < deadline, "the sleep outlived its group");
        thread::yield_now();
    }
}

#[test]
fn a_daemon_that_ends_with_its_children_is_clean() {
    let mut daemon =
        Daemon::new(Group::spawn(shell("trap 'kill $!; wait; exit' TERM; sleep 60 & wait")).unwrap(), "=a-mark".into());
    until(&mut daemon, |daemon| !daemon.seen.is_empty());
    assert_eq!(daemon.stop(VANISH), Vec::<String>::new());
}

#[test]
#[cfg(target_os = "linux")]
fn a_child_that_escaped_from_the_group_is_reported_and_ended() {
    let mut daemon = Daemon::new(Group::spawn(shell("setsid sleep 61 & wait")).unwrap(), "=a-mark".into());
    until(&mut daemon, |daemon| daemon.seen.values().any(|p| p.group != daemon.pid() && p.name == "sleep"));
    let escaped = daemon.seen.values().find(|process| process.name == "sleep").unwrap().clone();
    let wrong = daemon.stop(VANISH);
    assert!(wrong.iter().any(|line| line.contains("left behind") && line.contains("sleep")), "{wrong:?}");
    let deadline = Instant::now() + VANISH;
    while escaped.is_still_there() {
        assert!(Instant::now() < deadline, "it was reported but not ended");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn who_carries_a_mark_is_swept_up() {
    let mark = format!("=a-mark-to-sweep-{}", std::process::id());
    let mut command = shell("exec sleep 62");
    command.env("A_MARK", &mark[1..]);
    let mut group = Group::spawn(command).unwrap();
    let left = sweep(&mark);
    assert!(left.len() == 1 && left[0].contains(&group.pid().to_string()), "{left:?}");
    assert!(group.wait(VANISH, &mut || ()));
    assert_eq!(sweep(&mark), Vec::<String>::new());
}

#[test]
fn a_daemon_that_does_not_listen_is_killed_and_reported() {
    let daemon = Daemon::new(
        Group::spawn(shell("trap '' TERM; echo ready; while :; do sleep 1; done")).unwrap(),
        "=a-mark".into(),
    );
    // Give the shell time to set its trap: it shows by the sleep it then starts.
    let mut daemon = daemon;
    until(&mut daemon, |daemon| !daemon.seen.is_empty());
    let wrong = daemon.stop(Duration::from_millis(200));
    assert!(wrong[0].contains("SIGTERM"), "{wrong:?}");
}

#[test]
fn the_process_table_survives_odd_names() {
    let stat = "7 (a) b (c)) S 1 5 5 0 -1 0 0 0 0 0 3 4 0 0 20 0 1 0 99 0";
    let process = Process::parse(7, stat).unwrap();
    assert_eq!((process.name.as_str(), process.parent, process.group, process.started), ("a) b (c)", 1, 5, 99));
}

fn until(daemon: &mut Daemon, condition: impl Fn(&Daemon) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition(daemon) {
        assert!(Instant::now() < deadline, "the daemon never got there: {:?}", daemon.seen);
        daemon.look();
    }
}
