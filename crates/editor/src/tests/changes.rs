//! `create_file`, `write_file`, `edit_buffer`, `delete_file`, `rename_file`.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;
use crate::{args::edit_bytes, encoding::digest_of};

#[tokio::test]
async fn a_file_is_made_and_not_over_another() {
    let place = Place::new();
    let args = json!({ "path": "a.txt", "content": "one\n" });
    let ActionPreview::Diff { path, old_text_digest: None, unified } = place.shown("create_file", args.clone()).await
    else {
        panic!("a difference");
    };
    assert_eq!(path, text(&place.path("a.txt")));
    assert_eq!(unified, format!("--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+one\n"));
    assert!(!place.path("a.txt").exists(), "nothing happens before it is run");

    let answer = place.run("create_file", args.clone()).await.unwrap();
    assert_eq!(answer, json!({ "path": path, "bytes": 4, "digest": digest_of(b"one\n") }));
    assert_eq!(place.read("a.txt"), "one\n");
    assert_eq!(place.code("create_file", args).await, Code::BadArguments);
    assert_eq!(place.names(), ["a.txt", "home"], "nothing else is left behind");
}

#[tokio::test]
async fn a_file_is_made_in_folders_that_are_made_for_it() {
    let place = Place::new();
    let args = json!({ "path": "a/b/c.bin", "content": "/wAB", "encoding": "base64" });
    assert_eq!(place.code("create_file", args.clone()).await, Code::NotFound);
    let mut args = args;
    args["parents"] = true.into();
    let prepared = place.prepare("create_file", args).await.unwrap();
    assert!(!place.path("a").exists());
    prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!(fs::read(place.path("a/b/c.bin")).unwrap(), [0xFF, 0, 1]);

    place.run("create_file", json!({ "path": "d/e", "kind": "folder", "parents": true })).await.unwrap();
    assert!(place.path("d/e").is_dir());
    let up = json!({ "path": "none/../../x", "parents": true });
    assert_eq!(place.code("create_file", up).await, Code::NotFound);
}

//
#[tokio::test]
async fn a_file_that_somebody_else_has_made_meanwhile_is_left_alone() {
    let place = Place::new();
    let prepared = place.prepare("create_file", json!({ "path": "a", "content": "mine" })).await.unwrap();
    place.write("a", "theirs");
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!(place.read("a"), "theirs");
}

