//! Changes of buffers: worked out on texts as they were, shown, and made only if all of these texts still are what they were.
//! All are made or none, and no other change comes in between: the buffers are locked together, in the order of their paths.

use std::{
    path::Path,
    sync::{Arc, MutexGuard},
};

use prism_core::policy::{Code, Effect, LossOwner, Refusal, TextLocation};
use serde_json::{Value, json};

use super::{
    Buffers,
    buffer::{Buffer, BufferState, Snapshot, stale},
    history::Steps,
};
use crate::{
    args::wrong,
    encoding,
    roots::read::check_size,
    shown::ActionPreview,
    state::GrantHolder,
    text::{
        difference::unified,
        edit::{TextEdit, TextLines, apply},
    },
};

/// What is to become of one buffer.
#[derive(Debug)]
pub(crate) struct BufferChange {
    pub(crate) buffer: Arc<Buffer>,
    /// The version that the edits are about.
    pub(crate) version: u64,
    pub(crate) edits: Vec<TextEdit>,
}

/// Changes that fit the texts as they are, or were a moment ago.
#[derive(Debug)]
pub(crate) struct EditPlan {
    /// By path.
    steps: Vec<PlannedStep>,
    reason: &'static str,
}

#[derive(Debug)]
struct PlannedStep {
    buffer: Arc<Buffer>,
    old: Snapshot,
    edits: Vec<TextEdit>,
    back: Vec<TextEdit>,
    text: Arc<str>,
    digest: String,
}

/// A change that was made.
#[derive(Debug)]
pub(crate) struct MadeEdit {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) version: u64,
    pub(crate) digest: String,
    pub(crate) is_dirty: bool,
    /// How many replacements it was.
    pub(crate) edits: usize,
}

/// Changes that are undone or redone.
#[derive(Clone, Debug)]
pub(crate) struct Retraced {
    pub(super) buffer: Arc<Buffer>,
    pub(super) old: Snapshot,
    pub(super) steps: Steps,
    pub(super) text: Arc<str>,
    pub(super) digest: String,
    /// Who made the changes that are undone or redone.
    pub(super) makers: Vec<u128>,
}

/// Edits that are told along with a change, and the bytes of their text. Of more it is only told that there was a change.
const MAX_TOLD: usize = 32;
const MAX_TOLD_BYTES: usize = 8 << 10;

// === impl EditPlan ===

impl EditPlan {
    /// Works the changes out. Refused if one is about a version that is no more.
    pub(crate) fn of(changes: Vec<BufferChange>, reason: &'static str) -> Result<Self, Refusal> {
        let mut steps = changes.into_iter().map(PlannedStep::of).collect::<Result<Vec<_>, _>>()?;
        steps.sort_by(|a, b| a.buffer.path().cmp(b.buffer.path()));
        if let Some(pair) = steps.windows(2).find(|pair| pair[0].buffer.path() == pair[1].buffer.path()) {
            return Err(wrong(format!("{:?} is named twice", pair[0].buffer.path())));
        }
        Ok(Self { steps, reason })
    }

    pub(crate) fn title(&self) -> String {
        match self.steps.as_slice() {
            [step] => format!("Edit {}", step.buffer.path().display()),
            steps => format!("Edit {} files", steps.len()),
        }
    }

    /// The bytes that it writes, for whoever has to keep within a limit.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.steps.iter().flat_map(|step| &step.edits).map(|edit| edit.new_text.len() as u64).sum()
    }

    /// What becomes of each text.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        self.steps.iter().map(|step| in_buffer(&step.buffer, &step.old.text, &step.text)).collect()
    }

    /// The differences that it makes.
    pub(crate) fn shown(&self) -> ActionPreview {
        let paths: Vec<String> = self.steps.iter().map(|step| step.buffer.path().display().to_string()).collect();
        let digests: String = self.steps.iter().map(|step| step.old.digest.as_str()).collect();
        let old_text_digest = match self.steps.as_slice() {
            [step] => step.old.digest.clone(),
            _ => encoding::digest_of(digests.as_bytes()),
        };
        ActionPreview::Diff { path: paths.join(", "), old_text_digest: Some(old_text_digest), unified: self.unified() }
    }

    /// The same as `diff -u` has it.
    pub(crate) fn unified(&self) -> String {
        self.steps.iter().map(|step| difference(&step.buffer, &step.old.text, &step.text)).collect()
    }
}

impl PlannedStep {
    fn of(change: BufferChange) -> Result<Self, Refusal> {
        let BufferChange { buffer, version, edits } = change;
        let old = buffer.snapshot();
        if old.version != version {
            return Err(stale(&buffer.path().display().to_string(), old.version));
        }
        let (text, back) = apply(&old.text, &edits).map_err(|overlap| wrong(overlap.to_string()))?;
        check_size(text.as_bytes())?;
        if text.contains('\0') {
            return Err(wrong("a text cannot hold a NUL"));
        }
        let digest = encoding::digest_of(text.as_bytes());
        Ok(Self { buffer, old, edits, back, text: text.into(), digest })
    }
}

