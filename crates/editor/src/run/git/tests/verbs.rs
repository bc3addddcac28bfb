//! What each verb does.

use super::*;
use crate::shown::ActionPreview;

//
#[tokio::test]
async fn a_day_with_git() {
    let shop = Shop::new();
    shop.git(&["init", "-q"]);
    let status = shop.run("git_status", json!({})).await.unwrap();
    assert_eq!((&status["branch"], &status["commit"]), (&json!("main"), &json!(null)));
    assert_eq!(status["is_clean"], true);
    let is_told = |answer: &Value| matches!(answer["fence"]["enforced"].as_str(), Some("landlock" | "none"));
    assert!(is_told(&status), "{status}");
    shop.write("a file", "one\n");
    shop.write("sub/b", "two\n");
    assert_eq!(
        shop.status().await,
        [("a file".to_owned(), json!(null), json!("untracked")), ("sub".to_owned(), json!(null), json!("untracked")),]
    );

    let added = shop.run("git_add", json!({ "path": "sub" })).await.unwrap();
    assert_eq!(added["entries"].as_array().unwrap().len(), 2);
    assert_eq!(added["entries"][0]["index"], "added");
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    let prepared = shop.prepare("git_commit", &json!({ "message": "Begin\n\nWith two files.\n" })).await.unwrap();
    let ActionPreview::Plain { lines, .. } = prepared.shown() else { panic!("it is shown in words") };
    assert_eq!(lines, ["Begin", "", "With two files.", "", "A a file", "A sub/b"]);
    let commit = prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!(commit["branch"], "main");
    assert!(is_told(&added) && is_told(&commit), "{commit}");
    assert_eq!(commit["files"].as_array().unwrap().len(), 2);
    assert_eq!(commit["files"][0], json!({ "path": shop.path("a file"), "added": 1, "removed": 0 }));
    assert_eq!(shop.git(&["log", "-1", "--format=%H %an %ae %B"]), {
        let commit = commit["commit"].as_str().unwrap();
        format!("{commit} A Person person@example.com Begin\n\nWith two files.\n\n")
    });
    assert!(shop.status().await.is_empty());

    shop.write("a file", "one\nand more\n");
    fs::remove_file(shop.path("sub/b")).unwrap();
    let diff = shop.run("git_diff", json!({})).await.unwrap();
    assert_eq!(
        diff["files"],
        json!([
            { "path": shop.path("a file"), "added": 1, "removed": 0 },
            { "path": shop.path("sub/b"), "added": 0, "removed": 1 },
        ])
    );
    assert!(diff["diff"].as_str().unwrap().contains("\n+and more\n"));
    assert_eq!(diff["is_complete"], true);
    let branches = shop.run("git_branch", json!({})).await.unwrap();
    assert!(is_told(&diff) && is_told(&branches), "{branches}");
    let diff = shop.run("git_diff", json!({ "path": "a file" })).await.unwrap();
    assert_eq!(diff["files"].as_array().unwrap().len(), 1);

    shop.run("git_add", json!({ "paths": ["a file", "sub/b"] })).await.unwrap();
    assert_eq!(shop.run("git_diff", json!({})).await.unwrap()["diff"], "");
    let staged = shop.run("git_diff", json!({ "staged": true })).await.unwrap();
    assert_eq!(staged["files"].as_array().unwrap().len(), 2);
    shop.run("git_commit", json!({ "message": "Go on" })).await.unwrap();
    let shown = shop.run("git_diff", json!({ "commit": "HEAD" })).await.unwrap();
    assert_eq!(shown["diff"], staged["diff"]);
    let both = shop.run("git_diff", json!({ "commit": "HEAD~1..HEAD" })).await.unwrap();
    assert_eq!(both["files"], shown["files"]);
    let first = shop.run("git_diff", json!({ "commit": "HEAD~1" })).await.unwrap();
    assert_eq!(first["files"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn branches_are_made_and_changed_to() {
    let shop = Shop::begun(true);
    let first = shop.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let list = shop.run("git_branch", json!({})).await.unwrap();
    let main = json!({ "name": "main", "commit": first, "is_current": true, "upstream": null });
    assert_eq!((&list["branches"], &list["branch"]), (&json!([main]), &json!("main")));

    shop.run("git_branch", json!({ "name": "side", "create": true })).await.unwrap();
    assert_eq!(shop.git(&["branch", "--show-current"]), "main\n");
    shop.run("git_branch", json!({ "name": "side", "switch": true })).await.unwrap();
    shop.write("first", "one\ntwo\n");
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    shop.run("git_commit", json!({ "message": "Two" })).await.unwrap();
    let list = shop.run("git_branch", json!({ "name": "other/one", "create": true, "switch": true, "from": "main" }));
    assert_eq!(list.await.unwrap()["branch"], "other/one");
    assert_eq!(fs::read_to_string(shop.path("first")).unwrap(), "one\n");

    // What is not committed is not lost, and git says which file is in the way.
    shop.write("first", "unsaved\n");
    let refusal = shop.refused("git_branch", json!({ "name": "side", "switch": true })).await;
    assert_eq!(refusal.code, Code::Failed);
    assert!(refusal.message.contains("would be overwritten") && refusal.message.contains("first"), "{refusal:?}");
    assert_eq!(fs::read_to_string(shop.path("first")).unwrap(), "unsaved\n");

    for (args, code) in [
        (json!({ "name": "none", "switch": true }), Code::NotFound),
        (json!({ "name": "side", "create": true }), Code::BadArguments),
        (json!({ "name": "side" }), Code::BadArguments),
        (json!({ "create": true }), Code::BadArguments),
        (json!({ "name": "--force", "create": true }), Code::BadArguments),
        (json!({ "name": "a..b", "create": true }), Code::BadArguments),
        (json!({ "name": "a b", "create": true }), Code::BadArguments),
        (json!({ "name": "new", "create": true, "from": "none" }), Code::BadArguments),
        (json!({ "name": "new", "create": true, "from": "--all" }), Code::BadArguments),
        (json!({ "name": "side", "switch": true, "from": "main" }), Code::BadArguments),
        (json!({ "name": "side", "delete": true }), Code::BadArguments),
    ] {
        assert_eq!(shop.refused("git_branch", args.clone()).await.code, code, "{args}");
    }
    assert_eq!(shop.git(&["branch", "--format=%(refname:short)"]), "main\nother/one\nside\n");
}

#[tokio::test]
async fn what_cannot_be_committed_is_refused_with_what_to_do() {
    let shop = Shop::with(true, "[init]\n\tdefaultBranch = main\n");
    shop.git(&["init", "-q"]);
    let refusal = shop.refused("git_commit", json!({ "message": "Nothing" })).await;
    assert!(refusal.message.contains("git_add first"), "{refusal:?}");
    shop.write("a", "a\n");
    shop.run("git_add", json!({ "path": "a" })).await.unwrap();
    let refusal = shop.refused("git_commit", json!({ "message": "Nobody" })).await;
    assert!(refusal.message.contains("git config --global user.email"), "{refusal:?}");
    for (message, code) in [
        (json!(" \n"), Code::BadArguments),
        (json!("a\0b"), Code::BadArguments),
        (json!("x".repeat(70_000)), Code::TooLarge),
    ] {
        assert_eq!(shop.refused("git_commit", json!({ "message": message })).await.code, code);
    }
    assert!(!shop.path(".git/refs/heads/main").exists());
    assert!(!shop.path(".git/index.lock").exists());
}

//
#[tokio::test]
async fn what_is_staged_after_it_was_shown_is_not_committed() {
    let shop = Shop::begun(true);
    shop.write("first", "two\n");
    shop.git(&["add", "."]);
    let prepared = shop.prepare("git_commit", &json!({ "message": "Two" })).await.unwrap();
    shop.write("first", "three\n");
    shop.git(&["add", "."]);
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(shop.git(&["rev-list", "--count", "HEAD"]), "1\n");
}

#[tokio::test]
async fn what_cannot_be_added_is_refused() {
    let shop = Shop::begun(true);
    shop.write(".gitignore", "target\n");
    shop.write("target/out", "x");
    fs::write(shop.outside.join("secret"), "secret\n").unwrap();
    std::os::unix::fs::symlink(&shop.outside, shop.path("way-out")).unwrap();
    for (args, code) in [
        (json!({}), Code::BadArguments),
        (json!({ "path": "first", "all": true }), Code::BadArguments),
        (json!({ "paths": [] }), Code::BadArguments),
        (json!({ "paths": [1] }), Code::BadArguments),
        (json!({ "path": "missing" }), Code::NotFound),
        (json!({ "path": "target/out" }), Code::BadArguments),
        (json!({ "path": "target" }), Code::BadArguments),
        (json!({ "path": ".git/config" }), Code::BadArguments),
        (json!({ "path": "../outside/secret" }), Code::OutsideRoot),
        (json!({ "path": shop.outside.join("secret") }), Code::OutsideRoot),
        (json!({ "path": "way-out/secret" }), Code::OutsideRoot),
        (json!({ "path": "first", "force": true }), Code::BadArguments),
    ] {
        assert_eq!(shop.refused("git_add", args.clone()).await.code, code, "{args}");
    }
    // The link itself is a thing like any other.
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    assert_eq!(shop.git(&["ls-files"]), ".gitignore\nfirst\nway-out\n");
    assert_eq!(shop.git(&["show", ":way-out"]), shop.outside.display().to_string());
}

#[tokio::test]
async fn names_are_names_and_no_patterns_or_options() {
    let shop = Shop::begun(true);
    for name in ["*", ":(glob)x", "--all", "-", "a\nb", "q\"uote", "é🦀", " "] {
        shop.write(name, "x");
        shop.run("git_add", json!({ "path": name })).await.unwrap();
        let added: Vec<_> = shop.status().await.into_iter().filter(|(_, index, _)| index == "added").collect();
        assert!(added.iter().any(|(path, ..)| path == name), "{name:?}: {added:?}");
    }
    assert_eq!(shop.git(&["diff", "--cached", "--name-only"]).lines().count(), 8);
    let diff = shop.run("git_diff", json!({ "path": "*", "staged": true })).await.unwrap();
    assert_eq!(diff["files"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn renames_conflicts_and_binaries_are_told() {
    let shop = Shop::begun(true);
    fs::write(shop.path("image"), [0, 1, 2, 255]).unwrap();
    shop.git(&["mv", "first", "second"]);
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    let status = shop.run("git_status", json!({})).await.unwrap();
    let renamed = json!({
        "path": shop.path("second"), "index": "renamed", "worktree": null, "renamed_from": shop.path("first"),
    });
    assert!(status["entries"].as_array().unwrap().contains(&renamed), "{status}");
    let diff = shop.run("git_diff", json!({ "staged": true })).await.unwrap();
    assert!(diff["files"].as_array().unwrap().contains(&json!({
        "path": shop.path("image"), "added": null, "removed": null,
    })));
    shop.git(&["commit", "-qm", "Second"]);
    shop.git(&["switch", "-qc", "side", "HEAD"]);
    shop.write("second", "side\n");
    shop.git(&["commit", "-qam", "Side"]);
    shop.git(&["switch", "-q", "main"]);
    shop.write("second", "main\n");
    shop.git(&["commit", "-qam", "Main"]);
    assert!(!shop.git_may_fail(&shop.granted, &["merge", "-q", "side"]).0);
    assert_eq!(shop.status().await, [("second".to_owned(), json!("unmerged"), json!("unmerged"))]);
    let refusal = shop.refused("git_commit", json!({ "message": "Too early" })).await;
    assert!(refusal.message.contains("in conflict"), "{refusal:?}");
    shop.write("second", "both\n");
    shop.run("git_add", json!({ "path": "second" })).await.unwrap();
    shop.run("git_commit", json!({ "message": "Merge" })).await.unwrap();
    assert_eq!(shop.git(&["rev-list", "--count", "--merges", "HEAD"]), "1\n");
}

#[tokio::test]
async fn a_large_diff_is_cut_and_says_so() {
    let shop = Shop::begun(true);
    shop.write("first", &"a line that is new\n".repeat(200_000));
    let diff = shop.run("git_diff", json!({})).await.unwrap();
    let text = diff["diff"].as_str().unwrap();
    assert!(text.len() <= 1 << 20 && text.len() > 1_000_000 && text.ends_with("+a line that is new\n"));
    assert_eq!(diff["is_complete"], false);
    assert_eq!(diff["files"][0]["added"], 200_000);
}

#[tokio::test]
async fn what_is_not_there_is_said() {
    let shop = Shop::new();
    let refusal = shop.refused("git_status", json!({})).await;
    assert_eq!(refusal.code, Code::NotFound);
    assert_eq!(shop.refused("git_status", json!({ "cwd": "none" })).await.code, Code::NotFound);
    assert_eq!(shop.refused("git_status", json!({ "cwd": ".." })).await.code, Code::OutsideRoot);
    assert_eq!(shop.refused("git_status", json!({ "cwd": 1 })).await.code, Code::BadArguments);
    assert_eq!(shop.refused("git_status", json!({ "what": 1 })).await.code, Code::BadArguments);
    shop.git(&["init", "-q"]);
    for commit in ["HEAD", "none", "-p", "HEAD:first", "a...b", "", "HEAD..none"] {
        assert_eq!(shop.refused("git_diff", json!({ "commit": commit })).await.code, Code::BadArguments, "{commit}");
    }
    assert_eq!(shop.refused("git_diff", json!({ "commit": "HEAD", "staged": true })).await.code, Code::BadArguments);
}

#[tokio::test]
async fn a_folder_deep_in_the_work_tree_is_of_its_repository() {
    let shop = Shop::begun(true);
    shop.write("a/b/c", "x");
    let status = shop.run("git_status", json!({ "cwd": "a/b" })).await.unwrap();
    assert_eq!(status["path"], json!(shop.granted));
    assert_eq!(status["entries"][0]["path"], format!("{}/", shop.path("a").display()));
}
