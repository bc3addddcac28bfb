//! Who hears of changes.

use super::*;

const TAG: &str = "io.modelcontextprotocol/subscriptionId";

fn listen(client: &mut Client, id: u64, wanted: Value) {
    client.request(id, "subscriptions/listen", json!({"notifications": wanted}), json!({}));
}

#[tokio::test]
async fn a_listen_is_acknowledged_for_what_will_be_told() {
    let mut client = Client::open();
    let wanted = json!({
        "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["toy://one", "toy://x"],
    });
    listen(&mut client, 0, wanted);
    let (said, note) = client.next().await;
    assert_eq!((said.about, said.is_answer), (Some(0), false));
    assert_eq!(note["method"], "notifications/subscriptions/acknowledged");
    let honoured = json!({"resourcesListChanged": true, "resourceSubscriptions": ["toy://one"]});
    assert_eq!(note["params"], json!({"notifications": honoured, "_meta": {TAG: 0}}));
}

#[tokio::test]
async fn each_listen_hears_what_it_asked_for_under_its_own_id_until_it_is_cancelled() {
    let mut client = Client::open();
    let notifier = client.server.notifier();
    assert_eq!(notifier.resources_changed(), 0);
    listen(&mut client, 1, json!({"resourcesListChanged": true}));
    listen(&mut client, 2, json!({"resourceSubscriptions": ["toy://one"]}));
    client.next().await;
    client.next().await;
    assert_eq!(notifier.tools_changed(), 0);
    assert_eq!(notifier.resources_changed(), 1);
    let (said, note) = client.next().await;
    assert_eq!((said.about, said.is_answer), (Some(1), false));
    assert_eq!(
        note,
        json!({"jsonrpc": "2.0", "method": "notifications/resources/list_changed", "params": {"_meta": {TAG: 1}}})
    );
    assert_eq!((notifier.updated("toy://one"), notifier.updated("toy://x")), (1, 0));
    let (said, note) = client.next().await;
    assert_eq!(said.about, Some(2));
    assert_eq!(note["params"], json!({"uri": "toy://one", "_meta": {TAG: 2}}));
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}));
    assert_eq!(notifier.updated("toy://one"), 0);
    // Another connection of the same server has listens of its own.
    let mut other = Client { connection: BuiltinConnection::open(client.server.clone()), ..Client::open() };
    listen(&mut other, 1, json!({"resourcesListChanged": true}));
    other.next().await;
    assert_eq!(notifier.resources_changed(), 2);
    drop(other);
    assert_eq!(notifier.resources_changed(), 1);
}

#[tokio::test]
async fn a_flood_of_changes_is_merged() {
    let mut client = Client::open();
    let notifier = client.server.notifier();
    listen(&mut client, 1, json!({"resourcesListChanged": true, "resourceSubscriptions": ["toy://one"]}));
    client.next().await;
    for _ in 0..5000 {
        notifier.resources_changed();
    }
    notifier.updated("toy://one");
    client.request(2, "tools/list", json!({}), json!({}));
    let (mut lists, mut updates) = (0, 0);
    loop {
        match client.next().await {
            (said, _) if said.is_answer => break,
            (_, note) if note["method"] == "notifications/resources/updated" => updates += 1,
            _ => lists += 1,
        }
    }
    assert_eq!((lists, updates), (1024, 1));
}

#[tokio::test]
async fn a_listen_without_its_filter_is_refused() {
    let mut client = Client::open();
    client.request(1, "subscriptions/listen", json!({}), json!({}));
    assert_eq!(client.error(1).await["code"], -32602);
    listen(&mut client, 2, json!({}));
    client.next().await;
    listen(&mut client, 2, json!({}));
    assert_eq!(client.error(2).await["code"], -32600);
}
