//! The table: every verb, what it needs, and what it may do.

use std::borrow::Cow;

use super::{
    GrantScope::{self, *},
    Scopes,
};

/// The nine categories of verbs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActionCategory {
    Files,
    Buffers,
    Analysis,
    Project,
    Terminal,
    Git,
    Search,
    Sync,
    Advanced,
}

/// What the worst is that an action may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    Reads,
    /// It changes what can be changed back.
    Changes,
    /// It runs code that the granted folders hold.
    Runs,
    /// It destroys, or runs what it is told. A person confirms it, each time.
    Destroys,
}

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub struct VerbSpec {
    pub verb: &'static str,
    pub category: ActionCategory,
    /// One of these is needed.
    pub needs: &'static [GrantScope],
    pub risk: Risk,
    /// The arguments that are paths: each must lie beneath a granted root.
    pub paths: &'static [&'static str],
}

const fn row(
    verb: &'static str,
    category: ActionCategory,
    needs: &'static [GrantScope],
    risk: Risk,
    paths: &'static [&'static str],
) -> VerbSpec {
    VerbSpec { verb, category, needs, risk, paths }
}

use ActionCategory::*;
use Risk::*;

const TABLE: &[VerbSpec] = &[
    row("open_file", Files, &[ReadFiles], Reads, &["path"]),
    row("create_file", Files, &[CreateFiles], Changes, &["path"]),
    row("write_file", Files, &[WriteFiles], Changes, &["path"]),
    row("delete_file", Files, &[DeleteFiles], Destroys, &["path"]),
    row("rename_file", Files, &[RenameFiles], Changes, &["path", "new_path"]),
    row("search_files", Files, &[SearchFiles], Reads, &["path"]),
    row("watch_file", Files, &[WatchChanges], Reads, &["path"]),
    row("get_buffers", Buffers, &[ReadBuffers], Reads, &[]),
    row("edit_buffer", Buffers, &[EditBuffers], Changes, &["path"]),
    row("save_buffer", Buffers, &[WriteFiles], Changes, &["path"]),
    row("switch_buffer", Buffers, &[ManageBuffers], Reads, &["path"]),
    row("split_pane", Buffers, &[SplitPanes], Reads, &["path"]),
    row("close_buffer", Buffers, &[ManageBuffers], Reads, &["path"]),
    row("analyze_syntax", Analysis, &[AnalyzeSyntax], Reads, &["path"]),
    row("get_errors", Analysis, &[DetectErrors], Reads, &["path"]),
    row("get_completions", Analysis, &[SuggestCompletion], Reads, &["path"]),
    row("format_code", Analysis, &[FormatCode], Changes, &["path"]),
    row("goto_definition", Analysis, &[NavigateSymbols], Reads, &["path"]),
    row("explore_tree", Project, &[ExploreProject], Reads, &["path"]),
    row("build_project", Project, &[BuildProject], Runs, &["path", "cwd"]),
    row("run_tests", Project, &[TestCode], Runs, &["path", "cwd"]),
    row("get_workspace_info", Project, &[ExploreProject], Reads, &["path"]),
    row("exec_command", Terminal, &[RunCommands, ExecTerminal], Destroys, &["cwd"]),
    row("open_terminal", Terminal, &[ExecTerminal], Destroys, &["cwd"]),
    row("get_output", Terminal, &[RunCommands, ExecTerminal], Reads, &[]),
    row("send_input", Terminal, &[ExecTerminal], Destroys, &[]),
    row("git_status", Git, &[GitStatus], Reads, &["path", "cwd"]),
    row("git_add", Git, &[GitCommit], Changes, &["path", "cwd"]),
    row("git_commit", Git, &[GitCommit], Changes, &["path", "cwd"]),
    row("git_diff", Git, &[ViewDiffs, GitStatus], Reads, &["path", "cwd"]),
    row("git_branch", Git, &[GitBranch], Changes, &["path", "cwd"]),
    row("find_in_file", Search, &[SearchContent], Reads, &["path"]),
    row("find_in_project", Search, &[SearchProject], Reads, &["path"]),
    row("replace_text", Search, &[ReplaceText], Changes, &["path"]),
    row("regex_search", Search, &[RegexOperations], Reads, &["path"]),
    row("get_cursor_pos", Sync, &[SyncCursor], Reads, &["path"]),
    row("set_cursor_pos", Sync, &[SyncCursor], Reads, &["path"]),
    row("get_selection", Sync, &[SyncSelection], Reads, &["path"]),
    row("sync_viewport", Sync, &[SyncViewport], Reads, &["path"]),
    row("get_code_lens", Advanced, &[CodeLens], Reads, &["path"]),
    row("apply_quick_fix", Advanced, &[QuickFixes], Changes, &["path"]),
    row("refactor_symbol", Advanced, &[RefactorCode], Changes, &["path"]),
    row("manage_plugins", Advanced, &[ManagePlugins], Destroys, &[]),
];

