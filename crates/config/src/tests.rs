//! What a person reads when a config is wrong, and who has the last word when it is right.

use std::path::Path;

use super::{
    file::{ConfigDraft, ConfigPaths, load},
    mcp_json,
    raw::{
        RawConfig, by_nearness, check_name,
        keys::{DESTINATION_KEYS, GLOBAL_KEYS},
    },
    *,
};

mod children;
mod page;
mod servers;
mod trust;

fn config(text: &str) -> Result<Config, ConfigError> {
    config_in(text, &Env::default(), &Flags::default())
}

pub(super) fn config_in(text: &str, env: &Env, flags: &Flags) -> Result<Config, ConfigError> {
    RawConfig::parse(Path::new("prism.toml"), text)?.config(env, flags)
}

/// Checks the whole text of an error, as it would stand on a screen.
#[track_caller]
fn refused(text: &str, expected: &str) {
    assert_eq!(config(text).unwrap_err().to_string(), expected);
}

pub(super) fn keys_in(message: &str) -> Vec<&str> {
    message.split('`').skip(1).step_by(2).skip(1).collect()
}

#[test]
fn an_empty_file_is_the_default() {
    assert_eq!(config("").unwrap(), Config::default());
}

#[test]
fn every_key_is_understood() {
    let text = r#"
        address = "::1"
        port = 0
        allowed_hosts = ["build.example"]
        allowed_origins = ["https://build.example", "vscode-webview://x"]
        request_timeout = 0
        max_request_time = "2h"
        start_timeout = 0
        max_message_bytes = "2MiB"
        session_idle_timeout = "0"
        drain_timeout = "7s"
        log_bodies = true
        error_statuses = "http"
        max_sessions = 4
        inherit_env = "all"
        login_path = false
        max_memory = "2GiB"
        [destination.Files_1]
        command = ["npx", "-y", "x"]
        env = { A = "b", C = "env:SECRET", D = "file:d", E = "file:~/e", F = "keyring:s/a" }
        inherit_env = ["AWS_PROFILE", "MY_*"]
        max_memory = 0
        cwd = "/srv"
        process = "per_session"
        asks = false
        sessions = "required"
        keep_warm = "500ms"
        idle_stop = "2h"
        request_timeout = "5s"
        max_request_time = "1m"
        start_timeout = "3m"
        strict_streams = true
        legacy_sse = true
        sse_event_names = "method"
        error_statuses = "ok"
        era = "legacy"
        [destination.Files_1.sandbox]
        folders = ["~/notes", "/srv/data"]
        readable = ["/opt/models"]
        network = "none"
        [destination.web]
        type = "stdio"
        command = ["web"]
        cwd = "~/web"
        max_sessions = 2
        sandbox = true
        era = "auto"
        sse_event_names = "message"
        [server.docs]
        url = "https://example.com/mcp?tenant=1"
        type = "streamable_http"
        headers = { Authorization = "Bearer env:SECRET", X-Plain = "a b" }
        forward_headers = ["X-Tenant", "X-Team-*"]
        era = "modern"
        process = "shared_always"
        hub = false
    "#;
    let env = Env::from([("SECRET", "s"), ("HOME", "/home/me")]);
    let config = config_in(text, &env, &Flags::default()).unwrap();

    let files = DestinationConfig {
        table: ServerTable::Destination,
        env: [
            ("A", "b"),
            ("C", "env:SECRET"),
            ("D", &format!("file:{}", std::path::absolute("d").unwrap().display())),
            ("E", "file:/home/me/e"),
            ("F", "keyring:s/a"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        inherit_env: EnvInheritance::Also(["AWS_PROFILE", "MY_*"].map(str::to_owned).into()),
        max_memory: None,
        cwd: Some("/srv".into()),
        sandbox: Some(SandboxConfig {
            folders: vec!["/home/me/notes".into(), "/srv/data".into()],
            readable: vec!["/opt/models".into()],
            network: prism_os::sandbox::NetworkAccess::Own,
        }),
        process: ProcessSharing::PerSession,
        asks: Some(false),
        sessions: SessionRequirement::Required,
        max_sessions: 4,
        keep_warm: Duration::from_millis(500),
        idle_stop: Some(Duration::from_secs(2 * 60 * 60)),
        times: TimeLimitOverrides {
            request_timeout: Some(Some(Duration::from_secs(5))),
            max_request_time: Some(Duration::from_secs(60)),
            start_timeout: Some(Some(Duration::from_secs(180))),
        },
        strict_streams: true,
        legacy_sse: true,
        event_names: EventNames::Method,
        error_statuses: Some(ErrorStatuses::Ok),
        era: Some(Era::Legacy),
        ..DestinationConfig::stdio("Files_1", ["npx", "-y", "x"].map(str::to_owned).into())
    };
    let web = DestinationConfig {
        table: ServerTable::Destination,
        cwd: Some("/home/me/web".into()),
        sandbox: Some(SandboxConfig::default()),
        inherit_env: EnvInheritance::All,
        max_memory: Some(2 << 30),
        max_sessions: 2,
        ..DestinationConfig::stdio("web", vec!["web".to_owned()])
    };
    let http = HttpConfig {
        transport: Some(Transport::StreamableHttp),
        headers: [("Authorization", "Bearer env:SECRET"), ("X-Plain", "a b")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        forward_headers: ["x-tenant", "x-team-*"].map(str::to_owned).into(),
        ..HttpConfig::new("https://example.com/mcp?tenant=1")
    };
    let docs = DestinationConfig {
        era: Some(Era::Modern),
        process: ProcessSharing::SharedAlways,
        max_sessions: 4,
        hub: false,
        ..DestinationConfig::http("docs", http)
    };
    let expected = Config {
        address: Ipv6Addr::LOCALHOST.into(),
        port: 0,
        allowed_hosts: vec!["build.example".to_owned()],
        allowed_origins: ["https://build.example", "vscode-webview://x"].map(str::to_owned).into(),
        request_timeout: None,
        max_request_time: Duration::from_secs(2 * 60 * 60),
        start_timeout: None,
        max_message_bytes: 2 << 20,
        session_idle_timeout: None,
        drain_timeout: Duration::from_secs(7),
        log_bodies: true,
        error_statuses: ErrorStatuses::Http,
        max_sessions: 4,
        inherit_env: EnvInheritance::All,
        login_path: false,
        max_memory: Some(2 << 30),
        destinations: [files, web, docs].map(|destination| (destination.name.clone(), destination)).into(),
        // Theirs are in `hub/tests.rs`, `mesh.rs` and `gate.rs`.
        hub: HubConfig::default(),
        mesh: MeshConfig::default(),
        gate: GateConfig::default(),
        audit: AuditConfig::default(),
        editor: super::Editor::default(),
        profiles: BTreeMap::new(),
        workspace: None,
    };
    assert_eq!(config, expected);
}

#[test]
fn the_lists_of_keys_are_what_serde_accepts() {
    let error = toml::from_str::<RawConfig>("zzz = 1").unwrap_err();
    assert_eq!(keys_in(error.message()), GLOBAL_KEYS);
    for table in ServerTable::ALL {
        let error = toml::from_str::<RawConfig>(&format!("{table}.a.zzz = 1")).unwrap_err();
        assert_eq!(keys_in(error.message()), DESTINATION_KEYS);
    }
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_the_nearest_known_one() {
    refused(
        "port = 7420\n\nrequst_timeout = \"30s\" # slow\n",
        "prism.toml:3:1: unknown key \"requst_timeout\"\n  requst_timeout = \"30s\" # slow\n  \
         fix: did you mean \"request_timeout\"?",
    );
    refused(
        "[destination.a]\r\ncomand = [\"x\"]\r\n",
        "prism.toml:2:1: unknown key \"comand\"\n  comand = [\"x\"]\n  fix: did you mean \"command\"?",
    );
    refused(
        "[destinations.a]\ncommand = [\"x\"]\n",
        "prism.toml:1:2: unknown key \"destinations\"\n  [destinations.a]\n  fix: did you mean \"destination\"?",
    );
}

#[test]
fn a_key_on_the_wrong_level_is_told_where_it_belongs() {
    refused(
        "[destination.a]\ncommand = [\"x\"]\nport = 1",
        "prism.toml:3:1: unknown key \"port\"\n  port = 1\n  \
         fix: \"port\" is for the whole daemon: put it above the first [destination.NAME] line",
    );
    refused(
        "command = [\"x\"]",
        "prism.toml:1:1: unknown key \"command\"\n  command = [\"x\"]\n  \
         fix: \"command\" belongs to a server: put it below a [server.NAME] line",
    );
}

#[test]
fn broken_toml_is_shown_with_its_line() {
    refused(
        "port = 1\naddress = \"127.0.0.1\n",
        "prism.toml:2:21: invalid basic string, expected `\"`\n  address = \"127.0.0.1",
    );
    refused("port = 1\nport = 2\n", "prism.toml:2:1: duplicate key\n  port = 2\n  fix: keep one of the two");
}

#[test]
fn a_duration_needs_a_unit_and_a_limit() {
    refused(
        "request_timeout = 30",
        "prism.toml:1:19: request_timeout is 30, not a duration: it has no unit\n  request_timeout = 30\n  \
         fix: request_timeout = \"30s\"",
    );
    for wrong in ["\"30 parsecs\"", "\"-1s\"", "\"1.5s\"", "-1", "true", "\"9999d\"", "\"99999999999999999999s\""] {
        let error = config(&format!("session_idle_timeout = {wrong}")).unwrap_err();
        assert!(error.to_string().contains("prism.toml:1:24"), "{wrong}: {error}");
    }
}

#[test]
fn durations_and_sizes_are_read_as_people_write_them() {
    for (written, seconds) in [("500ms", 0.5), ("30s", 30.0), ("5m", 300.0), ("1h", 3600.0), ("2 d", 172_800.0)] {
        let config = config(&format!("request_timeout = {written:?}")).unwrap();
        assert_eq!(config.request_timeout.unwrap().as_secs_f64(), seconds, "{written}");
    }
    for (written, bytes) in [("1024", 1024), ("\"2MiB\"", 2 << 20), ("\"500kB\"", 500_000), ("\"7\"", 7)] {
        let config = config(&format!("max_message_bytes = {written}")).unwrap();
        assert_eq!(config.max_message_bytes, bytes, "{written}");
    }
    for wrong in ["0", "-1", "\"2 MiBs\"", "\"99999999999GiB\"", "1.5"] {
        assert!(config(&format!("max_message_bytes = {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn a_longer_request_timeout_moves_the_default_limit_along() {
    let config = config("request_timeout = \"1h\"").unwrap();
    assert_eq!(config.max_request_time, Duration::from_secs(3600));
}

// B-07: each server may have limits of its own.
#[test]
fn a_servers_own_limits_beat_the_daemons_and_the_rest_is_the_daemons() {
    let text = "request_timeout = \"7s\"\nstart_timeout = \"1m\"\n[destination.a]\ncommand = [\"x\"]\n";
    let within = |more: &str| {
        let config = config(&format!("{text}{more}")).unwrap();
        config.destinations["a"].times.within(&config)
    };
    let (seven, ten_minutes, minute) = (Duration::from_secs(7), Duration::from_secs(600), Duration::from_secs(60));
    let times = |request, max_request_time, start| TimeLimits {
        request_timeout: request,
        max_request_time,
        start_timeout: start,
    };
    assert_eq!(within(""), times(Some(seven), ten_minutes, Some(minute)));
    assert_eq!(within("request_timeout = 0\nstart_timeout = 0"), times(None, ten_minutes, None));
    let hour = Duration::from_secs(3600);
    assert_eq!(within("request_timeout = \"1h\""), times(Some(hour), hour, Some(minute)));
    assert_eq!(within("max_request_time = \"1h\""), times(Some(seven), hour, Some(minute)));
}

#[test]
fn a_command_that_is_one_text_is_shown_as_a_list() {
    refused(
        "[destination.a]\ncommand = \"npx -y foo\"",
        "prism.toml:2:11: destination.a.command is \"npx -y foo\", not a list with each word by itself\n  \
         command = \"npx -y foo\"\n  fix: command = [\"npx\", \"-y\", \"foo\"]",
    );
    for wrong in ["[]", "[\"\"]", "[1]", "[\"x\\u0000\"]", "3"] {
        assert!(config(&format!("[destination.a]\ncommand = {wrong}")).is_err(), "{wrong}");
    }
}

#[test]
fn a_choice_lists_the_choices_and_the_nearest() {
    refused(
        "[destination.a]\ncommand = [\"x\"]\nprocess = \"per_sesion\"",
        "prism.toml:3:11: destination.a.process is \"per_sesion\", not one of \"shared\", \"per_session\", \
         \"shared_always\"\n  process = \"per_sesion\"\n  fix: process = \"per_session\"",
    );
    assert!(config("[destination.a]\ncommand = [\"x\"]\nsessions = 3").is_err());
}

#[test]
fn a_name_must_fit_into_a_path_and_not_be_ours() {
    for name in ["a", "A9", "0_-", &"x".repeat(32)] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in ["", "-a", "_a", "a b", "a/b", "ä", "a.b", &"x".repeat(33)] {
        assert!(matches!(check_name(name), Err(NameError::Shape { .. })), "{name}");
    }
    for name in ["mcp", "Healthz", "prism", "workspace", "editor", "console"] {
        assert!(matches!(check_name(name), Err(NameError::Reserved { .. })), "{name}");
    }
    refused(
        "[destination.\"my files\"]\ncommand = [\"x\"]",
        "prism.toml:1:14: \"my files\" cannot name a server: letters, digits, `-` and `_`, at most 32, \
         a letter or digit first\n  [destination.\"my files\"]\n  fix: call it \"my-files\", for example",
    );
}

// D-01
#[test]
fn an_address_that_others_can_reach_must_be_meant() {
    let text = "address = \"0.0.0.0\"";
    refused(
        text,
        "prism.toml:1:11: address 0.0.0.0 can be reached from other machines, and there is no TLS\n  \
         address = \"0.0.0.0\"\n  \
         fix: address = \"127.0.0.1\", or say that you mean it: insecure = true (or --insecure)",
    );
    let insecure = Flags { insecure: true, ..Flags::default() };
    assert!(config("address = \"0.0.0.0\"\ninsecure = true").is_ok());
    assert!(config_in(text, &Env::default(), &insecure).is_ok());
    let env = Env::from([("PRISM_ADDRESS", "10.0.0.1")]);
    let error = config_in("", &env, &Flags::default()).unwrap_err().to_string();
    assert!(error.starts_with("environment variable PRISM_ADDRESS: address 10.0.0.1"), "{error}");
}

#[test]
fn debug_shows_no_secret() {
    let env = Env::from([("TOKEN", "hunter2")]);
    let text = "[destination.a]\ncommand = [\"x\"]\nenv = { A = \"hunter2\", B = \"env:TOKEN\" }";
    let config = config_in(text, &env, &Flags::default()).unwrap();
    assert_eq!(config.destinations["a"].env["B"], "env:TOKEN", "as it is written");
    assert!(!format!("{config:?} {env:?}").contains("hunter2"));
}

#[test]
fn the_environment_beats_the_file_and_a_flag_beats_both() {
    let env = Env::from([("PRISM_PORT", "2"), ("PRISM_REQUEST_TIMEOUT", "2s"), ("PRISM_MAX_SESSIONS", "")]);
    let flags = Flags { port: Some(3), ..Flags::default() };
    let text = "port = 1\nrequest_timeout = \"1s\"\nmax_sessions = 1";
    let config = config_in(text, &env, &flags).unwrap();
    assert_eq!(config.port, 3);
    assert_eq!(config.request_timeout, Some(Duration::from_secs(2)));
    assert_eq!(config.max_sessions, 1, "an empty variable is no variable");
}

#[test]
fn a_value_that_is_beaten_must_still_make_sense() {
    let flags = Flags { port: Some(3), ..Flags::default() };
    let error = config_in("port = -1", &Env::default(), &flags).unwrap_err();
    assert!(error.to_string().starts_with("prism.toml:1:8: port is -1"), "{error}");
}

#[test]
fn every_global_setting_is_read_from_the_environment() {
    for key in GLOBAL_KEYS.into_iter().filter(|key| !page::TABLES.contains(key)) {
        let variable = format!("PRISM_{}", key.to_uppercase());
        let env = Env::from([(variable.as_str(), "*no such thing*")]);
        let error = config_in("", &env, &Flags::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("{variable}: {key} ")), "{error}");
        assert!(error.contains(&format!("\n  fix: {variable}=")), "{error}");
    }
}

#[test]
fn every_flag_that_takes_a_value_is_read() {
    let flags = Flags {
        address: Some("::1".to_owned()),
        insecure: true,
        port: Some(1),
        request_timeout: Some("0".to_owned()),
        max_request_time: Some("1h".to_owned()),
        start_timeout: Some("1m".to_owned()),
        max_message_bytes: Some("5".to_owned()),
        session_idle_timeout: Some("1s".to_owned()),
        max_sessions: Some(2),
        log_bodies: true,
        hub_mode: Some("search".to_owned()),
        workspace: Some("/srv".to_owned()),
    };
    let expected = Config {
        address: Ipv6Addr::LOCALHOST.into(),
        port: 1,
        request_timeout: None,
        max_request_time: Duration::from_secs(3600),
        start_timeout: Some(Duration::from_secs(60)),
        max_message_bytes: 5,
        session_idle_timeout: Some(Duration::from_secs(1)),
        max_sessions: 2,
        log_bodies: true,
        hub: HubConfig { mode: HubMode::Search, ..HubConfig::default() },
        workspace: Some("/srv".into()),
        ..Config::default()
    };
    assert_eq!(config_in("", &Env::default(), &flags).unwrap(), expected);
}

// B-10, B-23
#[test]
fn the_old_names_of_variables_work_and_the_new_ones_beat_them() {
    let text = "[destination.a]\ncommand = [\"x\"]";
    let env = Env::from([("MAX_STDIO_CONNECTIONS", "3"), ("AUDIT_LOG_BODIES", "1")]);
    let config = config_in(text, &env, &Flags::default()).unwrap();
    assert_eq!((config.destinations["a"].max_sessions, config.log_bodies), (3, true));
    let env = Env::from([("MAX_STDIO_CONNECTIONS", "3"), ("PRISM_MAX_SESSIONS", "4")]);
    assert_eq!(config_in("", &env, &Flags::default()).unwrap().max_sessions, 4);
}

#[test]
fn the_nearest_word_comes_first() {
    let known = ["search", "files", "field"];
    assert_eq!(by_nearness("fiels", known.into_iter())[0], "files");
    assert_eq!(by_nearness("SEARCH", known.into_iter())[0], "search");
}

#[test]
fn the_url_is_one_that_this_machine_can_open() {
    let mut config = Config { port: 1, ..Config::default() };
    assert_eq!(config.url("a"), "http://127.0.0.1:1/a/mcp");
    config.address = Ipv4Addr::UNSPECIFIED.into();
    assert_eq!(config.url("a"), "http://127.0.0.1:1/a/mcp");
    config.address = Ipv6Addr::LOCALHOST.into();
    assert_eq!(config.url("a"), "http://[::1]:1/a/mcp");
}

#[test]
fn the_file_is_looked_for_here_and_then_at_home() {
    let folder = tempfile::tempdir().unwrap();
    let [here, home] = ["here", "home"].map(|name| folder.path().join(name));
    let mut places = ConfigPaths { explicit: None, here: here.clone(), home: home.clone() };
    assert_eq!(places.find().unwrap(), None);
    assert_eq!(places.target().unwrap(), home.join("prism.toml"));
    for place in [&home, &here] {
        std::fs::create_dir(place).unwrap();
        std::fs::write(place.join("prism.toml"), "port = 1").unwrap();
        assert_eq!(places.find().unwrap(), Some(place.join("prism.toml")));
    }
    places.explicit = Some(folder.path().join("other.toml"));
    assert!(matches!(places.find().unwrap_err(), ConfigError::NoFile { .. }));
}

#[test]
fn a_file_that_is_not_utf_8_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prism.toml");
    std::fs::write(&path, b"port = 1\n# caf\xe9\n").unwrap();
    let error = file::load_written(&path).unwrap_err().to_string();
    assert!(error.contains("prism.toml:2:6: this is not UTF-8"), "{error}");
}

#[test]
fn a_draft_that_does_not_read_back_as_meant_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prism.toml");
    std::fs::write(&path, "port = 1\n").unwrap();
    let mut draft = ConfigDraft::open(&path, folder.path()).unwrap();
    draft.document["port"] = toml_edit::value(2);
    let error = draft.save(&BTreeMap::new()).unwrap_err();
    assert!(matches!(error, ConfigError::Edit { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "port = 1\n");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

fn import(text: &str, env: &Env) -> mcp_json::McpJsonImport {
    mcp_json::parse(Path::new("/srv/app/.cursor/mcp.json"), text, env).unwrap()
}

#[test]
fn the_lists_of_cursor_claude_and_vs_code_are_read() {
    let files = DestinationConfig {
        env: BTreeMap::from([("A".to_owned(), "b".to_owned()), ("N".to_owned(), "1".to_owned())]),
        cwd: Some("/srv/app/sub".into()),
        ..DestinationConfig::stdio("files", ["npx", "-y", "x"].map(str::to_owned).into())
    };
    for key in ["mcpServers", "servers"] {
        let text = format!(
            r#"{{"other": 1, "{key}": {{"files": {{"type": "stdio", "command": "npx", "args": ["-y", "x"],
                "env": {{"A": "b", "N": 1, "unset": null}}, "cwd": "sub", "new": true}}}}}}"#
        );
        let import = import(&text, &Env::default());
        assert_eq!(import.destinations["files"], files);
        assert_eq!(import.warnings, []);
    }
}

#[test]
fn an_entry_that_cannot_be_used_is_left_out_with_its_reason() {
    let text = r#"{"mcpServers": {
        "off": {"command": "x", "disabled": true},
        "none": {},
        "my files": {"command": "x"},
        "prism": {"command": "prism", "args": ["stdio"]},
        "workspace": {"command": "x"},
        "ask": {"command": "x", "env": {"T": "${input:token}"}},
        "unset": {"command": "x", "env": {"T": "${env:NOPE}"}},
        "args": {"command": "x", "args": "y"},
        "good": {"command": "x"}
    }}"#;
    let import = import(text, &Env::default());
    assert_eq!(import.destinations.keys().collect::<Vec<_>>(), ["good"]);
    let reasons: BTreeMap<&str, String> =
        import.warnings.iter().map(|warning| (warning.name.as_str(), warning.to_string())).collect();
    for (name, reason) in [
        ("off", "\"off\" is skipped: it is disabled"),
        ("none", "it has neither a command nor a url"),
        ("my files", "call it \"my-files\""),
        ("prism", "a path of Prism's own"),
        ("workspace", "call it \"my-workspace\""),
        ("ask", "only an editor can fill in ${input:token}"),
        ("unset", "the environment variable NOPE"),
        ("args", "its args are not a list"),
    ] {
        assert!(reasons[name].contains(reason), "{name}: {}", reasons[name]);
    }
    assert_eq!(reasons.len(), 8);
}

