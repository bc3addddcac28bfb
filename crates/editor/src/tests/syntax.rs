//! `analyze_syntax` as it is ordered.

use super::*;

//
#[tokio::test]
async fn a_file_is_parsed_and_an_open_text_before_it() {
    let place = Place::new();
    place.write("a.rs", "fn on_disk() {}\n");
    let answer = place.run("analyze_syntax", json!({ "path": "a.rs" })).await.unwrap();
    assert_eq!((&answer["language"], &answer["has_errors"]), (&json!("rust"), &json!(false)));
    assert_eq!((&answer["version"], &answer["outline"][0]["name"]), (&json!(null), &json!("on_disk")));
    assert_eq!(answer["path"], json!(place.path("a.rs")));
    assert!(answer.get("tree").is_none());

    place.run("open_file", json!({ "path": "a.rs" })).await.unwrap();
    let edit = json!({ "path": "a.rs", "old_text": "on_disk() {", "new_text": "unsaved( {" });
    let version = place.run("edit_buffer", edit).await.unwrap()["version"].clone();
    let answer = place.run("analyze_syntax", json!({ "path": "a.rs", "tree": true, "depth": 1 })).await.unwrap();
    assert_eq!((&answer["version"], &answer["outline"][0]["name"]), (&version, &json!("unsaved")));
    assert_eq!((&answer["has_errors"], &answer["errors"][0]["message"]), (&json!(true), &json!("`)` is missing")));
    assert_eq!(answer["tree"]["kind"], "source_file");
    assert_eq!(place.read("a.rs"), "fn on_disk() {}\n");
}

#[tokio::test]
async fn what_cannot_be_parsed_is_refused() {
    let place = Place::new();
    place.write("a.rs", "fn a() {}\n");
    place.write("a.unknown", "text");
    place.write("binary.rs", [0, 159, 146, 150]);
    let huge = fs::File::create(place.path("huge.json")).unwrap();
    huge.set_len(1 << 30).unwrap();
    std::os::unix::fs::symlink(&place.outside, place.path("out")).unwrap();
    fs::write(place.outside.join("a.rs"), "fn secret() {}\n").unwrap();
    for (args, code) in [
        (json!({}), Code::BadArguments),
        (json!({ "path": 1 }), Code::BadArguments),
        (json!({ "path": "a.rs", "depth": 65 }), Code::BadArguments),
        (json!({ "path": "a.rs", "limit": 0 }), Code::BadArguments),
        (json!({ "path": "a.rs", "range": 1 }), Code::BadArguments),
        (json!({ "path": "a.rs", "queries": true }), Code::BadArguments),
        (json!({ "path": "none.rs" }), Code::NotFound),
        (json!({ "path": "a.unknown" }), Code::Unsupported),
        (json!({ "path": "binary.rs" }), Code::BadArguments),
        (json!({ "path": "huge.json" }), Code::TooLarge),
        (json!({ "path": "out/a.rs" }), Code::OutsideRoot),
        (json!({ "path": "../outside/a.rs" }), Code::OutsideRoot),
        (json!({ "path": "home/management-token" }), Code::OutsideRoot),
    ] {
        assert_eq!(place.code("analyze_syntax", args.clone()).await, code, "{args}");
    }
    // Deleted between the two phases: what was opened is what is parsed.
    let prepared = place.prepare("analyze_syntax", json!({ "path": "a.rs" })).await.unwrap();
    fs::remove_file(place.path("a.rs")).unwrap();
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap()["outline"][0]["name"], "a");
}
