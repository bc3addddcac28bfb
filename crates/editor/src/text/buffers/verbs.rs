//! `get_buffers`, `save_buffer`, `close_buffer`.

use std::sync::Arc;

use prism_core::policy::{Code, Effect, LossOwner, Refusal};
use prism_os::root::{FolderError, FoundEntry, Spot};
use serde_json::{Value, json};

use super::{
    Buffers,
    buffer::{Buffer, DiskSide, Snapshot, stale},
};
use crate::{
    args::{Args, wrong},
    encoding,
    prepared::Work,
    roots::{ResolvedPath, read::whole},
    shown::ActionPreview,
    state::GrantHolder,
    text::{
        TextContext,
        difference::{on_disk, unified},
    },
};

pub(crate) fn list(args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    args.done()?;
    let (state, roots, holder) = (context.state.clone(), context.roots.clone(), context.holder.id);
    let work = Work::new(move |_| {
        let active = state.panes.active(holder);
        let seen = state.buffers.all().into_iter().filter(|buffer| roots.holds(buffer.path()));
        let buffers: Vec<Value> =
            seen.map(|buffer| buffer_json(&buffer, active.as_deref() == Some(buffer.path()))).collect();
        Ok(json!({ "buffers": buffers, "ui": false }))
    });
    Ok((ActionPreview::plain("List the open buffers"), work))
}

fn buffer_json(buffer: &Buffer, is_active: bool) -> Value {
    let now = buffer.snapshot();
    json!({
        "path": buffer.path(), "version": now.version, "is_dirty": now.is_dirty, "digest": now.digest,
        "language": now.language.map(|language| language.id()), "lines": now.text.split_inclusive('\n').count(),
        "is_changed_on_disk": now.is_changed_on_disk, "is_active": is_active,
    })
}

pub(crate) fn close(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let discards = args.flag("discard")?;
    args.done()?;
    let way = context.roots.resolve(&path)?;
    let buffer = opened(context, &way)?;
    let Snapshot { version, text, is_dirty, .. } = buffer.snapshot();
    let title = ActionPreview::plain(format!("Close {}", buffer.path().display()));
    let (mut shown, mut effects) = (title, Vec::new());
    if is_dirty && discards {
        let path = buffer.path().display().to_string();
        // What becomes of the text that is open: what the file holds is all that is left of it.
        let disk = way.open_file().ok().and_then(|file| whole(file, &path).ok()).unwrap_or_default();
        let unified = unified(&path, Some(text.as_bytes()), &disk);
        shown = ActionPreview::Diff { path, old_text_digest: Some(encoding::digest_of(text.as_bytes())), unified };
        effects.push(discarded(&buffer, &context.holder));
    }
    let (state, by) = (context.state.clone(), context.holder.clone());
    let work = Work::new(move |_| {
        let now = buffer.snapshot();
        if now.is_dirty && !discards {
            return Err(way.changed("it has unsaved changes; save_buffer writes them, `discard` drops them"));
        }
        if now.is_dirty && now.version != version {
            return Err(stale(way.written(), now.version));
        }
        state.buffers.shut(&buffer, Some(&by));
        state.panes.closed(buffer.path());
        Ok(json!({ "path": buffer.path(), "discarded": now.is_dirty }))
    });
    Ok((shown, work.affecting(effects)))
}

/// What of a text is thrown away, and whose it is.
fn discarded(buffer: &Buffer, by: &GrantHolder) -> Effect {
    let path = buffer.path().display();
    match buffer.others_than(by).as_slice() {
        [] => Effect::Loss { what: format!("{path}: unsaved text is thrown away"), whose: LossOwner::Own },
        others => {
            let what = format!("{path}: unsaved text of {} is thrown away", others.join(", "));
            Effect::Loss { what, whose: LossOwner::Others }
        }
    }
}

/// The buffer that is open there; nothing is opened for it.
fn opened(context: &TextContext, way: &ResolvedPath) -> Result<Arc<Buffer>, Refusal> {
    let path = way.real_path()?;
    let buffer = context.state.buffers.at(&path);
    buffer.ok_or_else(|| Refusal::new(Code::NotFound, format!("{:?} is not open", way.written())))
}

