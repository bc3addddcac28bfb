//! All servers that run: one for a project and a program, shared by whoever has been granted the project. A server is started
//! when something is first asked of it and ends when nobody has asked for long, when the last of its holders has left, or
//! when another needs its place. One that dies is started again at the next question; one that keeps dying has to wait longer
//! each time.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prism_core::policy::{Code, Refusal};
use prism_os::{
    census::OwnerDaemon,
    child::{Child, ChildSpec, SpawnError},
    sandbox::NetworkAccess,
};
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::{
    attend,
    catalogue::{self, ServerChoice, ServerKind},
    client::{LspClient, LspCommand, LspTerms},
    conversation::{DiskChange, LspGreeting},
    outside::OutsideWatch,
    project_trust,
    proof::Proofs,
    slot::ServerSlot,
};
use crate::{
    happening::Happenings,
    language::SourceLanguage,
    lsp::{LspContext, LspState},
    refusal::failed,
    run::fence::ChildFence,
    settings::EditorSettings,
    state::GrantHolder,
};

/// The language servers. One for the runtime; a copy is the same one.
#[derive(Clone, Debug)]
pub(crate) struct LanguageServers(Arc<LanguageServerTable>);

struct LanguageServerTable {
    env: BTreeMap<OsString, OsString>,
    owner: OwnerDaemon,
    settings: EditorSettings,
    happenings: Happenings,
    is_attended: AtomicBool,
    slots: Mutex<BTreeMap<LanguageServerKey, ServerSlot>>,
    proofs: Proofs,
}

/// What a server is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LanguageServerKey {
    pub(crate) folder: PathBuf,
    pub(crate) command: Vec<String>,
}

/// Which server is wanted.
#[derive(Clone, Debug)]
pub(crate) struct WantedServer {
    pub(crate) key: LanguageServerKey,
    pub(crate) kind: &'static ServerKind,
    /// LSP's name of the language that it is wanted for.
    pub(crate) language: &'static str,
    /// What it may see: the granted folder that the project is in.
    pub(crate) reach: PathBuf,
}

/// What has become of an attempt to start one.
enum StartAttempt {
    Now(Arc<LspClient>),
    /// When this one has made place.
    When(Arc<LspClient>),
}

/// Servers at once. A further one takes the place of the one that was not asked anything for longest; if all are at work, who
/// asks is told to come back.
const MAX_SERVERS: usize = 8;

/// Places that are remembered of servers that do not run. Of more, those that never failed are forgotten first.
const MAX_SLOTS: usize = 64;

/// How long is waited for a server to make place, and for all of them at the end.
const MAKING_PLACE: Duration = Duration::from_secs(5);

// === impl LanguageServers ===

impl LanguageServers {
    pub(crate) fn new(
        env: BTreeMap<OsString, OsString>,
        owner: OwnerDaemon,
        settings: EditorSettings,
        happenings: Happenings,
    ) -> Self {
        let (is_attended, slots, proofs) = (AtomicBool::new(false), Mutex::default(), Proofs::default());
        Self(Arc::new(LanguageServerTable { env, owner, settings, happenings, is_attended, slots, proofs }))
    }

    /// Has servers hear of what happens, from the first that is needed on.
    pub(super) fn attend(&self, state: &Arc<LspState>) {
        if !self.0.is_attended.swap(true, Ordering::Relaxed) {
            tokio::spawn(attend::attend(Arc::downgrade(state), self.0.happenings.listen()));
        }
    }

    pub(crate) fn settings(&self) -> &EditorSettings {
        &self.0.settings
    }

    /// Finds the server of a language for a project: one that can work. Blocks.
    pub(crate) fn choose(
        &self,
        context: &LspContext,
        language: SourceLanguage,
        reach: &Path,
        project: &Path,
    ) -> Result<ServerChoice, Refusal> {
        let prove = |kind: &ServerKind, program: &Path| self.prove(context, kind, program, reach, project);
        catalogue::choose(language, &self.0.settings, &self.0.env, reach, project, &prove)
    }

