//! Towards clients: what answers a request, with everything it may need. The listeners are in `listen`, the daemon's
//! whole time, with its reloads and its end, is in `front`.

mod access;
pub mod body;
mod callers;
mod console;
mod correlation;
mod desk;
mod editor;
pub mod fault;
mod front;
mod guard;
mod hold;
mod hub;
mod inbound;
mod listen;
mod mesh;
mod modern;
mod onlooker;
mod piggyback;
mod plain;
mod plugin;
mod post;
mod probes;
mod quirks;
mod request;
mod route;
mod socket;
pub mod status;
mod strangers;
mod streams;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use crate::own_server;
pub use front::DaemonService;
pub use listen::{BindError, bind, bind_unix};
use prism_store::{Store, StoreReadError};
use tracing::warn;

use self::{
    callers::ModernClients, editor::GrantDestinations, front::DaemonLifetime, plain::LegacySseSessions,
    status::DaemonFacts,
};
use crate::console::Console;
use prism_bridge::access::AccessLog;
use prism_bridge::{
    admission::CallAdmission,
    drive::{
        Destination, Hub, SessionTable,
        destination::{self, BridgeContext, BuiltIn, LearnedServer},
    },
};
use prism_config::{self as config, Config, home::Token};
use prism_gate::Gate;
use prism_mcp::remote::RemoteTargetError;
use prism_mesh::Mesh;
use prism_telemetry::BodyRedactor;

/// Everything a request may need. Made once for each config: a request that has begun ends with what it began with.
pub struct DaemonSnapshot {
    pub config: Config,
    pub destinations: BTreeMap<String, Arc<Destination>>,
    /// The destination at `/mcp`, where there is only one.
    pub root: Option<Arc<Destination>>,
    /// All destinations behind one URL, at `/mcp` where there is no root.
    pub hub: Arc<Hub>,
    pub sessions: Arc<SessionTable>,
    /// Agents and their signals, where there is a store for them.
    pub mesh: Option<Arc<Mesh>>,
    /// What decides on calls of tools.
    pub calls: Arc<CallAdmission>,
    /// Requests, grants and confirmations, where there is a store for them.
    pub gate: Option<Arc<Gate>>,
    /// Grants that are used over MCP.
    doors: Arc<GrantDestinations>,
    /// Sessions of the transport of 2024-11-05.
    plains: Arc<LegacySseSessions>,
    /// Clients of the modern era that have lately introduced themselves.
    callers: Arc<ModernClients>,
    /// `None`: nobody is asked for a token.
    pub token: Option<Token>,
    pub access: AccessLog,
    life: Arc<DaemonLifetime>,
}

/// What all of the daemon has in common, whatever its config says. Put together in one place, where it starts.
#[derive(Clone)]
pub struct DaemonContext {
    pub bridge: BridgeContext,
    /// Prism's own folder.
    pub home: PathBuf,
    pub mesh: Option<Arc<Mesh>>,
    pub calls: Arc<CallAdmission>,
    pub gate: Option<Arc<Gate>>,
}

/// What another config makes of a destination.
pub(super) enum DestinationChange {
    Replaced { from: Arc<Destination>, to: Arc<Destination> },
    Removed(Arc<Destination>),
}

/// A destination that cannot be one.
#[derive(Debug, thiserror::Error)]
#[error("server {name:?} cannot be reached")]
pub struct DestinationError {
    name: String,
    source: RemoteTargetError,
}

impl DaemonSnapshot {
    /// Builds the server and its destinations. `root` names the one that is at `/mcp` too.
    pub fn new(
        config: Config,
        root: Option<&str>,
        token: Option<Token>,
        access: AccessLog,
        context: &DaemonContext,
    ) -> Result<Arc<Self>, DestinationError> {
        let mut destinations = configured(&config, context, &BTreeMap::new())?;
        let root = root.and_then(|name| destinations.get(name).cloned());
        let behind = own_server::Behind::default();
        let gates = context.gate.clone().map(|gate| own_server::access::AccessContext {
            gate,
            mesh: context.mesh.clone(),
            base: config.base_url(),
        });
        let home = own_server::server(&behind, context.mesh.as_ref(), gates.as_ref());
        let home =
            own(own_server::NAME, BuiltIn { server: home, waits: true, meets_agents: true }, &config, &context.bridge)?;
        let memory = memory(&config, context)?;
        destinations.insert(prism_workspace::NAME.to_owned(), memory);
        let hub = Hub::new(home.clone(), behind_hub(&destinations), &config, context.bridge.sessions.clone());
        let _ = behind.set(Arc::downgrade(&hub));
        destinations.insert(own_server::NAME.to_owned(), home);
        let (sessions, mesh, gate) = (context.bridge.sessions.clone(), context.mesh.clone(), context.gate.clone());
        let calls = context.calls.clone();
        let (plains, callers) = (Arc::default(), Arc::default());
        let life = Arc::new(DaemonLifetime::new(&context.home));
        Ok(Arc::new(Self {
            config,
            destinations,
            root,
            hub,
            sessions,
            mesh,
            calls,
            gate,
            doors: GrantDestinations::new(&context.bridge),
            plains,
            callers,
            token,
            access,
            life,
        }))
    }

