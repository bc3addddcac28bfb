//! `replace_text`, and searches that see what is open and not saved.

use super::*;

async fn text_of(place: &Place, name: &str) -> String {
    place.run("open_file", json!({ "path": name })).await.unwrap()["content"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn words_are_replaced_in_the_buffers_and_only_there() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("a", "one $1 one\r\n");
    place.write("sub/b", "😀one\n");
    place.write("c", "two\n");
    place.write("binary", b"one\0");
    let args = json!({ "text": "one", "new_text": "$1", "preview": true });
    let answer = place.run("replace_text", args.clone()).await.unwrap();
    assert_eq!((&answer["replacements"], &answer["is_preview"]), (&json!(3), &json!(true)));
    let diff = answer["diff"].as_str().unwrap();
    assert!(diff.contains("-one $1 one\r\n+$1 $1 $1\r\n") && diff.contains("-😀one\n+😀$1\n"), "{diff}");
    assert_eq!(
        (text_of(&place, "a").await, text_of(&place, "sub/b").await),
        ("one $1 one\r\n".into(), "😀one\n".into())
    );

    let mut args = args;
    args["preview"] = false.into();
    let ActionPreview::Diff { unified, .. } = place.shown("replace_text", args.clone()).await else {
        panic!("a difference")
    };
    assert_eq!(unified, diff, "what is shown is what the preview told");
    let answer = place.run("replace_text", args.clone()).await.unwrap();
    let files = answer["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!((&files[0]["path"], &files[0]["replacements"]), (&json!(place.path("a")), &json!(2)));
    assert_eq!((text_of(&place, "a").await, text_of(&place, "sub/b").await), ("$1 $1 $1\r\n".into(), "😀$1\n".into()));
    assert_eq!(place.read("a"), "one $1 one\r\n", "it is not saved");
    assert_eq!(fs::read(place.path("binary")).unwrap(), b"one\0");
    assert_eq!(place.run("replace_text", args).await.unwrap()["replacements"], 0);

    // One step back brings a file back.
    place.run("edit_buffer", json!({ "path": "a", "undo": 1 })).await.unwrap();
    assert_eq!(text_of(&place, "a").await, "one $1 one\r\n");
}

#[tokio::test]
async fn expressions_are_replaced_with_what_they_captured() {
    let place = Place::new();
    place.write("a.rs", "fn one(x: u8)\nfn two(y: u8)\nnot\n");
    place.write("b.txt", "fn one(x: u8)\n");
    for (args, expected) in [
        (
            json!({ "pattern": r"fn (\w+)\((?P<arg>\w+)", "new_text": "def ${1}_($arg$$" }),
            "def one_(x$: u8)\ndef two_(y$: u8)\nnot\n",
        ),
        (
            json!({ "pattern": "^", "new_text": "> ", "path": "a.rs" }),
            "> def one_(x$: u8)\n> def two_(y$: u8)\n> not\n",
        ),
        (json!({ "pattern": r"\s*$", "new_text": ";" }), "> def one_(x$: u8);\n> def two_(y$: u8);\n> not;\n"),
        (
            json!({ "pattern": "DEF ", "ignore_case": true, "new_text": "" }),
            "> one_(x$: u8);\n> two_(y$: u8);\n> not;\n",
        ),
    ] {
        let mut args = args;
        args["glob"] = "*.rs".into();
        place.run("replace_text", args.clone()).await.unwrap();
        assert_eq!(text_of(&place, "a.rs").await, expected, "{args}");
    }
    assert_eq!(text_of(&place, "b.txt").await, "fn one(x: u8)\n");
}

#[tokio::test]
async fn too_much_is_refused_and_nothing_is_changed() {
    let place = Place::new();
    for i in 0..201 {
        place.write(&format!("f{i}"), "word word\n");
    }
    place.write("large", "x".repeat(1 << 20));
    for (args, code) in [
        (json!({ "text": "word", "new_text": "w" }), Code::TooLarge),
        (json!({ "text": "word", "new_text": "w", "glob": "f1?", "limit": 19 }), Code::TooLarge),
        (json!({ "pattern": "x+", "new_text": "$0".repeat(9), "path": "large" }), Code::TooLarge),
        (json!({ "pattern": "x", "new_text": "y", "path": "large", "limit": 10_000 }), Code::TooLarge),
        (json!({ "text": "word", "new_text": "\0", "path": "f1" }), Code::BadArguments),
        (json!({ "text": "word", "pattern": "word", "new_text": "w" }), Code::BadArguments),
        (json!({ "new_text": "w" }), Code::BadArguments),
        (json!({ "text": "word" }), Code::BadArguments),
        (json!({ "pattern": "(", "new_text": "" }), Code::BadArguments),
        (json!({ "text": "word", "new_text": "", "path": "none" }), Code::NotFound),
        (json!({ "text": "nobody", "new_text": "", "path": place.outside.join("secret") }), Code::OutsideRoot),
    ] {
        assert_eq!(place.code("replace_text", args.clone()).await, code, "{args}");
    }
    let args = json!({ "text": "word", "new_text": "w", "glob": "f1?", "limit": 20 });
    assert_eq!(place.run("replace_text", args).await.unwrap()["replacements"], 20);
    for i in [0, 100, 200] {
        assert_eq!(text_of(&place, &format!("f{i}")).await, "word word\n");
    }
    place.assert_untouched();
}

// A-10
#[tokio::test]
async fn what_has_changed_since_it_was_shown_is_not_replaced_anywhere() {
    let place = Place::new();
    place.write("a", "word");
    place.write("b", "word");
    let prepared = place.prepare("replace_text", json!({ "text": "word", "new_text": "w" })).await.unwrap();
    place.run("edit_buffer", json!({ "path": "b", "old_text": "word", "new_text": "words" })).await.unwrap();
    assert_eq!(prepared.run(crate::progress::ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!((text_of(&place, "a").await, text_of(&place, "b").await), ("word".into(), "words".into()));
}

#[tokio::test]
async fn searches_see_what_is_not_saved() {
    let place = Place::new();
    place.write("a", "on the disk\n");
    place
        .run("edit_buffer", json!({ "path": "a", "old_text": "on the disk", "new_text": "in the buffer" }))
        .await
        .unwrap();
    let count =
        async |args: Value| place.run("find_in_project", args).await.unwrap()["matches"].as_array().unwrap().len();
    for path in [".", "a"] {
        assert_eq!(count(json!({ "text": "buffer", "path": path })).await, 1);
        assert_eq!(count(json!({ "text": "disk", "path": path })).await, 0);
    }
    let answer = place.run("find_in_file", json!({ "path": "a", "text": "buffer" })).await.unwrap();
    assert_eq!(answer["matches"][0]["range"]["start"], json!({ "line": 0, "character": 7 }));
    assert!(answer["version"].is_u64());
    let answer = place.run("replace_text", json!({ "text": "buffer", "new_text": "end" })).await.unwrap();
    assert_eq!(answer["replacements"], 1);
    assert_eq!((text_of(&place, "a").await, place.read("a")), ("in the end\n".into(), "on the disk\n".into()));
    // Somebody removes the file; the text is still there, and all that there is.
    fs::remove_file(place.path("a")).unwrap();
    assert_eq!(count(json!({ "text": "the end" })).await, 1);
    assert_eq!(count(json!({ "text": "the end", "glob": "*.rs" })).await, 0);
}
