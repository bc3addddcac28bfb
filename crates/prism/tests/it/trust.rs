//! Whose word a config is (C1): what a project's own says counts once the person has seen it, and no agent changes that.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Ended, Home, Launch, destination,
    gate::{Gate, SETTINGS, text},
    seen::{logged, seen},
    until,
};

const WAITS: &str = "A config waits for you to see it";
const TAKEN_OVER: &str = "Took over the changed config";

fn rules(extra: &str) -> String {
    format!(
        "{SETTINGS}{}{extra}",
        destination("demo", &[], "[destination.demo.tools]\ndeny = [\"echo\"]\npin = \"off\"\n")
    )
}

/// The same without its rule, and with another server: what the attack wrote.
fn loosened() -> String {
    format!("{SETTINGS}{}{}", destination("demo", &[], ""), destination("evil", &[], ""))
}

async fn prism(home: &Home, folder: &std::path::Path, words: &[&str]) -> Ended {
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Launch::prism(words).home(home).folder(folder).end().await
}

/// Whether the rule holds, and the other server is not there.
async fn assert_as_it_was(gate: &Gate) {
    let demo = gate.daemon.client_at("/demo/mcp").initialize().await;
    let answer = demo.call("echo", json!({"text": "x"})).await.answer().await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(gate.daemon.client_at("/evil/mcp").say_hello().await.status, 404);
}

async fn config_state(gate: &Gate) -> (String, String) {
    let status = gate.daemon.client_at("/status").request(hyper::Method::GET).send().await.json().await;
    let config = &status["daemon"]["config"];
    (text(&config["state"]), config["error"].as_str().unwrap_or_default().to_owned())
}

