//! Bells in an editor's own chat.

/// Why a chat did not take a bell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatFailure {
    /// No window of this kind has the folder open, is alive, and lets bells into its chat.
    Nobody,
    /// There is one, and it could not.
    Failed(String),
    /// There is one, and it has not said in time whether it did.
    Unanswered(String),
}
