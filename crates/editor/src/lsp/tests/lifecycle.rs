//! How servers begin, die, are started again and end.

use super::*;

#[tokio::test]
async fn a_question_survives_the_death_of_its_server_once() {
    let shop = Workshop::scripted("dies_once");
    let path = shop.write("a.md", "bad\n");
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&answer), &answer["is_complete"]), (vec!["bad: bad"], &json!(true)));
    assert_eq!(shop.server("markdown").await["restarts"], 1);
    let shop = Workshop::scripted("dies_always");
    let path = shop.write("a.md", "bad\n");
    let refusal = shop.refused("get_errors", json!({ "path": path })).await;
    assert_eq!(refusal.code, Code::Failed);
    assert!(refusal.message.contains("was lost"), "{}", refusal.message);
    assert_eq!(shop.notes("starts").len(), 2);
}

#[tokio::test]
async fn a_server_that_dies_at_each_start_has_to_wait_and_says_why() {
    let shop = Workshop::scripted("dies_at_start");
    let path = shop.write("a.md", "bad\n");
    let mut last = None;
    for _ in 0..4 {
        last = Some(shop.refused("get_errors", json!({ "path": path })).await);
    }
    let last = last.unwrap();
    assert!(last.message.contains("no toolchain") && last.message.contains("manage_plugins"), "{}", last.message);
    assert!(last.retry_after.is_some());
    let starts = shop.notes("starts").len();
    assert!(starts <= 4, "{starts}");
    let server = shop.server("markdown").await;
    assert_eq!(server["state"], "resting", "{server}");
    assert_eq!(server["pid"], Value::Null);
    // Whoever has mended it starts it at once.
    shop.run("manage_plugins", json!({ "do": "restart", "language": "markdown" })).await;
    until("it is started", || shop.notes("starts").len() > starts).await;
}

#[tokio::test]
async fn a_server_that_is_mended_serves_again() {
    let shop = Workshop::scripted("dies_twice");
    let path = shop.write("a.md", "bad\n");
    assert_eq!(shop.code("get_errors", json!({ "path": path })).await, Code::Failed);
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!(answer["is_complete"], true);
}

#[tokio::test]
async fn what_speaks_no_lsp_is_ended() {
    for (mode, words) in [("garbage", "does not speak LSP"), ("utf8", "only utf-16")] {
        let shop = Workshop::scripted(mode);
        let path = shop.write("a.md", "bad\n");
        let refusal = shop.refused("get_errors", json!({ "path": path })).await;
        assert!(refusal.message.contains(words), "{}", refusal.message);
        for pid in shop.notes("starts") {
            until("nothing is left", || !is_alive(pid.parse().unwrap())).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_told_to_stop_trying() {
    let shop = Workshop::scripted("mute");
    let path = shop.write("a.md", "bad\n");
    let position = json!({ "line": 0, "character": 0 });
    let ask = shop.prepare(1, &shop.granted, "goto_definition", json!({ "path": path, "position": position })).await;
    let run = tokio::spawn(ask.unwrap().run(ProgressSink::unseen()));
    until("it is asked", || shop.notes("pulled").len() == 1).await;
    // Whoever asked has gone.
    run.abort();
    until("the question is taken back", || shop.notes("log").iter().any(|line| line == "$/cancelRequest")).await;
    // Who waits is told in time.
    let refusal = shop.refused("goto_definition", json!({ "path": path, "position": position })).await;
    assert_eq!(refusal.code, Code::TimedOut);
}

#[tokio::test]
async fn a_server_that_never_begins_is_given_up_in_time() {
    let shop = Workshop::scripted("never_begins");
    let path = shop.write("a.md", "bad\n");
    let position = json!({ "line": 0, "character": 0 });
    let began = tokio::time::Instant::now();
    let refusal = shop.refused("goto_definition", json!({ "path": path, "position": position })).await;
    assert_eq!(refusal.code, Code::TimedOut, "{}", refusal.message);
    assert!(began.elapsed() < Duration::from_secs(20));
    let answer = shop.run("get_errors", json!({ "path": path, "wait_ms": 100 })).await;
    assert_eq!((messages(&answer).len(), &answer["is_complete"]), (0, &json!(false)), "{answer}");
    assert_eq!(shop.server("markdown").await["state"], "starting");
    let pid: u64 = shop.notes("starts")[0].parse().unwrap();
    shop.runtime.close().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_server_that_asks_and_never_reads_is_ended() {
    let shop = Workshop::scripted("never_reads");
    let path = shop.write("a.md", "bad\n");
    let refusal = shop.refused("get_errors", json!({ "path": path, "wait_ms": 60_000 })).await;
    assert_eq!(refusal.code, Code::Failed, "{}", refusal.message);
    assert!(refusal.message.contains("does not read"), "{}", refusal.message);
    for pid in shop.notes("starts") {
        until("nothing is left", || !is_alive(pid.parse().unwrap())).await;
    }
}

#[tokio::test]
async fn a_project_with_more_folders_than_can_be_watched_is_never_complete() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "bad\n");
    let complete = async || shop.run("get_errors", json!({ "path": path })).await["is_complete"].clone();
    assert_eq!(complete().await, true);
    let info = shop.run("get_workspace_info", json!({})).await;
    let server = &info["roots"][0]["servers"][0];
    assert_eq!((&server["language"], &server["is_watched_whole"]), (&json!("markdown"), &json!(true)), "{info}");
    for i in 0..8_200 {
        fs::create_dir_all(shop.granted.join(format!("{}/{i}", i / 100))).unwrap();
    }
    assert_eq!(complete().await, false);
    let position = json!({ "line": 0, "character": 0 });
    let found = shop.run("goto_definition", json!({ "path": path, "position": position })).await;
    assert_eq!(found["is_complete"], false);
    shop.runtime.watch(1, vec![policy::GrantRoot::new(shop.granted.to_str().unwrap()).unwrap()]).await.unwrap();
    let info = shop.run("get_workspace_info", json!({})).await;
    let root = &info["roots"][0];
    assert_eq!((&root["watched"], &root["servers"][0]["is_watched_whole"]), (&json!("part"), &json!(false)), "{info}");
}

// E-01: 24 language servers killed in a row.
#[tokio::test]
async fn servers_killed_in_a_row_are_replaced_and_nothing_is_left() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "bad\n");
    let mut killed = Vec::new();
    for i in 0..24 {
        let answer = shop.run("get_errors", json!({ "path": path })).await;
        assert_eq!((messages(&answer), &answer["is_complete"]), (vec!["bad: bad"], &json!(true)), "{i}");
        let pid = shop.server("markdown").await["pid"].as_u64().unwrap();
        assert!(!killed.contains(&pid));
        kill(pid);
        killed.push(pid);
    }
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!(answer["is_complete"], true);
    assert_eq!(shop.server("markdown").await["restarts"], 24);
    for pid in killed {
        until("it is reaped", || !is_alive(pid)).await;
    }
    let last = shop.server("markdown").await["pid"].as_u64().unwrap();
    shop.runtime.close().await;
    assert!(!is_alive(last));
}

