//! Open texts: versions, undo, what the disk does meanwhile, and who may change what when.

use std::sync::Arc;

use tokio::sync::broadcast;

use super::*;
use crate::{encoding::digest_of, happening::EditorEvent};

async fn open(place: &Place, path: &str) -> Value {
    place.run("open_file", json!({ "path": path })).await.unwrap()
}

async fn edit(place: &Place, path: &str, old: &str, new: &str) -> Value {
    place.run("edit_buffer", json!({ "path": path, "old_text": old, "new_text": new })).await.unwrap()
}

async fn content(place: &Place, path: &str) -> String {
    open(place, path).await["content"].as_str().unwrap().to_owned()
}

fn told(listening: &mut broadcast::Receiver<Arc<EditorEvent>>) -> Vec<(&'static str, Value)> {
    let mut told = Vec::new();
    while let Ok(happening) = listening.try_recv() {
        told.push((happening.event.name, happening.data.clone()));
    }
    told
}

// E-03
#[tokio::test]
async fn an_edit_for_an_older_version_is_refused_and_changes_nothing() {
    let place = Place::new();
    place.write("a", "one\ntwo\n");
    let first = open(&place, "a").await;
    let second = edit(&place, "a", "one", "1").await;
    assert!(second["version"].as_u64() > first["version"].as_u64());
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
    for stale in [
        json!({ "path": "a", "version": first["version"], "edits": [{ "range": range, "new_text": "x" }] }),
        json!({ "path": "a", "digest": first["digest"], "old_text": "1", "new_text": "x" }),
        json!({ "path": "a", "version": first["version"], "undo": 1 }),
        json!({ "files": [{ "path": "a", "version": first["version"], "edits": [{ "old_text": "1", "new_text": "x" }] }] }),
    ] {
        assert_eq!(place.code("edit_buffer", stale.clone()).await, Code::Changed, "{stale}");
    }
    let blind = json!({ "path": "a", "edits": [{ "range": range, "new_text": "x" }] });
    assert_eq!(place.code("edit_buffer", blind).await, Code::BadArguments, "a place is a place in one version");
    assert_eq!(content(&place, "a").await, "1\ntwo\n");
    assert_eq!(place.read("a"), "one\ntwo\n");
}

// E-03: what was prepared for one text is not made on another.
#[tokio::test]
async fn an_edit_that_another_has_overtaken_is_refused() {
    let place = Place::new();
    place.write("a", "one");
    let args = json!({ "path": "a", "old_text": "one", "new_text": "1" });
    let prepared = place.prepare("edit_buffer", args).await.unwrap();
    edit(&place, "a", "one", "uno").await;
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(content(&place, "a").await, "uno");

    let args = json!({ "path": "a", "old_text": "uno", "new_text": "1" });
    let prepared = place.prepare("edit_buffer", args).await.unwrap();
    place.run("close_buffer", json!({ "path": "a", "discard": true })).await.unwrap();
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(content(&place, "a").await, "one");
}

// E-03
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_of_many_at_once_are_all_there_and_none_is_mixed_with_another() {
    const EACH: usize = 300;
    let place = Arc::new(Place::new());
    place.write("a", "");
    let agents = (0..4_u128).map(|agent| {
        let place = place.clone();
        tokio::spawn(async move {
            let mut refused = 0;
            for turn in 0..EACH {
                loop {
                    let now = place.run_for(agent, "open_file", json!({ "path": "a" })).await.unwrap();
                    let start = json!({ "line": 0, "character": 0 });
                    let edits =
                        json!([{ "range": { "start": start, "end": start }, "new_text": format!("{agent} {turn}\n") }]);
                    let args = json!({ "path": "a", "version": now["version"], "edits": edits });
                    match place.run_for(agent, "edit_buffer", args).await {
                        Ok(_) => break,
                        Err(refusal) => assert_eq!(refusal.code, Code::Changed),
                    }
                    refused += 1;
                }
                if turn % 10 == 0 {
                    match place.run_for(agent, "save_buffer", json!({ "path": "a" })).await {
                        Ok(saved) => assert!(saved["digest"].is_string()),
                        Err(refusal) => assert!(refusal.message.contains("a later version"), "{refusal:?}"),
                    }
                }
            }
            refused
        })
    });
    let agents: Vec<_> = agents.collect();
    for agent in agents {
        agent.await.unwrap();
    }
    let text = content(&place, "a").await;
    assert_eq!(text.lines().count(), 4 * EACH);
    for agent in 0..4 {
        let turns: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{agent} "))).collect();
        let expected: Vec<String> = (0..EACH).rev().map(|turn| format!("{agent} {turn}")).collect();
        assert_eq!(turns, expected);
    }
    place.run("save_buffer", json!({ "path": "a" })).await.unwrap();
    assert_eq!(place.read("a"), text);
}

