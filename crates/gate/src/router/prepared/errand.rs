//! A verb that an editor does. Its paths were found by handle and are sent as they really are; what comes back is sifted.
//!
//! Between that look and the editor's own opening of the path somebody could put a link there: an editor opens by name. So
//! plugins check their folders again.

use std::{path::PathBuf, sync::Arc, time::Duration};

use prism_core::policy::{Code, GrantRoot, Refusal};
use prism_editor::{ActionPreview, ProgressSink, VerbOrder, digest_of, edited_by, protocol::as_path, unified};
use serde_json::{Map, Value, json};

use super::super::{
    EditorRouter, Plugin,
    sieve::{is_granted, sifted},
};

pub(super) struct PluginCall {
    pub(super) order: VerbOrder,
    pub(super) plugin: Arc<Plugin>,
    pub(super) paths: Vec<PathBuf>,
    /// What the editor said it would do, if that was shown.
    pub(super) preview: Option<Value>,
    /// What is saved, of all that is open and unsaved: what was looked at.
    pub(super) saves: Option<Vec<String>>,
}

/// How long a verb may take.
pub(super) const USUAL: Duration = Duration::from_secs(30);
/// How long one may wait for something to come, and what is allowed on top of that.
const MAX_WAIT: Duration = Duration::from_secs(600);
const GRACE: Duration = Duration::from_secs(5);

const CHANGED: &str = "the editor has another version by now; open it again";
const NO_VERSION: &str = "the editor does not say which version it has";

impl PluginCall {
    pub(super) fn new(order: VerbOrder, plugin: Arc<Plugin>, paths: Vec<PathBuf>) -> Self {
        Self { order, plugin, paths, preview: None, saves: None }
    }

    /// The editor has `within`; who waits for it has a little more, so that it is the editor that is too late.
    pub(super) fn deadline(&self) -> Duration {
        self.within() + GRACE
    }

    fn within(&self) -> Duration {
        let said = self.order.args.get("wait_ms").and_then(Value::as_u64).map(Duration::from_millis);
        said.map_or(USUAL, |said| said.min(MAX_WAIT) + USUAL)
    }

    // --- What is shown ---

    /// Draws what will happen from the editor's own text, and binds the errand to it.
    pub(super) async fn shown(&mut self, router: &EditorRouter) -> Result<ActionPreview, Refusal> {
        match self.order.verb.verb {
            "edit_buffer" | "save_buffer" | "write_file" if self.is_about_one_text() => self.shown_text().await,
            "edit_buffer" if self.order.args.contains_key("files") => self.shown_files().await,
            "replace_text" | "apply_quick_fix" | "refactor_symbol" => self.shown_preview().await,
            "delete_file" | "rename_file" | "create_file" => {
                // What these are about is the disk, and the built-in editor knows how to draw that.
                match router.builtin.prepare(self.copied()).await {
                    Ok(prepared) => Ok(prepared.shown()),
                    Err(refusal) if refusal.code == Code::Unsupported => Ok(self.plain()),
                    Err(refusal) => Err(refusal),
                }
            }
            "format_code" => {
                self.bind_version(0).await?;
                Ok(self.plain())
            }
            _ => Ok(self.plain()),
        }
    }

    pub(super) fn is_about_one_text(&self) -> bool {
        let args = &self.order.args;
        self.paths.len() == 1 && !["files", "all", "undo", "redo"].iter().any(|name| args.contains_key(*name))
    }

    async fn shown_text(&mut self) -> Result<ActionPreview, Refusal> {
        let path = self.paths[0].display().to_string();
        let (old, new) = self.texts().await?;
        let old_text_digest = Some(digest_of(old.as_bytes()));
        let unified = unified(&path, Some(old.as_bytes()), new.as_bytes());
        Ok(ActionPreview::Diff { path, old_text_digest, unified })
    }

