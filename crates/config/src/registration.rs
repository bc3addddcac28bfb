//! `http-mcp.json`: where the daemon of a home is, for whoever looks for it (D-03). It is written once the daemon listens
//! and goes when it stops; one that a killed daemon left is told by its start time, and the next daemon overwrites it.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use prism_os::process::ProcessIdentity;
use serde::{Deserialize, Serialize};

use crate::file::ConfigPaths;

/// The file, in Prism's home.
pub const FILE: &str = "http-mcp.json";

/// How long a daemon may take to say that it is alive.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// What is read of that.
const MAX_ANSWER_BYTES: u64 = 4096;

/// A daemon: where it listens, which process it is, and how it was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub port: u16,
    /// Where it is, without a path.
    pub url: String,
    pub pid: u32,
    pub version: String,
    /// RFC 3339.
    pub started_at: String,
    pub socket: Option<PathBuf>,
    /// When its process started, in the kernel's clock ticks since boot: what tells it from a later one with its pid.
    pub process_started: u64,
    /// Its log, where that is a file of ours.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// What it was started with and where, so that a restart does the same again.
    #[serde(default)]
    pub arguments: Vec<String>,
    #[serde(default)]
    pub folder: PathBuf,
    /// Who starts it again when it ends: `systemd` or `launchd`.
    #[serde(default)]
    pub supervisor: Option<String>,
}

impl Registration {
    /// Returns what is registered in a home. What cannot be read is as good as nothing: the next daemon overwrites it.
    #[must_use]
    pub fn read(home: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(home.join(FILE)).ok()?).ok()
    }

    /// Returns what is registered in a home, if that daemon lives.
    #[must_use]
    pub fn alive(home: &Path) -> Option<Self> {
        Self::read(home).filter(Self::is_alive)
    }

    /// Tells whether the process lives that wrote this.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.process().is_alive()
    }

    /// Names the process.
    #[must_use]
    pub fn process(&self) -> ProcessIdentity {
        ProcessIdentity { pid: self.pid, start_ticks: self.process_started }
    }

    /// Returns the config file that it runs on, as far as what it was started with tells; `None`: there is none.
    #[must_use]
    pub fn config_file(&self, home: &Path) -> Option<PathBuf> {
        let mut words = self.arguments.iter();
        let explicit = words.find_map(|word| match word.strip_prefix("--config") {
            Some("") => Some(None),
            Some(rest) => rest.strip_prefix('=').map(Some),
            None => None,
        });
        let explicit = match explicit {
            Some(None) => words.next().map(String::as_str),
            Some(same_word) => same_word,
            None => None,
        };
        let explicit = explicit.map(|file| self.folder.join(file));
        ConfigPaths { explicit, here: self.folder.clone(), home: home.to_owned() }.find().ok().flatten()
    }

    /// Asks the daemon whether it is alive. Blocks, for two seconds at worst.
    #[must_use]
    pub fn answers(&self) -> bool {
        let Some(address) = self.url.strip_prefix("http://").and_then(|address| address.parse().ok()) else {
            return false;
        };
        ask_health(address).is_ok_and(|answer| answer.contains(r#""status":"alive""#))
    }

    /// Writes it, whole or not at all, for its owner alone.
    pub fn write(&self, home: &Path) -> io::Result<()> {
        let beside = beside(home);
        let _ = fs::remove_file(&beside);
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
            file.write_all(&serde_json::to_vec_pretty(self).map_err(io::Error::other)?)?;
            file.write_all(b"\n")?;
            fs::rename(&beside, home.join(FILE))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Takes it away, unless another daemon has put its own there.
    pub fn remove(&self, home: &Path) {
        if Self::read(home).is_some_and(|written| written.process() == self.process()) {
            let _ = fs::remove_file(home.join(FILE));
        }
    }
}

/// Where it is written before it is put in place. One name for all: who holds the lock is alone with it, and what a
/// daemon left there that was killed over it is the next one's to write over.
fn beside(home: &Path) -> PathBuf {
    home.join(format!(".{FILE}.new"))
}

fn ask_health(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER_BYTES).read_to_string(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use prism_os::clock::now_rfc3339;

    use super::*;

    fn ours() -> Registration {
        let process = ProcessIdentity::this_process();
        Registration {
            port: 1,
            url: "http://127.0.0.1:1".to_owned(),
            pid: process.pid,
            version: "0.1.0".to_owned(),
            started_at: now_rfc3339(),
            socket: None,
            process_started: process.start_ticks,
            log: None,
            arguments: vec!["serve".to_owned()],
            folder: PathBuf::from("/"),
            supervisor: None,
        }
    }

    // D-03
    #[test]
    fn it_is_written_for_its_owner_alone_and_read_back() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(Registration::read(home.path()), None);
        let ours = ours();
        ours.write(home.path()).unwrap();
        assert_eq!(Registration::alive(home.path()), Some(ours));
        let mode = fs::metadata(home.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_a_killed_daemon_has_half_written_is_written_over() {
        let home = tempfile::tempdir().unwrap();
        fs::write(beside(home.path()), "{\"port\":").unwrap();
        let ours = ours();
        ours.write(home.path()).unwrap();
        assert_eq!(Registration::alive(home.path()), Some(ours));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn the_config_that_it_runs_on_is_known_by_what_it_was_started_with() {
        let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
            Registration { arguments, folder: folder.path().to_owned(), ..ours() }.config_file(home.path())
        };
        assert_eq!(file(&["serve"]), None);
        let [at_home, in_folder, named] =
            [home.path().join("prism.toml"), folder.path().join("prism.toml"), folder.path().join("my.toml")];
        for (made, arguments, expected) in [
            (&at_home, &["serve"][..], &at_home),
            (&in_folder, &["serve"], &in_folder),
            (&named, &["serve", "--config", "my.toml", "--port", "1"], &named),
            (&named, &["--config=my.toml"], &named),
        ] {
            fs::write(made, "").unwrap();
            assert_eq!(file(arguments).as_ref(), Some(expected), "{arguments:?}");
        }
    }

    // D-03
    #[test]
    fn one_that_a_dead_daemon_left_is_stale_and_another_daemons_is_not_taken_away() {
        let home = tempfile::tempdir().unwrap();
        let ours = ours();
        let dead = Registration { process_started: ours.process_started + 1, ..ours.clone() };
        dead.write(home.path()).unwrap();
        assert_eq!(Registration::alive(home.path()), None);
        ours.write(home.path()).unwrap();
        dead.remove(home.path());
        assert_eq!(Registration::read(home.path()), Some(ours.clone()));
        ours.remove(home.path());
        assert_eq!(Registration::read(home.path()), None);
    }

    #[test]
    fn text_that_is_none_is_no_registration() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "{\"port\":").unwrap();
        assert_eq!(Registration::read(home.path()), None);
    }
}
