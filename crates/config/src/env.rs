//! The environment, as it was when the program started. It is read here, once; whoever needs a variable is handed it.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    fmt,
    path::Path,
};

use prism_os::program;

use super::{ConfigError, EnvInheritance, Origin};

/// The environment the daemon was started with. Its `Debug` shows no values: some of them are secrets.
#[derive(Clone, Default)]
pub struct Env {
    variables: BTreeMap<OsString, OsString>,
}

impl Env {
    /// Takes a copy of this process's environment.
    #[must_use]
    pub fn process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// Returns a variable, unless it is unset or empty: `PRISM_PORT= prism serve` means "no such setting".
    #[must_use]
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns what a child with this setting inherits of it.
    #[must_use]
    pub fn inherited(&self, inherit: &EnvInheritance) -> BTreeMap<OsString, OsString> {
        let taken = self.variables.iter().filter(|(name, _)| inherit.takes(name));
        taken.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Tells whether a program would be found on a PATH; one with a slash is looked for below `cwd`.
    #[must_use]
    pub fn finds(program: &str, cwd: Option<&Path>, path: &OsStr) -> bool {
        program::find(program, cwd, path).is_ok()
    }

    /// Returns a variable that a destination cannot do without.
    pub(super) fn wanted(&self, variable: &str, destination: &str, at: &Origin) -> Result<String, ConfigError> {
        self.var(variable).and_then(OsStr::to_str).map(str::to_owned).ok_or_else(|| ConfigError::NoVariable {
            at: at.clone(),
            destination: destination.to_owned(),
            variable: variable.to_owned(),
        })
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self { variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect() }
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}
