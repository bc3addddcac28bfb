//! What servers propose to change: made in buffers, all or nothing, and never beyond what was granted.

use super::*;

const ZERO: (u64, u64) = (0, 0);

fn place((line, character): (u64, u64)) -> Value {
    json!({ "line": line, "character": character })
}

async fn content(shop: &Workshop, path: &str) -> String {
    shop.run("open_file", json!({ "path": path })).await["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_rename_changes_the_buffers_of_all_files_and_no_file() {
    let shop = Workshop::scripted("pull");
    let (path, other) = (shop.write("a.md", "old\nrest\n"), shop.write("other.md", "kept\n"));
    let args = |new_name: &str| json!({ "path": path, "position": place(ZERO), "new_name": new_name });
    let mut preview = args("X");
    preview["preview"] = true.into();
    let shown = shop.run("refactor_symbol", preview).await;
    assert_eq!(shown["is_preview"], true);
    assert!(shown["diff"].as_str().unwrap().contains("+new"), "{shown}");
    assert_eq!(content(&shop, &path).await, "old\nrest\n");

    let prepared = shop.prepare(1, &shop.granted, "refactor_symbol", args("X")).await.unwrap();
    let crate::shown::ActionPreview::Diff { unified, .. } = prepared.shown() else {
        panic!("a change is shown as a difference")
    };
    assert!(unified.contains("-old") && unified.contains("+Xkept"), "{unified}");
    let made = prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!(made["files"].as_array().unwrap().len(), 2);
    assert_eq!((content(&shop, &path).await, content(&shop, &other).await), ("new\nrest\n".into(), "Xkept\n".into()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old\nrest\n", "only save_buffer writes");
}

#[tokio::test]
async fn a_change_that_reaches_beyond_the_grant_is_refused_as_a_whole() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "old\n");
    fs::write(shop.notes.join("outside.md"), "outside\n").unwrap();
    let args = |new_name: &str| json!({ "path": path, "position": place(ZERO), "new_name": new_name });
    for (new_name, code) in [
        ("outside", Code::OutsideRoot),
        ("file", Code::Unsupported),
        ("stale", Code::Changed),
        ("nowhere", Code::Failed),
        ("", Code::BadArguments),
    ] {
        let refusal = shop.refused("refactor_symbol", args(new_name)).await;
        assert_eq!(refusal.code, code, "{new_name}: {}", refusal.message);
    }
    assert_eq!(content(&shop, &path).await, "old\n");
    assert_eq!(fs::read_to_string(shop.notes.join("outside.md")).unwrap(), "outside\n");
}

#[tokio::test]
async fn what_changed_between_the_picture_and_the_deed_stops_the_deed() {
    //
    let shop = Workshop::scripted("pull");
    let (path, other) = (shop.write("a.md", "old\nrest\n"), shop.write("other.md", "kept\n"));
    let args = json!({ "path": path, "position": place(ZERO), "new_name": "X" });
    let prepared = shop.prepare(1, &shop.granted, "refactor_symbol", args).await.unwrap();
    shop.edit(&other, "kept", "changed").await;
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(content(&shop, &path).await, "old\nrest\n");
}

#[tokio::test]
async fn code_is_formatted_and_fixed_in_the_buffer() {
    let shop = Workshop::scripted("pull");
    let path = shop.write("a.md", "old\nbad\n");
    let made = shop.run("format_code", json!({ "path": path })).await;
    assert_eq!((&made["is_changed"], &made["edits"]), (&json!(true), &json!(1)));
    let again = shop.run("format_code", json!({ "path": path })).await;
    assert_eq!((&again["is_changed"], &again["version"]), (&json!(false), &made["version"]));
    let part = json!({ "path": path, "range": { "start": place(ZERO), "end": place((1, 0)) } });
    assert_eq!(shop.code("format_code", part).await, Code::Unsupported);

    let path = shop.write("b.md", "old\nbad\n");
    let range = json!({ "start": place((1, 0)), "end": place((1, 3)) });
    let offered = shop.run("apply_quick_fix", json!({ "path": path, "range": range })).await;
    let titles: Vec<&str> =
        offered["fixes"].as_array().unwrap().iter().map(|fix| fix["title"].as_str().unwrap()).collect();
    assert_eq!(titles, ["edit", "command", "old command"]);
    assert_eq!(offered["fixes"][0]["is_preferred"], true);
    for title in ["command", "old command"] {
        let refusal = shop.refused("apply_quick_fix", json!({ "path": path, "range": range, "title": title })).await;
        assert_eq!(refusal.code, Code::Unsupported);
        assert!(refusal.message.contains("runs a command"), "{}", refusal.message);
    }
    let refusal = shop.refused("apply_quick_fix", json!({ "path": path, "range": range, "title": "gone" })).await;
    assert_eq!(refusal.code, Code::NotFound);
    shop.run("apply_quick_fix", json!({ "path": path, "range": range, "title": "edit" })).await;
    assert_eq!(content(&shop, &path).await, "new\nbad\n");
}

#[tokio::test]
async fn of_what_was_not_granted_only_the_place_is_told() {
    //
    let shop = Workshop::scripted("pull");
    let (path, other) = (shop.write("a.md", "first\n"), shop.write("other.md", "second\n"));
    fs::write(shop.notes.join("outside.md"), "secret\n").unwrap();
    for kind in ["definition", "references"] {
        let found = shop.run("goto_definition", json!({ "path": path, "position": place(ZERO), "kind": kind })).await;
        let told: Vec<(Value, Value, Value)> = found["locations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|location| (location["path"].clone(), location["is_granted"].clone(), location["line_text"].clone()))
            .collect();
        let outside = text(&shop.notes.join("outside.md"));
        assert_eq!(
            told,
            [
                (json!(path), json!(true), json!("first")),
                (json!(other), json!(true), json!("second")),
                (json!(outside), json!(false), Value::Null),
            ]
        );
    }
    let refusal = shop
        .refused("goto_definition", json!({ "path": path, "position": place(ZERO), "kind": "implementation" }))
        .await;
    assert_eq!(refusal.code, Code::Unsupported);
}

#[tokio::test]
async fn a_server_that_a_wider_grant_has_started_leaks_nothing_to_a_narrower_one() {
    // both share the project's server; what lies beside the narrower grant is not its business.
    let shop = Workshop::with("pull", |settings| {
        let script = settings.servers.remove("markdown").unwrap();
        settings.servers.insert("typescript".to_owned(), script);
    });
    let (path, other) = (shop.write("project/src/a.ts", "old\n"), shop.write("project/src/other.md", "kept\n"));
    shop.write("project/tsconfig.json", "{}");
    let (wide, narrow) = (shop.granted.clone(), shop.granted.join("project"));
    let rename = |name: &str| json!({ "path": path, "position": place(ZERO), "new_name": name });
    shop.run_for(1, &wide, "get_errors", json!({ "path": path })).await.unwrap();
    shop.run_for(2, &narrow, "get_errors", json!({ "path": path })).await.unwrap();
    assert_eq!(shop.notes("starts").len(), 1, "one server for both");
    fs::write(shop.notes.join("outside.md"), "secret\n").unwrap();
    let ask = json!({ "path": path, "position": place(ZERO) });
    let found = shop.run_for(2, &narrow, "goto_definition", ask).await.unwrap();
    assert_eq!(found["locations"][2]["is_granted"], false);
    assert_eq!(found["locations"][2]["line_text"], Value::Null);
    assert_eq!(
        shop.run_for(2, &narrow, "refactor_symbol", rename("outside")).await.unwrap_err().code,
        Code::OutsideRoot
    );
    assert_eq!(content(&shop, &other).await, "kept\n");
    // A grant of a folder that has no part of it knows nothing of it.
    shop.write("elsewhere/b.ts", "bad\n");
    let elsewhere = shop.granted.join("elsewhere");
    let list = shop.run_for(3, &elsewhere, "manage_plugins", json!({ "language": "typescript" })).await.unwrap();
    assert_eq!(list["servers"][0]["state"], "not_started");
    let all = shop.run_for(3, &elsewhere, "get_errors", json!({})).await.unwrap();
    assert_eq!((messages(&all).len(), &all["server"]), (0, &json!([])));
}
