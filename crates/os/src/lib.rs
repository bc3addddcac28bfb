//! How Prism asks the kernel: children, their process groups, the orphan census, limits. What to run, and
//! when to start it again, is decided elsewhere.

pub mod census;
pub mod child;
pub mod group;
pub mod limits;
mod proc;

#[cfg(test)]
mod testing;
