//! `get_buffers`, `save_buffer`, `close_buffer`.

use std::sync::Arc;

use prism_core::policy::{Code, Refusal};
use prism_os::root::{Found, RootError, Spot};
use serde_json::{Value, json};

use super::{
    Buffers,
    buffer::{Buffer, Disk, Snapshot, stale},
};
use crate::{
    Shown,
    args::{Args, wrong},
    change::unified,
    files::whole,
    ground::Way,
    prepared::Work,
    scene::{Holder, Scene},
    text,
};

pub(crate) fn list(args: Args, scene: &Scene) -> Result<(Shown, Work), Refusal> {
    args.done()?;
    let (desk, ground, holder) = (scene.desk.clone(), scene.ground.clone(), scene.holder.id);
    let work = Work::new(move |_| {
        let active = desk.panes.active(holder);
        let seen = desk.buffers.all().into_iter().filter(|buffer| ground.holds(buffer.path()));
        let buffers: Vec<Value> = seen.map(|buffer| told(&buffer, active.as_deref() == Some(buffer.path()))).collect();
        Ok(json!({ "buffers": buffers, "ui": false }))
    });
    Ok((Shown::plain("List the open buffers"), work))
}

fn told(buffer: &Buffer, is_active: bool) -> Value {
    let now = buffer.snapshot();
    json!({
        "path": buffer.path(), "version": now.version, "is_dirty": now.is_dirty, "digest": now.digest,
        "language": now.language.map(|language| language.id()), "lines": now.text.split_inclusive('\n').count(),
        "is_changed_on_disk": now.is_changed_on_disk, "is_active": is_active,
    })
}

pub(crate) fn close(mut args: Args, scene: &Scene) -> Result<(Shown, Work), Refusal> {
    let path = args.text("path")?;
    let discards = args.flag("discard")?;
    args.done()?;
    let way = scene.ground.way(&path)?;
    let buffer = opened(scene, &way)?;
    let version = buffer.snapshot().version;
    let shown = Shown::plain(format!("Close {}", buffer.path().display()));
    let (desk, by) = (scene.desk.clone(), scene.holder.clone());
    let work = Work::new(move |_| {
        let now = buffer.snapshot();
        if now.is_dirty && !discards {
            return Err(way.changed("it has unsaved changes; save_buffer writes them, `discard` drops them"));
        }
        if now.is_dirty && now.version != version {
            return Err(stale(way.written(), now.version));
        }
        desk.buffers.shut(&buffer, Some(&by));
        desk.panes.closed(buffer.path());
        Ok(json!({ "path": buffer.path(), "discarded": now.is_dirty }))
    });
    Ok((shown, work))
}

/// The buffer that is open there; nothing is opened for it.
fn opened(scene: &Scene, way: &Way) -> Result<Arc<Buffer>, Refusal> {
    let path = way.real_path()?;
    let buffer = scene.desk.buffers.at(&path);
    buffer.ok_or_else(|| Refusal::new(Code::NotFound, format!("{:?} is not open", way.written())))
}

pub(crate) fn save(mut args: Args, scene: &Scene) -> Result<(Shown, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let saves_all = args.flag("all")?;
    let version = args.number("version", 0, u64::MAX)?;
    let overwrites = args.flag("overwrite")?;
    args.done()?;
    let (desk, by) = (scene.desk.clone(), scene.holder.clone());
    let saving = |buffer: Arc<Buffer>| Saving::of(scene, buffer, overwrites);
    match (path, saves_all) {
        (Some(path), false) => {
            let buffer = desk.buffers.open(&scene.ground.way(&path)?)?;
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
            let (shown, picture) = (Shown::plain(saving.title()), saving.clone());
            let work = Work::new(move |_| saving.write(&desk.buffers, &by));
            Ok((shown, work.pictured(move || picture.shown())))
        }
        (None, true) if version.is_none() => {
            let dirty = desk.buffers.all().into_iter().filter(|buffer| buffer.is_dirty());
            let granted = dirty.filter(|buffer| scene.ground.holds(buffer.path()));
            let all = Arc::new(granted.map(saving).collect::<Result<Vec<_>, _>>()?);
            let lines = all.iter().map(|saving| saving.title()).collect();
            let shown = Shown::Plain { title: format!("Save {} files", all.len()), lines };
            let work = Work::new(move |_| {
                let written = all.iter().map(|saving| {
                    let path = saving.buffer.path();
                    saving.write(&desk.buffers, &by).unwrap_or_else(|refusal| {
                        json!({ "path": path, "error": { "code": refusal.code.name(), "message": refusal.message } })
                    })
                });
                Ok(json!({ "saved": written.collect::<Vec<_>>() }))
            });
            Ok((shown, work))
        }
        _ => Err(wrong("give `path`, or `all`: true")),
    }
}

/// A text on its way to its file.
struct Saving {
    buffer: Arc<Buffer>,
    way: Way,
    spot: Spot,
    now: Snapshot,
    overwrites: bool,
}

impl Saving {
    fn of(scene: &Scene, buffer: Arc<Buffer>, overwrites: bool) -> Result<Self, Refusal> {
        // Its own path, not the one that was written: that may have led there over a link.
        let way = scene.ground.way(&buffer.path().to_string_lossy())?;
        let spot = way.spot()?;
        let now = buffer.snapshot();
        Ok(Self { buffer, way, spot, now, overwrites })
    }

    fn title(&self) -> String {
        format!("Save {}", self.buffer.path().display())
    }

    fn shown(&self) -> Shown {
        let path = self.buffer.path().display().to_string();
        let old = self.on_disk().ok().flatten().map(|(bytes, _)| bytes);
        let unified = unified(&path, old.as_deref(), self.now.text.as_bytes());
        Shown::Diff { path, old_text_digest: old.map(|old| text::digest_of(&old)), unified }
    }

    /// Puts the text in the place of the file, at once. Saves of one buffer come one after the other, and an older text never
    /// comes after a newer one.
    fn write(&self, buffers: &Buffers, by: &Holder) -> Result<Value, Refusal> {
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
        let seen = there.as_ref().map(|(bytes, _)| text::digest_of(bytes));
        let is_as_seen = seen.as_deref() == Some(disk.digest.as_str());
        let is_saved = seen.as_deref() == Some(self.now.digest.as_str());
        if !is_as_seen && !is_saved && !self.overwrites {
            return Err(self.way.changed(match seen {
                Some(_) => "somebody else has changed the file; `overwrite` replaces what they wrote",
                None => "somebody else has removed the file; `overwrite` makes it again",
            }));
        }
        if !is_saved {
            let bytes = self.now.text.as_bytes();
            buffers.deeds.writes(self.buffer.path(), &self.now.digest, by);
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
                Disk { digest: self.now.digest.clone(), version: self.now.version, stamp: None, is_other: false };
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
    fn on_disk(&self) -> Result<Option<(Vec<u8>, Found)>, Refusal> {
        match self.spot.open_file() {
            Ok((file, found)) => Ok(Some((whole(file, self.way.written())?, found))),
            Err(RootError::NotFound) => Ok(None),
            Err(error) => Err(self.way.refusal(error)),
        }
    }
}
