//! Panes, cursors, selections and viewports: of each holder its own, as there is no screen. They are state and nothing more,
//! and every answer says so (`ui: false`).

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prism_core::policy::{Code, Refusal};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    prepared::Work,
    shown::ActionPreview,
    text::{
        TextContext,
        buffers::Buffer,
        edit::{Position, Span, TextLines},
    },
};

/// What holders look at.
#[derive(Debug, Default)]
pub(crate) struct Panes(Mutex<HashMap<u128, HolderView>>);

/// What one holder looks at.
#[derive(Debug, Default)]
struct HolderView {
    panes: Vec<TextPane>,
    active: usize,
    next: u64,
    spots: HashMap<PathBuf, ViewSpot>,
}

#[derive(Clone, Debug)]
struct TextPane {
    id: u64,
    path: PathBuf,
    direction: Option<&'static str>,
}

/// A pane, as results have it.
#[derive(Serialize)]
struct ShownPane {
    id: u64,
    path: PathBuf,
    direction: Option<&'static str>,
    is_active: bool,
}

/// Where a holder is in a text. Lines and UTF-16 units from zero.
#[derive(Clone, Copy, Debug, Default)]
struct ViewSpot {
    cursor: Position,
    selection: Option<Span>,
    viewport: Option<(u64, u64)>,
}

/// Panes of one holder. Beyond it none is split.
const MAX_PANES: usize = 16;
/// Texts that it is remembered of where a holder is in them. Beyond it, that of the others is forgotten.
const MAX_SPOTS: usize = 256;

pub(crate) fn switch(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    args.done()?;
    let buffer = context.state.buffers.open(&context.roots.resolve(&path)?)?;
    let (state, by) = (context.state.clone(), context.holder.clone());
    let work = Work::new(move |_| {
        let pane = state.panes.with(by.id, |view| view.show(buffer.path()));
        let data = json!({ "pane": pane, "by": by.name });
        state.editor.happenings.tell_of("tab_switched", Some(buffer.path()), by.id, data);
        Ok(json!({ "path": buffer.path(), "pane": pane, "is_active": true, "ui": false }))
    });
    Ok((ActionPreview::plain(format!("Switch to {path}")), work))
}

pub(crate) fn split(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    let direction = match args.maybe_text("direction")?.as_deref() {
        None | Some("right") => "right",
        Some("down") => "down",
        Some(other) => return Err(wrong(format!("`direction` is \"right\" or \"down\", not {other:?}"))),
    };
    args.done()?;
    let buffer = path.map(|path| context.state.buffers.open(&context.roots.resolve(&path)?)).transpose()?;
    let (state, by) = (context.state.clone(), context.holder.clone());
    let work = Work::new(move |_| {
        let split = state.panes.with(by.id, |view| view.split(buffer.as_ref().map(|buffer| buffer.path()), direction));
        let (pane, panes) = split?;
        let path = panes.iter().find(|shown| shown.id == pane).map(|shown| shown.path.as_path());
        let data = json!({ "pane": pane, "direction": direction, "by": by.name });
        state.editor.happenings.tell_of("pane_split", path, by.id, data);
        Ok(json!({ "pane": pane, "panes": panes, "ui": false }))
    });
    Ok((ActionPreview::plain("Split the pane"), work))
}

pub(crate) fn cursor(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    args.done()?;
    let (state, holder, buffer) = (context.state.clone(), context.holder.id, looked_at(context, path)?);
    let work = Work::new(move |_| {
        let (line, character) = within(&buffer, state.panes.spot(holder, buffer.path()).cursor);
        let position = json!({ "line": line, "character": character });
        Ok(json!({ "path": buffer.path(), "position": position, "ui": false }))
    });
    Ok((ActionPreview::plain("Tell where the cursor is"), work))
}

