//! Ways out of a granted folder, each tried with every verb and in every argument that is a path. None may read or
//! change what lies outside, whatever it answers.

use std::os::{fd::AsRawFd, unix::fs::symlink};

use super::*;

/// Every verb with a path in each place that takes one.
fn orders(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("open_file", json!({ "path": path })),
        ("create_file", json!({ "path": path, "content": "written" })),
        ("create_file", json!({ "path": format!("{path}/new"), "content": "written" })),
        ("create_file", json!({ "path": format!("{path}/a/new"), "content": "written", "parents": true })),
        ("create_file", json!({ "path": format!("{path}/folder"), "kind": "folder" })),
        ("write_file", json!({ "path": path, "content": "written" })),
        ("write_file", json!({ "path": format!("{path}/secret"), "content": "written" })),
        ("edit_buffer", json!({ "path": path, "old_text": "nobody", "new_text": "written" })),
        ("find_in_file", json!({ "path": path, "text": "nobody" })),
        ("search_files", json!({ "path": path, "pattern": "*" })),
        ("search_files", json!({ "pattern": path })),
        ("search_files", json!({ "pattern": format!("{path}/*") })),
        ("explore_tree", json!({ "path": path })),
        ("get_workspace_info", json!({ "path": path })),
        ("exec_command", json!({ "command": "cat secret; echo written >new; echo written >secret", "cwd": path })),
        ("rename_file", json!({ "path": "lure", "new_path": path, "overwrite": true })),
        ("rename_file", json!({ "path": "lure", "new_path": format!("{path}/lure") })),
        ("rename_file", json!({ "path": path, "new_path": "taken" })),
        ("rename_file", json!({ "path": format!("{path}/secret"), "new_path": "taken" })),
        ("delete_file", json!({ "path": format!("{path}/secret") })),
        ("delete_file", json!({ "path": path })),
    ]
}

/// Tries all of them, as far as each goes, and looks at what is shown and answered.
async fn try_all(place: &Place, how: &str, path: &str) {
    for (verb, args) in orders(path) {
        place.write("lure", "");
        let told = match place.prepare(verb, args.clone()).await {
            Ok(prepared) => {
                let shown = serde_json::to_string(&prepared.shown()).unwrap();
                match prepared.run(ProgressSink::unseen()).await {
                    Ok(answer) => format!("{shown} {answer}"),
                    Err(refusal) => format!("{shown} {}", refusal.message),
                }
            }
            Err(refusal) => refusal.message,
        };
        // The first words of it, and the name that only a listing of the folder could tell.
        assert!(!told.contains("nobody was granted"), "{how}: {verb} {args} told {told}");
        assert!(!told.contains("\"path\":\"secret\""), "{how}: {verb} {args} told {told}");
        place.assert_untouched();
    }
}

type Way = fn(&Place) -> String;

fn link(place: &Place, target: impl AsRef<Path>) -> String {
    symlink(target, place.path("link")).unwrap();
    "link".to_owned()
}