pub(crate) fn save(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let saves_all = args.flag("all")?;
    let version = args.number("version", 0, u64::MAX)?;
    let overwrites = args.flag("overwrite")?;
    args.done()?;
    let (state, by) = (context.state.clone(), context.holder.clone());
    let saving = |buffer: Arc<Buffer>| PendingSave::of(context, buffer, overwrites);
    match (path, saves_all) {
        (Some(path), false) => {
            let buffer = state.buffers.open(&context.roots.resolve(&path)?)?;
            let saving = Arc::new(saving(buffer)?);
            if let Some(version) = version.filter(|version| *version != saving.now.version) {
                return Err(Refusal {
                    message: format!(
                        "{path:?}: version {version} was to be saved, and it is at {}",
                        saving.now.version
                    ),
                    ..stale(&path, saving.now.version)
                });
            }
            let (shown, picture, effects) = (ActionPreview::plain(saving.title()), saving.clone(), saving.effects());
            let work = Work::new(move |_| saving.write(&state.buffers, &by));
            Ok((shown, work.affecting(effects).pictured(move || picture.shown())))
        }
        (None, true) if version.is_none() => {
            let dirty = state.buffers.all().into_iter().filter(|buffer| buffer.is_dirty());
            let granted = dirty.filter(|buffer| context.roots.holds(buffer.path()));
            let all = Arc::new(granted.map(saving).collect::<Result<Vec<_>, _>>()?);
            let lines = all.iter().map(|saving| saving.title()).collect();
            let shown = ActionPreview::Plain { title: format!("Save {} files", all.len()), lines };
            let effects: Vec<Effect> = all.iter().flat_map(|saving| saving.effects()).collect();
            let picture = (!effects.is_empty()).then(|| all.clone());
            let work = Work::new(move |_| {
                let written = all.iter().map(|saving| {
                    let path = saving.buffer.path();
                    saving.write(&state.buffers, &by).unwrap_or_else(|refusal| {
                        json!({ "path": path, "error": { "code": refusal.code.name(), "message": refusal.message } })
                    })
                });
                Ok(json!({ "saved": written.collect::<Vec<_>>() }))
            });
            let work = work.affecting(effects);
            Ok(match picture {
                Some(all) => (shown, work.pictured(move || shown_together(&all))),
                None => (shown, work),
            })
        }
        _ => Err(wrong("give `path`, or `all`: true")),
    }
}

/// The differences that several saves make: a title alone does not say what gets where.
fn shown_together(all: &[PendingSave]) -> ActionPreview {
    let (mut paths, mut olds, mut differences) = (Vec::new(), String::new(), String::new());
    for saving in all {
        if let ActionPreview::Diff { path, old_text_digest, unified } = saving.shown() {
            paths.push(path);
            olds += &old_text_digest.unwrap_or_default();
            differences += &unified;
        }
    }
    ActionPreview::Diff {
        path: paths.join(", "),
        old_text_digest: Some(encoding::digest_of(olds.as_bytes())),
        unified: differences,
    }
}

/// A text on its way to its file.
struct PendingSave {
    buffer: Arc<Buffer>,
    way: ResolvedPath,
    spot: Spot,
    now: Snapshot,
    /// The file as it is now, if what somebody else has written there is to be replaced.
    overwrites: Option<Option<String>>,
}

impl PendingSave {
    fn of(context: &TextContext, buffer: Arc<Buffer>, overwrites: bool) -> Result<Self, Refusal> {
        // Its own path, not the one that was written: that may have led there over a link.
        let way = context.roots.resolve(&buffer.path().to_string_lossy())?;
        let spot = way.spot()?;
        let now = buffer.snapshot();
        let mut saving = Self { buffer, way, spot, now, overwrites: None };
        if overwrites {
            saving.overwrites = Some(saving.on_disk()?.map(|(bytes, _)| encoding::digest_of(&bytes)));
        }
        Ok(saving)
    }

