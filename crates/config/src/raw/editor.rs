//! `[editor]`, as written, and its way into an [`Editor`].

use std::path::PathBuf;

use prism_core::languages::LANGUAGES;
use serde::Deserialize;
use toml::Spanned;

use super::{ConfigContext, RawConfig, Setting, Texts, nearest, understand};
use crate::{
    ConfigError, Editor,
    value::{ConfigValue, boolean, bytes, folders, language_server, patience},
};

/// `[editor]`, as written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as in [editor] and below it fence = true")]
pub(super) struct RawEditor {
    fence: Setting,
    readable: Setting,
    writable: Setting,
    servers: Option<Spanned<Texts>>,
    runs_project_code: Setting,
    idle_server: Setting,
    max_memory: Setting,
    max_scratch: Setting,
}

impl RawConfig {
    pub(super) fn editor(&self, around: Option<ConfigContext<'_>>) -> Result<Editor, ConfigError> {
        let mut editor = Editor::default();
        let written = &self.editor;
        macro_rules! take {
            ($($key:ident: $parse:ident),* $(,)?) => { $(
                if let Some((value, _)) = self.global(concat!("editor.", stringify!($key)), &written.$key, $parse, around)? {
                    editor.$key = value;
                }
            )* };
        }
        take!(fence: boolean, runs_project_code: boolean, idle_server: patience);
        let most = self.global("editor.max_memory", &written.max_memory, bytes, around)?;
        editor.max_memory = most.map(|(most, _)| most as u64).or(editor.max_memory);
        if let Some((most, _)) = self.global("editor.max_scratch", &written.max_scratch, bytes, around)? {
            editor.max_scratch = most as u64;
        }
        for (key, setting, place) in [
            ("editor.readable", &written.readable, &mut editor.readable),
            ("editor.writable", &written.writable, &mut editor.writable),
        ] {
            if let Some((names, _)) = self.global(key, setting, folders, around)? {
                let folder = |name: &String| match around {
                    Some(ConfigContext { env, .. }) => self.source.folder(name, env),
                    None => PathBuf::from(name),
                };
                *place = names.iter().map(folder).collect();
            }
        }
        for (language, command) in written.servers.iter().flat_map(|servers| servers.get_ref()) {
            let (name, at) = (language.get_ref(), self.source.origin(language.span()));
            let key = format!("editor.servers.{name}");
            if !LANGUAGES.contains(&name.as_str()) {
                let near = nearest(name, LANGUAGES.into_iter());
                let near = near.map(|near| format!("did you mean {near:?}? "));
                let problem = format!("is for {name:?}, which is no language that the editor knows");
                let fix = format!("{}the languages are {}", near.unwrap_or_default(), LANGUAGES.join(", "));
                return Err(ConfigError::Value { at, key, problem, fix });
            }
            let command = understand(&key, &ConfigValue::from(command.get_ref()), language_server, &at)?;
            editor.servers.insert(name.clone(), command);
        }
        Ok(editor)
    }
}
