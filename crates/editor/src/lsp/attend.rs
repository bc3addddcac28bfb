//! What servers have to hear of that nobody asks them about: files that were saved, made, moved and removed. And of texts that
//! somebody has changed they are asked for errors, so that who listens hears of them (`errors_detected`).

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    sync::{
        Semaphore,
        broadcast::{Receiver, error::RecvError},
    },
    time::{Instant, sleep_until},
};

use super::{
    client::LspCommand,
    conversation::DiskChange,
    documents::LspDocument,
    errors::severity,
    known::{Diagnosed, ServerFacts},
    servers::LanguageServers,
    uri,
};
use crate::{
    happening::{EditorEvent, Happenings},
    lsp::LspState,
};

/// How long after a change its errors are asked for: somebody who types goes on typing.
const SETTLE: Duration = Duration::from_millis(250);

/// How long a server has to tell them.
const PATIENCE: Duration = Duration::from_secs(30);

/// Texts whose errors wait to be asked for. Of further ones they are told when somebody asks.
const MAX_CHANGED: usize = 64;

/// Texts whose errors are asked for at a time. Of further ones, too, they are told when somebody asks.
const MAX_ASKED: usize = 8;

/// Runs for as long as there are servers to hear of it.
pub(super) async fn attend(state: Weak<LspState>, mut happenings: Receiver<Arc<EditorEvent>>) {
    let mut changed: BTreeMap<PathBuf, Instant> = BTreeMap::new();
    let asking = Arc::new(Semaphore::new(MAX_ASKED));
    loop {
        let next = changed.values().min().copied();
        let happening = tokio::select! {
            happening = happenings.recv() => happening,
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                let Some(state) = state.upgrade() else { return };
                let now = Instant::now();
                for path in changed.iter().filter(|(_, at)| **at <= now).map(|(path, _)| path) {
                    ask_for_errors(&state, path, &asking);
                }
                changed.retain(|_, at| *at > now);
                continue;
            }
        };
        let happening = match happening {
            Ok(happening) => happening,
            // The texts are sent again with the next question; a file that was missed, the server sees for itself.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some(state) = state.upgrade() else { return };
        let Some(path) = &happening.path else { continue };
        match happening.event.name {
            "buffer_changed" => {
                if changed.len() < MAX_CHANGED {
                    changed.entry(path.clone()).or_insert_with(|| Instant::now() + SETTLE);
                }
            }
            _ => pass_on(&state.servers, &happening, path),
        }
    }
}

fn pass_on(servers: &LanguageServers, happening: &EditorEvent, path: &Path) {
    match happening.event.name {
        "file_saved" => servers.saved(path),
        "file_closed" => servers.closed(path),
        "file_created" => servers.changed_on_disk(path, DiskChange::Created),
        "file_deleted" => {
            servers.closed(path);
            servers.changed_on_disk(path, DiskChange::Deleted);
        }
        "file_renamed" => {
            servers.closed(path);
            servers.changed_on_disk(path, DiskChange::Deleted);
            if let Some(new_path) = happening.data["new_path"].as_str() {
                servers.changed_on_disk(Path::new(new_path), DiskChange::Created);
            }
        }
        "file_watched" => {
            let change = match happening.data["change"].as_str() {
                Some("created") => DiskChange::Created,
                Some("deleted" | "removed") => DiskChange::Deleted,
                _ => DiskChange::Changed,
            };
            servers.changed_on_disk(path, change);
        }
        _ => {}
    }
}

/// Has each server that knows a text told of its new version, and asks those that have to be asked for its errors.
fn ask_for_errors(state: &LspState, path: &Path, asking: &Arc<Semaphore>) {
    let Some(buffer) = state.text.buffers.at(path) else { return };
    for (_, _, client) in state.servers.running() {
        let (is_open, is_asked) = client.known.read(|facts| {
            (facts.open.contains_key(path), facts.offers("diagnosticProvider", "textDocument/diagnostic"))
        });
        let Some(document) = super::site::document(&buffer).filter(|_| is_open) else { continue };
        if !is_asked {
            client.tell(LspCommand::Sync(vec![document]));
            continue;
        }
        let Ok(turn) = asking.clone().try_acquire_owned() else { continue };
        let until = Instant::now() + PATIENCE;
        tokio::spawn(async move {
            let _turn = turn;
            let quiet =
                |facts: &ServerFacts| (facts.busy_with().is_none() || facts.phase.end().is_some()).then_some(());
            client.known.wait(until, quiet).await;
            let params = json!({ "textDocument": { "uri": uri::of(&document.path) } });
            let documents = move || vec![LspDocument::clone(&document)];
            // What it says is noted, and told to who listens, by the server's task.
            let _ = client.ask(&documents, "textDocument/diagnostic", &params, until).await;
        });
    }
}

/// Tells of a file whose errors have changed.
pub(super) fn tell(happenings: &Happenings, diagnosed: &Diagnosed) {
    let count = |wanted: &str| diagnosed.items.iter().filter(|item: &&Value| severity(item) == wanted).count();
    let data = json!({ "version": diagnosed.version, "errors": count("error"), "warnings": count("warning") });
    happenings.tell("errors_detected", Some(&diagnosed.path), data);
}
