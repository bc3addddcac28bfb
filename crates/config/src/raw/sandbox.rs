//! `sandbox` of a server, as written, and its way into a [`SandboxConfig`].

use std::{fmt, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use toml::{Spanned, Value};

use super::{ConfigContext, RawConfig, Setting, understand};
use crate::{
    ConfigError, SandboxConfig, ServerKey,
    value::{ConfigValue, folders, is_sandboxed, network},
};

/// `sandbox = true`, or `[server.NAME.sandbox]`, as written.
#[derive(Debug)]
pub(super) enum RawSandbox {
    /// Whether there is one, if it is that.
    Switch(Value),
    Table(RawSandboxTable),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSandboxTable {
    folders: Setting,
    readable: Setting,
    network: Setting,
}

struct RawSandboxVisitor;

impl RawConfig {
    pub(super) fn sandbox(
        &self,
        server: ServerKey<'_>,
        written: Option<&Spanned<RawSandbox>>,
        around: Option<ConfigContext<'_>>,
    ) -> Result<Option<SandboxConfig>, ConfigError> {
        let Some(written) = written else { return Ok(None) };
        let room = match written.get_ref() {
            RawSandbox::Switch(value) => {
                let (key, at) = (format!("{server}.sandbox"), self.source.origin(written.span()));
                let is_on = understand(&key, &ConfigValue::from(value), is_sandboxed, &at)?;
                return Ok(is_on.then(SandboxConfig::default));
            }
            RawSandbox::Table(room) => room,
        };
        let paths = |key, setting| {
            let names = self.local(server, key, setting, folders)?.unwrap_or_default();
            let path = |name: String| match around {
                Some(ConfigContext { env, .. }) => self.source.folder(&name, env),
                None => PathBuf::from(name),
            };
            Ok::<Vec<PathBuf>, ConfigError>(names.into_iter().map(path).collect())
        };
        let (folders, readable) =
            (paths("sandbox.folders", &room.folders)?, paths("sandbox.readable", &room.readable)?);
        let network = self.local(server, "sandbox.network", &room.network, network)?;
        Ok(Some(SandboxConfig { folders, readable, network: network.unwrap_or(SandboxConfig::default().network) }))
    }
}

impl<'de> Deserialize<'de> for RawSandbox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawSandboxVisitor)
    }
}

// What is neither is kept too: whoever understands values says what should stand there.
impl<'de> Visitor<'de> for RawSandboxVisitor {
    type Value = RawSandbox;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false or a table, as in [server.files.sandbox] and below it folders = [\"~/notes\"]")
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawSandbox, E> {
        Ok(RawSandbox::Switch(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawSandbox, E> {
        Ok(RawSandbox::Switch(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawSandbox, E> {
        Ok(RawSandbox::Switch(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawSandbox, E> {
        Ok(RawSandbox::Switch(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawSandbox, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element::<Value>()? {
            values.push(value);
        }
        Ok(RawSandbox::Switch(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawSandbox, A::Error> {
        RawSandboxTable::deserialize(MapAccessDeserializer::new(map)).map(RawSandbox::Table)
    }
}
