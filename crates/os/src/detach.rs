//! Starts a process that outlives whoever started it: a session of its own, so that neither a closed terminal nor a
//! Ctrl-C there reaches it. What it runs, and where its output goes, is the caller's.

use std::{
    fs::File,
    io,
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use rustix::{
    process::setsid,
    stdio::{dup2_stderr, dup2_stdout},
};

use crate::census::MARKER;

/// Starts the command in a session of its own.
///
/// It is nobody's child in the sense of the census: a daemon that was started from a server of another one must not
/// end with that.
#[expect(unsafe_code, reason = "std has no safe way to begin a session in a child")]
pub fn spawn(mut command: Command) -> io::Result<Child> {
    command.env_remove(MARKER);
    // SAFETY: `setsid` is async-signal-safe (signal-safety(7)); the closure allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            Ok(())
        });
    }
    command.spawn()
}

/// Sends what this process writes to stdout and stderr to a file from now on.
pub fn redirect_output(file: &File) -> io::Result<()> {
    dup2_stdout(file)?;
    dup2_stderr(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn what_is_detached_leads_a_session_and_bears_no_mark() {
        let mut command = Command::new("sh");
        command.args(["-c", "cut -d' ' -f1,6 /proc/$$/stat; echo \"${PRISM_CHILD_OF-none}\""]);
        command.env(MARKER, "/home|1|2|3").stdout(Stdio::piped());
        let child = spawn(command).unwrap();
        let pid = child.id();
        let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(said, format!("{pid} {pid}\nnone\n"));
    }
}
