//! Whether what came of a case is what had to come of it.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use super::case::Check;

/// What the steps of a case came to, by name: results as they came, outputs and texts as they are.
#[derive(Default)]
pub(super) struct Saved(pub(super) BTreeMap<String, Value>);

impl Saved {
    /// Puts what is known in the place of `${name}` and `${name.path.to.it}`, by value where that is all of a text.
    pub(super) fn filled(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => match text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                Some(name) if !name.contains('$') => self.named(name)?,
                _ => self.written(text)?.into(),
            },
            Value::Array(values) => values.iter().map(|value| self.filled(value)).collect::<Result<_, _>>()?,
            Value::Object(members) => {
                let filled = members.iter().map(|(name, value)| Ok((name.clone(), self.filled(value)?)));
                Value::Object(filled.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }

    pub(super) fn written(&self, text: &str) -> Result<String, String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            let (name, behind) = behind.split_once('}').ok_or_else(|| format!("{text:?} ends in a name"))?;
            let value = self.named(name)?;
            filled.push_str(before);
            filled.push_str(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            rest = behind;
        }
        Ok(filled + rest)
    }

    fn named(&self, name: &str) -> Result<Value, String> {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let saved = self.0.get(first).ok_or_else(|| format!("nothing is called {first:?}"))?;
        at(told(saved), rest).cloned().ok_or_else(|| format!("no {name} in {saved}"))
    }

    pub(super) fn holds(&self, check: &Check, root: &Path) -> Result<(), String> {
        if let Some(file) = &check.file {
            let found = fs::read(root.join(file)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let is_there = root.join(file).exists();
            return self.fits(check, found.map(Value::from).as_ref(), is_there).map_err(|why| format!("{file}: {why}"));
        }
        let name = check.of.as_deref().ok_or("a check is about a result (`of`) or a `file`")?;
        let saved = self.0.get(name).ok_or_else(|| format!("nothing is called {name:?}"))?;
        self.holds_of(check, name, saved)
    }

    pub(super) fn holds_of(&self, check: &Check, name: &str, saved: &Value) -> Result<(), String> {
        let is_refused = saved["status"] == "error";
        match &check.error {
            Some(expected) => {
                let code = &saved["data"]["code"];
                let fits = match expected {
                    Value::Array(codes) => codes.contains(code),
                    expected => expected == code,
                };
                if is_refused && fits { Ok(()) } else { Err(format!("{name}: not refused as {expected}, but {saved}")) }
            }
            None if is_refused => Err(format!("{name}: {saved}")),
            None => {
                let found = at(told(saved), &check.at);
                self.fits(check, found, found.is_some_and(|found| !found.is_null()))
                    .map_err(|why| format!("{name}.{}: {why}", check.at))
            }
        }
    }

    fn fits(&self, check: &Check, found: Option<&Value>, is_there: bool) -> Result<(), String> {
        if let Some(exists) = check.exists {
            return if exists == is_there { Ok(()) } else { Err(format!("there: {is_there}")) };
        }
        let found = found.ok_or("not there")?;
        let text = || found.as_str().unwrap_or_default();
        let list = || found.as_array().ok_or_else(|| format!("no list: {found}"));
        let wrong = |what: &str, expected: &dyn std::fmt::Display| Err(format!("{what} {expected}: {found}"));
        if let Some(expected) = &check.equals {
            let expected = self.filled(expected)?;
            return if *found == expected { Ok(()) } else { wrong("not", &expected) };
        }
        if let Some(words) = &check.contains {
            return if text().contains(words) { Ok(()) } else { wrong("has no", words) };
        }
        if let Some(words) = &check.contains_not {
            return if text().contains(words) { wrong("has", words) } else { Ok(()) };
        }
        if let Some(than) = &check.greater {
            let than = self.filled(than)?;
            let is_greater = found.as_f64().zip(than.as_f64()).is_some_and(|(found, than)| found > than);
            return if is_greater { Ok(()) } else { wrong("not greater than", &than) };
        }
        if let Some(values) = &check.one_of {
            return if values.contains(found) { Ok(()) } else { wrong("none of", &Value::from(values.clone())) };
        }
        if let Some(length) = check.length {
            return if list()?.len() == length { Ok(()) } else { wrong("not of the length", &length) };
        }
        if let Some(part) = &check.has {
            let part = self.filled(part)?;
            return if list()?.iter().any(|one| covers(one, &part)) { Ok(()) } else { wrong("has no", &part) };
        }
        if let Some(part) = &check.has_not {
            let part = self.filled(part)?;
            return if list()?.iter().any(|one| covers(one, &part)) { wrong("has", &part) } else { Ok(()) };
        }
        Err("the check says nothing".to_owned())
    }
}

/// What a result is about; other things are themselves.
fn told(saved: &Value) -> &Value {
    if saved["type"] == "result" { &saved["data"] } else { saved }
}

fn at<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.').filter(|part| !part.is_empty());
    parts.try_fold(value, |value, part| match value {
        Value::Array(values) => values.get(part.parse::<usize>().ok()?),
        value => value.get(part),
    })
}

/// Whether a value has at least these members.
pub(super) fn covers(value: &Value, part: &Value) -> bool {
    match part {
        Value::Object(members) => {
            members.iter().all(|(name, part)| value.get(name).is_some_and(|one| covers(one, part)))
        }
        Value::Null => true,
        part => value == part,
    }
}
