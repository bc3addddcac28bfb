//! The ceiling on a child's memory (`max_memory`): kept by the kernel where there are control groups to be had, else
//! watched.

use std::{future::pending, time::Duration};

use prism_os::{
    cgroup::{self, Cgroup},
    memory,
};
use tokio::{task::spawn_blocking, time::sleep};
use tracing::warn;

/// How often a child is looked at whose ceiling the kernel does not keep.
const LOOK: Duration = Duration::from_secs(1);

/// The ceiling of one child.
pub(super) struct MemoryLimit {
    max_bytes: u64,
    /// `None`: it is watched.
    pub(super) cgroup: Option<Cgroup>,
}

// === impl MemoryLimit ===

impl MemoryLimit {
    /// A ceiling for a child that is about to start.
    pub(super) fn of(destination: &str, max_bytes: u64) -> Self {
        let made = cgroup::nest().map(|nest| nest.group(destination, max_bytes)).transpose();
        let cgroup = made.unwrap_or_else(|error| {
            warn!(destination, %error, "Cannot make a control group; the server's memory is watched instead");
            None
        });
        Self { max_bytes, cgroup }
    }

    /// Waits until a child that is watched holds more than it may, with all that it started.
    pub(super) async fn exceeded(&self, pid: u32) {
        if self.cgroup.is_some() {
            return pending().await;
        }
        loop {
            sleep(LOOK).await;
            // All processes of the machine are looked at, which may take a while.
            let held = spawn_blocking(move || memory::of_child(pid)).await.ok().flatten();
            if held.is_some_and(|held| held > self.max_bytes) {
                return;
            }
        }
    }

    /// Tells whether the kernel has ended the child, or something it started.
    pub(super) fn was_enforced(&self) -> bool {
        self.cgroup.as_ref().is_some_and(Cgroup::went_over)
    }

    /// Why a child that went over it has ended, in the words that clients hear.
    pub(super) fn why(&self) -> String {
        format!(
            "the server used more than max_memory = {} and was ended; raise it in prism.toml",
            shown(self.max_bytes)
        )
    }
}

/// A size as people write it.
fn shown(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_named_as_it_was_written() {
        let why = |max_bytes| MemoryLimit { max_bytes, cgroup: None }.why();
        assert!(why(2 << 30).contains("max_memory = 2 GiB and was ended"));
        assert!(why(1536 << 20).contains("= 1536 MiB "));
        assert!(why(500_000_000).contains("= 500000000 bytes "));
    }
}
