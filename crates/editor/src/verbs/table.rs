//! The table. Its order is that of the policy's table of actions.

use super::{
    ArgKind::{self, *},
    VerbArg, VerbDoc,
};

const fn verb(name: &'static str, about: &'static str, args: &'static [VerbArg], example: &'static str) -> VerbDoc {
    VerbDoc { name, about, args, example }
}

const fn needs(name: &'static str, kind: ArgKind, about: &'static str) -> VerbArg {
    VerbArg { name, kind, is_required: true, about }
}

const fn may(name: &'static str, kind: ArgKind, about: &'static str) -> VerbArg {
    VerbArg { name, kind, is_required: false, about }
}

const PATH: VerbArg = needs("path", Text, "The file, absolute or relative to the first granted root.");
const BENEATH: VerbArg = may("path", Text, "The folder to look in; the first granted root if not given.");
const OF: VerbArg = may("path", Text, "The file; the active one if not given.");
const CWD: VerbArg = may("cwd", Text, "The folder to work in; the first granted root if not given.");
const VERSION: VerbArg =
    may("version", Integer, "The version of the buffer that this was made for; refused if it is another by now.");
const POSITION: VerbArg = needs("position", Position, "Where: line and character from zero, in UTF-16 units.");
const LIMIT: VerbArg = may("limit", Integer, "The most to return; `is_complete` says whether there is more.");
const HIDDEN: VerbArg = may("hidden", Boolean, "Whether to look at hidden files too.");
const IGNORED: VerbArg = may("ignored", Boolean, "Whether to look at files that ignore files exclude, too.");
const IGNORE_CASE: VerbArg = may("ignore_case", Boolean, "Whether upper and lower case are the same.");
const GLOB: VerbArg = may("glob", Text, "Only files whose path matches this, as in \"**/*.rs\".");
const ENCODING: VerbArg =
    may("encoding", Choice(&["utf-8", "base64"]), "How the content is written; utf-8 if not given.");
const ENV: VerbArg = may("env", Variables, "Environment variables to add.");
const TIMEOUT: VerbArg = may("timeout_ms", Integer, "How many milliseconds it may take before it is ended.");
const TOOL: VerbArg = may(
    "tool",
    Choice(&["cargo", "npm", "pytest", "go", "make"]),
    "The build tool; found by the project's files if not given.",
);
const PREVIEW: VerbArg = may("preview", Boolean, "Whether only to show what would change.");

