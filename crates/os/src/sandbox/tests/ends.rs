//! How what runs in a sandbox ends: all of it, with whatever it ends with.

use super::*;
use crate::{
    proc::pids,
    pty::{Pty, PtySize},
};

/// Leaves behind what leaves its session, its parent, its environment and its terminal.
const SURVIVORS: &str = "
    setsid sleep 987654 &
    (setsid sh -c 'sleep 987654 & sleep 987654' &) &
    env -i setsid sleep 987654 &
    nohup sleep 987654 >/dev/null 2>&1 &
    (trap '' TERM HUP INT; exec sleep 987654) &
    perl -e 'fork and exit; setpgrp; fork and exit; %ENV = (); sleep 987654' &
    sleep 0.2; echo begun; read end;";

/// What runs in one sandbox: that is, in one namespace of processes.
struct Inside(u64);

impl Inside {
    async fn of(group: u32) -> Self {
        let own = namespace(std::process::id());
        let children = |of: u32| pids().filter(move |pid| Stat::of(*pid).is_ok_and(|stat| stat.parent == of));
        let found = children(group).filter_map(namespace).find(|found| Some(*found) != own);
        Self(found.expect("a namespace of its own"))
    }

    fn living(&self) -> Vec<u32> {
        let is_inside = |pid: &u32| namespace(*pid) == Some(self.0) && Stat::of(*pid).is_ok_and(|stat| !stat.is_dead());
        pids().filter(is_inside).collect()
    }

    /// Waits until nothing is left, and says how long that took.
    async fn is_empty(&self) -> Duration {
        let began = Instant::now();
        loop {
            let left = self.living();
            if left.is_empty() {
                return began.elapsed();
            }
            assert!(began.elapsed() < Duration::from_secs(20), "{left:?} live on");
            tokio::task::yield_now().await;
        }
    }
}

fn namespace(pid: u32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid")).ok().map(|found| found.ino())
}

// H5, S-20
#[tokio::test]
async fn whatever_left_its_session_ends_when_the_group_is_killed() {
    let Some(place) = Place::new() else { return };
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["sh", "-c", SURVIVORS]).unwrap();
    assert_eq!(line(&mut child.stdout).await, "begun");
    let inside = Inside::of(child.group.pid()).await;
    assert!(inside.living().len() > 7, "{:?}", inside.living());
    child.group.kill();
    println!("all gone after {:?}", inside.is_empty().await);
}

// H5
#[tokio::test]
async fn what_a_command_leaves_behind_ends_with_it() {
    let Some(place) = Place::new() else { return };
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["sh", "-c", SURVIVORS]).unwrap();
    assert_eq!(line(&mut child.stdout).await, "begun");
    let inside = Inside::of(child.group.pid()).await;
    child.stdin.write_all(b"end\n").await.unwrap();
    assert!(end_of(child).await.status.success());
    println!("all gone after {:?}", inside.is_empty().await);
}

#[tokio::test]
async fn dropping_it_ends_it() {
    let Some(place) = Place::new() else { return };
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["sh", "-c", SURVIVORS]).unwrap();
    assert_eq!(line(&mut child.stdout).await, "begun");
    let inside = Inside::of(child.group.pid()).await;
    drop(child);
    inside.is_empty().await;
}

#[tokio::test]
async fn who_is_asked_to_end_may_put_things_in_order_first() {
    let Some(place) = Place::new() else { return };
    let script = "trap 'echo in order; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["sh", "-c", script]).unwrap();
    assert_eq!(line(&mut child.stdout).await, "ready");
    child.group.terminate();
    let came = end_of(child).await;
    assert_eq!((came.out.as_str(), came.status.code()), ("in order\n", Some(3)));
}

