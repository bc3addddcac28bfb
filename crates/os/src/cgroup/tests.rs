//! Two kinds: what is found and written, in a folder that looks like the kernel's; and what only the kernel does, in its
//! own, where this machine has one that can be written to.

use std::collections::BTreeMap;

use super::*;
use crate::{
    census::OwnerDaemon,
    child::{Child, ChildSpec},
    testing::{environment, home, line, soon},
};

/// A folder in the place of the kernel's.
struct Tree(PathBuf);

impl Tree {
    fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let root = std::env::temp_dir().join(format!("prism-cgroup-{}-{test}", process::id()));
        for (name, text) in files {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(root)
    }

    fn find(&self, own: &str) -> Option<CgroupNest> {
        CgroupNest::find_in(&self.0, own)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name.replace("PID", &process::id().to_string()))).unwrap_or_default()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A terminal in a user's session: its group belongs to systemd, and so does the slice, which hands memory down.
const BESIDE: [(&str, &str); 5] = [
    ("slice/cgroup.controllers", "cpu memory pids\n"),
    ("slice/cgroup.subtree_control", "memory pids\n"),
    ("slice/cgroup.procs", ""),
    ("slice/term/cgroup.controllers", "memory pids\n"),
    ("slice/term/cgroup.procs", "1\n2\n"),
];

#[test]
fn beside_our_own_group_a_ceiling_is_written_down() {
    let mut files = BESIDE.to_vec();
    files.push(("slice/term/cgroup.subtree_control", ""));
    let tree = Tree::new("beside", &files);
    let nest = tree.find("9:name=x:/\n0::/slice/term\n").unwrap();
    assert_eq!(nest.folder, tree.0.join(format!("slice/{PREFIX}{}", process::id())));
    assert_eq!(tree.read("slice/prism-PID/cgroup.subtree_control"), "+memory");
    let (first, _second) = (nest.group("files", 64 << 20).unwrap(), nest.group("files", 1).unwrap());
    assert_eq!(tree.read("slice/prism-PID/files-1/memory.max"), "67108864");
    assert_eq!(tree.read("slice/prism-PID/files-2/memory.max"), "1");
    assert_eq!(tree.read("slice/term/cgroup.procs"), "1\n2\n", "we stay where we are");

    assert!(!first.went_over());
    fs::write(first.folder.join("memory.events"), "low 0\nmax 12\noom 1\noom_kill 0\n").unwrap();
    assert!(!first.went_over());
    fs::write(first.folder.join("memory.events"), "low 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n").unwrap();
    assert!(first.went_over());
}

#[test]
fn alone_in_a_group_that_was_handed_to_us_we_move_into_a_leaf() {
    let own = format!("{}\n", process::id());
    let files = [
        ("service/cgroup.controllers", "memory\n"),
        ("service/cgroup.subtree_control", ""),
        ("service/cgroup.procs", &own),
    ];
    let tree = Tree::new("alone", &files);
    let nest = tree.find("0::/service\n").unwrap();
    assert_eq!(tree.read("service/prism-PID/daemon/cgroup.procs"), process::id().to_string());
    assert_eq!(tree.read("service/cgroup.subtree_control"), "+memory");
    assert_eq!(tree.read("service/prism-PID/cgroup.subtree_control"), "+memory");
    nest.group("files", 5).unwrap();
}

#[test]
fn where_others_live_too_or_memory_is_not_handed_down_there_is_no_nest() {
    let shared = [("g/cgroup.controllers", "memory\n"), ("g/cgroup.subtree_control", ""), ("g/cgroup.procs", "1\n")];
    let without = [("g/cgroup.controllers", "pids\n"), ("g/cgroup.subtree_control", "pids"), ("g/cgroup.procs", "")];
    for (test, files, own) in [
        ("shared", &shared[..], "0::/g\n"),
        ("without", &without, "0::/g\n"),
        ("v1", &shared, "4:memory:/g\n"),
        ("outside", &BESIDE, "0::/../../slice/term\n"),
        ("nothing", &[], "0::/\n"),
    ] {
        let tree = Tree::new(test, files);
        assert!(tree.find(own).is_none(), "{test}");
        let left = fs::read_dir(tree.0.join("g")).into_iter().flatten().flatten();
        assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0, "{test}");
    }
}

#[test]
fn the_nests_of_the_dead_are_cleared_away() {
    let tree = Tree::new("stale", &BESIDE);
    // No pid is that large.
    let (dead, alive) = (tree.0.join("slice/prism-4194999"), tree.0.join("slice/prism-1"));
    for folder in [&dead.join("files-1"), &alive.join("files-1")] {
        fs::create_dir_all(folder).unwrap();
    }
    let _nest = tree.find("0::/slice/term\n").unwrap();
    assert!(!dead.exists() && alive.exists());
}

/// A group of the kernel's own, without a ceiling: the memory controller may be elsewhere.
fn real(test: &str) -> Option<Cgroup> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let root = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2"))?.split(' ').nth(1)?;
    let folder = Path::new(root).join(format!("prism-test-{}-{test}", process::id()));
    fs::create_dir(&folder).ok()?;
    let entrance = OpenOptions::new().write(true).open(folder.join("cgroup.procs")).ok();
    if entrance.is_none() {
        let _ = fs::remove_dir(&folder);
    }
    Some(Cgroup { folder, entrance: entrance? })
}

#[tokio::test]
async fn a_child_begins_its_life_in_its_group_and_the_group_ends_after_it() {
    let Some(group) = real("child") else { return };
    let command = ["sh", "-c", "cat /proc/self/cgroup | grep ^0; read wait"].map(str::to_owned);
    let spec = ChildSpec { command: &command, env: &environment(), cwd: None, cgroup: Some(&group), fence: None };
    let mut child = Child::spawn(&spec, &OwnerDaemon::this_process(&home("cgroup"))).unwrap();
    let folder = group.folder.clone();
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(line(&mut child.stdout).await, format!("0::/{name}"));
    drop(child.stdin);
    soon(child.group.exited()).await;
    child.group.finish().unwrap();
    drop(group);
    assert!(!folder.exists());
}

#[tokio::test]
async fn a_child_that_cannot_get_into_its_group_is_not_started() {
    let Some(group) = real("gone") else { return };
    fs::remove_dir(&group.folder).unwrap();
    let command = ["true".to_owned()];
    let spec = ChildSpec { command: &command, env: &BTreeMap::new(), cwd: None, cgroup: Some(&group), fence: None };
    assert!(Child::spawn(&spec, &OwnerDaemon::this_process(&home("cgroup"))).is_err());
}
