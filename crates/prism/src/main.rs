//! Parses arguments, calls one function, chooses the exit code.

use std::process::ExitCode;

use prism::cli::{Cli, say};

fn main() -> ExitCode {
    match Cli::read().run() {
        Ok(code) => code,
        Err(error) => {
            say::error(&error);
            ExitCode::FAILURE
        }
    }
}
