//! How errors are heard of, whatever way a server tells them, and what is said when it has not.

use super::*;

// E-04
#[tokio::test]
async fn errors_are_told_with_the_version_that_they_are_about_however_the_server_tells_them() {
    for mode in ["push", "unversioned", "pull", "register", "modified", "asks"] {
        let shop = Workshop::scripted(mode);
        let path = shop.write("a.md", "good\nbad one\n");
        let first = shop.run("get_errors", json!({ "path": path })).await;
        assert_eq!(messages(&first), ["bad: bad one"], "{mode}");
        assert_eq!((&first["is_complete"], &first["version"]), (&json!(true), &first["analyzed_version"]), "{mode}");
        let error = &first["diagnostics"][0];
        assert_eq!(
            (&error["severity"], &error["source"], &error["code"]),
            (&json!("error"), &json!("script"), &json!("E1"))
        );
        assert_eq!((&error["path"], &error["range"]["start"]["line"]), (&json!(path), &json!(1)));

        // What stands in the buffer counts, not what stands on the disk.
        let version = shop.edit(&path, "good", "bad two").await;
        let second = shop.run("get_errors", json!({ "path": path })).await;
        assert_eq!(messages(&second), ["bad: bad two", "bad: bad one"], "{mode}");
        assert_eq!((&second["version"], &second["analyzed_version"]), (&json!(version), &json!(version)), "{mode}");
        assert_eq!(second["is_complete"], true, "{mode}");

        // All that is known says the same.
        let all = shop.run("get_errors", json!({})).await;
        assert_eq!((messages(&all).len(), &all["is_complete"]), (2, &json!(true)), "{mode}");
        shop.runtime.close().await;
    }
}

#[tokio::test]
async fn an_empty_list_never_pretends_to_be_an_answer() {
    // E-04: a server that says nothing.
    let shop = Workshop::scripted("late");
    let path = shop.write("a.md", "bad\n");
    let answer = shop.run("get_errors", json!({ "path": path, "wait_ms": 300 })).await;
    assert_eq!((messages(&answer).len(), &answer["is_complete"]), (0, &json!(false)));
    assert_eq!(answer["analyzed_version"], Value::Null);
    let shop = Workshop::scripted("mute");
    let path = shop.write("a.md", "bad\n");
    let answer = shop.run("get_errors", json!({ "path": path, "wait_ms": 300 })).await;
    assert_eq!((&answer["is_complete"], &answer["analyzed_version"]), (&json!(false), &Value::Null));
    // And nobody that was asked at all.
    let shop = Workshop::scripted("pull");
    let answer = shop.run("get_errors", json!({})).await;
    assert_eq!((messages(&answer).len(), &answer["is_complete"]), (0, &json!(false)));
}

/// The scripted server in the place of rust-analyzer, which says when it has loaded the project; started, and asked nothing yet.
async fn loading(mode: &str) -> (Workshop, String) {
    let shop = Workshop::with(mode, |settings| {
        let words = settings.servers["markdown"].clone();
        settings.servers.insert("rust".to_owned(), words);
    });
    shop.write("Cargo.toml", "[package]\nname = \"demo\"\n");
    let path = shop.write("src/lib.rs", "bad\n");
    shop.run("get_errors", json!({ "path": path, "wait_ms": 0 })).await;
    until("it is greeted", || shop.notes("log").iter().any(|line| line == "initialized")).await;
    assert_eq!(shop.notes("pulled").len(), 0);
    (shop, path)
}

// R-46
#[tokio::test]
async fn a_server_that_says_when_it_has_loaded_all_is_asked_again_then() {
    let (shop, path) = loading("loads").await;
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&answer), &answer["is_complete"]), (vec!["bad: bad"], &json!(true)), "{answer}");
    assert_eq!(shop.notes("pulled").len(), 2, "asked before it had loaded all, and again then");
    // One that never says so is waited for as long as was said.
    let (shop, path) = loading("pull").await;
    let answer = shop.run("get_errors", json!({ "path": path, "wait_ms": 500 })).await;
    assert_eq!(answer["is_complete"], false, "{answer}");
    assert_eq!(answer["server"]["busy_with"], "loading the project", "{answer}");
}

