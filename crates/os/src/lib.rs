//! How Prism asks the kernel: children, their process groups, the orphan census, limits, changed folders. What to run, and
//! when to start it again, is decided elsewhere.

pub mod ask;
pub mod census;
pub mod cgroup;
pub mod child;
pub mod clock;
pub mod detach;
pub mod group;
pub mod limits;
pub mod login;
pub mod memory;
pub mod peek;
mod pid_namespace;
mod proc;
pub mod process;
pub mod program;
pub mod pty;
pub mod random;
pub mod reader;
pub mod root;
pub mod sandbox;
pub mod terminal;
pub mod watch;

pub use sandbox::fence;

#[cfg(test)]
mod testing;
