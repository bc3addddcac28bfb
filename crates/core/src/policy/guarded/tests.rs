use std::collections::HashSet;

use super::*;

const PAGE: &str = include_str!("../../../../../docs/gate.md");

fn guard(path: &str) -> Option<&'static str> {
    guard_of(path).map(|row| match row.guard {
        GuardPolicy::Closed { .. } => "closed",
        GuardPolicy::Shown => "shown",
    })
}

// R-05
#[test]
fn what_tools_run_by_themselves_is_guarded_at_any_depth_and_ordinary_work_is_not() {
    for (path, expected) in [
        ("/p/.git/config", Some("closed")),
        ("/p/.git", Some("closed")),
        ("/p/.git/hooks/pre-commit", Some("closed")),
        ("/p/vendor/lib/.git/modules/x/config", Some("closed")),
        ("/p/.jj/repo/config.toml", Some("closed")),
        // Were the granted folder the repository's own, there were nothing but it.
        (".git/config", Some("closed")),
        ("/p/.husky/pre-commit", Some("shown")),
        ("/p/a/b/.vscode/tasks.json", Some("shown")),
        ("/p/.vscode", Some("shown")),
        ("/p/x.code-workspace", Some("shown")),
        ("/p/.envrc", Some("shown")),
        ("/p/.env.local", Some("shown")),
        ("/p/.github/workflows/ci.yml", Some("shown")),
        ("/p/prism.toml", Some("shown")),
        ("/p/.mcp.json", Some("shown")),
        ("/p/AGENTS.md", Some("shown")),
        ("/p/CLAUDE.local.md", Some("shown")),
        ("/p/crates/a/build.rs", Some("shown")),
        ("/p/package.json", Some("shown")),
        ("/home/me/.config/fish/config.fish", Some("shown")),
        ("/home/me/.bashrc", Some("shown")),
        ("/p/sub/HEAD", Some("shown")),
        ("/p/node_modules/eslint/lib/api.js", Some("shown")),
        // What the person runs knowingly, or nobody does.
        ("/p/.gitignore", None),
        ("/p/.gitattributes", None),
        ("/p/src/main.rs", None),
        ("/p/Makefile", None),
        ("/p/tests/conftest.py", None),
        ("/p/.env.example", None),
        ("/p/git/config", None),
        ("/p/src/head/mod.rs", None),
        ("/p/docs/prism.toml.md", None),
        ("/p/.config/app/settings.json", None),
        ("/p/package.json.md", None),
    ] {
        assert_eq!(guard(path), expected, "{path}");
    }
}

// R-05: what is another name to us may be the same file to a file system.
#[test]
fn a_name_is_the_same_however_a_file_system_may_take_it() {
    for path in [
        "/p/.GIT/config",
        "/p/.Git/Hooks/x",
        "/p/.git./config",
        "/p/.git /config",
        "/p/.git. . /config",
        "/p//.git/./config",
        "/p/.g\u{200c}it/config",
        "/p/\u{feff}.git/config",
        "/p/.git::$INDEX_ALLOCATION/config",
        "/p/GIT~1/config",
        "/p/\u{ff0e}\u{ff47}it/config",
        "/p/\u{2024}git/config",
        "/p/.v\u{17f}code/tasks.json",
        "/p/.VSCODE/TASKS.JSON",
        "/p/agents.MD",
        "/p/cargo.TOML",
        "/p/.\u{212a}iro/x",
    ] {
        assert!(guard(path).is_some(), "{path:?}");
    }
}

// R-05: a whole project may be checked out in an agent's folder.
#[test]
fn a_project_in_an_agents_worktrees_is_judged_from_there_on() {
    assert_eq!(guard("/p/.claude/worktrees/fix/src/main.rs"), None);
    assert_eq!(guard("/p/.claude/worktrees/fix/.vscode/tasks.json"), Some("shown"));
    assert_eq!(guard("/p/.claude/worktrees/fix/.claude/settings.json"), Some("shown"));
    assert_eq!(guard("/p/.claude/worktrees/settings.json"), Some("shown"));
    assert_eq!(guard("/p/.git/worktrees/fix/config"), Some("closed"));
}

