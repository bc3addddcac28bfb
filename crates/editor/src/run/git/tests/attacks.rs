//! Repositories that want to run code, or to lead out. Each attack is shown to work on the person's own git first, so that a test
//! that passes means something; then every verb is tried on it.

mod places;

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::{io::Write, time::Duration};

use tokio::time::timeout;

use super::*;
use crate::run::git::{call::Git, guard::GitReach, repository::Repository};

/// How a repository is laid a trap in, and what the person would do to step into it.
struct Attack {
    name: &'static str,
    lay: fn(&Shop),
    /// None for what even the person's own git does not fall for.
    step: &'static [&'static str],
}

const ATTACKS: &[Attack] = &[
    Attack { name: "hooks", lay: hooks, step: &["commit", "-q", "--allow-empty", "-m", "x"] },
    Attack { name: "hooks elsewhere", lay: hooks_elsewhere, step: &["switch", "-q", "side"] },
    Attack { name: "fsmonitor", lay: |shop| shop.set("core.fsmonitor", &shop.trap()), step: &["status"] },
    Attack { name: "filter clean", lay: |shop| filter(shop, "clean"), step: &["add", "."] },
    Attack { name: "filter smudge", lay: |shop| filter(shop, "smudge"), step: &["checkout", "-q", "side"] },
    Attack { name: "filter process", lay: |shop| filter(shop, "process"), step: &["add", "."] },
    Attack { name: "filter by info", lay: filter_by_info, step: &["add", "."] },
    Attack { name: "diff external", lay: |shop| shop.set("diff.external", &shop.trap()), step: &["diff"] },
    Attack { name: "diff driver", lay: |shop| driver(shop, "command"), step: &["diff"] },
    Attack { name: "textconv", lay: |shop| driver(shop, "textconv"), step: &["diff"] },
    Attack { name: "gpg", lay: gpg, step: &["commit", "-q", "--allow-empty", "-m", "x"] },
    Attack { name: "editor", lay: |shop| shop.set("core.editor", &shop.trap()), step: &["commit", "--amend"] },
    Attack { name: "alias", lay: alias, step: &[] },
    Attack { name: "pager", lay: pager, step: &[] },
    Attack { name: "include", lay: include, step: &["status"] },
    Attack { name: "includeIf", lay: include_if, step: &["status"] },
    Attack { name: "work tree's config", lay: worktree_config, step: &["status"] },
    Attack { name: "lazy fetch", lay: lazy_fetch, step: &["diff", "main", "side"] },
    Attack { name: "submodule", lay: submodule, step: &["status"] },
];

impl Shop {
    /// A program that leaves a mark where it has run.
    fn trap(&self) -> String {
        let trap = self.path(".git/trap");
        if !trap.exists() {
            let mark = self.mark().display().to_string();
            fs::write(&trap, format!("#!/bin/sh\ntouch '{mark}'\ncat\n")).unwrap();
            fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        }
        trap.display().to_string()
    }

    fn mark(&self) -> PathBuf {
        self.path(".git/mark")
    }

    fn set(&self, name: &str, value: &str) {
        self.git(&["config", name, value]);
    }

    fn link_trap(&self, folder: &str, names: &[&str]) {
        fs::create_dir_all(self.path(folder)).unwrap();
        for name in names {
            std::os::unix::fs::symlink(self.trap(), self.path(folder).join(name)).unwrap();
        }
    }
}

const HOOKS: &[&str] = &[
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "post-checkout",
    "reference-transaction",
    "pre-auto-gc",
];

fn hooks(shop: &Shop) {
    let _ = fs::remove_dir_all(shop.path(".git/hooks"));
    shop.link_trap(".git/hooks", HOOKS);
}

fn hooks_elsewhere(shop: &Shop) {
    shop.link_trap(".git/other", HOOKS);
    shop.set("core.hooksPath", ".git/other");
}

fn filter(shop: &Shop, key: &str) {
    shop.write(".gitattributes", "* filter=evil\n");
    if key != "smudge" {
        // As long as before, so that a status has to look into it.
        shop.write("first", "two\n");
    }
    shop.set(&format!("filter.evil.{key}"), &shop.trap());
}

fn filter_by_info(shop: &Shop) {
    shop.write(".git/info/attributes", "* filter=a.b\n");
    shop.write("first", "two\n");
    shop.set("filter.a.b.clean", &shop.trap());
}

fn driver(shop: &Shop, key: &str) {
    shop.write(".gitattributes", "* diff=evil\n");
    shop.set(&format!("diff.evil.{key}"), &shop.trap());
}

fn gpg(shop: &Shop) {
    shop.set("commit.gpgSign", "true");
    shop.set("gpg.program", &shop.trap());
}

