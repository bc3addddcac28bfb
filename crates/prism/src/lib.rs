//! The daemon: everything that is wired together. `main.rs` only chooses the exit code.

pub(crate) mod acp;
pub mod builtin;
pub(crate) mod calls;
pub mod cli;
pub(crate) mod client;
pub(crate) mod clock;
pub mod config;
pub mod console;
pub mod drive;
pub mod editor;
pub mod events;
pub mod gate;
pub mod home;
pub mod install;
pub mod lock;
pub mod mesh;
pub mod registration;
pub mod serve;
pub(crate) mod shim;
pub mod telemetry;
pub mod wake;
