//! What an agent is told on arrival.

use super::*;

fn shop() -> Desk {
    Desk::new(&[
        ("OVERVIEW.md", "---\nname: The whole\n---\n# All\n\nEverything is here."),
        ("README.md", "for people"),
        ("decisions/260101-old.md", "---\nstatus: accepted\ntags: [api]\n---\nOld reasons."),
        ("decisions/260301-new.md", "---\nstatus: proposed\ncategory: net\n---\nNew reasons."),
        ("_features/search.md", "Searching."),
        ("shop/README.md", "---\ndescription: The shop\n---\nShop."),
        ("shop/lessons/260201-cache.md", "Caches lie."),
        ("shop/web/README.md", "Web."),
        ("shop/web/plans/260401-redesign.md", "Colours."),
        ("ops/notes/disk.md", "Disks."),
        ("ops/lessons/260202-ops.md", "Ops lesson."),
    ])
}

// W-02
#[test]
fn on_arrival_the_overview_is_in_full_and_the_rest_by_its_front_matter() {
    let desk = shop();
    let answer = desk.context(ContextQuery::default());
    assert_eq!(answer["overview"]["text"], "# All\n\nEverything is here.");
    assert_eq!(answer["overview"]["_meta"]["document_path"], "OVERVIEW.md");
    assert_eq!(paths(&answer["decisions"]), ["decisions/260301-new.md", "decisions/260101-old.md"], "newest first");
    assert_eq!(answer["decisions"][0]["front_matter"]["status"], "proposed");
    assert_eq!(answer["decisions"][0]["body"], Value::Null);
    assert_eq!(paths(&answer["lessons"]), ["ops/lessons/260202-ops.md", "shop/lessons/260201-cache.md"]);
    assert_eq!(answer["lessons"][1]["scope"], "shop");
    assert_eq!(answer["recent"].as_array().unwrap().len(), 3);
    assert_eq!(paths(&answer["overviews"]), ["shop/README.md", "shop/web/README.md"]);
    assert_eq!(
        answer["topics"],
        serde_json::json!({"decisions": 2, "features": 1, "lessons": 2, "notes": 1, "plans": 1})
    );
    let tree = answer["tree"].as_str().unwrap();
    assert!(tree.contains("./\n  _features/\n  decisions/\n  ops/\n    lessons/"), "{tree}");
    assert!(!tree.contains("search.md"), "{tree}");
    assert_eq!(answer["left_out"], Value::Null);
}

// W-02
#[test]
fn a_narrower_scope_hears_of_itself_and_of_what_is_above_it() {
    let desk = shop();
    let answer = desk.context(ContextQuery { scope: domain("shop"), ..ContextQuery::default() });
    assert_eq!(answer["overview"]["text"], "Shop.");
    assert_eq!(answer["decisions"].as_array().unwrap().len(), 2, "of the whole workspace");
    assert_eq!(paths(&answer["lessons"]), ["shop/lessons/260201-cache.md"], "not the other domain's");
    assert_eq!(paths(&answer["overviews"]), ["shop/web/README.md"]);
    let web = NoteScope { repository: Some("web".to_owned()), ..NoteScope::default() };
    let answer = desk.context(ContextQuery { scope: web, ..ContextQuery::default() });
    assert_eq!((&answer["scope"], &answer["overview"]["text"]), (&"shop/web".into(), &"Web.".into()));
    // Without an overview of its own it gets the one above.
    let answer = desk.context(ContextQuery { scope: domain("ops"), ..ContextQuery::default() });
    assert_eq!(answer["overview"]["_meta"]["document_path"], "OVERVIEW.md");
}

// W-02
#[test]
fn an_unknown_scope_is_an_error_that_names_the_known() {
    let desk = shop();
    let fails = |scope: NoteScope| {
        desk.memory.context(&ContextQuery { scope, ..ContextQuery::default() }, &mut quiet).unwrap_err().to_string()
    };
    assert_eq!(fails(domain("shp")), "there is no domain \"shp\"; known: ops, shop");
    let scope = NoteScope { repository: Some("wb".to_owned()), ..domain("shop") };
    assert_eq!(fails(scope), "there is no repository \"wb\"; known: web");
    let scope = NoteScope { workspace: Some("x".to_owned()), ..NoteScope::default() };
    assert!(fails(scope).starts_with("there is no workspace \"x\"; known: "));
}