pub(super) fn kill(pid: u64) {
    let killed = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
}

#[tokio::test]
async fn servers_end_with_the_last_holder_and_are_shared_until_then() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "bad\n");
    for holder in [1, 2] {
        shop.run_for(holder, &shop.granted, "get_errors", json!({ "path": path })).await.unwrap();
    }
    assert_eq!(shop.notes("starts").len(), 1);
    let pid = shop.server("markdown").await["pid"].as_u64().unwrap();
    shop.runtime.leave(1).await;
    shop.run_for(2, &shop.granted, "get_errors", json!({ "path": path })).await.unwrap();
    assert_eq!(shop.notes("starts").len(), 1);
    shop.runtime.leave(2).await;
    until("it has ended", || !is_alive(pid)).await;
    assert!(shop.notes("log").iter().any(|line| line == "exit"), "it was asked to end");
}

#[tokio::test]
async fn idle_servers_end_and_stubborn_ones_are_killed() {
    let shop = Workshop::with("pull", |settings| settings.idle_server = Duration::from_millis(200));
    let path = shop.write("a.md", "bad\n");
    shop.run("get_errors", json!({ "path": path })).await;
    let pid: u64 = shop.notes("starts")[0].parse().unwrap();
    until("it has ended", || !is_alive(pid)).await;
    assert_eq!(shop.server("markdown").await["state"], "stopped");
    assert_eq!(shop.run("get_errors", json!({ "path": path })).await["is_complete"], true);

    let shop = Workshop::scripted("never_ends");
    let path = shop.write("a.md", "bad\n");
    shop.run("get_errors", json!({ "path": path })).await;
    let pid = shop.server("markdown").await["pid"].as_u64().unwrap();
    shop.runtime.close().await;
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_ninth_server_takes_the_place_of_the_one_unused_for_longest() {
    let shop = Workshop::scripted("pull");
    let mut paths = Vec::new();
    for i in 0..9 {
        let path = shop.write(&format!("{i}/a.md"), "bad\n");
        fs::create_dir(shop.granted.join(format!("{i}/.git"))).unwrap();
        fs::write(shop.granted.join(format!("{i}/.marker")), "").unwrap();
        paths.push(path);
    }
    // Each folder is a grant of its own, and so a project.
    for (i, path) in paths.iter().enumerate() {
        let root = shop.granted.join(i.to_string());
        shop.run_for(1, &root, "get_errors", json!({ "path": path })).await.unwrap();
    }
    let list = shop.run("manage_plugins", json!({ "language": "markdown" })).await;
    let state = |i: usize| {
        let root = shop.granted.join(i.to_string());
        let servers = list["servers"].as_array().unwrap();
        servers.iter().find(|server| server["root"] == text(&root)).unwrap()["state"].clone()
    };
    assert_eq!(state(0), "stopped");
    assert!((1..9).all(|i| state(i) == "ready"), "{list}");
    shop.runtime.close().await;
}

#[tokio::test]
async fn without_a_server_the_next_step_is_named() {
    let shop = Workshop::with("pull", |settings| {
        settings.servers.insert("rust".to_owned(), Vec::new());
        settings.servers.insert("python".to_owned(), vec!["no-such-program".to_owned()]);
        settings.servers.insert("go".to_owned(), vec!["./gopls".to_owned()]);
    });
    for (name, words) in
        [("a.rs", "[editor.servers]"), ("a.py", "no-such-program"), ("a.go", "./gopls"), ("a.toml", "toml")]
    {
        let path = shop.write(name, "x\n");
        let refusal = shop.refused("get_errors", json!({ "path": path })).await;
        assert_eq!(refusal.code, Code::Unsupported);
        assert!(refusal.message.contains(words), "{}", refusal.message);
    }
    // A program of the project's is the project's code.
    let script = fs::read(shop.granted.parent().unwrap().join("server.py")).unwrap();
    let inside = shop.granted.join("evil");
    fs::write(&inside, script).unwrap();
    fs::set_permissions(&inside, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let words = vec![text(&inside)];
    let shop = Workshop {
        runtime: Workshop::with("pull", |settings| drop(settings.servers.insert("markdown".to_owned(), words))).runtime,
        ..shop
    };
    let path = shop.write("a.md", "x\n");
    assert_eq!(shop.code("get_errors", json!({ "path": path })).await, Code::Unsupported);
}

#[tokio::test]
async fn orders_that_make_no_sense_are_refused_and_start_nothing() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "bad\n");
    fs::write(shop.granted.join("binary.md"), [0, 159, 146, 150]).unwrap();
    let huge = fs::File::create(shop.granted.join("huge.md")).unwrap();
    huge.set_len(1 << 30).unwrap();
    let zero = json!({ "line": 0, "character": 0 });
    let far = json!({ "line": 7, "character": 0 });
    let range = json!({ "start": zero, "end": zero });
    let verbs = [
        ("get_errors", json!({})),
        ("get_completions", json!({ "position": zero })),
        ("format_code", json!({})),
        ("goto_definition", json!({ "position": zero })),
        ("get_code_lens", json!({})),
        ("apply_quick_fix", json!({ "range": range })),
        ("refactor_symbol", json!({ "position": zero, "new_name": "x" })),
    ];
    for (verb, args) in &verbs {
        let with = |path: &str| {
            let mut args = args.clone();
            args["path"] = path.into();
            args
        };
        let mut unknown = with(&path);
        unknown["surplus"] = 1.into();
        assert_eq!(shop.code(verb, unknown).await, Code::BadArguments, "{verb}");
        assert_eq!(shop.code(verb, with("/etc/passwd")).await, Code::OutsideRoot, "{verb}");
        assert_eq!(shop.code(verb, with("../notes/x.md")).await, Code::OutsideRoot, "{verb}");
        assert_eq!(shop.code(verb, with("gone.md")).await, Code::NotFound, "{verb}");
        assert_eq!(shop.code(verb, with("binary.md")).await, Code::BadArguments, "{verb}");
        assert_eq!(shop.code(verb, with("huge.md")).await, Code::TooLarge, "{verb}");
        if args.get("position").is_some() {
            let mut beyond = with(&path);
            beyond["position"] = far.clone();
            assert_eq!(shop.code(verb, beyond).await, Code::BadArguments, "{verb}");
        }
    }
    let stale = json!({ "path": path, "version": 1 });
    assert_eq!(shop.code("format_code", stale).await, Code::Changed);
    assert_eq!(shop.code("manage_plugins", json!({ "do": "destroy" })).await, Code::BadArguments);
    assert_eq!(shop.code("manage_plugins", json!({ "language": "klingon" })).await, Code::BadArguments);
    assert_eq!(shop.notes("starts").len(), 0);
}

#[tokio::test]
async fn a_server_sees_the_granted_folder_and_runs_nothing_from_it() {
    // A-08; the fence.
    let shop = Workshop::scripted("peeks");
    let path = shop.write("a.md", "bad\n");
    shop.write("inside", "");
    let evil = shop.write("evil", "#!/bin/sh\n");
    fs::set_permissions(evil, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(shop.granted.parent().unwrap().join("secret"), "").unwrap();
    shop.run("get_errors", json!({ "path": path })).await;
    let fence = shop.server("markdown").await["fence"].clone();
    if fence["enforced"] != "landlock" {
        skipped(&format!("this kernel has no landlock: {fence}"));
        return;
    }
    assert_eq!(shop.notes("peeked"), ["PermissionError", "yes", "PermissionError"]);
}
