//! Language servers: which of those are here that sub-agents get errors, completions and definitions from. None has to be.

use prism_editor::{UsualServer, usual_servers};

use super::{Finding, Patient};
use crate::config::Env;

pub(super) fn check(patient: &Patient) -> Vec<Finding> {
    let set = patient.config.as_ref().map(|config| &config.editor.servers);
    let mut here = Vec::new();
    let mut missing = Vec::new();
    for UsualServer { language, program, install } in usual_servers() {
        match set.and_then(|set| set.get(language)) {
            Some(command) if command.is_empty() => {}
            Some(command) => here.push(format!("{language} ({})", command[0])),
            None if is_on_path(patient, program) => here.push(format!("{language} ({program})")),
            None => missing.push(format!("{language} ({install})")),
        }
    }
    let listed = |all: &[String]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let mut said = format!("for sub-agents: {}", listed(&here));
    if !missing.is_empty() {
        said.push_str(&format!("\nnot here: {}", listed(&missing)));
    }
    vec![Finding::ok("languages", said)]
}

fn is_on_path(patient: &Patient, program: &str) -> bool {
    Env::finds(program, None, patient.env.var("PATH").unwrap_or_default())
}
