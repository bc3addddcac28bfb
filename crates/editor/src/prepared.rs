//! An action that everything is opened for, and nothing done.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use prism_core::policy::{Effect, Refusal};
use serde_json::Value;

use crate::{
    progress::ProgressSink,
    shown::ActionPreview,
    state::{Cancellation, EditorState},
};

/// An action that can be shown, and then run. Dropping it leaves everything as it was.
pub struct PreparedVerb {
    shown: ActionPreview,
    work: Work,
    state: Arc<EditorState>,
}

/// What is left to do.
pub(crate) struct Work {
    act: WorkKind,
    picture: Option<Box<dyn Fn() -> ActionPreview + Send + Sync>>,
    within: Duration,
    writes: u64,
    /// What it does to files; `None` as long as nobody has said.
    effects: Option<Vec<Effect>>,
    only_looks: bool,
}

enum WorkKind {
    Blocking(Box<BlockingWork>),
    Task(Box<dyn FnOnce(ProgressSink) -> Doing + Send>),
}

type BlockingWork = dyn FnOnce(&Cancellation) -> Result<Value, Refusal> + Send;

/// What will be done, as it is shown, and what does it.
pub(crate) type Opened = (ActionPreview, Work);

/// Something on its way.
pub(crate) type Doing<T = Value> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// How long a work may take, if nothing else is said.
const USUAL: Duration = Duration::from_secs(30);

impl PreparedVerb {
    pub(crate) fn new(state: Arc<EditorState>, (shown, work): Opened) -> Self {
        Self { shown, work, state }
    }

    /// What will happen. It may take a while to draw, so it is only asked for where somebody looks.
    pub fn shown(&self) -> ActionPreview {
        self.work.picture.as_ref().map_or_else(|| self.shown.clone(), |picture| picture())
    }

    /// How long it may take at most. Whoever runs it drops it then.
    pub fn deadline(&self) -> Duration {
        self.work.within
    }

    /// How many bytes of new text it puts in, as far as the arguments did not say so themselves: of a rename, say.
    pub fn writes(&self) -> u64 {
        self.work.writes
    }

    /// What it does to files, as far as it was said. Of what changes any it has to be: it is decided by this whether the person
    /// sees it first.
    pub fn effects(&self) -> Option<&[Effect]> {
        self.work.effects.as_deref()
    }

    /// Whether it changes nothing at all, whatever else its verb may do.
    pub fn only_looks(&self) -> bool {
        self.work.only_looks
    }

    /// Does it. Dropping the future ends a command and all that it started, and a search. A change of a file that has begun
    /// is finished all the same: there is the old file or the new one.
    pub async fn run(self, progress: ProgressSink) -> Result<Value, Refusal> {
        match self.work.act {
            WorkKind::Blocking(work) => self.state.blocking(work).await,
            WorkKind::Task(work) => work(progress).await,
        }
    }
}

impl Work {
    /// Work that blocks a thread, and looks now and then whether anybody still waits for it.
    pub(crate) fn new(work: impl FnOnce(&Cancellation) -> Result<Value, Refusal> + Send + 'static) -> Self {
        Self::of(WorkKind::Blocking(Box::new(work)))
    }

    /// Work that waits for others. Dropped, it must end all that it has started.
    pub(crate) fn task<F: Future<Output = Result<Value, Refusal>> + Send + 'static>(
        work: impl FnOnce(ProgressSink) -> F + Send + 'static,
    ) -> Self {
        Self::of(WorkKind::Task(Box::new(|progress| Box::pin(work(progress)))))
    }

    fn of(act: WorkKind) -> Self {
        Self { act, picture: None, within: USUAL, writes: 0, effects: None, only_looks: false }
    }

    /// Says what it does to files: nothing, if there are none.
    pub(crate) fn affecting(self, effects: Vec<Effect>) -> Self {
        Self { effects: Some(effects), ..self }
    }

    /// Says that it only looks, where the verb can do more.
    pub(crate) fn looking(self) -> Self {
        Self { only_looks: true, ..self }
    }

    /// Gives it more time than usual, or less.
    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// Says how much new text it puts in.
    pub(crate) fn writing(self, writes: u64) -> Self {
        Self { writes, ..self }
    }

    /// Has what is shown of it drawn only if somebody looks.
    pub(crate) fn pictured(self, picture: impl Fn() -> ActionPreview + Send + Sync + 'static) -> Self {
        Self { picture: Some(Box::new(picture)), ..self }
    }
}

impl fmt::Debug for PreparedVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared").finish_non_exhaustive()
    }
}
