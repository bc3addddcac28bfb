//! Agents of the mesh: who cannot be woken, and who owes for too long. The daemon says which; this says what to type.

use prism_api::status::{AgentStatus, MeshStatus, ReplyDebts};

use super::{DoctorContext, Finding};

const WHAT: &str = "agents";

pub(super) fn check(patient: &DoctorContext<'_>) -> Vec<Finding> {
    let mesh = patient.status.as_ref().and_then(|status| status.mesh.as_ref());
    mesh.map(found).unwrap_or_default()
}

fn found(mesh: &MeshStatus) -> Vec<Finding> {
    // Who has left, with a word or without, is not there to be woken. What they owe is owed all the same.
    let there: Vec<&AgentStatus> =
        mesh.agents.iter().filter(|one| !matches!(one.presence.as_str(), "gone" | "wrapped")).collect();
    let mut findings: Vec<Finding> = (!there.is_empty()).then(|| woken(&there)).into_iter().collect();
    findings.extend(mesh.agents.iter().filter(|one| one.debts.overdue > 0).map(|one| {
        let said = format!("{} owes {} for longer than was agreed", one.agent, replies(one.debts.overdue));
        Finding::note(WHAT, said, "prism mesh shows them; prism signal waive ID ends one without a reply")
    }));
    findings.extend((mesh.person.owes > 0).then(|| asked(mesh.person)));
    findings
}

/// What agents wait for that only the person can say.
fn asked(ReplyDebts { owes, overdue }: ReplyDebts) -> Finding {
    let late = if overdue > 0 { format!(", {overdue} of them for longer than was agreed") } else { String::new() };
    let fix = "prism mesh shows them; prism signal reply ID answers one, prism signal waive ID ends it without a reply";
    Finding::note(WHAT, format!("you owe agents {}{late}", replies(owes)), fix)
}

fn replies(count: u64) -> String {
    if count == 1 { "1 reply".to_owned() } else { format!("{count} replies") }
}

fn woken(there: &[&AgentStatus]) -> Finding {
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
        let agent = |name: &str, support: &str| AgentStatus {
            agent: name.to_owned(),
            surface_support: support.to_owned(),
            ..AgentStatus::default()
        };
        let (full, degraded) = (agent("ana", "full"), agent("ben", "degraded"));
        assert!(!woken(&[&full]).said.contains("cannot"));
        let found = woken(&[&full, &degraded]);
        assert!(found.said.contains("1 of 2 cannot be woken") && found.said.ends_with("ben"), "{found:?}");
        assert_eq!(found.fix.as_deref(), Some("prism wake test ben"));
    }

    // what is owed by whoever is gone, and by the person, is owed all the same.
    #[test]
    fn who_owes_for_too_long_is_named_wherever_they_are() {
        let agent = |name: &str, presence: &str, overdue: u64| AgentStatus {
            agent: name.to_owned(),
            presence: presence.to_owned(),
            surface_support: "degraded".to_owned(),
            debts: ReplyDebts { owes: overdue, overdue },
            ..AgentStatus::default()
        };
        let said = |mesh: &MeshStatus| found(mesh).into_iter().map(|finding| finding.said).collect::<Vec<_>>();
        let mut mesh = MeshStatus {
            agents: vec![agent("ana", "gone", 1), agent("ben", "wrapped", 2), agent("cleo", "wrapped", 0)],
            person: ReplyDebts::default(),
        };
        let late = ["ana owes 1 reply for longer than was agreed", "ben owes 2 replies for longer than was agreed"];
        assert_eq!(said(&mesh), late, "nobody is there to be woken");
        mesh.person = ReplyDebts { owes: 3, overdue: 0 };
        assert_eq!(said(&mesh)[2..], ["you owe agents 3 replies"]);
        mesh.person.overdue = 2;
        assert_eq!(said(&mesh)[2..], ["you owe agents 3 replies, 2 of them for longer than was agreed"]);
        mesh.agents.push(agent("dora", "active", 0));
        assert!(said(&mesh)[0].starts_with("1 of 1 cannot be woken"), "{:?}", said(&mesh));
    }
}
