//! Repositories that lie elsewhere, in part or as a whole.

use super::*;

/// Every verb refuses, and says where it would have led.
async fn refused_everywhere(shop: &Shop, cwd: &str, code: Code) {
    for (verb, args) in [
        ("git_status", json!({ "cwd": cwd })),
        ("git_add", json!({ "cwd": cwd, "all": true })),
        ("git_commit", json!({ "cwd": cwd, "message": "x" })),
        ("git_diff", json!({ "cwd": cwd })),
        ("git_branch", json!({ "cwd": cwd })),
    ] {
        assert_eq!(shop.refused(verb, args).await.code, code, "{verb}");
    }
}

/// A repository that nobody was granted, with a secret in it.
fn elsewhere(shop: &Shop) -> PathBuf {
    let other = shop.outside.join("other");
    fs::create_dir(&other).unwrap();
    shop.git_in(&other, &["init", "-q"]);
    fs::write(other.join("secret"), "secret\n").unwrap();
    shop.git_in(&other, &["add", "."]);
    shop.git_in(&other, &["commit", "-qm", "Secret"]);
    other
}

//
#[tokio::test]
async fn a_repository_that_points_out_is_refused() {
    let shop = Shop::new();
    let other = elsewhere(&shop).join(".git");
    shop.write(".git", &format!("gitdir: {}\n", other.display()));
    refused_everywhere(&shop, ".", Code::OutsideRoot).await;
    shop.write(".git", "gitdir: ../outside/other/.git\n");
    refused_everywhere(&shop, ".", Code::OutsideRoot).await;
    fs::remove_file(shop.path(".git")).unwrap();
    std::os::unix::fs::symlink(&other, shop.path(".git")).unwrap();
    refused_everywhere(&shop, ".", Code::OutsideRoot).await;
}

#[tokio::test]
async fn a_repository_of_which_a_part_lies_outside_is_refused() {
    for part in ["objects", "refs", "refs/heads", "logs", "info", "index", "config", "HEAD"] {
        let shop = Shop::begun(true);
        let (inside, outside) = (shop.path(".git").join(part), shop.outside.join("part"));
        fs::rename(&inside, &outside).unwrap();
        std::os::unix::fs::symlink(&outside, &inside).unwrap();
        refused_everywhere(&shop, ".", Code::OutsideRoot).await;
    }
    let shop = Shop::begun(true);
    shop.write(".git/commondir", &elsewhere(&shop).join(".git").display().to_string());
    refused_everywhere(&shop, ".", Code::OutsideRoot).await;
    let shop = Shop::begun(true);
    shop.write(".git/objects/info/alternates", &elsewhere(&shop).join(".git/objects").display().to_string());
    refused_everywhere(&shop, ".", Code::OutsideRoot).await;
}

#[tokio::test]
async fn another_work_tree_than_the_own_is_not_touched() {
    let shop = Shop::begun(true);
    fs::write(shop.outside.join("secret"), "secret\n").unwrap();
    shop.set("core.worktree", shop.outside.to_str().unwrap());
    shop.set("core.bare", "true");
    shop.write("new", "new\n");
    assert_eq!(shop.status().await, [("new".to_owned(), json!(null), json!("untracked"))]);
    shop.run("git_add", json!({ "all": true })).await.unwrap();
    shop.run("git_commit", json!({ "message": "New" })).await.unwrap();
    shop.run("git_branch", json!({ "name": "side", "create": true, "switch": true, "from": "HEAD~1" })).await.unwrap();
    assert!(!shop.path("new").exists());
    assert_eq!(fs::read_dir(&shop.outside).unwrap().count(), 1);
}

