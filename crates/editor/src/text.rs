//! Open texts: buffers with their versions, edits of them, and what each holder looks at. What becomes of files on disk is in
//! `disk`.

pub(crate) mod buffers;
pub(crate) mod difference;
pub(crate) mod edit;
pub(crate) mod own_writes;
pub(crate) mod panes;
pub(crate) mod preview;

use std::{path::PathBuf, sync::Arc};

use crate::state::{EditorState, OrderContext};
use buffers::Buffers;
use panes::Panes;

/// What is open, and who looks at what of it.
#[derive(Debug)]
pub(crate) struct TextState {
    pub(crate) editor: Arc<EditorState>,
    pub(crate) buffers: Buffers,
    pub(crate) panes: Panes,
}

/// Where an order about texts or files is carried out.
pub(crate) type TextContext = OrderContext<TextState>;

impl TextState {
    /// Takes up what was left unsaved in a folder, if one is named.
    pub(crate) fn new(editor: Arc<EditorState>, unsaved: Option<PathBuf>) -> Self {
        let buffers = Buffers::new(editor.happenings.clone(), unsaved);
        Self { editor, buffers, panes: Panes::default() }
    }
}
