//! What happens in the editor, as notes about resources. Who may hear of what, the gate says.

use std::convert::Infallible;

use prism_editor::EditorEvent;
use tokio::sync::broadcast::error::RecvError;

use super::{
    EditorGrant,
    uri::{self, ResourceAspect},
};
use prism_mcp::kit::ChangeNotifier;

/// Tells the clients of a grant what has changed, for as long as it is polled.
pub async fn tell(holder: &EditorGrant, notifier: &ChangeNotifier) -> Infallible {
    let mut happenings = holder.gate.happenings();
    loop {
        match happenings.recv().await {
            Ok(happening) if holder.held.hears_of(&happening) => tell_one(notifier, &happening),
            Ok(_) => {}
            // Which ones were missed is not known; that the list may be another is.
            Err(RecvError::Lagged(_)) => list_changed(notifier),
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn tell_one(notifier: &ChangeNotifier, happening: &EditorEvent) {
    let Some(path) = happening.path.as_deref().and_then(|path| path.to_str()) else { return };
    let updated = |about| {
        notifier.updated(&uri::of(about, path));
    };
    match happening.event.name {
        "file_opened" | "file_closed" => list_changed(notifier),
        "buffer_changed" | "file_saved" | "file_watched" => updated(ResourceAspect::Text),
        "errors_detected" | "lint_results" => updated(ResourceAspect::Diagnostics),
        // An open buffer moves along.
        "file_renamed" | "file_deleted" => {
            updated(ResourceAspect::Text);
            list_changed(notifier);
        }
        _ => {}
    }
}

fn list_changed(notifier: &ChangeNotifier) {
    notifier.resources_changed();
}
