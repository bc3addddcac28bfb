//! How a server is, in each of its states, as everybody tells it who is asked: they agree, and it is true (D-05).

use std::{fs, os::unix::fs::PermissionsExt};

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{Daemon, Ended, Launch, Request, destination, until};

/// The states, and a word that the reason of each must have.
const STATES: [(&str, &str, bool, &str); 11] = [
    ("never", "never_used", true, "first call"),
    ("late", "starting", true, "being started"),
    ("good", "up", true, "answers"),
    ("deaf", "slow", false, "did not answer"),
    ("crash", "failing", false, "keeps exiting (status 1, "),
    ("gone", "missing", false, "\"no-such-program\" was not found on PATH"),
    ("plain", "missing", false, "is not executable"),
    ("broken", "missing", false, "is a broken link"),
    ("upstream", "refusing", false, "nobody answers at http://127.0.0.1:"),
    ("locked", "unauthorized", false, "HTTP 401"),
    ("tired", "asleep", true, "next call"),
];

fn command(name: &str, words: &[&str]) -> String {
    format!("[destination.{name}]\ncommand = {words:?}\n")
}

fn remote(name: &str, daemon: &Daemon) -> String {
    format!("[destination.{name}]\nurl = \"http://127.0.0.1:{}/mcp\"\n", daemon.port())
}

async fn get(daemon: &Daemon, path: &str) -> Value {
    daemon.client_at(path).request(Method::GET).send().await.json().await
}

async fn readyz(daemon: &Daemon) -> (u16, Value) {
    let reply = daemon.client_at("/readyz").request(Method::GET).send().await;
    (reply.status, reply.json().await)
}

