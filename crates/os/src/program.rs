//! Whether a program could be started, and if not, why: `exec` has one word for a file that is missing, a link that
//! leads nowhere and a script whose interpreter is missing, and another for a file that nobody made executable.

use std::{
    env::split_paths,
    ffi::OsStr,
    fs::File,
    io::{self, ErrorKind, Read},
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

/// What is read of a file to see which interpreter it names: as much as the kernel reads.
const HEAD_BYTES: usize = 256;

/// Why a program cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramLookupError {
    #[error("its program {program:?} was not found on PATH")]
    NotOnPath { program: String },
    #[error("its program {} does not exist", path.display())]
    NoFile { path: PathBuf },
    #[error("its program {} is a folder", path.display())]
    Folder { path: PathBuf },
    #[error("its program {} is not executable", path.display())]
    NotExecutable { path: PathBuf },
    #[error("its program {} is a broken link: {} does not exist", path.display(), to.display())]
    BrokenLink { path: PathBuf, to: PathBuf },
    #[error("its program {} cannot be looked at: {}: {why}", path.display(), folder.display())]
    Hidden { path: PathBuf, folder: PathBuf, why: ErrorKind },
    #[error("its program {} is a script for {}, which does not exist", path.display(), interpreter.display())]
    NoInterpreter { path: PathBuf, interpreter: PathBuf },
}

/// Returns the file that a program with this name would be: on a PATH, or, with a slash, below `cwd`.
pub fn find(program: &str, cwd: Option<&Path>, path: &OsStr) -> Result<PathBuf, ProgramLookupError> {
    if program.contains('/') {
        let file = cwd.unwrap_or(Path::new("")).join(program);
        return look(&file).map(|()| file);
    }
    // As `execvp` does: what cannot be executed is passed over, and named if nothing better comes.
    let mut worse = None;
    for file in split_paths(path).map(|folder| folder.join(program)) {
        match look(&file) {
            Ok(()) => return Ok(file),
            // A folder that is somebody else's, such as root's, most likely has nothing of ours.
            Err(
                ProgramLookupError::NoFile { .. }
                | ProgramLookupError::Folder { .. }
                | ProgramLookupError::Hidden { .. },
            ) => {}
            Err(absent) => worse = worse.or(Some(absent)),
        }
    }
    Err(worse.unwrap_or_else(|| ProgramLookupError::NotOnPath { program: program.to_owned() }))
}

impl ProgramLookupError {
    /// What to type.
    pub fn fix(&self) -> String {
        match self {
            Self::NotOnPath { program } => match program.as_str() {
                "npx" | "node" | "npm" => "install Node.js (https://nodejs.org), and open a new shell".to_owned(),
                "uvx" | "uv" => "install uv (https://docs.astral.sh/uv), and open a new shell".to_owned(),
                "docker" => "install Docker, and open a new shell".to_owned(),
                _ => format!("command -v {program}, and write the whole path into the config"),
            },
            Self::NoFile { path } | Self::Folder { path } => format!("ls -l {}", path.display()),
            Self::Hidden { folder, .. } => format!("ls -ld {}", folder.display()),
            Self::NotExecutable { path } => format!("chmod +x {}", path.display()),
            Self::BrokenLink { path, .. } => format!("ls -l {}, and install what it should lead to", path.display()),
            Self::NoInterpreter { path, interpreter } => {
                format!("install {}, or correct the first line of {}", interpreter.display(), path.display())
            }
        }
    }
}

fn look(file: &Path) -> Result<(), ProgramLookupError> {
    let path = || file.to_owned();
    let metadata = file.metadata().map_err(|error| absent(file, &error))?;
    if !metadata.is_file() {
        return Err(ProgramLookupError::Folder { path: path() });
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(ProgramLookupError::NotExecutable { path: path() });
    }
    match interpreter(file).filter(|interpreter| !interpreter.exists()) {
        Some(interpreter) => Err(ProgramLookupError::NoInterpreter { path: path(), interpreter }),
        None => Ok(()),
    }
}

