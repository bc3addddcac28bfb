//! What a person reads when the settings of the hub are wrong, and what they mean when they are right.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    super::{
        Config, ConfigError, Env, Flags,
        file::{ConfigPaths, LoadedConfig, load},
        raw::{
            RawConfig,
            keys::{HUB_KEYS, PROFILE_KEYS, WORKSPACE_KEYS},
        },
        trust::TrustStore,
    },
    *,
};

/// Two destinations below whatever a test writes.
const DESTINATIONS: &str = "[destination.browser]\ncommand = [\"x\"]\n[destination.files]\ncommand = [\"x\"]\n";

fn config(text: &str) -> Result<Config, ConfigError> {
    config_in(text, &Env::default(), &Flags::default())
}

fn config_in(text: &str, env: &Env, flags: &Flags) -> Result<Config, ConfigError> {
    let raw = RawConfig::parse(Path::new("prism.toml"), &format!("{text}\n{DESTINATIONS}"))?;
    let config = raw.config(env, flags)?;
    raw.check_profiles(&config, &[])?;
    Ok(config)
}

/// Checks the whole text of an error, as it would stand on a screen.
#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(config(text).unwrap_err().to_string(), expected, "{text}");
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

// B-27
#[test]
fn every_key_is_understood() {
    let config = config(
        r#"
        [hub]
        prefix = false
        mode = "search"
        patience = "1500ms"
        first_patience = "20s"
        longest_name = 128
        [profile.Web_1]
        only = ["browser", "workspace", "prism"]
        except = ["files"]
        tools = ["browser__*"]
        prefix = true
        mode = "list"
        [profile.mcp]
        except = []
        [workspace]
        root = "/srv/project"
        "#,
    )
    .unwrap();
    let patience = Duration::from_millis(1500);
    let first_patience = Duration::from_secs(20);
    assert_eq!(
        config.hub,
        HubConfig { prefix: false, mode: HubMode::Search, patience, first_patience, longest_name: 128 }
    );
    let web = ProfileConfig {
        only: Some(texts(["browser", "workspace", "prism"])),
        except: texts(["files"]),
        tools: texts(["browser__*"]),
        prefix: Some(true),
        mode: Some(HubMode::List),
    };
    let profiles = [("Web_1", web), ("mcp", ProfileConfig::default())];
    assert_eq!(config.profiles, profiles.map(|(name, profile)| (name.to_owned(), profile)).into());
    assert_eq!(config.workspace, Some("/srv/project".into()));
}

#[test]
fn what_is_not_said_is_at_its_default() {
    let config = config("[hub]\nprefix = false").unwrap();
    assert_eq!(config.hub, HubConfig { prefix: false, ..HubConfig::default() });
    assert!(config.profiles.is_empty());
    assert_eq!(config.workspace, None);
    assert!(config.destinations["files"].hub);
}

#[test]
fn the_lists_of_keys_are_what_serde_accepts() {
    let keys_in = |text| {
        let error = toml::from_str::<RawConfig>(text).unwrap_err();
        error.message().split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys_in("hub.zzz = 1"), HUB_KEYS);
    assert_eq!(keys_in("profile.a.zzz = 1"), PROFILE_KEYS);
    assert_eq!(keys_in("workspace.zzz = 1"), WORKSPACE_KEYS);
}

#[test]
fn an_unknown_key_is_told_what_was_meant_or_where_it_belongs() {
    for (table, line, key, fix) in [
        ("[hub]", "patients = \"5s\"", "patients", "did you mean \"patience\"?"),
        ("[hub]", "port = 1", "port", "\"port\" is for the whole daemon: put it above the first line in [brackets]"),
        (
            "[hub]",
            "command = 1",
            "command",
            "the keys of [hub] are prefix, mode, patience, first_patience, longest_name",
        ),
        ("[profile.a]", "onyl = []", "onyl", "did you mean \"only\"?"),
        ("[profile.a]", "url = 1", "url", "the keys of [profile.NAME] are only, except, tools, prefix, mode"),
        ("[workspace]", "folder = \"/\"", "folder", "the one key of [workspace] is root"),
        ("[destination.a]", "hubb = false", "hubb", "did you mean \"hub\"?"),
        ("", "profiles = 1", "profiles", "did you mean \"profile\"?"),
        ("", "hub_mode = \"list\"", "hub_mode", "\"mode\" belongs to the hub: put it below a [hub] line"),
        ("", "longest_name = 64", "longest_name", "\"longest_name\" belongs to the hub: put it below a [hub] line"),
    ] {
        let expected = format!("prism.toml:2:1: unknown key {key:?}\n  {line}\n  fix: {fix}");
        refused(&format!("{table}\n{line}"), &expected);
    }
}

