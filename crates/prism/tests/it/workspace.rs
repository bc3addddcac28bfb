//! `prism workspace` as a process: on stdio for a client, and on the command line for a person (W-02, W-03).

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};

use crate::support::Home;

const PRISM: &str = env!("CARGO_BIN_EXE_prism");

fn prism(home: &Home, here: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PRISM);
    command.arg("workspace").args(arguments).current_dir(here).env_clear().env("PRISM_HOME", home.path());
    command.stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn done(home: &Home, here: &Path, arguments: &[&str]) -> String {
    let output = prism(home, here, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    said(&output)
}

fn failed(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(said(&output), "", "an error is not an answer");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

// W-02
#[test]
fn a_person_writes_finds_forgets_and_restores_a_note() {
    let (home, root) = (Home::new(), Home::new());
    fs::create_dir_all(root.path().join(".git")).unwrap();
    let here = root.path().join("src/deep");
    fs::create_dir_all(&here).unwrap();
    let arguments = ["remember", "Use FTS5", "It ranks.", "--kind", "decision", "--tags", "sql,search"];
    let answer = done(&home, &here, &arguments);
    let path = answer.trim().strip_prefix("remembered in ").unwrap();
    assert!(Path::new(path).starts_with(root.path().canonicalize().unwrap()), "the nearest root upwards: {path}");
    assert!(fs::read_to_string(path).unwrap().contains("tags: [sql, search]"));

    let found: Value = serde_json::from_str(&done(&home, &here, &["search", "ranks", "--json"])).unwrap();
    assert_eq!(found["results"][0]["title"], "Use FTS5");
    assert!(done(&home, &here, &["search", "ranks"]).contains("It «ranks»."));
    assert!(done(&home, &here, &["context"]).contains("--- decisions ---"));
    assert!(done(&home, &here, &["list", "--kind", "decision"]).contains("Use FTS5"));

    let answer = done(&home, &here, &["forget", path]);
    let undo = answer.lines().find_map(|line| line.strip_prefix("undo: prism workspace ")).unwrap();
    assert_eq!(done(&home, &here, &["search", "ranks"]).trim_end(), "no notes match");
    assert!(done(&home, &here, &["restore"]).contains("Use FTS5"));
    done(&home, &here, &undo.split(' ').collect::<Vec<_>>());
    assert!(done(&home, &here, &["search", "ranks"]).contains("Use FTS5"));
    assert!(done(&home, &here, &["index", "--rebuild"]).contains("1 notes in"));
}

// W-02
#[test]
fn the_text_may_come_from_a_pipe_and_the_root_from_the_environment() {
    let (home, root, elsewhere) = (Home::new(), Home::new(), Home::new());
    let mut command = prism(&home, elsewhere.path(), &["remember", "Piped"]);
    command.env("PRISM_WORKSPACE", root.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"From a pipe.").unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let root_option = root.path().to_str().unwrap();
    assert!(done(&home, elsewhere.path(), &["search", "pipe", "--root", root_option]).contains("Piped"));
    assert!(failed(prism(&home, root.path(), &["remember", "Empty"])).contains("`text` is empty"));
}

// W-02
#[test]
fn a_missing_root_is_a_loud_error_of_every_command() {
    let home = Home::new();
    let gone = home.file("gone");
    let commands = [
        &["context"][..],
        &["search", "x"],
        &["remember", "a", "b"],
        &["forget", "a.md"],
        &["index"],
        &["index", "--rebuild"],
        &["list"],
    ];
    for arguments in commands {
        let stderr = failed(prism(&home, home.path(), &[arguments, &["--root", &gone]].concat()));
        assert!(stderr.contains("gone does not exist; set [workspace] root in prism.toml or pass --root"), "{stderr}");
    }
}

// W-03
#[test]
fn a_client_on_stdio_has_the_same_memory() {
    let (home, root) = (Home::new(), Home::new());
    fs::create_dir(root.path().join("lessons")).unwrap();
    fs::write(root.path().join("lessons/260301-bells.md"), "Bells ring twice.").unwrap();
    let mut command = prism(&home, root.path(), &["mcp", "--root", root.path().to_str().unwrap()]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |id: u64, method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        input.write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    };
    let hello =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(ask(1, "initialize", hello)["serverInfo"]["name"], "workspace");
    assert_eq!(ask(2, "tools/list", json!({}))["tools"].as_array().unwrap().len(), 4);
    let context = ask(3, "tools/call", json!({"name": "workspace_get_context", "arguments": {}}));
    assert_eq!(context["structuredContent"]["lessons"][0]["_meta"]["document_path"], "lessons/260301-bells.md");
    let search = json!({"name": "workspace_search", "arguments": {"query": "bell*"}});
    assert_eq!(ask(4, "tools/call", search)["structuredContent"]["results"][0]["snippet"], "«Bells» ring twice.");
    drop(input);
    assert!(child.wait().unwrap().success());
}
