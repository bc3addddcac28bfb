//! `prism import` and `prism migrate`: the servers that other programs' configs hold (D-06, W-05).

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{Ended, Home, Launch};

async fn prism(home: &Home, arguments: &[&str]) -> Ended {
    let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
    Launch::prism(arguments).home(home).env("PRISM_HOME", &home.file(".prism")).end().await
}

async fn ok(home: &Home, arguments: &[&str]) -> String {
    let ended = prism(home, arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

fn write(home: &Home, path: &str, text: &str) -> PathBuf {
    let path = home.path().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

const CURSOR: &str = r#"{
  // mine
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "files"],
      "env": { "API_KEY": "hunter2", "OTHER": "${env:OTHER_KEY}" }
    }, // keep me
    "my docs!": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer ${env:DOCS}" } },
    "asks": { "command": "x", "args": ["${input:key}"] }
  },
  "other": [1, 2]
}
"#;

const CODEX: &str = r#"model = "o3" # fast

[mcp_servers.git] # git
command = "uvx"
args = ["mcp-server-git"]

[mcp_servers.git.env]
LEVEL = "1"

[mcp_servers.files]
command = "other-files"

[mcp_servers.remote]
url = "https://example.com/codex"
bearer_token_env_var = "CODEX_TOKEN"

[tui]
theme = "dark"
"#;

// D-06
#[tokio::test]
async fn servers_of_all_configs_come_into_prism_toml_under_names_of_their_own() {
    let home = Home::new();
    write(&home, ".cursor/mcp.json", CURSOR);
    write(&home, ".codex/config.toml", CODEX);
    write(
        &home,
        ".config/zed/settings.json",
        r#"{"context_servers": {"zed-one": {"command": {"path": "z", "args": ["1"], "env": {}}}, "ext": {"settings": {}}}}"#,
    );
    write(
        &home,
        ".config/opencode/opencode.json",
        r#"{"mcp": {"oc": {"type": "local", "command": ["o", "p"], "environment": {"K": "{env:OC}"}}, "off": {"type": "remote", "url": "https://x.example/mcp", "enabled": false}}}"#,
    );
    write(
        &home,
        ".gemini/settings.json",
        r#"{"mcpServers": {"old": {"url": "https://example.com/sse"}, "git2": {"command": "uvx", "args": ["mcp-server-git"], "env": {"LEVEL": "1"}}}}"#,
    );
    ok(&home, &["install", "windsurf"]).await;
    let said = ok(&home, &["import"]).await;
    assert!(!said.contains("hunter2"), "{said}");
    for line in [
        "my docs! is called my-docs",
        "files is called files-2",
        "asks stays: its args has ${input:key} in it",
        "ext stays: it belongs to an extension of Zed",
        "off stays: it is disabled",
        "git2 is already there, as git",
        "its variables or headers stand in",
        "undo: prism import --undo",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let path = home.path().join(".prism/prism.toml");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let toml: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
    let destination = |name: &str| serde_json::to_value(&toml["server"][name]).unwrap();
    for (name, expected) in [
        ("files", json!({"command": ["npx", "-y", "files"], "env": {"API_KEY": "hunter2", "OTHER": "env:OTHER_KEY"}})),
        ("my-docs", json!({"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer env:DOCS"}})),
        ("git", json!({"command": ["uvx", "mcp-server-git"], "env": {"LEVEL": "1"}})),
        ("files-2", json!({"command": ["other-files"]})),
        ("remote", json!({"url": "https://example.com/codex", "headers": {"Authorization": "Bearer env:CODEX_TOKEN"}})),
        ("zed-one", json!({"command": ["z", "1"]})),
        ("oc", json!({"command": ["o", "p"], "env": {"K": "env:OC"}})),
        ("old", json!({"url": "https://example.com/sse", "type": "sse"})),
    ] {
        assert_eq!(destination(name), expected, "{name}");
    }
    assert_eq!(toml["server"].as_table().unwrap().len(), 8, "Prism itself is not one of them: {said}");
    // Twice is once.
    let before = fs::read_to_string(&path).unwrap();
    let said = ok(&home, &["import"]).await;
    assert!(said.contains("there is nothing to import"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
    // The daemon takes the file.
    assert_eq!(
        serde_json::from_str::<Value>(&ok(&home, &["list", "--json"]).await).unwrap().as_array().unwrap().len(),
        8
    );
}

#[tokio::test]
async fn a_server_that_was_to_have_a_sandbox_has_it_here_or_stays() {
    let home = Home::new();
    let servers = r#"{"mcpServers": {
        "plain": {"command": "x", "sandbox": true},
        "notes": {"command": "y", "sandbox": {"folders": ["${userHome}/notes"], "network": "none"}},
        "odd": {"command": "z", "sandbox": "yes"}
    }}"#;
    write(&home, ".cursor/mcp.json", servers);
    let said = ok(&home, &["import", "cursor"]).await;
    assert!(said.contains("odd stays: its sandbox is neither true, false nor an object"), "{said}");
    let text = fs::read_to_string(home.path().join(".prism/prism.toml")).unwrap();
    let room =
        format!("sandbox = {{ folders = [{:?}], readable = [], network = \"none\" }}", home.path().join("notes"));
    assert!(text.contains("sandbox = true") && text.contains(&room) && !text.contains("odd"), "{text}");
}