#[tokio::test]
async fn a_file_is_replaced_with_its_mode_and_without_its_hard_links() {
    let place = Place::new();
    place.write("a", "old\nsame\n");
    fs::set_permissions(place.path("a"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(place.path("a"), place.path("other")).unwrap();
    let args = json!({ "path": "a", "content": "new\nsame\n", "digest": digest_of(b"old\nsame\n") });
    let ActionPreview::Diff { path, old_text_digest, unified } = place.shown("write_file", args.clone()).await else {
        panic!("a difference");
    };
    assert_eq!(old_text_digest, Some(digest_of(b"old\nsame\n")));
    assert_eq!(unified, format!("--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n-old\n+new\n same\n"));

    place.run("write_file", args.clone()).await.unwrap();
    assert_eq!((place.read("a").as_str(), place.read("other").as_str()), ("new\nsame\n", "old\nsame\n"));
    assert_eq!(fs::metadata(place.path("a")).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(place.code("write_file", args).await, Code::Changed, "it was made for another text");
    assert_eq!(place.names(), ["a", "home", "other"]);
}

#[tokio::test]
async fn what_cannot_be_written_is_refused() {
    let place = Place::new();
    place.write("a", "");
    place.write("fixed", "");
    fs::set_permissions(place.path("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    symlink("a", place.path("link")).unwrap();
    let large = "a".repeat(usize::try_from(crate::roots::read::MAX_BYTES).unwrap() + 1);
    for (path, content, code) in [
        ("none", "x", Code::NotFound),
        ("fixed", "x", Code::Failed),
        ("link", "x", Code::BadArguments),
        ("home/..", "x", Code::BadArguments),
        ("a/b", "x", Code::BadArguments),
        ("a", &large, Code::TooLarge),
    ] {
        assert_eq!(place.code("write_file", json!({ "path": path, "content": content })).await, code, "{path}");
    }
    assert_eq!(place.code("write_file", json!({ "path": "a" })).await, Code::BadArguments);
    let args = json!({ "path": "a", "content": "?", "encoding": "base64" });
    assert_eq!(place.code("write_file", args).await, Code::BadArguments);
    assert_eq!(place.read("a"), "");
}

//
#[tokio::test]
async fn a_file_that_has_changed_since_it_was_shown_is_not_replaced() {
    type Change = fn(&Place);
    let place = Place::new();
    for (verb, args) in [
        ("write_file", json!({ "path": "a", "content": "new" })),
        ("delete_file", json!({ "path": "a" })),
        ("rename_file", json!({ "path": "a", "new_path": "b" })),
    ] {
        let changes: [(&str, Change); 4] = [
            ("another text", |place| place.write("a", "other")),
            ("nothing", |place| fs::remove_file(place.path("a")).unwrap()),
            ("a link", |place| {
                fs::remove_file(place.path("a")).unwrap();
                symlink(place.outside.join("secret"), place.path("a")).unwrap();
            }),
            ("a folder", |place| {
                fs::remove_file(place.path("a")).unwrap();
                fs::create_dir(place.path("a")).unwrap();
            }),
        ];
        for (what, change) in changes {
            place.write("a", "old");
            let prepared = place.prepare(verb, args.clone()).await.unwrap();
            change(&place);
            assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed, "{verb}: {what}");
            assert!(!place.path("b").exists());
            let _ = fs::remove_dir(place.path("a")).or_else(|_| fs::remove_file(place.path("a")));
            place.assert_untouched();
        }
    }
}

//
#[tokio::test]
async fn what_was_shown_in_a_folder_that_is_another_by_then_is_not_done() {
    let place = Place::new();
    for (verb, args) in [
        ("create_file", json!({ "path": "sub/new" })),
        ("create_file", json!({ "path": "sub/x/new", "parents": true })),
        ("write_file", json!({ "path": "sub/a", "content": "new" })),
        ("delete_file", json!({ "path": "sub/a" })),
        ("rename_file", json!({ "path": "sub/a", "new_path": "b" })),
        ("rename_file", json!({ "path": "c", "new_path": "sub/c" })),
    ] {
        fs::create_dir(place.path("sub")).unwrap();
        place.write("sub/a", "old");
        place.write("c", "");
        let prepared = place.prepare(verb, args.clone()).await.unwrap();
        fs::rename(place.path("sub"), place.path("moved")).unwrap();
        symlink(&place.outside, place.path("sub")).unwrap();
        assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed, "{verb} {args}");
        assert_eq!(place.read("moved/a"), "old", "{verb} {args}");
        fs::remove_file(place.path("sub")).unwrap();
        fs::remove_dir_all(place.path("moved")).unwrap();
        place.assert_untouched();
    }
}

#[tokio::test]
async fn a_text_is_edited_by_place_and_by_words() {
    let place = Place::new();
    place.write("a", "one\ntwo\n");
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 } });
    let edits = json!([{ "range": range, "new_text": "1" }, { "old_text": "two", "new_text": "2" }]);
    let args = json!({ "path": "a", "edits": edits, "digest": digest_of(b"one\ntwo\n") });
    let ActionPreview::Diff { unified, .. } = place.shown("edit_buffer", args.clone()).await else {
        panic!("a difference")
    };
    assert!(unified.ends_with("@@ -1,2 +1,2 @@\n-one\n-two\n+1\n+2\n"), "{unified}");
    let answer = place.run("edit_buffer", args.clone()).await.unwrap();
    assert_eq!((&answer["digest"], &answer["is_dirty"]), (&json!(digest_of(b"1\n2\n")), &json!(true)));
    assert_eq!(place.read("a"), "one\ntwo\n", "the file is not the buffer");
    assert_eq!(place.code("edit_buffer", args).await, Code::Changed);

    let args = json!({ "path": "a", "old_text": "1", "new_text": "eins", "version": answer["version"] });
    place.run("edit_buffer", args).await.unwrap();
    let saved = place.run("save_buffer", json!({ "path": "a" })).await.unwrap();
    assert_eq!(saved["is_dirty"], false);
    assert_eq!(place.read("a"), "eins\n2\n");

    place.write("b", [0, 1]);
    for args in [
        json!({ "path": "b", "old_text": "1", "new_text": "2" }),
        json!({ "path": "a" }),
        json!({ "path": "a", "edits": {} }),
        json!({ "path": "a", "edits": [], "old_text": "" }),
        json!({ "path": "a", "old_text": "none", "new_text": "" }),
    ] {
        assert_eq!(place.code("edit_buffer", args.clone()).await, Code::BadArguments, "{args}");
    }
}