/// What an agent could write, or have been put there before.
const WAYS: &[(&str, Way)] = &[
    ("up", |_| "../outside/secret".into()),
    ("up to a folder", |_| "../outside".into()),
    ("up alone", |_| "..".into()),
    ("up through a folder", |_| "sub/../../outside/secret".into()),
    ("up through what is not there", |_| "none/../../outside".into()),
    ("absolute", |place| text(&place.outside.join("secret")).into()),
    ("absolute, to a folder", |place| text(&place.outside).into()),
    ("absolute, up from the root", |place| format!("{}/../outside/secret", place.granted.display())),
    ("absolute, a name that begins alike", |place| format!("{}x/../outside", place.granted.display())),
    ("absolute, doubled slashes", |place| format!("/{}/..//outside", place.granted.display())),
    ("the root of all", |_| "/".into()),
    ("a link to a file", |place| link(place, place.outside.join("secret"))),
    ("a link to a folder", |place| link(place, &place.outside)),
    ("a relative link", |place| link(place, "../outside")),
    ("through a link up", |place| link(place, "..") + "/outside"),
    ("a link to a link", |place| {
        symlink("../outside", place.path("first")).unwrap();
        link(place, "first")
    }),
    ("/proc/self/root", |place| format!("/proc/self/root{}", place.outside.display())),
    ("/proc/self/root, by a link", |place| link(place, "/proc/self/root") + text(&place.outside)),
    ("/proc/self/cwd, by a link", |place| link(place, "/proc/self/cwd")),
    ("/dev/fd", |_| "/dev/fd/0".into()),
    ("a fullwidth slash", |_| "..／outside／secret".into()),
    ("one dot leaders", |_| "\u{2024}\u{2024}/outside/secret".into()),
    ("a two dot leader", |_| "\u{2025}/outside/secret".into()),
    ("the folder in capitals", |place| text(&place.granted).to_uppercase() + "/../outside"),
    ("percent signs", |_| "%2e%2e/outside".into()),
    ("a NUL", |_| "sub\0/../../outside".into()),
    ("a NUL behind", |_| "../outside/secret\0.txt".into()),
    ("a name that is too long", |_| "a".repeat(300)),
    ("a path that is too long", |_| "../outside/".repeat(500)),
    ("nothing", |_| String::new()),
    ("a pattern", |_| "../*".into()),
    ("a pattern with braces", |_| "{..,sub}/outside".into()),
    ("any folders, up", |_| "**/../../outside".into()),
    ("Prism's own folder", |_| "home".into()),
    ("Prism's own secret", |_| "home/management-token".into()),
    ("Prism's own folder, by a link", |place| link(place, "home")),
    ("Prism's own secret, by a link", |place| link(place, "home/management-token")),
    ("Prism's own folder, on the way", |_| "sub/../home".into()),
];

//
#[tokio::test]
async fn no_path_leads_out_of_a_granted_folder() {
    for (how, way) in WAYS {
        let place = Place::new();
        fs::create_dir(place.path("sub")).unwrap();
        let path = way(&place);
        try_all(&place, how, &path).await;
    }
}

// a handle to the outside that the daemon has is as good as a path.
#[tokio::test]
async fn no_descriptor_of_the_daemon_leads_out() {
    let place = Place::new();
    let (secret, folder) =
        (fs::File::open(place.outside.join("secret")).unwrap(), fs::File::open(&place.outside).unwrap());
    for fd in [secret.as_raw_fd(), folder.as_raw_fd()] {
        for way in [format!("/dev/fd/{fd}"), format!("/proc/self/fd/{fd}"), format!("/proc/thread-self/fd/{fd}")] {
            try_all(&place, &way, &way).await;
            let _ = fs::remove_file(place.path("taken"));
            let path = link(&place, &way);
            try_all(&place, &way, &path).await;
            let _ = fs::remove_file(place.path("link"));
            let _ = fs::remove_file(place.path("taken"));
        }
    }
}

// 403, not 404: whoever asks for what lies outside learns nothing of whether it is there.
#[tokio::test]
async fn outside_is_told_from_not_there() {
    let place = Place::new();
    for name in ["secret", "none"] {
        for path in [format!("../outside/{name}"), text(&place.outside.join(name)).to_owned()] {
            for (verb, args) in [
                ("open_file", json!({ "path": path })),
                ("create_file", json!({ "path": path })),
                ("write_file", json!({ "path": path, "content": "" })),
                ("delete_file", json!({ "path": path })),
                ("rename_file", json!({ "path": path, "new_path": "a" })),
                ("explore_tree", json!({ "path": path })),
                ("exec_command", json!({ "command": "true", "cwd": path })),
            ] {
                assert_eq!(place.code(verb, args).await, Code::OutsideRoot, "{verb} {path}");
            }
        }
    }
}

// a file that is outside too by another name is replaced here, and only here.
#[tokio::test]
async fn nothing_outside_is_written_through_a_hard_link() {
    let place = Place::new();
    for (verb, args) in [
        ("write_file", json!({ "path": "a", "content": "written" })),
        ("edit_buffer", json!({ "path": "a", "old_text": "nobody", "new_text": "written" })),
        ("rename_file", json!({ "path": "lure", "new_path": "a", "overwrite": true })),
        ("delete_file", json!({ "path": "a" })),
    ] {
        place.write("lure", "written");
        fs::hard_link(place.outside.join("secret"), place.path("a")).unwrap();
        place.run(verb, args).await.unwrap();
        if verb == "edit_buffer" {
            place.run("save_buffer", json!({ "path": "a" })).await.unwrap();
        }
        assert!(verb == "delete_file" || place.read("a").contains("written"), "{verb}");
        let _ = fs::remove_file(place.path("a"));
        place.assert_untouched();
    }
}

