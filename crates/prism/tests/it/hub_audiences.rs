//! Whose lists a client of the hub's is shown: those of the process that its calls run in (R-20, R-56).

use serde_json::{Value, json};

use crate::support::{
    Daemon, Events, Modern,
    hub::{names, serve},
    until,
};

const CHILDREN: &str = r#"prism_children{destination="g"}"#;

/// A daemon before a server whose tool `grow` adds one.
async fn growing(era: &str) -> Daemon {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/growing.py");
    serve(&[format!("[destination.g]\ncommand = [\"python3\", {script:?}, {era:?}]\n")]).await
}

/// What the server lists after it has grown so often.
fn grown(times: usize) -> Vec<String> {
    let added = (1..=times).map(|at| format!("g__grown{at}"));
    ["g__grow".to_owned()].into_iter().chain(added).collect()
}

fn of_server(list: &Value) -> Vec<String> {
    names(list, "tools", "name").into_iter().filter(|name| name.starts_with("g__")).collect()
}

async fn listed(client: &Modern) -> Vec<String> {
    of_server(&client.result("tools/list", json!({})).await)
}

async fn told(stream: &mut Events, method: &str) {
    let message = stream.message().await;
    assert_eq!(message["method"], format!("notifications/{method}"), "{message}");
}

#[tokio::test]
async fn what_a_sessionless_call_adds_is_told_and_in_the_next_list() {
    for era in ["legacy", "both"] {
        for capabilities in [json!({}), json!({"elicitation": {"form": {}}})] {
            let daemon = growing(era).await;
            let client = daemon.modern_hub().can(capabilities.clone());
            let case = format!("{era} {capabilities}");
            assert_eq!(listed(&client).await, grown(0), "{case}");
            let mut stream = client.listen(json!("l"), json!({"toolsListChanged": true})).await;
            told(&mut stream, "subscriptions/acknowledged").await;
            let first = client.text("g__grow", json!({})).await;
            for times in 1..=3 {
                told(&mut stream, "tools/list_changed").await;
                assert_eq!(listed(&client).await, grown(times), "{case}");
                assert_eq!(client.text("g__grow", json!({})).await, first, "{case}: one process has them all");
            }
            drop(stream);
            // Who opens no stream sees it all the same.
            assert_eq!(listed(&client).await, grown(4), "{case}");
            until("one process is left", async || daemon.metric(CHILDREN).await == Some(1)).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_begins_with_a_call_finds_what_it_adds_in_its_first_list() {
    for (era, capabilities) in [("legacy", json!({"roots": {}})), ("both", json!({}))] {
        let daemon = growing(era).await;
        let client = daemon.modern_hub().can(capabilities);
        client.text("g__grow", json!({})).await;
        assert_eq!(listed(&client).await, grown(1), "{era}");
        until("one process is left", async || daemon.metric(CHILDREN).await == Some(1)).await;
    }
}

#[tokio::test]
async fn clients_of_both_eras_share_a_server_where_they_can_and_else_see_their_own() {
    for (era, children) in [("legacy", 1), ("both", 2)] {
        let daemon = growing(era).await;
        let (older, newer) = (daemon.hub().initialize().await, daemon.modern_hub());
        let mut stream = older.listen().await;
        assert_eq!(of_server(&older.result("tools/list", json!({})).await), grown(0), "{era}");
        newer.text("g__grow", json!({})).await;
        assert_eq!(listed(&newer).await, grown(1), "{era}");
        if children == 1 {
            told(&mut stream, "tools/list_changed").await;
        }
        let shared = usize::from(children == 1);
        assert_eq!(of_server(&older.result("tools/list", json!({})).await), grown(shared), "{era}");
        older.text("g__grow", json!({})).await;
        told(&mut stream, "tools/list_changed").await;
        assert_eq!(of_server(&older.result("tools/list", json!({})).await), grown(shared + 1), "{era}");
        assert_eq!(listed(&newer).await, grown(1 + shared), "{era}");
        until("no more than these run", async || daemon.metric(CHILDREN).await == Some(children)).await;
    }
}
