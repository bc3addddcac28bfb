//! The mesh's verbs (docs/mesh.md): what each is told, over HTTP or as a tool, and what it answers.

mod answers;
mod arguments;
mod overview;

pub use answers::*;
pub use arguments::*;
pub use overview::*;

/// What the mesh can be asked over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshVerb {
    Start,
    Checkpoint,
    Wrap,
    Status,
    Send,
    Pending,
    Wait,
    Reply,
    Recall,
    Waive,
    Obligations,
    Diagnostics,
    History,
    WakeTest,
}

impl MeshVerb {
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Checkpoint,
        Self::Wrap,
        Self::Status,
        Self::Send,
        Self::Pending,
        Self::Wait,
        Self::Reply,
        Self::Recall,
        Self::Waive,
        Self::Obligations,
        Self::Diagnostics,
        Self::History,
        Self::WakeTest,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Checkpoint => "checkpoint",
            Self::Wrap => "wrap",
            Self::Status => "status",
            Self::Send => "send",
            Self::Pending => "pending",
            Self::Wait => "wait",
            Self::Reply => "reply",
            Self::Recall => "recall",
            Self::Waive => "waive",
            Self::Obligations => "obligations",
            Self::Diagnostics => "diagnostics",
            Self::History => "history",
            Self::WakeTest => "wake_test",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}
