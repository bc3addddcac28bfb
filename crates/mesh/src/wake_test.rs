//! `prism wake test`: tries each way to an agent, and says what came of it and how long it took.

use std::{sync::Arc, time::Instant};

use prism_core::mesh::{Name, Path, name};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Mesh, Trouble};
use crate::wake::{Bell, Probe, Rung};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WakeTest {
    /// Whom to try; everybody if not said.
    agent: Option<String>,
    /// Really ring, which may start a turn. Else it is only looked who is there.
    #[serde(default)]
    ring: bool,
}

impl Mesh {
    pub async fn wake_test(self: &Arc<Self>, arguments: WakeTest) -> Result<Value, Trouble> {
        let agents: Vec<Name> = match &arguments.agent {
            Some(agent) => {
                let agent = name(agent)?;
                let state = self.state();
                if state.core.window(&agent).is_none() {
                    return Err(state.unknown(&agent));
                }
                vec![agent]
            }
            None => self.state().facts.keys().cloned().collect(),
        };
        let mut rows = Vec::new();
        for agent in agents {
            for path in Path::ALL {
                rows.push(self.try_path(&agent, path, arguments.ring).await);
            }
        }
        Ok(json!({"rows": rows}))
    }

    async fn try_path(&self, agent: &Name, path: Path, ring: bool) -> Value {
        let contact = self.state().facts.get(agent).and_then(|facts| facts.contact(path));
        let (Some(adapter), Some(contact)) = (self.adapters.of(path), contact) else {
            return json!({"agent": &**agent, "path": path.name(), "attached": false, "outcome": "not set up"});
        };
        let began = Instant::now();
        let (outcome, note) = match adapter.probe(&contact).await {
            Probe::Absent(why) => ("absent", Some(why)),
            Probe::There if !ring => ("there", None),
            Probe::There => {
                let text = "This is a wake test by the person at this machine: nothing is asked of you.";
                let session = contact.session.clone();
                let bell = Bell {
                    text: text.into(),
                    agent: agent.clone(),
                    session,
                    sender: "person".into(),
                    kind: "StatusUpdate".into(),
                };
                match adapter.ring(&contact, &bell).await {
                    Rung::Rang => ("rang", None),
                    Rung::Uncaptured(why) => ("uncaptured", Some(why)),
                    Rung::SendFailed(why) => ("send-failed", Some(why)),
                    Rung::Unanswered(why) => ("unanswered", Some(why)),
                }
            }
        };
        json!({
            "agent": &**agent,
            "path": path.name(),
            "grade": path.grade().name(),
            "attached": true,
            "outcome": outcome,
            "ms": began.elapsed().as_secs_f64() * 1e3,
            "note": note,
        })
    }
}
