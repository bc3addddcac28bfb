//! The cases as `yardstick/contract/README.md` tells them: what is given, what is done, what must have come of it.

use std::{collections::BTreeMap, fs, path::PathBuf};

use prism_core::policy::VerbSpec;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Suite {
    pub(super) category: String,
    pub(super) cases: Vec<Case>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) verb: String,
    pub(super) name: String,
    /// Programs that it needs beside the runtime.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// The language whose server it needs.
    pub(super) server: Option<String>,
    #[serde(default)]
    pub(super) given: Given,
    pub(super) when: Vec<Step>,
    pub(super) then: Vec<Check>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    #[serde(default)]
    pub(super) files: BTreeMap<String, Content>,
    #[serde(default)]
    pub(super) links: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) commands: Vec<Command>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Bytes { base64: String },
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Command {
    Words(Vec<String>),
    /// `repository`: a git repository in which all that is there is committed.
    Named(String),
}

/// One thing that is done: `do`, `write`, `read`, `run` or `await`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    #[serde(rename = "do")]
    pub(super) act: Option<String>,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    /// What the person says if it is asked: yes, unless this is `denies`.
    pub(super) person: Option<String>,
    /// It is done again until these hold.
    #[serde(default)]
    pub(super) until: Vec<Check>,
    pub(super) write: Option<BTreeMap<String, String>>,
    pub(super) read: Option<String>,
    pub(super) run: Option<Vec<String>>,
    #[serde(rename = "await")]
    pub(super) event: Option<Awaited>,
    #[serde(rename = "as")]
    pub(super) name: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Awaited {
    pub(super) event: String,
    #[serde(default)]
    pub(super) has: Value,
}

/// Something that must be so, of a result, of a file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Check {
    pub(super) of: Option<String>,
    #[serde(default)]
    pub(super) at: String,
    pub(super) file: Option<String>,
    /// A code, or one of several.
    pub(super) error: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    pub(super) equals: Option<Value>,
    pub(super) exists: Option<bool>,
    pub(super) contains: Option<String>,
    pub(super) contains_not: Option<String>,
    pub(super) greater: Option<Value>,
    pub(super) one_of: Option<Vec<Value>>,
    pub(super) length: Option<usize>,
    pub(super) has: Option<Value>,
    pub(super) has_not: Option<Value>,
}

/// A member that may be `null`, which is not the same as none.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// All files of the suite, in the order of the table of actions.
pub(super) fn suites() -> Vec<Suite> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../yardstick/contract");
    let files = fs::read_dir(folder).expect("the suite is there").map(|file| file.expect("it can be listed").path());
    let mut suites: Vec<Suite> = files
        .filter(|file| file.extension().is_some_and(|end| end == "json"))
        .map(|file| {
            let text = fs::read_to_string(&file).expect("it can be read");
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        })
        .collect();
    suites.sort_by_key(|suite| VerbSpec::all().position(|action| action.category.name() == suite.category));
    suites
}

impl Case {
    /// The verbs that a runtime must have for it.
    pub(super) fn needs(&self) -> impl Iterator<Item = &'static str> {
        self.when.iter().filter_map(|step| {
            let op = step.args.get("op").and_then(Value::as_str);
            VerbSpec::asked(step.act.as_deref()?, op).ok().map(|action| action.verb)
        })
    }

    /// Whether it is about an error of its verb.
    pub(super) fn is_refused(&self) -> bool {
        self.then.iter().any(|check| check.error.is_some())
    }
}
