//! Agents of the mesh: who cannot be woken, and who owes for too long. The daemon says which; this says what to type.

use super::{Finding, Patient};
use crate::serve::status::agents::Agent;

const WHAT: &str = "agents";

pub(super) fn check(patient: &Patient<'_>) -> Vec<Finding> {
    let mesh = patient.status.as_ref().and_then(|status| status.mesh.as_ref());
    let agents = mesh.map_or(&[][..], |mesh| &mesh.agents);
    // Who has left without a word is not there to be woken.
    let there: Vec<&Agent> = agents.iter().filter(|one| one.presence != "gone").collect();
    if there.is_empty() {
        return Vec::new();
    }
    let mut findings = vec![woken(&there)];
    findings.extend(there.iter().filter(|one| one.overdue > 0).map(|one| {
        let said = format!("{} owes {} replies for longer than was agreed", one.agent, one.overdue);
        Finding::note(WHAT, said, "prism mesh shows them; prism signal waive ID ends one without a reply")
    }));
    findings
}

fn woken(there: &[&Agent]) -> Finding {
    let degraded: Vec<&str> =
        there.iter().filter(|one| one.surface_support != "full").map(|one| one.agent.as_str()).collect();
    if degraded.is_empty() {
        return Finding::ok(WHAT, format!("{} there, and all can be woken", there.len()));
    }
    let said = format!(
        "{} of {} cannot be woken, and hear of their signals with their next call: {}",
        degraded.len(),
        there.len(),
        degraded.join(", ")
    );
    Finding::note(WHAT, said, format!("prism wake test {}", degraded[0]))
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn who_cannot_be_woken_is_named_with_what_to_type() {
        let agent = |name: &str, support: &str| Agent {
            agent: name.to_owned(),
            surface_support: support.to_owned(),
            ..Agent::default()
        };
        let (full, degraded) = (agent("ana", "full"), agent("ben", "degraded"));
        assert!(!woken(&[&full]).said.contains("cannot"));
        let found = woken(&[&full, &degraded]);
        assert!(found.said.contains("1 of 2 cannot be woken") && found.said.ends_with("ben"), "{found:?}");
        assert_eq!(found.fix.as_deref(), Some("prism wake test ben"));
    }
}
