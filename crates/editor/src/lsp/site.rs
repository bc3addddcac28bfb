//! Where a verb asks: one open text, the project that it is in, and the server of its language there.

use std::{
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    catalogue::{self, ServerKind},
    client::{LspClient, LspCommand},
    conversation::{DiskChange, LspAnswer, LspFault, brief},
    documents::LspDocument,
    known::{ServerFacts, ServerPhase},
    message::NO_SUCH_METHOD,
    outside::OutsideChanges,
    project, project_trust,
    servers::{LanguageServerKey, WantedServer},
    uri,
};
use crate::{
    args::wrong,
    language::SourceLanguage,
    lsp::LspContext,
    roots::read::MAX_BYTES,
    run::fence::FenceReport,
    text::{
        buffers::{Buffer, Snapshot},
        edit::TextLines,
    },
};

#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) context: LspContext,
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) kind: &'static ServerKind,
    language: SourceLanguage,
    wanted: WantedServer,
}

/// An ability of servers: what they call it when they say that they have it, and what it is asked by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ability {
    pub(crate) capability: &'static str,
    pub(crate) method: &'static str,
    /// What it is for, in a person's words.
    pub(crate) what: &'static str,
}

/// How long a server has for one answer, its own start included.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How much of that is left for the answer itself, if the server is busy loading the project before.
const FOR_THE_ANSWER: Duration = Duration::from_secs(3);

/// How long is waited for rust-analyzer to read files anew that it was told of, how long for it to say that it knows such a
/// file at all, and how often it is asked.
const RELOAD: Duration = Duration::from_secs(2);
const UNKNOWN: Duration = Duration::from_millis(200);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Times that a question is asked of a new server after the one before has died over it.
const AGAIN: usize = 1;

impl Site {
    /// Opens the text and finds its project and server. Starts nothing.
    pub(crate) async fn open(context: LspContext, path: String) -> Result<Self, Refusal> {
        let state = context.state.clone();
        state.editor.blocking(move |_| Self::find(context, &path)).await
    }

    fn find(context: LspContext, path: &str) -> Result<Self, Refusal> {
        let buffer = context.state.text.buffers.open(&context.roots.resolve(path)?)?;
        let Some(language) = buffer.language() else {
            let message = format!("no language server is known for {path:?}: its name says nothing of its language");
            return Err(Refusal::new(Code::Unsupported, message));
        };
        let outside = || Refusal::new(Code::OutsideRoot, format!("{path:?} is in none of the granted folders"));
        let reach = project::root_of(buffer.path(), &context.roots).ok_or_else(outside)?;
        let folder = project::of(buffer.path(), catalogue::marks(language), &context.roots).ok_or_else(outside)?;
        let choice = context.state.servers.choose(&context, language, &reach, &folder)?;
        let (key, kind) = (LanguageServerKey { folder, command: choice.command }, choice.kind);
        let wanted = WantedServer { key, kind, language: language.id(), reach };
        Ok(Self { buffer, kind, language, wanted, context })
    }

    pub(crate) fn path(&self) -> &Path {
        self.buffer.path()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.buffer.snapshot()
    }

    /// The text as servers name it.
    pub(crate) fn document_id(&self) -> Value {
        json!({ "uri": uri::of(self.path()) })
    }

    /// A place in the text as servers take it; refused if the text has none such.
    pub(crate) fn place(&self, (line, character): (u64, u64)) -> Result<Value, Refusal> {
        TextLines::of(&self.snapshot().text).offset((line, character)).map_err(wrong)?;
        Ok(json!({ "line": line, "character": character }))
    }

    /// The server, running.
    pub(crate) async fn client(&self) -> Result<Arc<LspClient>, Refusal> {
        let servers = &self.context.state.servers;
        servers.attend(&self.context.state);
        let mut is_anew = false;
        loop {
            let client = servers.client(&self.context, &self.wanted).await?;
            let (its, context, wanted) = (client.clone(), self.context.clone(), self.wanted.clone());
            let is_lost = self.context.state.editor.blocking(move |_| catch_up(&its, &context, &wanted)).await?;
            if is_lost && client.leaves_watching && !is_anew {
                // It has not heard of everything, and nobody can tell it; a new one looks for itself.
                client.stop();
                client.ended().await;
                is_anew = true;
                continue;
            }
            settle(&client, &self.context).await;
            return Ok(client);
        }
    }

