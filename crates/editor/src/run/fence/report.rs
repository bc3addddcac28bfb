//! What a result says of the fence that something ran behind, and of a failure that may be the fence's doing.

use prism_os::{fence::SandboxEnforcement, sandbox::NetworkAccess};
use serde::Serialize;

/// What was enforced, as results have it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct FenceReport {
    enforced: FenceKind,
    /// The kernel's version of landlock, where there is nothing else.
    #[serde(skip_serializing_if = "Option::is_none")]
    abi: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<FenceLayers>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<&'static str>,
    /// Sockets in the granted folders at which somebody outside listens.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    covered: Vec<std::path::PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum FenceKind {
    #[default]
    None,
    Landlock,
    Sandbox,
}

#[derive(Clone, Debug, Serialize)]
struct FenceLayers {
    namespaces: Vec<&'static str>,
    seccomp: bool,
    landlock: Option<u32>,
}

/// What programs say that were kept from a file: in the system's words, or in Python's, which misses a module then, if only of its
/// own library, and does not say why.
const SIGNS: [&str; 7] = [
    "Permission denied",
    "PermissionError",
    "EACCES",
    "Read-only file system",
    "ModuleNotFoundError",
    "No module named",
    "platform independent libraries",
];

const HINT: &str = "the fence may have kept it from a file: it reaches the granted folders, the system and the usual folders of \
                    toolchains; a person can add another to `readable` of `[editor]` (`writable`, to write there). `.git` and the \
                    settings of editors and agents are for reading: git_add, git_commit and git_branch change a repository";

/// What programs say that have not found a host, or no way to it; go, which asks a server of names here where it knows of none; and
/// npm, of what it does not have.
const LONELY: [&str; 12] = [
    "Could not resolve host",
    "Couldn't resolve host",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "ENETUNREACH",
    "EAI_AGAIN",
    "ENOTFOUND",
    "failed to lookup address",
    "network is unreachable",
    " on 127.0.0.1:53: ",
    " on [::1]:53: ",
    "ENOTCACHED",
];

/// What programs say to whom a file is not there. In a sandbox that is what is not listed.
const MISSING: [&str; 3] = ["No such file or directory", "ENOENT", "FileNotFoundError"];

const LONELY_HINT: &str = "it has no network but a loopback of its own; a grant with the scope `network:all` has";

impl FenceReport {
    /// Reports what has become of a fence; `None`: none was asked for.
    pub(crate) fn of(enforced: Option<&SandboxEnforcement>) -> Self {
        match enforced {
            None => Self::without("fences are switched off (`fence` of `[editor]`)"),
            Some(SandboxEnforcement::None { why }) => Self::without(why),
            Some(SandboxEnforcement::Sandbox { landlock, network, covered }) => {
                let mut namespaces = vec!["user", "mnt", "pid", "ipc", "uts"];
                namespaces.extend((*network == NetworkAccess::Own).then_some("net"));
                Self {
                    enforced: FenceKind::Sandbox,
                    layers: Some(FenceLayers { namespaces, seccomp: true, landlock: *landlock }),
                    network: Some(network.name()),
                    covered: covered.clone(),
                    ..Self::default()
                }
            }
            Some(SandboxEnforcement::Landlock { abi, is_whole, cramped }) => {
                let part = "this kernel can keep a part of it only: newer ones can do more".to_owned();
                let cramped = cramped.iter().map(|folder| {
                    format!("Prism's own folder lies beneath {folder:?}, so nothing new can be made right in there")
                });
                let why: Vec<String> = (!is_whole).then_some(part).into_iter().chain(cramped).collect();
                Self {
                    enforced: FenceKind::Landlock,
                    abi: Some(*abi),
                    layers: Some(FenceLayers { namespaces: Vec::new(), seccomp: true, landlock: Some(*abi) }),
                    network: Some(NetworkAccess::All.name()),
                    why: (!why.is_empty()).then(|| why.join("; ")),
                    ..Self::default()
                }
            }
        }
    }

    fn without(why: &str) -> Self {
        Self { why: Some(why.to_owned()), ..Self::default() }
    }

    /// Finds what to say of a failure that may be the fence's doing.
    pub(crate) fn hint_for(&self, said: &[&str]) -> Option<&'static str> {
        let shows = |signs: &[&str]| said.iter().any(|said| signs.iter().any(|sign| said.contains(sign)));
        match self.enforced {
            FenceKind::Sandbox if self.network == Some(NetworkAccess::Own.name()) && shows(&LONELY) => {
                Some(LONELY_HINT)
            }
            FenceKind::Sandbox | FenceKind::Landlock if shows(&SIGNS) => Some(HINT),
            FenceKind::Sandbox if shows(&MISSING) => Some(HINT),
            _ => None,
        }
    }

    /// Adds that to what is reported.
    pub(crate) fn add_hint(&mut self, said: &[&str]) {
        self.hint = self.hint_for(said);
    }
}
