//! The plugin for Neovim: one file, which comes and goes whole. (E-02)

use std::fs;

use serde_json::Value;

use super::{ok, prism, read, words};
use crate::support::{Home, Launch};

const PLUGIN: &str = include_str!("../../../../../editors/nvim/prism.lua");
const PLACE: &str = ".config/nvim/plugin/prism.lua";

#[tokio::test]
async fn the_plugin_comes_and_goes_with_the_folders_that_were_made_for_it() {
    let home = Home::new();
    let path = home.path().join(PLACE);
    let said = ok(&home, &["install", "neovim", "--dry-run"]).await;
    assert!(said.contains("plugin would be installed in Neovim") && !path.exists(), "{said}");
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin installed in Neovim") && said.contains("next: start nvim"), "{said}");
    assert_eq!(read(&path), PLUGIN);
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin already installed"), "{said}");
    let said = ok(&home, &["uninstall", "neovim"]).await;
    assert!(said.contains("is gone, as before"), "{said}");
    assert!(!home.path().join(".config").exists() && !home.path().join(".prism/installed").exists());
    let said = ok(&home, &["uninstall", "neovim"]).await;
    assert!(said.contains("plugin not installed"), "{said}");
}

#[tokio::test]
async fn an_older_plugin_of_ours_is_updated_and_goes_as_well() {
    let home = Home::new();
    let path = home.path().join(PLACE);
    ok(&home, &["install", "neovim"]).await;
    // What an older Prism would have written, and remembered.
    let records = fs::read_dir(home.path().join(".prism/installed")).unwrap().flatten();
    let after = records.map(|entry| entry.path()).find(|path| path.extension().unwrap() == "after").unwrap();
    for path in [&path, &after] {
        fs::write(path, "-- older\n").unwrap();
    }
    let said = ok(&home, &["install", "neovim"]).await;
    assert!(said.contains("plugin updated in Neovim") && read(&path) == PLUGIN, "{said}");
    ok(&home, &["uninstall", "neovim"]).await;
    assert!(!home.path().join(".config").exists());
}

#[tokio::test]
async fn a_file_that_is_not_ours_is_replaced_by_force_alone_and_comes_back_to_the_byte() {
    let home = Home::new();
    let path = home.path().join(PLACE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "-- mine\r\n").unwrap();
    let ended = prism(&home, &["install", "neovim"]).await;
    assert!(ended.code == Some(1) && ended.stderr.contains("--force"), "{ended:?}");
    assert_eq!(read(&path), "-- mine\r\n");
    ok(&home, &["install", "neovim", "--force"]).await;
    assert_eq!(read(&path), PLUGIN);
    ok(&home, &["uninstall", "neovim"]).await;
    assert_eq!(read(&path), "-- mine\r\n");
}

#[tokio::test]
async fn a_plugin_that_somebody_changed_is_theirs() {
    let home = Home::new();
    let path = home.path().join(PLACE);
    ok(&home, &["install", "neovim"]).await;
    let theirs = format!("{PLUGIN}-- and more\n");
    fs::write(&path, &theirs).unwrap();
    assert_eq!(prism(&home, &["install", "neovim"]).await.code, Some(1));
    let said = ok(&home, &["uninstall", "neovim"]).await;
    assert!(said.contains("so it stays"), "{said}");
    assert_eq!(read(&path), theirs);
}

#[tokio::test]
async fn neovims_variables_are_obeyed_and_all_means_it_too() {
    let home = Home::new();
    let launch = |arguments: &[&str]| {
        let launch = Launch::prism(words(arguments)).home(&home).env("PATH", &home.file("bin"));
        launch.env("XDG_CONFIG_HOME", &home.file("xdg")).env("NVIM_APPNAME", "mine")
    };
    fs::create_dir_all(home.path().join("xdg/mine")).unwrap();
    let rows: Value = serde_json::from_str(&launch(&["install", "--all", "--json"]).output().await).unwrap();
    let row = rows.as_array().unwrap().iter().find(|row| row["surface"] == "neovim").unwrap();
    assert_eq!(row["state"], "added", "{row}");
    let path = home.path().join("xdg/mine/plugin/prism.lua");
    assert_eq!((read(&path).as_str(), row["file"].as_str()), (PLUGIN, path.to_str()));
    // Where it was put is known, whatever the variables say by now.
    Launch::prism(words(&["uninstall", "--all"])).home(&home).output().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_project_has_no_plugin() {
    let ended = prism(&Home::new(), &["install", "neovim", "--project"]).await;
    assert!(ended.code == Some(1) && ended.stderr.contains("no config per project"), "{ended:?}");
    // It has no servers either.
    let ended = prism(&Home::new(), &["import", "neovim"]).await;
    assert!(ended.code == Some(2) && ended.stderr.contains("neovim"), "{ended:?}");
}
