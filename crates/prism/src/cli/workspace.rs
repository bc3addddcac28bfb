//! `prism workspace`: the memory of a workspace, for people and scripts, and as an MCP server on stdio (W-03).

mod show;

use std::{
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, bail};
use prism_api::workspace::{IndexAnswer, NoteRestored};
use serde_json::{Value, json};
use tracing::level_filters::LevelFilter;

use super::{bar::ProgressBar, say};
use crate::words::one_of;
use prism_config::{Env, home::Home};
use prism_mcp::kit;
use prism_telemetry::DaemonLog;
use prism_workspace::{
    self as memory, ContextQuery, ContextTier, Forgotten, IndexProgress, NewNote, NoteKind, NoteListQuery, NoteScope,
    Search, WorkspaceError, WorkspaceMemory,
};

/// The memory of a workspace
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  prism workspace context
  prism workspace search \"why sqlite\"
  prism workspace remember Ports \"7420 is ours\" --kind decision
  prism workspace list --json")]
pub struct WorkspaceArgs {
    #[command(subcommand)]
    command: WorkspaceCommand,
    /// Folder of the workspace [default: $PRISM_WORKSPACE, or the nearest folder upwards with .prism, .git or
    /// resources/workspaces]
    #[arg(long, value_name = "DIR", global = true)]
    root: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum WorkspaceCommand {
    /// Serve the memory as an MCP server on stdio
    Mcp,
    /// Tell what to know on arrival
    Context {
        #[command(flatten)]
        place: NoteScopeArgs,
        /// Topics to list besides, as in a,b
        #[arg(long, value_delimiter = ',')]
        topics: Vec<String>,
        /// List the topics alone
        #[arg(long)]
        only_topics: bool,
        /// Only notes with one of these statuses
        #[arg(long, value_delimiter = ',')]
        status: Vec<String>,
        /// Only notes with one of these tags
        #[arg(long, value_delimiter = ',')]
        tags: Vec<String>,
        /// Only notes of one of these categories
        #[arg(long, value_delimiter = ',')]
        category: Vec<String>,
        /// How much of each note
        #[arg(long, value_parser = one_of(&ContextTier::ALL, ContextTier::name), default_value = ContextTier::default().name())]
        tier: ContextTier,
    },
    /// Search the notes
    Search {
        /// Words, "a phrase", begin*; -without goes behind --
        #[arg(required = true)]
        query: Vec<String>,
        #[command(flatten)]
        place: NoteScopeArgs,
        #[command(flatten)]
        choice: NoteFilterArgs,
        /// How many to show
        #[arg(long, default_value_t = 10)]
        limit: usize,
    },
    /// Write a note
    Remember {
        /// What it is called
        title: String,
        /// What it says; left out, it is read from stdin
        text: Option<String>,
        #[command(flatten)]
        place: NoteScopeArgs,
        /// What it is
        #[arg(long, value_parser = one_of(&NoteKind::ALL, NoteKind::name), default_value = NoteKind::default().name())]
        kind: NoteKind,
        /// Topic whose folder it goes to
        #[arg(long)]
        topic: Option<String>,
        /// Tags, as in a,b
        #[arg(long, value_delimiter = ',')]
        tags: Vec<String>,
        /// Status, as in accepted
        #[arg(long)]
        status: Option<String>,
    },
    /// Take a note out of the memory
    Forget {
        /// Its file
        path: String,
    },
    /// Put a forgotten note back; without an id, list them
    Restore {
        /// As `forget` has said it
        id: Option<String>,
    },
    /// Bring the index up to date
    Index {
        /// Throw it away and build it anew
        #[arg(long)]
        rebuild: bool,
    },
    /// List the notes, newest first
    List {
        #[command(flatten)]
        place: NoteScopeArgs,
        #[command(flatten)]
        choice: NoteFilterArgs,
        /// How many to show
        #[arg(long, default_value_t = 50)]
        limit: usize,
    },
}

#[derive(Debug, clap::Args)]
struct NoteScopeArgs {
    /// Workspace, where the root has several
    #[arg(long)]
    workspace: Option<String>,
    /// Domain: a folder of the workspace
    #[arg(long)]
    domain: Option<String>,
    /// Repository: a folder of a domain
    #[arg(long)]
    repository: Option<String>,
}

#[derive(Debug, clap::Args)]
struct NoteFilterArgs {
    /// Only notes of this kind: note, decision, lesson, plan or overview
    #[arg(long, value_parser = ["note", "decision", "lesson", "plan", "overview"])]
    kind: Option<String>,
    /// Only notes with one of these tags
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
}

// === impl WorkspaceArgs ===

impl WorkspaceArgs {
    /// Runs one command.
    pub fn run(self, env: &Env) -> anyhow::Result<()> {
        let home = Home::find(env)?;
        let root = match (&self.root, env.var("PRISM_WORKSPACE")) {
            (Some(root), _) => root.clone(),
            (None, Some(root)) => PathBuf::from(root),
            (None, None) => {
                let here = std::env::current_dir().context("cannot see the current folder")?;
                memory::nearest_root(&here, home.path())
            }
        };
        if let Some(said) = self.answer(&root, home.path())? {
            say::line(&said);
        }
        Ok(())
    }