    /// Asks the server something that it may be able to do, when it has loaded the project or time gets short. A server that
    /// dies over it is asked again when it has been started anew.
    pub(crate) async fn ask(&self, ability: Ability, params: &Value, until: Instant) -> Result<LspAnswer, Refusal> {
        let mut died = 0;
        loop {
            let client = self.client().await?;
            match self.ask_of(&client, ability, params, until).await {
                Err(LspFault::Gone(_)) if died < AGAIN => died += 1,
                outcome => {
                    let mut answer = outcome.map_err(|fault| self.refusal(fault, Some(ability)))?;
                    answer.was_busy |= !client.sees_all();
                    return Ok(answer);
                }
            }
        }
    }

    async fn ask_of(
        &self,
        client: &LspClient,
        ability: Ability,
        params: &Value,
        until: Instant,
    ) -> Result<LspAnswer, LspFault> {
        ready(client, until).await?;
        if !client.known.read(|facts| facts.offers(ability.capability, ability.method)) {
            return Err(LspFault::Refused(super::message::LspError { code: NO_SUCH_METHOD, message: String::new() }));
        }
        // The text goes ahead, so that the server can begin with it.
        client.tell(LspCommand::Sync(self.documents(client)));
        let quiet = |facts: &ServerFacts| (facts.busy_with().is_none() || facts.phase.end().is_some()).then_some(());
        client.known.wait(until - FOR_THE_ANSWER, quiet).await;
        self.ask_once(client, ability.method, params, until).await
    }

    pub(crate) async fn ask_once(
        &self,
        client: &LspClient,
        method: &'static str,
        params: &Value,
        until: Instant,
    ) -> Result<LspAnswer, LspFault> {
        client.ask(&|| self.documents(client), method, params, until).await
    }

    /// The texts that the server must have to see what the editor sees: this one, those that it has already, and those of
    /// the project that differ from the disk. What was closed since is closed there too.
    pub(crate) fn documents(&self, client: &LspClient) -> Vec<LspDocument> {
        let buffers = &self.context.state.text.buffers;
        let mut texts = vec![self.buffer.clone()];
        for path in client.known.read(|facts| facts.open.keys().cloned().collect::<Vec<_>>()) {
            match buffers.at(&path) {
                Some(buffer) => texts.push(buffer),
                None => client.tell(LspCommand::Close(path)),
            }
        }
        let is_ours = |buffer: &Arc<Buffer>| {
            buffer.language().is_some_and(|language| language == self.language || self.kind.serves(language))
        };
        texts.extend(buffers.dirty_beneath(&self.wanted.key.folder).into_iter().filter(is_ours));
        texts.sort_by(|a, b| a.path().cmp(b.path()));
        texts.dedup_by(|a, b| a.path() == b.path());
        texts.iter().filter_map(|buffer| document(buffer)).collect()
    }

    /// What is said of the server along with an answer.
    pub(crate) fn server_json(&self, client: &LspClient) -> Value {
        let busy = client.known.read(ServerFacts::busy_with);
        json!({ "name": self.kind.name, "root": self.wanted.key.folder, "busy_with": busy })
    }

    pub(crate) fn refusal(&self, fault: LspFault, ability: Option<Ability>) -> Refusal {
        let name = self.kind.name;
        match fault {
            LspFault::Gone(reason) => Refusal {
                code: Code::Failed,
                message: {
                    let enforced = FenceReport::of(self.context.state.fences.kind().as_ref());
                    let next = enforced.hint_for(&[&reason]).unwrap_or(self.kind.hint());
                    format!("the language server {name} was lost: {}; {next}", brief(&reason))
                },
                retry_after: Some(Duration::from_secs(1)),
            },
            LspFault::TimedOut => {
                Refusal::new(Code::TimedOut, format!("the language server {name} has not answered in time; try again"))
            }
            LspFault::Busy => Refusal {
                code: Code::TooFast,
                message: format!("too much is asked of the language server {name} at once; try again"),
                retry_after: Some(Duration::from_secs(1)),
            },
            LspFault::Refused(complaint) if complaint.code == NO_SUCH_METHOD => {
                let what = ability.map_or("do this", |ability| ability.what);
                Refusal::new(Code::Unsupported, format!("the language server {name} cannot {what}"))
            }
            LspFault::Refused(complaint) => {
                Refusal::new(Code::Failed, format!("the language server {name} says: {}", brief(&complaint.message)))
            }
        }
    }
}