#[tokio::test]
async fn files_are_edited_together_or_not_at_all() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.write(name, "old");
    }
    let edits = json!([{ "old_text": "old", "new_text": "new" }]);
    let version = open(&place, "b").await["version"].clone();
    edit(&place, "b", "old", "other").await;
    let args =
        json!({ "files": [{ "path": "a", "edits": edits }, { "path": "b", "version": version, "edits": edits }] });
    assert_eq!(place.code("edit_buffer", args).await, Code::Changed);
    assert_eq!(content(&place, "a").await, "old");

    let args = json!({ "files": [{ "path": "c", "edits": edits }, { "path": "a", "edits": edits }] });
    let ActionPreview::Diff { unified, path, .. } = place.shown("edit_buffer", args.clone()).await else {
        panic!("differences")
    };
    assert_eq!(unified.matches("-old\n").count(), 2, "{unified}");
    assert_eq!(path, format!("{}, {}", text(&place.path("a")), text(&place.path("c"))));
    // Overtaken in one of them, it is made in none.
    let prepared = place.prepare("edit_buffer", args.clone()).await.unwrap();
    edit(&place, "c", "old", "older").await;
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(content(&place, "a").await, "old");
    place.run("edit_buffer", json!({ "path": "c", "undo": 1 })).await.unwrap();
    let answer = place.run("edit_buffer", args).await.unwrap();
    assert_eq!(answer["files"].as_array().unwrap().len(), 2);
    assert_eq!((content(&place, "a").await, content(&place, "c").await), ("new".to_owned(), "new".to_owned()));

    for wrong in [
        json!({ "files": [] }),
        json!({ "files": 1 }),
        json!({ "files": [{ "path": "a", "edits": edits }], "path": "b" }),
        json!({ "files": [{ "path": "a", "edits": [{ "old_text": "new", "new_text": "" }] }, { "path": "./a", "edits": [{ "old_text": "new", "new_text": "" }] }] }),
    ] {
        assert_eq!(place.code("edit_buffer", wrong.clone()).await, Code::BadArguments, "{wrong}");
    }
    let outside =
        json!({ "files": [{ "path": "../outside/secret", "edits": edits }, { "path": "b", "edits": edits }] });
    assert_eq!(place.code("edit_buffer", outside).await, Code::OutsideRoot);
    place.assert_untouched();
}

#[tokio::test]
async fn changes_are_undone_and_redone() {
    let place = Place::new();
    place.write("a", "one");
    edit(&place, "a", "one", "two").await;
    edit(&place, "a", "two", "three").await;
    let step = async |steps: Value| {
        let mut args = steps;
        args["path"] = "a".into();
        place.run("edit_buffer", args).await.map(|answer| answer["is_dirty"].clone())
    };
    assert_eq!(step(json!({ "undo": 2 })).await.unwrap(), false, "it is the file again");
    assert_eq!(content(&place, "a").await, "one");
    step(json!({ "redo": 1 })).await.unwrap();
    assert_eq!(content(&place, "a").await, "two");
    let ActionPreview::Diff { unified, .. } = place.shown("edit_buffer", json!({ "path": "a", "redo": 1 })).await
    else {
        panic!("a difference")
    };
    assert!(unified.contains("-two\n") && unified.contains("+three\n"), "{unified}");
    edit(&place, "a", "two", "four").await;
    assert_eq!(step(json!({ "redo": 1 })).await.unwrap_err().code, Code::BadArguments, "that way is gone");
    assert_eq!(step(json!({ "undo": 9 })).await.unwrap_err().code, Code::BadArguments);
    step(json!({ "undo": 2 })).await.unwrap();
    assert_eq!(content(&place, "a").await, "one");
}

#[tokio::test]
async fn a_text_that_nobody_has_changed_follows_its_file() {
    let place = Place::new();
    place.write("a", "one");
    let first = open(&place, "a").await;
    let mut listening = place.runtime.listen();
    place.write("a", "two");
    let second = open(&place, "a").await;
    assert_eq!(second["content"], "two");
    assert!(second["version"].as_u64() > first["version"].as_u64());
    assert!(matches!(&told(&mut listening)[..], [("buffer_changed", data)] if data["reason"] == "disk"));
    let stale = json!({ "path": "a", "version": first["version"], "old_text": "two", "new_text": "" });
    assert_eq!(place.code("edit_buffer", stale).await, Code::Changed);
    // Written again at once, and as long as before: the file's times may not tell.
    for turn in 0..50 {
        place.write("a", format!("{turn:03}"));
        assert_eq!(content(&place, "a").await, format!("{turn:03}"));
    }
}

