//! What can be seen of other programs from outside, for `prism doctor`: who listens on a port, with which variables a
//! process was started. Nothing here is needed to serve.

use std::{ffi::OsString, fs, os::unix::ffi::OsStringExt, path::Path};

use rustix::fs::statvfs;

use crate::proc::{environment, pids};

/// Whoever listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// `None` if it is another user's, whose files cannot be seen.
    pub pid: Option<u32>,
    pub uid: u32,
}

/// Returns who listens on a TCP port of this machine; `None` if nobody does, or that cannot be seen.
pub fn listener(port: u16) -> Option<PortOwner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|table| fs::read_to_string(table).ok());
    let (uid, inode) = tables.into_iter().find_map(|table| table.lines().find_map(|line| listening(line, port)))?;
    let socket = format!("socket:[{inode}]");
    Some(PortOwner { pid: pids().find(|pid| has_open(*pid, &socket)), uid })
}

/// User and inode of a line of `/proc/net/tcp`, if it is a socket that listens on the port (proc(5)).
fn listening(line: &str, port: u16) -> Option<(u32, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, local) = fields.get(1)?.rsplit_once(':')?;
    let is_it = u16::from_str_radix(local, 16).ok()? == port && *fields.get(3)? == "0A";
    is_it.then(|| Some((fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?)))?
}

fn has_open(pid: u32, socket: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target == Path::new(socket))
}

/// Returns the name of the program that a process runs: no arguments, which may hold secrets.
pub fn program(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Returns a variable of the environment that a process was started with.
pub fn variable(pid: u32, name: &str) -> Option<OsString> {
    let environment = environment(pid)?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(OsString::from_vec(value.to_vec()))
}

/// Returns how many bytes this user may still write where `path` is.
pub fn free_space(path: &Path) -> Option<u64> {
    let space = statvfs(path).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::{
        net::TcpListener,
        process::{Command, Stdio},
    };

    use super::*;

    #[test]
    fn who_listens_is_found_and_who_does_not_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = super::listener(port).unwrap();
        assert_eq!(found.pid, Some(std::process::id()));
        assert_eq!(found.uid, rustix::process::geteuid().as_raw());
        drop(listener);
        assert_eq!(super::listener(port), None);
    }

    #[test]
    fn a_line_of_a_connection_is_no_listener() {
        let line = |state: &str| {
            format!(
                "   0: 0100007F:1CF3 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  1000        0 4711 1"
            )
        };
        assert_eq!(listening(&line("0A"), 0x1CF3), Some((1000, 4711)));
        assert_eq!(listening(&line("01"), 0x1CF3), None);
        assert_eq!(listening(&line("0A"), 1), None);
        assert_eq!(listening("  sl  local_address rem_address   st", 1), None);
    }

    #[test]
    fn a_variable_and_the_program_of_another_process_can_be_seen() {
        let mut child = Command::new("cat").env("PEEKED", "a=b").stdin(Stdio::piped()).spawn().unwrap();
        let seen = (variable(child.id(), "PEEKED"), variable(child.id(), "PEEK"), program(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen, (Some("a=b".into()), None, Some("cat".to_owned())));
    }

    #[test]
    fn there_is_some_space_somewhere() {
        assert!(free_space(Path::new("/")).unwrap() > 0);
        assert_eq!(free_space(Path::new("/no/such/place")), None);
    }
}