pub(crate) fn set_cursor(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let position = args.position("position")?.ok_or_else(|| wrong("`position` is missing: {line, character}"))?;
    let selection = args.range("selection")?;
    args.done()?;
    let buffer = context.state.buffers.open(&context.roots.resolve(&path)?)?;
    let snapshot = buffer.snapshot();
    let lines = TextLines::of(&snapshot.text);
    for place in [Some(position), selection.map(|range| range.0), selection.map(|range| range.1)].into_iter().flatten()
    {
        lines.offset(place).map_err(wrong)?;
    }
    let (state, by) = (context.state.clone(), context.holder.clone());
    let work = Work::new(move |_| {
        let cursor = within(&buffer, position);
        state.panes.with(by.id, |view| {
            view.show(buffer.path());
            let spot = view.spot(buffer.path());
            (spot.cursor, spot.selection) = (cursor, selection);
        });
        let data = json!({ "position": place(cursor), "by": by.name });
        state.editor.happenings.tell_of("cursor_moved", Some(buffer.path()), by.id, data);
        if let Some(range) = selection {
            let data = json!({ "range": range_json(range), "by": by.name });
            state.editor.happenings.tell_of("selection_changed", Some(buffer.path()), by.id, data);
        }
        Ok(json!({ "path": buffer.path(), "position": place(cursor), "ui": false }))
    });
    Ok((ActionPreview::plain(format!("Move the cursor in {path}")), work))
}

pub(crate) fn selection(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.maybe_text("path")?;
    args.done()?;
    let (state, holder, buffer) = (context.state.clone(), context.holder.id, looked_at(context, path)?);
    let work = Work::new(move |_| {
        let spot = state.panes.spot(holder, buffer.path());
        let text = buffer.snapshot().text;
        let lines = TextLines::of(&text);
        // The text may be shorter by now; what is left of the selection counts.
        let range = spot.selection.unwrap_or((spot.cursor, spot.cursor));
        let range = (lines.nearest(range.0), lines.nearest(range.1));
        let chosen = match (lines.offset(range.0), lines.offset(range.1)) {
            (Ok(start), Ok(end)) if start <= end => &text[start..end],
            _ => "",
        };
        Ok(json!({ "path": buffer.path(), "range": range_json(range), "text": chosen, "ui": false }))
    });
    Ok((ActionPreview::plain("Tell what is selected"), work))
}

pub(crate) fn viewport(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let first = args.number("first_line", 0, u64::from(u32::MAX))?;
    let last = args.number("last_line", 0, u64::from(u32::MAX))?;
    args.done()?;
    if first.zip(last).is_some_and(|(first, last)| first > last) {
        return Err(wrong("`first_line` comes after `last_line`"));
    }
    /// Lines of a screen that nobody has told the height of.
    const SCREEN: u64 = 50;
    let buffer = context.state.buffers.open(&context.roots.resolve(&path)?)?;
    let (state, by) = (context.state.clone(), context.holder.clone());
    let work = Work::new(move |_| {
        let end = TextLines::of(&buffer.snapshot().text).count() as u64 - 1;
        let known = state.panes.spot(by.id, buffer.path()).viewport;
        let first = first.or(last.map(|last| last.saturating_sub(SCREEN - 1))).or(known.map(|known| known.0));
        let first = first.unwrap_or(0).min(end);
        let last = last.unwrap_or(first + SCREEN - 1).clamp(first, end.max(first));
        state.panes.with(by.id, |view| view.spot(buffer.path()).viewport = Some((first, last)));
        if known != Some((first, last)) {
            let data = json!({ "first_line": first, "last_line": last, "by": by.name });
            state.editor.happenings.tell_of("viewport_changed", Some(buffer.path()), by.id, data);
        }
        Ok(json!({ "path": buffer.path(), "first_line": first, "last_line": last, "ui": false }))
    });
    Ok((ActionPreview::plain(format!("Scroll {path}")), work))
}

