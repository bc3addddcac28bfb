//! What a person can set.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditorSettings {
    /// Whether the kernel keeps commands, builds, terminals and language servers to the granted folders.
    pub fence: bool,
    /// What they may read, and write, beside the usual.
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Language servers by LSP's name of the language. No words: none for it. Where nothing is said, the usual ones are
    /// looked for.
    pub servers: BTreeMap<String, Vec<String>>,
    /// Whether language servers may run what the project brings: build scripts, macros, its own compiler.
    pub runs_project_code: bool,
    /// How long a language server that nobody asks is kept.
    pub idle_server: Duration,
    /// Bytes of memory that a run may hold, with all that it starts; three quarters of the machine's if `None`.
    pub max_memory: Option<u64>,
    /// Bytes that the runs of one grant may write outside of the granted folders.
    pub max_scratch: u64,
    /// The user's home folder, where their toolchains are.
    pub home: Option<PathBuf>,
    /// The program that is the first to run in a sandbox: the daemon's own. Without one there is landlock alone.
    pub inner: Option<PathBuf>,
}

impl Default for EditorSettings {
    fn default() -> Self {
        Self {
            fence: true,
            readable: Vec::new(),
            writable: Vec::new(),
            servers: BTreeMap::new(),
            runs_project_code: false,
            idle_server: Duration::from_secs(600),
            max_memory: None,
            max_scratch: 8 << 30,
            home: None,
            inner: None,
        }
    }
}