#[tokio::test]
async fn unsaved_text_outlives_what_others_do_to_the_file() {
    let place = Place::new();
    place.write("a", "one");
    edit(&place, "a", "one", "mine").await;
    place.write("a", "theirs");
    assert_eq!(content(&place, "a").await, "mine");
    let listed = place.run("get_buffers", json!({})).await.unwrap();
    assert_eq!(listed["buffers"][0]["is_changed_on_disk"], true, "{listed}");
    assert_eq!(place.code("save_buffer", json!({ "path": "a" })).await, Code::Changed);
    assert_eq!(place.read("a"), "theirs");
    for verb in ["delete_file", "write_file"] {
        let args = if verb == "write_file" { json!({ "path": "a", "content": "" }) } else { json!({ "path": "a" }) };
        assert_eq!(place.code(verb, args).await, Code::Changed, "{verb}");
    }
    place.run("save_buffer", json!({ "path": "a", "overwrite": true })).await.unwrap();
    assert_eq!(place.read("a"), "mine");

    edit(&place, "a", "mine", "left").await;
    fs::remove_file(place.path("a")).unwrap();
    assert_eq!(content(&place, "a").await, "left");
    assert_eq!(place.code("save_buffer", json!({ "path": "a" })).await, Code::Changed);
    place.run("save_buffer", json!({ "path": "a", "overwrite": true })).await.unwrap();
    assert_eq!(place.read("a"), "left");
    // One that is saved goes with its file.
    fs::remove_file(place.path("a")).unwrap();
    assert_eq!(place.code("open_file", json!({ "path": "a" })).await, Code::NotFound);
}

#[tokio::test]
async fn what_is_saved_is_the_text_that_was_there_and_is_told() {
    let place = Place::new();
    place.write("a", "one");
    let edited = edit(&place, "a", "one", "two").await;
    let mut listening = place.runtime.listen();
    let args = json!({ "path": "a", "version": edited["version"] });
    let prepared = place.prepare("save_buffer", args.clone()).await.unwrap();
    let ActionPreview::Diff { unified, .. } = prepared.shown() else { panic!("a difference") };
    assert!(unified.contains("-one\n") && unified.contains("+two\n"), "{unified}");
    // What was shown is what is written; what came after it stays unsaved.
    edit(&place, "a", "two", "three").await;
    let saved = prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!((&saved["is_dirty"], &saved["digest"]), (&json!(true), &json!(digest_of(b"two"))));
    assert_eq!(place.read("a"), "two");
    assert_eq!(place.code("save_buffer", args).await, Code::Changed, "it is at another version");
    let told = told(&mut listening);
    let names: Vec<_> = told.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["buffer_changed", "file_saved"]);
    assert_eq!(told[0].1["edits"][0]["new_text"], "three");

    place.write("b", "b");
    edit(&place, "b", "b", "c").await;
    let saved = place.run("save_buffer", json!({ "all": true })).await.unwrap();
    assert_eq!(saved["saved"].as_array().unwrap().len(), 2, "{saved}");
    assert_eq!((place.read("a"), place.read("b")), ("three".to_owned(), "c".to_owned()));
    for wrong in [json!({}), json!({ "path": "a", "all": true }), json!({ "all": true, "version": 1 })] {
        assert_eq!(place.code("save_buffer", wrong.clone()).await, Code::BadArguments, "{wrong}");
    }
}

#[tokio::test]
async fn a_buffer_goes_along_with_its_file() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a.rs", "one");
    let edited = edit(&place, "sub/a.rs", "one", "two").await;
    place.run("rename_file", json!({ "path": "sub", "new_path": "moved" })).await.unwrap();
    let there = open(&place, "moved/a.rs").await;
    assert_eq!(
        (&there["content"], &there["version"], &there["language"]),
        (&json!("two"), &edited["version"], &json!("rust"))
    );
    place.run("edit_buffer", json!({ "path": "moved/a.rs", "undo": 1 })).await.unwrap();
    assert_eq!(content(&place, "moved/a.rs").await, "one");
    let listed = place.run("get_buffers", json!({})).await.unwrap();
    assert_eq!(listed["buffers"].as_array().unwrap().len(), 1, "{listed}");
}

#[tokio::test]
async fn a_link_is_opened_as_what_it_leads_to_and_saved_there() {
    let place = Place::new();
    place.write("a", "one");
    std::os::unix::fs::symlink("a", place.path("link")).unwrap();
    edit(&place, "link", "one", "two").await;
    assert_eq!(content(&place, "a").await, "two");
    place.run("save_buffer", json!({ "path": "link" })).await.unwrap();
    assert_eq!(place.read("a"), "two");
    assert!(place.path("link").symlink_metadata().unwrap().is_symlink());
}