// C1, all of it.
#[tokio::test]
async fn who_may_write_the_folder_of_the_daemons_config_gains_no_command_by_it() {
    let gate = Gate::start_in_project(&rules("")).await;
    let mut holder =
        gate.hold(&gate.granted(&["read:files", "write:files", "create:files", "delete:files"]).await).await;
    let config = fs::read_to_string(gate.path("prism.toml")).unwrap();
    for (verb, args) in [
        ("write_file", json!({"path": "prism.toml", "content": loosened()})),
        ("write_file", json!({"path": gate.path("prism.toml"), "content": loosened()})),
        ("open_file", json!({"path": "prism.toml"})),
        ("delete_file", json!({"path": "prism.toml"})),
    ] {
        assert_eq!(holder.refused(verb, args.clone()).await, "outside_root", "{verb} {args}");
    }
    assert_eq!(fs::read_to_string(gate.path("prism.toml")).unwrap(), config);
    assert_as_it_was(&gate).await;

    // A build, git or any other program writes it all the same.
    fs::write(gate.path("prism.toml"), loosened()).unwrap();
    until("the daemon has seen it", async || gate.daemon.stderr().contains(WAITS)).await;
    assert_as_it_was(&gate).await;
    let (state, why) = config_state(&gate).await;
    assert_eq!(state, "untrusted");
    assert!(why.contains(&format!("prism trust {}", gate.path("prism.toml"))), "{why}");
    let (home, folder) = (gate.daemon.home().clone(), std::path::PathBuf::from(gate.project()));
    let told = prism(&home, &folder, &["status"]).await.stdout;
    let person = logged(&told, "a config waits for you to see it");
    let agent = holder.hears("write_file", json!({"path": "prism.toml", "content": loosened()})).await;
    seen(agent, person, gate.last_line("write_file").await);
    let told = prism(&home, &folder, &["doctor", "--no-calls"]).await;
    assert!(told.code == Some(1) && told.stdout.contains("fix: prism trust "), "{told:?}");

    // Nobody is there to see it: nothing is trusted.
    let told = prism(&home, &folder, &["trust"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    assert!(told.stderr.contains("+[destination.evil]") && told.stderr.contains("-deny = [\"echo\"]"), "{told:?}");
    // The next daemon begins with what was seen.
    let again = gate.started_in_project_again().await;
    again.daemon.logged("was changed, and counts as you saw it last").await;
    assert_as_it_was(&again).await;

    let told = prism(&home, &folder, &["trust", "--yes", "--json"]).await;
    assert_eq!(serde_json::from_str::<Value>(&told.stdout).unwrap()["state"], "trusted", "{told:?}");
    until("it counts", async || again.daemon.stderr().contains(TAKEN_OVER)).await;
    assert_eq!(again.daemon.client_at("/evil/mcp").say_hello().await.status, 200);
    assert_eq!(config_state(&again).await.0, "ok");
}

#[tokio::test]
async fn a_config_that_the_person_has_not_seen_starts_nothing_until_they_have() {
    let (home, project) = (Home::new(), Home::new());
    let (file, mark) = (project.path().join("prism.toml"), project.file("mark"));
    fs::write(&file, format!("[destination.evil]\ncommand = [\"touch\", {mark:?}]\n")).unwrap();
    // Commands that would start a server for a moment do not, either.
    let told = prism(&home, project.path(), &["call", "evil", "x"]).await;
    assert!(told.code == Some(1) && told.stderr.contains("does not count"), "{told:?}");
    let serve = ["serve", "--port", "0"].map(str::to_owned).to_vec();
    let daemon = Launch::prism(serve).home(&home).folder(project.path()).start().await;
    assert!(
        daemon.stderr().contains("does not count") && daemon.stderr().contains("fix: prism trust "),
        "{}",
        daemon.stderr()
    );
    assert!(daemon.stdout().contains("config       none"), "{}", daemon.stdout());
    let hello = daemon.client_at("/evil/mcp").say_hello().await;
    assert_eq!(hello.status, 404);
    assert!(!std::path::Path::new(&mark).exists());
    let agent = format!("404: {}", text(&hello.json().await["error"]["message"]));
    seen(agent, logged(&told.stderr, "does not count"), daemon.logged("does not count").await);
    // All of it is shown, also what others hide: secrets, and letters that turn the line around.
    fs::write(&file, "[destination.evil]\ncommand = [\"x\"]\nenv = { API_KEY = \"hunter2\u{202e}\" }\n").unwrap();
    let shown = prism(&home, project.path(), &["trust"]).await.stderr;
    assert!(shown.contains("hunter2\\u{202e}"), "{shown}");
    fs::write(&file, destination("good", &[], "")).unwrap();
    prism(&home, project.path(), &["trust", "--yes"]).await;
    until("it counts", async || daemon.stderr().contains(TAKEN_OVER)).await;
    assert_eq!(daemon.client_at("/good/mcp").say_hello().await.status, 200);
    let told = prism(&home, project.path(), &["trust", "--list"]).await.stdout;
    assert!(told.contains(file.to_str().unwrap()), "{told}");
    assert_eq!(prism(&home, project.path(), &["trust", "--revoke"]).await.code, Some(0));
    until("it counts no more", async || daemon.stderr().matches(TAKEN_OVER).count() == 2).await;
    assert_eq!(daemon.client_at("/good/mcp").say_hello().await.status, 404);
}

// What the person writes with Prism they have seen.
#[tokio::test]
async fn what_is_added_to_a_trusted_config_counts_at_once_and_to_an_unseen_one_does_not() {
    let gate = Gate::start_in_project(SETTINGS).await;
    let (home, folder) = (gate.daemon.home().clone(), std::path::PathBuf::from(gate.project()));
    let added = prism(&home, &folder, &["add", "late", "--", env!("CARGO_BIN_EXE_prism"), "demo-server"]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(gate.daemon.client_at("/late/mcp").say_hello().await.status, 200);
    fs::write(gate.path("prism.toml"), loosened()).unwrap();
    let added = prism(&home, &folder, &["add", "more", "--", env!("CARGO_BIN_EXE_prism"), "demo-server"]).await;
    assert!(added.stderr.contains("you have not seen what else that file says"), "{added:?}");
    until("the daemon has seen it", async || gate.daemon.stderr().contains(WAITS)).await;
    for name in ["evil", "more"] {
        assert_eq!(gate.daemon.client_at(&format!("/{name}/mcp")).say_hello().await.status, 404, "{name}");
    }
}

// A file that is named on the command line counts as it was when somebody typed that.
#[tokio::test]
async fn a_named_config_counts_as_it_was_when_it_was_named() {
    let (home, project) = (Home::new(), Home::new());
    let (toml, json) = (project.file("team.toml"), project.file("mcp.json"));
    let list = |names: &[&str]| {
        let server = |name: &&str| {
            ((*name).to_owned(), json!({"command": env!("CARGO_BIN_EXE_prism"), "args": ["demo-server"]}))
        };
        json!({"mcpServers": names.iter().map(server).collect::<serde_json::Map<_, _>>()}).to_string()
    };
    fs::write(&toml, destination("a", &[], "")).unwrap();
    fs::write(&json, list(&["b"])).unwrap();
    let words = ["serve", "--port", "0", "--config", &toml, "--mcp-json", &json].map(str::to_owned).to_vec();
    let daemon = Launch::prism(words).home(&home).folder(project.path()).start().await;
    let status = async |name: &str| daemon.client_at(&format!("/{name}/mcp")).say_hello().await.status;
    assert_eq!((status("a").await, status("b").await), (200, 200));
    fs::write(&toml, destination("evil", &[], "")).unwrap();
    fs::write(&json, list(&["worse"])).unwrap();
    until("the daemon has seen it", async || daemon.stderr().matches(WAITS).count() > 0).await;
    assert_eq!((status("a").await, status("b").await), (200, 200));
    assert_eq!((status("evil").await, status("worse").await), (404, 404));
    assert_eq!(prism(&home, project.path(), &["trust", "--yes", &toml]).await.code, Some(0));
    until("it counts", async || daemon.stderr().contains(TAKEN_OVER)).await;
    assert_eq!((status("evil").await, status("worse").await), (200, 404));
}
