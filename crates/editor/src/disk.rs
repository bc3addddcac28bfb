//! Files and folders beneath the granted roots: read, written, named, searched and watched. What is open and not saved is asked
//! of `text`, which is below.

pub(crate) mod change;
pub(crate) mod files;
pub(crate) mod find;
pub(crate) mod glob;
pub(crate) mod names;
pub(crate) mod search;
pub(crate) mod tree;
pub(crate) mod walk;
pub(crate) mod watch;
