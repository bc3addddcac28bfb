//! `prism install` and `prism uninstall` on configs as people have them (D-06).

mod corpus;
mod extension;
mod hooks;
mod neovim;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use corpus::{BROKEN, SAMPLES, Sample};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Ended, Home, Launch};

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| (*word).to_owned()).collect()
}

/// Runs a command. Whatever editor is on the PATH of this machine is not told of it.
async fn prism(home: &Home, arguments: &[&str]) -> Ended {
    let launch = Launch::prism(words(arguments)).home(home).env("PRISM_HOME", &home.file(".prism"));
    launch.env("PATH", &home.file("bin")).end().await
}

/// Runs a command that must end well, and returns what it said.
async fn ok(home: &Home, arguments: &[&str]) -> String {
    let ended = prism(home, arguments).await;
    assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
    ended.stdout
}

/// Where a surface keeps its servers below a home folder.
fn place(surface: &str) -> &'static str {
    match surface {
        "cursor" => ".cursor/mcp.json",
        "claude-code" => ".claude.json",
        "claude-desktop" => ".config/Claude/claude_desktop_config.json",
        "vscode" => ".config/Code/User/mcp.json",
        "void" => ".void-editor/mcp.json",
        "windsurf" => ".codeium/windsurf/mcp_config.json",
        "zed" => ".config/zed/settings.json",
        "codex" => ".codex/config.toml",
        "gemini-cli" => ".gemini/settings.json",
        "opencode" => ".config/opencode/opencode.json",
        other => panic!("{other}"),
    }
}

fn write(home: &Home, surface: &str, text: &str) -> PathBuf {
    let path = home.path().join(place(surface));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn read(path: &Path) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}

/// Whether all of a text is still there, in its order, with something put in between.
fn is_kept(before: &str, after: &str) -> bool {
    let mut after = after.chars();
    before.chars().all(|wanted| after.any(|found| found == wanted))
}

/// Does the same for many files, a few of them at a time.
async fn each(samples: &[Sample], check: impl AsyncFn(&Sample)) {
    for some in samples.chunks(8) {
        join_all(some.iter().map(|sample| check(sample))).await;
    }
}

fn token(home: &Home) -> String {
    read(&home.path().join(".prism/http-mcp-token")).trim().to_owned()
}

// D-06
#[tokio::test]
async fn what_install_writes_uninstall_takes_back_to_the_byte() {
    each(SAMPLES, async |Sample { name, surface, text }| {
        let home = Home::new();
        let path = write(&home, surface, text);
        ok(&home, &["install", surface]).await;
        let installed = read(&path);
        assert!(installed != *text && is_kept(text, &installed), "{name}: {installed}");
        let crlf = text.matches("\r\n").count();
        assert!(crlf == 0 || installed.matches("\r\n").count() == installed.matches('\n').count(), "{name}");
        // Twice is once.
        let said = ok(&home, &["install", surface]).await;
        assert!(said.contains("already installed"), "{name}: {said}");
        assert_eq!(read(&path), installed, "{name}");
        ok(&home, &["uninstall", surface]).await;
        assert_eq!(read(&path), *text, "{name}: {installed}");
        assert!(!home.path().join(".prism/installed").exists(), "{name}: nothing is left to undo");
    })
    .await;
}

// D-06: the text alone says what is ours.
#[tokio::test]
async fn what_install_writes_is_taken_back_to_the_byte_even_if_nobody_remembers() {
    each(SAMPLES, async |Sample { name, surface, text }| {
        let home = Home::new();
        let path = write(&home, surface, text);
        ok(&home, &["install", surface]).await;
        let installed = read(&path);
        fs::remove_dir_all(home.path().join(".prism/installed")).unwrap();
        ok(&home, &["uninstall", surface]).await;
        assert_eq!(read(&path), *text, "{name}: {installed}");
    })
    .await;
}

