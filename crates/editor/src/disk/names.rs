//! What becomes of names: delete and rename. A link is treated as itself, never as what it points to.

use std::path::Path;

use prism_core::policy::{Effect, EffectTarget, LossOwner, Refusal};
use prism_os::root::{FileKind, FolderError, FoundEntry, RenameMode, Spot};
use serde_json::json;

use crate::{
    args::Args, disk::change::path_of, prepared::Work, roots::ResolvedPath, shown::ActionPreview, text::TextContext,
};

pub(crate) fn delete(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    args.done()?;
    let way = context.roots.resolve(&path)?;
    let (spot, found) = existing(&way)?;
    if found.kind == FileKind::Folder && !is_empty(&spot).map_err(|error| way.refusal(error))? {
        return Err(way.wrong("the folder is not empty; delete what is in it first"));
    }
    let path = path_of(&spot, &way);
    let (state, by) = (context.state.clone(), context.holder.clone());
    state.buffers.refuse_dirty(Path::new(&path))?;
    let shown = ActionPreview::Delete { path: path.clone(), what: found.kind.name(), bytes: found.bytes };
    let effect = Effect::Name { path: path.clone(), what: named(found) };
    let work = Work::new(move |_| {
        state.buffers.refuse_dirty(Path::new(&path))?;
        still(&way, &spot, Some(found))?;
        state.buffers.own_writes.removes(Path::new(&path), &by);
        spot.remove(found.kind).map_err(|error| match error {
            FolderError::NotEmpty | FolderError::NotFound | FolderError::IsFolder | FolderError::NotAFolder => {
                way.changed("it has changed since it was shown")
            }
            error => way.refusal(error),
        })?;
        state.buffers.removed(Path::new(&path));
        Ok(json!({ "path": path, "what": found.kind.name() }))
    });
    Ok((shown, work.affecting(vec![effect])))
}

fn named(found: FoundEntry) -> EffectTarget {
    if found.kind == FileKind::Folder { EffectTarget::Folder } else { EffectTarget::File }
}

pub(crate) fn rename(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let new_path = args.text("new_path")?;
    let replaces = args.flag("overwrite")?;
    args.done()?;
    let (way, to_way) = (context.roots.resolve(&path)?, context.roots.resolve(&new_path)?);
    let (spot, found) = existing(&way)?;
    let to = to_way.spot()?;
    let taken = to.look().map_err(|error| to_way.refusal(error))?;
    if taken.is_some() && !replaces {
        return Err(to_way.wrong("it is already there; `overwrite` replaces it"));
    }
    let (from, new) = (path_of(&spot, &way), path_of(&to, &to_way));
    let (state, by) = (context.state.clone(), context.holder.clone());
    // What the new name held is lost, and with it no text that somebody has not saved.
    state.buffers.refuse_dirty(Path::new(&new))?;
    let shown = ActionPreview::Rename { from: from.clone(), to: new.clone(), replaces: taken.is_some() };
    let moves = |path: &String| Effect::Name { path: path.clone(), what: named(found) };
    let mut effects = vec![moves(&from), moves(&new)];
    // it is a deletion, whatever it is called.
    if taken.is_some() {
        effects.push(Effect::Loss {
            what: format!("{new} is replaced, and what it holds is lost"),
            whose: LossOwner::Others,
        });
    }
    let work = Work::new(move |_| {
        still(&way, &spot, Some(found))?;
        still(&to_way, &to, taken)?;
        // What was free when it was shown stays untouched if it is taken by now, even in this moment.
        let clobber = if taken.is_some() { RenameMode::Replace } else { RenameMode::Refuse };
        state.buffers.own_writes.moves(Path::new(&from), Path::new(&new), &by);
        spot.rename(&to, clobber).map_err(|error| match error {
            FolderError::Exists => to_way.changed("somebody else has made it meanwhile"),
            FolderError::NotFound => way.changed("it has changed since it was shown"),
            // These are about the new name.
            error @ (FolderError::NotEmpty | FolderError::IsFolder | FolderError::NotAFolder) => to_way.refusal(error),
            error => way.refusal(error),
        })?;
        state.buffers.removed(Path::new(&new));
        state.buffers.renamed(Path::new(&from), Path::new(&new));
        Ok(json!({ "path": from, "new_path": new }))
    });
    Ok((shown, work.affecting(effects)))
}

fn existing(way: &ResolvedPath) -> Result<(Spot, FoundEntry), Refusal> {
    let spot = way.spot()?;
    let found = spot.look().map_err(|error| way.refusal(error))?;
    let found = found.ok_or_else(|| way.refusal(FolderError::NotFound))?;
    Ok((spot, found))
}

fn is_empty(spot: &Spot) -> Result<bool, FolderError> {
    Ok(spot.open_folder()?.entries()?.next().is_none())
}

/// Refuses if what is there by a name is another than when it was shown.
fn still(way: &ResolvedPath, spot: &Spot, found: Option<FoundEntry>) -> Result<(), Refusal> {
    way.still_leads_to(spot.folder())?;
    let now = spot.look().map_err(|error| way.refusal(error))?;
    if now == found { Ok(()) } else { Err(way.changed("it has changed since it was shown")) }
}
