//! One command, as the environment of all that it starts names it. Its process group goes first (`group.rs`); what has left the
//! group is found by this name.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use super::{Orphan, OwnerDaemon, scan};

/// The environment variable that says which run a process belongs to.
pub(super) const RUN: &str = "PRISM_RUN";

/// A command that is being run. Dropping it kills what is left of it, on a thread of its own.
#[derive(Debug)]
pub struct MarkedRun {
    owner: OwnerDaemon,
    /// Empty once all is ended.
    id: String,
}

impl MarkedRun {
    pub fn new(owner: &OwnerDaemon) -> Self {
        static BEGUN: AtomicU64 = AtomicU64::new(0);
        let number = BEGUN.fetch_add(1, Ordering::Relaxed);
        Self { owner: owner.clone(), id: format!("{}-{number}", std::process::id()) }
    }

    /// Has the environment name it.
    pub fn mark(&self, env: &mut BTreeMap<OsString, OsString>) {
        env.insert(RUN.into(), OsString::from(&self.id));
    }

    /// Kills what is left of it, waits a moment until that is gone, and returns it. To be called once the group is gone.
    /// Blocks, for two seconds at worst.
    pub fn end(mut self) -> Vec<Orphan> {
        let id = std::mem::take(&mut self.id);
        scan::end_run(&self.owner, &id)
    }
}

impl Drop for MarkedRun {
    fn drop(&mut self) {
        if self.id.is_empty() {
            return;
        }
        let (owner, id) = (self.owner.clone(), std::mem::take(&mut self.id));
        let begun = thread::Builder::new().name("prism-strays".to_owned()).spawn({
            let (owner, id) = (owner.clone(), id.clone());
            move || drop(scan::end_run(&owner, &id))
        });
        if begun.is_err() {
            // Without a thread it takes a few milliseconds here.
            scan::end_run(&owner, &id);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        census::OwnerDaemon,
        child::{Child, ChildSpec},
        testing::{death, environment, home, is_alive, line},
    };

    use super::*;

    fn shell(run: &MarkedRun, script: &str) -> Child {
        let mut env = environment();
        run.mark(&mut env);
        let command = ["sh", "-c", script].map(str::to_owned);
        Child::spawn(&ChildSpec { command: &command, env: &env, cwd: None, cgroup: None, fence: None }, &run.owner)
            .unwrap()
    }

    #[tokio::test]
    async fn what_has_left_the_group_ends_with_its_run_and_no_other() {
        let owner = OwnerDaemon::this_process(&home("runs"));
        let (one, other) = (MarkedRun::new(&owner), MarkedRun::new(&owner));
        // Twice forked, in a session of its own, and the one who started it is gone.
        let script = "(setsid sh -c 'echo $$; exec sleep 1000' &) ; sleep 1000";
        let (mut first, mut second) = (shell(&one, script), shell(&other, script));
        let strays = [line(&mut first.stdout).await, line(&mut second.stdout).await];
        let strays = strays.map(|pid| pid.parse::<u32>().unwrap());
        drop(first.group);
        assert!(is_alive(strays[0]), "it is not in the group");

        let ended = one.end();
        assert_eq!(ended.iter().map(|orphan| orphan.pid).collect::<Vec<_>>(), [strays[0]]);
        assert!(!is_alive(strays[0]) && is_alive(strays[1]));

        drop((second.group, other));
        death(strays[1]).await;
    }
}
