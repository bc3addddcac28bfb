//! One running server: the task that owns its pipes and its process group to the end, and the handle that others ask it by.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use prism_os::{child::Child, fence::SandboxEnforcement};
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep, timeout_at},
};

use super::{
    conversation::{Conversation, DiskChange, LspAnswer, LspFault, LspGreeting, LspQuestion},
    documents::LspDocument,
    known::ServerKnowledge,
    outside::OutsideWatch,
    task::ServerTask,
};
use crate::run::fence::ChildFence;

/// A server that was started. It ends when this is dropped, by itself when nobody asks it anything, or when told to.
#[derive(Debug)]
pub(crate) struct LspClient {
    commands: mpsc::Sender<LspCommand>,
    pub(crate) known: Arc<ServerKnowledge>,
    pub(crate) pid: u32,
    /// What has become of its fence; `None` if it was not to have one.
    pub(crate) enforced: Option<SandboxEnforcement>,
    /// What others change in its project; `None` where that cannot be watched.
    pub(crate) outside: Option<OutsideWatch>,
    /// Whether it hears of changed files from what was noticed outside alone.
    pub(crate) leaves_watching: bool,
    ids: AtomicI64,
    used: Mutex<Instant>,
    asking: AtomicUsize,
    /// Whether it has ever answered anything.
    is_proven: AtomicBool,
    stop: watch::Sender<bool>,
    /// Closed when nothing of it is left.
    left: watch::Receiver<()>,
}

pub(crate) enum LspCommand {
    Ask(LspQuestion),
    Cancel(i64),
    Sync(Vec<LspDocument>),
    /// Has it look at a text again. The answer is the number of that.
    Freshen(Vec<LspDocument>, PathBuf, oneshot::Sender<Option<i32>>),
    Close(PathBuf),
    Saved(PathBuf),
    ChangedOnDisk(Vec<(PathBuf, DiskChange)>),
}

/// What a client needs beside the child.
pub(crate) struct LspTerms {
    pub(crate) greeting: LspGreeting,
    pub(crate) tells_quiet: bool,
    pub(crate) idle: Duration,
    pub(crate) heard: Heard,
    /// Kept while it runs: its folder for temporary files goes with it.
    pub(crate) around: ChildFence,
    pub(crate) outside: Option<OutsideWatch>,
}

/// Told when the diagnostics of a file have changed.
pub(crate) type Heard = Arc<dyn Fn(&super::known::Diagnosed) + Send + Sync>;

/// Commands that a server's task has not taken yet. A question beyond it is refused, and news beyond it is dropped: the text
/// is sent again with the next question, and a question that nobody waits for is given up when its time is over.
const MAX_COMMANDS: usize = 64;

