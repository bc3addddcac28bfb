//! `prism install SURFACE --hooks`: the same promises as for the servers (D-06, M-13).

use super::*;
use crate::install::corpus::HOOKS;

/// Where a surface keeps its hooks below a home folder.
fn hooks_place(surface: &str) -> &'static str {
    match surface {
        "claude-code" => ".claude/settings.json",
        "codex" => ".codex/hooks.json",
        "cursor" => ".cursor/hooks.json",
        other => panic!("{other}"),
    }
}

fn write_hooks(home: &Home, surface: &str, text: &str) -> PathBuf {
    let path = home.path().join(hooks_place(surface));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// The commands of an event, of all of its elements.
fn commands(file: &Value, event: &str) -> Vec<String> {
    let elements = file["hooks"][event].as_array().cloned().unwrap_or_default();
    let hooks = elements.iter().flat_map(|one| match one["hooks"].as_array() {
        Some(hooks) => hooks.clone(),
        None => vec![one.clone()],
    });
    hooks.filter_map(|hook| hook["command"].as_str().map(str::to_owned)).collect()
}

/// The last word of each command.
fn last_words(commands: &[String]) -> Vec<&str> {
    commands.iter().filter_map(|command| command.rsplit(' ').next()).collect()
}

// D-06
#[tokio::test]
async fn hooks_are_taken_back_to_the_byte() {
    each(HOOKS, async |Sample { name, surface, text }| {
        let home = Home::new();
        let path = write_hooks(&home, surface, text);
        ok(&home, &["install", surface, "--hooks"]).await;
        let installed = read(&path);
        assert!(installed != *text && is_kept(text, &installed), "{name}: {installed}");
        assert!(home.path().join(place(surface)).exists(), "{name}: the entry comes with them");
        let crlf = text.matches("\r\n").count();
        assert!(crlf == 0 || installed.matches("\r\n").count() == installed.matches('\n').count(), "{name}");
        let said = ok(&home, &["install", surface, "--hooks"]).await;
        assert!(said.contains("hooks already installed"), "{name}: {said}");
        assert_eq!(read(&path), installed, "{name}");
        ok(&home, &["uninstall", surface]).await;
        assert_eq!(read(&path), *text, "{name}: {installed}");
        assert!(!home.path().join(".prism/installed").exists(), "{name}: nothing is left to undo");
    })
    .await;
}

// D-06: the text alone says what is ours.
#[tokio::test]
async fn hooks_are_taken_back_to_the_byte_even_if_nobody_remembers() {
    each(HOOKS, async |Sample { name, surface, text }| {
        let home = Home::new();
        let path = write_hooks(&home, surface, text);
        ok(&home, &["install", surface, "--hooks"]).await;
        let installed = read(&path);
        fs::remove_dir_all(home.path().join(".prism/installed")).unwrap();
        ok(&home, &["uninstall", surface, "--hooks"]).await;
        assert_eq!(read(&path), *text, "{name}: {installed}");
        assert!(home.path().join(place(surface)).exists(), "{name}: the entry stays");
    })
    .await;
}

// D-06
#[tokio::test]
async fn what_others_change_meanwhile_in_a_file_of_hooks_stays() {
    each(HOOKS, async |Sample { name, surface, text }| {
        let home = Home::new();
        let path = write_hooks(&home, surface, text);
        ok(&home, &["install", surface, "--hooks"]).await;
        let (mark, body) = match text.strip_prefix('\u{feff}') {
            Some(body) => ("\u{feff}", body),
            None => ("", *text),
        };
        let edited = format!("{mark}// edited\n{}", read(&path).strip_prefix(mark).unwrap());
        fs::write(&path, edited).unwrap();
        ok(&home, &["uninstall", surface, "--hooks"]).await;
        assert_eq!(read(&path), format!("{mark}// edited\n{body}"), "{name}");
    })
    .await;
}

// M-13: each in its own words.
#[tokio::test]
async fn each_program_gets_the_hooks_that_it_runs() {
    let home = Home::new();
    let said = ok(&home, &["install", "claude-code", "codex", "cursor", "--hooks"]).await;
    assert!(said.contains("trust them under /hooks"), "{said}");
    let file =
        |surface: &str| -> Value { serde_json::from_str(&read(&home.path().join(hooks_place(surface)))).unwrap() };
    let claude = file("claude-code");
    assert_eq!(last_words(&commands(&claude, "SessionStart")), ["claude-start", "claude-rewake"]);
    assert_eq!(last_words(&commands(&claude, "Stop")), ["claude-rewake", "claude-stop"]);
    let waits = &claude["hooks"]["Stop"][0]["hooks"][0];
    assert_eq!(
        (&waits["async"], &waits["asyncRewake"], &waits["timeout"]),
        (&json!(true), &json!(true), &json!(604_800))
    );
    assert_eq!(claude["hooks"]["Stop"][0]["hooks"][1]["asyncRewake"], Value::Null, "a turn's end waits for this one");
    let codex = file("codex");
    assert_eq!(last_words(&commands(&codex, "SessionStart")), ["codex-start"]);
    assert_eq!(last_words(&commands(&codex, "Stop")), ["codex-stop"]);
    let cursor = file("cursor");
    assert_eq!((&cursor["version"], &cursor["hooks"]["stop"][0]["loop_limit"]), (&json!(1), &json!(5)));
    // A shell runs them, and finds the program and the home by it.
    let command = &commands(&cursor, "stop")[0];
    let mut shell = std::process::Command::new("sh");
    let output = run_with_input(shell.args(["-c", &format!("{command} --verbose")]).env_clear(), "{}").await;
    assert!(output.contains("cursor-stop: "), "{command}: {output}");
    ok(&home, &["uninstall", "--all"]).await;
    let left: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".prism"], "what was made goes with its folders");
}