/// Says why a file cannot be looked at. That it is not there is only one reason.
fn absent(file: &Path, error: &io::Error) -> ProgramLookupError {
    let path = file.to_owned();
    let to = file.read_link().ok().map(|to| file.parent().unwrap_or(Path::new("")).join(to));
    match (error.kind(), to) {
        (ErrorKind::NotFound | ErrorKind::NotADirectory, Some(to)) => ProgramLookupError::BrokenLink { path, to },
        (ErrorKind::NotFound | ErrorKind::NotADirectory, None) => ProgramLookupError::NoFile { path },
        (why, to) => {
            let is_seen = |folder: &&Path| folder.metadata().is_ok();
            let folder = to.as_deref().unwrap_or(file).ancestors().skip(1).find(is_seen).unwrap_or(Path::new("/"));
            ProgramLookupError::Hidden { path, folder: folder.to_owned(), why }
        }
    }
}

/// The program that a script names behind `#!`.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    // One that can be executed and not read is no script.
    File::open(file).ok()?.take(HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(|byte| byte.is_ascii_whitespace()).next()?;
    // A relative one is looked for where the script is started, which is not known here.
    Some(PathBuf::from(OsStr::from_bytes(word))).filter(|interpreter| interpreter.is_absolute())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn put(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    //
    #[test]
    fn each_reason_has_its_own_words_and_says_what_to_type() {
        let folder = tempfile::TempDir::new().unwrap();
        let folder = folder.path();
        let plain = put(folder, "plain", "#!/bin/sh\n", 0o644);
        let lost = put(folder, "lost", "#! /no/such/python3 -u\n", 0o755);
        put(folder, "good", "#!/bin/sh\n", 0o755);
        symlink("gone", folder.join("broken")).unwrap();
        fs::create_dir(folder.join("folder")).unwrap();
        let found = |program: &str| find(program, Some(folder), folder.as_os_str());
        assert_eq!(found("good"), Ok(folder.join("good")));
        assert_eq!(found("./good"), Ok(folder.join("./good")));
        let told = |program: &str| {
            let absent = found(program).unwrap_err();
            (absent.to_string(), absent.fix())
        };
        let shown = plain.display();
        assert_eq!(told("plain"), (format!("its program {shown} is not executable"), format!("chmod +x {shown}")));
        assert!(
            told("broken").0.ends_with(&format!("a broken link: {} does not exist", folder.join("gone").display()))
        );
        assert!(told("lost").0.contains("a script for /no/such/python3, which does not exist"));
        assert!(told("lost").1.contains(&lost.display().to_string()));
        assert_eq!(told("nothing").0, "its program \"nothing\" was not found on PATH");
        assert!(told("./nothing").0.ends_with("nothing does not exist"));
        assert!(told("./folder").0.ends_with("folder is a folder"));
    }

    // "does not exist" of whatever could not be looked at.
    #[test]
    fn a_file_that_may_not_be_looked_at_is_not_called_missing() {
        let folder = tempfile::TempDir::new().unwrap();
        let shut = folder.path().join("shut");
        fs::create_dir(&shut).unwrap();
        let tool = put(&shut, "tool", "", 0o755);
        let refused = io::Error::from(ErrorKind::PermissionDenied);
        let (said, fix) = (absent(&tool, &refused).to_string(), absent(&tool, &refused).fix());
        let shown = shut.display();
        assert_eq!(said, format!("its program {} cannot be looked at: {shown}: permission denied", tool.display()));
        assert_eq!(fix, format!("ls -ld {shown}"));
        let link = folder.path().join("link");
        symlink(&tool, &link).unwrap();
        assert!(absent(&link, &refused).to_string().contains(&format!("at: {shown}: permission denied")));

        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
        let found = |program: &Path| find(program.to_str().unwrap(), None, shut.as_os_str());
        // Root may look everywhere.
        if tool.metadata().is_err() {
            assert_eq!(found(&tool).unwrap_err(), absent(&tool, &refused));
            assert!(matches!(found(Path::new("tool")), Err(ProgramLookupError::NotOnPath { .. })));
        }
        let long = folder.path().join("a".repeat(300));
        assert!(matches!(found(&long), Err(ProgramLookupError::Hidden { .. })), "{:?}", found(&long));
        assert!(matches!(found(&folder.path().join("no/tool")), Err(ProgramLookupError::NoFile { .. })));
    }

    #[test]
    fn a_file_that_cannot_be_executed_hides_none_further_on() {
        let (first, second) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
        put(first.path(), "tool", "", 0o644);
        let good = put(second.path(), "tool", "", 0o755);
        let path = std::env::join_paths([first.path(), second.path()]).unwrap();
        assert_eq!(find("tool", None, &path), Ok(good));
    }
}
