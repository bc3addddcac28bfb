//! A config that waits for the person to see it is shown in the window that they look at; their word on it is `prism trust`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use super::{deciding, refused, shown};
use crate::support::{
    Launch, destination,
    gate::{Gate, SETTINGS, text},
    plugin::owning,
};

// C1
#[tokio::test]
async fn a_config_that_waits_is_shown_with_its_difference_until_the_person_trusts_it() {
    let gate = Gate::start_in_project(SETTINGS).await;
    let mut line = owning(&gate, "edit", deciding(&gate)).await;
    let first = line.hears("desk").await;
    assert_eq!(first["configs"], Value::Null, "nothing waits");
    let late = |key: &str| destination("late", &[], &format!("env = {{ API_KEY = \"{key}\" }}\n"));
    fs::write(gate.path("prism.toml"), format!("{SETTINGS}{}", late("hunter2"))).unwrap();
    let desk = shown(&mut line, "the config", |desk| desk["configs"][0].is_object()).await;
    let config = &desk["configs"][0];
    assert_eq!(config["path"], json!(gate.path("prism.toml")));
    assert_eq!(config["fix"], json!(format!("prism trust {}", gate.path("prism.toml"))));
    assert!(text(&config["why"]).contains("was changed, and counts as you saw it last"), "{config}");
    let unified = text(&config["unified"]);
    assert!(unified.contains("+[destination.late]") && unified.contains("API_KEY"), "{unified}");
    assert!(!desk.to_string().contains("hunter2"), "{desk}");
    // Whoever comes later is shown it as well.
    let mut other = owning(&gate, "other", deciding(&gate)).await;
    assert_eq!(other.hears("desk").await["configs"], desk["configs"]);
    // It is only shown: there is no word for it here.
    let word = json!({"type": "decide", "id": 1, "path": gate.path("prism.toml"), "approve": true});
    assert_eq!(refused(&mut line, word).await.0, "bad_arguments");
    assert_eq!(gate.daemon.client_at("/late/mcp").say_hello().await.status, 404);
    // Another text takes its place.
    fs::write(gate.path("prism.toml"), format!("{SETTINGS}# another\n{}", late("hunter3"))).unwrap();
    let is_other =
        |desk: &Value| desk["configs"][0]["unified"].as_str().is_some_and(|text| text.contains("+# another"));
    shown(&mut line, "the other text", is_other).await;

    let trust = ["trust", "--yes"].map(str::to_owned).to_vec();
    let told = Launch::prism(trust).home(gate.daemon.home()).folder(&PathBuf::from(gate.project())).end().await;
    assert_eq!(told.code, Some(0), "{told:?}");
    for line in [&mut line, &mut other] {
        shown(line, "that nothing waits", |desk| desk["configs"].is_null()).await;
    }
    assert_eq!(gate.daemon.client_at("/late/mcp").say_hello().await.status, 200);
}