    /// The same with another config: what is as it was is the same, and who is there does not notice.
    fn next(
        &self,
        config: Config,
        context: &DaemonContext,
    ) -> Result<(Arc<Self>, Vec<DestinationChange>), DestinationError> {
        let mut destinations = configured(&config, context, &self.destinations)?;
        let home = self.hub.home().clone();
        let memory = match self.destinations.get(prism_workspace::NAME) {
            Some(memory) if config.workspace == self.config.workspace => memory.clone(),
            _ => memory(&config, context)?,
        };
        destinations.insert(own_server::NAME.to_owned(), home);
        destinations.insert(prism_workspace::NAME.to_owned(), memory);
        let change = |(name, from): (&String, &Arc<Destination>)| match destinations.get(name) {
            Some(to) if Arc::ptr_eq(from, to) => None,
            Some(to) => Some(DestinationChange::Replaced { from: from.clone(), to: to.clone() }),
            None => Some(DestinationChange::Removed(from.clone())),
        };
        let changes = self.destinations.iter().filter_map(change).collect();
        for (destination, named) in
            config.destinations.values().filter_map(|one| Some((destinations.get(&one.name)?, one)))
        {
            destination.obey(&named.tools);
        }
        for (name, destination) in &destinations {
            let named = config.destinations.get(name);
            destination.limit(named.unwrap_or(destination.config()), &config);
        }
        let secrets = context.bridge.environment.secrets();
        let bodies = config.log_bodies.then(|| Arc::new(BodyRedactor::new(&config.audit, secrets.clone())));
        let access = AccessLog { bodies, ..self.access.clone() };
        let next = Self {
            config,
            destinations,
            root: None,
            hub: self.hub.clone(),
            sessions: self.sessions.clone(),
            mesh: self.mesh.clone(),
            calls: self.calls.clone(),
            gate: self.gate.clone(),
            doors: self.doors.clone(),
            plains: self.plains.clone(),
            callers: self.callers.clone(),
            token: self.token.clone(),
            access,
            life: self.life.clone(),
        };
        Ok((Arc::new(next), changes))
    }

    /// The destinations that are not Prism itself.
    pub fn configured(&self) -> impl Iterator<Item = &Arc<Destination>> {
        self.destinations.values().filter(|destination| !destination.is_built_in())
    }

    pub fn is_stopping(&self) -> bool {
        self.life.is_stopping()
    }

    /// What the console keeps.
    pub fn console(&self) -> &Console {
        &self.life.console
    }

    /// What the daemon knows of itself.
    pub fn about(&self) -> &DaemonFacts {
        &self.life.about
    }
}

/// The destinations that a config names. Those that are there already, as it wants them, stay.
fn configured(
    config: &Config,
    context: &DaemonContext,
    before: &BTreeMap<String, Arc<Destination>>,
) -> Result<BTreeMap<String, Arc<Destination>>, DestinationError> {
    let eras = learned(context.bridge.store.as_ref().map(Store::eras), "which eras servers speak");
    let quiet = learned(context.bridge.store.as_ref().map(Store::quiet), "which servers are quiet");
    let listed = learned(context.bridge.store.as_ref().map(Store::listed), "what servers list");
    let make = |one: &config::DestinationConfig| {
        if let Some(same) = before.get(&one.name).filter(|before| before.is_as(one)) {
            return Ok((one.name.clone(), same.clone()));
        }
        let key = destination::key(one);
        let quiet = quiet.iter().find(|q| q.destination == key).map(|q| (q.server.clone(), q.version.clone()));
        let speaks = eras.iter().find(|learned| learned.destination == key).and_then(destination::still_counts);
        let lists = listed.iter().filter(|listed| listed.destination == key).cloned().collect();
        let learned = LearnedServer { quiet, speaks: speaks.unwrap_or_default(), lists };
        match Destination::new(one.clone(), config, &context.bridge, learned) {
            Ok(destination) => Ok((one.name.clone(), destination)),
            Err(source) => Err(DestinationError { name: one.name.clone(), source }),
        }
    };
    config.destinations.values().map(make).collect()
}

/// What was learned in another life of the daemon's, as far as it can be read.
fn learned<T>(read: Option<Result<Vec<T>, StoreReadError>>, what: &str) -> Vec<T> {
    let read = read.unwrap_or_else(|| Ok(Vec::new()));
    read.unwrap_or_else(|error| {
        warn!(%error, "Cannot read {what}");
        Vec::new()
    })
}

/// A server that Prism is itself, as a destination.
fn own(
    name: &str,
    server: BuiltIn,
    config: &Config,
    context: &BridgeContext,
) -> Result<Arc<Destination>, DestinationError> {
    let own =
        config::DestinationConfig { max_sessions: usize::MAX, ..config::DestinationConfig::stdio(name, Vec::new()) };
    let made = Destination::built_in(own, server, config, context);
    made.map_err(|source| DestinationError { name: name.to_owned(), source })
}

fn memory(config: &Config, context: &DaemonContext) -> Result<Arc<Destination>, DestinationError> {
    let server = prism_workspace::server(config.workspace.as_deref(), &context.home);
    own(prism_workspace::NAME, BuiltIn { server, waits: false, meets_agents: false }, config, &context.bridge)
}

/// What is behind the hub, in the order in which it lists it: the memory first.
fn behind_hub(destinations: &BTreeMap<String, Arc<Destination>>) -> Vec<Arc<Destination>> {
    let configured = destinations.values().filter(|destination| !destination.is_built_in() && destination.config().hub);
    destinations.get(prism_workspace::NAME).into_iter().chain(configured).cloned().collect()
}

#[cfg(test)]
mod tests;