#[tokio::test]
async fn what_is_deleted_is_told_before() {
    let place = Place::new();
    place.write("a", "four");
    fs::create_dir_all(place.path("full/empty")).unwrap();
    symlink(place.outside.join("secret"), place.path("link")).unwrap();
    for (path, what) in [("a", "file"), ("full/empty/", "folder"), ("link", "link")] {
        let prepared = place.prepare("delete_file", json!({ "path": path })).await.unwrap();
        let ActionPreview::Delete { path: told, what: kind, bytes } = prepared.shown() else { panic!("a deletion") };
        assert_eq!((told.as_str(), kind), (text(&place.path(path.trim_end_matches('/'))), what));
        assert!(what != "file" || bytes == 4);
        prepared.run(ProgressSink::unseen()).await.unwrap();
        assert!(place.path(path).symlink_metadata().is_err(), "{path}");
    }
    place.write("full/file", "");
    assert_eq!(place.code("delete_file", json!({ "path": "full" })).await, Code::BadArguments);
    assert_eq!(place.code("delete_file", json!({ "path": "none" })).await, Code::NotFound);
    assert_eq!(place.code("delete_file", json!({ "path": "." })).await, Code::BadArguments);
    assert_eq!(place.code("delete_file", json!({ "path": place.granted })).await, Code::BadArguments);
    place.assert_untouched();
}

#[tokio::test]
async fn a_folder_that_was_filled_meanwhile_is_not_deleted() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    let prepared = place.prepare("delete_file", json!({ "path": "empty" })).await.unwrap();
    place.write("empty/a", "");
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert!(place.path("empty/a").exists());
}

#[tokio::test]
async fn a_name_is_changed_and_no_other_is_lost() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("a", "a");
    place.write("b", "b");
    let args = json!({ "path": "a", "new_path": "b" });
    assert_eq!(place.code("rename_file", args).await, Code::BadArguments);
    let args = json!({ "path": "a", "new_path": "sub/c" });
    let expected = ActionPreview::Rename {
        from: text(&place.path("a")).into(),
        to: text(&place.path("sub/c")).into(),
        replaces: false,
    };
    let prepared = place.prepare("rename_file", args).await.unwrap();
    assert_eq!(prepared.shown(), expected);
    prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!(place.read("sub/c"), "a");

    let args = json!({ "path": "sub/c", "new_path": "b", "overwrite": true });
    let prepared = place.prepare("rename_file", args).await.unwrap();
    assert!(matches!(prepared.shown(), ActionPreview::Rename { replaces: true, .. }));
    prepared.run(ProgressSink::unseen()).await.unwrap();
    assert_eq!(place.read("b"), "a");

    // what was free is taken by now.
    let prepared = place.prepare("rename_file", json!({ "path": "b", "new_path": "d" })).await.unwrap();
    place.write("d", "theirs");
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap_err().code, Code::Changed);
    assert_eq!((place.read("b").as_str(), place.read("d").as_str()), ("a", "theirs"));
    let args = json!({ "path": "sub", "new_path": "sub/sub" });
    assert_eq!(place.code("rename_file", args).await, Code::BadArguments);
}

//
#[test]
fn the_size_of_an_edit_is_known_before_it_is_prepared() {
    for (verb, args, expected) in [
        ("create_file", json!({ "content": "four" }), Some(4)),
        ("create_file", json!({}), Some(0)),
        ("write_file", json!({ "content": "/wAB", "encoding": "base64" }), Some(3)),
        ("edit_buffer", json!({ "edits": [{ "new_text": "ab" }, { "new_text": "c" }, 7] }), Some(3)),
        ("edit_buffer", json!({ "old_text": "long", "new_text": "ab" }), Some(2)),
        ("delete_file", json!({ "path": "a" }), None),
        ("open_file", json!({ "path": "a" }), None),
    ] {
        let verb = VerbSpec::named(verb).unwrap();
        assert_eq!(edit_bytes(verb, args.as_object().unwrap()), expected, "{args}");
    }
}

/// What is shown says what becomes of a text that no line break ends, and a name with one in it cannot forge a line.
#[tokio::test]
async fn a_difference_is_not_mistaken() {
    let place = Place::new();
    let name = "a\n+forged";
    place.write(name, "old");
    let args = json!({ "path": name, "content": "new" });
    let ActionPreview::Diff { unified, .. } = place.shown("write_file", args).await else { panic!("a difference") };
    assert!(!unified.lines().any(|line| line == "+forged"), "{unified}");
    assert!(unified.contains("\\ No newline at end of file"), "{unified}");
    let args = json!({ "path": "empty" });
    let ActionPreview::Diff { path, unified, .. } = place.shown("create_file", args).await else {
        panic!("a difference")
    };
    assert_eq!(unified, format!("--- /dev/null\n+++ {path}\n"));
    place.write("b", [0, 1]);
    let args = json!({ "path": "b", "content": "text" });
    let ActionPreview::Diff { unified, .. } = place.shown("write_file", args).await else { panic!("a difference") };
    assert!(unified.starts_with("Not a text: 2 bytes before, 4 bytes after"), "{unified}");
}
