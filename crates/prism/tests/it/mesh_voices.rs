//! In whose name a program speaks on the mesh: the clients' token alone is nobody's, and whose name is taken is told (M6).

use hyper::Method;
use serde_json::{Value, json};

use crate::support::{
    Client, Home, Launch,
    agents::At,
    seen::{NOTHING, seen},
};

async fn asked(client: &Client, verb: &str, arguments: &Value) -> (u16, Value) {
    let request = client.at(&format!("/prism/mesh/{verb}")).request(Method::POST);
    let reply = request.body(arguments.to_string()).send().await;
    (reply.status, reply.json().await)
}

//
#[tokio::test]
async fn the_clients_token_speaks_for_nobody_but_for_whose_session_it_shows() {
    let daemon = Launch::serve("").start().await;
    let (client, person) = (daemon.client_at("/prism/mesh"), daemon.person_at("/prism/mesh"));
    let sable = daemon.agent(At::Hub, "sable").await;
    let (_, started) = asked(&client, "start", &json!({"agent": "script"})).await;
    let session = started["session"].as_str().expect("it has a session").to_owned();
    person_sends(&person).await;
    for (verb, arguments) in [
        ("send", json!({"to": "sable", "body": "I am the person"})),
        ("send", json!({"to": "sable", "agent": "person", "body": "I am the person"})),
        ("send", json!({"to": "sable", "agent": "script", "body": "I am another"})),
        ("pending", json!({"agent": "sable"})),
        ("pending", json!({})),
        ("reply", json!({"to_signal": started["session"], "agent": "sable", "body": "x"})),
        ("wrap", json!({"agent": "sable"})),
    ] {
        let (status, told) = asked(&client, verb, &arguments).await;
        assert_eq!((status, &told["error"]["code"]), (403, &json!("not_yours")), "{verb} {arguments}: {told}");
        assert!(told.to_string().contains("give the `session`"), "{told}");
    }
    let (status, told) = asked(&client, "send", &json!({"to": "sable", "body": "I am the person"})).await;
    let agent = format!("{status}: {}", told["error"]["message"].as_str().unwrap_or_default());
    seen(agent, NOTHING, NOTHING);
    let (_, everything) = (0, client.request(Method::GET).send().await.json().await);
    assert!(!everything.to_string().contains(&sable.session), "a session is what shows who somebody is");
    let (status, _) = asked(&client, "send", &json!({"to": "sable", "session": session, "body": "it is me"})).await;
    assert_eq!(status, 200);
    let (status, _) = asked(&person, "send", &json!({"to": "sable", "agent": "script", "body": "for it"})).await;
    assert_eq!(status, 200);
    let senders: Vec<Value> = sable.drain().await.iter().map(|signal| signal["from"].clone()).collect();
    assert_eq!(senders, ["person", "script", "script"]);
    // Where the bell is waited for, nothing is taken and nothing said.
    assert_eq!(asked(&client, "diagnostics", &json!({"agent": "sable"})).await.0, 200);
}

async fn person_sends(person: &Client) {
    assert_eq!(asked(person, "send", &json!({"to": "sable", "body": "from the person"})).await.0, 200);
}

// the commands go on speaking for the person, and for agents that they name.
#[tokio::test]
async fn the_commands_speak_for_the_person_and_for_whom_they_name() {
    let home = Home::new();
    let daemon = Launch::serve("").home(&home).start().await;
    let sable = daemon.agent(At::Hub, "sable").await;
    let prism = async |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Launch::prism(words).home(&home).output().await
    };
    prism(&["signal", "send", "--to", "sable", "hello"]).await;
    assert_eq!(sable.drain().await[0]["from"], "person");
    prism(&["signal", "send", "--to", "sable", "again"]).await;
    assert!(prism(&["signal", "pending", "--agent", "sable"]).await.contains("again"));
}

// M6
#[tokio::test]
async fn who_loses_its_name_to_another_window_is_told_so() {
    let daemon = Launch::serve("").start().await;
    let first = daemon.agent(At::Hub, "sable").await;
    let second = daemon.agent(At::Hub, "sable").await;
    let why = first.refused("pending", json!({})).await;
    assert!(why.contains("not_started") && why.contains("another window has started as sable since"), "{why}");
    seen(why, NOTHING, daemon.logged("An agent has started").await);
    second.drain().await;
    // Under a name of its own it is somebody again.
    let mut first = first;
    first.start(json!({"agent": "donna"})).await;
    assert!(first.drain().await.is_empty());
}