#[test]
fn what_an_editor_would_fill_in_is_filled_in() {
    let text = r#"{"servers": {"a": {"command": "${userHome}/x", "args":
        ["${workspaceFolder}/y", "${env:T}-${T}", "${NOPE:-z}", "echo ${LATER} ${"]}}}"#;
    let env = Env::from([("HOME", "/home/me"), ("T", "t"), ("MCP_TOKEN", "own"), ("PRISM_API_KEY", "own")]);
    let from = |text: &str| import(text, &env);
    assert_eq!(from(text).destinations["a"].command, ["/home/me/x", "/srv/app/y", "t-t", "z", "echo ${LATER} ${"]);
    // M1
    for own in ["MCP_TOKEN", "PRISM_API_KEY"] {
        let text = format!(r#"{{"servers": {{"a": {{"command": "x", "env": {{"T": "${{env:{own}}}"}}}}}}}}"#);
        let import = from(&text);
        assert!(
            import.destinations.is_empty() && import.warnings[0].to_string().contains(own),
            "{:?}",
            import.warnings
        );
    }
}

#[test]
fn broken_json_is_shown_with_its_line() {
    let parse = |text| mcp_json::parse(Path::new("mcp.json"), text, &Env::default()).unwrap_err().to_string();
    assert_eq!(
        parse("{\n  \"servers\": {} // mine\n}"),
        "mcp.json:2:17: not JSON: expected `,` or `}`\n  \"servers\": {} // mine\n  \
         fix: take the comment out: plain JSON has none"
    );
    assert!(parse("{}").starts_with("mcp.json:1:1: there is neither \"mcpServers\" nor \"servers\" in it"));
    assert!(parse("").starts_with("mcp.json:1:0: not JSON: EOF"));
}

#[test]
fn json_destinations_join_those_of_the_file_and_never_replace_them() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("mcp.json");
    std::fs::write(folder.path().join("prism.toml"), "max_sessions = 3\n[destination.a]\ncommand = [\"toml\"]")
        .unwrap();
    std::fs::write(&json, r#"{"mcpServers": {"a": {"command": "json"}, "b": {"command": "json"}}}"#).unwrap();
    let places = ConfigPaths { explicit: None, here: folder.path().to_owned(), home: folder.path().to_owned() };
    let loaded = load(&places, &[json], &Flags::default(), &Env::default()).unwrap();
    assert_eq!(loaded.config.destinations["a"].command, ["toml"]);
    assert_eq!(loaded.config.destinations["b"].command, ["json"]);
    assert_eq!(loaded.config.destinations["b"].max_sessions, 3);
    assert_eq!(loaded.warnings.len(), 1);
    assert_eq!(loaded.file, Some(folder.path().join("prism.toml")));
}
