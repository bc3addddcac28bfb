//! The memory as an MCP server: four tools (W-01, W-03). What they do is in the files beside this one.
//!
//! The descriptions are what a model goes by. Each optional argument says that it may be left out and what happens
//! then: in the tool that this one takes the place of, an argument that sounded needed was always filled in.

mod arguments;
#[cfg(test)]
mod tests;

use std::{
    error::Error,
    path::{Path, PathBuf},
    sync::Arc,
};

use prism_core::mcp::level::LogLevel;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::arguments::{ForgetNoteArguments, GetContextArguments, RememberArguments, SearchNotesArguments};
use super::{ContextQuery, IndexProgress, NewNote, NoteScope, Search, WorkspaceError, WorkspaceMemory};
use prism_mcp::{
    folder,
    kit::{BuiltinServer, CallFailure, ServerCall, ToolHints, ToolReply, TypedTool},
};

pub const NAME: &str = "workspace";

/// Makes the server for the workspace at `root`, with its index in Prism's folder, `home`. A root that is missing is
/// an error of every call, and so is none.
#[must_use]
pub fn server(root: Option<&Path>, home: &Path) -> BuiltinServer {
    let memory = Arc::new(WorkspaceMemory::new(root, home));
    BuiltinServer::new(NAME, "Workspace memory", INSTRUCTIONS)
        .tool(GetContextTool(Arc::clone(&memory)))
        .tool(RememberTool(Arc::clone(&memory)))
        .tool(SearchNotesTool(Arc::clone(&memory)))
        .tool(ForgetNoteTool(memory))
}

const INSTRUCTIONS: &str = "\
The memory of this workspace: decisions, lessons, plans and notes that people and agents have written down as Markdown \
files. Call workspace_get_context once when you start working here; it needs no arguments. Look things up with \
workspace_search before you decide something anew. When something was decided or learnt that the next agent should know, \
write it down with workspace_remember. Every entry names its file in _meta.document_path, relative to `root`: read it \
there for the whole text.";

struct GetContextTool(Arc<WorkspaceMemory>);
struct RememberTool(Arc<WorkspaceMemory>);
struct SearchNotesTool(Arc<WorkspaceMemory>);
struct ForgetNoteTool(Arc<WorkspaceMemory>);

impl TypedTool for GetContextTool {
    type Arguments = GetContextArguments;
    const NAME: &'static str = "workspace_get_context";
    const TITLE: &'static str = "Get the workspace's context";
    const DESCRIPTION: &'static str = "\
Tells what to know on arrival in this workspace: its overview in full, a tree of its folders, and the decisions, lessons, \
recent plans and notes by their front matter, newest first. Call it without arguments to begin with; each of them only \
narrows or widens the answer. The answer is bounded and says in `left_out` what is missing and how to get it.";
    const HINTS: ToolHints = ToolHints::READS;

    async fn call(&self, asked: GetContextArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let context = ContextQuery {
            scope: scope(asked.workspace, asked.domain, asked.repository),
            topics: asked.topics.into(),
            only_topics: asked.include_defaults == Some(false),
            statuses: asked.filter_status.into(),
            tags: asked.filter_tags.into(),
            categories: asked.filter_category.into(),
            tier: asked.tier.unwrap_or_default(),
        };
        run(&self.0, call, Self::NAME, move |memory, progress| memory.context(&context, progress)).await
    }
}

impl TypedTool for RememberTool {
    type Arguments = RememberArguments;
    const NAME: &'static str = "workspace_remember";
    const TITLE: &'static str = "Remember something";
    const DESCRIPTION: &'static str = "\
Writes one new Markdown file into the workspace's memory, for the next agent and for people to read. Nothing that is there \
is written over. Only `title` and `text` are needed. The answer names the file in _meta.document_path.";
    const HINTS: ToolHints = ToolHints::ADDS;

    async fn call(&self, told: RememberArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let note = NewNote {
            title: told.title,
            text: told.text,
            kind: told.kind.unwrap_or_default(),
            scope: scope(told.workspace, told.domain, told.repository),
            topic: given(told.topic).map(|topic| topic.trim_start_matches('_').to_owned()),
            tags: told.tags.into(),
            status: given(told.status),
        };
        run(&self.0, call, Self::NAME, move |memory, progress| memory.remember(&note, progress)).await
    }
}

impl TypedTool for SearchNotesTool {
    type Arguments = SearchNotesArguments;
    const NAME: &'static str = "workspace_search";
    const TITLE: &'static str = "Search the workspace's memory";
    const DESCRIPTION: &'static str = "\
Finds notes by their words, best first, each with a snippet in which «» marks what was found. Words in titles and tags \
count for more. Only `query` is needed: words, \"a phrase\", -without, begin*; parts of identifiers are found too. If no \
note has all words, those that have some are returned.";
    const HINTS: ToolHints = ToolHints::READS;

