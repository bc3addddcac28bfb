use serde_json::json;

use super::*;

fn edited(text: &str, edits: Value) -> Result<String, String> {
    let Value::Array(edits) = edits else { panic!("a list") };
    let edits = read(edits).and_then(|edits| placed(text, edits)).map_err(|refusal| refusal.message)?;
    apply(text, &edits).map(|(new, _)| new).map_err(|overlap| overlap.to_string())
}

fn at(start: (u64, u64), end: (u64, u64), new_text: &str) -> Value {
    let place = |(line, character)| json!({ "line": line, "character": character });
    json!({ "range": { "start": place(start), "end": place(end) }, "new_text": new_text })
}

#[test]
fn edits_are_about_the_text_as_it_was_in_any_order() {
    let edits = json!([at((1, 0), (1, 3), "2"), at((0, 0), (0, 0), "first "), { "old_text": "three", "new_text": "" }]);
    assert_eq!(edited("one\ntwo\nthree", edits).unwrap(), "first one\n2\n");
}

#[test]
fn insertions_at_one_place_stay_in_order() {
    let edits = json!([at((0, 1), (0, 1), "1"), at((0, 1), (0, 1), "2"), at((0, 1), (0, 2), "3")]);
    assert_eq!(edited("ab", edits).unwrap(), "a123");
}

#[test]
fn places_are_counted_in_utf_16_and_lines_as_editors_do() {
    let text = "a😀b\r\nß\rend";
    for (start, end, expected) in [
        ((0, 3), (0, 4), "a😀X\r\nß\rend"),
        ((0, 1), (0, 3), "aXb\r\nß\rend"),
        ((1, 0), (1, 1), "a😀b\r\nX\rend"),
        ((2, 0), (2, 99), "a😀b\r\nß\rX"),
        ((0, 99), (1, 0), "a😀bXß\rend"),
        ((2, 3), (2, 3), "a😀b\r\nß\rendX"),
    ] {
        assert_eq!(edited(text, json!([at(start, end, "X")])).unwrap(), expected, "{start:?}");
    }
    assert_eq!(edited("", json!([at((0, 0), (0, 0), "X")])).unwrap(), "X");
    assert_eq!(edited("a\n", json!([at((1, 0), (1, 0), "X")])).unwrap(), "a\nX");
}

#[test]
fn an_edit_that_has_no_certain_place_is_refused() {
    for (edits, why) in [
        (json!([at((0, 2), (0, 2), "")]), "edit 0: line 0 has no place 2: it is within a character"),
        (json!([at((3, 0), (3, 0), "")]), "edit 0: there is no line 3; the last is 1"),
        (json!([at((0, 1), (0, 0), "")]), "ends before it starts"),
        (json!([{ "old_text": "aa", "new_text": "" }]), "more than once"),
        (json!([{ "old_text": "none", "new_text": "" }]), "is not in the text"),
        (json!([{ "old_text": "", "new_text": "" }]), "`old_text` is empty"),
        (json!([{ "new_text": "" }]), "needs a `range` or an `old_text`"),
        (json!([{ "old_text": "x" }]), "edit 0: `new_text` is missing"),
        (json!([]), "must hold 1 to 1000 edits"),
        (json!([1]), "edit 0 must be an object"),
        (json!([{ "range": 1, "new_text": "" }]), "`range` must be an object"),
        (json!([{ "range": { "start": {} }, "new_text": "" }]), "`start` has no `line`"),
        (json!([at((0, 0), (0, 1), ""), at((0, 0), (0, 1), "")]), "edits 0 and 1 overlap"),
        (json!([{ "old_text": "x", "new_text": "", "all": true }]), "no argument \"all\""),
    ] {
        let error = edited("a😀\naaa", edits.clone()).unwrap_err();
        assert!(error.contains(why), "{edits}: {error}");
    }
    let mut edit = at((0, 0), (0, 1), "b");
    edit["old_text"] = "b".into();
    assert!(edited("a", json!([edit])).unwrap_err().contains("is not `old_text`"));
}
