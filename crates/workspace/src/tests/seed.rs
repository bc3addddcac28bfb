//! The tree of the tool that this one takes the place of: `resources/workspaces/<workspace>/<domain>/<repository>`.

use super::*;

fn devtools() -> Desk {
    let plan = "---\nname: Migrate MCP Transport\nstatus: done\ncreated: 2026-03-01\ntags: [mcp, nestjs]\n---\n# Plan";
    let base = "resources/workspaces/devtools";
    Desk::new(&[
        (&format!("{base}/OVERVIEW.md"), "Tools."),
        (&format!("{base}/common/_plans/260301-migrate.md"), plan),
        (&format!("{base}/common/_features/workflow-optimization/long-term-memory.md"), "Feature."),
        (&format!("{base}/common/nestjs-workspace-memory/OVERVIEW.md"), "Nest."),
        (&format!("{base}/common/_documentations/testing-with-inspector.md"), "Inspect."),
        ("README.md", "not of the tree"),
    ])
}

// W-02
#[test]
fn the_tree_of_workspaces_is_understood() {
    let desk = devtools();
    let answer = desk.context(ContextQuery::default());
    assert_eq!(answer["workspace"], "devtools", "the only one need not be named");
    assert_eq!(answer["overview"]["text"], "Tools.");
    let features =
        ContextQuery { scope: domain("common"), topics: vec!["features".to_owned()], ..ContextQuery::default() };
    let answer = desk.context(features);
    assert_eq!(
        paths(&answer["topic:features"]),
        ["resources/workspaces/devtools/common/_features/workflow-optimization/long-term-memory.md"]
    );
    let recent = &answer["recent"][0];
    assert_eq!((&recent["title"], &recent["status"]), (&"Migrate MCP Transport".into(), &"done".into()));
    assert_eq!(desk.search("\"not of the tree\""), [""; 0]);
    let path =
        desk.remember(NewNote { kind: NoteKind::Lesson, scope: domain("common"), ..note("Sessions", "Stateless.") });
    assert!(path.starts_with("resources/workspaces/devtools/common/_lessons/"), "{path}");
}

// W-02
#[test]
fn of_several_workspaces_one_has_to_be_named_and_search_finds_in_all() {
    let desk = devtools();
    desk.write("resources/workspaces/web/_lessons/a.md", "Inspect too.");
    let fails = desk.memory.context(&ContextQuery::default(), &mut quiet).unwrap_err().to_string();
    assert_eq!(fails, "there are several workspaces here; say which with `workspace`: devtools, web");
    let scope = NoteScope { workspace: Some("web".to_owned()), ..NoteScope::default() };
    let answer = desk.context(ContextQuery { scope, ..ContextQuery::default() });
    assert_eq!(paths(&answer["lessons"]), ["resources/workspaces/web/_lessons/a.md"]);
    assert_eq!(desk.search("inspect").len(), 2);
}
