//! The limit on open files, and whose they are. A session costs a socket and a child costs four descriptors, so the usual soft
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

/// Keeps what is open now, but for the three streams, from whatever is started from now on. Whoever has started this process may
/// have left something open that was meant for nobody; what it opens itself is its own anyway.
#[expect(
    unsafe_code,
    reason = "the C library has no name for it everywhere, and descriptors that are inherited have no owner"
)]
pub fn keep_open_files() {
    // SAFETY: a mark on descriptors, which stay open: it takes three numbers, and neither reads nor writes memory. A kernel that
    // does not know it (before Linux 5.11) changes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_open_is_handed_on_to_nobody() {
        use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
        let left = std::fs::File::open("/etc/passwd").unwrap();
        fcntl_setfd(&left, FdFlags::empty()).unwrap();
        keep_open_files();
        assert_eq!(fcntl_getfd(&left).unwrap(), FdFlags::CLOEXEC);
    }

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