/// Runs a command that ends by itself, and returns what it says on stderr.
async fn run_with_input(command: &mut std::process::Command, input: &str) -> String {
    use std::{io::Write, process::Stdio};
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

// Codex trusts a hook by its place and its words: neither may change for those of others.
#[tokio::test]
async fn hooks_that_are_there_stay_in_their_place_and_ours_is_renewed_in_its_own() {
    let home = Home::new();
    let before = HOOKS.iter().find(|sample| sample.surface == "codex" && sample.name == "others' hooks").unwrap().text;
    let path = write_hooks(&home, "codex", before);
    ok(&home, &["install", "codex", "--hooks"]).await;
    let theirs = "{\n        \"hooks\": [{ \"type\": \"command\", \"command\": \"later\" }]\n      }";
    let installed = read(&path);
    let ours = installed.find("codex-stop").unwrap();
    let end = ours + installed[ours..].find("\n    ]").unwrap();
    // Somebody adds one behind ours; and ours leads elsewhere, as after a move.
    let edited = format!("{},\n      {theirs}{}", &installed[..end], &installed[end..])
        .replace("/prism wait", "/old/prism wait");
    fs::write(&path, &edited).unwrap();
    let said = ok(&home, &["install", "codex", "--hooks"]).await;
    assert!(said.contains("hooks updated"), "{said}");
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    let stop = commands(&file, "Stop");
    assert_eq!((stop.len(), stop[0].as_str(), stop[2].as_str()), (3, "uvx codhc", "later"), "{stop:?}");
    assert!(stop[1].ends_with("wait --hook codex-stop") && !stop[1].contains("/old/"), "{stop:?}");
    ok(&home, &["uninstall", "codex", "--hooks"]).await;
    let file: Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(commands(&file, "Stop"), ["uvx codhc", "later"]);
}

// D-06
#[tokio::test]
async fn hooks_of_linked_read_only_and_broken_files_are_handled_like_servers() {
    let home = Home::new();
    let dotfiles = home.path().join("dotfiles");
    fs::create_dir_all(&dotfiles).unwrap();
    fs::create_dir_all(home.path().join(".claude")).unwrap();
    let target = dotfiles.join("settings.json");
    fs::write(&target, "{}\n").unwrap();
    let link = home.path().join(hooks_place("claude-code"));
    symlink("../dotfiles/settings.json", &link).unwrap();
    ok(&home, &["install", "claude-code", "--hooks"]).await;
    assert!(read(&target).contains("claude-rewake"));
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("../dotfiles/settings.json"));
    ok(&home, &["uninstall", "claude-code"]).await;
    assert_eq!(read(&target), "{}\n");

    fs::set_permissions(&target, fs::Permissions::from_mode(0o444)).unwrap();
    let ended = prism(&home, &["install", "claude-code", "--hooks"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("read-only (mode 0444)"), "{}", ended.stderr);
    assert_eq!(read(&target), "{}\n");

    for (text, words) in [
        ("{\n  \"hooks\": {\n    \"stop\": {}\n  }\n}\n", ":3:13: \"stop\" is not a list; nothing was changed"),
        ("{\n  \"hooks\": []\n}\n", ":2:3: \"hooks\" is not an object; nothing was changed"),
        ("{\n  \"hooks\": {\n", "the file is broken"),
    ] {
        let path = write_hooks(&home, "cursor", text);
        let ended = prism(&home, &["install", "cursor", "--hooks"]).await;
        assert_eq!(ended.code, Some(1), "{text}");
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
        assert_eq!(read(&path), text);
    }
    let ended = prism(&home, &["install", "zed", "--hooks"]).await;
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("Prism knows no hooks of Zed"), "{}", ended.stderr);
}

// D-06
#[tokio::test]
async fn a_dry_run_of_hooks_shows_and_writes_nothing() {
    let home = Home::new();
    let said = ok(&home, &["install", "claude-code", "--hooks", "--dry-run"]).await;
    assert!(said.contains("claude-rewake") && said.contains("hooks would be installed"), "{said}");
    assert!(!home.path().join(".claude").exists() && !home.path().join(".prism/installed").exists());
    let json = ok(&home, &["install", "codex", "--hooks", "--json"]).await;
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&rows[1]["surface"], &rows[1]["hooks"], &rows[1]["state"]),
        (&json!("codex"), &json!(true), &json!("added"))
    );
}