// W-02
#[test]
fn tiers_topics_and_filters_choose_what_is_told() {
    let desk = shop();
    let answer = desk.context(ContextQuery { tier: ContextTier::Overview, ..ContextQuery::default() });
    assert_eq!(answer["decisions"], Value::Null);
    assert_eq!(answer["notes"], serde_json::json!({"decisions": 2, "lessons": 2, "plans": 1, "notes": 2}));
    let answer = desk.context(ContextQuery { tier: ContextTier::Full, ..ContextQuery::default() });
    assert_eq!(answer["decisions"][0]["body"], "New reasons.");
    let topics = vec!["features".to_owned(), "nothing".to_owned()];
    let answer = desk.context(ContextQuery { topics, only_topics: true, ..ContextQuery::default() });
    assert_eq!(paths(&answer["topic:features"]), ["_features/search.md"]);
    assert_eq!(
        (&answer["overview"], &answer["decisions"], &answer["tree"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(
        answer["left_out"][0].as_str().unwrap().contains("no topic \"nothing\" here; there are: decisions, features")
    );
    for context in [
        ContextQuery { statuses: vec!["Accepted".to_owned()], ..ContextQuery::default() },
        ContextQuery { tags: vec!["api".to_owned()], ..ContextQuery::default() },
    ] {
        assert_eq!(paths(&desk.context(context)["decisions"]), ["decisions/260101-old.md"]);
    }
    let answer = desk.context(ContextQuery { categories: vec!["net".to_owned()], ..ContextQuery::default() });
    assert_eq!(paths(&answer["decisions"]), ["decisions/260301-new.md"]);
}

// W-02
#[test]
fn a_bad_front_matter_hides_nothing_and_is_named() {
    let desk = Desk::new(&[("notes/a.md", "---\ntags: [open\n---\nhidden treasure")]);
    assert_eq!(desk.search("treasure"), ["notes/a.md"]);
    let answer = desk.context(ContextQuery::default());
    let problem = answer["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("notes/a.md: its front matter cannot be read"), "{problem}");
}

// W-02
#[test]
fn an_answer_is_bounded_and_says_what_is_missing() {
    let desk = Desk::new(&[("README.md", &"long overview ".repeat(5_000))]);
    for i in 0..60 {
        desk.write(&format!("decisions/2601{:02}-{i}.md", i % 28 + 1), &"reasons ".repeat(2_000));
        desk.write(&format!("lessons/{i}.md"), &format!("---\ndescription: {}\n---\n", "x".repeat(1_500)));
    }
    for tier in [ContextTier::Overview, ContextTier::FrontMatter, ContextTier::Full] {
        let answer = desk.context(ContextQuery { tier, ..ContextQuery::default() });
        let size = answer.to_string().len();
        assert!(size < 56 << 10, "{tier:?}: {size}");
        assert!(answer["overview"]["text"].as_str().unwrap().contains("read README.md for the rest"));
        if tier != ContextTier::Overview {
            let said = answer["left_out"].to_string();
            assert!(said.contains("of 60 in decisions") && said.contains("of 60 in lessons"), "{said}");
        }
    }
}

#[test]
fn a_search_says_how_it_understood_and_how_much_more_there_is() {
    let desk = Desk::new(&[]);
    for i in 0..15 {
        desk.write(&format!("notes/{i}.md"), "a bell");
    }
    let search = |query: &str, limit: Option<usize>| {
        let search = Search { query: query.to_owned(), limit, ..Search::default() };
        desk.memory.search(&search, &mut quiet).unwrap()
    };
    let answer = search("bell", None);
    assert_eq!((&answer["total"], &answer["more"]), (&15.into(), &5.into()));
    assert_eq!(answer["results"][0]["snippet"], "a «bell»");
    assert!(answer["remarks"][0].as_str().unwrap().starts_with("5 more: raise `limit`"));
    assert_eq!(search("bell", Some(100))["more"], Value::Null);
    assert_eq!(search("bell whistle", None)["matched"], "any");
    assert_eq!(search("", None)["matched"], "newest");
}
