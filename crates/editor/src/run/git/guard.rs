//! What keeps a repository from running code: git is a program that does whatever its config says, and the repository's config
//! is the repository's.
//!
//! Three things, each of which would do: settings that outrank every file's (no hook, filter, pager, helper, signature, transport,
//! upkeep); an environment without what steers git; and, where the kernel has landlock, a fence in which git can be executed
//! and nothing else, and in which it reaches its repository and the person's own config.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use prism_os::{fence::SandboxPolicy, root::FolderHandle};

use super::{porcelain::Configured, repository::Repository};

/// What a call of git's is for, and so what it may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GitReach {
    /// Reads the config alone, wherever the person's lies.
    Config,
    /// Reads the repository.
    Reads,
    /// Writes the repository, not the work tree.
    Records,
    /// Writes both.
    Writes,
}

/// Settings that hold whatever a file says.
const SETTINGS: [(&str, &str); 33] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("sequence.editor", ":"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.alternateRefsCommand", "false"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("diff.external", ""),
    ("interactive.diffFilter", ""),
    ("protocol.allow", "never"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("rerere.enabled", "false"),
    ("submodule.recurse", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("checkout.workers", "1"),
    ("color.ui", "false"),
    ("core.bare", "false"),
    ("core.quotePath", "false"),
    ("commit.status", "false"),
    // Nobody is made up where the person has not said who they are.
    ("user.useConfigOnly", "true"),
];

/// What of the daemon's variables git may see of its own: who the person is, and where their config is.
const KEPT: [&str; 8] = [
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ATTR_NOSYSTEM",
];

/// What git is given instead.
const FIXED: [(&str, &str); 14] = [
    ("GIT_WORK_TREE", "."),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // No transport at all: an empty list.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_EDITOR", ":"),
    ("GIT_PAGER", "cat"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    // Its words are passed on to agents, and some are looked for.
    ("LC_ALL", "C"),
];

/// Finds git where the person's PATH has it, but not in a folder that an agent may write.
pub(super) fn program(env: &BTreeMap<OsString, OsString>, is_granted: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let path = env.get(OsStr::new("PATH"))?;
    let candidates = std::env::split_paths(path).filter(|folder| folder.is_absolute()).map(|folder| folder.join("git"));
    candidates.filter_map(|candidate| candidate.canonicalize().ok()).find(|program| {
        let about = program.metadata();
        about.is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0) && !is_granted(program)
    })
}

/// Returns all of the environment of a call.
pub(super) fn environment(
    given: &BTreeMap<OsString, OsString>,
    repository: &Repository,
    configured: &Configured,
    reach: GitReach,
) -> BTreeMap<OsString, OsString> {
    let steers = |name: &OsStr| {
        let bytes = name.as_encoded_bytes();
        bytes.starts_with(b"GIT_") && !KEPT.iter().any(|kept| name == *kept)
    };
    let mut env: BTreeMap<_, _> =
        given.iter().filter(|(name, _)| !steers(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    env.extend(FIXED.map(|(name, value)| (name.into(), value.into())));
    env.insert("GIT_DIR".into(), repository.git_dir.clone().into());
    if matches!(reach, GitReach::Config | GitReach::Reads) {
        // A look must not stand in the way of somebody's commit.
        env.insert("GIT_OPTIONAL_LOCKS".into(), "0".into());
    }
    // Not as `-c`, which ends a name at its first `=`.
    let settings = settings(configured);
    env.insert("GIT_CONFIG_COUNT".into(), settings.len().to_string().into());
    for (i, (name, value)) in settings.into_iter().enumerate() {
        env.insert(format!("GIT_CONFIG_KEY_{i}").into(), name.into());
        env.insert(format!("GIT_CONFIG_VALUE_{i}").into(), value.into());
    }
    env
}

fn settings(configured: &Configured) -> Vec<(String, String)> {
    let fixed = SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let filters = configured.filters.iter().flat_map(|name| {
        let keys = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
        keys.map(|(key, value)| (format!("filter.{name}.{key}"), value.to_owned()))
    });
    let hooks = configured.hooks.iter().map(|name| (format!("hook.{name}.enabled"), "false".to_owned()));
    fixed.chain(filters).chain(hooks).collect()
}

/// What of the system git reads: its libraries, who its user is, its own config.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys/devices/system/cpu",
    "/dev/zero",
    "/dev/urandom",
];

/// Returns the fence of a call.
pub(super) fn fence(
    program: &Path,
    repository: &Repository,
    configured: &Configured,
    reach: GitReach,
    closed: Vec<PathBuf>,
) -> SandboxPolicy {
    let exec = Some(vec![program.to_owned()]);
    // The person's config may include files from anywhere; which, git says.
    if reach == GitReach::Config {
        return SandboxPolicy {
            read: vec!["/".into()],
            write: vec!["/dev/null".into()],
            held: Vec::new(),
            exec,
            closed,
            room: None,
        };
    }
    let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
    read.push(program.to_owned());
    read.extend(configured.files.iter().cloned());
    read.extend(repository.borrowed.iter().cloned());
    let again = |folder: &FolderHandle| folder.beneath(Path::new("")).ok();
    let mut held = Vec::new();
    if matches!(reach, GitReach::Records | GitReach::Writes) {
        let (own, common) = repository.halves();
        held.extend([own, common].into_iter().filter_map(again));
    } else {
        read.extend([repository.own.clone(), repository.common.clone()]);
    }
    if reach == GitReach::Writes {
        held.extend(again(&repository.folder));
    } else {
        read.push(repository.worktree.clone());
    }
    SandboxPolicy { read, write: vec!["/dev/null".into()], held, exec, closed, room: None }
}
