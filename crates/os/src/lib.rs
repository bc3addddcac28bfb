//! How Prism asks the kernel: children, their process groups, the orphan census, limits, changed folders. What to run, and
//! when to start it again, is decided elsewhere.

pub mod census;
pub mod child;
pub mod group;
pub mod limits;
mod proc;
pub mod watch;

#[cfg(test)]
mod testing;
