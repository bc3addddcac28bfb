//! Files are the truth: what is written, changed, moved or broken shows in the next answer.

use std::{
    os::unix::fs::symlink,
    time::{Duration, SystemTime},
};

use super::*;

fn remember_fails(desk: &Desk, note: &NewNote) -> String {
    desk.memory.remember(note, &mut quiet).unwrap_err().to_string()
}

// W-02
#[test]
fn what_is_remembered_is_found_by_the_next_search_and_by_another_process() {
    let desk = Desk::new(&[]);
    let path = desk.remember(note("Wake agents", "The bell rings twice."));
    assert!(path.starts_with(".prism/memory/notes/") && path.ends_with("-wake-agents.md"), "{path}");
    assert_eq!(desk.search("bell"), [path.as_str()]);
    let other = WorkspaceMemory::new(Some(desk.root.path()), desk.home.path());
    let search = Search { query: "wake".to_owned(), ..Search::default() };
    assert_eq!(paths(&other.search(&search, &mut quiet).unwrap()["results"]), [path.as_str()]);
    // What the other then writes is seen here.
    other.remember(&note("Bells", "A third bell."), &mut quiet).unwrap();
    assert_eq!(desk.search("bell").len(), 2);
}

// W-02
#[test]
fn a_change_of_any_kind_shows_in_the_next_answer() {
    let desk = Desk::new(&[]);
    changes_show(&desk, |query| desk.search(query));
    // A process that has just started knows the index alone, and was told of nothing.
    let desk = Desk::new(&[]);
    changes_show(&desk, |query| {
        let memory = WorkspaceMemory::new(Some(desk.root.path()), desk.home.path());
        let search = Search { query: query.to_owned(), ..Search::default() };
        paths(&memory.search(&search, &mut quiet).unwrap()["results"])
    });
}

fn changes_show(desk: &Desk, search: impl Fn(&str) -> Vec<String>) {
    assert_eq!(search("words"), [""; 0]);
    desk.write("notes/a.md", "first words");
    desk.write("notes/b.md", "other words");
    assert_eq!(search("first"), ["notes/a.md"]);
    // The same length, and the same time on it.
    let before = fs::metadata(desk.path("notes/a.md")).unwrap().modified().unwrap();
    desk.write("notes/a.md", "later words");
    fs::File::options().write(true).open(desk.path("notes/a.md")).unwrap().set_modified(before).unwrap();
    assert_eq!((search("first"), search("later").len()), (vec![], 1));
    fs::rename(desk.path("notes/a.md"), desk.path("notes/c.md")).unwrap();
    fs::remove_file(desk.path("notes/b.md")).unwrap();
    assert_eq!(search("words"), ["notes/c.md"]);
    // A base and a folder that were not there before, and what is in them.
    desk.write(".prism/memory/d.md", "own words");
    assert_eq!(search("own").len(), 1);
    desk.write(".prism/memory/deep/er/e.md", "deep words");
    assert_eq!(search("deep").len(), 1);
    desk.write("resources/workspaces/w/f.md", "words of a tree");
    assert_eq!(search("tree").len(), 1);
    fs::remove_dir_all(desk.path("resources")).unwrap();
    assert_eq!(search("tree").len(), 0);
    // Written twice within one tick of the clock that stamps files.
    for i in 0..20 {
        desk.write("notes/c.md", &format!("turn{i:02}"));
        assert_eq!(search(&format!("turn{i:02}")), ["notes/c.md"]);
    }
    // Another root in the place of this one.
    let aside = desk.root.path().with_extension("aside");
    fs::rename(desk.root.path(), &aside).unwrap();
    desk.write("notes/g.md", "new words");
    assert_eq!(search("words"), ["notes/g.md"]);
    fs::remove_dir_all(aside).unwrap();
}

