//! Editors' events, and the scopes of which one lets a grant see them.

use super::{
    GrantScope::{self, *},
    Scopes,
};

/// An event that an editor may tell of.
#[derive(Debug, PartialEq, Eq)]
pub struct EventSpec {
    pub name: &'static str,
    /// Its category: the `event` of the message, whose data names the event itself.
    pub category: &'static str,
    needs: &'static [GrantScope],
    /// The member of its data that only the one is told whose doing it is.
    pub own: Option<&'static str>,
}

const fn row(category: &'static str, name: &'static str, needs: &'static [GrantScope]) -> EventSpec {
    EventSpec { name, category, needs, own: None }
}

/// One with a command line, which may hold what is nobody else's business.
const fn command(name: &'static str) -> EventSpec {
    EventSpec { own: Some("command"), ..row(TERMINAL, name, &[ExecTerminal, RunCommands]) }
}

const EDITOR: &str = "editor_state";
const FILES: &str = "file_system";
const PROJECT: &str = "project_state";
const TERMINAL: &str = "terminal_output";
const GIT: &str = "git_state";
const CODE: &str = "code_analysis";
const USER: &str = "user_interaction";

const TABLE: &[EventSpec] = &[
    row(EDITOR, "buffer_changed", &[ReadBuffers, MonitorState]),
    row(EDITOR, "cursor_moved", &[SyncCursor, MonitorState]),
    row(EDITOR, "selection_changed", &[SyncSelection, MonitorState]),
    row(EDITOR, "viewport_changed", &[SyncViewport, MonitorState]),
    row(EDITOR, "file_saved", &[ReadBuffers, MonitorState]),
    row(EDITOR, "file_opened", &[ReadBuffers, MonitorState]),
    row(EDITOR, "file_closed", &[ReadBuffers, MonitorState]),
    row(FILES, "file_created", &[WatchChanges]),
    row(FILES, "file_deleted", &[WatchChanges]),
    row(FILES, "file_renamed", &[WatchChanges]),
    row(FILES, "directory_changed", &[WatchChanges]),
    row(FILES, "file_watched", &[WatchChanges]),
    row(PROJECT, "build_started", &[BuildProject]),
    row(PROJECT, "build_completed", &[BuildProject]),
    row(PROJECT, "test_results", &[TestCode]),
    row(PROJECT, "workspace_changed", &[ManageWorkspace, ExploreProject]),
    row(PROJECT, "config_updated", &[ManageWorkspace]),
    command("command_executed"),
    row(TERMINAL, "output_received", &[ExecTerminal, RunCommands]),
    command("process_started"),
    command("process_ended"),
    row(GIT, "branch_changed", &[GitStatus, GitBranch]),
    row(GIT, "commit_made", &[GitStatus, GitCommit]),
    row(GIT, "status_updated", &[GitStatus]),
    row(GIT, "merge_conflict", &[GitStatus]),
    row(GIT, "push_completed", &[GitStatus]),
    row(CODE, "errors_detected", &[DetectErrors]),
    row(CODE, "completions_available", &[SuggestCompletion]),
    row(CODE, "symbols_updated", &[NavigateSymbols]),
    row(CODE, "lint_results", &[DetectErrors]),
    row(USER, "plugin_loaded", &[ManagePlugins]),
    row(USER, "settings_changed", &[ManageWorkspace]),
    row(USER, "pane_split", &[SplitPanes, MonitorState]),
    row(USER, "tab_switched", &[ManageTabs, MonitorState]),
];

impl EventSpec {
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLE.iter()
    }

    /// What has no row is no event: nobody sees it.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLE.iter().find(|event| event.name == name)
    }

    pub fn is_seen_with(&self, scopes: Scopes) -> bool {
        scopes.has_any_of(self.needs())
    }

    /// The scopes of which one is enough.
    pub fn needs(&self) -> Scopes {
        self.needs.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    //
    #[test]
    fn all_seven_categories_are_there_and_no_event_is_for_everybody() {
        let categories: HashSet<_> = EventSpec::all().map(|event| event.category).collect();
        assert_eq!(categories.len(), 7);
        let names: HashSet<_> = EventSpec::all().map(|event| event.name).collect();
        assert_eq!(names.len(), TABLE.len());
        assert!(EventSpec::all().all(|event| !event.is_seen_with(Scopes::NONE) && event.is_seen_with(Scopes::all())));
        assert!(EventSpec::named("user_typed_password").is_none());
    }
}
