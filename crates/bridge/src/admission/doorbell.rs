//! The bell for a client that was sent away with a handle: it rings when the person has decided.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::debug;
use uuid::Uuid;

use super::{CallAdmission, CallIdentity};

/// Questions whose answers somebody is to be told of. Beyond it nobody is: they will ask again.
const MAX_BELLS: usize = 256;

#[derive(Default)]
pub(super) struct AnsweredBells(Mutex<HashSet<Uuid>>);

impl CallAdmission {
    /// Rings once a question is answered, if the client is an agent that has a bell. Returns whether it does.
    pub(super) fn ring_when_decided(self: &Arc<Self>, question: Uuid, who: &CallIdentity, what: String) -> bool {
        let (Some(person), Some(agents)) = (&self.person, &self.agents) else { return false };
        let Some(agent) = agents.agent_with(who.session, who.instance) else { return false };
        {
            let mut bells = self.doorbells.0.lock().unwrap_or_else(PoisonError::into_inner);
            if bells.len() >= MAX_BELLS || !bells.insert(question) {
                // The second of two calls for the same thing hears the same bell.
                return bells.contains(&question);
            }
        }
        let (calls, agents, decided) = (self.clone(), agents.clone(), person.decided(question));
        tokio::spawn(async move {
            let said = decided.await;
            calls.doorbells.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&question);
            let body = match said {
                Some(true) => format!("{what} was allowed: call it again with the same arguments."),
                Some(false) => format!("{what} was not allowed. Do not call it again."),
                None => return,
            };
            if let Err(error) = agents.tell_agent(agent, body).await {
                debug!(error, "Cannot tell an agent what a person has decided");
            }
        });
        true
    }
}
