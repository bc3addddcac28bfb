//! Scopes: what a grant may be for, in their names and in plain words.

use std::fmt;

use super::{ActionCategory, Preset};

/// All scopes: the name that programs use, the category of the verbs it is for, and what it means to a person.
macro_rules! scopes {
    ($($scope:ident = $name:literal in $category:ident: $words:literal,)*) => {
        /// One thing that may be granted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GrantScope { $($scope,)* }

        impl GrantScope {
            pub const ALL: &[Self] = &[$(Self::$scope,)*];

            /// What programs call it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$scope => $name,)* }
            }

            pub fn category(self) -> ActionCategory {
                match self { $(Self::$scope => ActionCategory::$category,)* }
            }

            /// What it means to the person who is asked for it.
            pub fn in_words(self) -> &'static str {
                match self { $(Self::$scope => $words,)* }
            }
        }
    };
}

scopes! {
    ReadFiles = "read:files" in Files: "read files",
    WriteFiles = "write:files" in Files: "change files",
    CreateFiles = "create:files" in Files: "create files",
    DeleteFiles = "delete:files" in Files: "delete files; each time you are asked",
    RenameFiles = "rename:files" in Files: "rename and move files",
    SearchFiles = "search:files" in Files: "find files by their names",
    ReadBuffers = "read:buffers" in Buffers: "see what is open in the editor",
    EditBuffers = "edit:buffers" in Buffers: "edit what is open in the editor",
    ManageBuffers = "manage:buffers" in Buffers: "open, switch and close editors",
    SplitPanes = "split:panes" in Buffers: "split the editor's panes",
    ManageTabs = "manage:tabs" in Buffers: "arrange the editor's tabs",
    AnalyzeSyntax = "analyze:syntax" in Analysis: "parse code",
    DetectErrors = "detect:errors" in Analysis: "see errors and warnings in code",
    SuggestCompletion = "suggest:completion" in Analysis: "ask for code completions",
    FormatCode = "format:code" in Analysis: "format code",
    NavigateSymbols = "navigate:symbols" in Analysis: "look up definitions and references",
    ExploreProject = "explore:project" in Project: "list the project's folders and files",
    ManageWorkspace = "manage:workspace" in Project: "see and change the workspace's settings",
    WatchChanges = "watch:changes" in Project: "be told when files change",
    BuildProject = "build:project" in Project: "build the project, which runs its build scripts",
    ExecTerminal = "exec:terminal" in Terminal: "use a terminal; each command is shown to you first",
    RunCommands = "run:commands" in Terminal: "run commands; each is shown to you first",
    DebugSession = "debug:session" in Terminal: "run the project under a debugger",
    TestCode = "test:code" in Terminal: "run the project's tests, which runs its code",
    GitStatus = "git:status" in Git: "see the state of the repository",
    GitCommit = "git:commit" in Git: "stage and commit changes",
    GitBranch = "git:branch" in Git: "create and switch branches",
    ViewDiffs = "view:diffs" in Git: "see what has changed in the repository",
    SearchContent = "search:content" in Search: "search in a file",
    ReplaceText = "replace:text" in Search: "replace text across files",
    RegexOperations = "regex:operations" in Search: "search with regular expressions",
    SearchProject = "search:project" in Search: "search in the whole project",
    SyncCursor = "sync:cursor" in Sync: "see and move the cursor",
    SyncSelection = "sync:selection" in Sync: "see what is selected",
    SyncViewport = "sync:viewport" in Sync: "see and scroll what is in view",
    MonitorState = "monitor:state" in Sync: "follow what happens in the editor",
    CodeLens = "code:lens" in Advanced: "read the notes the editor shows in code",
    QuickFixes = "quick:fixes" in Advanced: "apply the editor's quick fixes",
    RefactorCode = "refactor:code" in Advanced: "rename symbols and refactor across files",
    ManagePlugins = "manage:plugins" in Advanced: "manage the editor's plugins; each time you are asked",
    AllNetwork = "network:all" in Terminal: "let what it runs reach the network, and the programs on this computer",
}

/// Other names for a scope, which requests may use.
const ALIASES: [(&str, GrantScope); 3] = [
    ("open:file", GrantScope::ReadFiles),
    ("edit:buffer", GrantScope::EditBuffers),
    ("run:tests", GrantScope::TestCode),
];

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u64);

/// A word that names no scope.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is no scope{}; `prism access scopes` lists them", near.map_or(String::new(), |near| format!(", do you mean {near:?}?")))]
pub struct UnknownScope {
    pub word: String,
    near: Option<&'static str>,
}

// === impl GrantScope ===

impl GrantScope {
    pub fn named(name: &str) -> Option<Self> {
        let alias = || ALIASES.into_iter().find(|(alias, _)| *alias == name).map(|(_, scope)| scope);
        Self::ALL.iter().copied().find(|scope| scope.name() == name).or_else(alias)
    }

    fn bit(self) -> u64 {
        1 << self as u64
    }
}

// === impl Scopes ===

impl Scopes {
    pub const NONE: Self = Self(0);

    pub fn all() -> Self {
        GrantScope::ALL.iter().copied().collect()
    }

