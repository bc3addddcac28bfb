//! Files as a whole: open, create, write. What becomes of names is in `names.rs`, parts of a text are edited in `text`.

use std::path::Path;

use prism_core::policy::{Code, Effect, EffectTarget, Refusal};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::{Args, wrong},
    disk::change::{self, ReplacedFile},
    encoding,
    prepared::Work,
    shown::ActionPreview,
    text::{
        TextContext,
        buffers::{Buffer, FileContent},
    },
};

pub(crate) fn open(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let offset = args.number("offset", 0, u64::from(u32::MAX))?.unwrap_or(0);
    let limit = args.number("limit", 1, u64::from(u32::MAX))?;
    args.done()?;
    let state = context.state.clone();
    let looked = state.buffers.look(&context.roots.resolve(&path)?)?;
    let part = (offset as usize, limit.map(|limit| limit as usize));
    let work = Work::new(move |_| {
        Ok(match &looked {
            FileContent::Text(buffer) => opened(buffer, part),
            FileContent::Other { path, bytes } => json!({
                "path": path, "bytes": bytes.len(), "digest": encoding::digest_of(bytes), "encoding": "base64",
                "content": encoding::to_base64(bytes), "version": null, "is_dirty": false, "language": null,
            }),
        })
    });
    Ok((ActionPreview::plain(format!("Read {path}")), work))
}

pub(crate) fn create(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let content = args.content("content")?;
    let makes_parents = args.flag("parents")?;
    let kind = args.maybe_text("kind")?;
    args.done()?;
    let is_folder = match kind.as_deref() {
        None | Some("file") => false,
        Some("folder") if content.is_some() => return Err(wrong("a folder has no `content`")),
        Some("folder") => true,
        Some(other) => return Err(wrong(format!("`kind` is \"file\" or \"folder\", not {other:?}"))),
    };
    let way = context.roots.resolve(&path)?;
    let nearest = way.nearest()?;
    if nearest.is_missing_folders() && !makes_parents {
        let message = format!("{path:?}: the folder for it is not there; `parents` makes it");
        return Err(Refusal::new(Code::NotFound, message));
    }
    if nearest.is_taken(&way)? {
        return Err(way.wrong("it is already there; write_file and edit_buffer change what is there"));
    }
    if !is_folder {
        return change::creation(way, nearest, content.unwrap_or_default(), context);
    }
    let path = nearest.path();
    let shown = ActionPreview::plain(format!("Make the folder {path}"));
    let effect = Effect::Name { path: path.clone(), what: EffectTarget::NewFolder };
    let work = Work::new(move |_| {
        nearest.make_way(&way)?.create_folder().map_err(|error| change::appeared(&way, error))?;
        Ok(json!({ "path": path }))
    });
    Ok((shown, work.affecting(vec![effect])))
}

pub(crate) fn write(mut args: Args, context: &TextContext) -> Result<(ActionPreview, Work), Refusal> {
    let path = args.text("path")?;
    let content = args.content("content")?.ok_or_else(|| wrong("`content` is missing: a string"))?;
    let made_for = args.maybe_text("digest")?;
    args.done()?;
    ReplacedFile::open(context.roots.resolve(&path)?, made_for.as_deref())?.replaced_by(content, context)
}

/// A text, or a part of it, as `open_file` gives it.
#[derive(Serialize)]
struct OpenedText<'a> {
    path: &'a Path,
    bytes: usize,
    digest: &'a str,
    encoding: &'static str,
    lines: usize,
    version: u64,
    is_dirty: bool,
    language: Option<&'static str>,
    content: String,
    /// The first line of a part, and whether there is more.
    #[serde(flatten)]
    part: Option<TextWindow>,
}

#[derive(Serialize)]
struct TextWindow {
    offset: usize,
    is_partial: bool,
}

fn opened(buffer: &Buffer, (offset, limit): (usize, Option<usize>)) -> Value {
    let now = buffer.snapshot();
    let text = &*now.text;
    let lines = text.split_inclusive('\n').count();
    let (content, part) = if offset == 0 && limit.is_none() {
        (text.to_owned(), None)
    } else {
        let end = limit.map_or(lines, |limit| lines.min(offset.saturating_add(limit)));
        let part = text.split_inclusive('\n').skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
        (part, Some(TextWindow { offset, is_partial: offset > 0 || end < lines }))
    };
    json!(OpenedText {
        path: buffer.path(),
        bytes: text.len(),
        digest: &now.digest,
        encoding: "utf-8",
        lines,
        version: now.version,
        is_dirty: now.is_dirty,
        language: now.language.map(|language| language.id()),
        content,
        part,
    })
}
