//! Language servers: which of those are here that sub-agents get errors, completions and definitions from. None has to be.

use prism_editor::{DefaultLanguageServer, usual_servers};

use super::{DoctorContext, Finding};
use prism_config::EnvInheritance;

pub(super) fn check(patient: &DoctorContext) -> Vec<Finding> {
    let set = patient.config.as_ref().map(|config| &config.editor.servers);
    let mut here = Vec::new();
    let mut missing = Vec::new();
    let env = patient.env.inherited(&EnvInheritance::All);
    for server in usual_servers() {
        let DefaultLanguageServer { language, program, .. } = server;
        match set.and_then(|set| set.get(language)) {
            Some(command) if command.is_empty() => {}
            Some(command) => here.push(format!("{language} ({})", command[0])),
            None => match server.find(&env) {
                Ok(_) => here.push(format!("{language} ({program})")),
                Err(why) => missing.push(format!("{language} ({why})")),
            },
        }
    }
    let listed = |all: &[String]| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let mut said = format!("for sub-agents: {}", listed(&here));
    if !missing.is_empty() {
        said.push_str(&format!("\nnot here: {}", listed(&missing)));
    }
    vec![Finding::ok("languages", said)]
}