/// Pause before the same is asked again of a server that was disturbed by a change; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl LspClient {
    /// Takes charge of a child, and greets it.
    pub(crate) fn begin(child: Child, terms: LspTerms) -> Arc<Self> {
        let known = Arc::new(ServerKnowledge::new(terms.tells_quiet));
        let (commands, inbox) = mpsc::channel(MAX_COMMANDS);
        let (stop, stopped) = watch::channel(false);
        let (leaving, left) = watch::channel(());
        let (pid, enforced) = (child.group.pid(), child.enforced.clone());
        let leaves_watching = terms.greeting.leaves_watching;
        let conversation = Conversation::new(terms.greeting, known.clone());
        let task = ServerTask::new(child, conversation, known.clone(), inbox, stopped, terms.idle, terms.heard);
        let around = terms.around;
        tokio::spawn(async move {
            task.run(&around.limits).await;
            drop(around);
            drop(leaving);
        });
        Arc::new(Self {
            commands,
            known,
            pid,
            enforced,
            outside: terms.outside,
            leaves_watching,
            ids: AtomicI64::new(1),
            used: Mutex::new(Instant::now()),
            asking: AtomicUsize::new(0),
            is_proven: AtomicBool::new(false),
            stop,
            left,
        })
    }

    /// Asks, and asks again where a change has disturbed the server, until the time is up. `documents` are the texts that it
    /// has to have, as they are each time. Dropping the future takes the question back.
    pub(crate) async fn ask(
        &self,
        documents: &(dyn Fn() -> Vec<LspDocument> + Send + Sync),
        method: &'static str,
        params: &Value,
        until: Instant,
    ) -> Result<LspAnswer, LspFault> {
        let _asking = Asking::of(self);
        let mut pause = FIRST_PAUSE;
        loop {
            match self.ask_once(documents(), method, params.clone(), until).await {
                Err(LspFault::Refused(complaint)) if complaint.is_passing() && Instant::now() + pause < until => {
                    sleep(pause).await;
                    pause = LONGEST_PAUSE.min(pause * 2);
                }
                outcome => return outcome,
            }
        }
    }

    async fn ask_once(
        &self,
        documents: Vec<LspDocument>,
        method: &'static str,
        params: Value,
        until: Instant,
    ) -> Result<LspAnswer, LspFault> {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let question = LspQuestion { id, documents, method, params, until, reply };
        self.commands.try_send(LspCommand::Ask(question)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => LspFault::Busy,
            mpsc::error::TrySendError::Closed(_) => self.gone(),
        })?;
        let mut guard = TakeBack { client: self, id: Some(id) };
        let outcome = match timeout_at(until, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(self.gone()),
            Err(_) => return Err(LspFault::TimedOut),
        };
        guard.id = None;
        if outcome.is_ok() {
            self.is_proven.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Sends texts, and has the server say anew what it thinks of one of them. Returns the number that it has to say it of.
    pub(crate) async fn freshen(
        &self,
        documents: Vec<LspDocument>,
        path: PathBuf,
        until: Instant,
    ) -> Result<i64, LspFault> {
        let _asking = Asking::of(self);
        let (reply, answer) = oneshot::channel();
        self.commands.try_send(LspCommand::Freshen(documents, path, reply)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => LspFault::Busy,
            mpsc::error::TrySendError::Closed(_) => self.gone(),
        })?;
        match timeout_at(until, answer).await {
            Ok(Ok(number)) => number.map(i64::from).ok_or(LspFault::Busy),
            Ok(Err(_)) => Err(self.gone()),
            Err(_) => Err(LspFault::TimedOut),
        }
    }

    /// Notes that it has answered something, in its way.
    pub(crate) fn has_told(&self) {
        self.is_proven.store(true, Ordering::Relaxed);
    }

    /// Tells whether it has loaded all that the project is made of, has heard of all that has changed in its files, and has
    /// read them anew.
    pub(crate) fn sees_all(&self) -> bool {
        self.is_watched_whole() && self.known.read(|facts| facts.unread.is_empty() && facts.note().is_none())
    }

    /// Tells whether nothing can change in its project's files unnoticed.
    pub(crate) fn is_watched_whole(&self) -> bool {
        self.outside.as_ref().is_some_and(|outside| !outside.is_partial())
    }

    /// Says something that nobody waits for.
    pub(crate) fn tell(&self, command: LspCommand) {
        let _ = self.commands.try_send(command);
    }

    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the process and all that it started are gone.
    pub(crate) async fn ended(&self) {
        let mut left = self.left.clone();
        while left.changed().await.is_ok() {}
    }

    /// Tells whether nothing can be asked of it any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.commands.is_closed() || *self.stop.borrow() || self.known.read(|facts| facts.phase.end().is_some())
    }

    /// Tells whether nothing of it is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.left.has_changed().is_err()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.asking.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.is_proven.load(Ordering::Relaxed)
    }

    pub(crate) fn last_used(&self) -> Instant {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gone(&self) -> LspFault {
        let reason = self.known.read(|facts| facts.phase.end().map(str::to_owned));
        LspFault::Gone(reason.unwrap_or_else(|| "it is being stopped".to_owned()))
    }
}

/// Counts who asks.
struct Asking<'a>(&'a LspClient);

impl<'a> Asking<'a> {
    fn of(client: &'a LspClient) -> Self {
        client.asking.fetch_add(1, Ordering::Relaxed);
        Self(client)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
        *self.0.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Takes a question back when who asked has gone.
struct TakeBack<'a> {
    client: &'a LspClient,
    id: Option<i64>,
}

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.client.tell(LspCommand::Cancel(id));
        }
    }
}
