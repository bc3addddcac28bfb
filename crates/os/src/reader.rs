//! Whether anybody still reads what we write. A write would tell, but there may be nothing to write for hours.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use tokio::io::{Interest, unix::AsyncFd};

/// Whoever reads our stdout.
pub struct StdoutReader(AsyncFd<OwnedFd>);

impl StdoutReader {
    /// Fails where it cannot be seen: nobody waits at the other end of a file. Needs a runtime.
    #[expect(unsafe_code, reason = "the descriptor must stay open, which tokio cannot see")]
    pub fn of_stdout() -> io::Result<Self> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        // SAFETY: the descriptor is our own and stays open, and the same one, until it is dropped with the `AsyncFd`.
        let registered = unsafe { AsyncFd::register_with_interest(stdout, Interest::ERROR) };
        Ok(Self(registered?))
    }

    /// Returns when nobody reads any more. Cancel safe.
    pub async fn gone(&self) {
        let _ = self.0.ready(Interest::ERROR).await;
    }
}
