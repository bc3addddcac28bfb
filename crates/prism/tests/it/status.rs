//! `GET /status` and `/metrics`: what they say of real servers and clients, and that they agree (D-05, D-08, B-04).

use std::collections::HashMap;

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Daemon, Ended, Home, Launch, Plain, destination,
    process::{self, is_alive},
    until,
    upstream::Upstream,
};

async fn status(daemon: &Daemon) -> Value {
    let reply = daemon.client_at("/status").request(Method::GET).send().await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    reply.json().await
}

async fn destination_named(daemon: &Daemon, name: &str) -> Value {
    let status = status(daemon).await;
    let found = status["destinations"].as_array().unwrap().iter().find(|destination| destination["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {status}")).clone()
}

/// Metrics by their name with labels, as they are written.
async fn metrics(daemon: &Daemon) -> HashMap<String, f64> {
    let reply = daemon.client_at("/metrics").request(Method::GET).send().await;
    assert_eq!(reply.status, 200);
    let text = reply.text().await;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap())))
        .collect()
}

/// The quantile of a destination's calls, from the buckets, as Prometheus reckons it.
fn quantile(metrics: &HashMap<String, f64>, destination: &str, part: f64) -> Option<f64> {
    let prefix = r#"prism_request_seconds_bucket{le=""#;
    let suffix = format!(r#"",destination="{destination}",method="tools/call"}}"#);
    let mut buckets: Vec<(f64, f64)> = metrics
        .iter()
        .filter_map(|(name, count)| Some((name.strip_prefix(prefix)?.strip_suffix(&suffix)?, *count)))
        .map(|(bound, count)| (bound.parse().unwrap_or(f64::INFINITY), count))
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total = buckets.last().expect("there are buckets").1;
    let rank = part * total;
    let at = buckets.iter().position(|(_, count)| total > 0.0 && *count >= rank)?;
    let (lower, below) = if at == 0 { (0.0, 0.0) } else { buckets[at - 1] };
    let (upper, count) = buckets[at];
    Some(if upper.is_infinite() { lower } else { lower + (upper - lower) * (rank - below) / (count - below) })
}

// D-05: every number that both have is the same.
#[tokio::test]
async fn status_and_metrics_agree() {
    let config = [
        destination("busy", &[], "keep_warm = \"5m\""),
        destination("other", &[], ""),
        destination("dead", &["--fault", "die-at-start"], ""),
    ]
    .concat();
    let daemon = Launch::serve(&config).start().await;
    let busy = daemon.client_at("/busy/mcp").initialize().await;
    let _stream = busy.listen().await;
    for ms in [0, 0, 0, 30, 300] {
        busy.text("slow", json!({"ms": ms, "text": "x"})).await;
    }
    assert_eq!(busy.call("crash", json!({})).await.status, 503);
    let second = daemon.client_at("/busy/mcp").initialize().await;
    second.text("echo", json!({"text": "x"})).await;
    daemon.client_at("/other/mcp").initialize().await.ask("tools/list", json!({})).await;
    assert_eq!(daemon.client_at("/dead/mcp").say_hello().await.status, 503);
    // One call is on its way while both are read.
    let slow = second.clone();
    let waiting = tokio::spawn(async move { slow.call("slow", json!({"ms": 60_000, "text": "x"})).await.status });
    until("the call is on its way", async || destination_named(&daemon, "busy").await["in_flight"] == 1).await;

    let (status, metrics) = (status(&daemon).await, metrics(&daemon).await);
    let of = |name: &str, destination: &str| metrics[&format!(r#"{name}{{destination="{destination}"}}"#)];
    let requests = |destination: &str, status: &str| -> f64 {
        let prefix = format!(r#"prism_requests_total{{destination="{destination}",method=""#);
        let posts = metrics.iter().filter(|(name, _)| name.starts_with(&prefix) && name.contains(status));
        // GET and DELETE are no requests of the protocol.
        let posts = posts.filter(|(name, _)| !name.contains(r#"method="GET""#) && !name.contains(r#"method="DELETE""#));
        posts.map(|(_, count)| count).sum()
    };
    let names: Vec<&str> =
        status["destinations"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["busy", "dead", "other", "prism", "workspace"]);
    for one in status["destinations"].as_array().unwrap() {
        let name = one["name"].as_str().unwrap();
        let number = |field: &str| one[field].as_f64().unwrap_or_else(|| panic!("{field}: {one}"));
        for (field, metric) in [
            ("sessions", "prism_sessions"),
            ("streams", "prism_streams"),
            ("in_flight", "prism_calls_in_flight"),
            ("starts", "prism_child_starts_total"),
            ("restarts", "prism_child_restarts_total"),
            ("children", "prism_children"),
        ] {
            assert_eq!(number(field), of(metric, name), "{field} of {name}: {one}");
        }
        assert_eq!(number("requests"), requests(name, "status="), "{one}");
        assert_eq!(number("failures"), requests(name, r#"status="5xx""#), "{one}");
        let count = format!(r#"prism_request_seconds_count{{destination="{name}",method="tools/call"}}"#);
        assert_eq!(number("calls"), metrics[&count], "{one}");
        for (field, part) in [("p50_ms", 0.5), ("p99_ms", 0.99)] {
            match (one[field].as_f64(), quantile(&metrics, name, part)) {
                (None, None) => {}
                (Some(told), Some(seconds)) => assert!((told - seconds * 1e3).abs() < 1e-6, "{told} {seconds}: {one}"),
                both => panic!("{field} of {name}: {both:?}"),
            }
        }
        // Looked at twice, a moment apart.
        let (told, seen) = (number("memory_bytes"), of("prism_child_memory_bytes", name));
        assert!((told - seen).abs() <= 0.2 * told, "{name}: {told} and {seen}");
        let links: f64 = one["links"].as_array().unwrap().iter().filter_map(|link| link["memory_bytes"].as_f64()).sum();
        assert_eq!(links, told, "{one}");
    }
    let daemon_bytes = status["daemon"]["memory_bytes"].as_f64().unwrap();
    let real = process::resident_kib(daemon.pid()) as f64 * 1024.0;
    for seen in [metrics["process_resident_memory_bytes"], real] {
        assert!((daemon_bytes - seen).abs() <= 0.2 * seen, "{daemon_bytes} and {seen}");
    }
    assert!(metrics["process_open_fds"] > 5.0 && status["daemon"]["open_files"].as_f64().unwrap() > 5.0);

    // And they are the numbers of what was done.
    let one = |name: &str| status["destinations"].as_array().unwrap().iter().find(|d| d["name"] == name).unwrap();
    let of_busy = one("busy");
    assert_eq!((&of_busy["calls"], &of_busy["failures"], &of_busy["restarts"]), (&json!(7), &json!(1), &json!(1)));
    assert_eq!((&of_busy["state"], &of_busy["sessions"], &of_busy["children"]), (&json!("up"), &json!(2), &json!(1)));
    assert!(of_busy["p99_ms"].as_f64().unwrap() > 100.0 && of_busy["p50_ms"].as_f64().unwrap() < 100.0, "{of_busy}");
    assert_eq!((&of_busy["last_error"]["text"]), &json!("its process ended: exit status: 1"), "{of_busy}");
    assert!(of_busy["memory_bytes"].as_u64().unwrap() > 1 << 20, "{of_busy}");
    let dead = one("dead");
    assert_eq!((&dead["state"], &dead["sessions"]), (&json!("failing"), &json!(0)), "{dead}");
    assert!(dead["last_error"]["text"].as_str().unwrap().contains("dead keeps exiting (status 1, "), "{dead}");
    assert_eq!((&one("prism")["kind"], &one("prism")["state"]), (&json!("built_in"), &json!("never_used")));
    waiting.abort();
}

// D-05
#[tokio::test]
async fn status_wants_the_token_and_tells_of_the_daemon() {
    let config = destination("a", &[], "");
    let daemon = Launch::serve(&config).start().await;
    assert_eq!(daemon.get("/status").await.status, 401);
    let told = status(&daemon).await["daemon"].clone();
    assert_eq!((&told["pid"], &told["version"]), (&json!(daemon.pid()), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(told["url"], format!("http://127.0.0.1:{}", daemon.port()));
    let config = &told["config"];
    assert_eq!((&config["file"], &config["state"]), (&json!(daemon.home().file("it.toml")), &json!("ok")));
    assert!(config["error"].is_null() && config["taken_s"].as_f64().is_some(), "{config}");
    assert_eq!(told["home"], daemon.home().path().to_str().unwrap());
    assert_eq!(told["socket"], daemon.home().file("prism.sock"));
    assert!(!told.to_string().contains(&daemon.token()));
}

// B-04: which process model, and why; D-08.
#[tokio::test]
async fn each_link_tells_its_process_and_the_model_says_why() {
    let config = [
        destination("mixed", &[], "keep_warm = \"5m\""),
        destination("own", &[], "process = \"per_session\""),
        destination("all", &[], "process = \"shared_always\""),
        destination("quiet", &[], "asks = false\nera = \"legacy\""),
        destination("modern", &["--era", "modern"], ""),
    ]
    .concat();
    let daemon = Launch::serve(&config).start().await;
    let plain = daemon.client_at("/mixed/mcp").initialize().await;
    let able = daemon.client_at("/mixed/mcp").initialize_as("2025-06-18", json!({"elicitation": {}})).await;
    let children = [plain.child().await, able.child().await];
    assert_ne!(children[0], children[1]);
    daemon.client_at("/modern/mcp").initialize().await;
    let modelled = async |name: &str| {
        let one = destination_named(&daemon, name).await;
        (one["model"].as_str().unwrap().to_owned(), one["model_why"].as_str().unwrap().to_owned())
    };
    for (name, model, why) in [
        ("mixed", "mixed", "they get their own process"),
        ("own", "per_session", "process = \"per_session\" is set"),
        ("all", "shared", "process = \"shared_always\" is set"),
        ("quiet", "shared", "asks = false is set"),
        ("modern", "shared", "it speaks 2026-07-28"),
    ] {
        let (told, told_why) = modelled(name).await;
        assert!(told == model && told_why.contains(why), "{name}: {told}, {told_why}");
    }
    let mixed = destination_named(&daemon, "mixed").await;
    assert_eq!((&mixed["era"], &mixed["era_from"]), (&json!("legacy"), &json!("asked")), "{mixed}");
    assert_eq!(mixed["server"]["name"], "prism-demo");
    let links = mixed["links"].as_array().unwrap();
    let told: Vec<(&str, u64)> =
        links.iter().map(|link| (link["purpose"].as_str().unwrap(), link["pid"].as_u64().unwrap())).collect();
    assert_eq!(told, [("shared", u64::from(children[0])), ("own", u64::from(children[1]))]);
    for link in links {
        assert_eq!((&link["state"], &link["sessions"], &link["restarts"]), (&json!("up"), &json!(1), &json!(0)));
        assert!(link["memory_bytes"].as_u64().unwrap() > 1 << 20 && link["uptime_s"].as_f64().unwrap() > 0.0, "{link}");
    }
    let quiet = destination_named(&daemon, "quiet").await;
    assert_eq!(
        (&quiet["state"], &quiet["era"], &quiet["era_from"]),
        (&json!("never_used"), &json!("legacy"), &json!("set"))
    );
    // The client's own goes with it.
    able.delete().await;
    until("its child is gone", async || !is_alive(children[1])).await;
    until("its link is gone", async || {
        destination_named(&daemon, "mixed").await["links"].as_array().unwrap().len() == 1
    })
    .await;
}

// D-08: transport, client, revision, streams; session ids are secrets.
#[tokio::test]
async fn sessions_are_told_apart_by_client_and_transport_and_keep_their_ids_to_themselves() {
    let config = destination("a", &[], "legacy_sse = true");
    let daemon = Launch::serve(&config).start().await;
    let direct = daemon.client_at("/a/mcp").initialize_as("2025-06-18", json!({})).await;
    let _get = direct.listen().await;
    direct.text("echo", json!({"text": "x"})).await;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "shimmed"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let request = daemon.client_at("/mcp").request(Method::POST).header("prism-transport", "stdio");
    let reply = request.body(hello.to_string()).send().await;
    let shim = daemon.client_at("/mcp").with_session(reply.header("mcp-session-id").unwrap());
    shim.text("a__echo", json!({"text": "x"})).await;
    let mut plain = Plain::initialize(daemon.client_at("/a/sse"), json!({})).await;
    plain.answer("tools/list", json!({})).await;
    let modern = daemon.modern_hub().named("newcomer");
    modern.client_at("/mcp").ask("server/discover", json!({})).await;

    let status = status(&daemon).await;
    let [first, second, third] = status["sessions"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!(first["client"], json!({"name": "it", "version": "1"}));
    assert_eq!((&first["revision"], &first["transport"]), (&json!("2025-06-18"), &json!("http")));
    assert_eq!((&first["destination"], &first["hub"], &first["calls"]), (&json!("a"), &json!(false), &json!(1)));
    assert_eq!((&first["streams"][0]["kind"], &first["streams"][0]["waiting"]), (&json!("get"), &json!(0)), "{first}");
    assert_eq!(first["streams"].as_array().unwrap().len(), 1);
    assert_eq!((&second["client"]["name"], &second["transport"]), (&json!("shimmed"), &json!("stdio")));
    assert_eq!((&second["destination"], &second["hub"], &second["parts"]), (&Value::Null, &json!(true), &json!(["a"])));
    assert_eq!((&third["transport"], &third["revision"]), (&json!("sse"), &json!("2024-11-05")));
    assert_eq!((&third["streams"][0]["kind"], &third["calls"]), (&json!("sse"), &json!(2)), "{third}");
    let [caller] = status["clients"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!((&caller["client"]["name"], &caller["destination"]), (&json!("newcomer"), &Value::Null));
    let text = status.to_string();
    for secret in [direct.session(), shim.session(), &daemon.token()] {
        assert!(!text.contains(secret) && !text.contains(&secret[..12]), "{text}");
    }
    assert_eq!(destination_named(&daemon, "a").await["sessions"], 3, "a part of the hub's is one at the server");

    drop(plain);
    direct.delete().await;
    until("they are gone", async || self::status(&daemon).await["sessions"].as_array().unwrap().len() == 1).await;
}

// D-08: what a client has not had is told, whether it has a stream or not.
#[tokio::test]
async fn what_waits_for_a_client_without_a_stream_is_counted() {
    let daemon = Launch::serve(&destination("a", &[], "post_sse = false")).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    session.text("change", json!({"what": "tools"})).await;
    until("the change waits", async || status(&daemon).await["sessions"][0]["undelivered"] == 1).await;
    let mut stream = session.listen().await;
    stream.next().await.unwrap();
    until("it has left", async || status(&daemon).await["sessions"][0]["undelivered"] == 0).await;
}

// D-05: health is a real `tools/list`.
#[tokio::test]
async fn a_server_that_cannot_list_its_tools_is_not_ready() {
    let mut upstream = Upstream::start().await;
    let (daemon, _client) = upstream.bridged(&["--type", "streamable_http"]).await;
    let ready = async || {
        let reply = daemon.client_at("/readyz").request(Method::GET).send().await;
        (reply.status, reply.json().await["destinations"]["run"].clone())
    };
    let asking = tokio::spawn({
        let client = daemon.client_at("/readyz");
        async move { client.request(Method::GET).send().await.status }
    });
    let asked = upstream.asked_past_streams("tools/list").await;
    asked.error(200, json!({"code": -32603, "message": "the database is gone"})).await;
    assert_eq!(asking.await.unwrap(), 503);
    // The next one is well, and counts for a moment: nobody is asked twice.
    let (told, ()) = tokio::join!(ready(), async {
        let asked = upstream.asked_past_streams("tools/list").await;
        asked.result(json!({"tools": []})).await;
    });
    assert_eq!(told, (200, json!("up")));
    assert_eq!(ready().await, (200, json!("up")));
    upstream.asked_nothing_more();
}

/// `prism status` in the home of a daemon, or of none.
async fn told(home: &Home, port: u16, flags: &[&str]) -> Ended {
    let arguments = ["status"].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    Launch::prism(arguments).home(home).env("PRISM_PORT", &port.to_string()).end().await
}

// D-05: a table in a pipe is plain text, and the JSON is what the daemon says.
#[tokio::test]
async fn prism_status_shows_a_table_and_the_same_as_json() {
    let config =
        [destination("a", &[], "asks = false"), destination("dead", &["--fault", "die-at-start"], "")].concat();
    let daemon = Launch::serve(&config).start().await;
    let session = daemon.client_at("/a/mcp").initialize().await;
    session.text("echo", json!({"text": "x"})).await;
    daemon.client_at("/dead/mcp").say_hello().await;
    // Where it is says its registration; the port of the config is another.
    let ended = told(daemon.home(), 1, &[]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(!ended.stdout.contains('\x1b'), "no colour in a pipe: {}", ended.stdout);
    let row = |name: &str| ended.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    let child = session.child().await.to_string();
    let words = row("a ");
    let words: Vec<&str> = words.split_whitespace().collect();
    assert_eq!(words[..5], ["a", "up", "legacy", "shared", &child], "{}", ended.stdout);
    assert!(!ended.stdout.contains("asks = false is set"), "{}", ended.stdout);
    let why = told(daemon.home(), 1, &["-v"]).await.stdout;
    assert!(why.contains("\n  shared: asks = false is set\n"), "{why}");
    assert!(
        row("dead ").contains("failing") && ended.stdout.contains("dead keeps exiting (status 1, "),
        "{}",
        ended.stdout
    );
    let session = row("it 1");
    assert!(session.contains(" http ") && session.contains("2025-11-25"), "{}", ended.stdout);

    let ended = told(daemon.home(), 1, &["--json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&json["daemon"]["pid"], &json["destinations"][0]["calls"]), (&json!(daemon.pid()), &json!(2)));
}

// A script can tell "not there" from "broken", and a person is told what to type.
#[tokio::test]
async fn without_a_daemon_it_exits_with_3_and_says_how_to_start_one() {
    let (home, nobody) = (Home::new(), Upstream::away());
    let port = nobody.at("").rsplit(':').next().unwrap().parse().unwrap();
    let ended = told(&home, port, &[]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(3), ""));
    assert!(ended.stderr.contains("not running") && ended.stderr.contains("prism serve --detach"), "{}", ended.stderr);
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "who looks leaves nothing behind");
}

// Ctrl-C ends it, and what it started to say is whole.
#[tokio::test]
async fn watching_says_it_again_every_second_until_interrupted() {
    let daemon = Launch::serve(&destination("a", &[], "")).start().await;
    let arguments = ["status", "--watch", "--json"].map(str::to_owned).to_vec();
    let watching = Launch::prism(arguments).home(daemon.home()).begin();
    until("it was said twice", async || watching.stdout().lines().count() >= 2).await;
    watching.signal(rustix::process::Signal::INT);
    let ended = watching.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for line in ended.stdout.lines() {
        assert_eq!(serde_json::from_str::<Value>(line).unwrap()["daemon"]["pid"], daemon.pid());
    }
}
