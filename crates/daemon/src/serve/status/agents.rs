//! The mesh in `/status`: its agents, and whether each can be woken. It is the mesh that knows; this asks it.

use prism_api::{
    mesh::RosterAgent,
    status::{AgentStatus, MeshStatus, ReplyDebts},
};
use prism_mesh::{Mesh, MeshCaller};

/// What of the roster is shown: agents' sessions are secrets, and not among it.
fn shown(one: RosterAgent) -> AgentStatus {
    AgentStatus {
        agent: one.agent,
        presence: one.presence,
        surface: one.surface,
        transport: one.transport,
        surface_support: one.surface_support,
        paths: one.paths,
        pending: one.pending,
        debts: ReplyDebts { owes: one.owes, overdue: one.overdue },
    }
}

pub(super) fn mesh(mesh: &Mesh) -> MeshStatus {
    let [owes, overdue] = mesh.owed_by_person().map(|count| count as u64);
    let agents = mesh.roster(&MeshCaller::Script).agents.into_iter().map(shown);
    let agents = agents.filter(|one| one.presence != "wrapped" || one.debts.owes > 0).collect();
    MeshStatus { agents, person: ReplyDebts { owes, overdue } }
}