// R-46: rust-analyzer says that it has loaded all, and takes seconds for its first answer then. When the time was up, what it
// had said before was told as all there is.
#[tokio::test]
async fn what_was_said_before_all_was_loaded_is_never_complete() {
    let (shop, path) = loading("stalls").await;
    let first = shop.run("get_errors", json!({ "path": path, "wait_ms": 1000 })).await;
    assert_eq!((messages(&first).len(), &first["server"]["busy_with"]), (0, &Value::Null), "{first}");
    assert_eq!((shop.notes("pulled").len(), &first["is_complete"]), (2, &json!(false)), "{first}");
    let all = shop.run("get_errors", json!({})).await;
    assert_eq!((messages(&all).len(), &all["is_complete"]), (0, &json!(false)), "{all}");
    let second = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&second), &second["is_complete"]), (vec!["bad: bad"], &json!(true)), "{second}");
}

#[tokio::test]
async fn a_server_that_is_still_indexing_is_waited_for() {
    let shop = Workshop::scripted("busy");
    let path = shop.write("a.md", "bad\n");
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&answer), &answer["is_complete"]), (vec!["bad: bad"], &json!(true)));
    assert_eq!(shop.notes("pulled").len(), 2, "asked while it was busy, and again when it was done");
}

#[tokio::test]
async fn a_server_is_answered_what_it_asks_and_never_gets_to_edit() {
    let shop = Workshop::scripted("asks");
    let path = shop.write("a.md", "bad\n");
    shop.run("get_errors", json!({ "path": path })).await;
    let answered = |line: &str| shop.notes("log").iter().any(|noted| noted == line);
    until("the server is answered", || answered(r#"answer [9, null, null]"#)).await;
    assert!(answered(r#"answer ["c", [null, null], null]"#), "{:?}", shop.notes("log"));
    assert!(answered(r#"answer [7, null, null]"#));
    let log = shop.notes("log").join("\n");
    assert!(log.contains(r#"["e", {"applied": false"#), "{log}");
    assert!(log.contains(r#"[8, null, {"code": -32601"#), "{log}");
}

#[tokio::test]
async fn a_flood_of_notes_does_not_drown_an_answer() {
    let shop = Workshop::scripted("floods");
    let path = shop.write("a.md", "bad\n");
    let answer = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&answer), &answer["is_complete"]), (vec!["bad: bad"], &json!(true)));
    shop.runtime.close().await;
}

#[tokio::test]
async fn who_listens_hears_of_errors_that_an_edit_brings() {
    // A-07: errors_detected.
    for mode in ["push", "pull"] {
        let shop = Workshop::scripted(mode);
        let path = shop.write("a.md", "good\n");
        shop.run("get_errors", json!({ "path": path })).await;
        let mut happenings = shop.runtime.listen();
        let version = shop.edit(&path, "good", "bad").await;
        let heard = async {
            loop {
                let happening = happenings.recv().await.unwrap();
                if happening.event.name == "errors_detected" {
                    return happening;
                }
            }
        };
        let heard = tokio::time::timeout(DEADLINE, heard).await.unwrap();
        assert_eq!(heard.path.as_deref(), Some(Path::new(&path)), "{mode}");
        let expected = json!({ "version": version, "errors": 1, "warnings": 0, "path": path });
        assert_eq!(heard.data, expected, "{mode}");
    }
}

#[tokio::test]
async fn a_text_that_is_closed_is_closed_at_the_server_and_saves_are_told() {
    let shop = Workshop::scripted("push");
    let path = shop.write("a.md", "bad\n");
    shop.run("get_errors", json!({ "path": path })).await;
    shop.edit(&path, "bad", "worse bad").await;
    shop.run("save_buffer", json!({ "path": path })).await;
    let logged = |method: &str| shop.notes("log").iter().any(|line| line == method);
    until("the save is told", || logged("textDocument/didSave")).await;
    shop.run("close_buffer", json!({ "path": path })).await;
    until("it is closed there", || logged("textDocument/didClose")).await;
    let all = shop.run("get_errors", json!({})).await;
    assert_eq!(messages(&all).len(), 0);
    // Opened again, it is another text, and heard of anew.
    let again = shop.run("get_errors", json!({ "path": path })).await;
    assert_eq!((messages(&again).len(), &again["is_complete"]), (1, &json!(true)));
}
