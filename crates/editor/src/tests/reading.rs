//! `open_file`.

use super::*;
use crate::encoding::digest_of;

#[tokio::test]
async fn a_file_is_read_by_its_absolute_and_by_its_relative_path() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\nthree");
    for path in ["a.txt", "./a.txt", "home/../a.txt", text(&place.path("a.txt"))] {
        let answer = place.run("open_file", json!({ "path": path })).await.unwrap();
        let expected = json!({
            "path": place.path("a.txt"), "bytes": 13, "lines": 3, "encoding": "utf-8", "language": null,
            "is_dirty": false, "version": answer["version"], "content": "one\ntwo\nthree", "digest": digest_of(b"one\ntwo\nthree"),
        });
        assert_eq!(answer, expected, "{path}");
    }
}

#[tokio::test]
async fn a_part_of_a_file_is_read_by_lines() {
    let place = Place::new();
    place.write("a.txt", "one\ntwo\nthree\n");
    for (args, content, is_partial) in [
        (json!({ "path": "a.txt", "offset": 1, "limit": 1 }), "two\n", true),
        (json!({ "path": "a.txt", "offset": 2 }), "three\n", true),
        (json!({ "path": "a.txt", "limit": 3 }), "one\ntwo\nthree\n", false),
        (json!({ "path": "a.txt", "offset": 9 }), "", true),
    ] {
        let answer = place.run("open_file", args.clone()).await.unwrap();
        assert_eq!((&answer["content"], &answer["is_partial"]), (&json!(content), &json!(is_partial)), "{args}");
        assert_eq!(answer["digest"], digest_of(b"one\ntwo\nthree\n"), "that of the whole file");
    }
}

#[tokio::test]
async fn what_is_no_text_comes_as_base64() {
    let place = Place::new();
    place.write("a.bin", [0xFF, 0, 1]);
    let answer = place.run("open_file", json!({ "path": "a.bin" })).await.unwrap();
    assert_eq!((&answer["encoding"], &answer["content"]), (&json!("base64"), &json!("/wAB")));
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_and_one_that_just_fits_is_not() {
    let place = Place::new();
    let most = usize::try_from(crate::roots::read::MAX_BYTES).unwrap();
    place.write("fits", vec![b'a'; most]);
    place.write("large", vec![b'a'; most + 1]);
    assert!(place.run("open_file", json!({ "path": "fits" })).await.is_ok());
    assert_eq!(place.code("open_file", json!({ "path": "large" })).await, Code::TooLarge);
}

#[tokio::test]
async fn what_is_read_is_what_was_opened_when_it_was_prepared() {
    let place = Place::new();
    place.write("a.txt", "old");
    let prepared = place.prepare("open_file", json!({ "path": "a.txt" })).await.unwrap();
    fs::remove_file(place.path("a.txt")).unwrap();
    std::os::unix::fs::symlink(place.outside.join("secret"), place.path("a.txt")).unwrap();
    assert_eq!(prepared.run(ProgressSink::unseen()).await.unwrap()["content"], "old");
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let place = Place::new();
    place.write("a.txt", "");
    for (args, named) in [
        (json!({}), "`path` is missing"),
        (json!({ "path": 1 }), "`path` must be a string, not a number"),
        (json!({ "path": null }), "`path` is missing"),
        (json!({ "path": "a.txt", "limit": 0 }), "`limit` must be a whole number from 1"),
        (json!({ "path": "a.txt", "limit": "1" }), "`limit` must be a whole number from 1 to 4294967295, not a string"),
        (json!({ "path": "a.txt", "offset": -1 }), "`offset` must be a whole number"),
        (json!({ "path": "a.txt", "offest": 1 }), "no argument \"offest\"; it takes `path`, `offset`, `limit`"),
        (json!({ "path": "" }), "the path is empty"),
        (json!({ "path": "home" }), "it is a folder"),
    ] {
        let refusal = place.run("open_file", args.clone()).await.unwrap_err();
        assert_eq!(refusal.code, Code::BadArguments, "{args}");
        assert!(refusal.message.contains(named), "{args}: {}", refusal.message);
    }
    assert_eq!(place.code("open_file", json!({ "path": "none" })).await, Code::NotFound);
}

//
#[tokio::test]
async fn of_two_folders_the_nearest_counts_and_relative_paths_are_the_firsts() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("a.txt", "outer");
    place.write("sub/a.txt", "inner");
    let roots = |names: &[&str]| -> Vec<policy::GrantRoot> {
        names.iter().map(|name| policy::GrantRoot::new(text(&place.path(name))).unwrap()).collect()
    };
    for (names, path, expected) in [
        (&["sub", ""][..], "a.txt".to_owned(), "inner"),
        (&["", "sub"], "a.txt".to_owned(), "outer"),
        (&["", "sub"], text(&place.path("sub/a.txt")).to_owned(), "inner"),
        (&["sub"], text(&place.path("sub//a.txt")).to_owned(), "inner"),
    ] {
        let args = json!({ "path": path });
        let order = VerbOrder { roots: roots(names), ..place.order("open_file", &args) };
        let answer = place.runtime.prepare(order).await.unwrap().run(ProgressSink::unseen()).await.unwrap();
        assert_eq!(answer["content"], expected, "{names:?} {path}");
    }
    let args = json!({ "path": place.path("a.txt") });
    let order = VerbOrder { roots: roots(&["sub"]), ..place.order("open_file", &args) };
    let refusal = place.runtime.prepare(order).await.unwrap_err();
    assert_eq!(refusal.code, Code::OutsideRoot);
    assert!(refusal.message.contains(text(&place.path("sub"))), "{}", refusal.message);
}

//
#[tokio::test]
async fn a_narrowed_folder_is_walked_to_without_leaving_the_approved_one() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.write("sub/a.txt", "inner");
    std::os::unix::fs::symlink(&place.outside, place.path("way")).unwrap();
    let narrowed = |name: &str| vec![place.root().narrowed_to(text(&place.path(name))).unwrap()];
    let args = json!({ "path": "a.txt" });
    let order = VerbOrder { roots: narrowed("sub"), ..place.order("open_file", &args) };
    assert_eq!(
        place.runtime.prepare(order).await.unwrap().run(ProgressSink::unseen()).await.unwrap()["content"],
        "inner"
    );
    let args = json!({ "path": "secret" });
    let order = VerbOrder { roots: narrowed("way"), ..place.order("open_file", &args) };
    assert_eq!(place.runtime.prepare(order).await.unwrap_err().code, Code::OutsideRoot);
}

#[tokio::test]
async fn a_folder_that_is_reached_through_a_link_is_not_opened() {
    let place = Place::new();
    std::os::unix::fs::symlink(&place.outside, place.path("link")).unwrap();
    let roots = vec![policy::GrantRoot::new(text(&place.path("link"))).unwrap()];
    let args = json!({ "path": "secret" });
    let refusal = place.runtime.prepare(VerbOrder { roots, ..place.order("open_file", &args) }).await.unwrap_err();
    assert_eq!(refusal.code, Code::OutsideRoot);
    assert!(refusal.message.contains("symbolic link"), "{}", refusal.message);
}
