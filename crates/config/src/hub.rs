//! Settings of the hub at `/mcp` (B-27), and the profiles that show a part of it.

use std::time::Duration;

#[cfg(test)]
mod tests;

/// The servers that Prism is itself, by the names that they have in the hub.
pub const BUILT_IN: [&str; 2] = ["prism", "workspace"];

/// `[hub]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubConfig {
    /// Whether names begin with their destination's, as in `files__read`. Without it only those do that two
    /// destinations have in common.
    pub prefix: bool,
    pub mode: HubMode,
    /// How long a list waits for a destination that does not answer, the first time.
    pub patience: Duration,
    /// How long a list waits for a server that has never listed anything and is starting: a client that lists once
    /// would never have it. Clients give up after a minute.
    pub first_patience: Duration,
    /// The longest name of a tool or prompt.
    pub longest_name: usize,
}

/// What `tools/list` shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HubMode {
    /// Every tool.
    #[default]
    List,
    /// Two tools: one that finds others, and one that calls them.
    Search,
}

/// `[profile.NAME]`, at `/mcp?profile=NAME`. What it does not say is as in `[hub]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileConfig {
    /// The destinations that it shows; `None`: all.
    pub only: Option<Vec<String>>,
    /// Those that it does not show.
    pub except: Vec<String>,
    /// Patterns of the tools that it shows, as in `files__*`; none: all.
    pub tools: Vec<String>,
    pub prefix: Option<bool>,
    pub mode: Option<HubMode>,
}

// === impl HubConfig ===

impl Default for HubConfig {
    fn default() -> Self {
        Self {
            prefix: true,
            mode: HubMode::List,
            patience: Duration::from_secs(5),
            first_patience: Duration::from_secs(55),
            longest_name: 64,
        }
    }
}

// === impl HubMode ===

impl HubMode {
    /// Every value, in the order in which messages list them.
    pub const ALL: [Self; 2] = [Self::List, Self::Search];

    /// Returns the value as it is written in a config.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Search => "search",
        }
    }
}