    /// Says why a program cannot work, looking at it as it would be started: of the project's own files rustup, say, reads
    /// which toolchain is meant.
    fn prove(
        &self,
        context: &LspContext,
        kind: &ServerKind,
        program: &Path,
        reach: &Path,
        project: &Path,
    ) -> Result<(), String> {
        let folder = if self.0.settings.runs_project_code { project } else { Path::new("/") };
        self.0.proofs.of(program, folder, || {
            // Why there is no fence, who starts it is told.
            let Ok(around) = self.fence(context, program, reach) else { return Ok(()) };
            let env = self.env_of(kind, folder, &around);
            kind.look.at(program, folder, &env, around.fence.as_ref())
        })
    }

    /// Finds the running server, or starts one.
    pub(crate) async fn client(&self, context: &LspContext, wanted: &WantedServer) -> Result<Arc<LspClient>, Refusal> {
        let until = Instant::now() + MAKING_PLACE;
        if let Some(client) = self.found(wanted, context.holder.id) {
            return Ok(client);
        }
        loop {
            let (this, its, wanted) = (self.clone(), context.clone(), wanted.clone());
            let leaving = match context.state.editor.blocking(move |_| this.start(&its, &wanted)).await? {
                StartAttempt::Now(client) => return Ok(client),
                StartAttempt::When(leaving) => leaving,
            };
            leaving.stop();
            if timeout(until - Instant::now(), leaving.ended()).await.is_err() {
                return Err(all_busy());
            }
        }
    }

    fn found(&self, wanted: &WantedServer, holder: u128) -> Option<Arc<LspClient>> {
        let mut slots = self.slots();
        let slot = slots.get_mut(&wanted.key)?;
        slot.languages.insert(wanted.language);
        slot.holders.insert(holder);
        slot.running()
    }

