use std::{os::unix::process::ExitStatusExt, pin::pin, time::Instant};

use super::*;
use crate::testing::{death, is_alive, is_reaped, line, number, shell, soon};

/// A child which starts another in the same group and prints its pid.
const WITH_GRANDCHILD: &str = "sleep 1000 & echo $!; wait";

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(1000);

#[tokio::test]
async fn kill_ends_the_whole_group() {
    // B-13
    let mut child = shell(WITH_GRANDCHILD);
    let grandchild = number(&mut child.stdout).await;
    child.group.kill();
    soon(child.group.exited()).await;
    death(grandchild).await;
}

#[tokio::test]
async fn terminate_reaches_the_whole_group() {
    let mut child = shell("(trap 'echo bye; exit' TERM; echo ready; while :; do sleep 0.01; done) & wait");
    assert_eq!(line(&mut child.stdout).await, "ready");
    child.group.terminate();
    assert_eq!(line(&mut child.stdout).await, "bye");
    soon(child.group.exited()).await;
    assert_eq!(child.group.finish().unwrap().signal(), Some(15));
}

#[tokio::test]
async fn finish_ends_what_outlives_the_child_and_tells_how_it_ended() {
    // B-08
    let mut child = shell("sleep 1000 & echo $!; exit 7");
    let grandchild = number(&mut child.stdout).await;
    soon(child.group.exited()).await;
    assert!(is_alive(grandchild));

    let pid = child.group.pid();
    let status = child.group.finish().unwrap();

    assert_eq!(status.code(), Some(7));
    assert!(is_reaped(pid));
    death(grandchild).await;
}

#[tokio::test]
async fn a_double_forked_grandchild_dies_with_its_group() {
    let mut child = shell("(sleep 1000 & echo $!) ; wait");
    let grandchild = number(&mut child.stdout).await;
    soon(child.group.exited()).await;
    drop(child.group);
    death(grandchild).await;
}

#[tokio::test]
async fn exited_does_not_reap() {
    let child = shell("exit 3");
    soon(child.group.exited()).await;
    assert!(!is_reaped(child.group.pid()) && !is_alive(child.group.pid()));
    soon(child.group.exited()).await;
    assert_eq!(child.group.finish().unwrap().code(), Some(3));
}

#[tokio::test]
async fn a_cancelled_exited_loses_nothing() {
    let child = shell("read line; exit 3");
    {
        let mut exited = pin!(child.group.exited());
        assert!(timeout(Duration::ZERO, &mut exited).await.is_err());
    }
    drop(child.stdin);
    soon(child.group.exited()).await;
}

#[tokio::test]
async fn dropping_leaves_neither_process_nor_zombie() {
    let mut child = shell(WITH_GRANDCHILD);
    let grandchild = number(&mut child.stdout).await;
    let pid = child.group.pid();
    drop(child);
    death(pid).await;
    death(grandchild).await;
    // A child that needs longer than `REAP_PATIENCE` is reaped by a thread.
    soon(async {
        while !is_reaped(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn stop_lets_a_child_go_by_itself() {
    // B-13
    let child = shell("cat; exit 5");
    drop(child.stdin);
    let status = soon(stop(child.group, LONG)).await.unwrap();
    assert_eq!(status.code(), Some(5));
}

#[tokio::test]
async fn stop_terminates_a_child_that_does_not_mind_its_stdin() {
    let mut child = shell("trap 'exit 6' TERM; echo ready; while :; do sleep 0.01; done");
    line(&mut child.stdout).await;
    drop(child.stdin);
    // A grace so long that only SIGTERM, and not SIGKILL, can have ended it.
    let status = soon(stop(child.group, Duration::from_secs(1))).await.unwrap();
    assert_eq!(status.code(), Some(6));
}

#[tokio::test]
async fn stop_kills_a_child_that_ignores_sigterm() {
    let mut child = shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
    line(&mut child.stdout).await;
    let pid = child.group.pid();
    let began = Instant::now();
    let status = soon(stop(child.group, SHORT)).await.unwrap();
    assert_eq!(status.signal(), Some(9));
    assert!(began.elapsed() >= 2 * SHORT);
    assert!(is_reaped(pid));
}

#[tokio::test]
async fn a_dropped_stop_kills_at_once() {
    let mut child = shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
    line(&mut child.stdout).await;
    let pid = child.group.pid();
    assert!(timeout(Duration::ZERO, stop(child.group, LONG)).await.is_err());
    death(pid).await;
}