// === impl Retraced ===

impl Retraced {
    pub(crate) fn path(&self) -> &Path {
        self.buffer.path()
    }

    /// What becomes of the text, and whether it was somebody else's.
    pub(crate) fn effects(&self, by: &GrantHolder) -> Vec<Effect> {
        let mut effects = vec![in_buffer(&self.buffer, &self.old.text, &self.text)];
        if self.makers.iter().any(|maker| *maker != by.id) {
            let word = if matches!(self.steps, Steps::Back(_)) { "undone" } else { "made again" };
            let what = format!("{}: changes that somebody else made are {word}", self.path().display());
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        effects
    }

    pub(crate) fn shown(&self) -> ActionPreview {
        let path = self.path().display().to_string();
        let unified = difference(&self.buffer, &self.old.text, &self.text);
        ActionPreview::Diff { path, old_text_digest: Some(self.old.digest.clone()), unified }
    }
}

fn in_buffer(buffer: &Buffer, before: &Arc<str>, after: &Arc<str>) -> Effect {
    let (before, after) = (Some(before.clone()), Some(after.clone()));
    Effect::Text { path: buffer.path().display().to_string(), at: TextLocation::Buffer, before, after }
}

fn difference(buffer: &Buffer, old: &str, new: &str) -> String {
    unified(&buffer.path().display().to_string(), Some(old.as_bytes()), new.as_bytes())
}

// === impl Buffers ===

impl Buffers {
    /// Makes the changes, all or none. Refused if one of the texts is another by now.
    pub(crate) fn make(&self, plan: &EditPlan, by: &GrantHolder) -> Result<Vec<MadeEdit>, Refusal> {
        let mut states = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            states.push(locked(&step.buffer, step.old.version)?);
        }
        let mut made = Vec::with_capacity(plan.steps.len());
        for (step, state) in plan.steps.iter().zip(&mut states) {
            state.history.changed(step.back.clone(), by.id);
            let edits = edits_json(&step.old.text, &step.edits);
            made.push(self.change(state, &step.buffer, (&step.text, &step.digest), by, plan.reason, edits));
            if let Some(edited) = made.last_mut() {
                edited.edits = step.edits.len();
            }
        }
        Ok(made)
    }

    /// Undoes or redoes.
    pub(crate) fn make_retraced(&self, plan: Retraced, by: &GrantHolder) -> Result<MadeEdit, Refusal> {
        let mut state = locked(&plan.buffer, plan.old.version)?;
        state.history.walk(&plan.old.text, plan.steps);
        let reason = if matches!(plan.steps, Steps::Back(_)) { "undo" } else { "redo" };
        Ok(self.change(&mut state, &plan.buffer, (&plan.text, &plan.digest), by, reason, None))
    }

    /// Gives a buffer its new text. It is told under the lock, so that what is told comes in the order of the versions.
    fn change(
        &self,
        state: &mut BufferState,
        buffer: &Arc<Buffer>,
        (text, digest): (&Arc<str>, &str),
        by: &GrantHolder,
        reason: &str,
        edits: Option<Value>,
    ) -> MadeEdit {
        state.version = self.versions.next();
        state.is_changed_by(by);
        (state.text, state.digest) = (text.clone(), digest.to_owned());
        let (version, is_dirty) = (state.version, state.is_dirty());
        let mut data = json!({ "version": version, "is_dirty": is_dirty, "reason": reason });
        if let Some(edits) = edits {
            data["edits"] = edits;
        }
        self.tell("buffer_changed", buffer, Some(by), data);
        MadeEdit { buffer: buffer.clone(), version, digest: digest.to_owned(), is_dirty, edits: 1 }
    }
}

fn locked(buffer: &Buffer, version: u64) -> Result<MutexGuard<'_, BufferState>, Refusal> {
    let state = buffer.state();
    if state.is_shut {
        let message = format!("{:?} was closed meanwhile; open it again", buffer.path());
        return Err(Refusal::new(Code::Changed, message));
    }
    if state.version != version {
        return Err(stale(&buffer.path().display().to_string(), state.version));
    }
    Ok(state)
}

/// The edits as places in the text that they were made on; `None` if they are too many to be told.
fn edits_json(old: &str, edits: &[TextEdit]) -> Option<Value> {
    let bytes: usize = edits.iter().map(|edit| edit.new_text.len()).sum();
    if edits.len() > MAX_TOLD || bytes > MAX_TOLD_BYTES {
        return None;
    }
    let lines = TextLines::of(old);
    let edit_json = |edit: &TextEdit| json!({ "range": { "start": lines.to_json(edit.range.start), "end": lines.to_json(edit.range.end) }, "new_text": edit.new_text });
    Some(edits.iter().map(edit_json).collect())
}

// === impl MadeEdit ===

impl MadeEdit {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "path": self.buffer.path(), "version": self.version, "digest": self.digest, "is_dirty": self.is_dirty,
            "edits": self.edits,
        })
    }
}
