//! The plugin for Neovim: files that come and go together. (E-02)

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{ok, prism, read, words};
use crate::support::{Home, Launch};

/// Neovim's folder, and the file in it that Neovim runs at its start.
const FOLDER: &str = ".config/nvim";
const ENTRY: &str = "plugin/prism.lua";

/// All files beneath a folder, by their names in it.
fn files_in(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(inner).into_iter().flatten().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => drop(files.insert(entry.path().strip_prefix(folder).unwrap().into(), read(&entry.path()))),
            }
        }
    }
    files
}

/// The plugin as it is in the repository.
fn plugin() -> BTreeMap<PathBuf, String> {
    let mut files = files_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/nvim"));
    files.retain(|name, _| name.extension().is_some_and(|extension| extension == "lua"));
    files
}

/// Makes what an older Prism would have left, and remembered: the entry alone, or with a file that is no more.
async fn older(home: &Home, files: &[&str]) {
    ok(home, &["install", "neovim"]).await;
    let folder = home.path().join(FOLDER);
    for entry in fs::read_dir(home.path().join(".prism/installed")).unwrap().flatten().map(|entry| entry.path()) {
        let Some(record) = (entry.extension().unwrap() == "json").then(|| read(&entry)) else { continue };
        let mut record: Value = serde_json::from_str(&record).unwrap();
        let path = PathBuf::from(record["path"].as_str().unwrap());
        let name = path.strip_prefix(&folder).unwrap().to_owned();
        if files.iter().all(|file| name != Path::new(file)) {
            for gone in [&path, &entry, &entry.with_extension("after")] {
                fs::remove_file(gone).unwrap();
            }
            // Whoever writes one file makes no folders for others.
            for folder in ["lua/prism/verbs", "lua/prism", "lua"] {
                let _ = fs::remove_dir(home.path().join(FOLDER).join(folder));
            }
            continue;
        }
        for path in [&path, &entry.with_extension("after")] {
            fs::write(path, "-- older\n").unwrap();
        }
        let folders = record["folders"].as_array_mut().unwrap();
        folders.retain(|made| Path::new(made.as_str().unwrap()).exists());
        fs::write(&entry, record.to_string()).unwrap();
    }
}

#[tokio::test]
async fn the_plugin_comes_and_goes_with_the_folders_that_were_made_for_it() {
    let home = Home::new();
    let folder = home.path().join(FOLDER);
    let said = ok(&home, &["install", "neovim", "--dry-run"]).await;
    assert!(said.contains("plugin would be installed in Neovim") && !folder.exists(), "{said}");
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin installed in Neovim") && said.contains("next: start nvim"), "{said}");
    assert_eq!(files_in(&folder), plugin(), "every file of the plugin is in the program");
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin already installed"), "{said}");
    let said = ok(&home, &["uninstall", "neovim"]).await;
    assert!(said.contains("is gone, as before"), "{said}");
    assert!(!home.path().join(".config").exists() && !home.path().join(".prism/installed").exists());
    let said = ok(&home, &["uninstall", "neovim"]).await;
    assert!(said.contains("plugin not installed"), "{said}");
}

#[tokio::test]
async fn an_older_plugin_of_one_file_is_updated_and_goes_as_well() {
    let home = Home::new();
    let folder = home.path().join(FOLDER);
    older(&home, &[ENTRY]).await;
    assert_eq!(files_in(&folder).len(), 1);
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin updated in Neovim") && files_in(&folder) == plugin(), "{said}");
    ok(&home, &["uninstall", "neovim"]).await;
    assert!(!home.path().join(".config").exists() && !home.path().join(".prism/installed").exists());
}

