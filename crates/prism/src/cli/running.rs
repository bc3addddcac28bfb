//! A server that runs in this process: what it stands on, how it starts, and that nothing of it is left when it stops.
//! `prism serve` and `prism run` are one for as long as they live; `prism call` and `prism tools` are one for a moment
//! when no daemon listens.

use std::{future::Future, path::Path, sync::Arc};

use prism_os::census;
use prism_store::Store;
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinHandle,
};
use tracing::warn;

use super::{daemon::DATABASE, say};
use crate::{
    config::Config,
    drive::{Sessions, destination::Parts},
    home::Token,
    serve::Server,
    telemetry::{Access, Log, Metrics},
};

/// A server, and what has to be put away after it.
pub(super) struct Running {
    pub(super) server: Arc<Server>,
    owner: census::Owner,
    store: Option<Store>,
    log: Log,
    /// What accepts connections.
    fronts: Vec<JoinHandle<()>>,
}

impl Running {
    /// Builds the server. It takes connections once it is given listeners.
    pub(super) fn start(
        config: Config,
        root: Option<&str>,
        token: Option<Token>,
        home: &Path,
        log: Log,
    ) -> anyhow::Result<Self> {
        // All it remembers yet is who is quiet and who speaks how. To forget that costs processes and a question at
        // the start; to refuse to start would cost the day.
        let store = match Store::open(&home.join(DATABASE)) {
            Ok(store) => Some(store),
            Err(error) => {
                say::warning(&format!("nothing will be remembered: {:#}", anyhow::Error::from(error)));
                None
            }
        };
        let folder = home.to_owned();
        // In the background: a new child carries this daemon's mark and is never taken for an orphan.
        tokio::task::spawn_blocking(move || end_orphans(&folder));
        let parts = Parts {
            sessions: Arc::new(Sessions::default()),
            metrics: Arc::new(Metrics::default()),
            owner: census::Owner::this_process(home),
            home: home.to_owned(),
            store: store.clone(),
        };
        let access = Access { log: log.clone(), metrics: parts.metrics.clone(), bodies: config.log_bodies };
        let server = Server::new(config, root, token, access, &parts)?;
        tokio::spawn(server.clone().sweep());
        Ok(Self { server, owner: parts.owner, store, log, fronts: Vec::new() })
    }

    pub(super) fn accept(&mut self, listener: TcpListener) {
        self.fronts.push(tokio::spawn(self.server.clone().serve_tcp(listener)));
    }

    pub(super) fn accept_unix(&mut self, listener: UnixListener) {
        self.fronts.push(tokio::spawn(self.server.clone().serve_unix(listener)));
    }

    /// Ends sessions and children, and returns when they are gone, or at once when `hurry` does: dropped groups are
    /// killed.
    pub(super) async fn stop(self, hurry: impl Future) {
        for front in &self.fronts {
            front.abort();
        }
        let clean = tokio::select! {
            clean = self.server.stop() => clean,
            _ = hurry => false,
        };
        if !clean {
            warn!("Some servers did not end in time and are killed");
        }
        // What left its server's group, and so outlived it, still bears our mark.
        let owner = self.owner.clone();
        if let Ok(strays) = tokio::task::spawn_blocking(move || census::end_strays(&owner)).await {
            for stray in strays {
                warn!(pid = stray.pid, "Ended a process that a server had left behind");
            }
        }
        if let Some(store) = self.store {
            store.close();
        }
        self.log.flush();
    }
}

fn end_orphans(home: &Path) {
    for orphan in census::end_orphans(home) {
        // Only the program: arguments may hold secrets.
        let program = orphan.command.split_whitespace().next().unwrap_or_default();
        warn!(pid = orphan.pid, program, "Ended a server that a killed Prism had left behind");
    }
}