/// What `/status` says of one.
async fn told(daemon: &Daemon, name: &str) -> Value {
    let status = get(daemon, "/status").await;
    status["destinations"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone()
}

async fn prism(daemon: &Daemon, words: &[&str]) -> Ended {
    // A shell that has nothing to say: the one of whoever runs the tests may ask back.
    let words = words.iter().map(|word| (*word).to_owned()).collect();
    Launch::prism(words).home(daemon.home()).env("PRISM_PORT", "1").env("SHELL", "/bin/sh").end().await
}

/// The console's page, as a person sees it.
async fn console(daemon: &Daemon) -> String {
    let secret = fs::read_to_string(daemon.home().file("management-token")).unwrap();
    let host = format!("127.0.0.1:{}", daemon.port());
    let asked = |verb: Method, path: &str| Request::new(daemon.place(), verb, path).header("host", &host);
    let link = asked(Method::POST, "/prism/console/link").header("authorization", &format!("Bearer {}", secret.trim()));
    let url = link.send().await.json().await["url"].as_str().unwrap().to_owned();
    let entered = asked(Method::POST, "/console/login")
        .header("origin", &format!("http://{host}"))
        .header("content-type", "application/json")
        .body(json!({"code": url.split_once('#').unwrap().1}).to_string())
        .send()
        .await;
    let secret = entered.json().await["secret"].as_str().unwrap().to_owned();
    asked(Method::GET, "/console/destinations?part").header("x-prism-console", &secret).send().await.text().await
}

/// The word on the card of a server.
fn on_card(page: &str, name: &str) -> String {
    let card = page.split_once(&format!(r#"data-key="{name}""#)).unwrap_or_else(|| panic!("{name}: {page}")).1;
    let state = card.split_once(r#"<span class="state""#).unwrap().1;
    let word = state.split_once("</span>").unwrap().1;
    word.split_once('<').unwrap().0.trim().to_owned()
}

// R-17, R-44
#[tokio::test]
async fn in_every_state_everybody_says_the_same_and_it_is_true() {
    let upstream = Daemon::run(&["--no-auth"], &[]).await;
    let locked = Daemon::run(&[], &[]).await;
    let daemon = {
        let launch = Launch::serve("");
        let home = crate::support::Home::new();
        let plain = home.file("plain.sh");
        fs::write(&plain, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
        let broken = home.file("broken");
        std::os::unix::fs::symlink("nowhere", &broken).unwrap();
        let config = [
            "login_path = false\n".to_owned(),
            destination("never", &[], ""),
            command("late", &["sleep", "600"]),
            destination("good", &[], ""),
            destination("deaf", &["--fault", "deaf"], ""),
            command("crash", &["sh", "-c", "echo cannot find module foo >&2; exit 1"]),
            command("gone", &["no-such-program"]),
            command("plain", &[&plain]),
            command("broken", &[&broken]),
            remote("upstream", &upstream),
            remote("locked", &locked),
            destination("tired", &[], "keep_warm = \"0s\""),
        ]
        .concat();
        fs::write(home.file("prism.toml"), &config).unwrap();
        launch.config(&config).home(&home).start().await
    };
    // Each is brought into its state.
    let starting = daemon.client_at("/late/mcp");
    let starting = tokio::spawn(async move { starting.say_hello().await });
    until("it is being started", async || told(&daemon, "late").await["state"] == "starting").await;
    let _good = daemon.client_at("/good/mcp").initialize().await;
    let _deaf = daemon.client_at("/deaf/mcp").initialize().await;
    for name in ["crash", "gone", "plain", "broken", "locked"] {
        let reply = daemon.client_at(&format!("/{name}/mcp")).say_hello().await;
        assert_eq!(reply.status, 503, "{name}");
    }
    let used = daemon.client_at("/upstream/mcp").initialize().await;
    assert_eq!(told(&daemon, "upstream").await["state"], "up");
    upstream.stop().await;
    assert_eq!(used.call("echo", json!({"text": "x"})).await.status, 503);
    let tired = daemon.client_at("/tired/mcp").initialize().await;
    assert_eq!(tired.delete().await.status, 204);
    until("it is stopped", async || told(&daemon, "tired").await["state"] == "asleep").await;

    let (code, ready) = readyz(&daemon).await;
    assert_eq!((code, &ready["status"]), (503, &json!("not ready")), "{ready}");
    let table = prism(&daemon, &["status"]).await.stdout;
    let page = console(&daemon).await;
    let doctor = prism(&daemon, &["doctor", "--json", "--no-calls"]).await;
    let doctor: Vec<Value> = serde_json::from_str(&doctor.stdout).unwrap_or_else(|_| panic!("{doctor:?}"));
    let hub = daemon.client_at("/prism/mcp").initialize().await;
    let overview: Value = hub.text("prism_destinations", json!({})).await.parse().unwrap();
    eprintln!("{:9} {:13} {:13} {:13} {:13} {:5} why", "server", "/readyz", "status", "console", "doctor", "ready");
    for (name, state, is_ready, reason) in STATES {
        let word = state.replace('_', " ");
        let one = told(&daemon, name).await;
        let row = table.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap_or_else(|| panic!("{table}"));
        let card = on_card(&page, name);
        let found = doctor
            .iter()
            .rfind(|finding| finding["what"] == name && finding["verdict"] != "skipped")
            .unwrap_or_else(|| panic!("{name}"));
        let said = found["said"].as_str().unwrap();
        let (verdict, why) = (found["verdict"].as_str().unwrap(), one["why"].as_str().unwrap());
        let by_doctor = said.split(':').next().unwrap();
        let by_ready = ready["destinations"][name].as_str().unwrap();
        eprintln!(
            "{name:9} {by_ready:13} {:13} {card:13} {by_doctor:13} {is_ready:5} {why}",
            one["state"].as_str().unwrap()
        );
        assert_eq!((by_ready, &one["state"], &one["ready"]), (state, &json!(state), &json!(is_ready)), "{name}: {one}");
        assert!(
            row.contains(&format!(" {word} ")) && card == word && by_doctor == word,
            "{name}: {row}; {card}; {said}"
        );
        assert!(why.contains(reason), "{name}: {why}");
        // What is not ready is wrong, everywhere, and comes with its reason and with what to type.
        assert_eq!(verdict == "wrong", !is_ready, "{name}: {found}");
        assert_eq!((one["fix"].is_string(), found["fix"].is_string()), (!is_ready, !is_ready || state == "starting"));
        let flat = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(flat.contains(why), !is_ready, "{name}: {table}");
        assert_eq!(ready["unavailable"][name].as_str(), (!is_ready).then_some(why), "{name}: {ready}");
        let by_hub = overview["destinations"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(by_hub["state"], state, "{by_hub}");
    }
    let crash = told(&daemon, "crash").await["why"].as_str().unwrap().to_owned();
    assert!(crash.contains("Its last output: `cannot find module foo`"), "{crash}");
    // Nothing was started for a look.
    assert_eq!(daemon.metric(r#"prism_child_starts_total{destination="never"}"#).await, Some(0));
    starting.abort();
}

// R-17: what is true goes with the next use, in both directions.
#[tokio::test]
async fn an_upstream_that_comes_back_is_up_and_one_that_goes_is_not() {
    let mut upstream = crate::support::upstream::Upstream::away();
    let daemon = Launch::serve(&format!("[destination.x]\nurl = \"{}\"\n", upstream.at("/mcp"))).start().await;
    assert_eq!(readyz(&daemon).await.0, 200, "nobody has used it");
    assert_eq!(daemon.client_at("/x/mcp").say_hello().await.status, 503);
    let (code, told) = readyz(&daemon).await;
    assert_eq!((code, &told["destinations"]["x"]), (503, &json!("refusing")), "{told}");
    assert!(told["unavailable"]["x"].as_str().unwrap().contains("refused"), "{told}");
    // A watchdog's look is enough to see that it is there again: nothing has to be started for it.
    upstream.come();
    let serving = tokio::spawn(async move {
        loop {
            let asked = upstream.asked_past_streams("server/discover").await;
            asked.status(401).await;
        }
    });
    until("it is looked at again", async || readyz(&daemon).await.1["destinations"]["x"] == "unauthorized").await;
    serving.abort();
}

// R-17, R-44: whoever calls is told the same.
#[tokio::test]
async fn a_call_is_told_why_its_server_does_not_start() {
    let home = crate::support::Home::new();
    let plain = home.file("plain.sh");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let config = [
        command("crash", &["sh", "-c", "echo cannot find module foo >&2; printf 'and that is all' >&2; exit 3"]),
        command("plain", &[&plain]),
        command("prints", &["sh", "-c", "echo hello; read line; exit 0"]),
    ]
    .concat();
    let daemon = Launch::serve(&config).home(&home).start().await;
    let why = async |name: &str| {
        let reply = daemon.client_at(&format!("/{name}/mcp")).say_hello().await;
        let (status, answer) = (reply.status, reply.json().await);
        assert_eq!((status, &answer["error"]["data"]["reason"]), (503, &json!("upstream_unavailable")), "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let crash = why("crash").await;
    assert!(crash.starts_with("crash keeps exiting (status 3, 5 tries in "), "{crash}");
    assert!(
        crash.ends_with(" s). Its last output: `cannot find module foo / and that is all`. More: prism logs"),
        "{crash}"
    );
    let plain_told = why("plain").await;
    assert_eq!(
        plain_told,
        format!("plain cannot be started: its program {plain} is not executable. Type: chmod +x {plain}")
    );
    let prints = why("prints").await;
    assert!(prints.contains("It printed text that is not MCP: `hello`"), "{prints}");
    // The program is looked at anew: what was mended needs no call to be believed.
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    assert_ne!(told(&daemon, "plain").await["state"], "missing");
}