// D-06
#[tokio::test]
async fn what_import_takes_out_of_the_configs_it_puts_back_to_the_byte() {
    let home = Home::new();
    let cursor = write(&home, ".cursor/mcp.json", CURSOR);
    let codex = write(&home, ".codex/config.toml", CODEX);
    let config = write(&home, ".prism/prism.toml", "# mine\nport = 7425\n");
    let said = ok(&home, &["import", "--remove", "--dry-run"]).await;
    assert!(said.contains("nothing was written") && said.contains("+[server.files]"), "{said}");
    assert_eq!(fs::read_to_string(&cursor).unwrap(), CURSOR);
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\nport = 7425\n");

    ok(&home, &["import", "--remove"]).await;
    let left = fs::read_to_string(&cursor).unwrap();
    assert!(left.contains("\"asks\"") && left.contains("// mine") && left.contains("// keep me"), "{left}");
    assert!(!left.contains("\"files\"") && !left.contains("my docs"), "{left}");
    assert_eq!(fs::read_to_string(&codex).unwrap(), "model = \"o3\" # fast\n\n[tui]\ntheme = \"dark\"\n");
    ok(&home, &["install", "cursor", "codex"]).await;
    ok(&home, &["uninstall", "cursor", "codex"]).await;
    ok(&home, &["import", "--undo"]).await;
    assert_eq!(fs::read_to_string(&cursor).unwrap(), CURSOR);
    assert_eq!(fs::read_to_string(&codex).unwrap(), CODEX);
    assert_eq!(fs::read_to_string(&config).unwrap(), "# mine\nport = 7425\n");
    assert!(ok(&home, &["import", "--undo"]).await.contains("no import to undo"));
}

// D-06
#[tokio::test]
async fn an_import_is_undone_entry_by_entry_where_others_have_changed_the_files() {
    let home = Home::new();
    let cursor = write(&home, ".cursor/mcp.json", CURSOR);
    let codex = write(&home, ".codex/config.toml", CODEX);
    ok(&home, &["import", "--remove"]).await;
    ok(&home, &["add", "later", "--config", &home.file(".prism/prism.toml"), "--", "later"]).await;
    ok(&home, &["install", "cursor", "codex"]).await;
    ok(&home, &["import", "--undo"]).await;
    let value = |path: &PathBuf| -> Value {
        let text = fs::read_to_string(path).unwrap();
        let plain: String = text
            .lines()
            .map(|line| line.split(" // ").next().unwrap())
            .filter(|line| line.trim() != "// mine")
            .collect();
        serde_json::from_str(&plain).unwrap()
    };
    let now = value(&cursor);
    assert_eq!(now["mcpServers"].as_object().unwrap().len(), 4, "{now}");
    assert_eq!(now["mcpServers"]["files"]["env"]["API_KEY"], "hunter2");
    let now: toml::Table = fs::read_to_string(&codex).unwrap().parse().unwrap();
    let was: toml::Table = CODEX.parse().unwrap();
    assert_eq!(now["mcp_servers"]["git"], was["mcp_servers"]["git"]);
    assert_eq!(now["mcp_servers"].as_table().unwrap().len(), 4);
    let config: toml::Table = fs::read_to_string(home.path().join(".prism/prism.toml")).unwrap().parse().unwrap();
    let names: Vec<_> = config["server"].as_table().unwrap().keys().collect();
    assert_eq!(names, ["later"]);
    ok(&home, &["uninstall", "--all"]).await;
    assert_eq!(value(&cursor)["mcpServers"].as_object().unwrap().len(), 3);
}