pub(super) const VERBS: &[VerbDoc] = &[
    verb(
        "open_file",
        "Reads a file; a text becomes an open buffer with a version that edits can name.",
        &[
            PATH,
            may("offset", Integer, "The first line to return, from zero."),
            may("limit", Integer, "How many lines to return."),
        ],
        r#"{"path":"src/main.rs"}"#,
    ),
    verb(
        "create_file",
        "Creates a file, or a folder; refused if there is one of that name.",
        &[
            needs("path", Text, "Where it is to be, absolute or relative to the first granted root."),
            may("content", Text, "What it is to hold; empty if not given."),
            ENCODING,
            may("parents", Boolean, "Whether to create missing folders on the way."),
            may("kind", Choice(&["file", "folder"]), "What to create; a file if not given."),
        ],
        r#"{"path":"notes/todo.md","content":"- first\n","parents":true}"#,
    ),
    verb(
        "write_file",
        "Replaces all that a file on disk holds; create_file makes a new one.",
        &[
            PATH,
            needs("content", Text, "What it is to hold."),
            ENCODING,
            may(
                "digest",
                Text,
                "The digest of what it held when you read it; refused if it is another by now. Without it the person is asked.",
            ),
        ],
        r#"{"path":"VERSION","content":"1.2.0\n"}"#,
    ),
    verb(
        "delete_file",
        "Deletes a file or an empty folder, after a person has confirmed it.",
        &[PATH],
        r#"{"path":"old.txt"}"#,
    ),
    verb(
        "rename_file",
        "Renames or moves a file or folder; an open buffer of it moves along.",
        &[
            PATH,
            needs("new_path", Text, "What it is to be called."),
            may("overwrite", Boolean, "Whether to replace what is there, after a person has confirmed it."),
        ],
        r#"{"path":"src/old.rs","new_path":"src/new.rs"}"#,
    ),
    verb(
        "search_files",
        "Finds files by their names.",
        &[needs("pattern", Text, "A glob for the path, as in \"**/*.toml\"."), BENEATH, LIMIT, HIDDEN, IGNORED],
        r#"{"pattern":"**/*.toml"}"#,
    ),
    verb(
        "watch_file",
        "Has events sent when a file or folder changes, or no longer.",
        &[needs("path", Text, "The file or folder."), may("stop", Boolean, "Whether to end the watching instead.")],
        r#"{"path":"src"}"#,
    ),
    verb("get_buffers", "Lists open buffers with their versions and whether they have unsaved changes.", &[], "{}"),
    verb(
        "edit_buffer",
        "Edits open text, all edits or none; what changed is saved with save_buffer.",
        &[
            may("path", Text, "The file; not with `files`."),
            may(
                "version",
                Integer,
                "The version the edit was made for; a range without old_text needs it or `digest`.",
            ),
            may("digest", Text, "The digest the edit was made for, in the place of a version."),
            may("edits", Edits, "The edits, each by range or by the text to replace."),
            may("old_text", Text, "What to replace, which must be there exactly once: a single edit without `edits`."),
            may("new_text", Text, "What to put in its place."),
            may("undo", Integer, "How many edits to undo, in the place of an edit."),
            may("redo", Integer, "How many undone edits to make again."),
            may("files", Files, "Edits of several files, in the place of all else: all of them are made or none."),
        ],
        r#"{"path":"src/main.rs","old_text":"fn mian","new_text":"fn main"}"#,
    ),
    verb(
        "save_buffer",
        "Writes unsaved changes of an open buffer to its file.",
        &[
            may("path", Text, "The file; not with `all`."),
            may("all", Boolean, "Whether to save every buffer that has unsaved changes."),
            VERSION,
            may("overwrite", Boolean, "Whether to save even if the file was changed on disk meanwhile."),
        ],
        r#"{"path":"src/main.rs"}"#,
    ),
    verb("switch_buffer", "Makes a buffer the active one.", &[PATH], r#"{"path":"src/lib.rs"}"#),
    verb(
        "split_pane",
        "Splits the active pane.",
        &[
            may("path", Text, "The file that the new pane shows; the active one if not given."),
            may("direction", Choice(&["right", "down"]), "Where the new pane is; to the right if not given."),
        ],
        r#"{"direction":"down"}"#,
    ),
    verb(
        "close_buffer",
        "Closes a buffer; refused if it has unsaved changes.",
        &[PATH, may("discard", Boolean, "Whether to close it even so, and lose them.")],
        r#"{"path":"src/lib.rs"}"#,
    ),
    verb(
        "analyze_syntax",
        "Parses a text, unsaved changes included: an outline, syntax errors and, if wanted, the tree.",
        &[
            PATH,
            may("tree", Boolean, "Whether to return the syntax tree too."),
            may("depth", Integer, "How deep the tree may be."),
            may("limit", Integer, "The most nodes of the tree to return."),
            may("range", Range, "The part of the text that the tree is of."),
        ],
        r#"{"path":"src/lib.rs"}"#,
    ),
    verb(
        "get_errors",
        "Returns errors and warnings of the language server, and which version of the text they are about.",
        &[
            may("path", Text, "The file; all that are known if not given."),
            may("wait_ms", Integer, "How long to wait for those of the current version."),
        ],
        r#"{"path":"src/main.rs","wait_ms":5000}"#,
    ),
    verb(
        "get_completions",
        "Returns what could be written at a place.",
        &[PATH, POSITION, LIMIT],
        r#"{"path":"src/main.rs","position":{"line":4,"character":8}}"#,
    ),
    verb(
        "format_code",
        "Formats a text, or a part of it, with the language's formatter; the buffer is changed, not the file.",
        &[
            PATH,
            VERSION,
            may("range", Range, "The part to format; all of it if not given."),
            may("tab_size", Integer, "How wide an indentation is."),
            may("insert_spaces", Boolean, "Whether to indent with spaces."),
        ],
        r#"{"path":"src/main.rs"}"#,
    ),
    verb(
        "goto_definition",
        "Finds where a symbol is defined, or what else is asked for by `kind`.",
        &[
            PATH,
            POSITION,
            may(
                "kind",
                Choice(&["definition", "declaration", "type_definition", "implementation", "references", "symbols"]),
                "What to find; the definition if not given.",
            ),
        ],
        r#"{"path":"src/main.rs","position":{"line":4,"character":8},"kind":"references"}"#,
    ),
    verb(
        "explore_tree",
        "Lists folders and files of the project, without those that ignore files exclude.",
        &[BENEATH, may("depth", Integer, "How many levels to go down."), LIMIT, HIDDEN, IGNORED],
        r#"{"depth":2}"#,
    ),
    verb(
        "build_project",
        "Builds the project and returns errors and warnings by place; it sees what is saved.",
        &[CWD, TOOL, may("target", Text, "What to build; the tool's default if not given."), TIMEOUT],
        "{}",
    ),
    verb(
        "run_tests",
        "Runs the project's tests and returns each with its outcome; it sees what is saved.",
        &[CWD, TOOL, may("filter", Text, "Only tests whose names match this, as the tool understands it."), TIMEOUT],
        r#"{"filter":"parse"}"#,
    ),
    verb(
        "get_workspace_info",
        "Tells what is granted: the roots, their projects, languages, language servers, and how commands are fenced in.",
        &[may("path", Text, "Only the root that this is beneath.")],
        "{}",
    ),
    verb(
        "exec_command",
        "Runs a command to its end, after a person has confirmed it; it sees what is saved.",
        &[needs("command", Command, "A line for the shell, or a program and its arguments."), CWD, ENV, TIMEOUT],
        r#"{"command":"ls -l"}"#,
    ),
    verb(
        "open_terminal",
        "Opens a terminal, after a person has confirmed it.",
        &[
            may("command", Command, "What runs in it; the user's shell if not given."),
            CWD,
            ENV,
            may("rows", Integer, "Its height."),
            may("cols", Integer, "Its width."),
        ],
        r#"{"command":["python3"]}"#,
    ),
    verb(
        "get_output",
        "Returns what a terminal has printed, or lists terminals.",
        &[
            may("terminal", Text, "The terminal; all of yours are listed if not given."),
            may("after", Integer, "The `next` of an earlier answer: only what came after it."),
            may("limit", Integer, "The most bytes to return."),
            may("wait_ms", Integer, "How long to wait for something new."),
            may("screen", Boolean, "Whether to return what the screen shows instead."),
        ],
        r#"{"terminal":"1","after":0,"wait_ms":1000}"#,
    ),
    verb(
        "send_input",
        "Types into a terminal, resizes it, sends its program a signal or closes it, after a person has confirmed it.",
        &[
            needs("terminal", Text, "The terminal."),
            may("input", Text, "What to type; \"\\n\" is the enter key."),
            may("rows", Integer, "Its new height, with `cols`."),
            may("cols", Integer, "Its new width, with `rows`."),
            may(
                "signal",
                Choice(&["INT", "TERM", "KILL", "HUP", "QUIT", "TSTP", "CONT", "USR1", "USR2"]),
                "The signal to send.",
            ),
            may("close", Boolean, "Whether to close it."),
        ],
        r#"{"terminal":"1","input":"print(1)\n"}"#,
    ),
    verb("git_status", "Returns the branch and what has changed in the repository.", &[CWD], "{}"),
    verb(
        "git_add",
        "Stages files, and returns the status then.",
        &[
            CWD,
            may("path", Text, "The file or folder to stage."),
            may("paths", Texts, "Several of them."),
            may("all", Boolean, "Whether to stage all that has changed."),
        ],
        r#"{"paths":["src/main.rs"]}"#,
    ),
    verb(
        "git_commit",
        "Commits what is staged; hooks of the repository do not run.",
        &[CWD, needs("message", Text, "The commit's message.")],
        r#"{"message":"Fix the greeting"}"#,
    ),
    verb(
        "git_diff",
        "Returns what has changed, as a unified diff.",
        &[
            CWD,
            may("path", Text, "Only this file or folder."),
            may("staged", Boolean, "Whether to compare what is staged with the last commit."),
            may("commit", Text, "The commit to compare with."),
        ],
        r#"{"staged":true}"#,
    ),
    verb(
        "git_branch",
        "Lists branches, and creates or switches to one.",
        &[
            CWD,
            may("name", Text, "The branch; all are only listed if not given."),
            may("create", Boolean, "Whether to create it."),
            may("switch", Boolean, "Whether to switch to it."),
            may("from", Text, "The commit or branch that a new one begins at."),
        ],
        r#"{"name":"fix-greeting","create":true,"switch":true}"#,
    ),
    verb(
        "find_in_file",
        "Finds words in a text, unsaved changes included.",
        &[PATH, needs("text", Text, "The words."), IGNORE_CASE, LIMIT],
        r#"{"path":"src/main.rs","text":"TODO"}"#,
    ),
    verb(
        "find_in_project",
        "Finds words in all files of the project, unsaved changes included.",
        &[
            needs("text", Text, "The words."),
            BENEATH,
            GLOB,
            IGNORE_CASE,
            may("word", Boolean, "Whether only whole words count."),
            HIDDEN,
            IGNORED,
            LIMIT,
        ],
        r#"{"text":"TODO","glob":"**/*.rs"}"#,
    ),
    verb(
        "replace_text",
        "Replaces words, or what a regular expression matches, in many files; buffers are changed, not files.",
        &[
            may("text", Text, "The words to replace; not with `pattern`."),
            may("pattern", Text, "A regular expression; `new_text` may name its groups, as in \"$1\"."),
            needs("new_text", Text, "What to put in their place."),
            BENEATH,
            GLOB,
            IGNORE_CASE,
            PREVIEW,
            may("limit", Integer, "The most replacements; refused if there were more."),
        ],
        r#"{"text":"colour","new_text":"color","preview":true}"#,
    ),
    verb(
        "regex_search",
        "Finds what a regular expression matches in all files of the project, unsaved changes included.",
        &[
            needs("pattern", Text, "The regular expression, in Rust's syntax."),
            BENEATH,
            GLOB,
            IGNORE_CASE,
            may("multiline", Boolean, "Whether a match may span lines."),
            HIDDEN,
            IGNORED,
            LIMIT,
        ],
        r#"{"pattern":"fn \\w+_test"}"#,
    ),
    verb("get_cursor_pos", "Returns where the cursor is.", &[OF], "{}"),
    verb(
        "set_cursor_pos",
        "Moves the cursor, and selects if wanted.",
        &[PATH, POSITION, may("selection", Range, "What to select.")],
        r#"{"path":"src/main.rs","position":{"line":4,"character":0}}"#,
    ),
    verb("get_selection", "Returns what is selected.", &[OF], "{}"),
    verb(
        "sync_viewport",
        "Returns which lines are in view, or scrolls to some.",
        &[
            PATH,
            may("first_line", Integer, "The first line to show, from zero."),
            may("last_line", Integer, "The last line to show."),
        ],
        r#"{"path":"src/main.rs","first_line":0,"last_line":40}"#,
    ),
    verb(
        "get_code_lens",
        "Returns the notes that the language server shows in code, such as what can be run.",
        &[PATH],
        r#"{"path":"src/main.rs"}"#,
    ),
    verb(
        "apply_quick_fix",
        "Lists the language server's fixes for a place, or applies the one of that title; buffers are changed, not files.",
        &[
            PATH,
            needs("range", Range, "Where the problem is."),
            may("title", Text, "The fix to apply; they are only listed if not given."),
            VERSION,
            PREVIEW,
        ],
        r#"{"path":"src/main.rs","range":{"start":{"line":4,"character":0},"end":{"line":4,"character":9}}}"#,
    ),
    verb(
        "refactor_symbol",
        "Renames a symbol wherever it is used; buffers are changed, not files.",
        &[PATH, POSITION, needs("new_name", Text, "What it is to be called."), VERSION, PREVIEW],
        r#"{"path":"src/main.rs","position":{"line":4,"character":8},"new_name":"greet"}"#,
    ),
    verb(
        "manage_plugins",
        "Lists language servers and connected editors, or stops or restarts a server, after a person has confirmed it.",
        &[
            may("do", Choice(&["list", "stop", "restart"]), "What to do; list if not given."),
            may("language", Text, "The language whose server is meant; all if not given."),
        ],
        r#"{"do":"list"}"#,
    ),
];