// M5, S-22
#[tokio::test]
async fn a_bomb_is_bounded_and_ends() {
    let Some(place) = Place::new() else { return };
    let bomb = "$| = 1; for (1 .. 5000) { my $pid = fork; last if !defined $pid; sleep 987654 if !$pid } print \"end\\n\"; sleep 987654";
    let mut child = place.spawn(&place.fence(NetworkAccess::Own), &["perl", "-e", bomb]).unwrap();
    assert_eq!(line(&mut child.stdout).await, "end");
    let inside = Inside::of(child.group.pid()).await;
    // The kernel does not count the administrator's processes.
    let most = if rustix::process::getuid().is_root() { 5_010 } else { 4_100 };
    assert!((300..most).contains(&inside.living().len()), "{}", inside.living().len());
    child.group.kill();
    println!("all gone after {:?}", inside.is_empty().await);
}

// S-18
#[tokio::test]
async fn who_is_killed_while_it_begins_never_runs_and_leaves_nothing() {
    let Some(place) = Place::new() else { return };
    for number in 0..60 {
        let fence = place.fence(NetworkAccess::Own);
        let child = place.spawn(&fence, &["sh", "-c", "setsid sleep 987654 & sleep 987654"]).unwrap();
        let inside = Inside::of(child.group.pid()).await;
        if number % 2 == 0 {
            tokio::task::yield_now().await;
        }
        drop(child);
        inside.is_empty().await;
    }
}

// S-21
#[tokio::test]
async fn a_terminal_has_its_jobs_its_interrupts_and_its_size() {
    let Some(place) = Place::new() else { return };
    let (mut env, cwd, fence) = (place.env(), place.path("granted"), place.fence(NetworkAccess::Own));
    env.insert("PS1".into(), "more> ".into());
    let command = ["bash", "--norc", "-i"].map(str::to_owned);
    let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(&fence) };
    let owner = OwnerDaemon::this_process(&home("sandbox"));
    let mut pty = Pty::spawn(&spec, &owner, PtySize { rows: 30, cols: 90 }).unwrap();
    let mut said = Vec::new();
    // What is waited for, and what is typed then.
    let typed = [
        ("more> ", "sleep 987654 & jobs\n"),
        ("more> ", "sh -c 'echo be\"\"gun; exec sleep 987654'\n"),
        ("begun\r\n", "\x03"),
        ("more> ", "stty size; tty -s && echo a-$((40 + 2))-terminal; exit 4\n"),
    ];
    soon(async {
        let (mut buffer, mut next) = ([0; 4096], typed.iter().peekable());
        while let Ok(count @ 1..) = pty.output.read(&mut buffer).await {
            said.extend_from_slice(&buffer[..count]);
            if let Some((_, typed)) = next.next_if(|(awaited, _)| said.ends_with(awaited.as_bytes())) {
                pty.input.write_all(typed.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let said = String::from_utf8_lossy(&said);
    for expected in ["Running", "30 90", "a-42-terminal"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    soon(pty.group.exited()).await;
    assert_eq!(pty.group.finish().unwrap().code(), Some(4));
}

// S-21
#[tokio::test]
async fn an_interrupt_is_for_the_command_and_not_for_the_sandbox() {
    let Some(place) = Place::new() else { return };
    let (env, cwd, fence) = (place.env(), place.path("granted"), place.fence(NetworkAccess::Own));
    let script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done";
    let command = ["sh", "-c", script].map(str::to_owned);
    let spec = ChildSpec { command: &command, env: &env, cwd: Some(&cwd), cgroup: None, fence: Some(&fence) };
    let owner = OwnerDaemon::this_process(&home("sandbox"));
    let mut pty = Pty::spawn(&spec, &owner, PtySize { rows: 30, cols: 90 }).unwrap();
    assert_eq!(line(&mut pty.output).await, "ready");
    pty.input.write_all(b"\x03").await.unwrap();
    soon(pty.group.exited()).await;
    assert_eq!(pty.group.finish().unwrap().code(), Some(5));
}

// S-19
#[tokio::test]
async fn an_end_by_a_signal_is_told() {
    let Some(place) = Place::new() else { return };
    let came = place.run("kill -SEGV $$").await;
    assert_eq!(came.status.signal(), Some(11), "{:?}", came.status);
    let came = place.run("(kill -KILL $(exec sh -c 'echo $PPID')); exit 137").await;
    assert_eq!(came.status.code(), Some(137));
}
