use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use super::*;
use crate::testing::{death, environment, home, is_alive, soon};

fn spawn(script: &str) -> Pty {
    let command = ["sh", "-c", script].map(str::to_owned);
    let spec = ChildSpec { command: &command, env: &environment(), cwd: None, cgroup: None, fence: None };
    Pty::spawn(&spec, &OwnerDaemon::this_process(&home("pty")), PtySize { rows: 24, cols: 80 }).unwrap()
}

async fn line(output: &mut BufReader<Receiver>) -> String {
    let mut line = String::new();
    soon(output.read_line(&mut line)).await.unwrap();
    line.trim_end().to_owned()
}

#[tokio::test]
async fn the_child_has_a_terminal_and_leads_its_session() {
    let pty = spawn(
        "tty -s && echo yes; stty size; ps -o sid= -p $$ | tr -d ' '; echo $$; echo seen >/dev/tty; read a; echo \"<$a>\"; exit 7",
    );
    let Pty { output, mut input, group, .. } = pty;
    let mut output = BufReader::new(output);
    assert_eq!((line(&mut output).await, line(&mut output).await), ("yes".to_owned(), "24 80".to_owned()));
    let (session, pid) = (line(&mut output).await, line(&mut output).await);
    assert_eq!(session, pid);
    assert_eq!(line(&mut output).await, "seen");
    input.write_all(b"typed\n").await.unwrap();
    assert_eq!(line(&mut output).await, "typed", "the terminal echoes");
    assert_eq!(line(&mut output).await, "<typed>");
    soon(group.exited()).await;
    assert_eq!(group.finish().unwrap().code(), Some(7));
    let mut rest = String::new();
    assert!(soon(output.read_line(&mut rest)).await.is_err(), "nobody has it open any more: {rest:?}");
}

#[tokio::test]
async fn a_new_size_and_a_signal_reach_whoever_is_in_front() {
    let pty = spawn("trap 'stty size' WINCH; trap 'echo int; exit 3' INT; echo ready; while :; do read a; done");
    let Pty { output, input: _input, session, group, .. } = pty;
    let mut output = BufReader::new(output);
    assert_eq!(line(&mut output).await, "ready");
    session.resize(PtySize { rows: 50, cols: 132 }).unwrap();
    assert_eq!(line(&mut output).await, "50 132");
    session.signal(Signal::INT).unwrap();
    assert!(line(&mut output).await.ends_with("int"));
    soon(group.exited()).await;
    assert_eq!(group.finish().unwrap().code(), Some(3));
}

#[tokio::test]
async fn killing_the_session_ends_jobs_in_groups_of_their_own() {
    // `set -m` gives each job a group, and `trap` lets it outlive the terminal's end.
    let pty =
        spawn("set -m; for i in 1 2 3; do (trap '' HUP TERM; while :; do sleep 1000; done) & echo $!; done; wait");
    let Pty { output, input, session, group, .. } = pty;
    let mut output = BufReader::new(output);
    let mut pids = Vec::new();
    for _ in 0..3 {
        pids.push(line(&mut output).await.parse::<u32>().unwrap());
    }
    drop((input, output));
    group.kill();
    assert!(pids.iter().all(|pid| is_alive(*pid)), "they are not in the leader's group");
    session.kill();
    for pid in pids {
        death(pid).await;
    }
    drop(group);
}
