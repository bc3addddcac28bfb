//! The extension in editors: the command of a made-up one is on PATH, and writes down what it is told. (E-02)

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::Value;

use super::{ok, place, prism, read, write};
use crate::support::{
    Home, Launch,
    gate::Gate,
    plugin::{owning, register, state},
    until,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An editor's command as far as we use it. Files in the home are its memory: what it was told, what it has, and the
/// package that it was given. If there is a file `refuses`, it complains and fails.
const EDITOR: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
name=$(basename "$0")
echo "$*" >> "$HOME/$name.told"
case $1 in
--list-extensions) cat "$HOME/$name.has" 2>/dev/null || true ;;
--install-extension)
    if [ -e "$HOME/refuses" ]; then echo "Error: end of central directory" >&2; exit 1; fi
    cp "$2" "$HOME/$name.vsix"
    echo "other.one@1.2.3" > "$HOME/$name.has"
    echo "prism.prism@VERSION" >> "$HOME/$name.has" ;;
--uninstall-extension) rm "$HOME/$name.has" ;;
esac
"#;

fn with_editor(names: &[&str]) -> Home {
    let home = Home::new();
    fs::create_dir(home.path().join("bin")).unwrap();
    for name in names {
        let path = home.path().join("bin").join(name);
        fs::write(&path, EDITOR.replace("VERSION", VERSION)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home
}

/// What an editor was told, without what it was only asked.
fn told(home: &Home, name: &str) -> Vec<String> {
    let told = fs::read_to_string(home.path().join(format!("{name}.told"))).unwrap_or_default();
    told.lines().filter(|line| !line.starts_with("--list-extensions")).map(str::to_owned).collect()
}

fn package(home: &Home) -> PathBuf {
    home.path().join(format!(".prism/extensions/prism-{VERSION}.vsix"))
}

fn rows(json: &str) -> Vec<Value> {
    let rows: Vec<Value> = serde_json::from_str(json).unwrap();
    rows.into_iter().filter(|row| row.get("extension").is_some()).collect()
}

#[tokio::test]
async fn the_editor_is_told_to_install_the_extension_once_and_to_remove_it() {
    for (surface, name) in [("vscode", "code"), ("vscode", "code-server"), ("cursor", "cursor"), ("void", "void")] {
        let home = with_editor(&[name]);
        let said = ok(&home, &["install", surface]).await;
        assert!(said.contains(&format!("extension {VERSION} installed in")), "{said}");
        let install = format!("--install-extension {} --force", package(&home).display());
        assert_eq!(told(&home, name), std::slice::from_ref(&install));
        assert!(!home.path().join(".prism/extensions").exists(), "nobody needs the package any more");
        // Twice is once.
        let said = ok(&home, &["install", surface]).await;
        assert!(said.contains(&format!("extension {VERSION} already installed")), "{said}");
        assert_eq!(told(&home, name), std::slice::from_ref(&install));
        let said = ok(&home, &["uninstall", surface]).await;
        assert!(said.contains("the extension was removed from"), "{said}");
        assert_eq!(told(&home, name), [install, "--uninstall-extension prism.prism".to_owned()]);
        assert!(!home.path().join(".prism/installed").exists(), "nothing is left to undo");
        assert!(!home.path().join(place(surface)).exists());
    }
}

#[tokio::test]
async fn all_editors_of_a_kind_get_it_and_all_lose_it() {
    let home = with_editor(&["code", "codium", "cursor"]);
    ok(&home, &["install", "--all"]).await;
    for name in ["code", "codium", "cursor"] {
        assert_eq!(told(&home, name).len(), 1, "{name}");
    }
    ok(&home, &["uninstall", "--all"]).await;
    for name in ["code", "codium", "cursor"] {
        assert_eq!(told(&home, name).len(), 2, "{name}");
    }
    assert!(!home.path().join(".prism/installed").exists());
}

#[tokio::test]
async fn an_extension_that_was_there_before_stays_unless_forced() {
    let home = with_editor(&["code"]);
    fs::write(home.path().join("code.has"), "Prism.prism@0.0.1\n").unwrap();
    let ended = prism(&home, &["install", "vscode"]).await;
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("has extension 0.0.1") && ended.stderr.contains("--force"), "{ended:?}");
    ok(&home, &["uninstall", "vscode"]).await;
    assert!(told(&home, "code").is_empty(), "it is not ours");
    ok(&home, &["install", "vscode", "--force"]).await;
    assert_eq!(told(&home, "code").len(), 1);
}

#[tokio::test]
async fn an_extension_that_a_person_removed_is_installed_again_and_not_removed_twice() {
    let home = with_editor(&["code"]);
    ok(&home, &["install", "vscode"]).await;
    fs::remove_file(home.path().join("code.has")).unwrap();
    ok(&home, &["install", "vscode"]).await;
    assert_eq!(told(&home, "code").len(), 2);
    fs::remove_file(home.path().join("code.has")).unwrap();
    let said = ok(&home, &["uninstall", "vscode"]).await;
    assert!(said.contains("is not in VS Code any more"), "{said}");
    assert_eq!(told(&home, "code").len(), 2);
}

#[tokio::test]
async fn an_older_extension_of_ours_is_updated() {
    let home = with_editor(&["code"]);
    ok(&home, &["install", "vscode"]).await;
    // What an older Prism would have left behind.
    fs::write(home.path().join("code.has"), "prism.prism@0.0.9\n").unwrap();
    let said = ok(&home, &["install", "vscode"]).await;
    assert!(said.contains(&format!("extension {VERSION} updated in")), "{said}");
    // The same version from another build.
    let record = fs::read_dir(home.path().join(".prism/installed")).unwrap().flatten();
    let record = record.map(|entry| entry.path()).find(|path| read(path).contains("digest")).unwrap();
    let mut value: Value = serde_json::from_str(&read(&record)).unwrap();
    value["digest"] = "0".into();
    fs::write(&record, value.to_string()).unwrap();
    let said = ok(&home, &["install", "vscode"]).await;
    assert!(said.contains("updated in"), "{said}");
}

#[tokio::test]
async fn without_a_command_of_the_editor_the_package_waits_and_the_message_says_what_to_do() {
    let home = with_editor(&[]);
    let said = ok(&home, &["install", "void"]).await;
    let file = package(&home);
    assert!(said.contains("Install from VSIX") && said.contains(file.to_str().unwrap()), "{said}");
    assert!(file.is_file());
    ok(&home, &["install", "vscode"]).await;
    ok(&home, &["uninstall", "void"]).await;
    assert!(file.is_file(), "VS Code's person has yet to take it");
    ok(&home, &["uninstall", "vscode"]).await;
    assert!(!home.path().join(".prism/extensions").exists() && !home.path().join(".prism/installed").exists());
}

#[tokio::test]
async fn what_the_editor_complains_of_is_shown_and_the_package_is_left() {
    let home = with_editor(&["code"]);
    fs::write(home.path().join("refuses"), "").unwrap();
    let ended = prism(&home, &["install", "vscode"]).await;
    assert_eq!(ended.code, Some(1));
    let said = &ended.stderr;
    assert!(said.contains("Error: end of central directory") && said.contains("Install from VSIX"), "{said}");
    assert!(package(&home).is_file() && home.path().join(place("vscode")).is_file());
    fs::remove_file(home.path().join("refuses")).unwrap();
    ok(&home, &["install", "vscode"]).await;
    assert!(!package(&home).exists());
    ok(&home, &["uninstall", "vscode"]).await;
    assert!(!home.path().join(".prism/installed").exists());
}

#[tokio::test]
async fn nothing_is_told_to_an_editor_by_a_dry_run_for_a_project_or_without_extension() {
    let home = with_editor(&["code"]);
    let said = ok(&home, &["install", "vscode", "--dry-run"]).await;
    assert!(said.contains(&format!("extension {VERSION} would be installed in VS Code")), "{said}");
    ok(&home, &["install", "vscode", "--project"]).await;
    ok(&home, &["install", "vscode", "--no-extension"]).await;
    assert!(told(&home, "code").is_empty());
    let row = &rows(&ok(&home, &["install", "vscode", "--json"]).await)[0];
    assert_eq!((row["state"].as_str(), row["extension"].as_str()), (Some("added"), Some(VERSION)), "{row}");
    assert!(row["program"].as_str().unwrap().ends_with("/bin/code"), "{row}");
    ok(&home, &["uninstall", "vscode", "--dry-run"]).await;
    assert_eq!(told(&home, "code").len(), 1);
    let row = &rows(&ok(&home, &["uninstall", "vscode", "--json"]).await)[0];
    assert_eq!(row["state"], "removed");
}

#[tokio::test]
async fn the_doctor_says_which_editor_has_it_and_whether_a_window_is_connected() {
    let home = with_editor(&["code"]);
    let said = async || {
        let ended = prism(&home, &["doctor", "--json", "--no-calls"]).await;
        let found: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        let ours = found.into_iter().filter(|finding| finding["said"].as_str().unwrap().contains("extension"));
        ours.map(|finding| (finding["verdict"].clone(), finding["said"].as_str().unwrap().to_owned())).collect()
    };
    let found: Vec<_> = said().await;
    assert!(
        matches!(&found[..], [(verdict, said)] if verdict == "ok" && said.contains("has no extension")),
        "{found:?}"
    );
    ok(&home, &["install", "vscode"]).await;
    let found: Vec<_> = said().await;
    assert!(found[0].0 == "ok" && found[0].1.contains(&format!("has extension {VERSION}")), "{found:?}");
    fs::write(home.path().join("code.has"), "prism.prism@0.0.9\n").unwrap();
    let found: Vec<_> = said().await;
    assert!(found[0].0 == "note" && found[0].1.contains("0.0.9"), "{found:?}");
}

#[tokio::test]
async fn the_doctor_counts_the_windows_that_are_connected() {
    let gate = Gate::start().await;
    let line = owning(&gate, "vscode", register(&gate.project(), &["open_file"])).await;
    let doctor = || Launch::prism(["doctor", "--no-calls"].map(str::to_owned).to_vec()).home(gate.daemon.home()).end();
    let ended = doctor().await;
    assert!(ended.stdout.contains("its extension runs; a window is connected"), "{}", ended.stdout);
    drop(line);
    until("it is gone", async || state(&gate, "vscode").await.is_none()).await;
    assert!(!doctor().await.stdout.contains("is connected"));
}

/// Reads the package as VS Code does: the manifest in it, and the program that the manifest names.
const READER: &str = r#"
import json, sys, zipfile
from xml.etree import ElementTree
archive = zipfile.ZipFile(sys.argv[1])
assert archive.testzip() is None
names = archive.namelist()
assert names[:2] == ["[Content_Types].xml", "extension.vsixmanifest"], names
manifest = json.loads(archive.read("extension/package.json"))
assert archive.read("extension/" + manifest["main"].removeprefix("./"))
types = ElementTree.fromstring(archive.read("[Content_Types].xml"))
known = {entry.get("Extension") for entry in types}
assert all("." + name.rsplit(".", 1)[1] in known for name in names[1:]), known
shop = ElementTree.fromstring(archive.read("extension.vsixmanifest"))
space = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
identity = shop.find(f"{space}Metadata/{space}Identity")
for asset in shop.iter(space + "Asset"):
    assert asset.get("Path") in names, asset.get("Path")
engine = next(p.get("Value") for p in shop.iter(space + "Property") if p.get("Id").endswith("Code.Engine"))
assert engine == manifest["engines"]["vscode"]
print(identity.get("Publisher"), identity.get("Id"), identity.get("Version"), manifest["version"])
"#;

#[tokio::test]
async fn the_package_is_one_that_others_can_read() {
    let home = with_editor(&[]);
    write(&home, "vscode", "{}");
    ok(&home, &["install", "vscode"]).await;
    let output =
        Command::new("python3").args(["-c", READER]).arg(package(&home)).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.trim(), format!("prism prism {VERSION} {VERSION}"));
}
