//! Settings of the mesh: how patiently agents are woken, how long they may take, what may be done to reach them.

use std::{collections::BTreeMap, time::Duration};

use prism_core::mesh::{DoorbellTiming, ObligationTerms};

/// `[mesh]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshConfig {
    pub patience: DoorbellTiming,
    /// How long agents may take for what needs a reply.
    pub terms: ObligationTerms,
    /// How long a signal waits to be drained before it is out of date: one that needs a reply, one that only has to be
    /// heard, and one of Prism's own.
    pub keep_asked: Duration,
    pub keep_told: Duration,
    pub keep_system: Duration,
    /// How often a registered agent's client is asked whether it is still there.
    pub ping_every: Duration,
    /// Whether keys may be typed into agents' tmux panes.
    pub tmux: bool,
    /// Whether bells may be put into the chats of editors that let them in.
    pub editor_chat: bool,
    /// Whether the person may be sent notices.
    pub desktop: bool,
    /// What agents may point to that opens another program's door, by name, as it is written: `file:PATH` or `env:NAME`.
    pub secrets: BTreeMap<String, String>,
}

impl Default for MeshConfig {
    fn default() -> Self {
        let hours = |hours: u64| Duration::from_secs(3600 * hours);
        Self {
            patience: DoorbellTiming::default(),
            terms: ObligationTerms::default(),
            keep_asked: hours(7 * 24),
            keep_told: hours(24),
            keep_system: hours(1),
            ping_every: Duration::from_secs(15),
            tmux: false,
            editor_chat: false,
            desktop: true,
            secrets: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Env, Flags, raw::RawConfig, raw::keys::MESH_KEYS, tests::config_in, tests::keys_in};

    use super::*;

    fn read(text: &str) -> MeshConfig {
        config_in(text, &Env::default(), &Flags::default()).unwrap().mesh
    }

    #[test]
    fn every_setting_has_its_place() {
        let text = r#"
            [mesh]
            climb_after = "1s"
            confirm_within = "2s"
            max_wake_attempts = 7
            question_within = "3s"
            task_within = "4s"
            review_within = "5s"
            keep_asked = "6s"
            keep_told = "7s"
            ping_every = "8s"
            tmux = true
            editor_chat = true
            desktop = false
            secrets = { opencode = "env:OPENCODE_SERVER_PASSWORD", codex = "file:/t" }
        "#;
        let seconds = Duration::from_secs;
        let defaults = DoorbellTiming::default();
        let patience = DoorbellTiming {
            climb_after: seconds(1),
            confirm_within: seconds(2),
            max_attempts: [7, defaults.max_attempts[1]],
            ..defaults
        };
        let expected = MeshConfig {
            patience,
            terms: ObligationTerms { question: seconds(3), task: seconds(4), review: seconds(5) },
            keep_asked: seconds(6),
            keep_told: seconds(7),
            ping_every: seconds(8),
            tmux: true,
            editor_chat: true,
            desktop: false,
            secrets: BTreeMap::from([
                ("codex".to_owned(), "file:/t".to_owned()),
                ("opencode".to_owned(), "env:OPENCODE_SERVER_PASSWORD".to_owned()),
            ]),
            ..MeshConfig::default()
        };
        assert_eq!(read(text), expected);
        assert_eq!(read(""), Config::default().mesh);
    }

    #[test]
    fn a_secret_of_the_mesh_is_never_written_out() {
        let error = config_in("[mesh]\nsecrets = { a = \"hunter2\" }", &Env::default(), &Flags::default()).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("mesh.secrets.a is neither file:PATH nor env:NAME") && !said.contains("hunter2"),
            "{said}"
        );
    }

    #[test]
    fn the_environment_can_say_it_too() {
        let env = Env::from([("PRISM_MESH_TMUX", "true")]);
        assert!(config_in("", &env, &Flags::default()).unwrap().mesh.tmux);
    }

    #[test]
    fn the_list_of_keys_is_what_serde_accepts() {
        let error = toml::from_str::<RawConfig>("mesh.zzz = 1").unwrap_err();
        assert_eq!(keys_in(error.message()), MESH_KEYS);
    }
}
