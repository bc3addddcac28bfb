//! `prism logs`: the end of the log of a daemon in the background, and what is added to it. It reads a file, so it also
//! tells why a daemon that no longer runs has ended.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, bail};

use super::{daemon, say, service, start::LOG};
use prism_config::{Env, registration::Registration};
use prism_telemetry::rotation;

/// How often a log that is followed is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// What is read of the end of a file to find its last lines. Longer ends are cut.
const MAX_TAIL_BYTES: u64 = 16 << 20;
/// What is read at once of what was added.
const MAX_READ_BYTES: u64 = 1 << 20;

/// Show the log of the daemon in the background
#[derive(clap::Args)]
#[command(after_help = "Examples:
  prism logs             the last lines
  prism logs -f          and what comes, until Ctrl-C
  prism logs -n 1000 | grep WARN")]
pub struct LogsArgs {
    /// Go on with what is added, also when a new file is begun
    #[arg(short, long)]
    follow: bool,
    /// How many lines of the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    lines: usize,
}

/// A log that is read on and on, whichever file is the log by now.
struct LogTail {
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end is not written yet.
    begun: Vec<u8>,
}

impl LogsArgs {
    pub fn run(self, env: &Env) -> anyhow::Result<ExitCode> {
        let home = daemon::home(env)?;
        let path = home.path().join(LOG);
        if let Some(found) = Registration::alive(home.path()).filter(|found| found.log.is_none()) {
            match found.supervisor.as_deref() {
                Some(service::SYSTEMD) => {
                    bail!(
                        "systemd keeps the log of pid {}\n  fix: journalctl --user -u {} -f",
                        found.pid,
                        service::UNIT
                    )
                }
                _ => bail!(
                    "the daemon with pid {} logs to where it was started (stderr)\n  \
                     fix: look there; or prism restart, and it runs in the background with a log",
                    found.pid
                ),
            }
        }
        let (lines, mut tail) = match last_lines(&path, self.lines) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!("there is no log yet: {}\n  fix: prism serve --detach", path.display())
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        // Whoever reads this may have seen enough, as `head` has.
        if lines.iter().any(|line| say::try_line(line).is_err()) {
            return Ok(ExitCode::SUCCESS);
        }
        if !self.follow {
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            let news = tail.read_on().with_context(|| format!("cannot read {}", path.display()))?;
            if news.iter().any(|line| say::try_line(line).is_err()) {
                return Ok(ExitCode::SUCCESS);
            }
            if news.is_empty() {
                thread::sleep(LOOK);
            }
        }
    }
}

/// Returns the last lines of the log, and a way to read on. Where the file was begun a moment ago, the one before it
/// has the rest.
fn last_lines(path: &Path, count: usize) -> io::Result<(Vec<String>, LogTail)> {
    let mut tail = LogTail { path: path.to_owned(), file: File::open(path)?, begun: Vec::new() };
    let length = tail.file.metadata()?.len();
    tail.file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL_BYTES)))?;
    let mut lines = VecDeque::new();
    loop {
        let news = tail.read_on_in_this_file()?;
        if news.is_empty() {
            break;
        }
        lines.extend(news);
        while lines.len() > count {
            lines.pop_front();
        }
    }
    if lines.len() < count
        && let Ok(before) = File::open(rotation::previous(path))
    {
        let mut older: VecDeque<String> = VecDeque::new();
        for line in BufReader::new(before.take(2 * MAX_TAIL_BYTES)).split(b'\n') {
            older.push_back(String::from_utf8_lossy(&line?).into_owned());
            if older.len() > count - lines.len() {
                older.pop_front();
            }
        }
        older.extend(lines);
        lines = older;
    }
    Ok((lines.into(), tail))
}

impl LogTail {
    /// Returns the lines that were added since the last time.
    fn read_on(&mut self) -> io::Result<Vec<String>> {
        let lines = self.read_on_in_this_file()?;
        if !lines.is_empty() {
            return Ok(lines);
        }
        // All of this file is read. If the log is another one by now, or was emptied, go on there from its beginning.
        match self.path.metadata() {
            Ok(now) if now.ino() != self.file.metadata()?.ino() => self.file = File::open(&self.path)?,
            Ok(now) if now.len() < self.file.stream_position()? => self.file.rewind()?,
            _ => return Ok(lines),
        }
        self.begun.clear();
        self.read_on_in_this_file()
    }

    fn read_on_in_this_file(&mut self) -> io::Result<Vec<String>> {
        let mut bytes = std::mem::take(&mut self.begun);
        (&mut self.file).take(MAX_READ_BYTES).read_to_end(&mut bytes)?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.begun = bytes.split_off(complete);
        Ok(bytes.split_inclusive(|byte| *byte == b'\n').map(text).collect())
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned()
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    fn add(path: &Path, text: &str) {
        fs::OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn the_last_lines_may_begin_in_the_file_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prism.log");
        add(&rotation::previous(&path), "1\n2\n3\n");
        add(&path, "4\n5\n6");
        let last = |count| last_lines(&path, count).unwrap().0;
        assert_eq!(last(1), ["5"]);
        assert_eq!(last(4), ["2", "3", "4", "5"]);
        assert_eq!(last(9), ["1", "2", "3", "4", "5"]);
        assert_eq!(last(0), [""; 0]);
    }

    #[test]
    fn what_is_added_is_read_on_in_whole_lines_and_over_a_rotation() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prism.log");
        add(&path, "old\n");
        let (_, mut tail) = last_lines(&path, 5).unwrap();
        assert_eq!(tail.read_on().unwrap(), [""; 0]);
        add(&path, "half");
        assert_eq!(tail.read_on().unwrap(), [""; 0]);
        add(&path, " and whole\nlast before\n");
        fs::rename(&path, rotation::previous(&path)).unwrap();
        add(&path, "first after\n");
        assert_eq!(tail.read_on().unwrap(), ["half and whole", "last before"]);
        assert_eq!(tail.read_on().unwrap(), ["first after"]);
        fs::write(&path, "x\n").unwrap();
        assert_eq!(tail.read_on().unwrap(), ["x"]);
    }
}
