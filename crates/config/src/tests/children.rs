//! What is written about children: what they inherit, where their secrets are, how much memory they may hold, and what they have in
//! their sandbox.

use std::os::unix::fs::PermissionsExt;

use prism_os::sandbox::NetworkAccess;

use super::*;
use crate::raw::keys::SANDBOX_KEYS;

#[test]
fn a_reference_that_is_none_is_shown_and_a_secret_is_not_repeated() {
    for (value, problem) in [
        ("env:", "names no variable after env:"),
        ("env:hunter2 too", "names no variable after env:"),
        ("file: ", "names no file after file:"),
        ("keyring:hunter2", "is not keyring:SERVICE/ACCOUNT"),
    ] {
        refused(
            &format!("[destination.a]\ncommand = [\"x\"]\nenv = {{ B = \"hunter2\", A = {value:?} }}"),
            &format!(
                "prism.toml:3:24: destination.a.env.A {problem}\n  fix: env:NAME, file:/path/to/it or \
                 keyring:SERVICE/ACCOUNT; text:... if the text itself is meant"
            ),
        );
    }
    let error = config("[destination.a]\ncommand = [\"x\"]\nenv = { A = [\"hunter2\"] }").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn what_children_inherit_is_checked_name_by_name() {
    let wanted = "\"allowed\", \"all\" or a list of names such as [\"AWS_PROFILE\", \"MY_*\"]";
    for (written, problem, fix) in [
        ("\"al\"", format!("is \"al\", not {wanted}"), "\"all\""),
        ("\"AWS_PROFILE\"", format!("is \"AWS_PROFILE\", not {wanted}"), "[\"AWS_PROFILE\"]"),
        ("true", format!("is true, not {wanted}"), "[\"AWS_PROFILE\"]"),
        (
            "[\"*\"]",
            "has \"*\", which is neither the name of a variable nor the beginning of one and a *".to_owned(),
            "\"all\"",
        ),
        (
            "[\"A-B\"]",
            "has \"A-B\", which is neither the name of a variable nor the beginning of one and a *".to_owned(),
            "[\"AWS_PROFILE\", \"MY_*\"]",
        ),
    ] {
        refused(
            &format!("inherit_env = {written}"),
            &format!("prism.toml:1:15: inherit_env {problem}\n  inherit_env = {written}\n  fix: inherit_env = {fix}"),
        );
    }
    let env = Env::from([("PRISM_INHERIT_ENV", "A, B_*")]);
    let config = config_in("", &env, &Flags::default()).unwrap();
    assert_eq!(config.inherit_env, EnvInheritance::Also(["A", "B_*"].map(str::to_owned).into()));
}

#[test]
fn a_ceiling_has_a_unit_and_room_for_a_server() {
    for (written, bytes) in [("\"64MiB\"", Some(64 << 20)), ("0", None), ("\"0\"", None), ("67108864", Some(64 << 20))]
    {
        assert_eq!(config(&format!("max_memory = {written}")).unwrap().max_memory, bytes, "{written}");
    }
    for (written, problem) in [
        ("\"1MiB\"", "is \"1MiB\", not at least \"16MiB\" (or 0, for no ceiling)"),
        ("\"lots\"", "is \"lots\", not a size such as 1048576, \"2MiB\" or \"500kB\""),
    ] {
        refused(
            &format!("max_memory = {written}"),
            &format!("prism.toml:1:14: max_memory {problem}\n  max_memory = {written}\n  fix: max_memory = \"2GiB\""),
        );
    }
}

#[test]
fn a_secret_that_is_written_out_where_others_can_read_it_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prism.toml");
    let warnings = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let places = ConfigPaths { explicit: Some(file.clone()), here: PathBuf::new(), home: folder.path().to_owned() };
        let loaded = load(&places, &[], &Flags::default(), &Env::default()).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let destination = |lines: &str| format!("[destination.a]\n{lines}\n");
    for lines in [
        "command = [\"x\"]\nenv = { API_KEY = \"hunter2\" }",
        "url = \"https://example.com/\"\nheaders = { Authorization = \"Bearer hunter2\" }",
    ] {
        let [warning] = &warnings(&destination(lines), 0o644)[..] else { panic!("{lines}") };
        assert!(warning.contains("\"a\" has a secret") && warning.contains("fix: chmod 600 "), "{warning}");
        assert!(!warning.contains("hunter2"), "{warning}");
        assert_eq!(warnings(&destination(lines), 0o600), [""; 0]);
    }
    let harmless = "command = [\"x\"]\nenv = { API_KEY = \"env:K\", A_TOKEN = \"file:/x\", COLOUR = \"red\" }";
    assert_eq!(warnings(&destination(harmless), 0o644), [""; 0]);
}