// D-06
#[tokio::test]
async fn broken_files_stay_as_they_are_and_the_message_names_the_line() {
    for (Sample { name, surface, text }, spot) in BROKEN {
        let home = Home::new();
        let path = write(&home, surface, text);
        let ended = prism(&home, &["install", surface]).await;
        assert_eq!(ended.code, Some(1), "{name}");
        let named = format!("{}{spot}", path.display());
        assert!(
            ended.stderr.contains(&named) && ended.stderr.contains("nothing was changed"),
            "{name}: {}",
            ended.stderr
        );
        assert_eq!(read(&path), *text, "{name}");
        assert!(!home.path().join(".prism/installed").exists(), "{name}");
    }
}

// D-06
#[tokio::test]
async fn a_file_that_was_not_there_is_made_for_its_owner_alone_and_goes_again_with_its_folders() {
    for surface in [
        "cursor",
        "claude-code",
        "claude-desktop",
        "vscode",
        "void",
        "windsurf",
        "zed",
        "codex",
        "gemini-cli",
        "opencode",
    ] {
        let home = Home::new();
        let said = ok(&home, &["install", surface]).await;
        let path = home.path().join(place(surface));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{surface}");
        assert!(!said.contains(&token(&home)), "the diff shows no secret: {said}");
        assert!(read(&path).ends_with("}\n") || surface == "codex", "{surface}");
        ok(&home, &["uninstall", surface]).await;
        let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".prism"], "{surface}");
    }
}

// D-06
#[tokio::test]
async fn an_empty_file_is_filled_and_is_empty_again() {
    for (surface, text) in [("cursor", ""), ("zed", "\n"), ("codex", ""), ("vscode", "// nothing\n")] {
        let home = Home::new();
        let path = write(&home, surface, text);
        ok(&home, &["install", surface]).await;
        assert!(read(&path).contains("prism"), "{surface}");
        ok(&home, &["uninstall", surface]).await;
        assert_eq!(read(&path), text, "{surface}");
    }
}

// D-06: each in its own words.
#[tokio::test]
async fn each_surface_gets_the_entry_that_it_understands() {
    let home = Home::new();
    ok(&home, &["install", "cursor", "claude-code", "vscode", "windsurf", "zed", "gemini-cli", "opencode"]).await;
    let (url, headers) = ("http://127.0.0.1:7420/mcp", json!({"Authorization": format!("Bearer {}", token(&home))}));
    for (surface, at, entry) in [
        ("cursor", "/mcpServers/prism", json!({"url": url, "headers": headers})),
        ("claude-code", "/mcpServers/prism", json!({"type": "http", "url": url, "headers": headers})),
        ("vscode", "/servers/prism", json!({"type": "http", "url": url, "headers": headers})),
        ("windsurf", "/mcpServers/prism", json!({"serverUrl": url, "headers": headers})),
        ("zed", "/context_servers/prism", json!({"url": url, "headers": headers})),
        ("gemini-cli", "/mcpServers/prism", json!({"httpUrl": url, "headers": headers})),
        ("opencode", "/mcp/prism", json!({"type": "remote", "url": url, "headers": headers, "enabled": true})),
    ] {
        let file: Value = serde_json::from_str(&read(&home.path().join(place(surface)))).unwrap();
        assert_eq!(file.pointer(at), Some(&entry), "{surface}");
    }

    ok(&home, &["install", "codex", "void", "claude-desktop"]).await;
    let codex: toml::Table = read(&home.path().join(place("codex"))).parse().unwrap();
    let entry = &codex["mcp_servers"]["prism"];
    assert_eq!(entry["url"].as_str(), Some(url));
    assert_eq!(entry["http_headers"]["Authorization"].as_str(), headers["Authorization"].as_str());
    for surface in ["void", "claude-desktop"] {
        let file: Value = serde_json::from_str(&read(&home.path().join(place(surface)))).unwrap();
        let entry = &file["mcpServers"]["prism"];
        assert_eq!(entry["args"], json!(["stdio"]), "{surface}");
        assert!(Path::new(entry["command"].as_str().unwrap()).is_absolute(), "a desktop program has no PATH");
        assert_eq!(entry["env"]["PRISM_HOME"], home.file(".prism"), "{surface}");
    }
}

