//! `prism wake test`: tries each way to an agent, and says what came of it and how long it took.

use std::{sync::Arc, time::Instant};

use prism_api::mesh::{WakeTestArguments, WakeTestResult, WakeTestRow};
use prism_core::mesh::{Name, WakePath, name};

use super::{Mesh, MeshError};
use crate::wake::{ProbeOutcome, RingOutcome, WakeBell};

impl Mesh {
    pub async fn wake_test(self: &Arc<Self>, arguments: WakeTestArguments) -> Result<WakeTestResult, MeshError> {
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
            for path in WakePath::ALL {
                rows.push(self.try_path(&agent, path, arguments.ring).await);
            }
        }
        Ok(WakeTestResult { rows })
    }

    async fn try_path(&self, agent: &Name, path: WakePath, ring: bool) -> WakeTestRow {
        let contact = self.state().facts.get(agent).and_then(|facts| facts.contact(path));
        let (Some(adapter), Some(contact)) = (self.adapters.of(path), contact) else {
            return WakeTestRow {
                agent: agent.to_string(),
                path: path.name().to_owned(),
                outcome: "not set up".to_owned(),
                ..WakeTestRow::default()
            };
        };
        let began = Instant::now();
        let (outcome, note) = match adapter.probe(&contact).await {
            ProbeOutcome::Absent(why) => ("absent", Some(why)),
            ProbeOutcome::There if !ring => ("there", None),
            ProbeOutcome::There => {
                let text = "This is a wake test by the person at this machine: nothing is asked of you.";
                let session = contact.session.clone();
                let bell = WakeBell {
                    text: text.into(),
                    agent: agent.clone(),
                    session,
                    sender: "person".into(),
                    kind: "StatusUpdate".into(),
                };
                match adapter.ring(&contact, &bell).await {
                    RingOutcome::Rang => ("rang", None),
                    RingOutcome::Uncaptured(why) => ("uncaptured", Some(why)),
                    RingOutcome::SendFailed(why) => ("send-failed", Some(why)),
                    RingOutcome::Unanswered(why) => ("unanswered", Some(why)),
                }
            }
        };
        WakeTestRow {
            agent: agent.to_string(),
            path: path.name().to_owned(),
            grade: Some(path.grade().name().to_owned()),
            attached: true,
            outcome: outcome.to_owned(),
            ms: Some(began.elapsed().as_secs_f64() * 1e3),
            note: note.map(|note| note.to_string()),
        }
    }
}