#[test]
fn a_sandbox_is_a_word_or_a_table_and_what_makes_no_sense_is_shown_with_what_does() {
    let of = |lines: &str| config(&format!("[destination.a]\ncommand = [\"x\"]\n{lines}")).map(sandbox_of_a);
    assert_eq!(of("").unwrap(), None);
    assert_eq!(of("sandbox = false").unwrap(), None);
    for all in
        ["sandbox = true", "sandbox = {}", "[destination.a.sandbox]", "[destination.a.sandbox]\nnetwork = \"all\""]
    {
        assert_eq!(of(all).unwrap(), Some(SandboxConfig::default()), "{all}");
    }
    for (written, error) in [
        (
            "sandbox = \"yes\"",
            "prism.toml:3:11: destination.a.sandbox is \"yes\", not true, false or a table with folders, readable and \
             network\n  sandbox = \"yes\"\n  fix: sandbox = true",
        ),
        (
            "sandbox = [\"~/notes\"]",
            "prism.toml:3:11: destination.a.sandbox is a list, not true, false or a table with folders, readable and \
             network\n  sandbox = [\"~/notes\"]\n  fix: sandbox = true",
        ),
        (
            "[destination.a.sandbox]\nfolders = \"~/notes\"",
            "prism.toml:4:11: destination.a.sandbox.folders is \"~/notes\", not a list of texts\n  folders = \"~/notes\"\n  \
             fix: folders = [\"~/notes\"]",
        ),
        (
            "[destination.a.sandbox]\nnetwork = \"non\"",
            "prism.toml:4:11: destination.a.sandbox.network is \"non\", not one of \"all\", \"none\"\n  \
             network = \"non\"\n  fix: network = \"none\"",
        ),
        (
            "[destination.a.sandbox]\nfolder = []",
            "prism.toml:4:1: unknown key \"folder\"\n  folder = []\n  fix: did you mean \"folders\"?",
        ),
        (
            "sandbox = { writable = [] }",
            "prism.toml:3:13: unknown key \"writable\"\n  sandbox = { writable = [] }\n  \
             fix: the keys of [destination.NAME.sandbox] are folders, readable, network",
        ),
    ] {
        refused(&format!("[destination.a]\ncommand = [\"x\"]\n{written}"), error);
    }
    let keys = toml::from_str::<RawConfig>("destination.a.sandbox.zzz = 1").unwrap_err();
    assert_eq!(keys_in(keys.message()), SANDBOX_KEYS);
}

fn sandbox_of_a(mut config: Config) -> Option<SandboxConfig> {
    config.destinations.remove("a").and_then(|destination| destination.sandbox)
}

#[test]
fn a_server_that_nobody_starts_here_has_no_sandbox() {
    for written in ["sandbox = true", "[destination.a.sandbox]\nnetwork = \"none\""] {
        let error =
            config(&format!("[destination.a]\nurl = \"http://127.0.0.1/mcp\"\n{written}")).unwrap_err().to_string();
        assert!(error.contains("destination.a.sandbox is for a command, and there is a url"), "{error}");
        assert!(error.ends_with("fix: take it out; nothing is started here"), "{error}");
    }
}

#[test]
fn an_editors_list_has_it_in_the_same_words() {
    let read = |entry: &str| import(&format!(r#"{{"servers": {{"a": {{{entry}}}}}}}"#), &Env::default());
    let of =
        |written: &str| read(&format!(r#""command": "x", "sandbox": {written}"#)).destinations.remove("a").unwrap();
    assert_eq!(
        (of("true").sandbox, of("false").sandbox, of("null").sandbox),
        (Some(SandboxConfig::default()), None, None)
    );
    let sandbox = of(r#"{"folders": ["${workspaceFolder}/notes", "out"], "readable": ["/opt/x"], "network": "none"}"#);
    let folders = vec!["/srv/app/notes".into(), "/srv/app/out".into()];
    let expected = SandboxConfig { folders, readable: vec!["/opt/x".into()], network: NetworkAccess::Own };
    assert_eq!(sandbox.sandbox, Some(expected));
    // Nobody is started without it who was to have one.
    for (written, why) in [
        ("\"yes\"", "its sandbox is neither true, false nor an object"),
        (r#"{"folder": []}"#, "its sandbox has \"folder\", and may have folders, readable, network"),
        (r#"{"folders": "x"}"#, "its folders are not a list of texts, in its sandbox"),
        (r#"{"network": "some"}"#, "the network of its sandbox is neither"),
    ] {
        let import = read(&format!(r#""command": "x", "sandbox": {written}"#));
        assert!(import.destinations.is_empty() && import.warnings[0].reason.contains(why), "{:?}", import.warnings);
    }
    for (entry, what) in [
        (r#""command": "x", "sandboxEnabled": true"#, "is taken without its sandboxEnabled, which is not read"),
        (r#""url": "http://127.0.0.1/mcp", "sandbox": true"#, "is taken without its sandbox: nothing is started"),
    ] {
        let import = read(entry);
        assert!(import.destinations["a"].sandbox.is_none() && import.warnings[0].reason.contains(what), "{entry}");
    }
}
