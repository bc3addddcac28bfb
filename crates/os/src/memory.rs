//! How much memory processes hold, as `/proc` tells. What a ceiling does about it is not decided here.
//!
//! Resident bytes are what `ps` and `top` show. Pages that several processes share count for each of them, so the sum
//! over a group is a little high, never low. The exact figure (`smaps_rollup`) costs the kernel a walk over all pages.

use std::collections::HashMap;

use rustix::param::page_size;

use crate::proc::{Stat, pids};

/// Returns the resident bytes of a process; `None` if there is none, or it has ended and is not reaped yet.
pub fn of_process(pid: u32) -> Option<u64> {
    Stat::of(pid).ok().filter(|stat| !stat.is_dead()).map(resident)
}

/// Returns the resident bytes of all processes of a group together; `None` if none of them lives.
///
/// It looks at every process of the machine: some milliseconds where there are thousands.
pub fn of_group(pgid: u32) -> Option<u64> {
    pids()
        .filter_map(|pid| Stat::of(pid).ok())
        .filter(|stat| stat.group == pgid && !stat.is_dead())
        .map(resident)
        .reduce(u64::saturating_add)
}

/// Returns the resident bytes of several groups, by their ids, in one look. Groups of which none lives are left out.
pub fn of_groups(pgids: &[u32]) -> HashMap<u32, u64> {
    let mut held = HashMap::new();
    // Without any there is nothing to look for.
    let stats = pids().take_while(|_| !pgids.is_empty()).filter_map(|pid| Stat::of(pid).ok());
    for stat in stats.filter(|stat| pgids.contains(&stat.group) && !stat.is_dead()) {
        let sum: &mut u64 = held.entry(stat.group).or_default();
        *sum = sum.saturating_add(resident(stat));
    }
    held
}

fn resident(stat: Stat) -> u64 {
    stat.resident_pages.saturating_mul(page_size() as u64)
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;
    use crate::testing::{death, line, number, shell, soon};

    const MIB: u64 = 1 << 20;

    /// A command that holds so many MiB, says so, and waits to be ended.
    fn holder(mib: u64) -> String {
        let python = format!("import signal; held = b'x' * ({mib} << 20); print('held', flush=True); signal.pause()");
        format!("python3 -c \"{python}\"")
    }

    #[tokio::test]
    async fn a_process_holds_what_it_has_written_to() {
        let mut child = shell(&format!("exec {}", holder(40)));
        assert_eq!(line(&mut child.stdout).await, "held");
        let bytes = of_process(child.group.pid()).unwrap();
        assert!((40 * MIB..120 * MIB).contains(&bytes), "{bytes}");
        assert_eq!(of_group(child.group.pid()), of_process(child.group.pid()));
        let several = of_groups(&[child.group.pid(), u32::MAX]);
        assert_eq!(several, HashMap::from([(child.group.pid(), bytes)]));
    }

    #[tokio::test]
    async fn a_group_holds_what_all_of_it_hold() {
        let mut child = shell(&format!("{0} & {0} & wait", holder(30)));
        let mut said = [0; "held\nheld\n".len()];
        soon(child.stdout.read_exact(&mut said)).await.unwrap();
        let leader = of_process(child.group.pid()).unwrap();
        let all = of_group(child.group.pid()).unwrap();
        assert!(leader < 30 * MIB, "the shell itself is small: {leader}");
        assert!((60 * MIB..200 * MIB).contains(&all), "{all}");
    }

    #[tokio::test]
    async fn who_left_the_group_does_not_count() {
        // It says so itself, when it has left.
        let mut child = shell("setsid sh -c 'echo $$; exec sleep 100' & read wait");
        let _runaway = number(&mut child.stdout).await;
        let group = of_group(child.group.pid()).unwrap();
        assert_eq!(Some(group), of_process(child.group.pid()));
    }

    #[tokio::test]
    async fn the_dead_hold_nothing() {
        let child = shell("exit 0");
        let pid = child.group.pid();
        death(pid).await;
        assert_eq!((of_process(pid), of_group(pid)), (None, None), "ended, not reaped");
        child.group.finish().unwrap();
        assert_eq!((of_process(pid), of_group(pid)), (None, None));
    }
}