#[test]
fn a_table_that_is_none_is_shown_one() {
    for (text, example) in [
        ("hub = true", "as in [hub] and below it mode = \"search\""),
        ("profile.web = [\"files\"]", "as in [profile.web] and below it only = [\"files\"]"),
        ("[profile]\nonly = [\"files\"]", "as in [profile.web] and below it only = [\"files\"]"),
        ("workspace = \"/srv\"", "as in [workspace] and below it root = \"/home/me/project\""),
    ] {
        let error = config(text).unwrap_err().to_string();
        assert!(error.starts_with("prism.toml:") && error.contains(example), "{error}");
    }
}

#[test]
fn a_value_that_makes_no_sense_is_shown_one_that_does() {
    for (table, line, column, problem, fix) in [
        ("hub", "mode = \"serch\"", 8, "mode is \"serch\", not one of \"list\", \"search\"", "mode = \"search\""),
        ("hub", "prefix = \"no\"", 10, "prefix is \"no\", not true or false", "prefix = true"),
        ("hub", "patience = 5", 12, "patience is 5, not a duration: it has no unit", "patience = \"5s\""),
        ("hub", "patience = 0", 12, "patience is 0, not longer than nothing", "patience = \"5s\""),
        ("hub", "longest_name = 9", 16, "longest_name is 9, not a whole number from 16 to 128", "longest_name = 64"),
        ("profile.a", "mode = 1", 8, "mode is 1, not one of \"list\", \"search\"", "mode = \"list\""),
        ("profile.a", "prefix = 1", 10, "prefix is 1, not true or false", "prefix = true"),
        ("profile.a", "only = \"x\"", 8, "only is \"x\", not a list of texts", "only = [\"x\"]"),
        ("profile.a", "except = 1", 10, "except is 1, not a list of texts", "except = [\"files\"]"),
        ("profile.a", "tools = [1]", 9, "tools is a list, not a list of texts", "tools = [\"files__*\"]"),
        ("workspace", "root = \"\"", 8, "root is \"\", not a folder", "root = \"/home/me/project\""),
    ] {
        let expected = format!("prism.toml:2:{column}: {table}.{problem}\n  {line}\n  fix: {fix}");
        refused(&format!("[{table}]\n{line}"), &expected);
    }
    refused(
        "[destination.a]\ncommand = [\"x\"]\nhub = \"no\"",
        "prism.toml:3:7: destination.a.hub is \"no\", not true or false\n  hub = \"no\"\n  fix: hub = true",
    );
    for (length, is_right) in [(15, false), (16, true), (128, true), (129, false), (-1, false)] {
        assert_eq!(config(&format!("[hub]\nlongest_name = {length}")).is_ok(), is_right, "{length}");
    }
}

#[test]
fn a_profile_is_named_like_a_destination_but_nothing_is_reserved() {
    assert!(config("[profile.workspace]").is_ok());
    refused(
        "[profile.\"my web\"]",
        "prism.toml:1:10: \"my web\" cannot name a profile: letters, digits, `-` and `_`, at most 32, a letter or \
         digit first\n  [profile.\"my web\"]\n  fix: call it \"my-web\", for example",
    );
    assert!(config(&format!("[profile.{}]", "x".repeat(33))).is_err());
}

#[test]
fn a_profile_names_only_what_there_is() {
    refused(
        "[profile.web]\nonly = [\"prism\", \"browsr\"]",
        "prism.toml:2:18: profile.web.only has \"browsr\", which is no server\n  \
         only = [\"prism\", \"browsr\"]\n  fix: did you mean \"browser\"?",
    );
    refused(
        "[profile.web]\nexcept = [\n  \"browser\", # mine\n  \"docs\",\n]",
        "prism.toml:4:3: profile.web.except has \"docs\", which is no server\n  \"docs\",\n  \
         fix: the servers are files, prism, browser, workspace",
    );
    // It is a path of Prism's own, but no server in the hub.
    assert!(config("[profile.web]\nexcept = [\"console\"]").is_err());
}

