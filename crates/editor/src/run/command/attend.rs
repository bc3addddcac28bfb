//! Attends to a child until it has ended, and ends all that it has started.

use std::{
    os::unix::process::ExitStatusExt,
    pin::pin,
    process::ExitStatus,
    sync::Mutex,
    time::{Duration, Instant},
};

use prism_os::{census::MarkedRun, child::Child};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::BoundedOutput;
use crate::{
    run::fence::{Overrun, RunLimits},
    run::observe::RunView,
};

/// How a child has ended, and what it has printed.
pub(crate) struct EndedCommand {
    pub(crate) status: ChildStatus,
    pub(crate) timed_out: bool,
    /// What it went over, and was ended for.
    pub(crate) over: Option<Overrun>,
    pub(crate) out: BoundedOutput,
    pub(crate) err: BoundedOutput,
    /// In milliseconds.
    pub(crate) duration: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChildStatus {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// How long is read on after a command has ended: what it has left in the pipe is there at once, and somebody that has
/// run away with the other end must not keep us.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How long is waited for a child that was killed: one that hangs in a device dies when it can.
pub(crate) const DEATH: Duration = Duration::from_secs(2);

/// Reads what a child prints until it has ended, or its time is up; `view` has all of it and `seen` each line. Dropping the future kills the
/// child and all that it has started.
pub(crate) async fn attend(
    child: Child,
    run: MarkedRun,
    patience: Duration,
    limits: &RunLimits,
    view: &RunView,
    seen: impl FnMut(&str) + Send,
) -> EndedCommand {
    let began = Instant::now();
    let Child { stdin, mut stdout, mut stderr, group, .. } = child;
    // There is nothing to read for it.
    drop(stdin);
    let (mut out, mut err) = (BoundedOutput::of(view.pipe()), BoundedOutput::of(view.pipe()));
    let seen = Mutex::new(seen);
    let (timed_out, over) = {
        let reading = async { tokio::join!(out.read(&mut stdout, &seen), err.read(&mut stderr, &seen)) };
        tokio::pin!(reading);
        let mut is_silent = false;
        let up = sleep(patience);
        tokio::pin!(up);
        let mut exceeded = pin!(limits.exceeded(group.pid()));
        loop {
            tokio::select! {
                () = group.exited() => break (false, None),
                () = &mut up => break (true, None),
                over = &mut exceeded => break (false, Some(over)),
                _ = &mut reading, if !is_silent => is_silent = true,
            }
        }
    };
    // Whatever it has started and left behind ends with it.
    group.kill();
    let is_gone = timeout(DEATH, group.exited()).await.is_ok();
    let status = if is_gone { group.finish().ok().map(ChildStatus::of) } else { None };
    let _ = timeout(DEATH, spawn_blocking(move || run.end())).await;
    let rest = async { tokio::join!(out.read(&mut stdout, &seen), err.read(&mut stderr, &seen)) };
    let _ = timeout(LAST_WORDS, rest).await;
    out.end(&seen);
    err.end(&seen);
    let over = over.or_else(|| limits.kept());
    let duration = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    EndedCommand { status: status.unwrap_or_default(), timed_out, over, out, err, duration }
}

impl ChildStatus {
    pub(crate) fn of(status: ExitStatus) -> Self {
        Self { code: status.code(), signal: status.signal() }
    }
}
