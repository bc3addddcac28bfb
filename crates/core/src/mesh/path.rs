//! The ways by which an agent can be woken, as a table: what each is called, and what it can do to an idle agent. How a
//! bell goes down one of them is in `crates/mesh/src/wake`.

/// A way to wake an agent; `last_wake_path` in an obligation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WakePath {
    /// `prism_signals_wait`: a call of the agent's that ends when the bell rings.
    Wait,
    /// A turn in the thread of a Codex app-server.
    CodexAppServer,
    /// A prompt in the session of an OpenCode server.
    Opencode,
    /// A prompt to an agent that `prism acp` stands in front of.
    Acp,
    /// `prism wait --hook …`, which the agent's own program started.
    Hook,
    /// `notifications/resources/updated` on the agent's stream.
    Sse,
    /// `notifications/claude/channel` by way of `prism stdio`.
    Channel,
    /// A line at the end of the agent's next tool result.
    Piggyback,
    /// Keys for the pane that the agent is in.
    Tmux,
    /// A message in the chat of the editor that the agent lives in.
    EditorChat,
    /// A notice on the person's screen.
    Desktop,
}

/// What a ring by a path can do at best. Only a drain tells whether it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathGrade {
    /// Starts a turn in an idle agent now.
    A,
    /// Is heard at the next boundary of a running turn.
    B,
    /// Refreshes what a program shows, or tells a person.
    C,
}

/// Paths by which a bell can be pushed to an agent, and that show whether anybody is there to hear it.
pub const PUSHES: [WakePath; 8] = [
    WakePath::Wait,
    WakePath::CodexAppServer,
    WakePath::Opencode,
    WakePath::Acp,
    WakePath::Hook,
    WakePath::Sse,
    WakePath::Tmux,
    WakePath::EditorChat,
];

/// A set of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Paths(u16);

// === impl WakePath ===

impl WakePath {
    /// All of them, in the order in which a ladder would climb them if it knew nothing else.
    pub const ALL: [Self; 11] = [
        Self::Wait,
        Self::CodexAppServer,
        Self::Opencode,
        Self::Acp,
        Self::Hook,
        Self::Sse,
        Self::Channel,
        Self::Piggyback,
        Self::Tmux,
        Self::EditorChat,
        Self::Desktop,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::CodexAppServer => "codex_app_server",
            Self::Opencode => "opencode",
            Self::Acp => "acp",
            Self::Hook => "hook",
            Self::Sse => "sse",
            Self::Channel => "channel",
            Self::Piggyback => "piggyback",
            Self::Tmux => "tmux",
            Self::EditorChat => "editor_chat",
            Self::Desktop => "desktop",
        }
    }

    /// Whether somebody waits at the other end for just one bell, and is gone when it has come.
    #[must_use]
    pub const fn ends_with_bell(self) -> bool {
        matches!(self, Self::Wait | Self::Hook | Self::Acp | Self::Channel)
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|path| path.name() == name)
    }

    /// A channel is of the first grade where its program has them at all; a hook is where it can wake (Claude Code's
    /// `asyncRewake`), and of the second where it is only asked at the end of a turn.
    #[must_use]
    pub const fn grade(self) -> PathGrade {
        match self {
            Self::Wait
            | Self::CodexAppServer
            | Self::Opencode
            | Self::Acp
            | Self::Hook
            | Self::Channel
            | Self::Tmux
            | Self::EditorChat => PathGrade::A,
            Self::Piggyback => PathGrade::B,
            Self::Sse | Self::Desktop => PathGrade::C,
        }
    }
}

// === impl PathGrade ===

impl PathGrade {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
        }
    }
}

// === impl Paths ===

impl Paths {
    fn bit(path: WakePath) -> u16 {
        1 << path as u16
    }

    pub(super) fn has(self, path: WakePath) -> bool {
        self.0 & Self::bit(path) != 0
    }

    pub(super) fn insert(&mut self, path: WakePath) {
        self.0 |= Self::bit(path);
    }

    pub(super) fn remove(&mut self, path: WakePath) {
        self.0 &= !Self::bit(path);
    }

    pub(super) fn all(self) -> impl Iterator<Item = WakePath> {
        WakePath::ALL.into_iter().filter(move |path| self.has(*path))
    }
}

#[cfg(test)]
mod tests {
    use super::WakePath;

    #[test]
    fn a_path_is_found_by_its_name_and_by_no_other() {
        for path in WakePath::ALL {
            assert_eq!(WakePath::named(path.name()), Some(path));
        }
        assert_eq!(WakePath::named("longpoll"), None);
        assert_eq!(WakePath::named("Wait"), None);
    }
}
