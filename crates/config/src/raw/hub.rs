//! `[hub]`, `[profile.NAME]` and `[workspace]`, as written, and their way into a [`Config`].

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::{ConfigContext, ConfigSource, RawConfig, Setting, by_nearness, is_shaped, nearest};
use crate::{
    Config, ConfigError, HubConfig, NameError, Origin, ProfileConfig,
    hub::BUILT_IN,
    value::{boolean, destinations, folder, hub_mode, name_length, patience, some_destinations, tool_patterns},
};

/// `[hub]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [hub] and below it mode = \"search\"")]
pub(super) struct RawHub {
    prefix: Setting,
    mode: Setting,
    patience: Setting,
    first_patience: Setting,
    longest_name: Setting,
}

/// One `[profile.NAME]`, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [profile.web] and below it only = [\"files\"]")]
pub(super) struct RawProfile {
    only: Setting,
    except: Setting,
    tools: Setting,
    prefix: Setting,
    mode: Setting,
}

/// `[workspace]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [workspace] and below it root = \"/home/me/project\"")]
pub(super) struct RawWorkspace {
    root: Setting,
}

impl RawConfig {
    pub(super) fn hub(&self, around: Option<ConfigContext<'_>>) -> Result<HubConfig, ConfigError> {
        let RawHub { prefix, mode, patience: written_patience, first_patience, longest_name } = &self.hub;
        let mut hub = HubConfig::default();
        if let Some((prefix, _)) = self.global("hub.prefix", prefix, boolean, around)? {
            hub.prefix = prefix;
        }
        if let Some((mode, _)) = self.global("hub.mode", mode, hub_mode, around)? {
            hub.mode = mode;
        }
        if let Some((patience, _)) = self.global("hub.patience", written_patience, patience, around)? {
            hub.patience = patience;
        }
        if let Some((patience, _)) = self.global("hub.first_patience", first_patience, patience, around)? {
            hub.first_patience = patience;
        }
        if let Some((length, _)) = self.global("hub.longest_name", longest_name, name_length, around)? {
            hub.longest_name = length;
        }
        Ok(hub)
    }

    pub(super) fn workspace(&self, around: Option<ConfigContext<'_>>) -> Result<Option<PathBuf>, ConfigError> {
        let Some((root, at)) = self.global("workspace.root", &self.workspace.root, folder, around)? else {
            return Ok(None);
        };
        Ok(Some(match (at, around) {
            (_, None) => root.into(),
            (Origin::File(_), Some(ConfigContext { env, .. })) => self.source.folder(&root, env),
            // Whoever types it means the folder one works in.
            (Origin::Variable(_) | Origin::Flag(_), Some(ConfigContext { env, .. })) => {
                ConfigSource::default().folder(&root, env)
            }
        }))
    }

    /// Reads a profile. Whether there is what it names is left to `check_profiles`.
    pub(super) fn profile(&self, name: &Spanned<String>, written: &RawProfile) -> Result<ProfileConfig, ConfigError> {
        if !is_shaped(name.get_ref()) {
            let problem = NameError::Profile { name: name.get_ref().clone() };
            return Err(ConfigError::Name { at: self.source.origin(name.span()), problem });
        }
        let key = |key: &str| format!("profile.{}.{key}", name.get_ref());
        let profile = ProfileConfig {
            only: self.in_file(&key("only"), &written.only, some_destinations)?,
            except: self.in_file(&key("except"), &written.except, destinations)?.unwrap_or_default(),
            tools: self.in_file(&key("tools"), &written.tools, tool_patterns)?.unwrap_or_default(),
            prefix: self.in_file(&key("prefix"), &written.prefix, boolean)?,
            mode: self.in_file(&key("mode"), &written.mode, hub_mode)?,
        };
        let is_shown = |name: &String| profile.only.as_ref().is_some_and(|only| only.contains(name));
        if let (Some(except), Some(index)) = (&written.except, profile.except.iter().position(is_shown)) {
            return Err(ConfigError::Value {
                at: self.source.item(except.span(), index),
                key: key("except"),
                problem: format!("has {:?}, and so has only", profile.except[index]),
                fix: "keep it in one of the two".to_owned(),
            });
        }
        Ok(profile)
    }

    /// Checks that there is what profiles name. `left_out` are names that are no mistake of the profile's: entries of
    /// an editor's file that cannot be used, about which there is a warning already.
    pub fn check_profiles(&self, config: &Config, left_out: &[&str]) -> Result<(), ConfigError> {
        for (name, written) in &self.profile {
            let Some(profile) = config.profiles.get(name.get_ref()) else {
                continue;
            };
            let only = profile.only.as_deref().unwrap_or_default();
            let lists = [("only", &written.only, only), ("except", &written.except, &profile.except)];
            for (key, setting, destinations) in lists {
                for (index, destination) in destinations.iter().enumerate() {
                    let Some((problem, fix)) = stray(key, destination, config, left_out) else {
                        continue;
                    };
                    let list = setting.as_ref().map(Spanned::span).unwrap_or_default();
                    return Err(ConfigError::Value {
                        at: self.source.item(list, index),
                        key: format!("profile.{}.{key}", name.get_ref()),
                        problem,
                        fix,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns what is wrong with a server in a list of a profile, and the way out.
fn stray(key: &str, destination: &str, config: &Config, left_out: &[&str]) -> Option<(String, String)> {
    if let Some(found) = config.destinations.get(destination) {
        return (key == "only" && !found.hub).then(|| {
            let problem = format!("has {destination:?}, which is left out of the hub");
            let fix = format!("take it out here, or take hub = false out of [{}]", found.key());
            (problem, fix)
        });
    }
    if BUILT_IN.contains(&destination) || left_out.contains(&destination) {
        return None;
    }
    let known = || config.destinations.keys().map(String::as_str).chain(BUILT_IN);
    let fix = match nearest(destination, known()) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!("the servers are {}", by_nearness(destination, known()).join(", ")),
    };
    Some((format!("has {destination:?}, which is no server"), fix))
}