fn alias(shop: &Shop) {
    for verb in ["status", "diff", "commit", "update-index", "branch", "switch", "config", "rev-parse"] {
        shop.set(&format!("alias.{verb}"), &format!("!{}", shop.trap()));
    }
}

fn pager(shop: &Shop) {
    for name in ["core.pager", "pager.status", "pager.diff", "pager.branch", "pager.config"] {
        shop.set(name, &shop.trap());
    }
}

fn include(shop: &Shop) {
    shop.write(".git/more", &format!("[core]\n\tfsmonitor = {}\n", shop.trap()));
    shop.set("include.path", "more");
}

fn include_if(shop: &Shop) {
    shop.write(".git/more", &format!("[core]\n\tfsmonitor = {}\n", shop.trap()));
    shop.set("includeIf.gitdir:**.path", "more");
}

fn worktree_config(shop: &Shop) {
    shop.set("extensions.worktreeConfig", "true");
    shop.write(".git/config.worktree", &format!("[core]\n\tfsmonitor = {}\n", shop.trap()));
}

/// A part of the history that is to be fetched when it is needed.
fn lazy_fetch(shop: &Shop) {
    let blob = shop.git(&["rev-parse", "HEAD:first"]);
    let (folder, name) = blob.trim().split_at(2);
    fs::remove_file(shop.path(&format!(".git/objects/{folder}/{name}"))).unwrap();
    shop.set("core.repositoryFormatVersion", "1");
    shop.set("extensions.partialClone", "origin");
    shop.set("remote.origin.promisor", "true");
    shop.set("remote.origin.url", "ssh://nowhere.invalid/x");
    // It ends at once, as the person's git would wait for what it says.
    shop.set("core.sshCommand", &format!("touch '{}'; false", shop.mark().display()));
}

fn submodule(shop: &Shop) {
    let sub = shop.path("sub");
    fs::create_dir(&sub).unwrap();
    shop.git_in(&sub, &["init", "-q"]);
    fs::write(sub.join("a"), "a\n").unwrap();
    shop.git_in(&sub, &["add", "."]);
    shop.git_in(&sub, &["commit", "-qm", "Sub"]);
    shop.git(&["-c", "advice.addEmbeddedRepo=false", "add", "sub"]);
    shop.git(&["commit", "-qm", "With a submodule", "sub"]);
    fs::write(sub.join("a"), "changed\n").unwrap();
    shop.git_in(&sub, &["config", "core.fsmonitor", &shop.trap()]);
}

/// A repository with a second branch, something staged and something that is not.
fn laid(attack: &Attack, fence: bool) -> Shop {
    let shop = Shop::begun(fence);
    shop.git(&["switch", "-qc", "side"]);
    shop.write("first", "side\n");
    shop.git(&["commit", "-qam", "Side"]);
    shop.git(&["switch", "-q", "main"]);
    shop.write("staged", "staged\n");
    shop.git(&["add", "staged"]);
    shop.write("loose", "loose\n");
    (attack.lay)(&shop);
    let _ = fs::remove_file(shop.mark());
    shop
}

#[tokio::test]
async fn each_attack_works_on_git_itself() {
    for attack in ATTACKS.iter().filter(|attack| !attack.step.is_empty()) {
        let shop = laid(attack, true);
        if attack.step[0] == "diff" && attack.step.len() == 1 {
            shop.write("first", "changed\n");
        }
        let (_, told) = shop.git_may_fail(&shop.granted, attack.step);
        assert!(shop.mark().exists(), "{}: {told}", attack.name);
    }
}

//
#[tokio::test]
async fn no_attack_works_here() {
    for attack in ATTACKS {
        // Without the fence, which would hold by itself.
        let shop = laid(attack, false);
        everything(&shop, attack.name).await;
        assert!(!shop.mark().exists(), "{}", attack.name);
    }
}

/// Tries every verb: each has an answer, or a reason in git's words or ours.
async fn everything(shop: &Shop, name: &str) {
    let is_filter = name.starts_with("filter");
    let verbs = [
        ("git_status", json!({})),
        ("git_diff", json!({ "staged": true })),
        ("git_add", json!({ "all": true })),
        ("git_commit", json!({ "message": "Go on" })),
        ("git_diff", json!({ "commit": "main..side" })),
        ("git_branch", json!({})),
        ("git_branch", json!({ "name": "new", "create": true })),
        ("git_branch", json!({ "name": "side", "switch": true })),
        ("git_diff", json!({})),
        ("git_status", json!({})),
    ];
    for (verb, args) in verbs {
        match shop.run(verb, args.clone()).await {
            Ok(_) => {}
            Err(refusal) if is_filter && matches!(verb, "git_add" | "git_branch") => {
                assert_eq!(refusal.code, Code::Unsupported, "{name}: {verb} {args}: {refusal:?}");
                assert!(refusal.message.contains("filter"));
            }
            // What is not there cannot be compared, and is not fetched.
            Err(refusal) if name == "lazy fetch" => assert_eq!(refusal.code, Code::Failed, "{verb}: {refusal:?}"),
            Err(refusal) => panic!("{name}: {verb} {args}: {refusal:?}"),
        }
    }
}