/// Tells a server what others have changed in its project. Of texts that it has from us, the buffer follows its file instead.
/// What would have it run something, it is not told: it is ended, and the project refused. Returns whether there was more
/// than can be told. Blocks.
fn catch_up(client: &LspClient, context: &LspContext, wanted: &WantedServer) -> Result<bool, Refusal> {
    let Some(outside) = &client.outside else { return Ok(false) };
    let (open, mut beside) = client.known.read(|facts| (facts.open.clone(), facts.watched_folders()));
    let WantedServer { key, kind, reach, .. } = wanted;
    beside.retain(|folder| folder.starts_with(reach) && !folder.starts_with(&key.folder));
    let granted = |folder: &Path| context.roots.resolve(folder.to_str()?).and_then(|way| way.folder()).ok();
    outside.widen(beside, granted);
    let OutsideChanges { mut files, is_lost } = outside.changes();
    if !context.state.editor.settings.runs_project_code
        && (is_lost || files.iter().any(|(path, _)| project_trust::may_be(kind, path)))
    {
        project_trust::refuse(kind, &key.folder, reach, &context.roots).inspect_err(|_| client.stop())?;
    }
    files.retain(|(path, change)| {
        if *change != DiskChange::Changed || !open.contains_key(path) {
            return true;
        }
        if let Some(Ok(way)) = path.to_str().map(|path| context.roots.resolve(path)) {
            context.state.text.buffers.refresh(&way);
        }
        false
    });
    if !files.is_empty() {
        if client.leaves_watching {
            let is_read = |(path, change): &&(PathBuf, DiskChange)| {
                *change != DiskChange::Deleted && path.extension().is_some_and(|extension| extension == "rs")
            };
            let unread = files.iter().filter(is_read).map(|(path, _)| path.clone());
            client.known.write(|facts| facts.unread.extend(unread));
        }
        client.tell(LspCommand::ChangedOnDisk(files));
    }
    Ok(is_lost)
}

/// Waits until rust-analyzer has read the files anew that it was told of: it does so aside, and answers meanwhile from what it
/// had. What it has not read by the end makes its answers incomplete.
async fn settle(client: &LspClient, context: &LspContext) {
    let until = Instant::now() + RELOAD;
    let may_be_unknown = Instant::now() + UNKNOWN;
    for path in client.known.read(|facts| facts.unread.clone()) {
        while Instant::now() < until {
            if ready(client, until).await.is_err() {
                return;
            }
            let is_open = client.known.read(|facts| facts.open.contains_key(&path));
            let params = json!({ "uri": uri::of(&path) });
            let has = client.ask(&Vec::new, "rust-analyzer/viewFileText", &params, until).await;
            let (its, path_of) = (context.clone(), path.clone());
            let on_disk = context.state.editor.blocking(move |_| Ok(text_of(&its, &path_of))).await.ok().flatten();
            let is_read = match (&has, &on_disk) {
                // Of what is open it has our text, and what is gone it will be told of.
                _ if is_open => true,
                (_, None) => true,
                (Ok(answer), Some(on_disk)) if answer.value.is_string() => answer.value == on_disk.as_str(),
                // Not every file is one of the project's.
                (Ok(_) | Err(LspFault::Refused(_)), _) => Instant::now() > may_be_unknown,
                (Err(_), _) => return,
            };
            if is_read {
                client.known.write(|facts| facts.unread.remove(&path));
                break;
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

fn text_of(context: &LspContext, path: &Path) -> Option<String> {
    let file = context.roots.resolve(path.to_str()?).and_then(|way| way.open_file()).ok()?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Waits until a server has answered the greeting.
pub(crate) async fn ready(client: &LspClient, until: Instant) -> Result<(), LspFault> {
    let begun = |facts: &ServerFacts| match &facts.phase {
        ServerPhase::Starting => None,
        ServerPhase::Ready => Some(Ok(())),
        ServerPhase::Stopped(reason) | ServerPhase::Died(reason) => Some(Err(LspFault::Gone(reason.clone()))),
    };
    client.known.wait(until, begun).await.unwrap_or(Err(LspFault::TimedOut))
}

pub(super) fn document(buffer: &Buffer) -> Option<LspDocument> {
    let language = buffer.language()?;
    let Snapshot { text, version, .. } = buffer.snapshot();
    let is_jsx = buffer.path().extension().is_some_and(|extension| extension == "jsx");
    let language = if is_jsx { "javascriptreact" } else { language.id() };
    Some(LspDocument { path: buffer.path().to_owned(), language, version, text })
}
