//! `[mesh]`, as written, and its way into a [`MeshConfig`].

use serde::Deserialize;
use toml::Spanned;

use super::{ConfigContext, RawConfig, Setting, Texts, understand};
use crate::{
    ConfigError, MeshConfig,
    secret::{self, SecretReference},
    value::{ConfigValue, boolean, count, duration, variable},
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
    secrets: Option<Spanned<Texts>>,
}

impl RawConfig {
    pub(super) fn mesh(&self, around: Option<ConfigContext<'_>>) -> Result<MeshConfig, ConfigError> {
        let mut mesh = MeshConfig::default();
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
        for (name, value) in written.secrets.iter().flat_map(|secrets| secrets.get_ref()) {
            let at = self.source.origin_without_text(name.span());
            let key = format!("mesh.secrets.{}", name.get_ref());
            let value = understand(&key, &ConfigValue::from(value.get_ref()), variable, &at)?;
            if !matches!(secret::of_variable(&value), Some(SecretReference::File(_) | SecretReference::Variable(_))) {
                let fix = "say where it is: \"file:~/.codex/ws-token\" or \"env:OPENCODE_SERVER_PASSWORD\"".to_owned();
                return Err(ConfigError::Value {
                    at,
                    key,
                    problem: "is neither file:PATH nor env:NAME".to_owned(),
                    fix,
                });
            }
            mesh.secrets.insert(name.get_ref().clone(), self.anchored(value, around));
        }
        Ok(mesh)
    }
}
