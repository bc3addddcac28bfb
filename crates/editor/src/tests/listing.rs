//! `explore_tree`, `search_files`, `find_in_file`, `get_workspace_info`.

use std::os::unix::fs::symlink;

use super::*;

/// A small project.
fn project() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("src/deep/er")).unwrap();
    for name in ["Cargo.toml", "src/main.rs", "src/deep/lib.rs", "src/deep/er/x.rs"] {
        place.write(name, "");
    }
    symlink("..", place.path("src/circle")).unwrap();
    symlink(&place.outside, place.path("src/out")).unwrap();
    place
}

fn paths(answer: &Value) -> Vec<&str> {
    answer["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_tree_is_listed_to_a_depth_without_following_links() {
    let place = project();
    let answer = place.run("explore_tree", json!({ "depth": 2 })).await.unwrap();
    assert_eq!(paths(&answer), ["Cargo.toml", "src", "src/circle", "src/deep", "src/main.rs", "src/out"]);
    assert_eq!((&answer["path"], &answer["is_complete"]), (&json!(place.granted), &json!(false)));
    let kinds: Vec<_> = answer["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["file", "folder", "link", "folder", "file", "link"]);

    let answer = place.run("explore_tree", json!({ "path": "src/deep", "depth": 9 })).await.unwrap();
    assert_eq!(paths(&answer), ["er", "er/x.rs", "lib.rs"]);
    assert_eq!(answer["is_complete"], true);
    let answer = place.run("explore_tree", json!({ "limit": 1 })).await.unwrap();
    assert_eq!((paths(&answer), &answer["is_complete"]), (vec!["Cargo.toml"], &json!(false)));
    assert_eq!(place.code("explore_tree", json!({ "path": "Cargo.toml" })).await, Code::BadArguments);
    assert_eq!(place.code("explore_tree", json!({ "depth": 65 })).await, Code::BadArguments);
}

#[tokio::test]
async fn files_are_found_by_pattern() {
    let place = project();
    for (args, expected) in [
        (json!({ "pattern": "*.rs" }), vec!["src/deep/er/x.rs", "src/deep/lib.rs", "src/main.rs"]),
        (json!({ "pattern": "src/*.rs" }), vec!["src/main.rs"]),
        (json!({ "pattern": "**/{lib,x}.rs", "path": "src" }), vec!["deep/er/x.rs", "deep/lib.rs"]),
        (json!({ "pattern": "secret" }), vec![]),
        (json!({ "pattern": "home*" }), vec![]),
        (json!({ "pattern": "**/management-token" }), vec![]),
    ] {
        let answer = place.run("search_files", args.clone()).await.unwrap();
        assert_eq!((paths(&answer), &answer["is_complete"]), (expected, &json!(true)), "{args}");
    }
    assert_eq!(place.code("search_files", json!({})).await, Code::BadArguments);
    assert_eq!(place.code("search_files", json!({ "pattern": "[" })).await, Code::BadArguments);
}

#[tokio::test]
async fn words_are_found_in_a_file() {
    let place = project();
    place.write("Cargo.toml", "[package]\nname = \"Package\"\n");
    let args = json!({ "path": "Cargo.toml", "text": "package", "ignore_case": true });
    let answer = place.run("find_in_file", args).await.unwrap();
    let start = |i: usize| answer["matches"][i]["range"]["start"].clone();
    assert_eq!(start(0), json!({ "line": 0, "character": 1 }));
    assert_eq!(start(1), json!({ "line": 1, "character": 8 }));
    assert_eq!(answer["matches"][1]["line_text"], "name = \"Package\"");
    for words in ["", "a\nb"] {
        let args = json!({ "path": "Cargo.toml", "text": words });
        assert_eq!(place.code("find_in_file", args).await, Code::BadArguments);
    }
}

#[tokio::test]
async fn the_workspace_says_what_is_checked_out() {
    let place = project();
    let git = async || place.run("get_workspace_info", json!({})).await.unwrap()["roots"][0]["git"].clone();
    assert_eq!(git().await, json!(null));
    for folder in [".git/objects", ".git/refs/heads/topic"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.write(".git/HEAD", "ref: refs/heads/topic/one\n");
    let told =
        |branch, commit| json!({ "path": place.granted, "branch": branch, "commit": commit, "is_merging": false });
    assert_eq!(git().await, told(json!("topic/one"), json!(null)));
    let hash = "0123456789abcdef0123456789abcdef01234567";
    place.write(".git/HEAD", hash);
    assert_eq!(git().await, told(json!(null), json!(hash)));
    place.write(".git/HEAD", "ref: refs/heads/topic/one\n");
    place.write(".git/refs/heads/topic/one", hash);
    assert_eq!(git().await, told(json!("topic/one"), json!(hash)));

    // A-08: a work tree's repository lies elsewhere, and so might anything.
    fs::remove_dir_all(place.path(".git")).unwrap();
    symlink(&place.outside, place.path(".git")).unwrap();
    fs::write(place.outside.join("HEAD"), "ref: refs/heads/secret\n").unwrap();
    assert_eq!(git().await["branch"], json!(null));
    assert!(git().await["why"].as_str().unwrap().contains("outside of the granted folders"));
    fs::remove_file(place.path(".git")).unwrap();
    place.write(".git", format!("gitdir: {}\n", place.outside.display()));
    assert_eq!((git().await["branch"].clone(), git().await["commit"].clone()), (json!(null), json!(null)));
}

#[tokio::test]
async fn the_workspace_says_what_it_is_made_of() {
    let place = project();
    place.write(".gitignore", "generated\n");
    for folder in ["web", "generated", "home/inner"] {
        fs::create_dir_all(place.path(folder)).unwrap();
        place.write(&format!("{folder}/package.json"), r#"{ "scripts": { "build": "true" } }"#);
        place.write(&format!("{folder}/a.ts"), "");
    }
    let answer = place.run("get_workspace_info", json!({})).await.unwrap();
    let root = &answer["roots"][0];
    // What is ignored, what is linked to and what is Prism's own is no part of it.
    assert_eq!(root["languages"], json!({ "rust": 3, "json": 1, "toml": 1, "typescript": 1 }));
    let projects = json!([{ "tool": "cargo", "path": place.granted }, { "tool": "npm", "path": place.path("web") }]);
    assert_eq!(root["projects"], projects);
    assert_eq!((&root["servers"], &root["watched"]), (&json!([]), &json!("none")));
    // What cannot be built is no project: it is found as builds find it.
    place.write("web/package.json", "{}");
    let answer_of_less = place.run("get_workspace_info", json!({})).await.unwrap();
    assert_eq!(answer_of_less["roots"][0]["projects"].as_array().unwrap().len(), 1);
    assert_eq!(answer["runtime"], json!({ "kind": "built-in", "ui": false }));
    assert!(matches!(answer["fence"]["enforced"].as_str(), Some("sandbox" | "landlock" | "none")));
    let part = place.run("get_workspace_info", json!({ "path": "web" })).await.unwrap();
    assert_eq!(part["roots"][0]["languages"], json!({ "json": 1, "typescript": 1 }));
}

#[tokio::test]
async fn a_granted_folder_that_is_gone_is_told() {
    let place = Place::new();
    let roots = vec![place.root(), policy::GrantRoot::new("/nowhere/at/all").unwrap()];
    let order = VerbOrder { roots, ..place.order("get_workspace_info", &json!({})) };
    let answer = place.runtime.prepare(order).await.unwrap().run(ProgressSink::unseen()).await.unwrap();
    let there: Vec<_> = answer["roots"].as_array().unwrap().iter().map(|root| &root["is_there"]).collect();
    assert_eq!(there, [true, false]);
}