    /// The text that it is about as it is, and as it will be; and binds the errand to it.
    pub(super) async fn texts(&mut self) -> Result<(String, String), Refusal> {
        let text = self.bind_version(0).await?;
        Ok(match self.order.verb.verb {
            "edit_buffer" => {
                let new = edited_by(&text, &self.order.args)?;
                (text, new)
            }
            "write_file" => {
                (text, self.order.args.get("content").and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            // What is saved is the editor's text; what it replaces is on the disk.
            _ => {
                let file = self.paths[0].clone();
                let disk = tokio::task::spawn_blocking(move || std::fs::read(file)).await;
                let disk = disk.ok().and_then(Result::ok).unwrap_or_default();
                (String::from_utf8_lossy(&disk).into_owned(), text)
            }
        })
    }

    /// Edits of several files, which are made all or none.
    async fn shown_files(&mut self) -> Result<ActionPreview, Refusal> {
        let Some(Value::Array(mut files)) = self.order.args.get("files").cloned() else { return Ok(self.plain()) };
        let (mut paths, mut differences, mut olds) = (Vec::new(), String::new(), String::new());
        for file in &mut files {
            let Some(edit) = file.as_object_mut() else { return Ok(self.plain()) };
            let path = edit.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
            let there = self.ask("open_file", Map::from_iter([("path".to_owned(), path.as_str().into())])).await?;
            let (old, version) = text_of(&there, edit.get("version"))?;
            let version = version.ok_or_else(|| Refusal::new(Code::Failed, NO_VERSION))?;
            differences += &unified(&path, Some(old.as_bytes()), edited_by(&old, edit)?.as_bytes());
            edit.insert("version".to_owned(), version.into());
            olds += &old;
            paths.push(path);
        }
        self.order.args.insert("files".to_owned(), files.into());
        let old_text_digest = Some(digest_of(olds.as_bytes()));
        Ok(ActionPreview::Diff { path: paths.join(", "), old_text_digest, unified: differences })
    }

    /// Asks for the text that the editor has, and has the errand refused if it is another by then.
    async fn bind_version(&mut self, index: usize) -> Result<String, Refusal> {
        let Some(path) = self.paths.get(index) else { return Ok(String::new()) };
        let args = Map::from_iter([("path".to_owned(), path.display().to_string().into())]);
        let there = self.ask("open_file", args).await?;
        let (content, version) = text_of(&there, self.order.args.get("version"))?;
        match (self.order.verb.verb, version) {
            // A file is known by its digest.
            ("write_file", _) => {
                let digest = digest_of(content.as_bytes());
                if self.order.args.get("digest").is_some_and(|bound| !bound.is_null() && *bound != digest) {
                    return Err(Refusal::new(Code::Changed, CHANGED));
                }
                self.order.args.insert("digest".to_owned(), digest.into());
            }
            (_, Some(version)) => {
                self.order.args.insert("version".to_owned(), version.into());
            }
            (_, None) => return Err(Refusal::new(Code::Failed, NO_VERSION)),
        }
        Ok(content)
    }

    /// Has the editor say what it would change.
    async fn shown_preview(&mut self) -> Result<ActionPreview, Refusal> {
        let preview = self.previewed().await?;
        let shown = match (preview["diff"].as_str(), self.plain()) {
            (Some(diff), _) => {
                let files = preview["files"].as_array().into_iter().flatten();
                let mut paths: Vec<&str> = files.filter_map(|file| file["path"].as_str()).collect();
                let named = self.order.args.get("path").and_then(Value::as_str);
                if paths.is_empty() {
                    paths.extend(named);
                }
                // Only the editor knows the texts as they are; what it shows is asked for again before it is done.
                ActionPreview::Diff { path: paths.join(", "), old_text_digest: None, unified: diff.to_owned() }
            }
            (None, ActionPreview::Plain { title, mut lines }) => {
                let pretty = serde_json::to_string_pretty(&preview).unwrap_or_default();
                lines.extend(pretty.lines().map(str::to_owned));
                ActionPreview::Plain { title, lines }
            }
            (None, plain) => plain,
        };
        self.preview = Some(preview);
        Ok(shown)
    }

    pub(super) async fn previewed(&self) -> Result<Value, Refusal> {
        let mut args = self.order.args.clone();
        args.insert("preview".to_owned(), true.into());
        let preview = self.ask(self.order.verb.verb, args).await?;
        refuse_beyond(&preview, &self.order.roots)?;
        sifted(preview, &self.order.roots)
    }

    fn plain(&self) -> ActionPreview {
        let title = format!("{} in {}", self.order.verb.verb, self.plugin.about.kind);
        let line = |(name, value): (&String, &Value)| format!("{name}: {value}");
        ActionPreview::Plain { title, lines: self.order.args.iter().map(line).collect() }
    }

    pub(super) fn copied(&self) -> VerbOrder {
        let VerbOrder { verb, args, roots, holder } = &self.order;
        VerbOrder { verb, args: args.clone(), roots: roots.clone(), holder: holder.clone() }
    }

    // --- The doing ---

    pub(super) async fn run(self, router: &EditorRouter, progress: &ProgressSink) -> Result<Value, Refusal> {
        let result = self.try_run(progress).await;
        router.metrics.plugin_command(result.as_ref().map_or_else(|refusal| refusal.code.name(), |_| "ok"));
        result
    }

    async fn try_run(self, progress: &ProgressSink) -> Result<Value, Refusal> {
        if let Some(shown) = &self.preview
            && self.previewed().await? != *shown
        {
            return Err(Refusal::new(Code::Changed, "the editor would now change something else than was shown"));
        }
        if self.order.verb.verb == "save_buffer" && self.order.args.get("all") == Some(&Value::Bool(true)) {
            return self.save_granted().await;
        }
        let VerbOrder { verb, args, roots, holder } = &self.order;
        let result = self.plugin.call(verb.verb, args.clone(), (holder, roots), self.within(), progress).await?;
        if args.get("preview") == Some(&Value::Bool(true)) {
            refuse_beyond(&result, roots)?;
        }
        let result = sifted(result, roots)?;
        if !result.is_object() {
            return Err(Refusal::new(Code::Failed, "the editor's answer is no object"));
        }
        Ok(result)
    }

    /// Has all unsaved texts saved that are granted. The editor may have others, which are not this holder's to save.
    async fn save_granted(&self) -> Result<Value, Refusal> {
        let mut saved = Vec::new();
        for path in self.saves.iter().flatten() {
            let mut args = self.order.args.clone();
            args.remove("all");
            args.insert("path".to_owned(), path.as_str().into());
            saved.push(match self.ask("save_buffer", args).await {
                Ok(told) => sifted(told, &self.order.roots)?,
                Err(Refusal { code, message, .. }) => {
                    json!({"path": path, "error": {"code": code.name(), "message": message}})
                }
            });
        }
        Ok(json!({ "saved": saved }))
    }

    pub(super) async fn ask(&self, verb: &str, args: Map<String, Value>) -> Result<Value, Refusal> {
        if !self.plugin.can(verb) {
            let why = format!("{} cannot {verb}, so what would happen cannot be shown", self.plugin.about.kind);
            return Err(Refusal::new(Code::Unsupported, why));
        }
        self.plugin.call(verb, args, (&self.order.holder, &self.order.roots), USUAL, &ProgressSink::unseen()).await
    }
}

/// Refuses a change that would reach beyond what was granted: a symbol is used wherever the editor looks, and what would be
/// done elsewhere is not this holder's to see or to do.
fn refuse_beyond(preview: &Value, roots: &[GrantRoot]) -> Result<(), Refusal> {
    let files = preview["files"].as_array().into_iter().flatten();
    let mut paths = files.filter_map(|file| file["path"].as_str());
    if paths.all(|path| as_path(path).is_some_and(|path| is_granted(roots, &path))) {
        return Ok(());
    }
    let why = "it would also change files in folders that were not granted; nothing was changed";
    Err(Refusal::new(Code::OutsideRoot, why))
}

/// The text of an editor's answer and its version, if that is the one that is bound.
fn text_of(there: &Value, bound: Option<&Value>) -> Result<(String, Option<u64>), Refusal> {
    let version = there["version"].as_u64();
    if bound.is_some_and(|bound| !bound.is_null() && version != bound.as_u64()) {
        return Err(Refusal::new(Code::Changed, CHANGED));
    }
    let content = there["content"].as_str().filter(|_| there["encoding"] != "base64");
    let content = content.ok_or_else(|| Refusal::new(Code::BadArguments, "it is no text"))?;
    Ok((content.to_owned(), version))
}
