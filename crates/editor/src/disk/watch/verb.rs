//! `watch_file`: to be told of what becomes of one file, ignored or not, there or not yet.

use std::path::Path;

use prism_core::policy::Refusal;
use prism_os::root::FileKind;
use serde_json::json;

use super::WatchedFile;
use crate::{args::Args, disk::watch::WatchContext, prepared::Work, roots::place, shown::ActionPreview};

pub(crate) fn watch(mut args: Args, context: &WatchContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let stops = args.flag("stop")?;
    args.done()?;
    let way = context.roots.resolve(&path)?;
    let spot = way.spot()?;
    if spot.look().map_err(|error| way.refusal(error))?.is_some_and(|found| found.kind == FileKind::Folder) {
        return Err(way.wrong("it is a folder; what changes in it is told to who asks for events"));
    }
    let place = place(spot.folder(), &path).join(spot.name());
    let folder = spot.folder().beneath(Path::new("")).map_err(|error| way.refusal(error))?;
    let context = context.clone();
    let title = if stops { "Watch no longer" } else { "Watch" };
    let shown = ActionPreview::plain(format!("{title} {}", place.display()));
    let work = Work::new(move |_| {
        let watched = (!stops).then_some(WatchedFile { folder, roots: context.roots });
        context.state.watch_file(context.holder.id, place.clone(), watched)?;
        Ok(json!({ "path": place, "is_watched": !stops }))
    });
    Ok((shown, work))
}
