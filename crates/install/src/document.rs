//! A config file's text in either language, and what is changed in it. A change is only returned if the new text, read
//! again, has the entry that was meant and all else as it was.

use serde_json::Value;

use super::{
    EditError,
    jsonc::{EmptyObjectRule, Jsonc},
    node::ConfigNode,
    toml::Toml,
};

/// The language of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigLanguage {
    /// With comments and trailing commas, whether the program that reads it allows them or not.
    Json,
    Toml,
}

/// Where servers stand in a file: the names that lead there.
pub(crate) type Container = Vec<String>;

/// One entry of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerEntry {
    pub name: String,
    pub value: Value,
}

/// A file's text.
#[derive(Clone, Copy)]
pub(super) struct ConfigText<'a> {
    language: ConfigLanguage,
    text: &'a str,
}

/// How an element of a list is known to be ours.
pub(super) type IsOurs = fn(&Value) -> bool;

/// What some editors put in front of a text.
const MARK: char = '\u{feff}';

// === impl ConfigText ===

impl<'a> ConfigText<'a> {
    pub(super) fn new(language: ConfigLanguage, text: &'a str) -> Self {
        Self { language, text }
    }

    /// Returns all that the file says.
    pub(super) fn value(self) -> Result<Value, EditError> {
        match self.language {
            ConfigLanguage::Json => Ok(Jsonc::parse(self.body())?.value()),
            ConfigLanguage::Toml => Ok(Toml::parse(self.body())?.value()),
        }
    }

    /// Returns the servers, in the order of their names.
    pub(super) fn entries(self, container: &[String]) -> Result<Vec<ServerEntry>, EditError> {
        let value = self.value()?;
        let members = lookup(&value, container).and_then(Value::as_object);
        let entry = |(name, value): (&String, &Value)| ServerEntry { name: name.clone(), value: value.clone() };
        Ok(members.into_iter().flatten().map(entry).collect())
    }

    /// Returns an entry as it is written.
    pub(super) fn raw(self, container: &[String], name: &str) -> Result<Option<String>, EditError> {
        match self.language {
            ConfigLanguage::Json => Ok(Jsonc::parse(self.body())?.raw(&path(container, name))?.map(str::to_owned)),
            ConfigLanguage::Toml => Toml::parse(self.body())?.raw(table(container)?, name),
        }
    }

    pub(super) fn insert(self, container: &[String], name: &str, node: &ConfigNode) -> Result<String, EditError> {
        let new = match self.language {
            ConfigLanguage::Json => Jsonc::parse(self.body())?.insert(&path(container, name), node)?,
            ConfigLanguage::Toml => Toml::parse(self.body())?.insert(table(container)?, name, node)?,
        };
        self.checked(new, container, name, true)
    }

    pub(super) fn replace(self, container: &[String], name: &str, node: &ConfigNode) -> Result<String, EditError> {
        let new = match self.language {
            ConfigLanguage::Json => Jsonc::parse(self.body())?.replace(&path(container, name), node)?,
            ConfigLanguage::Toml => Toml::parse(self.body())?.replace(table(container)?, name, node)?,
        };
        self.checked(new, container, name, true)
    }

    /// Gives a member of an entry another text for a value.
    pub(super) fn set(self, container: &[String], name: &str, field: &str, text: &str) -> Result<String, EditError> {
        let new = match self.language {
            ConfigLanguage::Json => {
                let mut path = path(container, name);
                path.push(field);
                Jsonc::parse(self.body())?.replace(&path, &ConfigNode::text(text))?
            }
            ConfigLanguage::Toml => Toml::parse(self.body())?.set(table(container)?, name, field, text)?,
        };
        self.checked(new, container, name, true)
    }

    /// Gives a member of an entry another name. Only JSON needs it.
    pub(super) fn rename(self, container: &[String], name: &str, field: &str, new: &str) -> Result<String, EditError> {
        let mut path = path(container, name);
        path.push(field);
        let new = match self.language {
            ConfigLanguage::Json => Jsonc::parse(self.body())?.rename(&path, new)?,
            ConfigLanguage::Toml => return Err(EditError::Unsafe),
        };
        self.checked(new, container, name, true)
    }

    pub(super) fn remove(self, container: &[String], name: &str, empty: EmptyObjectRule) -> Result<String, EditError> {
        let new = match self.language {
            ConfigLanguage::Json => Jsonc::parse(self.body())?.remove(&path(container, name), empty)?,
            ConfigLanguage::Toml => Toml::parse(self.body())?.remove(table(container)?, name)?,
        };
        self.checked(new, container, name, false)
    }

