//! What is told of changes from outside, with real files.

use std::{collections::BTreeSet, process::Command, sync::Arc, time::Duration};

use tokio::{sync::broadcast::Receiver, time::timeout};

use super::*;
use crate::happening::EditorEvent;

/// Who listens to what happens in the granted folder.
struct Listener<'a> {
    place: &'a Place,
    told: Receiver<Arc<EditorEvent>>,
    ends: usize,
}

const PATIENCE: Duration = Duration::from_secs(20);

impl<'a> Listener<'a> {
    async fn new(place: &'a Place) -> Self {
        fs::create_dir_all(place.path("zz")).unwrap();
        place.runtime.watch(1, vec![place.root()]).await.unwrap();
        Self { place, told: place.runtime.listen(), ends: 0 }
    }

    async fn next(&mut self) -> Arc<EditorEvent> {
        timeout(PATIENCE, self.told.recv()).await.expect("nothing is told").unwrap()
    }

    /// All that is told of what was done so far: until what is done in the last folder is told, which is the last.
    async fn told(&mut self) -> BTreeSet<String> {
        self.ends += 1;
        self.place.write(&format!("zz/{}", self.ends), "");
        let mut told = BTreeSet::new();
        loop {
            let happening = self.next().await;
            let data = &happening.data;
            let name = |path: &str| {
                let name = Path::new(path).strip_prefix(&self.place.granted).unwrap().display().to_string();
                if name.is_empty() { ".".to_owned() } else { name }
            };
            let path = name(data["path"].as_str().unwrap_or_default());
            match happening.event.name {
                "directory_changed" if path == "zz" => return told,
                _ if path.starts_with("zz") => continue,
                _ => {}
            }
            let more = match (data["new_path"].as_str(), data["change"].as_str(), data["from"].as_str()) {
                (Some(new), ..) => format!(" > {}", name(new)),
                (None, Some(change), Some(from)) => format!(" {change} {from}"),
                (None, Some(change), None) => format!(" {change}"),
                _ => String::new(),
            };
            told.insert(format!("{} {path}{more}", happening.event.name));
        }
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn what_comes_changes_and_goes_outside_is_told() {
    let place = Place::new();
    fs::create_dir_all(place.path("sub/target")).unwrap();
    fs::create_dir_all(place.path("node_modules")).unwrap();
    place.write("a", "");
    let mut listener = Listener::new(&place).await;
    place.write("sub/new", "");
    assert_eq!(listener.told().await, set(&["file_created sub/new", "directory_changed sub"]));
    place.write("a", "changed");
    assert_eq!(listener.told().await, set(&[]), "nobody watches that file, or has it open");
    fs::rename(place.path("a"), place.path("sub/b")).unwrap();
    let renamed = ["file_renamed a > sub/b", "directory_changed .", "directory_changed sub"];
    assert_eq!(listener.told().await, set(&renamed));
    fs::remove_file(place.path("sub/b")).unwrap();
    assert_eq!(listener.told().await, set(&["file_deleted sub/b", "directory_changed sub"]));
    // What tools make, what is ignored, and what is Prism's own.
    place.write("sub/target/x", "");
    place.write("node_modules/x", "");
    place.write("home/x", "");
    assert_eq!(listener.told().await, set(&[]));
    place.write(".gitignore", "*.log\n");
    assert_eq!(listener.told().await, set(&["file_created .gitignore", "directory_changed ."]));
    place.write("x.log", "");
    place.write("x.txt", "");
    assert_eq!(listener.told().await, set(&["file_created x.txt", "directory_changed ."]));
    fs::create_dir(place.path("made")).unwrap();
    place.write("made/in", "");
    assert_eq!(listener.told().await, set(&["file_created made/in", "directory_changed .", "directory_changed made"]));
    fs::remove_dir_all(place.path("made")).unwrap();
    let gone = ["file_deleted made/in", "directory_changed .", "directory_changed made"];
    assert_eq!(listener.told().await, set(&gone));
}

#[tokio::test]
async fn projects_that_come_and_go_and_their_settings_are_told() {
    let place = Place::new();
    place.write("package.json", "{}");
    let mut listener = Listener::new(&place).await;
    place.write("Cargo.toml", "");
    let came = ["file_created Cargo.toml", "directory_changed .", "workspace_changed Cargo.toml created"];
    assert_eq!(listener.told().await, set(&came));
    place.write("package.json", "{ }");
    assert_eq!(listener.told().await, set(&["config_updated package.json modified"]));
    fs::remove_file(place.path("package.json")).unwrap();
    let went = ["file_deleted package.json", "directory_changed .", "workspace_changed package.json deleted"];
    assert_eq!(listener.told().await, set(&went));
    place.write(".editorconfig", "");
    let settings = ["file_created .editorconfig", "directory_changed .", "config_updated .editorconfig created"];
    assert_eq!(listener.told().await, set(&settings));
}

#[tokio::test]
async fn buffers_follow_what_is_done_outside_and_own_saves_are_no_news() {
    let place = Place::new();
    place.write("a", "one\n");
    place.write("b", "one\n");
    let mut listener = Listener::new(&place).await;
    place.write(".ignore", "ignored\n");
    place.write("ignored", "");
    listener.told().await;
    place.run("watch_file", json!({ "path": "ignored" })).await.unwrap();
    assert_eq!(listener.told().await, set(&[]), "it was there before");
    for name in ["a", "b"] {
        place.run("open_file", json!({ "path": name })).await.unwrap();
        place.run("watch_file", json!({ "path": name })).await.unwrap();
    }
    let opened = ["file_opened a", "file_opened b"];
    assert_eq!(listener.told().await, set(&opened));
    place.write("a", "two\n");
    assert_eq!(listener.told().await, set(&["buffer_changed a", "file_watched a modified outside"]));

    place.run("edit_buffer", json!({ "path": "a", "old_text": "two", "new_text": "three" })).await.unwrap();
    place.run("save_buffer", json!({ "path": "a" })).await.unwrap();
    assert_eq!(place.read("a"), "three\n");
    let saved = ["buffer_changed a", "file_saved a", "file_watched a modified prism"];
    assert_eq!(listener.told().await, set(&saved), "and no change from outside");

    // Unsaved text stays, and its file is known to be another.
    place.run("edit_buffer", json!({ "path": "b", "old_text": "one", "new_text": "mine" })).await.unwrap();
    place.write("b", "theirs\n");
    assert_eq!(listener.told().await, set(&["buffer_changed b", "file_watched b modified outside"]));
    let buffers = place.run("get_buffers", json!({})).await.unwrap();
    let told = |i: usize, name: &str| buffers["buffers"][i][name].clone();
    assert_eq!((told(0, "is_changed_on_disk"), told(1, "is_changed_on_disk")), (json!(false), json!(true)));
    // An open file that is moved is open where it is then; one that is removed is closed.
    fs::rename(place.path("a"), place.path("c")).unwrap();
    let renamed = ["file_renamed a > c", "directory_changed .", "file_watched a > c"];
    assert!(listener.told().await.is_superset(&set(&renamed)));
    let buffers = place.run("get_buffers", json!({})).await.unwrap();
    assert_eq!(buffers["buffers"][1]["path"], json!(place.path("c")));
    fs::remove_file(place.path("c")).unwrap();
    assert!(listener.told().await.contains("file_closed c"));
    assert_eq!(place.run("get_buffers", json!({})).await.unwrap()["buffers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_file_is_watched_by_name_for_one_holder_wherever_it_lies() {
    let place = Place::new();
    fs::create_dir(place.path("target")).unwrap();
    place.write("target/log", "");
    let mut told = place.runtime.listen();
    for path in ["target/log", "not-yet"] {
        let answer = place.run_for(7, "watch_file", json!({ "path": path })).await.unwrap();
        assert_eq!(answer, json!({ "path": place.path(path), "is_watched": true }));
    }
    for (act, path, change) in [
        (Box::new(|| place.write("target/log", "x")) as Box<dyn Fn()>, "target/log", "modified"),
        (Box::new(|| place.write("not-yet", "x")), "not-yet", "created"),
        (Box::new(|| fs::remove_file(place.path("target/log")).unwrap()), "target/log", "deleted"),
    ] {
        place.write("target/other", "nobody watches it");
        act();
        loop {
            let happening = timeout(PATIENCE, told.recv()).await.expect("nothing is told").unwrap();
            if happening.event.name != "file_watched" {
                continue;
            }
            assert_eq!(happening.to, Some(7));
            assert_eq!(happening.data, json!({ "path": place.path(path), "change": change, "from": "outside" }));
            break;
        }
    }
    let stopped = place.run_for(7, "watch_file", json!({ "path": "not-yet", "stop": true })).await.unwrap();
    assert_eq!(stopped["is_watched"], false);

    for (args, code) in [
        (json!({}), Code::BadArguments),
        (json!({ "path": "target" }), Code::BadArguments),
        (json!({ "path": "no/where" }), Code::NotFound),
        (json!({ "path": place.outside.join("secret") }), Code::OutsideRoot),
        (json!({ "path": "../outside/secret" }), Code::OutsideRoot),
        (json!({ "path": "home/management-token" }), Code::OutsideRoot),
    ] {
        assert_eq!(place.code("watch_file", args.clone()).await, code, "{args}");
    }
    for i in 0..256 {
        place.run_for(8, "watch_file", json!({ "path": format!("f{i}") })).await.unwrap();
    }
    let refused = place.run_for(8, "watch_file", json!({ "path": "one-more" })).await.unwrap_err();
    assert_eq!(refused.code, Code::TooLarge);
}

#[tokio::test]
async fn who_has_left_is_told_nothing_and_others_still_are() {
    let place = Place::new();
    let mut listener = Listener::new(&place).await;
    place.runtime.watch(2, vec![place.root()]).await.unwrap();
    place.run_for(2, "watch_file", json!({ "path": "a" })).await.unwrap();
    place.runtime.leave(2).await;
    place.write("a", "");
    assert_eq!(listener.told().await, set(&["file_created a", "directory_changed ."]));
    assert!(place.is_watching());
    place.runtime.leave(1).await;
    assert!(!place.is_watching(), "nothing is watched for nobody");
    listener.place.runtime.watch(3, vec![place.root()]).await.unwrap();
    assert!(place.is_watching());
    place.runtime.close().await;
    assert!(!place.is_watching());
}

impl Place {
    /// Whether this process asks the kernel for changes beneath the granted folder.
    fn is_watching(&self) -> bool {
        use std::os::unix::fs::MetadataExt;
        let sought = format!("ino:{:x} ", fs::metadata(&self.granted).unwrap().ino());
        let about =
            |entry: std::io::Result<fs::DirEntry>| fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        fs::read_dir("/proc/self/fdinfo").unwrap().any(|entry| about(entry).contains(&sought))
    }
}

#[tokio::test]
async fn many_changes_at_once_are_told_as_one() {
    let place = Place::new();
    let mut listener = Listener::new(&place).await;
    fs::create_dir(place.path("many")).unwrap();
    for i in 0..2_000 {
        place.write(&format!("many/{i}"), "");
    }
    loop {
        let happening = listener.next().await;
        if happening.data["is_everything"] == true {
            assert_eq!((happening.event.name, happening.path.as_ref()), ("directory_changed", Some(&place.granted)));
            break;
        }
    }
}

#[tokio::test]
async fn what_is_in_a_repositorys_own_folder_is_nobodys_file() {
    let place = Place::new();
    let git = |args: &[&str]| {
        let mut run = Command::new("git");
        run.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]).args(args);
        let output = run.current_dir(&place.granted).env("HOME", &place.outside).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    git(&["init", "-q"]);
    place.write("a", "");
    let mut listener = Listener::new(&place).await;
    git(&["add", "a"]);
    git(&["commit", "-q", "-m", "one"]);
    git(&["checkout", "-q", "-b", "topic/two"]);
    assert_eq!(listener.told().await, set(&[]));
}

#[tokio::test]
async fn what_prism_has_done_itself_is_not_told_as_if_it_came_from_outside() {
    let place = Place::new();
    place.write("a", "one\n");
    let mut listener = Listener::new(&place).await;
    place.run("watch_file", json!({ "path": "a" })).await.unwrap();
    // Nobody has it open.
    place.run("write_file", json!({ "path": "a", "content": "two\n" })).await.unwrap();
    assert_eq!(listener.told().await, set(&["file_watched a modified prism"]));
    place.write("a", "three\n");
    assert_eq!(listener.told().await, set(&["file_watched a modified outside"]));
    // The same text that Prism wrote before, and what somebody else makes of it afterwards.
    place.run("write_file", json!({ "path": "a", "content": "two\n" })).await.unwrap();
    place.write("a", "four\n");
    assert_eq!(listener.told().await, set(&["file_watched a modified outside"]));

    // Written while it is open, it is its writer's doing, whoever notices first.
    place.run("open_file", json!({ "path": "a" })).await.unwrap();
    listener.told().await;
    let mut told = place.runtime.listen();
    place.run("write_file", json!({ "path": "a", "content": "five\n" })).await.unwrap();
    let changed = loop {
        let happening = timeout(PATIENCE, told.recv()).await.expect("nothing is told").unwrap();
        if happening.event.name == "buffer_changed" {
            break happening;
        }
    };
    assert_eq!((changed.by, &changed.data["reason"]), (Some(1), &json!("edit")), "{changed:?}");
    assert_eq!(listener.told().await, set(&["buffer_changed a", "file_watched a modified prism"]));
    // What somebody else wrote is theirs although a verb has seen it before the watch did.
    place.write("a", "six\n");
    place.run("open_file", json!({ "path": "a" })).await.unwrap();
    assert_eq!(listener.told().await, set(&["buffer_changed a", "file_watched a modified outside"]));

    let mut told = place.runtime.listen();
    place.run("create_file", json!({ "path": "new", "content": "" })).await.unwrap();
    place.run("watch_file", json!({ "path": "new" })).await.unwrap();
    listener.told().await;
    place.run("rename_file", json!({ "path": "new", "new_path": "newer" })).await.unwrap();
    listener.told().await;
    place.run("delete_file", json!({ "path": "newer" })).await.unwrap();
    listener.told().await;
    place.write("newer", "");
    listener.told().await;
    fs::remove_file(place.path("newer")).unwrap();
    listener.told().await;
    let mut from = Vec::new();
    while let Ok(happening) = told.try_recv() {
        let is_about = happening.path.as_ref().is_some_and(|path| !path.starts_with(place.path("zz")));
        if is_about && happening.event.name.starts_with("file_") {
            from.push(format!("{} {}", happening.event.name, happening.data["from"].as_str().unwrap_or("-")));
        }
    }
    let done = ["file_created prism", "file_renamed prism", "file_deleted prism"];
    assert_eq!(from, [&done[..], &["file_created outside", "file_deleted outside"]].concat());
}