#[tokio::test]
async fn only_so_many_are_open_and_unsaved_ones_stay() {
    let place = Place::new();
    place.write("first", "one");
    edit(&place, "first", "one", "unsaved").await;
    for number in 0..300 {
        place.write(&format!("f{number}"), "");
        open(&place, &format!("f{number}")).await;
    }
    let listed = place.run("get_buffers", json!({})).await.unwrap();
    let listed = listed["buffers"].as_array().unwrap();
    assert_eq!(listed.len(), 256);
    assert!(listed.iter().any(|buffer| buffer["is_dirty"] == true));
    assert!(listed.iter().any(|buffer| buffer["path"] == json!(place.path("f299"))));
    assert_eq!(content(&place, "first").await, "unsaved");
}

// what is open in one grant's folder is nothing to another grant.
#[tokio::test]
async fn a_buffer_is_seen_by_those_who_have_its_folder() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a", "");
    place.write("b", "");
    open(&place, "sub/a").await;
    open(&place, "b").await;
    let roots = vec![policy::GrantRoot::new(text(&place.path("sub"))).unwrap()];
    let order = VerbOrder { roots, ..place.order("get_buffers", &json!({})) };
    let listed = place.runtime.prepare(order).await.unwrap().run(ProgressSink::unseen()).await.unwrap();
    let paths: Vec<_> = listed["buffers"].as_array().unwrap().iter().map(|buffer| &buffer["path"]).collect();
    assert_eq!(paths, [&json!(place.path("sub/a"))]);
}

#[tokio::test]
async fn a_buffer_is_closed_and_its_unsaved_text_only_if_that_is_said() {
    let place = Place::new();
    place.write("a", "one");
    assert_eq!(place.code("close_buffer", json!({ "path": "a" })).await, Code::NotFound);
    edit(&place, "a", "one", "two").await;
    assert_eq!(place.code("close_buffer", json!({ "path": "a" })).await, Code::Changed);
    let closed = place.run("close_buffer", json!({ "path": "a", "discard": true })).await.unwrap();
    assert_eq!(closed["discarded"], true);
    assert_eq!(content(&place, "a").await, "one");
}

#[tokio::test]
async fn unsaved_text_outlives_the_runtime() {
    let place = Place::new();
    let kept = place.outside.with_file_name("kept");
    let runtime = || {
        BuiltinEditor::new(EditorEnvironment {
            env: environment(),
            owner: OwnerDaemon::this_process(&kept),
            closed: vec![kept.clone()],
            unsaved: Some(kept.clone()),
            settings: EditorSettings::default(),
        })
    };
    let run = async |runtime: &BuiltinEditor, verb: &str, args: Value| {
        runtime.prepare(place.order(verb, &args)).await?.run(ProgressSink::unseen()).await
    };
    for (name, new) in [("a", "mine"), ("b", "mine too"), ("c", "mine at last")] {
        place.write(name, "old");
        let first = runtime();
        let args = json!({ "path": name, "old_text": "old", "new_text": new });
        run(&first, "edit_buffer", args).await.unwrap();
        first.close().await;
    }
    place.write("b", "theirs");
    fs::remove_file(place.path("c")).unwrap();

    let second = runtime();
    let listed = run(&second, "get_buffers", json!({})).await.unwrap();
    assert_eq!(listed["buffers"].as_array().unwrap().len(), 3, "{listed}");
    for (name, text) in [("a", "mine"), ("b", "mine too"), ("c", "mine at last")] {
        let opened = run(&second, "open_file", json!({ "path": name })).await.unwrap();
        assert_eq!((&opened["content"], &opened["is_dirty"]), (&json!(text), &json!(true)), "{name}");
    }
    let kept_of = |kept: &Path| fs::read_dir(kept).unwrap().count();
    assert_eq!(kept_of(&kept), 3);
    run(&second, "save_buffer", json!({ "path": "a" })).await.unwrap();
    assert_eq!(place.read("a"), "mine");
    assert_eq!(kept_of(&kept), 2, "at once: who is killed now must not find it unsaved");
    assert_eq!(run(&second, "save_buffer", json!({ "path": "b" })).await.unwrap_err().code, Code::Changed);
    run(&second, "close_buffer", json!({ "path": "b", "discard": true })).await.unwrap();
    run(&second, "save_buffer", json!({ "path": "c", "overwrite": true })).await.unwrap();
    second.close().await;
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 0, "what is saved or dropped is not kept");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&kept).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}
