//! Panes and cursors, which are of each holder its own.

use super::*;

#[tokio::test]
async fn a_holder_has_panes_of_its_own() {
    let place = Place::new();
    place.write("a", "");
    place.write("b", "");
    assert_eq!(place.code("get_cursor_pos", json!({})).await, Code::NotFound);
    assert_eq!(place.code("split_pane", json!({})).await, Code::BadArguments);
    let first = place.run("switch_buffer", json!({ "path": "a" })).await.unwrap();
    let split = place.run("split_pane", json!({ "path": "b", "direction": "down" })).await.unwrap();
    assert_ne!(first["pane"], split["pane"]);
    assert_eq!(split["panes"].as_array().unwrap().len(), 2, "{split}");
    assert_eq!(split["ui"], false);
    assert_eq!(place.run("get_cursor_pos", json!({})).await.unwrap()["path"], json!(place.path("b")));
    assert_eq!(place.run("switch_buffer", json!({ "path": "a" })).await.unwrap()["pane"], first["pane"]);
    let other = place.run_for(2, "get_buffers", json!({})).await.unwrap();
    assert!(other["buffers"].as_array().unwrap().iter().all(|buffer| buffer["is_active"] == false));
    place.run("close_buffer", json!({ "path": "a" })).await.unwrap();
    assert_eq!(place.run("get_cursor_pos", json!({})).await.unwrap()["path"], json!(place.path("b")));
    for _ in 0..15 {
        place.run("split_pane", json!({})).await.unwrap();
    }
    assert_eq!(place.code("split_pane", json!({})).await, Code::BadArguments);
    place.runtime.leave(1).await;
    assert_eq!(place.code("get_cursor_pos", json!({})).await, Code::NotFound);
}

#[tokio::test]
async fn a_cursor_is_where_it_was_put_and_never_beyond_the_text() {
    let place = Place::new();
    place.write("a", "ab😀c\nsecond\n");
    let mut listening = place.runtime.listen();
    let at = |line: u64, character: u64| json!({ "line": line, "character": character });
    let range = json!({ "start": at(0, 1), "end": at(1, 2) });
    let args = json!({ "path": "a", "position": at(1, 2), "selection": range });
    place.run("set_cursor_pos", args).await.unwrap();
    let mut names = Vec::new();
    while let Ok(happening) = listening.try_recv() {
        names.push(happening.event.name);
    }
    assert_eq!(names, ["file_opened", "cursor_moved", "selection_changed"]);
    let chosen = place.run("get_selection", json!({})).await.unwrap();
    assert_eq!((&chosen["text"], &chosen["range"]), (&json!("b😀c\nse"), &range));
    for (position, expected) in [(at(9, 0), Code::BadArguments), (at(0, 3), Code::BadArguments)] {
        assert_eq!(place.code("set_cursor_pos", json!({ "path": "a", "position": position })).await, expected);
    }
    let args = json!({ "path": "a", "old_text": "ab😀c\nsecond\n", "new_text": "a" });
    place.run("edit_buffer", args).await.unwrap();
    assert_eq!(place.run("get_cursor_pos", json!({})).await.unwrap()["position"], at(0, 1));
    assert_eq!(place.run("get_selection", json!({})).await.unwrap()["text"], "");
}

#[tokio::test]
async fn a_viewport_lies_within_the_text() {
    let place = Place::new();
    place.write("a", "line\n".repeat(200));
    for (args, first, last) in [
        (json!({ "path": "a" }), 0, 49),
        (json!({ "path": "a", "first_line": 10, "last_line": 20 }), 10, 20),
        (json!({ "path": "a", "first_line": 190 }), 190, 200),
        (json!({ "path": "a", "first_line": 900, "last_line": 901 }), 200, 200),
    ] {
        let seen = place.run("sync_viewport", args.clone()).await.unwrap();
        assert_eq!((seen["first_line"].as_u64(), seen["last_line"].as_u64()), (Some(first), Some(last)), "{args}");
    }
    let args = json!({ "path": "a", "first_line": 2, "last_line": 1 });
    assert_eq!(place.code("sync_viewport", args).await, Code::BadArguments);
}
