//! Open texts change hands: to an editor that has come for a folder, and back when it has left. Which of them owns a
//! folder is decided elsewhere; here it is only made sure that a text is given away once and taken in unsaved.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use prism_core::policy::{Code, Refusal};

use super::{Buffer, BufferChange, Buffers, EditPlan};
use crate::{
    encoding,
    roots::{ResolvedPath, place},
    state::GrantHolder,
    text::edit::TextEdit,
};

/// An unsaved text that is no longer open here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedText {
    pub path: PathBuf,
    pub text: Arc<str>,
    /// Of the text that it was made from: the file, when it was last read or written.
    pub digest: Option<String>,
}

impl Buffers {
    /// Closes all beneath a folder, and returns what was unsaved. Whatever was planned on them is refused from now on.
    pub(crate) fn surrender(&self, folder: &Path) -> Vec<ReleasedText> {
        let beneath = self.all().into_iter().filter(|buffer| buffer.path().starts_with(folder));
        beneath.filter_map(|buffer| self.give_up(&buffer)).collect()
    }

    fn give_up(&self, buffer: &Arc<Buffer>) -> Option<ReleasedText> {
        // A text that is on its way to its file gets there first.
        let turn = buffer.saving();
        let unsaved = {
            let mut state = buffer.state();
            let was_open = !std::mem::replace(&mut state.is_shut, true);
            (was_open && state.is_dirty()).then(|| ReleasedText {
                path: buffer.path().to_owned(),
                text: state.text.clone(),
                digest: Some(state.disk.digest.clone()),
            })
        };
        drop(turn);
        self.shut(buffer, None);
        unsaved
    }

    /// Opens a file with a text that is not saved. Refused if there is another unsaved one already.
    pub(crate) fn adopt(&self, way: &ResolvedPath, text: &str) -> Result<(), Refusal> {
        let buffer = match self.open(way) {
            Ok(buffer) => buffer,
            // The file is gone, and this is all that is left of it.
            Err(refusal) if refusal.code == Code::NotFound => {
                let spot = way.spot()?;
                let path = place(spot.folder(), way.written()).join(spot.name());
                let nothing = encoding::digest_of(b"");
                let buffer = self.add(Arc::new(Buffer::new(path, "".into(), nothing, None, self.versions.next())))?;
                buffer.is_gone();
                buffer
            }
            Err(refusal) => return Err(refusal),
        };
        let now = buffer.snapshot();
        if *now.text == *text {
            return Ok(());
        }
        if now.is_dirty {
            return Err(way.changed("it has other unsaved changes"));
        }
        let whole = TextEdit { range: 0..now.text.len(), new_text: text.to_owned() };
        let plan = EditPlan::of(vec![BufferChange { buffer, version: now.version, edits: vec![whole] }], "handover")?;
        // A person may have typed it.
        self.make(&plan, &GrantHolder { id: 0, name: "the person's editor".to_owned(), ..GrantHolder::default() })
            .map(drop)
    }
}
