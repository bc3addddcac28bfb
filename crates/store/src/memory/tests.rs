//! The index on a real file.

use std::sync::Mutex;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("workspace/index.db");
    Place { _folder: folder, path }
}

fn document(path: &str, title: &str, body: &str) -> IndexedDocument {
    IndexedDocument {
        path: path.to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        kind: "note".to_owned(),
        workspace: "w".to_owned(),
        ..IndexedDocument::default()
    }
}

fn index(documents: Vec<IndexedDocument>) -> (MemoryIndex, Place) {
    let place = place();
    let (mut index, opening) = MemoryIndex::open(&place.path, "/root").unwrap();
    assert_eq!(opening, IndexOrigin::Made);
    index.apply(documents.into_iter().map(|d| IndexChange::Put(Box::new(d)))).unwrap();
    (index, place)
}

fn paths(index: &MemoryIndex, query: &str) -> Vec<String> {
    let found = index.search(query, &DocumentFilter::default(), 10).unwrap();
    found.hits.into_iter().map(|hit| hit.entry.path).collect()
}

// W-02
#[test]
fn a_title_and_a_tag_count_for_more_than_the_text() {
    let filler = "ten words of nothing that has to do with it";
    let in_body = document("body.md", "Other", &format!("gateway gateway gateway {filler}"));
    let in_title = document("title.md", "Gateway", &format!("three more words {filler}"));
    let tagged = IndexedDocument {
        tags: vec!["gateway".to_owned()],
        ..document("tag.md", "Other", &format!("three more {filler}"))
    };
    let others = (0..9).map(|i| document(&format!("{i}.md"), "Other", filler));
    let (index, _place) = index([in_body, in_title, tagged].into_iter().chain(others).collect());
    assert_eq!(paths(&index, "gateway"), ["title.md", "tag.md", "body.md"]);
}

// W-02
#[test]
fn words_are_found_by_their_parts_and_without_their_accents() {
    let text =
        "calls getContextFor in crates/prism/src/home.rs with max_file_bytes, über Größe, HTTPServer, 検索エンジン";
    let (index, _place) = index(vec![document("a.md", "A", text), document("b.md", "B", "nothing of it")]);
    for query in [
        "context",
        "getContextFor",
        "getcontextfor",
        "getContext*",
        "home",
        "home.rs",
        "prism/src",
        "file",
        "max_file_bytes",
        "max_file*",
        "uber",
        "GROSSE",
        "größe",
        "server",
        "httpserver",
        "検索",
        "エンジン",
    ] {
        // ß is a letter of its own to the tokenizer, not a double s.
        let expected: &[&str] = if query == "GROSSE" { &[] } else { &["a.md"] };
        assert_eq!(paths(&index, query), expected, "{query}");
    }
}

// W-02
#[test]
fn a_snippet_marks_what_was_found_and_has_no_seams() {
    let text =
        format!("{}\n\nthen it calls getContextFor\nthe workspace {}", "before ".repeat(60), "after ".repeat(60));
    let (index, _place) = index(vec![document("a.md", "A", &text)]);
    let found = index.search("context", &DocumentFilter::default(), 10).unwrap();
    let snippet = &found.hits[0].snippet;
    assert!(snippet.contains("get«Context»For the workspace"), "{snippet}");
    assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
}

// W-02
#[test]
fn phrases_exclusions_and_beginnings_narrow_a_search() {
    let (index, _place) =
        index(vec![document("a.md", "A", "wake the agent"), document("b.md", "B", "the agent and then wake codex")]);
    assert_eq!(paths(&index, "wake agent").len(), 2);
    assert_eq!(paths(&index, "\"wake the agent\""), ["a.md"]);
    assert_eq!(paths(&index, "wake -codex"), ["a.md"]);
    assert_eq!(paths(&index, "-codex"), ["a.md"]);
    assert_eq!(paths(&index, "cod*"), ["b.md"]);
}

// W-02
#[test]
fn where_no_note_has_all_words_those_with_some_are_found() {
    let (index, _place) = index(vec![document("a.md", "A", "bells"), document("b.md", "B", "whistles and bells")]);
    let found = index.search("how do whistles work", &DocumentFilter::default(), 10).unwrap();
    assert_eq!((found.matched, found.total), (MatchMode::Any, 1));
    let found = index.search("bells", &DocumentFilter::default(), 1).unwrap();
    assert_eq!((found.matched, found.total, found.hits.len()), (MatchMode::All, 2, 1));
    let found = index.search("?!", &DocumentFilter::default(), 1).unwrap();
    assert_eq!((found.matched, found.total, found.hits.len()), (MatchMode::Newest, 2, 1));
}