/// The text that is named, or else the one that the holder looks at.
fn looked_at(context: &TextContext, path: Option<String>) -> Result<Arc<Buffer>, Refusal> {
    let path = match path {
        Some(path) => path,
        None => match context.state.panes.active(context.holder.id) {
            Some(path) => path.to_string_lossy().into_owned(),
            None => {
                return Err(Refusal::new(Code::NotFound, "no buffer is active; name one by `path`, or switch_buffer"));
            }
        },
    };
    context.state.buffers.open(&context.roots.resolve(&path)?)
}

fn within(buffer: &Buffer, place: Position) -> Position {
    TextLines::of(&buffer.snapshot().text).nearest(place)
}

fn place((line, character): Position) -> Value {
    json!({ "line": line, "character": character })
}

fn range_json((start, end): Span) -> Value {
    json!({ "start": place(start), "end": place(end) })
}

// === impl Panes ===

impl Panes {
    /// What a holder looks at.
    pub(crate) fn active(&self, holder: u128) -> Option<PathBuf> {
        let views = self.views();
        let view = views.get(&holder)?;
        view.panes.get(view.active).map(|pane| pane.path.clone())
    }

    /// Takes a buffer that is closed out of all panes.
    pub(crate) fn closed(&self, path: &Path) {
        for view in self.views().values_mut() {
            let active = view.panes.get(view.active).map(|pane| pane.id);
            view.panes.retain(|pane| pane.path != path);
            view.active = view.panes.iter().position(|pane| Some(pane.id) == active).unwrap_or(0);
            view.spots.remove(path);
        }
    }

    pub(crate) fn release(&self, holder: u128) {
        self.views().remove(&holder);
    }

    fn spot(&self, holder: u128, path: &Path) -> ViewSpot {
        self.views().get(&holder).and_then(|view| view.spots.get(path)).copied().unwrap_or_default()
    }

    fn with<T>(&self, holder: u128, with: impl FnOnce(&mut HolderView) -> T) -> T {
        with(self.views().entry(holder).or_default())
    }

    fn views(&self) -> MutexGuard<'_, HashMap<u128, HolderView>> {
        // Nothing panics while it holds the lock, and each change of a view is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl HolderView ===

impl HolderView {
    /// Shows a text in the pane that has it, or else in the active one. Returns the pane.
    fn show(&mut self, path: &Path) -> u64 {
        if let Some(at) = self.panes.iter().position(|pane| pane.path == path) {
            self.active = at;
        } else if let Some(pane) = self.panes.get_mut(self.active) {
            path.clone_into(&mut pane.path);
        } else {
            self.add(path.to_owned(), None);
        }
        self.panes[self.active].id
    }

    fn split(&mut self, path: Option<&Path>, direction: &'static str) -> Result<(u64, Vec<ShownPane>), Refusal> {
        let path = path.or(self.panes.get(self.active).map(|pane| pane.path.as_path()));
        let path = path.ok_or_else(|| wrong("no buffer is active; name one by `path`"))?.to_owned();
        if self.panes.len() >= MAX_PANES {
            return Err(wrong(format!("there are {MAX_PANES} panes already; close a buffer to close its panes")));
        }
        let direction = (!self.panes.is_empty()).then_some(direction);
        let id = self.add(path, direction);
        let shown = |(at, pane): (usize, &TextPane)| ShownPane {
            id: pane.id,
            path: pane.path.clone(),
            direction: pane.direction,
            is_active: at == self.active,
        };
        Ok((id, self.panes.iter().enumerate().map(shown).collect()))
    }

    fn add(&mut self, path: PathBuf, direction: Option<&'static str>) -> u64 {
        self.next += 1;
        self.panes.push(TextPane { id: self.next, path, direction });
        self.active = self.panes.len() - 1;
        self.next
    }

    fn spot(&mut self, path: &Path) -> &mut ViewSpot {
        if self.spots.len() >= MAX_SPOTS && !self.spots.contains_key(path) {
            self.spots.clear();
        }
        self.spots.entry(path.to_owned()).or_default()
    }
}
