//! `env` of a server, as written. What a value that is a reference stands for is looked up later, by `secret.rs`.

use std::collections::BTreeMap;

use toml::Spanned;

use super::{ConfigContext, RawConfig, Texts, understand};
use crate::{
    ConfigError, ServerKey, secret,
    value::{ConfigValue, variable},
};

impl RawConfig {
    pub(super) fn variables(
        &self,
        server: ServerKey<'_>,
        written: &Option<Spanned<Texts>>,
        around: Option<ConfigContext<'_>>,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        let mut variables = BTreeMap::new();
        for (name, value) in written.iter().flat_map(|texts| texts.get_ref()) {
            let at = self.source.origin_without_text(name.span());
            let name = name.get_ref();
            let key = format!("{server}.env.{name}");
            let refuse = |problem: &str, fix: &str| ConfigError::Value {
                at: at.clone(),
                key: key.clone(),
                problem: problem.to_owned(),
                fix: fix.to_owned(),
            };
            let value = understand(&key, &ConfigValue::from(value.get_ref()), variable, &at)?;
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(refuse("is not the name of a variable", "env = { NAME = \"value\" }"));
            }
            let fix = "env:NAME, file:/path/to/it or keyring:SERVICE/ACCOUNT; text:... if the text itself is meant";
            secret::check(&value).map_err(|problem| refuse(problem, fix))?;
            variables.insert(name.clone(), self.anchored(value, around));
        }
        Ok(variables)
    }

    /// A file that a secret is in is looked for where this file is, like any other folder in it.
    pub(super) fn anchored(&self, value: String, around: Option<ConfigContext<'_>>) -> String {
        match around {
            Some(ConfigContext { env, .. }) => secret::anchored(&value, |path| self.source.folder(path, env)),
            None => value,
        }
    }
}