    /// Starts one. The table stays locked for the milliseconds that this takes, so that nobody starts the same twice. Blocks.
    fn start(&self, context: &LspContext, wanted: &WantedServer) -> Result<StartAttempt, Refusal> {
        let LanguageServerTable { settings, happenings, .. } = &*self.0;
        let WantedServer { key, kind, language, reach } = wanted;
        // Before it is started, so that it is told of all that changes after it has looked; and before the table is locked,
        // as a large project takes a while.
        let folder = context.roots.resolve(&key.folder.display().to_string()).and_then(|way| way.folder());
        let outside = folder.ok().and_then(OutsideWatch::watch);
        if !settings.runs_project_code {
            project_trust::refuse(kind, &key.folder, reach, &context.roots)?;
        }
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_insert_with(|| ServerSlot::new(wanted.clone()));
        slot.languages.insert(language);
        slot.holders.insert(context.holder.id);
        if let Some(client) = slot.running() {
            return Ok(StartAttempt::Now(client));
        }
        slot.may_start()?;
        match make_place(&mut slots, key) {
            ServerVacancy::Free => {}
            ServerVacancy::Leaving(client) => return Ok(StartAttempt::When(client)),
            ServerVacancy::None => return Err(all_busy()),
        }
        let slot = slots.get_mut(key).ok_or_else(|| failed("the language server's place is gone"))?;
        let program = key.command.first().map(Path::new).unwrap_or(Path::new(""));
        let around = self.fence(context, program, reach)?;
        slot.starts += 1;
        let child = self.spawn(key, kind, &around).map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            let message = format!("{error}{source}; {}", slot.wanted.kind.hint());
            slot.failed(message.clone());
            let code = if matches!(error, SpawnError::NotFound { .. }) { Code::Unsupported } else { Code::Failed };
            Refusal::new(code, message)
        })?;
        let (options, configuration) = slot.wanted.kind.wishes(settings);
        let terms = LspTerms {
            greeting: LspGreeting {
                folder: key.folder.clone(),
                options,
                configuration,
                leaves_watching: kind.leaves_watching,
            },
            tells_quiet: slot.wanted.kind.tells_quiet,
            idle: settings.idle_server,
            around,
            outside,
            heard: {
                let happenings = happenings.clone();
                Arc::new(move |diagnosed| attend::tell(&happenings, diagnosed))
            },
        };
        let client = LspClient::begin(child, terms);
        slot.client = Some(client.clone());
        Ok(StartAttempt::Now(client))
    }

    /// What a server may touch: the granted folder that its project is in, and where its own program lies. Unless it is
    /// allowed, nothing in the granted folder can be executed.
    fn fence(&self, context: &LspContext, program: &Path, reach: &Path) -> Result<ChildFence, Refusal> {
        let held = context.roots.resolve(&reach.display().to_string()).and_then(|way| way.folder())?;
        // It serves all who work there, so it has the network of none.
        let holder = GrantHolder { network: NetworkAccess::Own, ..context.holder.clone() };
        let around = context.state.fences.around_folders(vec![held], &holder);
        let mut around =
            around.map_err(|error| failed(format!("cannot make a folder for temporary files: {error}")))?;
        if let Some(fence) = &mut around.fence {
            fence.read.extend(home_of(program));
            if !self.0.settings.runs_project_code {
                fence.exec = Some(fence.read.clone());
            }
        }
        Ok(around)
    }

    /// The one place where a server's process begins: in a group of its own, without secrets, and behind the fence.
    fn spawn(&self, key: &LanguageServerKey, kind: &ServerKind, around: &ChildFence) -> Result<Child, SpawnError> {
        let (env, fence) = (self.env_of(kind, &key.folder, around), around.fence.as_ref());
        let cgroup = around.limits.cgroup();
        let spec = ChildSpec { command: &key.command, env: &env, cwd: Some(&key.folder), cgroup, fence };
        Child::spawn(&spec, &self.0.owner)
    }

    fn env_of(&self, kind: &ServerKind, folder: &Path, around: &ChildFence) -> BTreeMap<OsString, OsString> {
        let mut env = self.0.env.clone();
        env.insert("PWD".into(), folder.into());
        env.remove(std::ffi::OsStr::new("OLDPWD"));
        let added = kind.additions(&self.0.settings, &env);
        env.extend(added);
        env.extend(around.env.iter().map(|(name, value)| (name.clone(), value.clone())));
        env
    }

    /// Those that run.
    pub(crate) fn running(&self) -> Vec<(LanguageServerKey, &'static ServerKind, Arc<LspClient>)> {
        let slots = self.slots();
        let running = slots.iter().filter_map(|(key, slot)| Some((key.clone(), slot.wanted.kind, slot.running()?)));
        running.collect()
    }

    /// Tells of those within some folders.
    pub(crate) fn list(&self, is_within: impl Fn(&Path) -> bool) -> Vec<Value> {
        let slots = self.slots();
        let mut told = Vec::new();
        for (key, slot) in slots.iter().filter(|(key, _)| is_within(&key.folder)) {
            for language in &slot.languages {
                told.push(slot.to_json(key, language));
            }
        }
        told
    }

    /// Stops those of a language, or of all, within some folders, and forgets how often they have failed. Returns which.
    pub(crate) async fn stop(
        &self,
        language: Option<&str>,
        is_within: impl Fn(&Path) -> bool,
    ) -> Vec<LanguageServerKey> {
        let (mut keys, mut stopping) = (Vec::new(), Vec::new());
        for (key, slot) in self.slots().iter_mut() {
            if is_within(&key.folder) && language.is_none_or(|language| slot.languages.contains(language)) {
                keys.push(key.clone());
                stopping.extend(slot.forgiven());
            }
        }
        end(stopping).await;
        keys
    }

    /// Starts some again that were stopped. Why one does not start, the list tells.
    pub(crate) async fn start_again(&self, context: &LspContext, keys: Vec<LanguageServerKey>) {
        for key in keys {
            let wanted = self.slots().get(&key).map(|slot| slot.wanted.clone());
            if let Some(wanted) = wanted {
                let _ = self.client(context, &wanted).await;
            }
        }
    }

    /// A holder has left; what only it needed ends.
    pub(crate) fn release(&self, holder: u128) {
        let mut slots = self.slots();
        for slot in slots.values_mut() {
            if slot.holders.remove(&holder) && slot.holders.is_empty() {
                slot.client.iter().for_each(|client| client.stop());
            }
        }
    }

    /// Ends all.
    pub(crate) async fn close(&self) {
        let all: Vec<Arc<LspClient>> = self.slots().values_mut().filter_map(|slot| slot.client.take()).collect();
        end(all).await;
    }

    pub(crate) fn closed(&self, path: &Path) {
        self.each_above(path, |client| client.tell(LspCommand::Close(path.to_owned())));
    }

    pub(crate) fn saved(&self, path: &Path) {
        self.each_above(path, |client| client.tell(LspCommand::Saved(path.to_owned())));
        self.changed_on_disk(path, DiskChange::Changed);
    }

    /// Tells those of a changed file that do not hear of it anyway, when they are asked something next.
    pub(crate) fn changed_on_disk(&self, path: &Path, change: DiskChange) {
        self.each_above(path, |client| {
            if !client.leaves_watching {
                client.tell(LspCommand::ChangedOnDisk(vec![(path.to_owned(), change)]));
            }
        });
    }

    fn each_above(&self, path: &Path, act: impl Fn(&LspClient)) {
        let slots = self.slots();
        let above = slots.iter().filter(|(key, _)| path.starts_with(&key.folder));
        above.filter_map(|(_, slot)| slot.running()).for_each(|client| act(&client));
    }

    fn slots(&self) -> MutexGuard<'_, BTreeMap<LanguageServerKey, ServerSlot>> {
        // Each change of the table is whole, whatever became of who made it.
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for LanguageServerTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Servers").finish_non_exhaustive()
    }
}