    /// Returns the elements of a list. Only JSON has lists that we write into.
    pub(super) fn items(self, list: &[String]) -> Result<Vec<Value>, EditError> {
        match self.language {
            ConfigLanguage::Json => Jsonc::parse(self.body())?.items(&names(list)),
            ConfigLanguage::Toml => Err(EditError::Unsafe),
        }
    }

    /// Adds an element to a list, or puts it in the place of the one that is ours.
    pub(super) fn put_item(self, list: &[String], node: &ConfigNode, ours: IsOurs) -> Result<String, EditError> {
        let text = Jsonc::parse(self.body())?;
        let new = match self.items(list)?.iter().position(ours) {
            Some(at) => text.replace_item(&names(list), at, node)?,
            None => text.append(&names(list), node)?,
        };
        self.checked_but(new, list, ours)
    }

    /// Takes all that is ours out of a list.
    pub(super) fn remove_items(
        self,
        list: &[String],
        ours: IsOurs,
        empty: EmptyObjectRule,
    ) -> Result<String, EditError> {
        let mut new = self.body().to_owned();
        while let Some(at) = ConfigText::new(self.language, &new).items(list)?.iter().position(ours) {
            new = Jsonc::parse(&new)?.remove_item(&names(list), at, empty)?;
        }
        self.checked_but(new, list, ours)
    }

    /// The text without the mark in front.
    fn body(self) -> &'a str {
        self.text.strip_prefix(MARK).unwrap_or(self.text)
    }

    /// Returns the new text, mark and all, if nothing but the entry is another one.
    fn checked(self, new: String, container: &[String], name: &str, is_there: bool) -> Result<String, EditError> {
        let mut before = self.value()?;
        let mut after = ConfigText::new(self.language, &new).value().map_err(|_| EditError::Unsafe)?;
        let found = lookup(&after, container).is_some_and(|servers| servers.get(name).is_some());
        strip(&mut before, container, name);
        strip(&mut after, container, name);
        if found != is_there || before != after {
            return Err(EditError::Unsafe);
        }
        Ok(self.marked(new))
    }

    /// Returns the new text, mark and all, if nothing but what is ours in a list is another one.
    fn checked_but(self, new: String, list: &[String], ours: IsOurs) -> Result<String, EditError> {
        let mut before = self.value()?;
        let mut after = ConfigText::new(self.language, &new).value().map_err(|_| EditError::Unsafe)?;
        strip_items(&mut before, list, ours);
        strip_items(&mut after, list, ours);
        match before == after {
            true => Ok(self.marked(new)),
            false => Err(EditError::Unsafe),
        }
    }

    fn marked(self, new: String) -> String {
        match self.text.starts_with(MARK) {
            true => format!("{MARK}{new}"),
            false => new,
        }
    }
}

/// Returns what stands at the end of a path.
pub(super) fn lookup<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// Takes an entry out, and the objects around it that are empty then. An empty file and an empty object are the same.
fn strip(value: &mut Value, container: &[String], name: &str) {
    match container {
        [] => {
            if let Some(members) = value.as_object_mut() {
                members.remove(name);
            }
        }
        [first, rest @ ..] => {
            if let Some(below) = value.get_mut(first) {
                strip(below, rest, name);
            }
            if value.get(first).is_some_and(Value::is_null)
                && let Some(members) = value.as_object_mut()
            {
                members.remove(first);
            }
        }
    }
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        *value = Value::Null;
    }
}

/// Takes what is ours out of a list, and the list and the objects around it that are empty then.
fn strip_items(value: &mut Value, list: &[String], ours: IsOurs) {
    let found = list.iter().try_fold(&mut *value, |value, name| value.get_mut(name));
    if let Some(items) = found.and_then(Value::as_array_mut) {
        items.retain(|item| !ours(item));
    }
    let empty = lookup(value, list).is_none_or(|list| list.as_array().is_some_and(Vec::is_empty));
    if let ([container @ .., name], true) = (list, empty) {
        strip(value, container, name);
    }
}

fn names(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn path<'p>(container: &'p [String], name: &'p str) -> Vec<&'p str> {
    container.iter().map(String::as_str).chain([name]).collect()
}

fn table(container: &[String]) -> Result<&str, EditError> {
    match container {
        [table] => Ok(table),
        _ => Err(EditError::Unsafe),
    }
}
