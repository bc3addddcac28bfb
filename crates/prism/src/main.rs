//! Parses arguments, calls one function, chooses the exit code.

use std::process::ExitCode;

use prism::{cli::Cli, say};
use prism_os::sandbox::inner;

fn main() -> ExitCode {
    // Before anything is read: in a sandbox nothing is what it is elsewhere.
    if inner::is_called() {
        return inner::run();
    }
    match Cli::read().run() {
        Ok(code) => code,
        Err(error) => {
            say::error(&error);
            ExitCode::FAILURE
        }
    }
}