    /// Returns what there is to say, if stdout is not the protocol's.
    fn answer(self, root: &Path, home: &Path) -> anyhow::Result<Option<String>> {
        let memory = WorkspaceMemory::new(Some(root), home);
        let mut bar = ProgressBar::new("indexing notes");
        let mut progress = |IndexProgress { done, total }: IndexProgress| bar.show(done, total);
        let (answer, text): (Value, fn(&Value) -> anyhow::Result<String>) = match self.command {
            WorkspaceCommand::Mcp => return serve(root, home).map(|()| None),
            WorkspaceCommand::Context { place, topics, only_topics, status, tags, category, tier } => {
                let scope = place.into();
                let context =
                    ContextQuery { scope, topics, only_topics, statuses: status, tags, categories: category, tier };
                (memory.context(&context, &mut progress)?, show::context)
            }
            WorkspaceCommand::Search { query, place, choice: NoteFilterArgs { kind, tags }, limit } => {
                let search = Search { query: query.join(" "), scope: place.into(), kind, tags, limit: Some(limit) };
                (memory.search(&search, &mut progress)?, show::search)
            }
            WorkspaceCommand::Remember { title, text, place, kind, topic, tags, status } => {
                let text = text.map_or_else(from_stdin, Ok)?;
                let note = NewNote { title, text, kind, scope: place.into(), topic, tags, status };
                (memory.remember(&note, &mut progress)?, show::remembered)
            }
            WorkspaceCommand::Forget { path } => (forget(&memory, &path, &mut progress)?, show::forgotten),
            WorkspaceCommand::Restore { id: Some(id) } => {
                let path = Forgotten::restore(home, &id)?;
                (json!(NoteRestored { restored: path.to_string_lossy().into_owned() }), show::restored)
            }
            WorkspaceCommand::Restore { id: None } => (json!(Forgotten::all(home)), show::attic),
            WorkspaceCommand::Index { rebuild } => {
                let indexed = if rebuild { memory.rebuild(&mut progress)? } else { memory.index(&mut progress)? };
                let answer = IndexAnswer {
                    root: root.to_string_lossy().into_owned(),
                    notes: indexed.notes as u64,
                    read: indexed.read as u64,
                    removed: indexed.removed as u64,
                    remarks: indexed.remarks,
                    milliseconds: u64::try_from(bar.elapsed().as_millis()).unwrap_or(u64::MAX),
                };
                (json!(answer), show::indexed)
            }
            WorkspaceCommand::List { place, choice: NoteFilterArgs { kind, tags }, limit } => {
                let listing = NoteListQuery { scope: place.into(), kind, tags, limit };
                (memory.list(&listing, &mut progress)?, show::list)
            }
        };
        drop(bar);
        Ok(Some(if self.json { serde_json::to_string_pretty(&answer)? } else { text(&answer)? }))
    }
}

/// Serves until stdin ends. The log goes to stderr, and is silent unless something is wrong.
fn serve(root: &Path, home: &Path) -> anyhow::Result<()> {
    let log = DaemonLog::start(LevelFilter::WARN, io::stderr().is_terminal() && say::colour());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let outcome = runtime.block_on(kit::serve_stdio(Arc::new(memory::server(Some(root), home))));
    // A thread that reads stdin cannot be stopped; nothing waits for it.
    runtime.shutdown_background();
    log.flush();
    outcome.context("cannot read from or write to the client")
}

/// A person types a path as their shell completes it, from the current folder, or as a search has shown it.
fn forget(
    memory: &WorkspaceMemory,
    path: &str,
    progress: &mut dyn FnMut(IndexProgress),
) -> Result<Value, WorkspaceError> {
    let absolute = Path::new(path).canonicalize().ok().and_then(|path| path.into_os_string().into_string().ok());
    memory.forget(absolute.as_deref().unwrap_or(path), progress)
}

fn from_stdin() -> anyhow::Result<String> {
    if io::stdin().is_terminal() {
        bail!(
            "what should be remembered?\n  fix: prism workspace remember TITLE TEXT, or … | prism workspace remember TITLE"
        );
    }
    let mut text = String::new();
    // One byte more than may be remembered, so that too much is noticed and not cut.
    io::stdin().lock().take((256 << 10) + 1).read_to_string(&mut text).context("cannot read the text from stdin")?;
    Ok(text)
}

impl From<NoteScopeArgs> for NoteScope {
    fn from(NoteScopeArgs { workspace, domain, repository }: NoteScopeArgs) -> Self {
        Self { workspace, domain, repository }
    }
}
