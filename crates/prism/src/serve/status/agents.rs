//! The mesh in `/status`: its agents, and whether each can be woken. It is the mesh that knows; this asks it.

use serde::{Deserialize, Serialize};

use crate::mesh::{Caller, Mesh as Agents};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Mesh {
    /// Those that have a window, and have not said good-bye.
    pub agents: Vec<Agent>,
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
    /// Replies that it owes, and those that it owes for longer than was agreed.
    pub owes: u64,
    pub overdue: u64,
}

pub(super) fn mesh(mesh: &Agents) -> Mesh {
    // The fields that are named above, of the roster as everybody has it: agents' sessions are secrets, and not among them.
    let agents: Vec<Agent> = serde_json::from_value(mesh.roster(&Caller::Script)["agents"].take()).unwrap_or_default();
    Mesh { agents: agents.into_iter().filter(|one| one.presence != "wrapped").collect() }
}