#[tokio::test]
async fn a_file_that_the_plugin_has_no_more_goes_with_the_older_one() {
    let home = Home::new();
    let folder = home.path().join(FOLDER);
    older(&home, &[ENTRY, "lua/prism/text.lua"]).await;
    // As if it had had another name.
    let installed = home.path().join(".prism/installed");
    for entry in fs::read_dir(&installed).unwrap().flatten().map(|entry| entry.path()) {
        if entry.extension().unwrap() == "json" && read(&entry).contains("text.lua") {
            fs::write(&entry, read(&entry).replace("text.lua", "gone.lua")).unwrap();
        }
    }
    fs::rename(folder.join("lua/prism/text.lua"), folder.join("lua/prism/gone.lua")).unwrap();
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin updated in Neovim") && files_in(&folder) == plugin(), "{said}");
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_replaced_by_force_alone_and_comes_back_to_the_byte() {
    for name in [ENTRY, "lua/prism/init.lua"] {
        let home = Home::new();
        let (folder, path) = (home.path().join(FOLDER), home.path().join(FOLDER).join(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "-- mine\r\n").unwrap();
        let ended = prism(&home, &["install", "neovim"]).await;
        assert!(ended.code == Some(1) && ended.stderr.contains("--force"), "{ended:?}");
        assert_eq!((read(&path).as_str(), files_in(&folder).len()), ("-- mine\r\n", 1));
        ok(&home, &["install", "neovim", "--force"]).await;
        assert_eq!(files_in(&folder), plugin());
        ok(&home, &["uninstall", "neovim"]).await;
        assert_eq!((read(&path).as_str(), files_in(&folder).len()), ("-- mine\r\n", 1));
    }
}

#[tokio::test]
async fn a_plugin_that_somebody_changed_is_theirs_with_all_its_files() {
    for name in [ENTRY, "lua/prism/verbs/files.lua"] {
        let home = Home::new();
        let (folder, path) = (home.path().join(FOLDER), home.path().join(FOLDER).join(name));
        ok(&home, &["install", "neovim"]).await;
        fs::write(&path, format!("{}-- and more\n", read(&path))).unwrap();
        let theirs = files_in(&folder);
        assert_eq!(prism(&home, &["install", "neovim"]).await.code, Some(1));
        let said = ok(&home, &["uninstall", "neovim"]).await;
        assert!(said.contains("so it stays") && said.contains(name), "{said}");
        assert_eq!(files_in(&folder), theirs);
        // Without it, the others are ours to take out.
        fs::remove_file(&path).unwrap();
        ok(&home, &["uninstall", "neovim"]).await;
        assert!(files_in(&folder).is_empty());
    }
}

#[tokio::test]
async fn a_plugin_that_nobody_remembers_is_known_by_its_text() {
    let home = Home::new();
    ok(&home, &["install", "neovim"]).await;
    fs::remove_dir_all(home.path().join(".prism/installed")).unwrap();
    ok(&home, &["uninstall", "neovim"]).await;
    assert!(files_in(&home.path().join(FOLDER)).is_empty());
}

#[tokio::test]
async fn neovims_variables_are_obeyed_and_all_means_it_too() {
    let home = Home::new();
    let launch = |arguments: &[&str]| {
        let launch = Launch::prism(words(arguments)).home(&home).env("PATH", &home.file("bin"));
        launch.env("XDG_CONFIG_HOME", &home.file("xdg")).env("NVIM_APPNAME", "mine")
    };
    let folder = home.path().join("xdg/mine");
    fs::create_dir_all(&folder).unwrap();
    let rows: Value = serde_json::from_str(&launch(&["install", "--all", "--json"]).output().await).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["surface"] == "neovim").unwrap();
    assert_eq!(row["state"], "added", "{row}");
    assert_eq!((files_in(&folder), row["file"].as_str()), (plugin(), folder.join(ENTRY).to_str()));
    // Where it was put is known, whatever the variables say by now.
    Launch::prism(words(&["uninstall", "--all"])).home(&home).output().await;
    assert!(files_in(&folder).is_empty());
}

#[tokio::test]
async fn a_project_has_no_plugin() {
    let ended = prism(&Home::new(), &["install", "neovim", "--project"]).await;
    assert!(ended.code == Some(1) && ended.stderr.contains("no config per project"), "{ended:?}");
    // It has no servers either.
    let ended = prism(&Home::new(), &["import", "neovim"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("neovim"), "{ended:?}");
}