#[test]
fn a_profile_that_would_show_nothing_or_contradicts_itself_is_refused() {
    refused(
        "[profile.web]\nonly = []",
        "prism.toml:2:8: profile.web.only is an empty list, so nothing would be shown\n  only = []\n  \
         fix: only = [\"files\"], or take it out to show all",
    );
    refused(
        "[profile.web]\nonly = [\"browser\", \"files\"]\nexcept = [\"prism\", \"files\"]",
        "prism.toml:3:20: profile.web.except has \"files\", and so has only\n  except = [\"prism\", \"files\"]\n  \
         fix: keep it in one of the two",
    );
    let hidden = "[destination.hidden]\ncommand = [\"x\"]\nhub = false\n";
    refused(
        &format!("{hidden}[profile.web]\nonly = [\"hidden\"]"),
        "prism.toml:5:9: profile.web.only has \"hidden\", which is left out of the hub\n  only = [\"hidden\"]\n  \
         fix: take it out here, or take hub = false out of [destination.hidden]",
    );
    assert!(config(&format!("{hidden}[profile.web]\nexcept = [\"hidden\"]")).is_ok());
}

#[test]
fn the_environment_beats_the_file_and_a_flag_beats_both() {
    let text = "[hub]\nprefix = true\nmode = \"search\"\npatience = \"1s\"\n[workspace]\nroot = \"/file\"";
    let env = Env::from([
        ("PRISM_HUB_PREFIX", "no"),
        ("PRISM_HUB_MODE", "list"),
        ("PRISM_HUB_PATIENCE", "2s"),
        ("PRISM_HUB_FIRST_PATIENCE", "3s"),
        ("PRISM_HUB_LONGEST_NAME", "32"),
        ("PRISM_WORKSPACE", "/variable"),
    ]);
    let config = config_in(text, &env, &Flags::default()).unwrap();
    let patience = Duration::from_secs(2);
    let first_patience = Duration::from_secs(3);
    assert_eq!(
        config.hub,
        HubConfig { prefix: false, mode: HubMode::List, patience, first_patience, longest_name: 32 }
    );
    assert_eq!(config.workspace, Some("/variable".into()));

    let flags = Flags { hub_mode: Some("search".to_owned()), workspace: Some("/flag".to_owned()), ..Flags::default() };
    let config = config_in(text, &env, &flags).unwrap();
    assert_eq!(config.hub.mode, HubMode::Search);
    assert_eq!(config.workspace, Some("/flag".into()));
}

#[test]
fn a_variable_or_a_flag_that_makes_no_sense_is_named() {
    for (variable, key) in [
        ("PRISM_HUB_PREFIX", "hub.prefix"),
        ("PRISM_HUB_MODE", "hub.mode"),
        ("PRISM_HUB_PATIENCE", "hub.patience"),
        ("PRISM_HUB_FIRST_PATIENCE", "hub.first_patience"),
        ("PRISM_HUB_LONGEST_NAME", "hub.longest_name"),
    ] {
        let env = Env::from([(variable, "*no such thing*")]);
        let error = config_in("", &env, &Flags::default()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("environment variable {variable}: {key} is \"*no such thing*\"")),
            "{error}"
        );
        assert!(error.contains(&format!("\n  fix: {variable}=")), "{error}");
    }
    // Made of what was not UTF-8: there is no such folder.
    let env = Env::from([("PRISM_WORKSPACE", "/caf\u{fffd}")]);
    let error = config_in("", &env, &Flags::default()).unwrap_err().to_string();
    assert!(error.ends_with("not a folder whose name is UTF-8\n  fix: PRISM_WORKSPACE=/home/me/project"), "{error}");

    let flags = Flags { hub_mode: Some("lst".to_owned()), ..Flags::default() };
    let error = config_in("", &Env::default(), &flags).unwrap_err().to_string();
    assert!(error.starts_with("option --hub-mode: hub.mode is \"lst\""), "{error}");
    assert!(error.ends_with("\n  fix: --hub-mode list"), "{error}");
    let flags = Flags { workspace: Some(String::new()), ..Flags::default() };
    let error = config_in("", &Env::default(), &flags).unwrap_err().to_string();
    assert!(error.starts_with("option --workspace: workspace.root is \"\", not a folder"), "{error}");
}

