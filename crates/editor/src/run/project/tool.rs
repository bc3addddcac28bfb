//! Which tool a project is made for, where it is, and what is run.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    io::Read,
    path::{Path, PathBuf},
};

use prism_core::policy::{Code, Refusal};
use prism_os::root::FolderHandle;
use serde_json::{Map, Value};

use super::{Goal, cargo::Cargo, findings::OutputReader, go::Go, make::Make, npm::Npm, pytest::Pytest};
use crate::{
    args::wrong,
    roots::{GrantedRoots, place},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BuildTool {
    Cargo,
    Go,
    Npm,
    Pytest,
    Make,
}

/// A project that was found.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) tool: BuildTool,
    /// Where it is.
    pub(super) folder: String,
    /// The granted folder that it is in.
    pub(super) root: PathBuf,
    handle: FolderHandle,
}

/// A file that says something about a project is shorter than this; what comes after is not read.
const MAX_MANIFEST: u64 = 1 << 20;

/// Names that may make their folder a project; `BuildTool::is_in` decides.
const MARKS: [&str; 12] = [
    "Cargo.toml",
    "go.mod",
    "package.json",
    "pytest.ini",
    "pyproject.toml",
    "conftest.py",
    "setup.py",
    "setup.cfg",
    "tests",
    "GNUmakefile",
    "makefile",
    "Makefile",
];

const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Tells whether a name may make its folder a project.
pub(crate) fn is_mark(name: &OsStr) -> bool {
    MARKS.iter().any(|mark| name == *mark)
}

/// The tool that a folder is made for, as builds and tests take it.
pub(crate) fn tool_of(folder: &FolderHandle) -> Option<&'static str> {
    BuildTool::ALL.into_iter().find(|tool| tool.is_in(folder)).map(BuildTool::name)
}

// === impl BuildTool ===

impl BuildTool {
    /// In the order they are taken if a folder is made for several: a Makefile mostly calls the others.
    const ALL: [Self; 5] = [Self::Cargo, Self::Go, Self::Npm, Self::Pytest, Self::Make];

    pub(super) fn named(name: &str) -> Result<Self, Refusal> {
        let found = Self::ALL.into_iter().find(|tool| tool.name() == name);
        found.ok_or_else(|| wrong(format!("`tool` is cargo, npm, pytest, go or make, not {name:?}")))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Go => "go",
            Self::Npm => "npm",
            Self::Pytest => "pytest",
            Self::Make => "make",
        }
    }

    pub(super) fn reader(self) -> Box<dyn OutputReader> {
        match self {
            Self::Cargo => Box::<Cargo>::default(),
            Self::Go => Box::<Go>::default(),
            Self::Npm => Box::<Npm>::default(),
            Self::Pytest => Box::<Pytest>::default(),
            Self::Make => Box::<Make>::default(),
        }
    }

    /// Tells whether a folder is made for it.
    fn is_in(self, folder: &FolderHandle) -> bool {
        let has = |name: &str| folder.open_file(Path::new(name)).is_ok();
        match self {
            Self::Cargo => has("Cargo.toml"),
            Self::Go => has("go.mod"),
            Self::Npm => scripts(folder).is_some_and(|scripts| !scripts.is_empty()),
            Self::Pytest => {
                has("pytest.ini")
                    || has("pyproject.toml")
                    || has("conftest.py")
                    || has("setup.py")
                    || read(folder, "setup.cfg").is_some_and(|text| text.contains("[tool:pytest]"))
                    || folder.beneath(Path::new("tests")).is_ok_and(|tests| has_tests(&tests))
            }
            Self::Make => MAKEFILES.iter().any(|name| has(name)),
        }
    }
}

// === impl Project ===

impl Project {
    /// Finds the nearest one at `cwd` or above it, within the granted folder.
    pub(super) fn find(roots: &GrantedRoots, cwd: Option<&str>, tool: Option<BuildTool>) -> Result<Self, Refusal> {
        let way = cwd.map_or_else(|| roots.first(), |cwd| roots.resolve(cwd))?;
        let start = place(way.folder()?, way.written());
        let places = roots.names().iter().filter_map(|root| {
            let way = roots.root(root).ok()?;
            Some(place(way.folder().ok()?, way.written()))
        });
        let above = places.filter(|root| start.starts_with(root)).max_by_key(|root| root.as_os_str().len());
        let root = above.unwrap_or_else(|| start.clone());
        for folder in start.ancestors().take_while(|folder| folder.starts_with(&root)) {
            let folder = folder.display().to_string();
            let handle = roots.resolve(&folder)?.folder()?;
            let found = match tool {
                Some(tool) => tool.is_in(&handle).then_some(tool),
                None => BuildTool::ALL.into_iter().find(|tool| tool.is_in(&handle)),
            };
            if let Some(tool) = found {
                return Ok(Self { tool, folder, root, handle });
            }
        }
        // Tests by themselves may belong to a project above; only if there is none they are one.
        let handle = way.folder()?;
        if tool.is_none_or(|tool| tool == BuildTool::Pytest) && has_tests(&handle) {
            return Ok(Self { tool: BuildTool::Pytest, folder: start.display().to_string(), root, handle });
        }
        let wanted = match tool {
            Some(BuildTool::Cargo) => "Cargo.toml",
            Some(BuildTool::Go) => "go.mod",
            Some(BuildTool::Npm) => "package.json with scripts",
            Some(BuildTool::Pytest) => "pyproject.toml, pytest.ini or tests/test_*.py",
            Some(BuildTool::Make) => "Makefile",
            None => {
                "Cargo.toml, go.mod, package.json with scripts, pyproject.toml, pytest.ini, tests/test_*.py, Makefile"
            }
        };
        let message =
            format!("no project in {start:?} or above it, up to {root:?}: no {wanted}; name its folder as `cwd`");
        Err(Refusal::new(Code::NotFound, message))
    }

