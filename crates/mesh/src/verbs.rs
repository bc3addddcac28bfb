//! The verbs by name, for whoever has arguments as JSON: `POST /prism/mesh/{verb}`. The tools have them typed.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Caller, Mesh, Trouble, drain::Given};
use prism_mcp::kit::read_arguments;

/// What the mesh can be asked over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Start,
    Checkpoint,
    Wrap,
    Status,
    Send,
    Pending,
    Wait,
    Reply,
    Recall,
    Waive,
    Obligations,
    Diagnostics,
    History,
    WakeTest,
}

impl Verb {
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Checkpoint,
        Self::Wrap,
        Self::Status,
        Self::Send,
        Self::Pending,
        Self::Wait,
        Self::Reply,
        Self::Recall,
        Self::Waive,
        Self::Obligations,
        Self::Diagnostics,
        Self::History,
        Self::WakeTest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Checkpoint => "checkpoint",
            Self::Wrap => "wrap",
            Self::Status => "status",
            Self::Send => "send",
            Self::Pending => "pending",
            Self::Wait => "wait",
            Self::Reply => "reply",
            Self::Recall => "recall",
            Self::Waive => "waive",
            Self::Obligations => "obligations",
            Self::Diagnostics => "diagnostics",
            Self::History => "history",
            Self::WakeTest => "wake_test",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// Does what a verb says. What it gives out has arrived when its answer leaves.
pub async fn run(
    mesh: &Arc<Mesh>,
    verb: Verb,
    arguments: &str,
    caller: &Caller,
) -> Result<(Value, Option<Given>), Trouble> {
    let told = match verb {
        Verb::Pending => return mesh.pending(caller, read(arguments)?).await,
        Verb::Start => mesh.start(caller, read(arguments)?).await,
        Verb::Checkpoint => mesh.checkpoint(caller, read(arguments)?).await,
        Verb::Wrap => mesh.wrap(caller, read(arguments)?).await,
        Verb::Status => Ok(mesh.roster(caller)),
        Verb::Send => mesh.send(caller, read(arguments)?).await,
        Verb::Wait => mesh.wait(caller, read(arguments)?, None).await,
        Verb::Reply => mesh.reply(caller, read(arguments)?).await,
        Verb::Recall => mesh.recall(caller, read(arguments)?).await,
        Verb::Waive => mesh.waive(caller, read(arguments)?).await,
        Verb::Obligations => mesh.obligations(caller, read(arguments)?),
        Verb::Diagnostics => mesh.diagnostics(caller, read(arguments)?),
        Verb::History => mesh.history(read(arguments)?),
        Verb::WakeTest => mesh.wake_test(read(arguments)?).await,
    };
    told.map(|told| (told, None))
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, Trouble> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    read_arguments(arguments).map_err(Trouble::bad)
}
