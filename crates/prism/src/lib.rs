//! The command line. `main.rs` only chooses the exit code.

mod acp;
pub mod cli;
mod demo;
pub mod say;
mod shim;
mod words;