/// Whether there is room for one more.
enum ServerVacancy {
    Free,
    /// When this one is gone.
    Leaving(Arc<LspClient>),
    None,
}

fn make_place(slots: &mut BTreeMap<LanguageServerKey, ServerSlot>, wanted: &LanguageServerKey) -> ServerVacancy {
    if slots.len() > MAX_SLOTS {
        slots.retain(|key, slot| key == wanted || slot.failures > 0 || slot.client.is_some());
    }
    let living: Vec<&Arc<LspClient>> =
        slots.values().filter_map(|slot| slot.client.as_ref()).filter(|client| !client.has_ended()).collect();
    if living.len() < MAX_SERVERS {
        return ServerVacancy::Free;
    }
    let gone = living.iter().find(|client| client.is_gone());
    let idle = living.iter().filter(|client| !client.is_busy()).min_by_key(|client| client.last_used());
    gone.or(idle).map_or(ServerVacancy::None, |client| ServerVacancy::Leaving((*client).clone()))
}

fn all_busy() -> Refusal {
    let message = format!("{MAX_SERVERS} language servers are at work already; try again when one has answered");
    Refusal { code: Code::TooFast, message, retry_after: Some(Duration::from_secs(2)) }
}

/// Where a program's own files are, beside the usual places: the folder that it really lies in, and all packages of which it
/// is one.
fn home_of(program: &Path) -> Option<PathBuf> {
    let real = program.canonicalize().ok()?;
    let packages = real.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
    packages.or_else(|| real.parent()).map(Path::to_owned)
}

async fn end(clients: Vec<Arc<LspClient>>) {
    clients.iter().for_each(|client| client.stop());
    let all = async {
        for client in &clients {
            client.ended().await;
        }
    };
    let _ = timeout(MAKING_PLACE, all).await;
}
