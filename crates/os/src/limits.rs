//! The limit on open files. A session costs a socket and a child costs four descriptors, so the usual soft
//! limit of 1024 is soon met, while the hard one seldom is.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Returns the soft and the hard limit on open files; `u64::MAX` is none.
pub fn open_files() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Returns how many files this process has open; 0 where that cannot be seen.
pub fn open_now() -> u64 {
    // The folder itself is open while it is read.
    std::fs::read_dir("/proc/self/fd").map_or(0, |files| (files.count() as u64).saturating_sub(1))
}

/// Raises the soft limit on open files to the hard one and returns what then holds. Children inherit it.
pub fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Some kernels refuse to take their own hard limit as a soft one; then the old limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    open_files().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        let limit = getrlimit(Resource::Nofile);
        let lower = limit.maximum.map_or(4096, |hard| hard - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(lower), ..limit }).unwrap();

        assert_eq!(open_files().0, lower);
        let raised = raise_open_files();

        assert!(raised > lower);
        assert_eq!(open_files(), (raised, raised));
    }
}
