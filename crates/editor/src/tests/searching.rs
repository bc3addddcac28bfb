//! `find_in_project`, `regex_search`, and what ignore files leave out of them and of `explore_tree` and `search_files`.

use std::{
    collections::BTreeSet,
    io::{Seek, SeekFrom, Write},
    os::unix::fs::{PermissionsExt, symlink},
    process::Command,
};

use super::*;
use crate::progress::ProgressSink;

fn put(place: &Place, files: &[(&str, &str)]) {
    for (name, text) in files {
        fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, text);
    }
}

/// The matches as `path:line:from-to`, paths from the granted folder.
fn matches(place: &Place, answer: &Value) -> Vec<String> {
    let told = |found: &Value| {
        let path = Path::new(found["path"].as_str().unwrap()).strip_prefix(&place.granted).unwrap();
        let (start, end) = (&found["range"]["start"], &found["range"]["end"]);
        let end = if start["line"] == end["line"] {
            end["character"].to_string()
        } else {
            format!("{}:{}", end["line"], end["character"])
        };
        format!("{}:{}:{}-{end}", path.display(), start["line"], start["character"])
    };
    answer["matches"].as_array().unwrap().iter().map(told).collect()
}

#[tokio::test]
async fn words_are_found_in_all_files_in_order() {
    let place = Place::new();
    put(
        &place,
        &[
            ("b.rs", "one two\nTwo\n"),
            ("a/z.rs", "two twofold\r\nno\r\n😀 two\r\n"),
            ("a-b.txt", "\u{FEFF}two\rtwo"),
            ("empty", ""),
            ("latin", "ok"),
        ],
    );
    place.write("latin", b"\xE4 two \xFF\n");
    let run = async |args: Value| place.run("find_in_project", args).await.unwrap();
    let answer = run(json!({ "text": "two" })).await;
    let all =
        ["a/z.rs:0:0-3", "a/z.rs:0:4-7", "a/z.rs:2:3-6", "a-b.txt:0:1-4", "a-b.txt:1:0-3", "b.rs:0:4-7", "latin:0:2-5"];
    assert_eq!(matches(&place, &answer), all);
    assert_eq!((&answer["files"], &answer["is_complete"]), (&json!(4), &json!(true)));
    assert_eq!(answer["matches"][2]["line_text"], "😀 two");

    let found = async |args: Value| matches(&place, &run(args).await);
    assert_eq!(found(json!({ "text": "two", "word": true, "path": "a" })).await, ["a/z.rs:0:0-3", "a/z.rs:2:3-6"]);
    assert_eq!(found(json!({ "text": "TWO", "ignore_case": true, "glob": "b.*" })).await, ["b.rs:0:4-7", "b.rs:1:0-3"]);
    assert_eq!(found(json!({ "text": "two", "glob": "a/*.rs", "limit": 2 })).await, ["a/z.rs:0:0-3", "a/z.rs:0:4-7"]);
    assert_eq!(found(json!({ "text": "two", "path": "b.rs" })).await, ["b.rs:0:4-7"]);
    assert_eq!(found(json!({ "text": "t.o" })).await, Vec::<String>::new(), "words are no expression");
    for limit in 1..=all.len() {
        let answer = run(json!({ "text": "two", "limit": limit })).await;
        assert_eq!(matches(&place, &answer), all[..limit]);
        assert_eq!(answer["is_complete"], limit == all.len());
    }
}

#[tokio::test]
async fn expressions_are_found_in_lines_and_over_lines() {
    let place = Place::new();
    put(&place, &[("a", "fn one() {\r\n}\r\nfn two() {}\r\n"), ("b", "x\ny\n")]);
    for (args, expected) in [
        (json!({ "pattern": r"^fn (\w+)" }), vec!["a:0:0-6", "a:2:0-6"]),
        (json!({ "pattern": r"\}$" }), vec!["a:1:0-1", "a:2:10-11"]),
        (json!({ "pattern": r"FN", "ignore_case": true, "limit": 1 }), vec!["a:0:0-2"]),
        (json!({ "pattern": r"\{\s+\}", "multiline": true }), vec!["a:0:9-1:1"]),
        (json!({ "pattern": r"x\ny", "multiline": true }), vec!["b:0:0-1:1"]),
        (json!({ "pattern": r"^", "path": "b" }), vec!["b:0:0-0", "b:1:0-0"]),
    ] {
        let answer = place.run("regex_search", args.clone()).await.unwrap();
        assert_eq!(matches(&place, &answer), expected, "{args}");
    }
    for (args, hint) in [
        (json!({ "pattern": "(" }), "pattern"),
        (json!({ "pattern": "" }), "empty"),
        (json!({ "pattern": r"a\nb" }), "multiline"),
        (json!({ "pattern": r"(\w{500}){500}" }), "pattern"),
        (json!({ "pattern": "a".repeat(9_000) }), "bytes"),
        (json!({ "pattern": "a", "glob": "[" }), "glob"),
        (json!({ "pattern": "a", "limit": 0 }), "limit"),
        (json!({ "pattern": "a", "word": true }), "word"),
        (json!({}), "pattern"),
    ] {
        let refusal = place.run("regex_search", args.clone()).await.unwrap_err();
        assert!(refusal.code == Code::BadArguments && refusal.message.contains(hint), "{args}: {refusal:?}");
    }
    assert_eq!(place.code("regex_search", json!({ "pattern": "a", "path": "none" })).await, Code::NotFound);
    let outside = json!({ "pattern": "a", "path": place.outside });
    assert_eq!(place.code("regex_search", outside).await, Code::OutsideRoot);
    let own = json!({ "pattern": "granted", "path": "home" });
    assert_eq!(place.code("regex_search", own).await, Code::OutsideRoot);
}

