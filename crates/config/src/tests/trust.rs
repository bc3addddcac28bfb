//! What of a config the person has seen (C1).

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use super::*;
use crate::{
    file::{ExplicitTrust, LoadedConfig, load_as, load_counting, mean},
    trust::{FILE, TrustStore},
};

/// A home, and a project beside it.
struct Desk {
    _folder: tempfile::TempDir,
    home: PathBuf,
    project: PathBuf,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [home, project] = ["home", "project"].map(|name| folder.path().join(name));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&project).unwrap();
        Self { _folder: folder, home, project }
    }

    fn places(&self, explicit: Option<&str>) -> ConfigPaths {
        let explicit = explicit.map(|name| self.project.join(name));
        ConfigPaths { explicit, here: self.project.clone(), home: self.home.clone() }
    }

    fn write(&self, name: &str, port: u16) {
        fs::write(self.project.join(name), text(port)).unwrap();
    }

    fn load(&self, explicit: Option<&str>, named: ExplicitTrust) -> LoadedConfig {
        load_as(&self.places(explicit), &[], &Flags::default(), &Env::default(), named).unwrap()
    }

    fn see(&self, name: &str, port: u16) {
        TrustStore::of(&self.home).see(&self.project.join(name), &text(port), "now".to_owned()).unwrap();
    }

    /// The port of a daemon that is reloaded, and how many files wait to be seen.
    fn port(&self, explicit: Option<&str>) -> (u16, usize) {
        let loaded = self.load(explicit, ExplicitTrust::Before);
        (loaded.config.port, loaded.untrusted.len())
    }
}

fn text(port: u16) -> String {
    format!("port = {port}\n")
}

#[test]
fn a_projects_config_counts_as_it_was_seen() {
    let desk = Desk::new();
    fs::write(desk.home.join("prism.toml"), text(1)).unwrap();
    desk.write("prism.toml", 2);
    assert_eq!(desk.port(None), (1, 1), "the person's own, as if there were no other");
    assert_eq!(
        load_counting(&desk.places(None)).unwrap().unwrap().port,
        1,
        "whoever looks for the daemon is not led astray"
    );
    desk.see("prism.toml", 2);
    assert_eq!(desk.port(None), (2, 0));
    desk.write("prism.toml", 3);
    assert_eq!(desk.port(None), (2, 1));
    desk.write("prism.toml", 2);
    assert_eq!(desk.port(None), (2, 0), "it is what was seen again");
    assert!(TrustStore::of(&desk.home).forget(&desk.project.join("prism.toml")).unwrap());
    assert_eq!(desk.port(None), (1, 1));
    let mode = fs::metadata(desk.home.join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn trust_in_one_text_is_no_trust_in_another_nor_under_another_name() {
    let desk = Desk::new();
    // What was shown is what is kept, whatever has become of the file meanwhile.
    desk.write("prism.toml", 3);
    desk.see("prism.toml", 2);
    assert_eq!(desk.port(None), (2, 1));
    // The same words elsewhere begin in another folder.
    let other = desk.project.join("sub");
    fs::create_dir(&other).unwrap();
    desk.write("prism.toml", 2);
    symlink("../prism.toml", other.join("prism.toml")).unwrap();
    let places = ConfigPaths { here: other, ..desk.places(None) };
    let loaded = load_as(&places, &[], &Flags::default(), &Env::default(), ExplicitTrust::Before).unwrap();
    assert_eq!((loaded.file, loaded.untrusted.len()), (None, 1));
    // A link that leads to something else now.
    fs::remove_file(desk.project.join("prism.toml")).unwrap();
    desk.write("swapped.toml", 9);
    symlink("swapped.toml", desk.project.join("prism.toml")).unwrap();
    assert_eq!(desk.port(None), (2, 1));
}

#[test]
fn a_named_file_counts_as_it_is_for_who_names_it_and_later_as_it_was() {
    let desk = Desk::new();
    desk.write("it.toml", 2);
    let (typed, places) = (|| desk.load(Some("it.toml"), ExplicitTrust::Now).config.port, desk.places(Some("it.toml")));
    assert_eq!(typed(), 2);
    assert!(mean(&places, &[], ExplicitTrust::Now).unwrap().is_empty());
    desk.write("it.toml", 3);
    assert_eq!(desk.port(Some("it.toml")), (2, 1));
    // A service that begins again has not been typed again.
    mean(&places, &[], ExplicitTrust::Before).unwrap();
    assert_eq!(desk.port(Some("it.toml")), (2, 1));
    assert_eq!(typed(), 3);
    assert_eq!(mean(&places, &[], ExplicitTrust::Now).unwrap(), [desk.project.join("it.toml")]);
    assert_eq!(desk.port(Some("it.toml")), (3, 0));
}

#[test]
fn a_link_in_the_home_counts_as_it_was_when_a_daemon_first_saw_it() {
    let desk = Desk::new();
    desk.write("dotfile", 2);
    symlink(desk.project.join("dotfile"), desk.home.join("prism.toml")).unwrap();
    assert_eq!(desk.port(None), (2, 0));
    mean(&desk.places(None), &[], ExplicitTrust::Before).unwrap();
    desk.write("dotfile", 3);
    assert_eq!(desk.port(None), (2, 1));
}

#[test]
fn what_is_drafted_on_a_seen_file_is_seen_and_on_an_unseen_one_is_not() {
    let desk = Desk::new();
    let path = desk.project.join("prism.toml");
    let draft = |name: &str| {
        let mut draft = ConfigDraft::open(&path, &desk.home).unwrap();
        let command = vec![name.to_owned()];
        draft.document["server"][name]["command"] = toml_edit::value(toml_edit::Array::from_iter([name]));
        let mut meant = draft.written().destinations.clone();
        meant.insert(name.to_owned(), DestinationConfig::stdio(name, command));
        let counts = draft.counts();
        draft.save(&meant).unwrap();
        counts
    };
    assert!(draft("a"), "it is new, so all of it is the person's");
    assert!(draft("b"));
    assert_eq!(desk.load(None, ExplicitTrust::Before).config.destinations.len(), 2);
    fs::write(&path, "[destination.evil]\ncommand = [\"evil\"]\n").unwrap();
    assert!(!draft("c"));
    let loaded = desk.load(None, ExplicitTrust::Before);
    assert_eq!(loaded.config.destinations.keys().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn all_that_a_config_is_read_from_is_guarded() {
    let desk = Desk::new();
    let json = desk.project.join("mcp.json");
    fs::write(&json, "{\"mcpServers\": {}}").unwrap();
    let config = "[destination.a]\ncommand = [\"a\"]\nenv = { K = \"file:/secrets/k\" }\n\
                  [destination.b]\nurl = \"http://localhost/\"\nheaders = { Authorization = \"Bearer file:~/t\" }\n";
    fs::write(desk.project.join("it.toml"), config).unwrap();
    let env = Env::from([("HOME", "/home/me")]);
    let places = desk.places(Some("it.toml"));
    let guarded =
        load_as(&places, std::slice::from_ref(&json), &Flags::default(), &env, ExplicitTrust::Now).unwrap().guarded;
    for file in [desk.project.join("it.toml"), json, "/secrets/k".into()] {
        assert!(guarded.contains(&file), "{}: {guarded:?}", file.display());
    }
    // Also where there is none yet.
    let guarded = desk.load(None, ExplicitTrust::Before).guarded;
    assert!(guarded.contains(&desk.project.join("prism.toml")), "{guarded:?}");
}