// R-05
#[test]
fn a_folder_that_moves_brings_what_is_in_it() {
    assert!(guard_beneath("/home/me/.config").is_some());
    assert!(guard_beneath("/p/gradle").is_some());
    assert!(guard_beneath("/p/.vscode").is_some());
    assert!(guard_beneath("/p/src").is_none());
    assert!(guard_of("/p/gradle").is_none());
}

// R-05: a dependency is added all day, a script is not.
#[test]
fn of_some_files_only_a_part_is_guarded() {
    let same = |path: &str, one: &str, other: &str| {
        let row = guard_of(path).unwrap();
        row.part(one) == row.part(other)
    };
    let package = |scripts: &str, dependencies: &str| {
        format!(r#"{{"name": "x", "scripts": {scripts}, "dependencies": {dependencies}}}"#)
    };
    let before = package(r#"{"test": "jest"}"#, "{}");
    assert!(same("/p/package.json", &before, &package(r#"{ "test" : "jest" }"#, r#"{"left-pad": "1"}"#)));
    for after in [
        package(r#"{"test": "jest", "postinstall": "sh x"}"#, "{}"),
        package(r#"{"test": "sh x"}"#, "{}"),
        r#"{"name": "x", "scripts": {"test": "jest"}, "husky": {}}"#.to_owned(),
        r#"{"name": "x", "scripts": {"test": "sh x"}, "scripts": {"test": "jest"}}"#.to_owned(),
        r#"{"name": "x", "script\u0073": {"test": "sh x"}}"#.to_owned(),
        "{".to_owned(),
        String::new(),
    ] {
        assert!(!same("/p/package.json", &before, &after), "{after}");
    }
    let cargo = "[package]\nname = \"x\"\n[dependencies]\n";
    assert!(same("/p/Cargo.toml", cargo, &format!("{cargo}serde = \"1\"\n")));
    for more in ["build = \"x.rs\"", "\"b\\u0075ild\" = \"x.rs\"", "[lib]\rproc-macro = true"] {
        assert!(!same("/p/Cargo.toml", cargo, &format!("{more}\n{cargo}")), "{more}");
    }
    assert!(!same("/p/.envrc", "a", "a\n"), "any change of these");
}

// R-05: for the sandbox, which knows folders at the top only.
#[test]
fn folders_and_files_that_can_be_read_only_are_told_by_name() {
    let folders: HashSet<_> = folders().collect();
    for name in [".git", ".husky", ".vscode", ".claude", ".github", ".config/fish"] {
        assert!(folders.contains(name), "{name}");
    }
    // Builds and package managers fill these.
    for name in ["node_modules", ".venv", ".gradle"] {
        assert!(!folders.contains(name), "{name}");
    }
    assert!(folders.iter().all(|name| !name.contains('*') && !name.ends_with('/')));
    let files: HashSet<_> = files().collect();
    assert!(files.contains(".envrc") && files.contains("build.rs") && !files.contains("package.json"));
}

#[test]
fn the_table_has_each_name_once_and_finds_each() {
    let mut seen = HashSet::new();
    for row in GuardedPath::all() {
        for name in row.names() {
            assert!(seen.insert(name), "{name} is there twice");
            let path = format!("/p/{}", name.replace('*', "x"));
            assert_eq!(guard_of(&path), Some(row), "{name}");
        }
    }
}

// R-05: "the list is part of the docs".
#[test]
fn every_name_of_the_table_is_in_the_docs_with_its_reason() {
    for row in GuardedPath::all() {
        let names: Vec<String> = row.names().map(|name| format!("`{name}`")).collect();
        let how = match row.guard {
            GuardPolicy::Closed { instead } => format!("closed: {instead}"),
            GuardPolicy::Shown if row.is_in_part() => "shown in part".to_owned(),
            GuardPolicy::Shown => "shown".to_owned(),
        };
        let line = format!("| {} | {how} | {} |", names.join(", "), row.why);
        assert!(PAGE.contains(&line), "docs/gate.md has not this line:\n{line}");
    }
}