#[tokio::test]
async fn what_is_no_text_is_left_out_however_large() {
    let place = Place::new();
    place.write("binary", b"needle\0needle\n");
    place.write("text", "needle\n");
    place.write("wide", b"\xFF\xFEn\0e\0e\0d\0l\0e\0\n\0");
    let mut sparse = fs::File::create(place.path("sparse")).unwrap();
    sparse.write_all(b"needle\n").unwrap();
    sparse.seek(SeekFrom::Start((1 << 30) - 1)).unwrap();
    sparse.write_all(b"\n").unwrap();
    let answer = place.run("find_in_project", json!({ "text": "needle" })).await.unwrap();
    assert_eq!(matches(&place, &answer), ["text:0:0-6", "wide:0:0-6"]);
    assert_eq!(answer["is_complete"], true);
    for file in ["binary", "sparse"] {
        let args = json!({ "text": "needle", "path": file });
        assert_eq!(place.code("find_in_project", args.clone()).await, Code::BadArguments, "{file}");
        let refused = place.code("find_in_file", args).await;
        assert!(matches!(refused, Code::BadArguments | Code::TooLarge), "{file}: {refused:?}");
    }
}

#[tokio::test]
async fn a_line_that_is_too_long_is_left_out_and_said() {
    let place = Place::new();
    place.write("long", "a".repeat(40 << 20));
    place.write("short", "aha needle");
    let answer = place.run("find_in_project", json!({ "text": "needle" })).await.unwrap();
    assert_eq!(matches(&place, &answer), ["short:0:4-10"]);
    assert_eq!(answer["is_complete"], false);
}

#[tokio::test]
async fn what_cannot_be_read_is_said_and_what_is_a_link_is_not_followed() {
    let place = Place::new();
    put(&place, &[("a/b", "granted"), ("c", "granted")]);
    symlink(place.outside.join("secret"), place.path("link")).unwrap();
    symlink(&place.outside, place.path("folder")).unwrap();
    symlink("c", place.path("near")).unwrap();
    let answer = place.run("find_in_project", json!({ "text": "granted" })).await.unwrap();
    assert_eq!(matches(&place, &answer), ["a/b:0:0-7", "c:0:0-7"]);
    assert_eq!(answer["is_complete"], true);
    fs::set_permissions(place.path("c"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(place.path("c")).is_ok() {
        return; // Who is permitted everything cannot be kept from it.
    }
    let answer = place.run("find_in_project", json!({ "text": "granted" })).await.unwrap();
    assert_eq!((matches(&place, &answer), &answer["is_complete"]), (vec!["a/b:0:0-7".to_owned()], &json!(false)));
}

/// Everything that git has an opinion on.
const RULES: &[(&str, &str)] = &[
    (".gitignore", "\u{FEFF}target/\n*.o\n!keep.o\n/only-here\nlogs/**/deep\n# note\n\\#odd\ntrail \nbuild\n.*.swp\n"),
    (".git/info/exclude", "excluded\n*.tmp\n"),
    ("target/x.rs", ""),
    ("src/target/y.rs", ""),
    ("src/a.o", ""),
    ("src/keep.o", ""),
    ("only-here", ""),
    ("src/only-here", ""),
    ("logs/a/deep", ""),
    ("logs/deep", ""),
    ("logs/a/shallow", ""),
    ("#odd", ""),
    ("trail", ""),
    ("build", ""),
    ("src/build/z", ""),
    ("excluded", ""),
    ("src/excluded", ""),
    ("x.tmp", ""),
    ("src/.gitignore", "*.rs\n!b.rs\n!sub/\n!kept.tmp\n!excluded\r\n"),
    ("src/a.rs", ""),
    ("src/b.rs", ""),
    ("src/sub/c.rs", ""),
    ("src/sub/.gitignore", "!c.rs\nd*\n"),
    ("src/sub/d1", ""),
    ("src/kept.tmp", ""),
    (".hidden/file", ""),
    (".dot", ""),
    ("ümlaut.o", ""),
    ("ümlaut.rs", ""),
    ("src/sp ace/[odd]", ""),
];

/// What a command lists, one path a line or with NULs.
fn oracle(place: &Place, program: &str, args: &[&str]) -> BTreeSet<String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(&place.granted)
        .env("HOME", &place.outside)
        .env("XDG_CONFIG_HOME", &place.outside)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    let paths = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| String::from_utf8(path.to_vec()).unwrap()).filter(|path| !path.starts_with("home/")).collect()
}