// D-06: whoever moves a program's folder is followed there.
#[tokio::test]
async fn the_variables_that_programs_know_are_known() {
    let home = Home::new();
    let run = async |surface: &str, variable: &'static str, folder: &str| {
        let launch = Launch::prism(words(&["install", surface])).home(&home).env(variable, &home.file(folder));
        let ended = launch.end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    run("claude-code", "CLAUDE_CONFIG_DIR", "a").await;
    run("codex", "CODEX_HOME", "b").await;
    run("zed", "XDG_CONFIG_HOME", "c").await;
    run("gemini-cli", "GEMINI_CLI_HOME", "d").await;
    run("opencode", "OPENCODE_CONFIG", "e.json").await;
    for file in ["a/.claude.json", "b/config.toml", "c/zed/settings.json", "d/.gemini/settings.json", "e.json"] {
        assert!(read(&home.path().join(file)).contains("prism"), "{file}");
    }
}

// D-06
#[tokio::test]
async fn a_linked_dotfile_stays_a_link_and_modes_stay_modes() {
    let home = Home::new();
    let dotfiles = home.path().join("dotfiles");
    fs::create_dir_all(&dotfiles).unwrap();
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    let target = dotfiles.join("cursor.json");
    fs::write(&target, SAMPLES[0].text).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let link = home.path().join(".cursor/mcp.json");
    symlink("../dotfiles/cursor.json", &link).unwrap();

    let ended = prism(&home, &["install", "cursor"]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("(mode 0640)") && ended.stderr.contains("fix: chmod 600"), "{}", ended.stderr);
    assert!(read(&target).contains("prism"));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../dotfiles/cursor.json"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640, "not ours to change");
    ok(&home, &["uninstall", "cursor"]).await;
    assert_eq!(read(&target), SAMPLES[0].text);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../dotfiles/cursor.json"));
    assert_eq!(fs::read_dir(&dotfiles).unwrap().count(), 1, "nothing is left beside it");
}