#[tokio::test]
async fn what_lies_above_the_granted_folder_is_not_found() {
    let shop = Shop::begun(true);
    fs::create_dir(shop.path("sub")).unwrap();
    let order = VerbOrder {
        verb: VerbSpec::named("git_status").unwrap(),
        args: serde_json::Map::new(),
        roots: vec![policy::GrantRoot::new(shop.path("sub").to_str().unwrap()).unwrap()],
        holder: GrantHolder { id: 7, name: "seven".to_owned(), ..GrantHolder::default() },
    };
    assert_eq!(shop.runtime.prepare(order).await.unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_bare_repository_among_the_files_is_none() {
    let shop = Shop::new();
    shop.git(&["init", "-q", "--bare", "bare"]);
    fs::write(shop.path("bare/config"), "[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = touch ../mark\n")
        .unwrap();
    refused_everywhere(&shop, "bare", Code::NotFound).await;
    // And within a work tree it is files like any others.
    shop.git(&["init", "-q"]);
    assert!(!shop.status().await.is_empty());
    assert!(shop.run("git_status", json!({ "cwd": "bare/refs" })).await.is_ok());
    assert!(!shop.path("mark").exists());
}

#[tokio::test]
async fn linked_work_trees_and_submodules_are_served_where_all_of_them_is_granted() {
    let shop = Shop::new();
    fs::create_dir(shop.path("main")).unwrap();
    let main = shop.path("main");
    shop.git_in(&main, &["init", "-q"]);
    fs::write(main.join("a"), "a\n").unwrap();
    shop.git_in(&main, &["add", "."]);
    shop.git_in(&main, &["commit", "-qm", "A"]);
    shop.git_in(&main, &["worktree", "add", "-q", "../linked"]);
    shop.write("linked/b", "b\n");
    let status = shop.run("git_add", json!({ "cwd": "linked", "path": "linked/b" })).await.unwrap();
    assert_eq!((&status["branch"], &status["entries"][0]["index"]), (&json!("linked"), &json!("added")));
    let commit = shop.run("git_commit", json!({ "cwd": "linked", "message": "B" })).await.unwrap();
    assert_eq!(shop.git_in(&main, &["rev-parse", "linked"]).trim(), commit["commit"].as_str().unwrap());
    // Only the linked one is granted: its repository is not.
    let order = VerbOrder {
        verb: VerbSpec::named("git_status").unwrap(),
        args: serde_json::Map::new(),
        roots: vec![policy::GrantRoot::new(shop.path("linked").to_str().unwrap()).unwrap()],
        holder: GrantHolder { id: 7, name: "seven".to_owned(), ..GrantHolder::default() },
    };
    assert_eq!(shop.runtime.prepare(order).await.unwrap_err().code, Code::OutsideRoot);

    let url = main.to_str().unwrap();
    shop.git(&["init", "-q"]);
    shop.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "sub"]);
    shop.write("sub/a", "changed\n");
    let status = shop.run("git_status", json!({ "cwd": "sub" })).await.unwrap();
    assert_eq!(status["path"], json!(shop.path("sub")));
    assert_eq!(status["entries"][0]["worktree"], "modified");
}

#[tokio::test]
async fn a_repository_of_another_users_is_refused() {
    let shop = Shop::begun(true);
    // Only root can give a folder away; for others git itself has this test.
    if std::os::unix::fs::chown(shop.path(".git"), Some(12345), None).is_err() {
        return;
    }
    refused_everywhere(&shop, ".", Code::Failed).await;
}

#[tokio::test]
async fn a_work_tree_around_prisms_own_folder_is_refused() {
    let shop = Shop::begun(true);
    fs::create_dir(shop.path("prism")).unwrap();
    let owner = OwnerDaemon::this_process(&shop.path("owner"));
    let (env, closed) = (environment(&shop.home), vec![shop.path("prism")]);
    let runtime = BuiltinEditor::new(EditorEnvironment {
        env,
        owner,
        closed,
        unsaved: None,
        settings: EditorSettings::default(),
    });
    refused_everywhere(&Shop { runtime, ..shop }, ".", Code::OutsideRoot).await;
}
