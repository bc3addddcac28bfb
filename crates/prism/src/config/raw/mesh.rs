//! `[mesh]`, as written, and its way into a [`Mesh`].

use serde::Deserialize;

use super::{Around, Raw, Setting};
use crate::config::{
    ConfigError, Mesh,
    value::{boolean, count, duration},
};

/// `[mesh]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [mesh] and below it climb_after = \"10s\"")]
pub(super) struct RawMesh {
    climb_after: Setting,
    confirm_within: Setting,
    max_wake_attempts: Setting,
    question_within: Setting,
    task_within: Setting,
    review_within: Setting,
    keep_asked: Setting,
    keep_told: Setting,
    ping_every: Setting,
    tmux: Setting,
    editor_chat: Setting,
    desktop: Setting,
}

impl Raw {
    pub(super) fn mesh(&self, around: Option<Around<'_>>) -> Result<Mesh, ConfigError> {
        let mut mesh = Mesh::default();
        let written = &self.mesh;
        macro_rules! take {
            ($($key:ident: $parse:ident => $place:expr),* $(,)?) => { $(
                if let Some((value, _)) = self.global(concat!("mesh.", stringify!($key)), &written.$key, $parse, around)? {
                    $place = value;
                }
            )* };
        }
        let mut attempts = mesh.patience.max_attempts[0] as usize;
        take!(
            climb_after: duration => mesh.patience.climb_after,
            confirm_within: duration => mesh.patience.confirm_within,
            max_wake_attempts: count => attempts,
            question_within: duration => mesh.terms.question,
            task_within: duration => mesh.terms.task,
            review_within: duration => mesh.terms.review,
            keep_asked: duration => mesh.keep_asked,
            keep_told: duration => mesh.keep_told,
            ping_every: duration => mesh.ping_every,
            tmux: boolean => mesh.tmux,
            editor_chat: boolean => mesh.editor_chat,
            desktop: boolean => mesh.desktop,
        );
        mesh.patience.max_attempts[0] = u32::try_from(attempts).unwrap_or(u32::MAX);
        Ok(mesh)
    }
}
