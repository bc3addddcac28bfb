//! The four presets. Each lists what is new in it; an agent gets that and all below it.

use super::{GrantScope, Scopes};

/// Scopes for a kind of sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    Restricted,
    Basic,
    Standard,
    Advanced,
}

impl Preset {
    /// From the lowest to the highest; each contains those before it.
    pub const ALL: [Self; 4] = [Self::Restricted, Self::Basic, Self::Standard, Self::Advanced];

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
            Self::Restricted => "read and search files; writes and runs nothing",
            Self::Basic => "also see open buffers and the cursor",
            Self::Standard => "also write and edit files",
            Self::Advanced => "also create and delete files, run builds, tests and terminals, use git",
        }
    }

    /// What it holds beyond the one below it; `Restricted` is the lowest.
    fn own(self) -> &'static [GrantScope] {
        use GrantScope::*;
        match self {
            Self::Restricted => &[ReadFiles, AnalyzeSyntax, SearchContent],
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
        }
    }

    /// Returns its scopes and those of every preset below it: an agent that may delete a file may also open it.
    pub fn scopes(self) -> Scopes {
        let included = Self::ALL.into_iter().take_while(|below| *below != self).chain([self]);
        included.flat_map(Self::own).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn each_preset_contains_the_ones_below_it() {
        for pair in Preset::ALL.windows(2) {
            let [below, above] = [pair[0].scopes(), pair[1].scopes()];
            assert!(below.is_within(above) && !above.is_within(below), "{:?}", pair);
        }
    }

    #[test]
    fn the_advanced_one_can_open_list_edit_and_write_files() {
        let scopes = Preset::Advanced.scopes();
        for scope in [GrantScope::ReadFiles, GrantScope::SearchFiles, GrantScope::EditBuffers, GrantScope::WriteFiles] {
            assert!(scopes.has(scope), "{scope:?}");
        }
    }
}
