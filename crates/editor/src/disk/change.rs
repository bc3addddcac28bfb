//! A change of one file: shown as the difference that it makes, and made only if the file is still the one that was shown.
//!
//! Between that last look and the change itself there are microseconds in which somebody else may have written the file; their
//! change is then lost, as between any two editors. What a person has confirmed is never applied to a text that they
//! have not seen for longer than that.

use std::path::Path;

use prism_core::policy::{Effect, LossOwner, Refusal};
use prism_os::root::{FolderError, FoundEntry, Spot};
use serde_json::{Value, json};

use crate::{
    encoding,
    prepared::Work,
    roots::{
        MissingPath, ResolvedPath, place,
        read::{check_size, whole},
    },
    shown::ActionPreview,
    text::{
        TextContext,
        difference::{on_disk, unified},
    },
};

/// A file that is to be replaced, and what it holds now.
pub(crate) struct ReplacedFile {
    way: ResolvedPath,
    spot: Spot,
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: String,
    /// Whether it was said which text it is that is replaced.
    is_named: bool,
}

impl ReplacedFile {
    /// Reads the file, and refuses if it is another than the one that the change was made for.
    pub(crate) fn open(way: ResolvedPath, made_for: Option<&str>) -> Result<Self, Refusal> {
        let spot = way.spot()?;
        let (file, found) = spot.open_file().map_err(|error| way.refusal(error))?;
        if found.is_read_only() {
            return Err(way.refusal(FolderError::ReadOnly));
        }
        let path = path_of(&spot, &way);
        let bytes = whole(file, &path)?;
        let digest = encoding::digest_of(&bytes);
        if made_for.is_some_and(|made_for| made_for != digest) {
            return Err(way.changed("it is not the file that the change was made for"));
        }
        Ok(Self { way, spot, path, bytes, digest, is_named: made_for.is_some() })
    }

    /// Has it replaced. A buffer of it follows; refused if that has text of its own.
    pub(crate) fn replaced_by(self, new: Vec<u8>, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
        check_size(&new)?;
        let (state, by) = (context.state.clone(), context.holder.clone());
        state.buffers.refuse_dirty(Path::new(&self.path))?;
        let unified = unified(&self.path, Some(&self.bytes), &new);
        let shown =
            ActionPreview::Diff { path: self.path.clone(), old_text_digest: Some(self.digest.clone()), unified };
        let effects = self.effects(&new, context);
        let work = Work::new(move |_| {
            state.buffers.refuse_dirty(Path::new(&self.path))?;
            state.buffers.own_writes.writes(Path::new(&self.path), &encoding::digest_of(&new), &by);
            let told = self.replace(&new)?;
            if state.buffers.at(Path::new(&self.path)).is_some() {
                state.buffers.refresh(&self.way);
            }
            Ok(told)
        });
        Ok((shown, work.affecting(effects)))
    }

    /// Whoever does not say which text it replaces may never have seen it: it can be what a person wrote a moment ago.
    fn effects(&self, new: &[u8], context: &TextContext) -> Vec<Effect> {
        let mut effects = vec![on_disk(&self.path, Some(&self.bytes), new)];
        let is_own = || {
            let writer = context.state.buffers.own_writes.writer_of(Path::new(&self.path), &self.digest);
            writer.is_some_and(|writer| writer.id == context.holder.id)
        };
        if !self.is_named && !self.bytes.is_empty() && self.bytes != new && !is_own() {
            let what =
                format!("{}: all that it holds is replaced, and the agent gave no digest of what it saw", self.path);
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        effects
    }

    fn replace(&self, new: &[u8]) -> Result<Value, Refusal> {
        self.way.still_leads_to(self.spot.folder())?;
        let found = self.still_there()?;
        self.spot.replace(new, &found).map_err(|error| self.way.refusal(error))?;
        Ok(written_json(&self.path, new))
    }

    fn still_there(&self) -> Result<FoundEntry, Refusal> {
        let changed = || self.way.changed("it has changed since it was shown");
        let (file, found) = self.spot.open_file().map_err(|_| changed())?;
        // More than it was is more than was shown, so that it has grown too large to be read is no other error.
        let now = whole(file, &self.path).map_err(|_| changed())?;
        if encoding::digest_of(&now) == self.digest { Ok(found) } else { Err(changed()) }
    }
}

/// Has a file made that is not there yet.
pub(crate) fn creation(
    way: ResolvedPath,
    nearest: MissingPath,
    new: Vec<u8>,
    context: &TextContext,
) -> Result<(ActionPreview, Work), Refusal> {
    check_size(&new)?;
    let (state, by) = (context.state.clone(), context.holder.clone());
    let path = nearest.path();
    let shown = ActionPreview::Diff { path: path.clone(), old_text_digest: None, unified: unified(&path, None, &new) };
    let effect = on_disk(&path, None, &new);
    let work = Work::new(move |_| {
        let spot = nearest.make_way(&way)?;
        state.buffers.own_writes.writes(Path::new(&path), &encoding::digest_of(&new), &by);
        spot.create(&new).map_err(|error| appeared(&way, error))?;
        Ok(written_json(&path, &new))
    });
    Ok((shown, work.affecting(vec![effect])))
}

/// Says that what was not there when it was shown now is.
pub(crate) fn appeared(way: &ResolvedPath, error: FolderError) -> Refusal {
    match error {
        FolderError::Exists => way.changed("somebody else has made it meanwhile"),
        error => way.refusal(error),
    }
}

/// Where a name is, as a person reads it.
pub(crate) fn path_of(spot: &Spot, way: &ResolvedPath) -> String {
    place(spot.folder(), way.written()).join(spot.name()).display().to_string()
}

fn written_json(path: &str, bytes: &[u8]) -> Value {
    json!({ "path": path, "bytes": bytes.len(), "digest": encoding::digest_of(bytes) })
}
