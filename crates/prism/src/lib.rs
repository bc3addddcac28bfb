//! The daemon: everything that is wired together. `main.rs` only chooses the exit code.

pub(crate) mod acp;
pub mod builtin;
pub mod cli;
pub(crate) mod client;
pub mod config;
pub mod drive;
pub mod home;
pub mod install;
pub mod lock;
pub mod mesh;
pub mod registration;
pub mod serve;
pub(crate) mod shim;
pub mod telemetry;
pub mod wake;
