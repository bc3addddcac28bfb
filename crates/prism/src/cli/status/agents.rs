//! The agents of the mesh in a status: who can be woken, and who owes what.

use prism_api::status::{AgentStatus, MeshStatus, ReplyDebts};
use prism_core::mesh::{PERSON, words};

use crate::cli::{
    columns::{Cell, Column, number, table, text},
    say::{Colour, Line},
};

const AGENTS: [Column; 8] = [
    text("AGENT", 0),
    text("PRESENCE", 0),
    text("SURFACE", 2),
    text("VIA", 3),
    text("WAKE", 0),
    text("PATHS", 4),
    number("PENDING", 1),
    number("OWES", 1),
];

pub(super) fn lines(mesh: &MeshStatus, width: usize) -> Vec<Line> {
    let person = (mesh.person.owes > 0).then(|| person(mesh.person));
    let rows: Vec<_> = mesh.agents.iter().map(agent).chain(person).map(|row| (row, Vec::new())).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Vec::new()];
    lines.extend(table(&AGENTS, rows, width));
    lines
}

/// The human at the machine is shown for what they owe, and for nothing else.
fn person(debts: ReplyDebts) -> Vec<Cell> {
    let mut row = vec![(PERSON.to_owned(), None)];
    row.resize(AGENTS.len() - 1, (String::new(), None));
    row.push(owes(debts));
    row
}

fn owes(ReplyDebts { owes, overdue }: ReplyDebts) -> Cell {
    match overdue {
        0 => (owes.to_string(), None),
        overdue => (format!("{owes}, {overdue} overdue"), Some(Colour::Red)),
    }
}

fn agent(one: &AgentStatus) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let degraded = one.surface_support == "degraded";
    vec![
        plain(&one.agent),
        plain(&one.presence),
        plain(one.surface.as_deref().unwrap_or_default()),
        plain(one.transport.as_deref().unwrap_or_default()),
        (words::support(&one.surface_support).to_owned(), degraded.then_some(Colour::Yellow)),
        (one.paths.join(", "), Some(Colour::Dim)),
        plain(&one.pending.to_string()),
        owes(one.debts),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn what_the_person_owes_is_shown_beside_the_agents() {
        let agent =
            AgentStatus { agent: "ben".into(), debts: ReplyDebts { owes: 2, overdue: 0 }, ..AgentStatus::default() };
        let shown = |agents: &[AgentStatus], owes, overdue| {
            let mesh = MeshStatus { agents: agents.to_vec(), person: ReplyDebts { owes, overdue } };
            let plain = |line: Line| line.into_iter().map(|(text, _)| text).collect::<String>().trim_end().to_owned();
            lines(&mesh, 120).into_iter().map(plain).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[], 0, 0), [""; 0]);
        let both = shown(std::slice::from_ref(&agent), 3, 1);
        assert!(both[2].starts_with("ben") && both[2].ends_with('2'), "{both:?}");
        assert!(both[3].starts_with("person") && both[3].ends_with("3, 1 overdue"), "{both:?}");
        assert_eq!(shown(&[], 1, 0).len(), 3, "without an agent, too");
        assert_eq!(shown(&[agent], 0, 0).len(), 3);
    }
}
