//! What a server has in its sandbox, beside what all have there. What that is is the editor's to know
//! (`prism_editor::ServerSandboxes`).

use std::path::PathBuf;

use prism_os::sandbox::NetworkAccess;

/// `sandbox` of a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxConfig {
    /// Folders that it may write.
    pub folders: Vec<PathBuf>,
    /// Files and folders that it may read.
    pub readable: Vec<PathBuf>,
    pub network: NetworkAccess,
}

impl Default for SandboxConfig {
    /// Most servers are there to reach something, and `npx` and `uvx` download them first.
    fn default() -> Self {
        Self { folders: Vec::new(), readable: Vec::new(), network: NetworkAccess::All }
    }
}
