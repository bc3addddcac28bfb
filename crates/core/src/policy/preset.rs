//! The source's four presets.

use super::{Scope, Scopes};

/// Scopes for a kind of sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Basic,
    Standard,
    Advanced,
    Restricted,
}

impl Preset {
    pub const ALL: [Self; 4] = [Self::Basic, Self::Standard, Self::Advanced, Self::Restricted];

    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Standard => "standard",
            Self::Advanced => "advanced",
            Self::Restricted => "restricted",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|preset| preset.name() == name)
    }

    pub fn in_words(self) -> &'static str {
        match self {
            Self::Basic => "read-only",
            Self::Standard => "development",
            Self::Advanced => "what goes beyond development: files come and go, commands run, git",
            Self::Restricted => "sandboxed: neither writes nor runs anything",
        }
    }

    pub fn scopes(self) -> Scopes {
        use Scope::*;
        let scopes: &[Scope] = match self {
            Self::Basic => &[ReadFiles, ReadBuffers, SearchFiles, AnalyzeSyntax, SyncCursor],
            Self::Standard => &[
                ReadFiles,
                WriteFiles,
                EditBuffers,
                ManageBuffers,
                FormatCode,
                SearchContent,
                SyncCursor,
                SyncSelection,
                ExploreProject,
            ],
            Self::Advanced => &[
                CreateFiles,
                DeleteFiles,
                ManageWorkspace,
                BuildProject,
                TestCode,
                ExecTerminal,
                GitStatus,
                GitCommit,
                GitBranch,
                DebugSession,
                RefactorCode,
                ManagePlugins,
            ],
            Self::Restricted => &[ReadFiles, AnalyzeSyntax, SearchContent],
        };
        scopes.iter().copied().collect()
    }
}
