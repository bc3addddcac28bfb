//! The agents of the mesh in a status: who can be woken, and who owes what.

use crate::{
    cli::{
        bells,
        columns::{Cell, Column, number, table, text},
        say::{Colour, Line},
    },
    serve::status::agents::{Agent, Mesh},
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

pub(super) fn lines(mesh: &Mesh, width: usize) -> Vec<Line> {
    if mesh.agents.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![Vec::new()];
    lines.extend(table(&AGENTS, mesh.agents.iter().map(|one| (agent(one), Vec::new())).collect(), width));
    lines
}

fn agent(one: &Agent) -> Vec<Cell> {
    let plain = |text: &str| (text.to_owned(), None);
    let degraded = one.surface_support == "degraded";
    let owes = match one.overdue {
        0 => (one.owes.to_string(), None),
        overdue => (format!("{}, {overdue} overdue", one.owes), Some(Colour::Red)),
    };
    vec![
        plain(&one.agent),
        plain(&one.presence),
        plain(one.surface.as_deref().unwrap_or_default()),
        plain(one.transport.as_deref().unwrap_or_default()),
        (bells::support(&one.surface_support).to_owned(), degraded.then_some(Colour::Yellow)),
        (one.paths.join(", "), Some(Colour::Dim)),
        plain(&one.pending.to_string()),
        owes,
    ]
}