// === impl ActionCategory ===

impl ActionCategory {
    pub const ALL: [Self; 9] = [Files, Buffers, Analysis, Project, Terminal, Git, Search, Sync, Advanced];

    /// What an action of it is called where it is named by its category, whose `op` is the verb.
    pub fn name(self) -> &'static str {
        match self {
            Files => "file_operation",
            Buffers => "buffer_management",
            Analysis => "code_analysis",
            Project => "project_management",
            Terminal => "terminal_execution",
            Git => "version_control",
            Search => "search_replace",
            Sync => "realtime_sync",
            Advanced => "advanced_features",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name() == name)
    }

    pub fn in_words(self) -> &'static str {
        match self {
            Files => "Files",
            Buffers => "Editor",
            Analysis => "Code",
            Project => "Project",
            Terminal => "Commands",
            Git => "Git",
            Search => "Search",
            Sync => "Following",
            Advanced => "Advanced",
        }
    }
}

// === impl VerbSpec ===

impl VerbSpec {
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLE.iter()
    }

    pub fn named(verb: &str) -> Option<&'static Self> {
        TABLE.iter().find(|action| action.verb == verb)
    }

    /// The action that a command names: by its verb, or by its category with the verb as `op`. What has no row is
    /// none.
    pub fn asked(action: &str, op: Option<&str>) -> Result<&'static Self, Cow<'static, str>> {
        let Some(category) = ActionCategory::named(action) else {
            return Self::named(action).ok_or_else(|| format!("there is no action {action:?}").into());
        };
        let op = op.ok_or_else(|| format!("{action:?} needs the verb as `op`"))?;
        let found = Self::named(op).filter(|action| action.category == category);
        found.ok_or_else(|| format!("{action:?} has no verb {op:?}").into())
    }

    pub fn scopes(&self) -> Scopes {
        self.needs.iter().copied().collect()
    }

    /// Whether it starts a program, by itself or by asking a language server.
    pub fn starts_programs(&self) -> bool {
        self.risk == Runs || self.category == Terminal || self.asks_language_server()
    }

    /// Whether it runs programs by name, or what a repository says to run: commands, builds, tests, git. The built-in editor alone
    /// does that, behind its fence; another has none.
    pub fn runs_programs(&self) -> bool {
        self.risk == Runs || matches!(self.category, Terminal | Git)
    }

    /// Whether a language server may be started for it. Other than what is built, it is nothing that a holder asks for by name.
    pub fn asks_language_server(&self) -> bool {
        let is_read_here = self.verb == "analyze_syntax";
        matches!(self.category, Analysis | Advanced) && !is_read_here && self.verb != "manage_plugins"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    //
    #[test]
    fn every_verb_of_the_source_has_a_row_and_each_only_one() {
        let source = "open_file create_file delete_file rename_file search_files watch_file \
             get_buffers edit_buffer switch_buffer split_pane close_buffer \
             analyze_syntax get_errors get_completions format_code goto_definition \
             explore_tree build_project run_tests get_workspace_info \
             exec_command open_terminal get_output send_input \
             git_status git_add git_commit git_diff git_branch \
             find_in_file find_in_project replace_text regex_search \
             get_cursor_pos set_cursor_pos get_selection sync_viewport \
             get_code_lens apply_quick_fix refactor_symbol manage_plugins";
        for verb in source.split_whitespace() {
            assert!(VerbSpec::named(verb).is_some_and(|action| !action.needs.is_empty()), "{verb}");
        }
        let verbs: HashSet<_> = VerbSpec::all().map(|action| action.verb).collect();
        assert_eq!(verbs.len(), TABLE.len());
        assert_eq!(verbs.len(), source.split_whitespace().count() + 2, "and Prism's own two: write_file, save_buffer");
    }

    //
    #[test]
    fn what_destroys_is_known() {
        let destroys: Vec<_> =
            VerbSpec::all().filter(|action| action.risk == Destroys).map(|action| action.verb).collect();
        assert_eq!(destroys, ["delete_file", "exec_command", "open_terminal", "send_input", "manage_plugins"]);
    }

    //
    #[test]
    fn an_action_is_named_by_its_verb_or_by_its_category() {
        let verb = |action, op| VerbSpec::asked(action, op).map(|action| action.verb);
        assert_eq!(verb("open_file", None), Ok("open_file"));
        assert_eq!(verb("file_operation", Some("open_file")), Ok("open_file"));
        for (action, op) in [
            ("file_operation", None),
            ("file_operation", Some("git_add")),
            ("file_operation", Some("file_operation")),
            ("format_disk", None),
            ("", None),
            ("OPEN_FILE", None),
        ] {
            assert!(verb(action, op).is_err(), "{action} {op:?}");
        }
    }
}