// D-06
#[tokio::test]
async fn a_broken_config_does_not_stop_the_import_of_the_others() {
    let home = Home::new();
    let broken = write(&home, ".cursor/mcp.json", "{\n  oops\n}\n");
    write(&home, ".codex/config.toml", CODEX);
    let ended = prism(&home, &["import"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains(&format!("{}:2:3", broken.display())), "{}", ended.stderr);
    assert!(fs::read_to_string(home.path().join(".prism/prism.toml")).unwrap().contains("[server.git]"));
}

// W-05
#[tokio::test]
async fn sse_entries_that_lead_to_the_daemon_are_rewritten_and_come_back_to_the_byte() {
    let home = Home::new();
    let cursor = "{\n  \"mcpServers\": {\n    // ours\n    \"notes\": { \"type\": \"sse\", \"url\": \"http://localhost:7420/notes/sse?x=1\" }, // old\n    \"far\": { \"url\": \"http://127.0.0.1:1/sse\" },\n    \"new\": { \"url\": \"http://127.0.0.1:7420/new/mcp\" },\n  }\n}";
    let gemini = "{\"mcpServers\":{\"notes\":{\"url\":\"http://127.0.0.1:7420/notes/sse\",\"timeout\":5}}}\n";
    let codex = "[mcp_servers.notes]\nurl = 'http://127.0.0.1:7420/notes/sse' # old\n";
    let windsurf =
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"n\": {\"serverUrl\": \"http://127.0.0.1:7420/n/sse\"}\r\n\t}\r\n}\r\n";
    let files = [
        (write(&home, ".cursor/mcp.json", cursor), cursor),
        (write(&home, ".gemini/settings.json", gemini), gemini),
        (write(&home, ".codex/config.toml", codex), codex),
        (write(&home, ".codeium/windsurf/mcp_config.json", windsurf), windsurf),
    ];
    let said = ok(&home, &["migrate", "--dry-run"]).await;
    assert!(said.contains("nothing was written") && said.contains("would be rewritten: notes"), "{said}");
    for (path, text) in &files {
        assert_eq!(fs::read_to_string(path).unwrap(), *text);
    }
    let said = ok(&home, &["migrate"]).await;
    assert!(said.contains("far stays: it leads to another server") && said.contains("--all"), "{said}");
    let now: Vec<String> = files.iter().map(|(path, _)| fs::read_to_string(path).unwrap()).collect();
    let expected = [
        cursor.replace("\"type\": \"sse\"", "\"type\": \"http\"").replace("/notes/sse?x=1", "/notes/mcp?x=1"),
        gemini.replace("\"url\"", "\"httpUrl\"").replace("/notes/sse", "/notes/mcp"),
        codex.replace("'http://127.0.0.1:7420/notes/sse'", "\"http://127.0.0.1:7420/notes/mcp\""),
        windsurf.replace("/n/sse", "/n/mcp"),
    ];
    assert_eq!(now, expected);
    assert!(ok(&home, &["migrate", "codex"]).await.contains("no config has an SSE entry"));

    // One of them is edited in between.
    fs::write(&files[2].0, format!("# edited\n{}", fs::read_to_string(&files[2].0).unwrap())).unwrap();
    ok(&home, &["migrate", "--undo"]).await;
    for (path, text) in [&files[0], &files[1], &files[3]] {
        assert_eq!(fs::read_to_string(path).unwrap(), *text);
    }
    assert_eq!(fs::read_to_string(&files[2].0).unwrap(), format!("# edited\n{codex}"));
}

// W-05: another server is asked first.
#[tokio::test]
async fn sse_entries_that_lead_elsewhere_are_rewritten_if_the_server_answers_at_the_new_place() {
    let home = Home::new();
    let arguments = ["demo-server", "--http", "127.0.0.1:0"].map(str::to_owned).to_vec();
    let server = Launch::prism(arguments).start().await;
    let near = format!("http://127.0.0.1:{}", server.port());
    let text = json!({"mcpServers": {
        "near": {"type": "sse", "url": format!("{near}/sse")},
        "dead": {"url": "http://127.0.0.1:1/sse"},
        "odd": {"type": "sse", "url": format!("{near}/events")},
    }})
    .to_string();
    let path = write(&home, ".cursor/mcp.json", &text);
    let said = ok(&home, &["migrate", "cursor"]).await;
    assert!(said.contains("near stays: it leads to another server") && said.contains("--all asks it"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let rows: Value = serde_json::from_str(&ok(&home, &["migrate", "cursor", "--all", "--json"]).await).unwrap();
    assert_eq!(rows[0]["rewritten"], json!(["near"]), "{rows}");
    let now: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(now["mcpServers"]["near"], json!({"type": "http", "url": format!("{near}/mcp")}));
    let said = ok(&home, &["migrate", "cursor", "--all"]).await;
    assert!(said.contains("dead stays: it does not answer at http://127.0.0.1:1/mcp"), "{said}");
    assert!(said.contains("odd stays: it has the URL"), "{said}");
    ok(&home, &["migrate", "--undo"]).await;
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}