    /// What becomes of the file, and of what somebody else has written there meanwhile.
    fn effects(&self) -> Vec<Effect> {
        let path = self.buffer.path().display().to_string();
        let there = self.on_disk().ok().flatten().map(|(bytes, _)| bytes);
        let mut effects = vec![on_disk(&path, there.as_deref(), self.now.text.as_bytes())];
        let seen = self.buffer.unsaved().1;
        let is_others = |found: &String| *found != seen && *found != self.now.digest;
        if self.overwrites.as_ref().is_some_and(|found| found.as_ref().is_some_and(is_others)) {
            let what = format!("{path}: what somebody else has written there meanwhile is replaced");
            effects.push(Effect::Loss { what, whose: LossOwner::Others });
        }
        effects
    }

    fn title(&self) -> String {
        format!("Save {}", self.buffer.path().display())
    }

    fn shown(&self) -> ActionPreview {
        let path = self.buffer.path().display().to_string();
        let old = self.on_disk().ok().flatten().map(|(bytes, _)| bytes);
        let unified = unified(&path, old.as_deref(), self.now.text.as_bytes());
        ActionPreview::Diff { path, old_text_digest: old.map(|old| encoding::digest_of(&old)), unified }
    }

    /// Puts the text in the place of the file, at once. Saves of one buffer come one after the other, and an older text never
    /// comes after a newer one.
    fn write(&self, buffers: &Buffers, by: &GrantHolder) -> Result<Value, Refusal> {
        let _turn = self.buffer.saving();
        self.way.still_leads_to(self.spot.folder())?;
        let disk = {
            let state = self.buffer.state();
            if state.is_shut {
                return Err(self.way.changed("it was closed meanwhile"));
            }
            state.disk.clone()
        };
        if disk.version > self.now.version {
            return Err(self.way.changed("a later version of it has been saved meanwhile"));
        }
        let there = self.on_disk()?;
        let seen = there.as_ref().map(|(bytes, _)| encoding::digest_of(bytes));
        let is_as_seen = seen.as_deref() == Some(disk.digest.as_str());
        let is_saved = seen.as_deref() == Some(self.now.digest.as_str());
        // What was to be replaced is what was there when it was looked at, and nothing that came since.
        let is_replaced = self.overwrites.as_ref().is_some_and(|found| *found == seen);
        if !is_as_seen && !is_saved && !is_replaced {
            return Err(self.way.changed(match seen {
                Some(_) => "somebody else has changed the file; `overwrite` replaces what they wrote",
                None => "somebody else has removed the file; `overwrite` makes it again",
            }));
        }
        if !is_saved {
            let bytes = self.now.text.as_bytes();
            buffers.own_writes.writes(self.buffer.path(), &self.now.digest, by);
            let written = match &there {
                Some((_, found)) => self.spot.replace(bytes, found),
                None => self.spot.create(bytes),
            };
            written.map_err(|error| self.way.refusal(error))?;
        }
        let is_dirty = {
            let mut state = self.buffer.state();
            // Its times are too young to tell anything yet: the next look reads it.
            state.disk =
                DiskSide { digest: self.now.digest.clone(), version: self.now.version, stamp: None, is_other: false };
            state.is_dirty()
        };
        if !is_dirty {
            buffers.is_saved(self.buffer.path());
        }
        let data = json!({ "version": self.now.version, "digest": self.now.digest });
        buffers.tell("file_saved", &self.buffer, Some(by), data);
        Ok(json!({
            "path": self.buffer.path(), "version": self.now.version, "digest": self.now.digest,
            "bytes": self.now.text.len(), "is_dirty": is_dirty,
        }))
    }

    /// What there is on the disk.
    fn on_disk(&self) -> Result<Option<(Vec<u8>, FoundEntry)>, Refusal> {
        match self.spot.open_file() {
            Ok((file, found)) => Ok(Some((whole(file, self.way.written())?, found))),
            Err(FolderError::NotFound) => Ok(None),
            Err(error) => Err(self.way.refusal(error)),
        }
    }
}