#[test]
fn a_file_that_was_only_touched_or_not_at_all_is_not_indexed_again() {
    let desk = Desk::new(&[("notes/a.md", "words"), ("notes/b.md", "words")]);
    let age = |path: &str, seconds: u64| {
        let file = fs::File::options().write(true).open(desk.path(path)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    };
    age("notes/a.md", 100);
    age("notes/b.md", 100);
    let index = || desk.memory.index(&mut quiet).unwrap();
    assert_eq!((index().read, index().read), (2, 0));
    age("notes/a.md", 50);
    assert_eq!((index().read, index().read), (1, 0));
    assert_eq!(desk.search("words").len(), 2);
    // Other words, of the same length and with the same time on them.
    let before = fs::metadata(desk.path("notes/a.md")).unwrap().modified().unwrap();
    desk.write("notes/a.md", "verbs");
    fs::File::options().write(true).open(desk.path("notes/a.md")).unwrap().set_modified(before).unwrap();
    assert_eq!(desk.search("verbs"), ["notes/a.md"]);
}

// W-02
#[test]
fn a_missing_root_is_a_loud_error_from_everything() {
    let desk = Desk::new(&[("file", "")]);
    let gone = WorkspaceMemory::new(Some(&desk.path("gone")), desk.home.path());
    let said = |result: Result<Value, WorkspaceError>| result.unwrap_err().to_string();
    for said in [
        said(gone.context(&ContextQuery::default(), &mut quiet)),
        said(gone.search(&Search::default(), &mut quiet)),
        said(gone.list(&NoteListQuery::default(), &mut quiet)),
        said(gone.remember(&note("a", "b"), &mut quiet)),
        said(gone.forget("a.md", &mut quiet)),
        gone.index(&mut quiet).unwrap_err().to_string(),
        gone.rebuild(&mut quiet).unwrap_err().to_string(),
    ] {
        let root = desk.path("gone");
        let expected = "does not exist; set [workspace] root in prism.toml or pass --root";
        assert_eq!(said, format!("the workspace root {} {expected}", root.display()));
    }
    assert!(!desk.path("gone").exists());
    let file = WorkspaceMemory::new(Some(&desk.path("file")), desk.home.path());
    assert!(said(file.context(&ContextQuery::default(), &mut quiet)).contains("is not a folder"));
    // One that was there before, too.
    desk.write("notes/a.md", "words");
    assert_eq!(desk.search("words").len(), 1);
    fs::remove_dir_all(desk.root.path()).unwrap();
    assert!(said(desk.memory.search(&Search::default(), &mut quiet)).contains("does not exist"));
}

// W-02
#[test]
fn an_index_that_breaks_is_built_anew_from_the_files() {
    let desk = Desk::new(&[]);
    for i in 0..300 {
        desk.write(&format!("notes/{i}.md"), &format!("words {}", "filler ".repeat(50)));
    }
    let total = || {
        let memory = WorkspaceMemory::new(Some(desk.root.path()), desk.home.path());
        let search = Search { query: "words".to_owned(), ..Search::default() };
        memory.search(&search, &mut quiet).unwrap()["total"].clone()
    };
    assert_eq!(total(), 300);
    let index = desk.index_file();
    assert!(!index.starts_with(desk.root.path()), "never inside the user's tree");
    // As a bad disk would: the beginning is sound, so it shows only when the rest is read.
    let mut bytes = fs::read(&index).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(&index, bytes).unwrap();
    assert_eq!(total(), 300);
    fs::write(desk.index_file(), "no database").unwrap();
    assert_eq!(total(), 300);
}

#[test]
fn another_folder_above_the_root_is_noticed() {
    let (top, home) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let note = |name: &str| {
        fs::create_dir_all(top.path().join("above/root/notes")).unwrap();
        fs::write(top.path().join("above/root/notes").join(name), "words").unwrap();
    };
    note("a.md");
    let memory = WorkspaceMemory::new(Some(&top.path().join("above/root")), home.path());
    let search = || {
        let search = Search { query: "words".to_owned(), ..Search::default() };
        paths(&memory.search(&search, &mut quiet).unwrap()["results"])
    };
    assert_eq!(search(), ["notes/a.md"]);
    fs::rename(top.path().join("above"), top.path().join("aside")).unwrap();
    note("b.md");
    assert_eq!(search(), ["notes/b.md"]);
}

// W-02
#[test]
fn a_note_never_replaces_another_and_stays_beneath_the_root() {
    let desk = Desk::new(&[]);
    let title = "../../../etc/cron.d/x";
    let paths: Vec<String> = (0..3).map(|i| desk.remember(note(title, &format!("text {i}")))).collect();
    assert!(paths[1].ends_with("-etc-cron-d-x-2.md") && paths[2].ends_with("-etc-cron-d-x-3.md"), "{paths:?}");
    for (i, path) in paths.iter().enumerate() {
        assert!(fs::read_to_string(desk.path(path)).unwrap().contains(&format!("text {i}")));
    }
    let left: Vec<_> = fs::read_dir(desk.path(".prism/memory/notes")).unwrap().collect();
    assert_eq!(left.len(), 3, "no draft is left behind");
    for name in ["..", "a/b", ".git", "_x", "target", "notes"] {
        let note = NewNote { scope: domain(name), ..note("a", "b") };
        assert!(remember_fails(&desk, &note).contains("not the name of one folder"), "{name}");
    }
    let note = NewNote { topic: Some("../x".to_owned()), ..note("a", "b") };
    assert!(remember_fails(&desk, &note).contains("`topic`"));
}

// W-02
#[test]
fn nothing_is_written_through_a_link() {
    let outside = TempDir::new().unwrap();
    let desk = Desk::new(&[]);
    fs::create_dir_all(desk.path(".prism/memory")).unwrap();
    symlink(outside.path(), desk.path(".prism/memory/notes")).unwrap();
    assert!(remember_fails(&desk, &note("a", "b")).contains("symbolic link"));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_remembered_is_refused_in_words() {
    let desk = Desk::new(&[]);
    for (title, text, words) in
        [("", "b", "`title` is empty"), ("a\nb", "b", "line break"), ("a", " \n", "`text` is empty")]
    {
        assert!(remember_fails(&desk, &note(title, text)).contains(words), "{title:?}");
    }
    assert!(remember_fails(&desk, &note(&"x".repeat(201), "b")).contains("200 characters"));
    assert!(remember_fails(&desk, &note("a", &"x".repeat(300 << 10))).contains("256 KiB"));
}

// W-02
#[test]
fn a_note_goes_to_the_folder_that_the_workspace_has_for_it() {
    let decision = |scope: NoteScope| NewNote { kind: NoteKind::Decision, scope, ..note("a", "b") };
    let folder = |path: String| path.rsplit_once('/').unwrap().0.to_owned();

    let empty = Desk::new(&[("src/main.rs", "")]);
    assert_eq!(folder(empty.remember(decision(NoteScope::default()))), ".prism/memory/decisions");
    assert_eq!(folder(empty.remember(decision(domain("shop")))), ".prism/memory/shop/decisions");

    let project = Desk::new(&[("lessons/a.md", ""), ("shop/_decisions/a.md", ""), ("ops/x.txt", "")]);
    assert_eq!(folder(project.remember(decision(NoteScope::default()))), "decisions");
    assert_eq!(folder(project.remember(decision(domain("shop")))), "shop/_decisions");
    assert_eq!(folder(project.remember(decision(domain("ops")))), "ops/decisions");
    assert_eq!(folder(project.remember(decision(domain("new")))), ".prism/memory/new/decisions");
    let on_topic = NewNote { topic: Some("auth".to_owned()), ..decision(NoteScope::default()) };
    assert_eq!(folder(project.remember(on_topic)), "_auth");
    let listing = NoteListQuery { kind: Some("decision".to_owned()), limit: 50, ..NoteListQuery::default() };
    assert_eq!(project.memory.list(&listing, &mut quiet).unwrap()["total"], 6, "a decision wherever it lies");
}

// W-02
#[test]
fn what_is_forgotten_can_be_restored_and_nothing_else_can_be_forgotten() {
    let desk = Desk::new(&[("notes/a.md", "words"), ("README.md", "overview"), ("src/main.rs", "code")]);
    let forget = |path: &str| desk.memory.forget(path, &mut quiet);
    for path in ["src/main.rs", "notes/../notes/a.md", "../x.md", "/etc/passwd", "", "notes"] {
        assert!(forget(path).unwrap_err().to_string().contains("no note of this workspace"), "{path}");
    }
    assert!(forget("README.md").unwrap_err().to_string().contains("is an overview"));

    let absolute = desk.root.path().canonicalize().unwrap().join("notes/a.md");
    let answer = forget(absolute.to_str().unwrap()).unwrap();
    let id = answer["id"].as_str().unwrap().to_owned();
    assert_eq!(answer["undo"], format!("prism workspace restore {id}"));
    assert_eq!(desk.search("words"), [""; 0]);
    let kept = Forgotten::all(desk.home.path());
    assert_eq!((kept.len(), kept[0].id.as_str(), kept[0].path.as_str()), (1, id.as_str(), "notes/a.md"));

    desk.write("notes/a.md", "something newer");
    let restored = Forgotten::restore(desk.home.path(), &id).unwrap();
    assert!(restored.ends_with("notes/a-2.md"), "{restored:?}");
    assert_eq!(fs::read_to_string(restored).unwrap(), "words");
    assert_eq!(desk.search("words"), ["notes/a-2.md"]);
    for id in [id.as_str(), "..", "", "../../x"] {
        assert!(matches!(Forgotten::restore(desk.home.path(), id), Err(WorkspaceError::NotForgotten { .. })), "{id}");
    }
}

#[test]
fn callers_at_once_get_the_same_answer() {
    let desk = Desk::new(&[("notes/a.md", "words")]);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| desk.search("words"))).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), ["notes/a.md"]);
        }
    });
}

#[test]
fn an_indexing_tells_how_far_it_is() {
    let desk = Desk::new(&[("notes/a.md", "a"), ("notes/b.md", "b")]);
    let mut seen = Vec::new();
    let indexed = desk.memory.rebuild(&mut |progress| seen.push((progress.done, progress.total))).unwrap();
    assert_eq!(seen, [(0, 2), (1, 2), (2, 2)]);
    assert_eq!(indexed, IndexReport { notes: 2, read: 2, removed: 0, remarks: vec![] });
}
