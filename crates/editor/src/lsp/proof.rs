//! Whether a program that lies on PATH can work. A proxy of rustup without its component, a shim of a version manager, a script
//! whose interpreter is gone and a release that is too old look like a server until they are started.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use prism_os::{
    ask::{ProgramAnswer, ProgramRunError, ask_aloud_in},
    fence::SandboxPolicy,
};

use super::conversation::{brief, telling};

/// How a program is looked at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ProgramCheck {
    /// These words have it tell its version. Below `least` it cannot do what is asked of it.
    Version { words: &'static [&'static str], least: u32 },
    /// It has no such words. That it starts is all that can be seen.
    Start,
}

/// What was seen of programs, for as long as their files stay as they are.
#[derive(Debug, Default)]
pub(crate) struct Proofs(Mutex<HashMap<(PathBuf, PathBuf), Proof>>);

#[derive(Clone, Debug)]
struct Proof {
    stamp: Option<(SystemTime, u64)>,
    at: Instant,
    outcome: Result<(), String>,
}

/// How long a program may take to tell its version. One that takes longer runs, at any rate.
const PATIENCE: Duration = Duration::from_secs(3);

/// The same for one that is only started: what is broken ends at once.
const START: Duration = Duration::from_millis(300);

/// How long it is believed that a program cannot work: what helps need not change the program's own file.
const DOUBT: Duration = Duration::from_secs(2);

/// Programs that are remembered. With more, all are looked at again.
const MAX_KNOWN: usize = 64;

/// What shells, `env` and version managers exit with where there is no program to run.
const NO_PROGRAM: [Option<i32>; 2] = [Some(126), Some(127)];

// === impl Proofs ===

impl Proofs {
    /// What is known of a program that is run in a folder, or else what `look` finds out now. Blocks.
    pub(crate) fn of(
        &self,
        program: &Path,
        folder: &Path,
        look: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        let key = (program.to_owned(), folder.to_owned());
        let stamp = program.metadata().ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        let is_good = |proof: &&Proof| proof.stamp == stamp && (proof.outcome.is_ok() || proof.at.elapsed() < DOUBT);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).filter(is_good).cloned();
        if let Some(proof) = known {
            return proof.outcome;
        }
        let outcome = look();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_KNOWN {
            all.clear();
        }
        all.insert(key, Proof { stamp, at: Instant::now(), outcome: outcome.clone() });
        outcome
    }
}

// === impl ProgramCheck ===

impl ProgramCheck {
    /// Runs a program, and says why it cannot work. Blocks for `PATIENCE` at most.
    pub(crate) fn at(
        &self,
        program: &Path,
        folder: &Path,
        env: &BTreeMap<OsString, OsString>,
        fence: Option<&SandboxPolicy>,
    ) -> Result<(), String> {
        let (words, patience): (&[&str], _) = match self {
            Self::Version { words, .. } => (words, PATIENCE),
            Self::Start => (&["--version"], START),
        };
        let ask = || ask_aloud_in(folder, program.as_os_str(), words, env, patience);
        let asked = match fence.map(|fence| fence.spawn(ask)) {
            None => ask(),
            Some(Ok((asked, _))) => asked,
            // Who starts it is told of that.
            Some(Err(_)) => return Ok(()),
        };
        match asked {
            Ok(answer) => self.judge(&answer),
            Err(ProgramRunError::Start { source, .. }) => Err(format!("it cannot be started: {source}")),
            // It runs, and that is what was to be seen.
            Err(ProgramRunError::Late { .. } | ProgramRunError::Long { .. }) => Ok(()),
        }
    }

    fn judge(&self, answer: &ProgramAnswer) -> Result<(), String> {
        let said = String::from_utf8_lossy(&answer.stdout);
        let is_broken = match self {
            Self::Version { .. } => !answer.success,
            Self::Start => NO_PROGRAM.contains(&answer.code),
        };
        if is_broken {
            return Err(telling(&said).map_or_else(|| "it fails without a word".to_owned(), brief));
        }
        match (self, major(&said)) {
            (Self::Version { least, .. }, Some(found)) if found < *least => {
                Err(format!("it is version {found}, and {least} or newer is needed"))
            }
            _ => Ok(()),
        }
    }
}

/// The first number in what a program says of its version.
fn major(said: &str) -> Option<u32> {
    let numbers = said.split_whitespace().map(|word| word.trim_start_matches('v'));
    let mut found = numbers.filter_map(|word| word.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok());
    found.next()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, os::unix::fs::PermissionsExt};

    use super::*;

    const VERSION: ProgramCheck = ProgramCheck::Version { words: &["--version"], least: 7 };

    fn looked(look: &ProgramCheck, script: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        look.at(&program, folder.path(), &super::super::tests::environment(), None)
    }

    //
    #[test]
    fn a_program_that_cannot_work_says_why() {
        let proxy =
            "#!/bin/sh\necho \"error: Unknown binary 'server'\" >&2\necho >&2\necho '  15: <unknown>' >&2\nexit 1\n";
        assert_eq!(looked(&VERSION, proxy).unwrap_err(), "error: Unknown binary 'server'");
        let shim = "#!/bin/sh\necho 'pyenv: server: command not found' >&2\nexit 127\n";
        assert_eq!(looked(&ProgramCheck::Start, shim).unwrap_err(), "pyenv: server: command not found");
        for look in [&VERSION, &ProgramCheck::Start] {
            let why = looked(look, "#!/no/such/interpreter\n").unwrap_err();
            assert!(why.starts_with("it cannot be started"), "{why}");
        }
        let old = looked(&VERSION, "#!/bin/sh\necho 'Version 5.9.2'\n").unwrap_err();
        assert_eq!(old, "it is version 5, and 7 or newer is needed");
    }

    #[test]
    fn a_program_that_works_or_takes_its_time_is_taken() {
        assert_eq!(looked(&VERSION, "#!/bin/sh\necho 'Debian server version 14.0.6'\n"), Ok(()));
        assert_eq!(looked(&VERSION, "#!/bin/sh\necho '(devel)'\n"), Ok(()));
        assert_eq!(looked(&ProgramCheck::Start, "#!/bin/sh\necho 'no input stream' >&2\nexit 1\n"), Ok(()));
        assert_eq!(looked(&ProgramCheck::Start, "#!/bin/sh\nexec sleep 1000\n"), Ok(()));
    }

    #[test]
    fn what_works_is_remembered_until_its_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("server");
        fs::write(&program, "one").unwrap();
        let (proofs, looks) = (Proofs::default(), Cell::new(0));
        let look = || {
            looks.set(looks.get() + 1);
            Ok(())
        };
        for _ in 0..3 {
            proofs.of(&program, folder.path(), look).unwrap();
        }
        assert_eq!(looks.get(), 1);
        fs::write(&program, "another").unwrap();
        proofs.of(&program, folder.path(), look).unwrap();
        assert_eq!(looks.get(), 2);
    }
}
