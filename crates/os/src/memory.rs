//! How much memory processes hold, as `/proc` tells. What a ceiling does about it is not decided here.
//!
//! Resident bytes are what `ps` and `top` show. Pages that several processes share count for each of them, so the sum
//! over several is a little high, never low. The exact figure (`smaps_rollup`) costs the kernel a walk over all pages.

use std::{collections::HashMap, fs};

use rustix::param::page_size;

use crate::proc::{Stat, pids};

/// Returns the resident bytes of a process; `None` if there is none, or it has ended and is not reaped yet.
pub fn of_process(pid: u32) -> Option<u64> {
    Stat::of(pid).ok().filter(|stat| !stat.is_dead()).map(resident)
}

/// Returns the resident bytes of a child and all that it started, together; `None` if none of them lives.
///
/// It looks at every process of the machine: some milliseconds where there are thousands.
pub fn of_child(leader: u32) -> Option<u64> {
    of_children(&[leader]).remove(&leader)
}

/// Returns the resident bytes of several children with all that each started, by their pids, in one look. A child that was started
/// as the leader of its group is known by that; what left the group is still its own while its parents live, as it does in a
/// sandbox. Those of which nothing lives are left out.
pub fn of_children(leaders: &[u32]) -> HashMap<u32, u64> {
    // Without any there is nothing to look for.
    let living = pids().take_while(|_| !leaders.is_empty()).filter_map(|pid| Some((pid, Stat::of(pid).ok()?)));
    let stats: HashMap<u32, Stat> = living.filter(|(_, stat)| !stat.is_dead()).collect();
    let mut held = HashMap::new();
    for (pid, stat) in &stats {
        if let Some(leader) = leader_of(*pid, &stats, leaders) {
            let sum: &mut u64 = held.entry(leader).or_default();
            *sum = sum.saturating_add(resident(*stat));
        }
    }
    held
}

/// Whose child a process is, or its children's, and so on.
fn leader_of(pid: u32, stats: &HashMap<u32, Stat>, leaders: &[u32]) -> Option<u32> {
    let ancestors = std::iter::successors(Some(pid), |pid| stats.get(pid).map(|stat| stat.parent));
    // A pid that was given away while we looked could make a circle.
    ancestors.take(MOST_ANCESTORS).find_map(|pid| {
        let group = stats.get(&pid)?.group;
        leaders.iter().copied().find(|leader| *leader == pid || *leader == group)
    })
}

const MOST_ANCESTORS: usize = 1024;

/// Returns how much memory this machine has.
pub fn of_machine() -> Option<u64> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    total?.trim().parse::<u64>().ok()?.checked_mul(1024)
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
        assert_eq!(of_child(child.group.pid()), of_process(child.group.pid()));
        let several = of_children(&[child.group.pid(), u32::MAX]);
        assert_eq!(several, HashMap::from([(child.group.pid(), bytes)]));
    }

    #[tokio::test]
    async fn a_child_holds_what_all_that_it_started_hold() {
        let mut child = shell(&format!("{0} & {0} & wait", holder(30)));
        let mut said = [0; "held\nheld\n".len()];
        soon(child.stdout.read_exact(&mut said)).await.unwrap();
        let leader = of_process(child.group.pid()).unwrap();
        let all = of_child(child.group.pid()).unwrap();
        assert!(leader < 30 * MIB, "the shell itself is small: {leader}");
        assert!((60 * MIB..200 * MIB).contains(&all), "{all}");
    }

    #[tokio::test]
    async fn who_left_the_group_counts_while_its_parents_live() {
        let held = |child: &crate::child::Child| of_child(child.group.pid()).unwrap();
        // Each says so itself, when it has left.
        let mut child = shell("setsid sh -c 'echo $$; exec sleep 100' & read wait");
        let left = number(&mut child.stdout).await;
        assert!(held(&child) >= of_process(child.group.pid()).unwrap() + of_process(left).unwrap());
        let mut child = shell("(setsid sh -c 'echo $$; exec sleep 100' &); read wait");
        let _orphan = number(&mut child.stdout).await;
        let alone = async {
            // Whoever stood between them may just be ending.
            while Some(held(&child)) != of_process(child.group.pid()) {
                tokio::task::yield_now().await;
            }
        };
        soon(alone).await;
    }

    #[test]
    fn the_machine_has_more_than_this_process() {
        assert!(of_machine() > of_process(std::process::id()));
    }

    #[tokio::test]
    async fn the_dead_hold_nothing() {
        let child = shell("exit 0");
        let pid = child.group.pid();
        death(pid).await;
        assert_eq!((of_process(pid), of_child(pid)), (None, None), "ended, not reaped");
        child.group.finish().unwrap();
        assert_eq!((of_process(pid), of_child(pid)), (None, None));
    }
}
