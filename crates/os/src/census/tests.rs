use super::{scan::spared, *};
use crate::{
    child::Child,
    testing::{daemon, dead_owner, death, home, is_alive, number, shell_of},
};

/// A child whose own child leaves its session and group, and prints its pid once it has. It ends with stdin, so
/// that a test which fails leaves nobody behind.
const WITH_RUNAWAY: &str = "exec 3<&0; setsid sh -c 'echo $$; read line <&3' & wait";

fn pids(orphans: &[Orphan]) -> Vec<u32> {
    let mut pids: Vec<u32> = orphans.iter().map(|orphan| orphan.pid).collect();
    pids.sort_unstable();
    pids
}

/// Starts a child with a runaway under `owner`.
async fn family(owner: &OwnerDaemon) -> (Child, u32) {
    let mut child = shell_of(owner, WITH_RUNAWAY);
    let runaway = number(&mut child.stdout).await;
    (child, runaway)
}

/// Starts a child under `owner`, and waits until its environment certainly is its own: for a moment after
/// `spawn` the kernel may still show ours.
async fn loaded(owner: &OwnerDaemon) -> Child {
    let mut child = shell_of(owner, "echo $$; read line");
    assert_eq!(number(&mut child.stdout).await, child.group.pid());
    child
}

#[tokio::test]
async fn orphans_are_found_and_ended_even_if_they_left_the_group() {
    // B-25
    let owner = dead_owner("ended");
    let (child, runaway) = family(&owner).await;
    let leader = child.group.pid();
    drop(child.group);
    death(leader).await;
    assert!(is_alive(runaway), "it has left the group that the drop has killed");

    let ended = end_orphans(&home("ended"));

    assert_eq!(pids(&ended), [runaway]);
    assert_eq!(ended[0].command, "sh -c echo $$; read line <&3");
    death(runaway).await;
    assert_eq!(end_orphans(&home("ended")), []);
}

#[tokio::test]
async fn whole_families_of_orphans_are_ended() {
    let owner = dead_owner("families");
    let (first, first_runaway) = family(&owner).await;
    let (second, second_runaway) = family(&owner).await;
    let mut all = [first.group.pid(), first_runaway, second.group.pid(), second_runaway];
    all.sort_unstable();

    assert_eq!(pids(&end_orphans(&home("families"))), all);

    for pid in all {
        death(pid).await;
    }
}

#[tokio::test]
async fn a_living_daemon_can_end_what_ran_away_from_its_own_groups_and_nobody_elses() {
    // B-25
    let (mine, other) = (OwnerDaemon::this_process(&home("strays")), OwnerDaemon::this_process(&home("others")));
    let (child, runaway) = family(&mine).await;
    let (spared, spared_runaway) = family(&other).await;
    let leader = child.group.pid();
    drop(child.group);
    death(leader).await;

    assert_eq!(pids(&end_strays(&mine)), [runaway]);

    death(runaway).await;
    assert!(is_alive(spared.group.pid()) && is_alive(spared_runaway));
    end_strays(&other);
}

#[tokio::test]
async fn listing_ends_nobody() {
    let owner = dead_owner("listing");
    let (child, runaway) = family(&owner).await;
    let listed = orphans(&home("listing"));
    assert_eq!(pids(&listed), pids(&orphans(&home("listing"))));
    assert!(listed.iter().any(|orphan| orphan.pid == runaway));
    assert!(is_alive(child.group.pid()) && is_alive(runaway));
    end_orphans(&home("listing"));
}

#[tokio::test]
async fn children_of_a_living_daemon_are_left_alone() {
    let owner = OwnerDaemon::this_process(&home("living"));
    let (child, runaway) = family(&owner).await;
    check_spared("living", child, runaway).await;
}

#[tokio::test]
async fn children_of_another_home_are_left_alone() {
    let owner = dead_owner("another");
    let (child, runaway) = family(&owner).await;
    check_spared("mine", child, runaway).await;
}

#[tokio::test]
async fn children_of_another_pid_namespace_are_left_alone() {
    let mut owner = dead_owner("namespace");
    owner.namespace += 1;
    let (child, runaway) = family(&owner).await;
    check_spared("namespace", child, runaway).await;
}

async fn check_spared(test: &str, child: Child, runaway: u32) {
    let ended = end_orphans(&home(test));
    assert_eq!(ended, []);
    assert!(is_alive(child.group.pid()) && is_alive(runaway));
}

#[tokio::test]
async fn a_daemon_whose_pid_was_reused_is_gone() {
    let mut owner = OwnerDaemon::this_process(&home("reused"));
    owner.start_ticks -= 1;
    let child = loaded(&owner).await;
    assert_eq!(pids(&end_orphans(&home("reused"))), [child.group.pid()]);
}

#[tokio::test]
async fn a_daemon_that_nobody_reaps_is_gone() {
    let (mut daemon, owner) = daemon("zombie");
    let child = loaded(&owner).await;
    assert_eq!(orphans(&home("zombie")), []);

    daemon.kill().unwrap();
    death(daemon.id()).await;

    assert_eq!(pids(&end_orphans(&home("zombie"))), [child.group.pid()]);
    daemon.wait().unwrap();
}

#[test]
fn the_census_spares_itself_and_whoever_started_it() {
    let spared = spared();
    assert!(spared.contains(&std::process::id()));
    assert!(spared.contains(&std::os::unix::process::parent_id()));
}

#[test]
fn a_marker_survives_any_path() {
    for home in ["/home/a b/.prism", "/odd|1|2|3/=\n", "/"] {
        let owner = OwnerDaemon::of(Path::new(home), 42, 4242);
        let environment = format!("A=1\0PRISM_CHILD_OF={}\0B=2\0", owner.marker().display());
        assert_eq!(OwnerDaemon::in_environment(environment.as_bytes()), Some(owner));
    }
}

#[test]
fn what_is_no_marker_makes_no_owner() {
    for environment in [
        "",
        "PRISM_CHILD_OF",
        "PRISM_CHILD_OF=",
        "PRISM_CHILD_OF=/home|1|2",
        "PRISM_CHILD_OF=/home|1|-2|3",
        "PRISM_CHILD_OF=/home|1|2|0",
        "XPRISM_CHILD_OF=/home|1|2|3",
        "PRISM_CHILD_OFF=/home|1|2|3",
    ] {
        assert_eq!(OwnerDaemon::in_environment(environment.as_bytes()), None, "{environment}");
    }
}

#[test]
fn a_home_is_the_same_however_it_is_spelled() {
    assert_eq!(OwnerDaemon::of(Path::new("/proc/self/.."), 1, 1), OwnerDaemon::of(Path::new("/proc"), 1, 1));
}
