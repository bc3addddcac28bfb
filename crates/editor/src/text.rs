//! Open texts: buffers with their versions, edits of them, and what each holder looks at. What becomes of files on disk is in
//! `disk`.

pub(crate) mod buffers;
pub(crate) mod deeds;
pub(crate) mod edit;
pub(crate) mod foresee;
pub(crate) mod panes;
