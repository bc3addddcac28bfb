//! The verbs by name, for whoever has arguments as JSON: `POST /prism/mesh/{verb}`. The tools have them typed.

use std::sync::Arc;

use prism_api::mesh::MeshVerb;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Mesh, MeshCaller, MeshError, drain::DrainDelivery};
use prism_mcp::kit::read_arguments;

/// Does what a verb says. What it gives out has arrived when its answer leaves.
pub async fn run(
    mesh: &Arc<Mesh>,
    verb: MeshVerb,
    arguments: &str,
    caller: &MeshCaller,
) -> Result<(Value, Option<DrainDelivery>), MeshError> {
    let answer = match verb {
        MeshVerb::Pending => {
            let (page, given) = mesh.pending(caller, read(arguments)?).await?;
            return Ok((json!(page), given));
        }
        MeshVerb::Start => json!(mesh.start(caller, read(arguments)?).await?),
        MeshVerb::Checkpoint => json!(mesh.checkpoint(caller, read(arguments)?).await?),
        MeshVerb::Wrap => json!(mesh.wrap(caller, read(arguments)?).await?),
        MeshVerb::Status => json!(mesh.roster(caller)),
        MeshVerb::Send => json!(mesh.send(caller, read(arguments)?).await?),
        MeshVerb::Wait => json!(mesh.wait(caller, read(arguments)?, None).await?),
        MeshVerb::Reply => json!(mesh.reply(caller, read(arguments)?).await?),
        MeshVerb::Recall => json!(mesh.recall(caller, read(arguments)?).await?),
        MeshVerb::Waive => json!(mesh.waive(caller, read(arguments)?).await?),
        MeshVerb::Obligations => json!(mesh.obligations(caller, read(arguments)?)?),
        MeshVerb::Diagnostics => json!(mesh.diagnostics(caller, read(arguments)?)?),
        MeshVerb::History => json!(mesh.history(read(arguments)?)?),
        MeshVerb::WakeTest => json!(mesh.wake_test(read(arguments)?).await?),
    };
    Ok((answer, None))
}

fn read<T: DeserializeOwned>(arguments: &str) -> Result<T, MeshError> {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    read_arguments(arguments).map_err(MeshError::bad)
}