#[test]
fn a_workspace_starts_at_the_file_that_names_it_or_where_one_works() {
    let at = |root: &str, env: Env| {
        let raw = RawConfig::parse(Path::new("/srv/app/prism.toml"), &format!("[workspace]\nroot = {root:?}")).unwrap();
        raw.config(&env, &Flags::default()).unwrap().workspace.unwrap()
    };
    let home = ("HOME", "/home/me");
    assert_eq!(at("sub", Env::default()), Path::new("/srv/app/sub"));
    assert_eq!(at("~/sub", Env::from([home])), Path::new("/home/me/sub"));
    assert_eq!(at("sub", Env::from([home, ("PRISM_WORKSPACE", "~/other")])), Path::new("/home/me/other"));
    let here = std::path::absolute("other").unwrap();
    assert_eq!(at("sub", Env::from([home, ("PRISM_WORKSPACE", "other")])), here);

    let raw = RawConfig::parse(Path::new("/srv/app/prism.toml"), "[workspace]\nroot = \"sub\"").unwrap();
    assert_eq!(raw.written().unwrap().workspace, Some("sub".into()), "an edit leaves it as it is written");
}

/// A folder to work in, Prism's home, and a config in either.
struct Desk {
    folder: tempfile::TempDir,
    places: ConfigPaths,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [here, home] = ["here", "home"].map(|name| folder.path().join(name));
        fs::create_dir(&here).unwrap();
        fs::create_dir(&home).unwrap();
        Self { folder, places: ConfigPaths { explicit: None, here, home } }
    }

    fn load(&self, json: &[PathBuf]) -> Result<LoadedConfig, ConfigError> {
        load(&self.places, json, &Flags::default(), &Env::default())
    }

    /// Writes a project's own config that the person has seen.
    fn here(&self, text: &str) {
        let path = self.places.here.join("prism.toml");
        fs::write(&path, text).unwrap();
        TrustStore::of(&self.places.home).see(&path, text, String::new()).unwrap();
    }

    fn workspace(&self) -> Option<PathBuf> {
        self.load(&[]).unwrap().config.workspace
    }
}

#[test]
fn a_project_s_own_config_makes_its_folder_the_workspace() {
    let mut desk = Desk::new();
    let root = desk.folder.path().canonicalize().unwrap();
    assert_eq!(desk.workspace(), None, "there is no file");
    fs::write(desk.places.home.join("prism.toml"), "port = 1").unwrap();
    assert_eq!(desk.workspace(), None, "the one in Prism's home is about no project");
    fs::write(desk.places.here.join("prism.toml"), "port = 1").unwrap();
    assert_eq!(desk.workspace(), None, "nobody has seen it");
    desk.here("port = 1");
    assert_eq!(desk.workspace(), Some(root.join("here")));
    desk.here("[workspace]\nroot = \"/srv\"");
    assert_eq!(desk.workspace(), Some("/srv".into()));

    desk.places.explicit = Some(desk.places.here.join("../other.toml"));
    fs::write(desk.folder.path().join("other.toml"), "port = 1").unwrap();
    assert_eq!(desk.workspace(), Some(root));
    for path in ["home/prism.toml", "here/../home/prism.toml"] {
        desk.places.explicit = Some(desk.folder.path().join(path));
        assert_eq!(desk.workspace(), None, "{path} is the one in Prism's home, whoever names it");
    }
}

#[test]
fn a_profile_may_name_the_servers_of_an_editor_s_file() {
    let desk = Desk::new();
    let json = desk.folder.path().join("mcp.json");
    fs::write(&json, r#"{"mcpServers": {"json": {"command": "x"}, "off": {"command": "x", "disabled": true}}}"#)
        .unwrap();
    desk.here("[profile.a]\nonly = [\"json\", \"off\"]");
    let loaded = desk.load(std::slice::from_ref(&json)).unwrap();
    assert_eq!(loaded.config.profiles["a"].only, Some(texts(["json", "off"])));
    assert_eq!(loaded.warnings.len(), 1, "about the one that is off");
    let error = desk.load(&[]).unwrap_err().to_string();
    assert!(error.contains("profile.a.only has \"json\", which is no server"), "{error}");
}

#[test]
fn what_a_profile_names_is_no_reason_not_to_edit_a_file() {
    let text = "[profile.web]\nonly = [\"later\"]";
    let written = RawConfig::parse(Path::new("prism.toml"), text).unwrap().written().unwrap();
    assert_eq!(written.profiles["web"].only, Some(texts(["later"])));
}
