//! The mesh in `/status`: its agents, and whether each can be woken. It is the mesh that knows; this asks it.

use serde::{Deserialize, Serialize};

use prism_mesh::{Caller, Mesh as Agents};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mesh {
    /// Those that have a window and have not said good-bye, and whoever owes a reply all the same.
    pub agents: Vec<Agent>,
    /// The human at the machine, who is no agent and can be asked like one.
    pub person: Debts,
}

/// Replies that somebody owes, and those that they owe for longer than was agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Debts {
    pub owes: u64,
    pub overdue: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    pub agent: String,
    pub presence: String,
    pub surface: Option<String>,
    pub transport: Option<String>,
    /// `full`: it can be woken. `degraded`: it hears of its signals with its next call.
    pub surface_support: String,
    /// The healthy ones.
    pub paths: Vec<String>,
    pub pending: u64,
    #[serde(flatten)]
    pub debts: Debts,
}

pub(super) fn mesh(mesh: &Agents) -> Mesh {
    // The fields that are named above, of the roster as everybody has it: agents' sessions are secrets, and not among them.
    let agents: Vec<Agent> = serde_json::from_value(mesh.roster(&Caller::Script)["agents"].take()).unwrap_or_default();
    let [owes, overdue] = mesh.owed_by_person().map(|count| count as u64);
    let agents = agents.into_iter().filter(|one| one.presence != "wrapped" || one.debts.owes > 0).collect();
    Mesh { agents, person: Debts { owes, overdue } }
}