    /// What is to be run, and what is added to the environment.
    pub(super) fn plan(
        &self,
        goal: Goal,
        part: Option<&str>,
    ) -> Result<(Vec<String>, BTreeMap<String, String>), Refusal> {
        let words = match (self.tool, goal) {
            (BuildTool::Cargo, Goal::Build) => {
                listed(&["cargo", "build", "--message-format=json", "--color=never"], &option("--package", part))
            }
            (BuildTool::Cargo, Goal::Test) => {
                let words = ["cargo", "test", "--no-fail-fast", "--message-format=json", "--color=never"];
                listed(&words, &part.into_iter().collect::<Vec<_>>())
            }
            // What is built is looked at, not kept.
            (BuildTool::Go, Goal::Build) => listed(&["go", "build", "-o", "/dev/null"], &[part.unwrap_or("./...")]),
            (BuildTool::Go, Goal::Test) => {
                let run = option("-run", part);
                listed(&["go", "test", "-json"], &run.into_iter().chain(["./..."]).collect::<Vec<_>>())
            }
            (BuildTool::Npm, Goal::Build) => {
                listed(&["npm", "run"], &[self.script(part.unwrap_or("build"))?.0.as_str()])
            }
            (BuildTool::Npm, Goal::Test) => {
                let (_, script) = self.script("test")?;
                listed(&["npm", "run", "test"], &chosen(&script, part))
            }
            (BuildTool::Pytest, Goal::Build) => {
                let words = ["-m", "compileall", "-q", "-x", r"(^|/)(\.venv|venv|\.tox|\.git|node_modules)/"];
                listed(&[&[self.python().as_str()], &words[..]].concat(), &[part.unwrap_or(".")])
            }
            (BuildTool::Pytest, Goal::Test) => {
                let words = ["-m", "pytest", "-rA", "--tb=short", "-q", "--color=no"];
                let is_place = |part: &str| part.contains("::") || part.contains('/') || part.ends_with(".py");
                let part = match part {
                    Some(part) if is_place(part) => vec![part],
                    part => option("-k", part),
                };
                listed(&[&[self.python().as_str()], &words[..]].concat(), &part)
            }
            (BuildTool::Make, Goal::Build) => listed(&["make"], &part.into_iter().collect::<Vec<_>>()),
            (BuildTool::Make, Goal::Test) => listed(&["make"], &[part.unwrap_or_else(|| self.test_rule())]),
        };
        // Colours are for people; and make's words are read, so they have to be the ones that are known.
        let mut env = BTreeMap::from([("NO_COLOR".to_owned(), "1".to_owned())]);
        if self.tool == BuildTool::Make {
            env.insert("LC_MESSAGES".to_owned(), "C".to_owned());
        }
        Ok((words, env))
    }

    /// A script of package.json: its name, and what it runs.
    fn script(&self, name: &str) -> Result<(String, String), Refusal> {
        let scripts = scripts(&self.handle).unwrap_or_default();
        match scripts.get(name).and_then(Value::as_str) {
            Some(script) => Ok((name.to_owned(), script.to_owned())),
            None => {
                let known: Vec<&str> = scripts.keys().map(String::as_str).collect();
                let message = format!("package.json has no script {name:?}; it has {}", known.join(", "));
                Err(Refusal::new(Code::NotFound, message))
            }
        }
    }

    /// The project's own, if it has one.
    fn python(&self) -> String {
        let own = [".venv", "venv"].map(|name| Path::new(&self.folder).join(name).join("bin/python"));
        own.iter().find(|python| python.is_file()).map_or("python3".to_owned(), |python| python.display().to_string())
    }

    fn test_rule(&self) -> &'static str {
        let text = MAKEFILES.iter().find_map(|name| read(&self.handle, name)).unwrap_or_default();
        let has = |rule: &str| {
            text.lines().any(|line| line.strip_prefix(rule).is_some_and(|rest| rest.trim_start().starts_with(':')))
        };
        if !has("test") && has("check") { "check" } else { "test" }
    }
}

fn listed(words: &[&str], more: &[&str]) -> Vec<String> {
    words.iter().chain(more).map(|word| (*word).to_owned()).collect()
}

fn option<'a>(name: &'a str, value: Option<&'a str>) -> Vec<&'a str> {
    value.map_or_else(Vec::new, |value| vec![name, value])
}

/// How a test runner is told which tests are meant. One that is not known gets the bare name: mostly a file's.
fn chosen<'a>(script: &str, part: Option<&'a str>) -> Vec<&'a str> {
    let Some(part) = part else { return Vec::new() };
    if script.contains("vitest") || script.contains("jest") {
        vec!["--", "-t", part]
    } else if script.contains("mocha") {
        vec!["--", "-g", part]
    } else {
        vec!["--", part]
    }
}

fn scripts(folder: &FolderHandle) -> Option<Map<String, Value>> {
    let manifest: Value = serde_json::from_str(&read(folder, "package.json")?).ok()?;
    manifest.get("scripts")?.as_object().cloned()
}

fn has_tests(folder: &FolderHandle) -> bool {
    let is_test = |name: &str| name.starts_with("test_") && name.ends_with(".py") || name.ends_with("_test.py");
    let entries = folder.entries().into_iter().flatten().take(MAX_ENTRIES);
    entries.flatten().any(|entry| entry.name.to_str().is_some_and(is_test))
}

/// Entries that are looked at to find a test.
const MAX_ENTRIES: usize = 1000;

fn read(folder: &FolderHandle, name: &str) -> Option<String> {
    let file = folder.open_file(Path::new(name)).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_MANIFEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