#[test]
fn a_filter_keeps_the_rest_out() {
    let at = |path: &str, domain: &str, repository: &str| IndexedDocument {
        domain: domain.to_owned(),
        repository: repository.to_owned(),
        ..document(path, "x", "word")
    };
    let mut tagged = at("shop-web.md", "shop", "web");
    tagged.tags = vec!["Auth".to_owned(), "web".to_owned()];
    tagged.status = "Done".to_owned();
    tagged.kind = "plan".to_owned();
    let (index, _place) = index(vec![at("all.md", "", ""), at("shop.md", "shop", ""), tagged, at("ops.md", "ops", "")]);
    let find = |filter: DocumentFilter| {
        let found = index.search("word", &filter, 10).unwrap();
        let mut paths: Vec<String> = found.hits.into_iter().map(|hit| hit.entry.path).collect();
        paths.sort();
        let mut listed: Vec<String> = index.entries(&filter, 10).unwrap().0.into_iter().map(|e| e.path).collect();
        listed.sort();
        assert_eq!(paths, listed);
        paths.join(" ")
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(find(DocumentFilter { domain: text("shop"), ..DocumentFilter::default() }), "shop-web.md shop.md");
    let ladder = DocumentFilter { domain: text("shop"), reach: ScopeReach::AboveAndBelow, ..DocumentFilter::default() };
    assert_eq!(find(ladder), "all.md shop-web.md shop.md");
    assert_eq!(find(DocumentFilter { repository: text("web"), ..DocumentFilter::default() }), "shop-web.md");
    assert_eq!(
        find(DocumentFilter { tags: vec!["auth".to_owned(), "none".to_owned()], ..DocumentFilter::default() }),
        "shop-web.md"
    );
    assert_eq!(find(DocumentFilter { statuses: vec!["done".to_owned()], ..DocumentFilter::default() }), "shop-web.md");
    assert_eq!(find(DocumentFilter { kinds: vec!["plan".to_owned()], ..DocumentFilter::default() }), "shop-web.md");
    assert_eq!(find(DocumentFilter { workspace: text("other"), ..DocumentFilter::default() }), "");
}

#[test]
fn what_is_put_again_or_removed_is_no_longer_found_as_it_was() {
    let (mut index, _place) = index(vec![document("a.md", "A", "first"), document("b.md", "B", "first")]);
    let changes = [
        IndexChange::Put(Box::new(document("a.md", "A", "second"))),
        IndexChange::Remove { path: "b.md".to_owned() },
        IndexChange::Remove { path: "never.md".to_owned() },
    ];
    index.apply(changes.into_iter()).unwrap();
    assert_eq!(paths(&index, "first"), [""; 0]);
    assert_eq!(paths(&index, "second"), ["a.md"]);
    assert_eq!(index.stamps().unwrap().len(), 1);
    let sql = "SELECT count(*) FROM words WHERE words MATCH 'first'";
    let left: i64 = index.connection.query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "not even in the ranking of others");
}

#[test]
fn an_index_that_is_broken_or_of_another_version_or_root_is_replaced() {
    let open = |place: &Place, root: &str| MemoryIndex::open(&place.path, root).unwrap().1;
    let (kept, place) = index(vec![document("a.md", "A", "text")]);
    drop(kept);
    assert_eq!(open(&place, "/root"), IndexOrigin::Kept);
    assert_eq!(open(&place, "/elsewhere"), IndexOrigin::Replaced("it is of another folder"));
    Connection::open(&place.path).unwrap().pragma_update(None, "user_version", VERSION + 1).unwrap();
    assert_eq!(open(&place, "/elsewhere"), IndexOrigin::Replaced("it is of another version of Prism"));
    fs::write(&place.path, "this is no database, and long enough to be looked at as one".repeat(20)).unwrap();
    assert_eq!(open(&place, "/elsewhere"), IndexOrigin::Replaced("it is broken"));
    Connection::open(&place.path).unwrap().execute_batch("DROP TABLE document; DROP TABLE words").unwrap();
    assert_eq!(open(&place, "/elsewhere"), IndexOrigin::Replaced("it is broken"));
    assert_eq!(open(&place, "/elsewhere"), IndexOrigin::Kept);
}

#[test]
fn changes_of_another_process_show_in_the_version() {
    let (index, place) = index(vec![]);
    let before = index.version().unwrap();
    let (mut other, _) = MemoryIndex::open(&place.path, "/root").unwrap();
    other.apply([IndexChange::Put(Box::new(document("a.md", "A", "text")))].into_iter()).unwrap();
    assert_ne!(index.version().unwrap(), before);
    assert_eq!(paths(&index, "text"), ["a.md"]);
}

// W-02
#[test]
fn no_text_is_an_invalid_query() {
    let shared = Mutex::new(index(vec![document("a.md", "A", "some text")]).0);
    let pieces = prop::collection::vec(
        prop_oneof![
            any::<String>(),
            prop::sample::select(vec![
                "\"", "*", "-", "AND", "OR", "NOT", "NEAR(", ")", "^", ":", "{", "\0", "+", "'", " ", "a"
            ])
            .prop_map(str::to_owned),
        ],
        0..20,
    );
    proptest!(|(pieces in pieces)| {
        let text = pieces.concat();
        let found = shared.lock().unwrap().search(&text, &DocumentFilter::default(), 5);
        prop_assert!(found.is_ok(), "{text:?}: {found:?}");
    });
}