    async fn call(&self, sought: SearchNotesArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        let search = Search {
            query: sought.query,
            scope: scope(sought.workspace, sought.domain, sought.repository),
            kind: sought.kind.map(|kind| kind.as_str().to_owned()),
            tags: sought.tags.into(),
            limit: sought.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        run(&self.0, call, Self::NAME, move |memory, progress| memory.search(&search, progress)).await
    }
}

impl TypedTool for ForgetNoteTool {
    type Arguments = ForgetNoteArguments;
    const NAME: &'static str = "workspace_forget";
    const TITLE: &'static str = "Forget a note";
    const DESCRIPTION: &'static str = "\
Takes one note out of the workspace's memory: its file is moved to Prism's own folder. The answer says how a person can \
undo that.";
    const HINTS: ToolHints =
        ToolHints { read_only: Some(false), destructive: Some(true), open_world: Some(false), ..ToolHints::NONE };

    async fn call(&self, doomed: ForgetNoteArguments, call: &ServerCall) -> Result<ToolReply, CallFailure> {
        run(&self.0, call, Self::NAME, move |memory, progress| memory.forget(&doomed.document_path, progress)).await
    }
}

/// Runs work that blocks, and passes on how far its indexing is. Cancelled, it still ends what it began: an index half
/// up to date would only be work for the next call.
async fn run(
    memory: &Arc<WorkspaceMemory>,
    call: &ServerCall,
    tool: &str,
    work: impl FnOnce(&WorkspaceMemory, &mut dyn FnMut(IndexProgress)) -> Result<Value, WorkspaceError> + Send + 'static,
) -> Result<ToolReply, CallFailure> {
    let folders = folders(memory, call).await?;
    let memory = Arc::clone(memory);
    let (tell, mut told) = watch::channel(IndexProgress { done: 0, total: 0 });
    let mut working = tokio::task::spawn_blocking(move || {
        memory.admit(&folders)?;
        work(&memory, &mut |progress| {
            if is_worth_telling(progress) {
                tell.send_replace(progress);
            }
        })
    });
    let outcome = loop {
        tokio::select! {
            outcome = &mut working => break outcome,
            Ok(()) = told.changed() => {
                let IndexProgress { done, total } = *told.borrow_and_update();
                call.progress(done as u64, Some(total as u64), "indexing notes");
            }
        }
    };
    match outcome {
        Ok(Ok(answer)) => {
            // What was stored or taken out, and how much had to be read for it: for who wants to know that.
            let path = &answer["_meta"]["document_path"];
            let indexed = told.borrow().done;
            let done = json!({"done": tool, "document_path": path, "notes_indexed": indexed});
            call.log(LogLevel::Debug, Some(NAME), done, None);
            Ok(ToolReply::structured(answer))
        }
        Ok(Err(trouble)) => Err(CallFailure::trouble(in_full(&trouble))),
        Err(_) => Err(CallFailure::trouble("the call ended by an error in Prism itself; its log says more")),
    }
}

/// Where the caller works, as far as that is known: the workspace that its `prism stdio` was started in, or else the roots
/// that it has. On a pipe of our own the person has said which memory it is.
async fn folders(memory: &WorkspaceMemory, call: &ServerCall) -> Result<Vec<PathBuf>, CallFailure> {
    let Some(mark) = call.caller_mark() else { return Ok(Vec::new()) };
    if let Some(workspace) = mark.folder.and_then(|folder| memory.workspace_of(&folder)) {
        return Ok(vec![workspace]);
    }
    if !call.client()["capabilities"]["roots"].is_object() {
        return Ok(Vec::new());
    }
    let told = call.ask("roots", "roots/list", Value::Null).await?;
    let roots = told["roots"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(roots.iter().filter_map(|root| folder::of_uri(root["uri"].as_str()?)).collect())
}

/// A few notes are indexed before anybody could look; of many, every hundredth part is told.
fn is_worth_telling(IndexProgress { done, total }: IndexProgress) -> bool {
    total >= 500 && (done == total || done % (total / 100).max(1) == 0)
}

/// Returns an error and its causes in one line.
fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn scope(workspace: Option<String>, domain: Option<String>, repository: Option<String>) -> NoteScope {
    NoteScope { workspace: given(workspace), domain: given(domain), repository: given(repository) }
}

/// An empty text is how some clients leave an argument out.
fn given(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
