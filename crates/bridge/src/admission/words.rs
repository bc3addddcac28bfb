//! What a model is told. It is the result of the tool, marked as an error: an error of the protocol's is hidden from it.

use prism_config::ServerKey;
use prism_core::{
    policy::{canonical::JsonAmbiguity, rules::OTHERWISE},
    wire::members::JsonString,
};
use uuid::Uuid;

/// A tool's result that says why the tool did not run.
pub(super) fn result(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}],"isError":true}}"#, JsonString(text))
}

pub(super) fn denied(server: ServerKey<'_>, tool: &str, rule: &str) -> String {
    let rule = match rule {
        OTHERWISE => "no rule allows it".to_owned(),
        rule => format!("the rule deny = {rule:?} is about it"),
    };
    format!(
        "Prism did not make this call: the tool {tool:?} of {:?} must not be called; {rule} \
         ([{server}.tools] in prism.toml). Do not try again or look for a way around it: tell the person, \
         who can change the rule.",
        server.name
    )
}

pub(super) fn unclear(destination: &str, unclear: &JsonAmbiguity) -> String {
    format!(
        "Prism did not make this call: it can be read in more than one way, and {destination:?} has rules. {unclear}. Send \
         it so that it can be read in one way only."
    )
}

pub(super) fn refused(destination: &str, tool: &str, reason: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(" Their reason: {reason}"));
    format!(
        "A person was asked and did not allow this call of {tool:?} of {destination:?}.{reason} Do not try again unless they \
         tell you to."
    )
}

pub(super) fn unanswered(tool: &str, id: Uuid, rings: bool) -> String {
    let bell = if rings { " You will hear a bell." } else { "" };
    format!(
        "Not done yet: confirmation {id} waits for a person. Call {tool:?} with the same arguments again once it was \
         allowed (in the console, or with `prism confirm {id}`).{bell}"
    )
}

pub(super) fn asked_already(tool: &str) -> String {
    format!(
        "Not done yet: the description or schema of {tool:?} has changed, and a person is being asked about that. Call it \
         again with the same arguments in a while."
    )
}

pub(super) fn too_many() -> String {
    "Prism did not make this call: it needs a person's word, and too much waits for one already. Try again later."
        .to_owned()
}

pub(super) fn nobody(destination: &str, tool: &str) -> String {
    format!(
        "Prism did not make this call: {tool:?} of {destination:?} needs a person's word, and this daemon has no way to ask \
         for it. Tell the person; `prism serve` has."
    )
}

pub(super) fn broken(why: &str) -> String {
    format!("Prism did not make this call: {why}. Tell the person; `prism doctor` says more.")
}