/// The fence holds by itself: an alias that git is told to run ends in a refusal of the kernel's.
#[tokio::test]
async fn behind_the_fence_nothing_but_git_is_executed() {
    for (fence, runs) in [(true, false), (false, true)] {
        let shop = Shop::begun(fence);
        let root = policy::GrantRoot::new(shop.granted.to_str().unwrap()).unwrap();
        let roots = crate::roots::GrantedRoots::new(vec![root], std::sync::Arc::default());
        let repository = Repository::find(&roots, None).unwrap();
        let git = Git::open(repository, &roots, &shop.runtime.state().run).await.unwrap();
        let alias = format!("alias.evil=!{}", shop.trap());
        let said = git.run(GitReach::Writes, &["-c", &alias, "evil"], b"", 1 << 20).await.unwrap();
        assert_eq!(shop.mark().exists(), runs, "{said:?}");
        // Nor is anything written beside the repository.
        let target = shop.outside.join("new.git").display().to_string();
        let said = git.run(GitReach::Writes, &["init", "--bare", &target], b"", 1 << 20).await.unwrap();
        assert_eq!(Path::new(&target).exists(), runs, "{said:?}");
        // And who only looks writes nothing.
        let said = git.run(GitReach::Reads, &["update-ref", "refs/heads/new", "HEAD"], b"", 1 << 20).await.unwrap();
        assert_eq!(said.code == Some(0), runs, "{said:?}");
    }
}

#[tokio::test]
async fn a_git_that_an_agent_has_put_there_is_not_run() {
    let shop = Shop::begun(true);
    let trap = shop.trap();
    fs::create_dir(shop.path("bin")).unwrap();
    std::os::unix::fs::symlink(&trap, shop.path("bin/git")).unwrap();
    let mut env = environment(&shop.home);
    let path = format!(".:{}:{}", shop.path("bin").display(), env[std::ffi::OsStr::new("PATH")].display());
    env.insert("PATH".into(), path.into());
    // What steers git in the daemon's own environment does not steer it here.
    for (name, value) in [
        ("GIT_DIR", shop.outside.display().to_string()),
        ("GIT_INDEX_FILE", shop.outside.join("index").display().to_string()),
        ("GIT_EXTERNAL_DIFF", trap.clone()),
        ("GIT_CONFIG_PARAMETERS", format!("'core.fsmonitor={trap}'")),
        ("GIT_EXEC_PATH", shop.path("bin").display().to_string()),
    ] {
        env.insert(name.into(), value.into());
    }
    let owner = OwnerDaemon::this_process(&shop.path("owner"));
    let runtime = BuiltinEditor::new(EditorEnvironment {
        env,
        owner,
        closed: Vec::new(),
        unsaved: None,
        settings: EditorSettings::default(),
    });
    let shop = Shop { runtime, ..shop };
    shop.write("first", "two\n");
    assert!(shop.run("git_diff", json!({})).await.unwrap()["diff"].as_str().unwrap().contains("+two"));
    shop.run("git_add", json!({ "path": "first" })).await.unwrap();
    assert!(!shop.mark().exists());
}

#[tokio::test]
async fn git_dies_with_whoever_waits_for_it() {
    let shop = Shop::begun(true);
    let pipe = shop.path(".git/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    shop.set("include.path", "pipe");
    let soon = Duration::from_secs(20);
    let prepared = {
        let (root, runtime) = (shop.granted.clone(), shop.runtime.clone());
        tokio::spawn(async move {
            let order = VerbOrder {
                verb: VerbSpec::named("git_status").unwrap(),
                args: serde_json::Map::new(),
                roots: vec![policy::GrantRoot::new(root.to_str().unwrap()).unwrap()],
                holder: GrantHolder { id: 7, name: "seven".to_owned(), ..GrantHolder::default() },
            };
            runtime.prepare(order).await.map(drop)
        })
    };
    const O_NONBLOCK: i32 = 0o4000;
    // There is somebody to write to once git waits for its config.
    let mut writer = timeout(soon, async {
        loop {
            match fs::OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&pipe) {
                Ok(writer) => return writer,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await
    .unwrap();
    prepared.abort();
    // And nobody once it is dead.
    let gone = async {
        while !writer.write(b"\n").is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            tokio::task::yield_now().await;
        }
    };
    timeout(soon, gone).await.unwrap();
}
