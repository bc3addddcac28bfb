//! What is told of a verb before it is used is what it takes.

use std::collections::BTreeSet;

use prism_core::policy::Code;
use serde_json::{Value, json};

use super::Place;
use crate::verbs;

const NOBODY_KNOWS: &str = "zz_nobody_knows";

/// The arguments that a verb says it takes, to whoever gives another one.
fn taken(message: &str) -> BTreeSet<&str> {
    let all = message.split_once("it takes ").map(|(_, all)| all).unwrap_or_default();
    all.split('`').skip(1).step_by(2).collect()
}

#[tokio::test]
async fn each_verb_takes_the_arguments_that_it_is_said_to_take() {
    let place = Place::new();
    for verb in verbs::all() {
        let mut args: Value = serde_json::from_str(verb.example).unwrap();
        args[NOBODY_KNOWS] = json!(1);
        let refusal = place.runtime.prepare(place.order(verb.name, &args)).await.err();
        let refusal = refusal.unwrap_or_else(|| panic!("{} took what nobody knows", verb.name));
        if refusal.code == Code::Unsupported {
            continue;
        }
        assert!(refusal.message.contains(NOBODY_KNOWS), "{}: {}", verb.name, refusal.message);
        let told: BTreeSet<&str> = verb.args.iter().map(|arg| arg.name).collect();
        assert_eq!(taken(&refusal.message), told, "{}", verb.name);
    }
}
