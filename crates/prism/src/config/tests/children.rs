//! What is written about children: what they inherit, where their secrets are, how much memory they may hold.

use std::os::unix::fs::PermissionsExt;

use super::*;

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
    assert_eq!(config.inherit_env, Inherit::Also(["A", "B_*"].map(str::to_owned).into()));
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
        let places = Places { explicit: Some(file.clone()), here: PathBuf::new(), home: folder.path().to_owned() };
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