// a granted folder's own name leads to the folder itself or nowhere.
#[tokio::test]
async fn a_granted_folder_that_becomes_a_link_leads_nowhere() {
    let place = Place::new();
    let moved = place.granted.with_file_name("moved");
    fs::rename(&place.granted, &moved).unwrap();
    symlink(&place.outside, &place.granted).unwrap();
    for (verb, args) in orders("secret").into_iter().chain(orders(".")) {
        assert!(place.run(verb, args.clone()).await.is_err(), "{verb} {args}");
    }
    fs::remove_file(&place.granted).unwrap();
    fs::rename(&moved, &place.granted).unwrap();
    place.assert_untouched();
}

// whoever may rename must not carry Prism's own folder to where it is not known.
#[tokio::test]
async fn what_prisms_own_folder_lies_in_is_not_moved() {
    let place = Place::new();
    let home = place.path("above/home");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("management-token"), SECRET).unwrap();
    let surroundings = EditorEnvironment {
        env: environment(),
        owner: OwnerDaemon::this_process(&home),
        closed: vec![home.clone()],
        unsaved: None,
        settings: EditorSettings::default(),
    };
    let runtime = BuiltinEditor::new(surroundings);
    for (verb, args) in [
        ("rename_file", json!({ "path": "above", "new_path": "b" })),
        ("rename_file", json!({ "path": "above/home", "new_path": "b" })),
        ("open_file", json!({ "path": "above/home/management-token" })),
        ("exec_command", json!({ "command": "true", "cwd": "above/home" })),
        ("create_file", json!({ "path": "above/home/a/b", "parents": true })),
    ] {
        let order = VerbOrder { verb: VerbSpec::named(verb).unwrap(), ..place.order(verb, &args) };
        assert_eq!(runtime.prepare(order).await.unwrap_err().code, Code::OutsideRoot, "{verb} {args}");
    }
    assert!(home.join("management-token").exists());
}

// C1: what Prism is configured by is closed like its own folder, wherever it lies, also before it is there.
#[tokio::test]
async fn files_that_prism_is_configured_by_are_neither_read_nor_changed_nor_moved() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    fs::write(place.path("sub/prism.toml"), "port = 1").unwrap();
    fs::write(place.path("real.json"), "{}").unwrap();
    fs::write(place.path("a"), "").unwrap();
    symlink("real.json", place.path("linked.json")).unwrap();
    let files = ["sub/prism.toml", "linked.json", "later.toml"].map(|name| place.path(name));
    place.runtime.close_files(&files);
    let refused = [
        ("open_file", json!({ "path": "sub/prism.toml" })),
        ("write_file", json!({ "path": "sub/prism.toml", "content": "port = 2" })),
        ("delete_file", json!({ "path": "sub/prism.toml" })),
        ("rename_file", json!({ "path": "sub/prism.toml", "new_path": "b" })),
        ("rename_file", json!({ "path": "a", "new_path": "sub/prism.toml", "overwrite": true })),
        ("rename_file", json!({ "path": "sub", "new_path": "b" })),
        ("write_file", json!({ "path": "later.toml", "content": "port = 2" })),
        ("create_file", json!({ "path": "later.toml" })),
        ("write_file", json!({ "path": "linked.json", "content": "" })),
        ("write_file", json!({ "path": "real.json", "content": "" })),
    ];
    for (verb, args) in &refused {
        let refusal = place.run(verb, args.clone()).await.unwrap_err();
        assert_eq!(refusal.code, Code::OutsideRoot, "{verb} {args}: {refusal:?}");
        assert!(refusal.message.contains("only a person changes it"), "{verb} {args}: {refusal:?}");
    }
    assert_eq!(fs::read_to_string(place.path("sub/prism.toml")).unwrap(), "port = 1");
    let found = place.run("find_in_project", json!({ "text": "port = 1" })).await.unwrap();
    assert!(!found.to_string().contains("prism.toml"), "{found}");
    place.run("create_file", json!({ "path": "sub/beside.toml", "content": "x" })).await.unwrap();
    // Another config is in effect.
    place.runtime.close_files(&[]);
    place.run("write_file", json!({ "path": "sub/prism.toml", "content": "port = 2" })).await.unwrap();
}