// D-06
#[tokio::test]
async fn a_read_only_file_is_left_alone_and_the_fix_is_named() {
    let home = Home::new();
    let path = write(&home, "cursor", SAMPLES[0].text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let ended = prism(&home, &["install", "cursor"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("read-only (mode 0444)"), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("fix: chmod u+w {}", path.display())), "{}", ended.stderr);
    assert_eq!(read(&path), SAMPLES[0].text);
    assert!(!home.path().join(".prism/installed").exists());
}

// D-06
#[tokio::test]
async fn a_file_that_is_not_utf_8_is_left_alone() {
    let home = Home::new();
    let path = write(&home, "cursor", "");
    let utf_16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(&path, &utf_16).unwrap();
    let ended = prism(&home, &["install", "cursor"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("is not UTF-8"), "{}", ended.stderr);
    assert_eq!(fs::read(&path).unwrap(), utf_16);
}

// D-06
#[tokio::test]
async fn what_others_change_meanwhile_stays_and_only_our_entry_goes() {
    each(SAMPLES, async |Sample { name, surface, text }| {
        if *surface == "codex" {
            return;
        }
        let home = Home::new();
        let path = write(&home, surface, text);
        ok(&home, &["install", surface]).await;
        // Their text in front of everything, as a program does that writes the file anew.
        let comment = "// edited\n";
        let (mark, body) = match text.strip_prefix('\u{feff}') {
            Some(body) => ("\u{feff}", body),
            None => ("", *text),
        };
        let installed = read(&path);
        let edited = format!("{mark}{comment}{}", installed.strip_prefix(mark).unwrap());
        fs::write(&path, edited).unwrap();
        let said = ok(&home, &["uninstall", surface]).await;
        assert!(said.contains("changed since"), "{name}: {said}");
        assert_eq!(read(&path), format!("{mark}{comment}{body}"), "{name}");
    })
    .await;
}

// D-06
#[tokio::test]
async fn servers_that_others_add_behind_ours_stay() {
    let home = Home::new();
    let path = write(&home, "codex", SAMPLES.iter().find(|sample| sample.surface == "codex").unwrap().text);
    let before = read(&path);
    ok(&home, &["install", "codex"]).await;
    let more = "\n# mine\n[mcp_servers.more]\ncommand = \"more\"\n";
    fs::write(&path, read(&path) + more).unwrap();
    ok(&home, &["uninstall", "codex"]).await;
    assert_eq!(read(&path), format!("{before}{more}"));

    let path = write(&home, "cursor", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n");
    ok(&home, &["install", "cursor"]).await;
    let with_more = read(&path).replacen("      }\n    }\n", "      }\n    },\n    \"more\": {}\n", 1);
    fs::write(&path, &with_more).unwrap();
    ok(&home, &["uninstall", "cursor"]).await;
    assert_eq!(read(&path), "{\n  \"mcpServers\": {\n    \"a\": {},\n    \"more\": {}\n  }\n}\n");
}

// D-06
#[tokio::test]
async fn an_entry_of_that_name_that_is_not_ours_is_replaced_only_by_force_and_comes_back() {
    let theirs = "{\n  \"mcpServers\": {\n    \"prism\": { \"command\": \"photo-prism\" } // pictures\n  }\n}\n";
    let home = Home::new();
    let path = write(&home, "cursor", theirs);
    let ended = prism(&home, &["install", "cursor"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("not Prism's") && ended.stderr.contains("--force"), "{}", ended.stderr);
    let ended = prism(&home, &["uninstall", "cursor"]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert_eq!(read(&path), theirs);
    ok(&home, &["install", "cursor", "--force"]).await;
    assert!(read(&path).contains("/mcp") && read(&path).contains("// pictures"));
    // Somebody edits it, so that it cannot be put back whole; and the token is another one by then.
    fs::write(&path, format!("// x\n{}", read(&path))).unwrap();
    fs::remove_file(home.path().join(".prism/http-mcp-token")).unwrap();
    assert!(ok(&home, &["install", "cursor"]).await.contains("updated in Cursor"));
    fs::write(&path, format!("// y\n{}", read(&path))).unwrap();
    ok(&home, &["uninstall", "cursor"]).await;
    assert_eq!(read(&path), format!("// y\n// x\n{theirs}"));
}

// D-06: a new token is a new entry.
#[tokio::test]
async fn a_new_token_is_written_and_what_the_owner_added_to_the_entry_stays() {
    for (surface, text) in [("cursor", "{}\n"), ("codex", "model = \"o3\"\n"), ("codex", "mcp_servers = {}\n")] {
        let home = Home::new();
        let path = write(&home, surface, text);
        ok(&home, &["install", surface]).await;
        let old = token(&home);
        let mine = if surface == "cursor" {
            read(&path).replacen("\"url\"", "\"autoApprove\": [\"x\"],\n    \"url\"", 1)
        } else {
            read(&path).replacen("url = ", "enabled = true\nurl = ", 1).replacen(
                "{ enabled = true\n",
                "{ enabled = true, ",
                1,
            )
        };
        fs::write(&path, &mine).unwrap();
        fs::remove_file(home.path().join(".prism/http-mcp-token")).unwrap();
        let said = ok(&home, &["install", surface]).await;
        assert!(said.contains("updated in"), "{said}");
        let now = read(&path);
        assert!(!now.contains(&old) && now.contains(&token(&home)), "{now}");
        assert!(now.contains("autoApprove") || now.contains("enabled"), "{now}");
        ok(&home, &["uninstall", surface]).await;
        assert_eq!(read(&path), text);
    }
}

// D-06
#[tokio::test]
async fn all_installs_into_what_is_there_and_says_what_is_not() {
    let home = Home::new();
    let launch = |arguments: &[&str]| Launch::prism(words(arguments)).home(&home).env("PATH", "/nowhere");
    let ended = launch(&["install", "--all"]).end().await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("none of the programs"), "{}", ended.stderr);
    fs::create_dir_all(home.path().join(".cursor")).unwrap();
    fs::create_dir_all(home.path().join(".codex")).unwrap();
    let said = launch(&["install", "--all"]).output().await;
    for said_so in
        ["installed in Cursor", "installed in Codex", "not found: Zed", "next: restart Cursor", "prism serve"]
    {
        assert!(said.contains(said_so), "{said_so}: {said}");
    }
    assert!(!home.path().join(".config").exists());
    let rows: Value = serde_json::from_str(&launch(&["uninstall", "--all", "--json"]).output().await).unwrap();
    let states: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (row["surface"].as_str(), row["state"].as_str())).collect();
    // The last is the package of Cursor's extension, which nobody has installed.
    let cursor = [(Some("cursor"), Some("restored")), (Some("cursor"), Some("removed"))];
    assert_eq!(states, [&[(Some("codex"), Some("restored"))], &cursor[..]].concat());
    let ended = launch(&["install"]).end().await;
    assert!(ended.stderr.contains("found here: cursor, codex"), "{}", ended.stderr);
}

// D-06: what is committed holds no secret.
#[tokio::test]
async fn a_projects_file_holds_no_secret_unless_somebody_insists() {
    let home = Home::new();
    let path = home.path().join(".cursor/mcp.json");
    let out = prism(&home, &["install", "cursor", "--project"]).await;
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(file["mcpServers"]["prism"]["args"], json!(["stdio"]));
    assert!(!read(&path).contains("Bearer") && file["mcpServers"]["prism"].get("env").is_none());
    let ended = prism(&home, &["install", "cursor", "--project", "--http"]).await;
    assert!(ended.stderr.contains("do not commit"), "{}", ended.stderr);
    assert!(read(&path).contains(&token(&home)));
    ok(&home, &["uninstall", "cursor", "--project"]).await;
    assert!(!path.exists());
    let ended = prism(&home, &["install", "windsurf", "--project"]).await;
    assert!(ended.stderr.contains("has no config per project"), "{}", ended.stderr);
}

// D-06
#[tokio::test]
async fn a_dry_run_shows_the_change_and_makes_none() {
    let home = Home::new();
    let path = write(&home, "cursor", SAMPLES[0].text);
    let said = ok(&home, &["install", "cursor", "--dry-run"]).await;
    assert!(said.contains("+    \"prism\": {") && said.contains("nothing was written"), "{said}");
    assert!(said.contains("\"Authorization\": \"…\""), "{said}");
    assert_eq!(read(&path), SAMPLES[0].text);
    assert!(!home.path().join(".prism/installed").exists());
    let rows: Value = serde_json::from_str(&ok(&home, &["install", "cursor", "--json"]).await).unwrap();
    assert_eq!(rows[0]["state"], "added");
    assert_eq!(rows[0]["transport"], "http");
    assert!(rows[0]["diff"].as_str().unwrap().contains("prism"));
}

// D-03, D-06: the daemon that runs is the one that is written down.
#[tokio::test]
async fn the_port_is_that_of_the_running_daemon_or_the_configs() {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".prism")).unwrap();
    fs::write(home.path().join(".prism/prism.toml"), "port = 7421\n").unwrap();
    ok(&home, &["install", "cursor"]).await;
    assert!(read(&home.path().join(place("cursor"))).contains("http://127.0.0.1:7421/mcp"));
    let serve = Launch::prism(words(&["serve", "--port", "0"])).home(&home);
    let mut daemon = serve.env("PRISM_HOME", &home.file(".prism")).start().await;
    let said = ok(&home, &["install", "cursor"]).await;
    assert!(said.contains("updated in Cursor") && !said.contains("not running"), "{said}");
    let file = read(&home.path().join(place("cursor")));
    assert!(file.contains(&format!("http://127.0.0.1:{}/mcp", daemon.port())), "{file}");
    daemon.kill().await;
    ok(&home, &["install", "cursor"]).await;
    assert!(read(&home.path().join(place("cursor"))).contains(":7421/mcp"), "a registration of a dead daemon");
}
