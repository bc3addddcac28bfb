//! Modern clients that have lately introduced themselves. They have no sessions, so nothing else remembers them.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use prism_api::status::{ModernClientStatus, PeerName};
use prism_bridge::drive::visitor::{self, ClientTransport};

/// Clients that are remembered. Beyond it the one that was not heard of for the longest time is forgotten.
const MAX_CALLERS: usize = 32;

#[derive(Default)]
pub(super) struct ModernClients(Mutex<VecDeque<(ClientSighting, Instant)>>);

#[derive(Clone, PartialEq, Eq)]
struct ClientSighting {
    client: Option<(String, String)>,
    way: ClientTransport,
    destination: Option<String>,
}

impl ModernClients {
    /// Notes a client by its `clientInfo`, at a destination or at the hub.
    pub(super) fn note(&self, info: &str, destination: Option<String>, way: ClientTransport) {
        let seen = ClientSighting { client: visitor::read(info), way, destination };
        let mut callers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|(known, _)| *known != seen);
        callers.truncate(MAX_CALLERS - 1);
        callers.push_front((seen, Instant::now()));
    }

    /// The last one first.
    pub(super) fn list(&self) -> Vec<ModernClientStatus> {
        let callers = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = |(ClientSighting { client, way, destination }, at): (ClientSighting, Instant)| ModernClientStatus {
            client: client.map(|(name, version)| PeerName { name, version }),
            transport: way.name().to_owned(),
            destination,
            ago_s: at.elapsed().as_secs_f64(),
        };
        callers.into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_is_listed_once_and_the_oldest_is_forgotten() {
        let callers = ModernClients::default();
        for number in 0..MAX_CALLERS + 8 {
            callers.note(&format!(r#"{{"name":"c{number}"}}"#), None, ClientTransport::Http);
        }
        callers.note(r#"{"name":"c20"}"#, None, ClientTransport::Http);
        let names: Vec<String> = callers.list().into_iter().filter_map(|caller| Some(caller.client?.name)).collect();
        assert_eq!((names.len(), names[0].as_str(), names[1].as_str()), (MAX_CALLERS, "c20", "c39"));
        assert_eq!(names.iter().filter(|name| *name == "c20").count(), 1);
        assert!(!names.contains(&"c0".to_owned()));
    }
}