async fn listed(place: &Place, args: Value) -> BTreeSet<String> {
    let mut args = args;
    args["pattern"] = "**".into();
    let answer = place.run("search_files", args).await.unwrap();
    assert_eq!(answer["is_complete"], true);
    let files = answer["entries"].as_array().unwrap().iter().filter(|entry| entry["kind"] == "file");
    files.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn ignore_files_mean_what_they_mean_to_git_and_to_ripgrep() {
    let place = Place::new();
    let git = |args: &[&str]| oracle(&place, "git", args);
    git(&["init", "-q"]);
    put(&place, RULES);
    let expected = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    assert_eq!(listed(&place, json!({ "hidden": true })).await, expected);
    let visible: BTreeSet<_> =
        expected.iter().filter(|path| !path.split('/').any(|name| name.starts_with('.'))).cloned().collect();
    assert_eq!(listed(&place, json!({})).await, visible);
    let mut all: BTreeSet<_> = RULES.iter().map(|(name, _)| (*name).to_owned()).collect();
    all.remove(".git/info/exclude");
    assert!(listed(&place, json!({ "hidden": true, "ignored": true })).await.is_superset(&all));
    // And so from a folder further down, where the rules above still hold.
    let below: BTreeSet<_> = visible.iter().filter_map(|path| Some(path.strip_prefix("src/")?.to_owned())).collect();
    assert_eq!(listed(&place, json!({ "path": "src" })).await, below);

    // Some versions of ripgrep do not know the mark.
    place.write(".gitignore", RULES[0].1.trim_start_matches('\u{FEFF}'));
    // `.ignore` is ripgrep's own, and says something about hidden names too.
    put(
        &place,
        &[(".ignore", "!*.o\n!.dot\nsub\n"), ("src/.ignore", "b.rs\n"), ("nested/.git/HEAD", ""), ("nested/a.o", "")],
    );
    if Command::new("rg").arg("--version").output().is_ok() {
        assert_eq!(listed(&place, json!({})).await, oracle(&place, "rg", &["--files", "-0"]));
        let hidden = oracle(&place, "rg", &["--files", "-0", "--hidden", "--glob", "!.git"]);
        assert_eq!(listed(&place, json!({ "hidden": true })).await, hidden);
    }
}

#[tokio::test]
async fn ignore_files_above_the_granted_folder_are_nobodys_business() {
    let place = Place::new();
    fs::write(place.granted.parent().unwrap().join(".gitignore"), "*\n").unwrap();
    symlink("../outside/rules", place.path(".ignore")).unwrap();
    fs::write(place.outside.join("rules"), "*\n").unwrap();
    put(&place, &[("a/b", "needle")]);
    let answer = place.run("find_in_project", json!({ "text": "needle" })).await.unwrap();
    assert_eq!(matches(&place, &answer), ["a/b:0:0-6"]);
}

#[tokio::test]
async fn a_search_that_nobody_waits_for_ends() {
    let place = Place::new();
    // Longer than it could be read in the time that is given.
    let slow = fs::File::create(place.path("slow")).unwrap();
    slow.set_len(0).unwrap();
    let line = "nothing to be found here\n".repeat(1 << 16);
    for _ in 0..64 {
        (&slow).write_all(line.as_bytes()).unwrap();
    }
    let prepared = place.prepare("regex_search", json!({ "pattern": r"(\w+\s+){5,9}none" })).await.unwrap();
    let running = tokio::spawn(prepared.run(ProgressSink::unseen()));
    tokio::task::yield_now().await;
    running.abort();
    assert!(running.await.is_err());
    // The thread that it had is free again at once: the runtime's end waits for it.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let answer = place.run("find_in_project", json!({ "text": "none", "glob": "x" })).await.unwrap();
    assert!(std::time::Instant::now() < deadline);
    assert_eq!(answer["is_complete"], true);
}
