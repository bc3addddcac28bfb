//! A terminal that a command runs on, and what it has been shown.

use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use super::{Home, prism, until};

pub(crate) struct Terminal {
    keyboard: File,
    /// Held, so that the terminal stays when the command has gone.
    line: File,
    process: Child,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    /// Runs a command on a terminal of this size.
    pub(crate) fn run(home: &Home, words: &[&str], (columns, rows): (u16, u16)) -> Self {
        let master: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("the system has terminals");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name").into_string().expect("which is plain");
        let line = OpenOptions::new().read(true).write(true).open(name).expect("it can be opened");
        let end = || line.try_clone().expect("a descriptor can be doubled");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&line, size).expect("it has a size");
        let process = Command::new(prism())
            .args(words)
            .env_clear()
            .env("TERM", "xterm")
            .env("HOME", home.path())
            .env("PRISM_HOME", home.path())
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("the binary was built for this test");
        let mut screen = File::from(master);
        let keyboard = screen.try_clone().expect("a descriptor can be doubled");
        let shown = Arc::new(Mutex::new(String::new()));
        let seen = shown.clone();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                let text = String::from_utf8_lossy(&piece[..count]);
                seen.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
            }
        });
        Self { keyboard, line, process, shown }
    }

    /// All that was written to it.
    pub(crate) fn shown(&self) -> String {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("somebody reads the keys");
    }

    /// Gives it another size, and says so.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.line, size).expect("it has a size");
        super::process::signal(self.process.id(), rustix::process::Signal::WINCH);
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        super::process::signal(self.process.id(), signal);
    }

    /// Whether it gives whole lines and shows what is typed, as terminals do.
    pub(crate) fn is_plain(&self) -> bool {
        tcgetattr(&self.line).expect("it has modes").local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let mut ended = None;
        until("the command ends", async || {
            ended = self.process.try_wait().expect("our own child can be waited for");
            ended.is_some()
        })
        .await;
        ended.expect("it ended")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