    /// Reads what was asked for: names, `git:*`, `*`, and presets as `preset:standard`. What a pattern stands for is
    /// settled now: a scope that comes to be later is in no grant of today.
    pub fn read<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownScope> {
        words.into_iter().try_fold(Self::NONE, |all, word| Ok(all | Self::meant_by(word)?))
    }

    fn meant_by(word: &str) -> Result<Self, UnknownScope> {
        let unknown = || UnknownScope { word: word.to_owned(), near: near(word) };
        // What leads to others is named, or it is not meant.
        if word == "*" {
            return Ok(Self::all().without(GrantScope::AllNetwork.into()));
        }
        if let Some(preset) = word.strip_prefix("preset:") {
            return Preset::named(preset).map(Preset::scopes).ok_or_else(unknown);
        }
        if let Some(subject) = word.strip_suffix(":*") {
            let of = |scope: &&GrantScope| scope.name().split_once(':').is_some_and(|(own, _)| own == subject);
            let all: Self = GrantScope::ALL.iter().filter(of).copied().collect();
            return if all.is_empty() { Err(unknown()) } else { Ok(all) };
        }
        GrantScope::named(word).map(Self::from).ok_or_else(unknown)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn has(self, scope: GrantScope) -> bool {
        self.0 & scope.bit() != 0
    }

    pub fn has_any_of(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Whether all of these are among the others.
    pub fn is_within(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }

    /// These without the others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    pub fn iter(self) -> impl Iterator<Item = GrantScope> {
        GrantScope::ALL.iter().copied().filter(move |scope| self.has(*scope))
    }

    /// Their names, in the order of the table.
    pub fn names(self) -> Vec<&'static str> {
        self.iter().map(GrantScope::name).collect()
    }
}

impl std::ops::BitOr for Scopes {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl From<GrantScope> for Scopes {
    fn from(scope: GrantScope) -> Self {
        Self(scope.bit())
    }
}

impl FromIterator<GrantScope> for Scopes {
    fn from_iter<I: IntoIterator<Item = GrantScope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::NONE, |all, scope| all | scope.into())
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" "))
    }
}

/// The scope with the same subject, or the same object, as a word that is none.
fn near(word: &str) -> Option<&'static str> {
    let (subject, object) = word.split_once(':')?;
    let like = |scope: &&GrantScope| {
        let (own_subject, own_object) = scope.name().split_once(':').unwrap_or_default();
        own_subject == subject && own_object.trim_end_matches('s') == object.trim_end_matches('s')
    };
    let subject_of = |scope: &&GrantScope| scope.name().split_once(':').is_some_and(|(own, _)| own == subject);
    let found = GrantScope::ALL.iter().find(like).or_else(|| GrantScope::ALL.iter().find(subject_of));
    found.map(|scope| scope.name())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_scope_is_one_bit_and_is_found_by_its_name() {
        assert_eq!(GrantScope::ALL.len(), 41);
        for scope in GrantScope::ALL {
            assert_eq!(GrantScope::named(scope.name()), Some(*scope));
            assert_eq!(Scopes::from(*scope).len(), 1);
        }
        assert_eq!(Scopes::all().len(), 41);
    }

    //
    #[test]
    fn patterns_and_presets_mean_the_scopes_they_name() {
        let read = |word: &str| Scopes::read([word]).unwrap().to_string();
        assert_eq!(read("git:*"), "git:status git:commit git:branch");
        assert_eq!(read("read:*"), "read:files read:buffers");
        assert_eq!(read("preset:restricted"), "read:files analyze:syntax search:content");
        let network = Scopes::from(GrantScope::AllNetwork);
        assert_eq!(Scopes::read(["*"]), Ok(Scopes::all().without(network)));
        assert_eq!(Scopes::read(["*", "network:all"]), Ok(Scopes::all()));
        assert_eq!(read("open:file"), "read:files");
    }

    #[test]
    fn a_word_that_is_no_scope_is_refused_with_one_that_is() {
        let wrong = |word: &str| Scopes::read([word]).unwrap_err().to_string();
        assert!(wrong("read:file").contains("do you mean \"read:files\"?"), "{}", wrong("read:file"));
        assert!(wrong("fly:*").starts_with("\"fly:*\" is no scope;"), "{}", wrong("fly:*"));
        for word in ["", ":", "*:*", "git:", "GIT:*", "preset:", "preset:root", "read:files "] {
            assert!(Scopes::read([word]).is_err(), "{word:?}");
        }
    }

    fn some() -> impl Strategy<Value = Scopes> {
        proptest::collection::vec(0..GrantScope::ALL.len(), 0..12)
            .prop_map(|at| at.into_iter().map(|at| GrantScope::ALL[at]).collect())
    }

    proptest! {
        #[test]
        fn they_are_sets(a in some(), b in some()) {
            prop_assert!(a.is_within(a | b) && a.without(b).is_within(a));
            prop_assert!(!a.without(b).has_any_of(b));
            prop_assert_eq!(a.is_within(b), a.iter().all(|scope| b.has(scope)));
            prop_assert_eq!(Scopes::read(a.names()), Ok(a));
        }
    }
}
